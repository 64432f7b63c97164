//! Programs that a step runs, timed.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::child::{Program, Signal};
use storage::making::program_path;

use crate::Error;

/// For so long a program may clean up after a signal asked it to end.
const GRACE: Duration = Duration::from_secs(60);
/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// Runs a program to its end and returns how long it took, in seconds. `tick` is called meanwhile.
///
/// # Errors
/// When it can't be started, fails, or is stopped.
pub(crate) fn run(
    words: &[OsString],
    stop: &AtomicBool,
    tick: &mut dyn FnMut(),
) -> Result<f64, Error> {
    let mut argv = words.to_vec();
    let name = words[0].to_string_lossy().into_owned();
    let failed = |why: String| Error::Failed(format!("{name}: {why}"));
    if let Some(path) = program_path(&name) {
        argv[0] = path.into();
    }
    let began = Instant::now();
    let running = Program { argv, dir: None }.start();
    let mut running = running.map_err(|error| failed(error.to_string()))?;
    while !running.is_done() {
        if stop.load(Ordering::Relaxed) {
            running.signal(Signal::TERM);
            running.finish(GRACE);
            return Err(Error::Stopped);
        }
        tick();
        std::thread::sleep(LOOK);
    }
    let seconds = began.elapsed().as_secs_f64();
    match running.failure() {
        None => Ok(seconds),
        // A signal of the terminal reached it first.
        Some(_) if stop.load(Ordering::Relaxed) => Err(Error::Stopped),
        Some(how) => {
            let printed = running.said();
            let mut lines = printed.lines().map(str::trim);
            Err(failed(match lines.rfind(|line| !line.is_empty()) {
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
        let failed = shell("echo first; echo no room >&2; exit 3").unwrap_err();
        assert_eq!(failed.to_string(), "sh: exited with 3: no room");
        let none = run(&words(["no-such-program"]), &stop, &mut || {});
        assert!(matches!(none, Err(Error::Failed(why)) if why.starts_with("no-such-program")));
    }

    #[test]
    fn a_program_ends_when_the_suite_is_stopped() {
        let stop = AtomicBool::new(true);
        let began = Instant::now();
        let stopped = run(&words(["sleep", "600"]), &stop, &mut || {});
        assert!(matches!(stopped, Err(Error::Stopped)));
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
