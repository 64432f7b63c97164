//! An outside program deletes; we watch what it frees.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::progress::{Call, Progress};
use super::{CommandOutcome, STAT_BLOCK, Victim, spawn};
use crate::clock::Clock;
use crate::error::LoadError;

/// How much of what the program says is kept.
const TAIL_BYTES: usize = 4096;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// From SIGTERM to SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);

/// Its process group, while it may be signalled.
type Group = Arc<Mutex<Option<Pid>>>;

pub(super) fn start(
    argv: Vec<OsString>,
    victims: Vec<Victim>,
    clock: Clock,
) -> Result<Arc<Progress>, LoadError> {
    let mut runs = expand(&argv, &victims).into_iter();
    // The first is started here, so that a program that isn't there is an error at once.
    let Some(first) = runs.next() else {
        return Err(LoadError::Spec {
            actor: "deletion".into(),
            what: "there is no program to run".into(),
        });
    };
    let total = victims.iter().map(|victim| victim.bytes).sum();
    let progress = Progress::new(clock, 2, total, victims.len() as u64);
    let group = Group::default();
    let tail = Arc::new(Mutex::new(Tail::default()));
    let (watched, ours) = (group.clone(), progress.clone());
    let _all_started = progress.hold();
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    spawn(&progress, move |progress, call| {
        let mut outcome = CommandOutcome::default();
        let mut tell = Some(tell);
        for argv in std::iter::once(first).chain(runs) {
            if progress.stopping() {
                break;
            }
            let ended = run(&argv, &group, &tail, call, || {
                if let Some(tell) = tell.take() {
                    let _ = tell.send(Ok(()));
                }
            });
            match (ended, tell.take()) {
                (Ok(status), _) => note(&mut outcome, status, progress, &argv),
                (Err(error), Some(tell)) => {
                    let _ = tell.send(Err(error));
                    return;
                }
                (Err(error), None) => {
                    progress.fail(Path::new(&argv[0]), "start it", &error);
                }
            }
        }
        outcome.tail = lock(&tail).text();
        progress.set_command(outcome);
        lock(&group).take();
        ours.mark_over();
    })?;
    told.recv()
        .unwrap_or_else(|_| Err(io::Error::other("its thread ended at once")))
        .map_err(|source| LoadError::Command {
            program: argv[0].to_string_lossy().into_owned(),
            source,
        })?;
    spawn(&progress, move |progress, _| {
        watch(&victims, &watched, progress)
    })?;
    Ok(progress)
}

/// One argument list per run.
fn expand(argv: &[OsString], victims: &[Victim]) -> Vec<Vec<OsString>> {
    if argv.is_empty() {
        return Vec::new();
    }
    if argv.iter().any(|arg| arg == "{}") {
        let with = |path: &Path| {
            let fill = |arg: &OsString| {
                if arg == "{}" {
                    path.as_os_str().to_owned()
                } else {
                    arg.clone()
                }
            };
            argv.iter().map(fill).collect()
        };
        return victims.iter().map(|victim| with(&victim.path)).collect();
    }
    let paths = victims
        .iter()
        .map(|victim| victim.path.as_os_str().to_owned());
    vec![argv.iter().cloned().chain(paths).collect()]
}

/// Runs it to its end. `started` is called once it lives.
fn run(
    argv: &[OsString],
    group: &Group,
    tail: &Arc<Mutex<Tail>>,
    call: Call<'_>,
    started: impl FnOnce(),
) -> io::Result<ExitStatus> {
    let (said, output) = io::pipe()?;
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0);
    end_with_us(&mut command);
    call.make(0, || {
        let mut child = command.spawn()?;
        started();
        // Our copies of the pipe's writing end go with it.
        drop(command);
        let pid = Pid::from_child(&child);
        *lock(group) = Some(pid);
        let listener = listen(said, tail.clone());
        let status = wait(&mut child, pid, group);
        if let Some(listener) = listener {
            listener.end();
        }
        status
    })
}

