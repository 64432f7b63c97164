//! Finding out what the files are.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use formats::{Foreign, Kind};

use units::names;

use crate::input;

/// Why there is nothing to import.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// A folder that can't be looked into.
    #[error("{}: can't be read: {source}", names::shown(path))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A folder without anything of use.
    #[error(
        "{}: has nothing that can be imported; that is what `iostat -x` prints, fio's JSON and fio's logs",
        names::shown(path)
    )]
    NothingIn {
        /// The folder.
        path: PathBuf,
    },
    /// A file without anything in it.
    #[error("{name}: is empty")]
    Empty {
        /// The text as it was given.
        name: String,
    },
    /// A record already.
    #[error("{name}: is a record of trimbench already; `trimbench report` shows it")]
    Record {
        /// The text as it was given.
        name: String,
    },
    /// Another tool's output.
    #[error("{name}: can't be imported: it is {kind}. {}", kind.instead())]
    Foreign {
        /// The text as it was given.
        name: String,
        /// The tool.
        kind: Foreign,
    },
    /// Nothing that is known.
    #[error(
        "{name}: can't be imported, it is {kind}; what can be is what `iostat -x` prints, fio's JSON \
         and fio's logs"
    )]
    Unknown {
        /// The text as it was given.
        name: String,
        /// The kind of text.
        kind: Kind,
    },
    /// Two of which there can be one.
    #[error("{one} and {other} are both {kind}: import one at a time")]
    Two {
        /// The one.
        one: String,
        /// The other.
        other: String,
        /// Their kind.
        kind: Kind,
    },
    /// The content of a file makes no record.
    #[error("{name}: {why}")]
    Unfit {
        /// The file.
        name: String,
        /// Why not, and what to do.
        why: String,
    },
}

/// A text, of which it is known what it is.
pub(super) struct Text {
    /// Its name in messages.
    pub(super) name: String,
    /// Its kind.
    pub(super) kind: Kind,
    /// All of it.
    pub(super) read: Box<dyn Read>,
}

/// Texts that can be used, and the notes about the others.
#[derive(Default)]
pub(super) struct Texts {
    /// In order of their names.
    pub(super) found: Vec<Text>,
    /// Files of folders that were left out, and why.
    pub(super) left_out: Vec<String>,
}

impl Texts {
    /// Takes a file, or the files of a folder.
    pub(super) fn take(&mut self, path: &Path) -> Result<(), crate::exit::Error> {
        if path.as_os_str() != "-" && path.is_dir() {
            return self.folder(path);
        }
        let text = look(path)?;
        match text.kind {
            kind if is_used(kind) => {
                self.found.push(text);
                Ok(())
            }
            Kind::Record => Err(ImportError::Record { name: text.name }.into()),
            _ => Err(unknown(text).into()),
        }
    }

    fn folder(&mut self, path: &Path) -> Result<(), crate::exit::Error> {
        let failed = |source| ImportError::Folder {
            path: path.to_path_buf(),
            source,
        };
        let entries = std::fs::read_dir(path).map_err(failed)?;
        let mut files = Vec::new();
        for entry in entries {
            let file = entry.map_err(failed)?.path();
            if file.is_file() {
                files.push(file);
            }
        }
        files.sort();
        let before = self.found.len();
        for file in files {
            let text = look(&file)?;
            match text.kind {
                kind if is_used(kind) => self.found.push(text),
                kind => self
                    .left_out
                    .push(format!("{}: left out: {kind}", text.name)),
            }
        }
        if self.found.len() == before {
            return Err(ImportError::NothingIn {
                path: path.to_path_buf(),
            }
            .into());
        }
        Ok(())
    }
}

/// Whether a text of this kind makes a record, or a part of one.
fn is_used(kind: Kind) -> bool {
    use Kind::{FioHistogram, FioJson, FioLog, FioText, Iostat, Notes};
    matches!(
        kind,
        Iostat | FioLog | FioHistogram | FioJson | FioText | Notes
    )
}

fn unknown(mut text: Text) -> ImportError {
    let name = text.name;
    match (text.kind, text.read.read(&mut [0])) {
        (_, Ok(0)) => ImportError::Empty { name },
        (Kind::Foreign(kind), _) => ImportError::Foreign { name, kind },
        (kind, _) => ImportError::Unknown { name, kind },
    }
}

/// Opens a file, and detects its kind from its begin, of a compressed one from its contents.
fn look(path: &Path) -> Result<Text, input::InputError> {
    let name = input::name(path);
    let mut rest = input::open(path)?;
    let begin = input::begin(&name, &mut rest)?;
    let kind = formats::sniff(&begin);
    if kind != Kind::Compressed {
        return Ok(Text {
            name,
            kind,
            read: Box::new(io::Cursor::new(begin).chain(rest)),
        });
    }
    let failed = |source| input::InputError::Unreadable {
        name: name.clone(),
        source,
    };
    let mut inside = input::decompressed(begin, rest).map_err(failed)?;
    let begin = input::begin(&name, &mut inside)?;
    Ok(Text {
        kind: formats::sniff(&begin),
        read: Box::new(io::Cursor::new(begin).chain(inside)),
        name,
    })
}
