//! The tables and pictures of a suite.

use report::sheet::{Sheet, Table};

use crate::Spread;
use crate::suite::advice::{Way, advise};
use crate::suite::cell::Cell;
use crate::suite::measure::{Measure, Unit};
use crate::suite::results::{Results, Row};
use crate::suite::step::Step;

/// Stands where no round has a figure.
const NONE: &str = "–";

/// A value with its unit.
pub(crate) fn value(unit: Unit, of: f64) -> String {
    match unit {
        Unit::Seconds if of <= 0.0 => "0 s".to_owned(),
        Unit::Seconds => record::units::seconds(of),
        Unit::PerSecond => record::units::rate(of),
        Unit::Bytes => record::units::bytes(of.max(0.0) as u64),
        Unit::BytesPerSecond => record::units::byte_rate(of),
    }
}

/// A figure of a row.
fn told(row: &Row, step: Step, measure: Measure) -> String {
    words(measure.unit(), row.spread(step, measure))
}

/// The median, with the least and the most where they are different figures.
fn words(unit: Unit, spread: Option<Spread>) -> String {
    let Some(spread) = spread else {
        return NONE.to_owned();
    };
    let all = [spread.low, spread.median, spread.high].map(|one| shown(unit, one));
    let [least, median, most] = all.each_ref().map(String::as_str);
    if least == median && most == median {
        return median.to_owned();
    }
    // One unit for all three, if they have the same.
    let parts = [least, median, most].map(|text| Some(text.split_at(text.find([' ', '/'])?)));
    match parts {
        [Some((least, a)), Some((_, b)), Some((most, c))] if a == b && b == c => {
            format!("{median} ({least}–{most})")
        }
        _ => format!("{median} ({least}–{most})"),
    }
}

/// A value in a table: of a rate the decimal form alone.
fn shown(unit: Unit, of: f64) -> String {
    let mut text = value(unit, of);
    text.truncate(text.find(" (").unwrap_or(text.len()));
    text
}

/// The tables, pictures and sentences of a suite's results.
pub fn sheet(results: &Results) -> Sheet {
    let plan = &results.head.plan;
    let mut about = vec![
        format!(
            "{}, Linux {}, trimbench {}",
            results.head.drive.words(),
            results.head.origin.kernel.as_deref().unwrap_or("unknown"),
            results.head.version
        ),
        format!(
            "{} of {} by {}; medians of {} (least–most)",
            record::units::counted(plan.files.into(), "file"),
            record::units::bytes(plan.file_bytes),
            record::units::counted(plan.writers.into(), "writer"),
            record::units::counted(plan.rounds.into(), "round"),
        ),
    ];
    if results.head.drive.slower() != 1.0 {
        about.push(format!(
            "All times are as measured: {} times those of the drive that it stands for.",
            results.head.drive.slower()
        ));
    }
    if results.done < results.turns {
        about.push(format!(
            "Not finished: {} of {} turns are over. The same command goes on.",
            results.done, results.turns
        ));
    }
    let mut tables = vec![
        mkfs(results),
        removal(results),
        trim(results),
        reads(results),
        reasons("Runs that are not conclusive", results, |row| {
            &row.inconclusive
        }),
    ];
    let advice = advise(results);
    if let Some(advice) = &advice {
        tables.push(ranking(&advice.ranking));
    }
    tables.push(reasons("Steps that failed", results, |row| &row.failures));
    tables.iter_mut().for_each(leave_out_what_is_empty);
    tables.retain(|table| !table.rows.is_empty());
    let mut notes: Vec<String> = advice.map(|advice| advice.sentences).unwrap_or_default();
    notes.extend(late(results));
    Sheet {
        title: format!("Suite on {}", results.head.drive.words()),
        about,
        tables,
        notes,
    }
}

