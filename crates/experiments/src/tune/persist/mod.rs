//! Settings that outlast a restart: a udev rule for the limits, a timer, and the line of fstab
//! to be changed by hand.

mod fstab;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use linux::files::{self, directory_of};
use record::units::names::shown;
use record::units::percent_exact;
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

pub use fstab::{FstabChange, FstabLine, fstab_change, remount_point};

use crate::Error;
use crate::tune::target::Target;
use crate::tune::trials::Trial;

/// The change to the rule that sets the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// It was written.
    Written {
        /// The file.
        path: PathBuf,
        /// Drives without a serial number, which it knows by their kernel names.
        by_name: Vec<String>,
    },
    /// The drives were taken out of this file, for they start with the limit without a rule.
    Removed(PathBuf),
}

/// Writes a rule for the limit where drives don't start with it, and takes an older one away
/// where they do. `kept`: the trial whose settings are kept. `None` where nothing was done.
///
/// # Errors
/// When the file can't be read or written, or isn't trimbench's.
pub fn keep_limit(target: &Target, kept: Option<Trial>, etc: &Path) -> Result<Option<Rule>, Error> {
    let now = target.range.now_bytes;
    let changed = kept.map(|t| t.limit_bytes).filter(|&bytes| bytes != now);
    let alike = target.limits_bytes.iter().all(|&bytes| bytes == now);
    let Some(limit_bytes) = changed.or(alike.then_some(now)) else {
        return Ok(None);
    };
    let path = rule_path(etc);
    let drives = identities(&target.drives);
    // A drive starts with the most that it takes, which may be more than a rule can give it.
    if limit_bytes >= target.range.most_bytes() {
        return Ok(remove_rule(&drives, &path)?.then_some(Rule::Removed(path)));
    }
    write_rule(&drives, limit_bytes, &path)?;
    let by_name = drives.into_iter().filter_map(|drive| match drive {
        Identity::Name(name) => Some(name),
        Identity::Serial(_) => None,
    });
    Ok(Some(Rule::Written {
        path,
        by_name: by_name.collect(),
    }))
}

/// The file below `etc` that sets a limit at every start, and its text. `None` where the drives
/// start with that limit.
pub fn limit_rules(target: &Target, limit_bytes: u64, etc: &Path) -> Option<(PathBuf, String)> {
    let rules = rules(None, &identities(&target.drives), limit_bytes)?;
    (limit_bytes < target.range.most_bytes()).then(|| (rule_path(etc), rules))
}

/// The rule's file below the directory of settings: after udev's own rules (60), which tell what a
/// device is.
fn rule_path(etc: &Path) -> PathBuf {
    etc.join("udev/rules.d/61-trimbench-discard.rules")
}

/// How the drives are recognised at the next start.
pub fn identities(drives: &[String]) -> Vec<Identity> {
    let identity = |drive: &String| {
        let number = fs::read_to_string(format!("/sys/class/block/{drive}/dev"));
        let data = number
            .ok()
            .and_then(|n| fs::read_to_string(format!("/run/udev/data/b{}", n.trim())).ok());
        identity(drive, data.as_deref())
    };
    drives.iter().map(identity).collect()
}

/// Writes a rule for the drives.
fn write_rule(drives: &[Identity], limit_bytes: u64, path: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory_of(path)).map_err(not_written(path))?;
    let ours = change(path, |there_is| rules(there_is, drives, limit_bytes))?;
    let not_ours = || {
        format!(
            "{}: isn't ours, and was left alone; move it away",
            shown(path)
        )
    };
    ours.then_some(()).ok_or_else(|| Error::Usage(not_ours()))
}

/// Takes the drives' rule away; whether there was one.
fn remove_rule(drives: &[Identity], path: &Path) -> Result<bool, Error> {
    // No directory is made to find out that there was nothing in it.
    Ok(path.exists() && change(path, |there_is| without(there_is?, drives))?)
}

/// Replaces the text of a file of rules; `None`: leaves it. Returns whether it was replaced. The
/// file's directory is locked meanwhile: otherwise a rule that another process writes between our
/// read and our write would be lost.
fn change(path: &Path, to: impl Fn(Option<&str>) -> Option<String>) -> Result<bool, Error> {
    let directory = File::open(directory_of(path)).map_err(not_written(path))?;
    retry_on_intr(|| flock(&directory, FlockOperation::LockExclusive))
        .map_err(|errno| not_written(path)(errno.into()))?;
    let there_is = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(Error::Usage(format!(
                "{}: can't be read: {error}",
                shown(path)
            )));
        }
    };
    let Some(rules) = to(there_is.as_deref()) else {
        return Ok(false);
    };
    files::replace(path, rules.as_bytes(), 0o644).map_err(not_written(path))?;
    Ok(true)
}

/// The error of rules that were not written.
fn not_written(path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| {
        Error::Failed(format!(
            "{}: could not be written: {error}; {}",
            shown(path),
            files::after_failed_write(&error)
        ))
    }
}

