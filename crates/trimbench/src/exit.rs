//! How the program ends.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench::BenchError;
use bench::scenario::ScenarioError;
use record::units::names;

use crate::input::InputError;

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked to.
    Done,
    /// It failed.
    Failed,
    /// The request can't be met.
    Usage,
    /// A `--fail-on` condition held, or a goal that was given was missed.
    ConditionHeld,
    /// Of many file systems none was trimmed.
    AllFailed,
    /// Of many file systems some were not trimmed.
    SomeFailed,
    /// A program to run is not there.
    NoProgram,
    /// A program to run can't be started.
    CannotRun,
    /// The user stopped it.
    Interrupted,
    /// A command that it ran ended so.
    Command(std::process::ExitStatus),
}

impl Exit {
    /// The exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::ConditionHeld => 3,
            // mount(8)'s, which fstrim(8) has, too.
            Exit::AllFailed => 32,
            Exit::SomeFailed => 64,
            // A shell's.
            Exit::NoProgram => 127,
            Exit::CannotRun => 126,
            Exit::Interrupted => crate::signals::exit_code(),
            Exit::Command(status) => of_command(status),
        }
    }
}

/// A command's own exit code; 128 and the number of the signal that ended it, as a shell has it.
fn of_command(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The run.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A scenario that isn't one.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A deletion that could not begin.
    #[error(transparent)]
    Reclaim(#[from] reclaim::ReclaimError),
    /// A directory that can't be guarded.
    #[error(transparent)]
    Guard(#[from] reclaim::guard::GuardError),
    /// A device that can't be discarded.
    #[error(transparent)]
    Device(#[from] reclaim::device::DeviceError),
    /// A lease that can't be had.
    #[error(transparent)]
    Lease(#[from] reclaim::lease::LeaseError),
    /// A simulated drive.
    #[error(transparent)]
    Lab(#[from] ::lab::LabError),
    /// A place that can't be inspected.
    #[error(transparent)]
    Inspect(#[from] diagnose::inspect::InspectError),
    /// A probe that showed nothing.
    #[error(transparent)]
    Prove(#[from] diagnose::inspect::prove::ProveError),
    /// Data that could not be verified.
    #[error(transparent)]
    Verify(#[from] experiments::verify::VerifyError),
    /// A suite, or trials of settings.
    #[error(transparent)]
    Experiment(#[from] experiments::Error),
    /// A file that can't be used as a record.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Records that give no figures.
    #[error(transparent)]
    Fit(#[from] ssd::fit::FitError),
    /// A figure that no device card can hold.
    #[error("no device card can be made of it: {0}")]
    Card(#[from] record::units::settings::SetError),
    /// A run in virtual time that broke its own rules.
    #[error("the simulation failed: {0}; report it")]
    Simulated(String),
    /// A setting that could not be changed, or put back.
    #[error("{0}")]
    Setting(String),
    /// Options that don't go together, or a text that can't be used.
    #[error("{0}")]
    Usage(String),
    /// A file that can't be written to at all.
    #[error(
        "{}: can't write to it: {source}; give another file",
        names::shown(path)
    )]
    OutputOpen {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file that could not be written to its end.
    #[error(
        "{}: could not be written: {source}; {}",
        names::shown(path),
        linux::files::after_failed_write(source)
    )]
    OutputWrite {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A qualification without a measurement to rest on.
    #[error("nothing was qualified: {0}")]
    Unqualified(String),
}

/// Returns an error of how trimbench was called: the exit code is 2.
pub(crate) fn usage(text: impl Into<String>) -> Error {
    Error::Usage(text.into())
}

impl Error {
    /// Makes the error of a file that can't be written to at all.
    pub(crate) fn unopened(path: &Path) -> impl Fn(std::io::Error) -> Error {
        move |source| Error::OutputOpen {
            path: path.to_owned(),
            source,
        }
    }

    /// Makes the error of a file that could not be written to its end.
    pub(crate) fn unwritten(path: &Path) -> impl Fn(std::io::Error) -> Error {
        move |source| Error::OutputWrite {
            path: path.to_owned(),
            source,
        }
    }

    /// The exit code it stands for.
    pub(crate) fn exit(&self) -> Exit {
        let is_usage = match self {
            Error::Bench(error) => error.is_usage(),
            Error::Lab(error) => error.is_usage(),
            Error::Guard(error) => error.is_usage(),
            Error::Device(error) => error.is_usage(),
            Error::Experiment(error) => error.is_usage(),
            Error::Fit(error) => matches!(error, ssd::fit::FitError::SeveralDrives(_)),
            Error::Lease(error) => !matches!(error, reclaim::lease::LeaseError::Refused(_)),
            Error::Prove(error) => error.is_usage(),
            Error::Scenario(_)
            | Error::Input(_)
            | Error::Usage(_)
            | Error::Inspect(_)
            | Error::OutputOpen { .. } => true,
            Error::OutputWrite { .. }
            | Error::Unqualified(_)
            | Error::Verify(_)
            | Error::Card(_)
            | Error::Reclaim(_)
            | Error::Setting(_)
            | Error::Simulated(_) => false,
        };
        match is_usage {
            true => Exit::Usage,
            false => Exit::Failed,
        }
    }
}
