//! Why a file system can't be guarded, and what makes it possible.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use record::units::names::quoted;

use crate::words::of_io;

/// Why a file system can't be guarded, or no guard reached.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GuardError {
    #[error("cannot {action} {}: {}", quoted(path), of_io(source))]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{} is guarded already{}; one guard is enough: see trimbench guard status {}",
        quoted(path), by(*pid), quoted(path)
    )]
    Guarded { path: PathBuf, pid: Option<u32> },
    /// With the commands that make it possible.
    #[error(
        "{} can't be guarded: {why}; {hint}:{}",
        quoted(path),
        listed(commands)
    )]
    Refused {
        path: PathBuf,
        why: String,
        hint: &'static str,
        commands: Vec<String>,
    },
    #[error(transparent)]
    Remount(Box<storage::remount::RemountError>),
    #[error(
        "{} is not guarded; start with: trimbench guard {}",
        quoted(path),
        quoted(path)
    )]
    NotGuarded { path: PathBuf },
    #[error(
        "the guard of {} did not take the order within {} s; look with: trimbench guard status {}",
        quoted(path), after.as_secs(), quoted(path)
    )]
    NoAnswer {
        path: PathBuf,
        after: std::time::Duration,
    },
}

impl GuardError {
    /// Whether what was asked for can't be done there at all.
    pub fn is_usage(&self) -> bool {
        !matches!(self, GuardError::Io { .. } | GuardError::NoAnswer { .. })
    }
}

fn by(pid: Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (by process {pid})"))
}

fn listed(commands: &[String]) -> String {
    commands.iter().fold(String::new(), |mut text, command| {
        let _ = write!(text, "\n  {command}");
        text
    })
}
