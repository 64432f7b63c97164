//! Questions, worded as rm's.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use reclaim::Question;
use record::units::names::quoted;

use crate::confirm;

/// Before it begins at all.
pub(super) fn once(arguments: usize, recursive: bool, stop: &AtomicBool) -> bool {
    let plural = if arguments == 1 { "" } else { "s" };
    let how = if recursive { " recursively" } else { "" };
    yes(&format!("remove {arguments} argument{plural}{how}?"), stop)
}

/// Before one name.
pub(super) fn about(path: &Path, what: Question, protected: bool, stop: &AtomicBool) -> bool {
    let name = quoted(path);
    let protected = if protected { "write-protected " } else { "" };
    let question = match what {
        Question::Descend => format!("descend into {protected}directory {name}?"),
        Question::Attempt => format!("attempt removal of inaccessible directory {name}?"),
        Question::Remove(kind) => format!("remove {protected}{kind} {name}?"),
    };
    yes(&question, stop)
}

fn yes(question: &str, stop: &AtomicBool) -> bool {
    confirm::yes(&format!("trimbench rm: {question} "), stop)
}
