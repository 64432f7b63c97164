//! Settings that outlast a restart: a udev rule for the limits, a timer, and the line of fstab
//! to be changed by hand.

mod fstab;
mod rule;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use linux::files::{self, directory_of};
use record::units::names::shown;
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;

use crate::Error;
use crate::tune::target::Target;
use crate::tune::trials::Trial;
pub use fstab::{FstabChange, FstabLine, fstab_change, remount_point};
pub use rule::{Identity, TIMER, Timer};

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
    let rules = rule::rules(None, &identities(&target.drives), limit_bytes)?;
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
        rule::identity(drive, data.as_deref())
    };
    drives.iter().map(identity).collect()
}

/// Writes a rule for the drives.
fn write_rule(drives: &[Identity], limit_bytes: u64, path: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory_of(path)).map_err(not_written(path))?;
    let ours = change(path, |there_is| rule::rules(there_is, drives, limit_bytes))?;
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
    Ok(path.exists() && change(path, |there_is| rule::without(there_is?, drives))?)
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
            "{}: could not be written: {error}; free space there or give another file",
            shown(path)
        ))
    }
}

#[cfg(test)]
mod tests;
