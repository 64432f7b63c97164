//! Finding out what the files are.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use formats::Kind;

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
    /// Nothing that is known.
    #[error(
        "{name}: can't be imported, it is {kind}; what can be is what `iostat -x` prints, fio's JSON \
         and fio's logs"
    )]
    Unknown {
        /// The text as it was given.
        name: String,
        /// The kind of text.
        kind: String,
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
            Kind::Iostat | Kind::FioLog | Kind::FioHistogram | Kind::FioJson | Kind::Notes => {
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
                Kind::Iostat | Kind::FioLog | Kind::FioHistogram | Kind::FioJson | Kind::Notes => {
                    self.found.push(text);
                }
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

fn unknown(mut text: Text) -> ImportError {
    let name = text.name;
    let mut first = [0; 2];
    match text.read.read(&mut first) {
        Ok(0) => ImportError::Empty { name },
        _ => ImportError::Unknown {
            name,
            kind: match (first, text.kind) {
                ([0x1f, 0x8b], _) => "compressed with gzip (decompress it)".to_owned(),
                (_, kind) => kind.to_string(),
            },
        },
    }
}

/// Opens a file, and detects its kind from its begin, of one compressed with zstd from its
/// contents.
fn look(path: &Path) -> Result<Text, input::InputError> {
    let name = input::name(path);
    let mut rest = input::open(path)?;
    let begin = input::begin(&name, &mut rest)?;
    let kind = formats::sniff(&begin);
    let all: Box<dyn Read> = Box::new(io::Cursor::new(begin).chain(rest));
    if kind != Kind::Zstd {
        return Ok(Text {
            name,
            kind,
            read: all,
        });
    }
    let failed = |source| input::InputError::Unreadable {
        name: name.clone(),
        source,
    };
    let mut inside = zstd::stream::read::Decoder::new(BufReader::new(all)).map_err(failed)?;
    let begin = input::begin(&name, &mut inside)?;
    Ok(Text {
        kind: formats::sniff(&begin),
        read: Box::new(io::Cursor::new(begin).chain(inside)),
        name,
    })
}
