//! The binary, run with a time limit, and what it left.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// No run of a test takes longer, not even on a loaded machine.
const LIMIT: Duration = Duration::from_secs(300);

/// The built binary, with nothing of the caller's surroundings that changes what it prints.
pub fn trimbench() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trimbench"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

/// A copy of the binary in a directory that other users can reach. By another process: one of
/// ours that is just being forked would have it open for writing, and nobody could execute it.
pub fn copied_to(directory: &Path) -> std::path::PathBuf {
    let copy = directory.join("trimbench");
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_trimbench"))
        .arg(&copy)
        .status();
    assert!(copied.unwrap().success());
    copy
}

/// A command as a plain user, whoever runs the tests.
pub fn as_plain_user(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(program);
    command
}

/// The exit status and the output of a run.
pub struct Done {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// The exit code; a death by signal is no code.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Both outputs, for messages.
    pub fn text(&self) -> String {
        format!("{}\n--- stderr ---\n{}", self.stdout, self.stderr)
    }

    /// Asserts the exit code and that stderr says each of `words`.
    #[track_caller]
    pub fn fails_with(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code(), Some(code), "{}", self.text());
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{word:?} missing in: {}",
                self.text()
            );
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.text());
    }

    /// Asserts success.
    #[track_caller]
    pub fn succeeds(&self) -> &Self {
        assert_eq!(self.code(), Some(0), "{}", self.text());
        self
    }
}

/// A started process, killed should the test end before it.
pub struct Running {
    child: Child,
    stdout: File,
    stderr: File,
    started: Instant,
}

/// Starts a command without input, its outputs kept in files so that it never waits for us.
pub fn start(command: Command) -> Running {
    start_with(command, Stdio::null())
}

/// The same with input.
pub fn start_with(mut command: Command, input: impl Into<Stdio>) -> Running {
    let stdout = tempfile::tempfile().unwrap();
    let stderr = tempfile::tempfile().unwrap();
    ignore_no_signal();
    let child = command
        .stdin(input)
        .stdout(stdout.try_clone().unwrap())
        .stderr(stderr.try_clone().unwrap())
        .spawn()
        .unwrap();
    Running {
        child,
        stdout,
        stderr,
        started: Instant::now(),
    }
}

/// Catches the signals that this process ignores. A script that runs the tests in the background
/// may make them ignore signals, and their children would inherit that.
fn ignore_no_signal() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            if ignored >> (signal - 1) & 1 == 1 {
                signal_hook::flag::register(signal, Arc::default()).unwrap();
            }
        }
    });
}

/// Runs a command to its end.
pub fn run(command: Command) -> Done {
    start(command).wait()
}

/// Runs that wait for most of their time, each in a thread, so that they wait at once.
pub fn at_once<T: Send, const N: usize>(runs: [&(dyn Fn() -> T + Sync); N]) -> [T; N] {
    std::thread::scope(|scope| {
        let threads = runs.map(|run| scope.spawn(run));
        threads.map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Whether it is over.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until `condition` holds; panics when the process ends or the limit passes before.
    #[track_caller]
    pub fn until(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        while !condition() {
            assert!(
                !self.is_over(),
                "it ended before: {what}\n{}",
                self.outputs()
            );
            assert!(
                self.started.elapsed() < LIMIT,
                "too late: {what}\n{}",
                self.outputs()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a text is on standard error so many times.
    #[track_caller]
    pub fn until_said(&mut self, what: &str, times: usize) {
        // Reading moves the place where both write.
        let path = format!("/proc/self/fd/{}", self.stderr.as_raw_fd());
        self.until(what, || {
            let said = std::fs::read_to_string(&path).unwrap_or_default();
            said.matches(what).count() >= times
        });
    }

    /// Waits until it has printed so many whole lines on standard output.
    #[track_caller]
    pub fn until_printed(&mut self, lines: usize) {
        let path = format!("/proc/self/fd/{}", self.stdout.as_raw_fd());
        self.until("lines on standard output", || {
            let printed = std::fs::read_to_string(&path).unwrap_or_default();
            printed.matches('\n').count() >= lines
        });
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self) -> Done {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                self.started.elapsed() < LIMIT,
                "it hangs\n{}",
                self.outputs()
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        Done {
            status,
            stdout: content(&mut self.stdout),
            stderr: content(&mut self.stderr),
        }
    }

    fn outputs(&mut self) -> String {
        let stdout = content(&mut self.stdout);
        format!("{stdout}\n--- stderr ---\n{}", content(&mut self.stderr))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The lines of an uncompressed record that are whole.
pub fn record(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}
