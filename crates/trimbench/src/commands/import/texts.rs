//! Finding out what the files are.

use std::io::{self, Read};
use std::path::Path;

use formats::{Foreign, Kind};

use record::units::names;

use crate::exit::{Error, usage};
use crate::input;

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
    pub(super) fn add(&mut self, path: &Path) -> Result<(), Error> {
        if path.as_os_str() != "-" && path.is_dir() {
            return self.folder(path);
        }
        let text = look(path)?;
        match text.kind {
            kind if is_used(kind) => {
                self.found.push(text);
                Ok(())
            }
            Kind::Record => Err(unfit(
                &text.name,
                "is a record of trimbench already; `trimbench report` shows it",
            )),
            _ => Err(unknown(text)),
        }
    }

    fn folder(&mut self, path: &Path) -> Result<(), Error> {
        let name = names::shown(path);
        let failed = |error| unfit(&name, format!("can't be read: {error}"));
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
                kind => {
                    let left_out = format!("{}: left out: {kind}", text.name);
                    self.left_out.push(left_out);
                }
            }
        }
        if self.found.len() == before {
            return Err(unfit(
                &name,
                "has nothing that can be imported; that is what `iostat -x` prints, fio's JSON and \
                 fio's logs",
            ));
        }
        Ok(())
    }
}

/// Whether a text of this kind makes a record, or a part of one.
fn is_used(kind: Kind) -> bool {
    use Kind::{FioHistogram, FioJson, FioLog, FioText, Iostat, Notes, Sadf};
    let used = [Iostat, Sadf, FioLog, FioHistogram, FioJson, FioText, Notes];
    used.contains(&kind)
}

fn unknown(mut text: Text) -> Error {
    let why = match (text.kind, text.read.read(&mut [0])) {
        (_, Ok(0)) => "is empty".to_owned(),
        (Kind::Foreign(tool), _) => foreign(tool),
        (kind, _) => format!(
            "can't be imported, it is {kind}; what can be is what `iostat -x` prints, fio's JSON and \
             fio's logs"
        ),
    };
    unfit(&text.name, why)
}

pub(super) fn foreign(tool: Foreign) -> String {
    format!("can't be imported: it is {tool}. {}", tool.instead())
}

/// An error about one of the texts.
pub(super) fn unfit(name: &str, why: impl std::fmt::Display) -> Error {
    usage(format!("{name}: {why}"))
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
    let failed = |source| input::InputError::unreadable(&name, source);
    let mut inside = record::content(io::Cursor::new(begin).chain(rest)).map_err(failed)?;
    let begin = input::begin(&name, &mut inside)?;
    Ok(Text {
        kind: formats::sniff(&begin),
        read: Box::new(io::Cursor::new(begin).chain(inside)),
        name,
    })
}