/// Has the kernel end the program should this process die by a signal or leave
/// without ending it. The programs that it started itself, and a program that
/// changes its user (sudo), are out of that reach (PR_SET_PDEATHSIG(2const)).
///
/// It ends with the *thread* that starts it, so that one has to wait for it too.
fn end_with_us(command: &mut Command) {
    let ours = rustix::process::getpid().as_raw_nonzero().get();
    let before_exec = move || {
        // SAFETY: system calls without pointers, which may be made after a fork.
        let (set, parent) = unsafe {
            let set = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            (set, libc::getppid())
        };
        match set {
            0 if parent == ours => Ok(()),
            // We have died in between.
            0 => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: it neither allocates nor takes a lock, as is required after a fork.
    unsafe { command.pre_exec(before_exec) };
}

/// Waits for the end, and takes the group away before its number can be used anew.
fn wait(child: &mut Child, pid: Pid, group: &Group) -> io::Result<ExitStatus> {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), peek) {}
    lock(group).take();
    child.wait()
}

fn note(outcome: &mut CommandOutcome, status: ExitStatus, progress: &Progress, argv: &[OsString]) {
    if status.success() {
        if outcome.signal.is_none() && outcome.code.is_none() {
            outcome.code = Some(0);
        }
        return;
    }
    progress.fail(Path::new(&argv[0]), "delete with it", &status);
    if outcome.signal.is_none() && outcome.code.unwrap_or(0) == 0 {
        outcome.code = status.code();
        outcome.signal = status.signal();
    }
}

/// Looks at the files until the program has ended, and once more then; ends
/// the program when the deletion is stopped.
fn watch(victims: &[Victim], group: &Group, progress: &Progress) {
    let mut alive: Vec<(&Victim, u64)> = victims.iter().map(|victim| (victim, 0)).collect();
    let mut gone_bytes = 0;
    let mut stop = Stop::default();
    loop {
        let over = progress.is_over();
        let began = Instant::now();
        alive.retain_mut(|(victim, freed)| match victim.path.symlink_metadata() {
            Ok(stat) => {
                *freed = victim.bytes.saturating_sub(stat.blocks() * STAT_BLOCK);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                gone_bytes += victim.bytes;
                false
            }
            // Can't be told now; as before.
            Err(_) => true,
        });
        let shrunk = alive.iter().map(|(_, freed)| freed).sum::<u64>();
        progress.set_freed(gone_bytes + shrunk);
        progress.set_files_done((victims.len() - alive.len()) as u64);
        if over {
            return;
        }
        if progress.stopping() {
            stop.signal(group);
        }
        // Of many files a look takes longer; at most half the time goes into it.
        std::thread::sleep(LOOK.max(began.elapsed()));
    }
}

/// Ends the program: kindly, then not.
#[derive(Default)]
struct Stop {
    asked: Option<Instant>,
    killed: bool,
}

impl Stop {
    fn signal(&mut self, group: &Group) {
        let group = lock(group);
        let Some(pid) = *group else { return };
        // A group that has just ended can't be signalled: nothing is left to do then.
        match self.asked {
            None => {
                let _ = kill_process_group(pid, Signal::TERM);
                self.asked = Some(Instant::now());
            }
            Some(at) if at.elapsed() >= PATIENCE && !self.killed => {
                let _ = kill_process_group(pid, Signal::KILL);
                self.killed = true;
            }
            Some(_) => {}
        }
    }
}

/// The end of what the program said.
#[derive(Debug, Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        let excess = self.0.len().saturating_sub(TAIL_BYTES);
        self.0.drain(..excess);
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

/// Reads what the program says, so that it never waits for us.
struct Listener(std::thread::JoinHandle<()>);

fn listen(mut said: PipeReader, tail: Arc<Mutex<Tail>>) -> Option<Listener> {
    let thread = std::thread::Builder::new().name("deleter:output".into());
    let spawned = thread.spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = said.read(&mut buffer) {
            lock(&tail).add(&buffer[..n]);
        }
    });
    spawned.ok().map(Listener)
}

impl Listener {
    /// Waits a little for the rest; a child that the program left behind may
    /// hold the pipe open for ever.
    fn end(self) {
        let deadline = Instant::now() + Duration::from_millis(200);
        while !self.0.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
