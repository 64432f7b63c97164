//! A command on each crash state.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::loop_device;
use rustix::fs::{Mode, OFlags, ioctl_ficlone, open};
use rustix::process::{Pid, Signal, kill_process_group};

use super::read::{Recorded, What};
use super::states::{Landed, State, Torn};
use crate::error::LabError;
use crate::{mounts, store};

/// Between two looks at a command.
const BETWEEN: Duration = Duration::from_millis(2);

/// The longest wait for a mount that a command has left in use.
const LEAVING: Duration = Duration::from_secs(5);

/// How states are checked.
#[derive(Debug, Clone)]
pub struct Check {
    /// The program and its arguments. It finds the state's device in `TRIMBENCH_CRASH_DEVICE`, the
    /// last mark before the cut in `TRIMBENCH_CRASH_MARK`, and the state's number in
    /// `TRIMBENCH_CRASH_STATE`.
    pub command: Vec<OsString>,
    /// A command that takes longer is killed and has failed.
    pub timeout: Duration,
    /// A directory for the contents: as large as the drive's data, twice.
    pub scratch: PathBuf,
    /// The unit at which writes are torn.
    pub unit: Torn,
}

/// A state on which the command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Its number, from 0.
    pub number: usize,
    /// The contents.
    pub state: State,
    /// The last lines that the command printed, or that it took too long.
    pub output: String,
}

/// The result of all states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many were checked.
    pub checked: usize,
    /// Those on which the command failed.
    pub failed: Vec<Failed>,
    /// It was stopped before it had checked all.
    pub stopped: bool,
}

/// Makes a device of each state, runs the command on it, and removes the device, with all that the
/// command left mounted of it. It ends early once `stop` is set.
///
/// # Errors
/// If a state can't be made, or the command can't be started.
pub fn check(
    log: &Recorded,
    states: &[State],
    check: &Check,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let making = LabError::io("cannot make crash states in", &check.scratch);
    let mut image = Image::new(log, check.unit, &check.scratch).map_err(making)?;
    let mut outcome = Outcome::default();
    for (number, state) in states.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            outcome.stopped = true;
            break;
        }
        let made = image
            .of(state, &check.scratch)
            .and_then(|file| loop_device::attach_while_open(&file, log.sector, false));
        let making = LabError::io("cannot make a device of a crash state in", &check.scratch);
        let (device, open) = made.map_err(making)?;
        let output = run(check, &device, number, state, stop);
        for mount in mounts::of(&device) {
            if mounts::unmount_patiently(&mount, LEAVING).is_err() {
                mounts::unmount_lazily(&mount);
            }
        }
        drop(open);
        let output = output?;
        if stop.load(Ordering::Relaxed) {
            // The command was ended with us, which says nothing of the state.
            outcome.stopped = true;
            break;
        }
        outcome.checked += 1;
        if let Some(output) = output {
            outcome.failed.push(Failed {
                number,
                state: state.clone(),
                output,
            });
        }
    }
    Ok(outcome)
}

/// Runs the command on a device. `None`: it succeeded.
fn run(
    check: &Check,
    device: &Path,
    number: usize,
    state: &State,
    stop: &AtomicBool,
) -> Result<Option<String>, LabError> {
    let Some((program, arguments)) = check.command.split_first() else {
        return Ok(Some("there is no command".to_owned()));
    };
    let output =
        nameless(&check.scratch).and_then(|out| Ok((out.try_clone()?, out.try_clone()?, out)));
    let (out, err, output) = output.map_err(LabError::io("cannot write to", &check.scratch))?;
    let child = Command::new(program)
        .args(arguments)
        .env("TRIMBENCH_CRASH_DEVICE", device)
        .env("TRIMBENCH_CRASH_MARK", state.mark.as_deref().unwrap_or(""))
        .env("TRIMBENCH_CRASH_STATE", number.to_string())
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .spawn();
    let mut child = child.map_err(|error| LabError::NotRun {
        program: program.into(),
        error,
    })?;
    let ended = wait(&mut child, check.timeout, stop);
    let printed = end_of(&output).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed);
    let last: Vec<&str> = printed.lines().rev().take(5).collect();
    let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
    Ok(
        match ended.map_err(LabError::io("cannot wait for", program))? {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("{status}\n{last}")),
            None => Some(format!(
                "it was killed after {} s\n{last}",
                check.timeout.as_secs()
            )),
        },
    )
}

