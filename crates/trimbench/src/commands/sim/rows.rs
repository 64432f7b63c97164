//! The lines of a sweep as a table: a row for each run.
//!
//! The columns are the same for every grid, so that tables of several sweeps fit together. The
//! table depends on nothing but the lines: merged shards give the bytes of one run.

use std::path::{Path, PathBuf};

use record::units::names;
use report::parquet::{Column, Values, parquet};
use serde_json::Value;

use crate::exit::{Error, usage};
use crate::output::Sink;

/// How a column's values are stored.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Whole,
    Number,
    Truth,
}

/// A line's figures, without the policy's name, which is a setting as well.
const FIGURES: [(&str, Kind); 25] = [
    ("verdict", Kind::Text),
    ("deletion_s", Kind::Number),
    ("drained_s", Kind::Number),
    ("removed_bytes", Kind::Whole),
    ("freed_bytes_per_s", Kind::Number),
    ("lost_s", Kind::Number),
    ("p99_ms", Kind::Number),
    ("p999_ms", Kind::Number),
    ("max_ms", Kind::Number),
    ("commands", Kind::Whole),
    ("ranges", Kind::Whole),
    ("discarded_bytes", Kind::Whole),
    ("cancelled_bytes", Kind::Whole),
    ("untold_bytes", Kind::Whole),
    ("debt_mean_bytes", Kind::Whole),
    ("debt_age_s", Kind::Number),
    ("waited_s", Kind::Number),
    ("held_max_bytes", Kind::Whole),
    ("allocations_held", Kind::Whole),
    ("allocations_waited_s", Kind::Number),
    ("write_amplification", Kind::Number),
    ("most_erasures", Kind::Whole),
    ("mean_erasures", Kind::Number),
    ("is_full", Kind::Truth),
    ("gave_up", Kind::Truth),
];

/// A column, and the place of its values in a line: an object, if any, and a key in it.
struct Source {
    object: Option<&'static str>,
    key: &'static str,
    column: Column,
}

impl Source {
    fn new(object: Option<&'static str>, key: &'static str, name: &str, kind: Kind) -> Source {
        let values = match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Whole => Values::Whole(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
            Kind::Truth => Values::Truth(Vec::new()),
        };
        Source {
            object,
            key,
            column: Column {
                name: name.to_owned(),
                values,
            },
        }
    }

    /// Adds a line's value; one that is missing is null.
    fn add(&mut self, line: &Value) {
        let value = match self.object {
            Some(object) => &line[object][self.key],
            None => &line[self.key],
        };
        match &mut self.column.values {
            Values::Text(all) => all.push(value.as_str().map(str::to_owned)),
            Values::Whole(all) => all.push(value.as_i64()),
            Values::Number(all) => all.push(value.as_f64()),
            Values::Truth(all) => all.push(value.as_bool()),
        }
    }
}

/// Settings keep their text. Their columns begin with `set_`, because a parameter and a figure can
/// have one name; the three that name profile, policy and workload don't.
fn sources() -> Vec<Source> {
    let own = [
        Source::new(None, "grid", "grid", Kind::Text),
        Source::new(None, "cell", "cell", Kind::Whole),
        Source::new(None, "of", "of", Kind::Whole),
    ];
    let settings = ::sim::sweep::settings().map(|key| {
        let name = match key {
            "profile" | "policy" | "workload" => key.to_owned(),
            _ => format!("set_{}", key.replace('-', "_")),
        };
        Source::new(Some("settings"), key, &name, Kind::Text)
    });
    let figures = FIGURES.map(|(key, kind)| Source::new(Some("figures"), key, key, kind));
    let error = Source::new(None, "error", "error", Kind::Text);
    let all = own.into_iter().chain(settings).chain(figures);
    all.chain([error]).collect()
}

/// The table of a sweep's lines.
fn columns(lines: &str) -> serde_json::Result<Vec<Column>> {
    let mut sources = sources();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line)?;
        sources.iter_mut().for_each(|source| source.add(&line));
    }
    Ok(sources.into_iter().map(|source| source.column).collect())
}

/// The file of a table. Its old content stays until all runs are done.
pub(super) struct Table {
    path: PathBuf,
    file: Sink,
}

impl Table {
    /// Opens the file.
    pub(super) fn open(path: &Path) -> Result<Table, Error> {
        Ok(Table {
            path: path.to_path_buf(),
            file: Sink::file(path)?,
        })
    }

    /// Refuses a file of lines, which the table would destroy.
    pub(super) fn is_not(&self, lines: &Path) -> Result<(), Error> {
        match self.file.is(lines) {
            false => Ok(()),
            true => Err(usage(format!(
                "--output {}: it is one of the files to merge; give another one",
                names::shown(lines)
            ))),
        }
    }

    /// Writes the table of these lines.
    pub(super) fn write(mut self, lines: &str) -> Result<(), Error> {
        let unwritten = Error::unwritten(&self.path);
        let columns = columns(lines).map_err(|why| unwritten(why.into()))?;
        let bytes = parquet(&columns);
        self.file.write(|to| to.write_all(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::sim::sweep::{Grid, Shard};
    use ::sim::{Drives, PolicyKind};

    #[test]
    fn every_setting_and_figure_of_a_line_has_a_column_of_its_kind() {
        let policies = PolicyKind::ALL
            .iter()
            .map(|kind| format!("{:?}", kind.name()));
        let text = format!(
            "profile = \"ideal\"\npolicy = [{}]\nsize = \"16M\"\nreaders = 1\n\
             per-io = \"1ms\"\nbaseline = \"1s\"\nrecovery = \"10ms\"\nflash = \"16k 256 7% greedy\"\n",
            policies.collect::<Vec<_>>().join(", ")
        );
        let ideal = ssd::profiles::by_name("ideal").unwrap();
        let grid = Grid::parse(&text, |_| Ok(Drives::single(ideal.clone()))).unwrap();
        for cell in Shard::WHOLE.cells(grid.len()) {
            let line = grid.line(cell);
            let there = |of: &Value| {
                let values = of.as_object().unwrap().values();
                values.filter(|v| !v.is_null()).count()
            };
            let json: Value = serde_json::from_str(&line).unwrap();
            assert!(json["error"].is_null(), "{line}");
            // `schema` is no column, `settings` and `figures` are counted, `policy` is there twice.
            let expected =
                there(&json) - 3 + there(&json["settings"]) + there(&json["figures"]) - 1;
            let filled = |column: &Column| match &column.values {
                Values::Text(all) => all[0].is_some(),
                Values::Whole(all) => all[0].is_some(),
                Values::Number(all) => all[0].is_some(),
                Values::Truth(all) => all[0].is_some(),
            };
            let columns = columns(&line).unwrap();
            let names: Vec<_> = columns
                .iter()
                .filter(|c| filled(c))
                .map(|c| &c.name)
                .collect();
            assert_eq!(names.len(), expected, "{names:?} of {line}");
        }
    }

    #[test]
    fn columns_have_different_names_and_are_there_without_lines() {
        let columns = columns("").unwrap();
        let mut names: Vec<_> = columns.iter().map(|column| &column.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(columns.len(), names.len());
        assert!(names.iter().all(|n| !n.contains('-')));
    }
}