/// Leaves out the columns and rows in which no cell has a figure.
fn leave_out_what_is_empty(table: &mut Table) {
    let has = |row: &Vec<String>, i: usize| row.get(i).is_some_and(|cell| cell != NONE);
    table.rows.retain(|row| (1..row.len()).any(|i| has(row, i)));
    let kept: Vec<bool> = (0..table.columns.len())
        .map(|i| i == 0 || table.rows.iter().any(|row| has(row, i)))
        .collect();
    for cells in std::iter::once(&mut table.columns).chain(&mut table.rows) {
        let mut keep = kept.iter();
        cells.retain(|_| keep.next().copied().unwrap_or(false));
    }
}

/// Cells whose discards come so late that the steps don't see them.
fn late(results: &Results) -> Option<String> {
    let cells = results.rows.iter().map(|row| row.cell);
    let late = cells.filter(|cell| cell.mounting.is_late());
    let names: Vec<String> = late.map(|cell| cell.to_string()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} send their discards in the background, long after a removal; all discarded does \
             not wait for them.",
            names.join(", ")
        )
    })
}

/// A table without an empty cell.
pub(super) fn table<const N: usize>(
    title: &str,
    note: &str,
    columns: [&str; N],
    rows: impl Iterator<Item = Vec<String>>,
) -> Table {
    Table {
        title: title.to_owned(),
        note: note.to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

/// A row for each file system; all cells of a way to make it together.
fn mkfs(results: &Results) -> Table {
    let kinds = results.rows.chunk_by(|a, b| a.cell.kind == b.cell.kind);
    let rows = kinds.map(|rows| {
        let kind = rows[0].cell.kind;
        let times = [true, false].map(|discards| {
            let own = |cell: &Cell| cell.kind == kind && cell.mkfs_discards == discards;
            words(
                Unit::Seconds,
                results.spread(Step::Mkfs, Measure::Time, own),
            )
        });
        std::iter::once(kind.name().to_owned())
            .chain(times)
            .collect()
    });
    let columns = ["file system", "with discard", "without discard"];
    table(
        "mkfs",
        "on a drive that was discarded before",
        columns,
        rows,
    )
}

/// A row for each cell, with a figure in each further column.
fn figures(title: &str, note: &str, of: &[(&str, Step, Measure)], results: &Results) -> Table {
    let rows = results.rows.iter().map(|row| {
        let figures = of
            .iter()
            .map(|(_, step, measure)| told(row, *step, *measure));
        std::iter::once(row.cell.to_string())
            .chain(figures)
            .collect()
    });
    let mut table = table(title, note, ["file system/mkfs/mount"], rows);
    table
        .columns
        .extend(of.iter().map(|(name, _, _)| (*name).to_owned()));
    table
}

fn removal(results: &Results) -> Table {
    let wanted = [
        ("create", Step::Create, Measure::Time),
        ("rm each", Step::RmEach, Measure::Time),
        ("rm", Step::Rm, Measure::Time),
        ("first sync", Step::Rm, Measure::FirstSync),
        ("second sync", Step::Rm, Measure::SecondSync),
        ("all discarded", Step::Rm, Measure::Freed),
        ("trimbench rm", Step::RmTrimbench, Measure::Time),
    ];
    let note = "syncs and all discarded: those of one rm for all files";
    figures("Creating and removing the files", note, &wanted, results)
}

fn trim(results: &Results) -> Table {
    let wanted = [
        ("fstrim", Step::Fstrim, Measure::Time),
        ("all discarded", Step::Fstrim, Measure::Freed),
        ("discarded", Step::Fstrim, Measure::Discarded),
        ("TRIM rate", Step::Fstrim, Measure::TrimRate),
        ("trimbench fstrim", Step::FstrimTrimbench, Measure::Time),
    ];
    let note = "mounted anew; where the mount sends no discards, the files were removed before; \
                all discarded: time to fstrim's last discard";
    figures("fstrim", note, &wanted, results)
}

fn reads(results: &Results) -> Table {
    let mut rows = Vec::new();
    for row in &results.rows {
        for step in Step::of(&row.cell).into_iter().filter(|step| step.is_run()) {
            let Some(verdicts) = row.verdicts.get(&step) else {
                continue;
            };
            let figure = |measure| told(row, step, measure);
            rows.push(vec![
                format!(
                    "{}: {}",
                    row.cell,
                    step.words().replace("reads beside ", "")
                ),
                figure(Measure::ReadsBefore),
                figure(Measure::ReadsDuring),
                figure(Measure::ReadsInStall),
                figure(Measure::ReadsAfter),
                figure(Measure::Stall),
                match (figure(Measure::TrimRate), row.trim_bounds.contains(&step)) {
                    (rate, true) if rate != NONE => format!("≥ {rate}"),
                    (rate, _) => rate,
                },
                figure(Measure::Discarded),
                counted(verdicts),
            ]);
        }
    }
    let note = format!(
        "4 KiB at random, 8 in flight, while {} are deleted; ≥: discards were over too soon for more than a lower bound; fstrim discards other free space, too",
        record::units::bytes(results.head.plan.cell_bytes())
    );
    let columns = [
        "file system/mkfs/mount: freed by",
        "before",
        "while discarding",
        "in the stall",
        "after",
        "stall",
        "TRIM rate",
        "discarded",
        "verdicts",
    ];
    table("Reads beside a deletion", &note, columns, rows.into_iter())
}

/// `stall 2, none 1`; a single kind without its count.
fn counted(verdicts: &[String]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for verdict in verdicts {
        match counts.iter_mut().find(|(known, _)| known == verdict) {
            Some((_, count)) => *count += 1,
            None => counts.push((verdict, 1)),
        }
    }
    if let [(one, _)] = counts[..] {
        return one.to_owned();
    }
    let words = counts
        .iter()
        .map(|(verdict, count)| format!("{verdict} {count}"));
    words.collect::<Vec<_>>().join(", ")
}

fn ranking(ways: &[Way]) -> Table {
    let or_none = |text: Option<String>| text.unwrap_or(NONE.to_owned());
    let rows = ways.iter().enumerate().map(|(i, way)| {
        vec![
            format!("{}. {}", i + 1, way.words()),
            value(Unit::Seconds, way.stall_s),
            or_none(way.longest_stall_s.map(|s| value(Unit::Seconds, s))),
            or_none(way.lost.map(record::units::percent)),
            or_none(way.discarded.map(|bytes| value(Unit::Bytes, bytes))),
            or_none(way.freeing_s.map(|s| value(Unit::Seconds, s))),
        ]
    });
    let note = "by stall, then by what readers lose, then by the time that freeing takes without \
                readers";
    let columns = [
        "way of freeing space",
        "stall",
        "longest stall",
        "reads lost while discarding",
        "discarded",
        "time to free",
    ];
    table("Ranking", note, columns, rows)
}

/// A row for each sentence about a step of a cell.
fn reasons(title: &str, results: &Results, of: fn(&Row) -> &Vec<(Step, String, usize)>) -> Table {
    let rounds = results.head.plan.rounds;
    let rows = results.rows.iter().flat_map(|row| {
        of(row).iter().map(move |(step, why, times)| {
            let times = format!("{times} of {rounds}");
            let words = step.words().to_owned();
            vec![row.cell.to_string(), words, times, why.clone()]
        })
    });
    let columns = ["file system/mkfs/mount", "step", "rounds", "why"];
    table(title, "", columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::log::Outcome;
    use crate::suite::tests as made;

    #[test]
    fn every_cell_has_a_row_in_every_table() {
        let cells = [
            "ext4/discard/discard",
            "ext4/nodiscard/nodiscard",
            "btrfs/nodiscard/async",
        ];
        let mut log = made::log(&cells, 3, 1.0);
        let key = (cells[1].to_owned(), 2, Step::Fstrim);
        log.outcomes
            .insert(key, Outcome::Failed("fstrim: it is broken".to_owned()));
        let sheet = sheet(&Results::of(&log));
        let titles: Vec<&str> = sheet
            .tables
            .iter()
            .map(|table| table.title.as_str())
            .collect();
        assert_eq!(
            titles,
            [
                "mkfs",
                "Creating and removing the files",
                "fstrim",
                "Reads beside a deletion",
                "Ranking",
                "Steps that failed"
            ]
        );
        for table in &sheet.tables {
            assert!(
                table
                    .rows
                    .iter()
                    .all(|row| row.len() == table.columns.len()),
                "{table:?}"
            );
        }
        assert_eq!(
            sheet.tables[0].rows[0],
            ["ext4", "1.1 s (1.0–1.2)", "1.1 s (1.0–1.2)"]
        );
        assert_eq!(sheet.tables[0].rows[1][1], NONE, "{sheet:?}");
        assert_eq!(sheet.tables[1].rows.len(), 3);
        assert_eq!(
            sheet.tables[5].rows[0][2..],
            ["1 of 3", "fstrim: it is broken"]
        );
        let ranking = &sheet.tables[4];
        assert_eq!(ranking.columns[1..3], ["stall", "longest stall"]);
        assert_eq!(ranking.rows[0][1], ranking.rows[0][2], "{ranking:?}");
        assert!(
            sheet
                .notes
                .iter()
                .any(|note| note.starts_with("btrfs/nodiscard/async send"))
        );
    }

    #[test]
    fn steps_that_were_not_done_have_no_column() {
        let mut log = made::log(&["ext4/discard/discard", "xfs/discard/discard"], 1, 1.0);
        log.outcomes
            .retain(|(_, _, step), _| matches!(step, Step::Mkfs | Step::Rm));
        let sheet = sheet(&Results::of(&log));
        let columns: Vec<Vec<String>> = sheet.tables.iter().map(|t| t.columns.clone()).collect();
        assert_eq!(columns.len(), 2, "{sheet:?}");
        assert_eq!(columns[0], ["file system", "with discard"]);
        let removal = [
            "file system/mkfs/mount",
            "rm",
            "first sync",
            "second sync",
            "all discarded",
        ];
        assert_eq!(columns[1], removal);
        assert_eq!(sheet.tables[1].rows.len(), 2);
    }

    #[test]
    fn a_spread_has_one_unit_where_all_have_the_same() {
        let of = |unit, values: &[f64]| words(unit, Spread::of(values.iter().copied()));
        assert_eq!(
            of(Unit::PerSecond, &[900.0, 1000.0, 1100.0]),
            "1,000/s (900–1,100)"
        );
        assert_eq!(
            of(Unit::Seconds, &[0.0005, 1.0, 2.0]),
            "1.0 s (500 µs–2.0 s)"
        );
        assert_eq!(of(Unit::Seconds, &[0.0, 0.0]), "0 s");
        assert_eq!(of(Unit::Seconds, &[]), NONE);
    }

    #[test]
    fn an_inconclusive_run_has_its_reason() {
        let mut log = made::log(&["ext4/discard/discard"], 2, 1.0);
        let key = ("ext4/discard/discard".to_owned(), 2, Step::Run);
        let Some(Outcome::Done(figures)) = log.outcomes.get_mut(&key) else {
            panic!("no run");
        };
        let run = figures.run.as_mut().unwrap();
        run.verdict = "inconclusive".to_owned();
        run.summary = "Delete more.".to_owned();
        run.trim_is_bound = true;
        let sheet = sheet(&Results::of(&log));
        let title = "Runs that are not conclusive";
        let table = sheet.tables.iter().find(|table| table.title == title);
        let expected = [
            "ext4/discard/discard",
            "reads beside rm",
            "1 of 2",
            "Delete more.",
        ];
        assert_eq!(table.unwrap().rows, [expected]);
        let title = "Reads beside a deletion";
        let reads = sheet.tables.iter().find(|table| table.title == title);
        let bounds: Vec<bool> = (reads.unwrap().rows.iter())
            .map(|row| row.iter().any(|cell| cell.starts_with("≥ ")))
            .collect();
        assert_eq!(bounds, [true, false]);
    }

    #[test]
    fn verdicts_are_counted() {
        let of = |words: &[&str]| counted(&words.iter().map(|&w| w.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["stall", "stall"]), "stall");
        assert_eq!(of(&["stall", "none", "stall"]), "stall 2, none 1");
    }
}
