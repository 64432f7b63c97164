//! An outside program deletes; we watch what it frees.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process_group};
use serde::Serialize;

use super::progress::Progress;
use super::spec::{Files, How, Way};
use super::victim::{STAT_BLOCK, Victim};
use super::{CommandOutcome, refuse, spawn_beside};
use crate::child::{self, Group, Tail, lock};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "command",
    about: "have an outside program delete the files",
    of: |asked, _| {
        let command = asked.command.as_deref().unwrap_or_default();
        let argv = program("--delete", command, "rm {}")?;
        Ok(Program { argv }.into())
    },
    is_word: false,
    is_foreign: true,
    ..How::FILES
};

/// An outside program, run without a shell in a process group of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Program {
    /// Program and arguments; an argument `{}` is replaced by each path in
    /// turn, one run per path; without one, all paths are appended and it runs once.
    pub argv: Vec<String>,
}

/// Program and arguments of a command that a person gave by `option`.
pub(super) fn program(option: &str, command: &str, example: &str) -> Result<Vec<String>, String> {
    match shlex::split(command) {
        Some(argv) if !argv.is_empty() => Ok(argv),
        Some(_) => Err(format!("{option}: empty; give a program, e.g. '{example}'")),
        None => Err(format!("{option}: a quote is not closed in: {command}")),
    }
}

/// How often what it frees is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// From SIGTERM to SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);

impl Way for Program {
    fn check(&self, _: &Files) -> Result<(), LoadError> {
        match self.argv.is_empty() {
            true => Err(refuse("there is no program to delete with: name one")),
            false => Ok(()),
        }
    }

    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let victims = files.victims()?;
        let runs = expand(&self.argv, &victims);
        let progress = Progress::of(clock, 2, &victims);
        let mut files = LeftFiles::new(victims);
        start_watched(runs, progress, move |progress| files.look(progress))
    }
}

/// Starts the runs of a program, one after the other. `look` updates what they have
/// freed while they run, and once more when the last has ended.
///
/// `progress` has room for two threads.
pub(super) fn start_watched(
    runs: Vec<Vec<OsString>>,
    progress: Arc<Progress>,
    look: impl FnMut(&Progress) + Send + 'static,
) -> Result<Arc<Progress>, LoadError> {
    let mut runs = runs.into_iter();
    // The first is started here, so that a program that isn't there is an error at once.
    let Some(first) = runs.next().filter(|argv| !argv.is_empty()) else {
        return Err(refuse("there is no program to run"));
    };
    let program = first[0].to_string_lossy().into_owned();
    let group = Group::default();
    let tail = Arc::new(Mutex::new(Tail::default()));
    let (watched, ours) = (group.clone(), progress.clone());
    let _all_started = progress.hold();
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    spawn_beside(&progress, move |progress, call| {
        let mut outcome = CommandOutcome::default();
        let mut tell = Some(tell);
        for argv in std::iter::once(first).chain(runs) {
            if progress.stopping() {
                break;
            }
            let program = child::Program { argv, dir: None };
            let ended = call.make(0, || {
                let child = program.spawn(group.clone(), tail.clone())?;
                progress.workers().add_program(child.pid());
                if let Some(tell) = tell.take() {
                    let _ = tell.send(Ok(()));
                }
                child.wait()
            });
            let argv = program.argv;
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
        .map_err(|source| LoadError::Command { program, source })?;
    let group = watched.clone();
    let watching = spawn_beside(&progress, move |progress, _| {
        watch(look, &watched, progress)
    });
    if let Err(error) = watching {
        // Nobody else would end it.
        progress.stop();
        if let Some(pid) = *lock(&group) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        return Err(error);
    }
    Ok(progress)
}

/// One argument list per run.
fn expand(argv: &[String], victims: &[Victim]) -> Vec<Vec<OsString>> {
    if argv.is_empty() {
        return Vec::new();
    }
    if argv.iter().any(|arg| arg == "{}") {
        let with = |path: &Path| {
            let fill = |arg: &String| match arg == "{}" {
                true => path.as_os_str().to_owned(),
                false => arg.into(),
            };
            argv.iter().map(fill).collect()
        };
        return victims.iter().map(|victim| with(&victim.path)).collect();
    }
    let paths = victims
        .iter()
        .map(|victim| victim.path.as_os_str().to_owned());
    vec![argv.iter().map(Into::into).chain(paths).collect()]
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

/// The files that a program deletes.
struct LeftFiles {
    /// Those that are there, with the bytes that each has lost.
    alive: Vec<(Victim, u64)>,
    all: usize,
    gone_bytes: u64,
}

impl LeftFiles {
    fn new(victims: Vec<Victim>) -> LeftFiles {
        LeftFiles {
            all: victims.len(),
            alive: victims.into_iter().map(|victim| (victim, 0)).collect(),
            gone_bytes: 0,
        }
    }

    fn look(&mut self, progress: &Progress) {
        let gone_bytes = &mut self.gone_bytes;
        let look = |(victim, freed): &mut (Victim, u64)| match victim.path.symlink_metadata() {
            Ok(stat) => {
                *freed = victim.bytes.saturating_sub(stat.blocks() * STAT_BLOCK);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *gone_bytes += victim.bytes;
                false
            }
            // Can't be told now; as before.
            Err(_) => true,
        };
        self.alive.retain_mut(look);
        let shrunk = self.alive.iter().map(|(_, freed)| freed).sum::<u64>();
        progress.set_freed(self.gone_bytes + shrunk);
        progress.set_files_done((self.all - self.alive.len()) as u64);
    }
}

/// Looks until the program has ended, and once more then; ends the program when
/// the deletion is stopped.
fn watch(mut look: impl FnMut(&Progress), group: &Group, progress: &Progress) {
    let mut stop = Stop::default();
    loop {
        let over = progress.is_over();
        let began = Instant::now();
        look(progress);
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
