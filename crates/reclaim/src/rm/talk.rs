//! The caller's side of a removal: reports, notes and questions.

use std::path::Path;

use rustix::io::Errno;

use crate::Watch;
use crate::words::of;
use units::names::quoted;

/// Why a name stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The system refused.
    System(Errno),
    /// It is `.` or `..`.
    SelfOrParent,
    /// It is the root directory.
    Root,
    /// It is on another device than its parent (`--preserve-root=all`).
    ParentsDevice,
    /// It is on another device than the argument (`--one-file-system`).
    OtherDevice,
    /// A reason in words.
    Words(String),
}

impl Problem {
    /// The message, worded as rm's.
    pub fn message(&self, path: &Path) -> String {
        let name = quoted(path);
        match self {
            Problem::System(errno) => format!("cannot remove {name}: {}", of(*errno)),
            Problem::SelfOrParent => {
                format!("refusing to remove '.' or '..' directory: skipping {name}")
            }
            Problem::Root if path == Path::new("/") => format!(
                "it is dangerous to operate recursively on {name}; use --no-preserve-root to override this failsafe"
            ),
            Problem::Root => format!(
                "it is dangerous to operate recursively on {name} (same as '/'); use --no-preserve-root to override this failsafe"
            ),
            Problem::ParentsDevice => format!(
                "skipping {name}, since it's on a different device, and --preserve-root=all is in effect"
            ),
            Problem::OtherDevice => {
                format!("skipping {name}, since it's on a different device")
            }
            Problem::Words(words) => format!("cannot remove {name}: {words}"),
        }
    }
}

/// A question for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Whether to enter a directory.
    Descend,
    /// Whether to remove something, with its kind in words, e.g. `regular file`.
    Remove(&'static str),
    /// Whether to try to remove a directory that can't be looked into.
    Attempt,
}

/// Receives the reports of a removal, answers its questions, and can stop it.
pub trait Talk: Watch {
    /// Reports that a name was removed.
    fn removed(&mut self, path: &Path, directory: bool);
    /// Reports that a name stays, and why.
    fn failed(&mut self, path: &Path, problem: &Problem);
    /// Notes anything else that the user should know, in a sentence.
    fn note(&mut self, text: &str);
    /// Returns whether to do it. `protected`: this user may not write to `path`.
    fn ask(&mut self, path: &Path, what: Question, protected: bool) -> bool;
}
