//! An outside program that runs beside us and never outlives us.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, kill_process_group, waitid};

pub use rustix::process::Signal;

/// How much of what the program says is kept.
const TAIL_BYTES: usize = 4096;

/// A program to run.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program, found as execvp(3) does, and its arguments.
    pub argv: Vec<OsString>,
    /// The directory it works in; ours where none is given.
    pub dir: Option<PathBuf>,
}

/// A program under way, in a process group of its own. It has nothing to read,
/// and what it says is kept in part. Dropping this kills the group.
#[derive(Debug)]
pub struct Running {
    group: Group,
    tail: Arc<Mutex<Tail>>,
    /// It ends when the program has.
    thread: Option<JoinHandle<io::Result<ExitStatus>>>,
    ended: Option<io::Result<ExitStatus>>,
}

/// Its process group, while it may be signalled.
pub(crate) type Group = Arc<Mutex<Option<Pid>>>;

impl Program {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no such program, or it can't be started.
    pub fn start(self) -> io::Result<Running> {
        let (group, tail) = (Group::default(), Arc::new(Mutex::new(Tail::default())));
        let (ours, listens) = (group.clone(), tail.clone());
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("program".into())
            .spawn(move || {
                let started = self.spawn(ours, listens);
                let (child, told) = match started {
                    Ok(child) => (Ok(child), Ok(())),
                    Err(error) => (Err(io::ErrorKind::Other.into()), Err(error)),
                };
                let _ = tell.send(told);
                child.and_then(Started::wait)
            })?;
        told.recv()
            .unwrap_or_else(|_| Err(io::Error::other("its thread ended at once")))?;
        Ok(Running {
            group,
            tail,
            thread: Some(thread),
            ended: None,
        })
    }

    /// Starts it on the calling thread, in a process group of its own, which is `group` until it has
    /// ended.
    pub(crate) fn spawn(&self, group: Group, tail: Arc<Mutex<Tail>>) -> io::Result<Started> {
        let Some((program, args)) = self.argv.split_first() else {
            return Err(io::Error::other("there is no program to run"));
        };
        let (said, output) = io::pipe()?;
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        end_with_us(&mut command);
        let child = command.spawn()?;
        // Our copies of the pipe's writing end go with the command.
        drop(command);
        *lock(&group) = Some(Pid::from_child(&child));
        let listener = listen(said, tail);
        Ok(Started {
            child,
            group,
            listener,
        })
    }
}

/// A program that the thread which holds this has started.
pub(crate) struct Started {
    child: Child,
    group: Group,
    listener: Option<JoinHandle<()>>,
}

impl Started {
    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, and then a moment for the rest of its output: a grandchild may keep the pipe
    /// open.
    pub(crate) fn wait(mut self) -> io::Result<ExitStatus> {
        let pid = Pid::from_child(&self.child);
        // While it isn't reaped, its number is no other's, which somebody could signal.
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), peek) {}
        lock(&self.group).take();
        let status = self.child.wait();
        let deadline = Instant::now() + Duration::from_millis(200);
        while self
            .listener
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        status
    }
}

impl Running {
    /// Its process; `None` once it has ended.
    pub fn pid(&self) -> Option<u32> {
        let pid = *lock(&self.group);
        pid.map(|pid| pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// Whether it has ended.
    pub fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// How it failed, in words that follow its name; `None` while it runs, and
    /// when it ended well.
    pub fn failure(&mut self) -> Option<String> {
        if !self.is_done() {
            return None;
        }
        if let Some(thread) = self.thread.take() {
            let panicked = |_| Err(io::Error::other("its thread ended by a panic"));
            self.ended = Some(thread.join().unwrap_or_else(panicked));
        }
        match self.ended.as_ref()? {
            Ok(status) if status.success() => None,
            Ok(status) => Some(ended(status.code(), status.signal())),
            Err(error) => Some(format!("can't be waited for: {error}")),
        }
    }

    /// Signals its group, if it hasn't ended.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = *lock(&self.group) {
            // A group that has just ended can't be signalled: nothing is left to do then.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// The last few KiB of its output and error output.
    pub fn said(&self) -> String {
        lock(&self.tail).text()
    }

    /// Waits at most `grace` for its end, then kills it, and gives how it failed.
    /// One that is blocked in the kernel is left behind.
    pub fn finish(mut self, grace: Duration) -> Option<String> {
        if !self.ends_within(grace) {
            self.signal(Signal::KILL);
            if !self.ends_within(Duration::from_secs(1)) {
                return Some("doesn't end".to_owned());
            }
        }
        self.failure()
    }

    fn ends_within(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while !self.is_done() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
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

/// The end of a program's output.
#[derive(Debug, Default)]
pub(crate) struct Tail(VecDeque<u8>);

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        let excess = self.0.len().saturating_sub(TAIL_BYTES);
        self.0.drain(..excess);
    }

    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

/// Keeps the end of what a program says, until nobody can say anything any more.
fn listen(mut said: PipeReader, tail: Arc<Mutex<Tail>>) -> Option<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("program:output".into());
    let spawned = thread.spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = said.read(&mut buffer) {
            lock(&tail).add(&buffer[..n]);
        }
    });
    spawned.ok()
}

/// How a program ended, by its exit code and signal.
pub(crate) fn ended(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program {
            argv: ["sh", "-c", script].map(OsString::from).to_vec(),
            dir: Some(PathBuf::from("/")),
        }
    }

    #[test]
    fn what_it_says_and_how_it_ends_are_told() {
        let running = shell("pwd; echo wrong >&2; exit 3").start().unwrap();
        while !running.is_done() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(running.said(), "/\nwrong");
        let failure = running.finish(Duration::ZERO);
        assert_eq!(failure.as_deref(), Some("exited with 3"));
    }

    #[test]
    fn a_missing_program_is_an_error_at_once() {
        let missing = Program {
            argv: vec!["/no/such/program".into()],
            dir: None,
        };
        assert_eq!(missing.start().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_signal_reaches_it_and_one_that_ignores_it_is_killed() {
        // Not INT: what is started in the background of a script ignores that for good.
        let kind = shell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done");
        let running = kind.start().unwrap();
        let stubborn = shell("trap '' TERM; echo ready; sleep 600")
            .start()
            .unwrap();
        // Until its trap is set, the signal ends a shell all the same.
        while running.said().is_empty() || stubborn.said().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        running.signal(Signal::TERM);
        stubborn.signal(Signal::TERM);
        assert_eq!(running.finish(Duration::from_secs(30)), None);
        let failure = stubborn.finish(Duration::from_millis(50));
        assert_eq!(failure.as_deref(), Some("was ended by signal 9"));
    }
}
