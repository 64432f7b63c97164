//! Questions, worded as rm's.

use std::io::BufRead;
use std::path::Path;

use reclaim::What;
use reclaim::words::quoted;

use crate::console::Stream;

/// Before it begins at all.
pub(super) fn once(arguments: usize, recursive: bool) -> bool {
    let plural = if arguments == 1 { "" } else { "s" };
    let how = if recursive { " recursively" } else { "" };
    yes(&format!("remove {arguments} argument{plural}{how}?"))
}

/// Before one name.
pub(super) fn about(path: &Path, what: What, protected: bool) -> bool {
    let name = quoted(path);
    let protected = if protected { "write-protected " } else { "" };
    yes(&match what {
        What::Descend => format!("descend into {protected}directory {name}?"),
        What::Remove(kind) => format!("remove {protected}{kind} {name}?"),
    })
}

/// Whether the answer begins with y. No answer is a no.
fn yes(question: &str) -> bool {
    Stream::Err.print(&format!("trimbench rm: {question} "));
    let mut line = Vec::new();
    let read = std::io::stdin().lock().read_until(b'\n', &mut line);
    read.is_ok() && matches!(line.first(), Some(b'y' | b'Y'))
}