// The text of a udev rule that sets a drive's limit at every start.

/// How a drive is recognised at the next start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// By its model and serial number, as udev knows it (`ID_SERIAL`).
    Serial(String),
    /// By its kernel name alone, which another drive may get.
    Name(String),
}

/// A drive's identity, from udev's own notes of it (`/run/udev/data/bMAJOR:MINOR`).
fn identity(name: &str, udev_data: Option<&str>) -> Identity {
    let serial = udev_data.and_then(|text| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix("E:ID_SERIAL="))
    });
    match serial.filter(|serial| !serial.is_empty() && is_plain(serial)) {
        Some(serial) => Identity::Serial(serial.to_owned()),
        None => Identity::Name(name.to_owned()),
    }
}

/// Whether a text means itself in a udev rule: no quotes, no pattern, no substitution.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:,+/ ".contains(c);
    text.chars().all(plain)
}

/// The first line of a file of ours.
const MARK: &str = "# Written by trimbench tune";

/// Returns the text of the file of rules with those of these drives replaced. `None` if the
/// present file isn't ours.
fn rules(there_is: Option<&str>, drives: &[Identity], limit_bytes: u64) -> Option<String> {
    let keys: Vec<String> = drives.iter().map(key).collect();
    let mut text = of_others(there_is.unwrap_or_default(), &keys)?;
    for key in &keys {
        text += &format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {key}, \
             ATTR{{queue/discard_max_bytes}}=\"{limit_bytes}\"\n"
        );
    }
    Some(text)
}

/// The file of rules there is, without what it says of these drives: they start as they should
/// by themselves. `None` where it says nothing of them, or isn't ours.
fn without(there_is: &str, drives: &[Identity]) -> Option<String> {
    let keys: Vec<String> = drives.iter().map(key).collect();
    let has = rule_lines(there_is).any(|line| is_of(line, &keys));
    has.then(|| of_others(there_is, &keys)).flatten()
}

/// A file of ours with the rules that are there for other drives; `None` where the one there
/// isn't ours.
fn of_others(there_is: &str, keys: &[String]) -> Option<String> {
    if !there_is.is_empty() && !there_is.starts_with(MARK) {
        return None;
    }
    let mut text = format!("{MARK}: the largest discard that suits a drive, in bytes.\n");
    for line in rule_lines(there_is).filter(|line| !is_of(line, keys)) {
        text += line;
        text.push('\n');
    }
    Some(text)
}

/// Its lines but for the comments.
fn rule_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

/// Whether a rule is one of these drives'.
fn is_of(line: &str, keys: &[String]) -> bool {
    keys.iter().any(|key| line.contains(key.as_str()))
}

fn key(drive: &Identity) -> String {
    match drive {
        Identity::Serial(serial) => format!("ENV{{ID_SERIAL}}==\"{serial}\""),
        Identity::Name(name) => format!("KERNEL==\"{name}\""),
    }
}

// The timer that trims what is mounted with nodiscard.

/// The name of the timer's unit.
pub const TIMER: &str = "trimbench-fstrim.timer";

/// The timer that `trimbench fstrim --install-timer` makes. It takes the place of the
/// distribution's timer, so it trims all that is mounted.
#[derive(Debug, Clone)]
pub struct Timer {
    /// The directory of systemd's units.
    units: PathBuf,
    /// The arguments of `trimbench` that install it.
    pub words: [String; 4],
}

impl Timer {
    /// The timer below `etc`, with the goal of a slowdown of so much (0 to 1).
    pub fn new(etc: &std::path::Path, slowdown: f64) -> Timer {
        let slowdown = format!("--slowdown={}", percent_exact(slowdown));
        Timer {
            units: etc.join("systemd/system"),
            words: ["fstrim", "--all", "--install-timer", &slowdown].map(str::to_owned),
        }
    }

    /// Whether its unit is there.
    pub fn is_installed(&self) -> bool {
        self.units.join(TIMER).exists()
    }

    /// Whether systemd starts it.
    pub fn is_enabled(&self) -> bool {
        self.units.join("timers.target.wants").join(TIMER).exists()
    }

    /// Installs it with this program; returns what that printed.
    ///
    /// # Errors
    /// When it could not be installed.
    pub fn install(&self) -> Result<String, Error> {
        let failed = |why: String| Error::Failed(format!("the timer was not installed: {why}"));
        let units = &self.units;
        fs::create_dir_all(units).map_err(|e| failed(format!("{}: {e}", shown(units))))?;
        let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
        let mut command = Command::new(program);
        let mut place = OsString::from("unit-dir=");
        place.push(units);
        command.args(&self.words).arg("--set").arg(place);
        let done = command.output().map_err(|e| failed(e.to_string()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        match done.status.success() {
            true => Ok(text(&done.stdout) + "\n"),
            false => Err(failed(text(&done.stderr))),
        }
    }
}
