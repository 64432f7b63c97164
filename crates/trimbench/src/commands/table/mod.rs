//! `trimbench table`.

pub(crate) mod args;

use std::fs;
use std::io::{self, Cursor, Read};
use std::path::Path;

use record::units::typed::Mistake;
use record::units::{count, names};
use report::rows::Found;
use serde_json::{Value, json};
use ssd::Card;
use ssd::card::Sure;

use crate::commands::table::args::TableArgs;
use crate::console::{self, Stream};
use crate::exit::{Error, Exit, usage};
use crate::input::{self, Input};
use crate::output::Sink;
use crate::record_output;

/// The most of a JSON file that is read, in bytes. The largest real ones are a deletion's decisions,
/// a megabyte.
const MOST: u64 = 64 << 20;

/// Carries out the command. A file that can't be read doesn't keep the others back.
pub(crate) fn run(args: &TableArgs) -> Result<Exit, Error> {
    let to = Sink::standard();
    let mut table = Table {
        to,
        files: 0,
        skipped: 0,
        without_end: 0,
        exit: Exit::Done,
    };
    for path in &args.paths {
        let before = (table.files, table.skipped);
        match path.is_dir() {
            true => table.directory(path)?,
            false => table.file(path)?,
        }
        if (table.files, table.skipped) == before {
            let name = input::name(path);
            Stream::Err.print(&format!("trimbench table: {name}: contains no files\n"));
        }
    }
    if table.skipped + table.without_end > 0 {
        let ends = match table.without_end {
            0 => String::new(),
            some => format!(", {} without an end", count(some)),
        };
        Stream::Err.print(&format!(
            "trimbench table: {} of {} files skipped{ends}\n",
            count(table.skipped),
            count(table.files)
        ));
    }
    Ok(table.exit)
}

/// A table that is being written.
struct Table {
    to: Sink,
    files: u64,
    skipped: u64,
    without_end: u64,
    exit: Exit,
}

impl Table {
    /// Adds the files of a directory in the order of their names, and those of the ones below.
    fn directory(&mut self, directory: &Path) -> Result<(), Error> {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.skip(&unreadable(directory, error));
                return Ok(());
            }
        };
        let found =
            entries.map(|entry| entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))));
        let mut found: Vec<_> = found.collect();
        found.sort_by(|a, b| {
            a.as_ref()
                .ok()
                .map(|one| &one.0)
                .cmp(&b.as_ref().ok().map(|one| &one.0))
        });
        for found in found {
            match found {
                Ok((path, kind)) if kind.is_dir() => self.directory(&path)?,
                // Of a link its file, but no directory: it may lead back here.
                Ok((path, _)) if path.is_file() => self.file(&path)?,
                Ok(_) => {}
                Err(error) => self.skip(&unreadable(directory, error)),
            }
        }
        Ok(())
    }

    /// Adds a file.
    fn file(&mut self, path: &Path) -> Result<(), Error> {
        self.files += 1;
        let name = input::name(path);
        match rows(path, &name) {
            Ok((rows, is_whole)) => {
                if !is_whole {
                    self.without_end += 1;
                    self.report(&usage(format!(
                        "{name}: has no end: its run was killed, or the file is cut; its row has the \
                         reason 'interrupted'"
                    )));
                }
                let rows = names::harmless_json(&String::from_utf8_lossy(&rows));
                self.to.write(|to| to.write_all(rows.as_bytes()))
            }
            Err(error) => {
                self.skip(&error);
                Ok(())
            }
        }
    }

    fn skip(&mut self, error: &Error) {
        self.skipped += 1;
        self.report(error);
    }

    fn report(&mut self, error: &Error) {
        console::error(error);
        self.exit = error.exit();
    }
}

/// The rows of a file, and whether it is whole: a record may have no end.
fn rows(path: &Path, name: &str) -> Result<(Vec<u8>, bool), Error> {
    let (mut rows, mut is_whole) = (Vec::new(), true);
    // Memory takes what is written to it.
    let mut add = |found: Found<'_>| drop(found.write(name, &mut rows));
    match Content::of(path, name)? {
        Content::Record(input) => {
            is_whole = input.record.end.is_some();
            let verdict = json!(record_output::verdict(&input.record));
            add(Found::new("run", &verdict));
        }
        Content::Text(text) if matches!(text.trim_ascii_start(), [b'{' | b'[', ..]) => {
            let wrong = |why: &str| usage(format!("{name}: {why}"));
            let mut results = Vec::new();
            for result in serde_json::Deserializer::from_slice(&text).into_iter::<Value>() {
                match result.map_err(|error| wrong(&format!("is damaged: {error}")))? {
                    Value::Array(all) => results.extend(all),
                    one => results.push(one),
                }
            }
            for result in &results {
                add(Found::of(result).map_err(|why| wrong(&why))?);
            }
        }
        Content::Text(text) => {
            let card = card(&text).map_err(|why| usage(format!("{name}: {why}")))?;
            add(Found::new("card", &card));
        }
    }
    Ok((rows, is_whole))
}

enum Content {
    Record(Box<Input>),
    Text(Vec<u8>),
}

impl Content {
    fn of(path: &Path, name: &str) -> Result<Content, Error> {
        let mut from = input::open(path)?;
        let begin = input::begin(name, &mut from)?;
        let shown = input::inside(&begin);
        let mut lines = shown.split(|&byte| byte == b'\n');
        let first = String::from_utf8_lossy(lines.next().unwrap_or_default());
        if first.contains("\"line\":\"head\"") && first.contains("trimbench.run/") {
            let input = input::of(name, Cursor::new(begin).chain(from))?;
            return Ok(Content::Record(Box::new(input)));
        }
        let failed = |error| unreadable(path, error);
        let mut from = record::content(Cursor::new(begin).chain(from)).map_err(failed)?;
        let mut text = Vec::new();
        let read = from.by_ref().take(MOST + 1).read_to_end(&mut text);
        read.map_err(failed)?;
        match text.len() as u64 > MOST {
            true => Err(usage(format!("{name}: is longer than {MOST} bytes"))),
            false => Ok(Content::Text(text)),
        }
    }
}

/// A device card as a result.
fn card(text: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(text);
    if text.trim().is_empty() {
        return Err("is empty".to_owned());
    }
    let refused = |error| match error {
        Mistake::Syntax { .. } => "is neither a result of trimbench nor a device card".to_owned(),
        _ => format!("is no device card: {error}"),
    };
    let card: Card = text.parse().map_err(refused)?;
    // A bound or an assumption is unknown.
    let known = |path: &str| {
        let sure = card.note(path).map(|note| note.sure);
        matches!(sure, Some(Sure::Measured | Sure::Derived))
    };
    let discard = card.figures().discard.as_ref();
    let mut result = json!({
        "origin": card.origin(),
        "fit": discard.map(|discard| json!({
            "a_us": known("discard.a").then_some(discard.a.as_secs_f64() * 1e6),
            "b_us_per_mib": known("discard.b").then_some(discard.b.as_nanos() / 1e3),
            "phi": known("discard.phi").then_some(discard.phi()),
        })),
    });
    if card.origin().is_none() {
        result["target"] = json!({"drives": [{"model": card.name()}]});
    }
    Ok(result)
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    input::InputError::unreadable(&input::name(path), error).into()
}