/// The last kilobytes of what a command printed.
fn end_of(output: &File) -> io::Result<Vec<u8>> {
    const MOST: u64 = 4096;
    let len = output.metadata()?.len();
    let mut end = vec![0; len.min(MOST) as usize];
    output.read_exact_at(&mut end, len - len.min(MOST))?;
    Ok(end)
}

/// Waits for a command, which is killed when it takes too long or everything is to stop: `None`.
fn wait(
    child: &mut Child,
    timeout: Duration,
    stop: &AtomicBool,
) -> io::Result<Option<std::process::ExitStatus>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() >= timeout || stop.load(Ordering::Relaxed) {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
            return Ok(None);
        }
        sleep(BETWEEN);
    }
}

// From a log and a state to a file with the drive's contents.

/// The durable contents of a drive, moved forward through its log.
pub(super) struct Image<'a> {
    log: &'a Recorded,
    /// The log's writes and discards.
    changes: Vec<&'a What>,
    file: File,
    /// The number of them that are in the file.
    applied: usize,
    unit: Torn,
}

impl<'a> Image<'a> {
    /// An empty drive, in a file without a name in a directory.
    pub(super) fn new(log: &'a Recorded, unit: Torn, dir: &Path) -> io::Result<Image<'a>> {
        let file = nameless(dir)?;
        file.set_len(log.size)?;
        Ok(Image {
            log,
            changes: log.records.iter().filter(|what| what.is_change()).collect(),
            file,
            applied: 0,
            unit,
        })
    }

    /// Makes a file with a state's contents, without a name in a directory. States come in order.
    pub(super) fn of(&mut self, state: &State, dir: &Path) -> io::Result<File> {
        while self.applied < state.durable.min(self.changes.len()) {
            self.apply(&self.file, self.applied, Landed::Whole)?;
            self.applied += 1;
        }
        let file = nameless(dir)?;
        copy_data(&self.file, &file)?;
        for (n, landed) in state.landed.iter().enumerate() {
            self.apply(&file, state.durable + n, *landed)?;
        }
        Ok(file)
    }

    fn apply(&self, file: &File, change: usize, landed: Landed) -> io::Result<()> {
        let part = |len: u64| match landed {
            Landed::Lost => 0,
            Landed::Whole => len,
            Landed::Part(units) => len.min(u64::from(units) * u64::from(self.unit)),
        };
        match self.changes.get(change) {
            Some(What::Wrote { at, len, data }) => {
                let mut buffer = vec![0; part(*len) as usize];
                self.log.file.read_exact_at(&mut buffer, *data)?;
                file.write_all_at(&buffer, *at)
            }
            Some(What::Zeroed { at, len }) if part(*len) > 0 => {
                Ok(store::punch(file, &(*at..*at + *len))?)
            }
            _ => Ok(()),
        }
    }
}

/// A file that vanishes with its last user, also if this process is killed.
pub(super) fn nameless(dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(open(dir, flags, Mode::RUSR | Mode::WUSR)?))
}

/// Makes `to` hold what `from` does: sharing its space where the file system can (Btrfs, XFS),
/// else by copying its data and leaving out its holes.
fn copy_data(from: &File, to: &File) -> io::Result<()> {
    if ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let size = from.metadata()?.len();
    to.set_len(size)?;
    let mut buffer = vec![0; 1 << 20];
    for Range { start, end } in store::data(from, size)? {
        for at in (start..end).step_by(buffer.len()) {
            let len = (end - at).min(buffer.len() as u64) as usize;
            from.read_exact_at(&mut buffer[..len], at)?;
            to.write_all_at(&buffer[..len], at)?;
        }
    }
    Ok(())
}
