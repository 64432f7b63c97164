//! `trimbench scenarios keys`: everything that `--set` takes.

use bench::scenario::keys;
use record::units::settings::{Key, Section};
use record::units::typed::{hint, nearest};
use ssd::card;

use crate::commands::{compare, fit, fstrim, guard, import, lab, rm, suite, tune, verify, why};
use crate::exit::{Error, usage};

/// A key of a command, as it is listed.
struct Row {
    command: &'static str,
    path: String,
    default: String,
    about: String,
    words: fn() -> Vec<(&'static str, &'static str)>,
}

/// The list of the keys that a pattern finds: a part of a command, of a path or of a meaning.
/// Where it names one key alone, the words that it takes are listed too.
pub(super) fn list(pattern: Option<&str>) -> Result<String, Error> {
    let all = rows();
    let pattern = pattern.unwrap_or_default();
    let last = |row: &Row| row.path.rsplit('.').next() == Some(pattern);
    let exact = |row: &&Row| row.command == pattern || row.path == pattern || last(row);
    let found: Vec<&Row> = match all.iter().any(|row| exact(&row)) {
        true => all.iter().filter(exact).collect(),
        false => all.iter().filter(|row| row.has(pattern)).collect(),
    };
    if found.is_empty() {
        // A path's last part is what people remember.
        let last = |row: &Row| row.path.rfind('.').map_or(0, |dot| dot + 1);
        let rows = all.iter();
        let names = rows.flat_map(|row| [&*row.path, &row.path[last(row)..], row.command]);
        let near = hint(&nearest(pattern, names));
        return Err(usage(format!(
            "no key has '{pattern}' in its name or meaning{near}"
        )));
    }
    let width = found.iter().map(|row| row.path.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut command = "";
    for row in &found {
        if row.command != command {
            let gap = if command.is_empty() { "" } else { "\n" };
            text += &format!("{gap}trimbench {} --set KEY=VALUE\n", row.command);
            command = row.command;
        }
        let default = match &*row.default {
            "" => String::new(),
            default => format!(" [default: {default}]"),
        };
        text += &format!("  {:width$}  {}{default}\n", row.path, row.about);
        for (word, about) in (row.words)().iter().filter(|_| found.len() == 1) {
            text += &format!("  {:width$}    {word:<20}{about}\n", "");
        }
    }
    Ok(text)
}

/// The keys whose last part is `name`, as their commands take them.
pub(crate) fn ending_in(name: &str) -> Vec<String> {
    let rows = rows().into_iter();
    let ends = |row: &Row| row.path.rsplit('.').next() == Some(name);
    rows.filter(ends)
        .map(|row| format!("`{} --set {}=…`", row.command, row.path))
        .collect()
}

impl Row {
    fn new(command: &'static str, path: String, key: &Key) -> Row {
        let lines: Vec<&str> = key.about.lines().map(str::trim).collect();
        Row {
            command,
            path,
            default: key.default.unwrap_or_default().to_owned(),
            about: lines.join(" ").trim_end_matches('.').to_owned(),
            words: key.words,
        }
    }

    fn has(&self, pattern: &str) -> bool {
        let texts = [self.command, &self.path, &self.about];
        let pattern = pattern.to_lowercase();
        texts
            .map(str::to_lowercase)
            .iter()
            .any(|text| text.contains(&pattern))
    }
}

fn rows() -> Vec<Row> {
    fn section<S: Section>(command: &'static str) -> Vec<Row> {
        let row = |key: &Key| Row::new(command, key.name.to_owned(), key);
        S::KEYS.iter().map(row).collect()
    }
    let run = keys::all().into_iter();
    let mut rows: Vec<Row> = run.map(|(path, key)| Row::new("run", path, key)).collect();
    rows.extend(section::<rm::args::Details>("rm"));
    rows.extend(section::<fstrim::args::Details>("fstrim"));
    rows.extend(section::<guard::args::Details>("guard"));
    rows.extend(section::<tune::args::Details>("tune"));
    rows.extend(section::<suite::args::Details>("suite"));
    rows.extend(section::<verify::args::Details>("verify"));
    rows.extend(section::<fit::args::Details>("fit"));
    rows.extend(section::<bench::scenario::Judging>("report"));
    rows.extend(section::<compare::args::Details>("compare"));
    rows.extend(section::<import::args::Details>("import"));
    rows.extend(section::<why::args::Details>("why"));
    rows.extend(section::<lab::args::DriveDetails>("lab up"));
    rows.extend(card::KEYS.iter().map(|key| Row {
        command: "lab up",
        path: key.name.to_owned(),
        default: key.default.unwrap_or("the profile's").to_owned(),
        about: format!("Of the drive: {}", key.about),
        words: key.words,
    }));
    let keys = ::sim::Setup::KEYS.iter();
    rows.extend(keys.map(|key| Row::new("sim", key.name.to_owned(), key)));
    rows
}
