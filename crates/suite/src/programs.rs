//! Programs that a step runs, timed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::child::{Program, Signal};
use storage::making::program_path;

/// For so long a program may clean up after a signal asked it to end.
const GRACE: Duration = Duration::from_secs(60);
/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// trimbench itself, as a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// This program.
    pub trimbench: PathBuf,
    /// How it serves a simulated drive and ends with this process.
    pub launcher: lab::Launcher,
}

/// Why a step has no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It failed; the text says why.
    Failed(String),
    /// A signal stopped the suite.
    Stopped,
}

impl Trouble {
    /// A failure of a call, in words.
    pub(crate) fn of(what: &str) -> impl Fn(std::io::Error) -> Trouble + '_ {
        move |error| Trouble::Failed(format!("{what}: {error}"))
    }
}

/// Runs a program to its end and returns how long it took, in seconds. `tick` is called meanwhile.
///
/// # Errors
/// When it can't be started, fails, or is stopped.
pub(crate) fn run(
    words: &[OsString],
    stop: &AtomicBool,
    tick: &mut dyn FnMut(),
) -> Result<f64, Trouble> {
    let name = words
        .first()
        .map(|word| word.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let failed = |why: String| Trouble::Failed(format!("{name}: {why}"));
    let mut argv = words.to_vec();
    if let (Some(first), Some(path)) = (argv.first_mut(), program_path(&name)) {
        *first = path.into();
    }
    let began = Instant::now();
    let running = Program { argv, dir: None }.start();
    let mut running = running.map_err(|error| failed(error.to_string()))?;
    while !running.is_done() {
        if stop.load(Ordering::Relaxed) {
            running.signal(Signal::TERM);
            running.finish(GRACE);
            return Err(Trouble::Stopped);
        }
        tick();
        std::thread::sleep(LOOK);
    }
    let seconds = began.elapsed().as_secs_f64();
    match running.failure() {
        None => Ok(seconds),
        // A signal of the terminal reached it first.
        Some(_) if stop.load(Ordering::Relaxed) => Err(Trouble::Stopped),
        Some(how) => {
            let said = running.said();
            let last: Vec<&str> = said
                .lines()
                .map(str::trim)
                .filter(|l| !l.is_empty())
                .collect();
            Err(failed(match last.last() {
                Some(last) => format!("{how}: {last}"),
                None => how,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let stop = AtomicBool::new(false);
        let shell = |script: &str| run(&words(["sh", "-c", script]), &stop, &mut || {});
        assert!(shell("exit 0").unwrap() >= 0.0);
        let failed = Trouble::Failed("sh: exited with 3: no room".to_owned());
        assert_eq!(shell("echo first; echo no room >&2; exit 3"), Err(failed));
        let none = run(&words(["no-such-program"]), &stop, &mut || {});
        assert!(matches!(none, Err(Trouble::Failed(why)) if why.starts_with("no-such-program")));
    }

    #[test]
    fn a_program_ends_when_the_suite_is_stopped() {
        let stop = AtomicBool::new(true);
        let began = Instant::now();
        let stopped = run(&words(["sleep", "600"]), &stop, &mut || {});
        assert_eq!(stopped, Err(Trouble::Stopped));
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
