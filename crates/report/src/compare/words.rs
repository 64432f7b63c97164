//! Figures and their changes in words.

use judge::compare::condition::{ChangeCondition, Outcome};
use judge::compare::{
    Basis, Better, Change, ChangeFinding, Compared, Comparison, Doubt, RunSummary, SetUpDifference,
    Unit,
};

use crate::words::Tone;

/// A change of at least this share is worth a colour that stands out.
const MUCH: f64 = 0.1;

/// An interval to no more than this many times the value, or one part in as many, is
/// given in per cent.
const NARROW: f64 = 2.0;

/// A wider one than this says nothing.
const WIDE: f64 = 10.0;

/// Returns the result of a condition on a comparison, in words that follow the condition.
pub fn outcome(comparison: &Comparison, condition: &ChangeCondition, outcome: &Outcome) -> String {
    let figure = condition.figure.name();
    let moved = |actor: &Option<String>, change: &Change| {
        let whose = actor.as_ref().map_or(String::new(), |a| format!(" of {a}"));
        let share = change.relative;
        let share = share.map_or("from nothing".to_owned(), |s| format!("{} %", signed(s)));
        format!("{figure}{whose}, {}: {share}", change.group)
    };
    match outcome {
        Outcome::Holds { actor, change } => format!("holds: {}", moved(actor, change)),
        Outcome::Fails => "does not hold".to_owned(),
        Outcome::Unknown { open: None } => {
            format!("is unknown: it needs {figure} measured in both")
        }
        Outcome::Unknown {
            open: Some((actor, change)),
        } => {
            let interval = match (change.relative_low, change.relative_high) {
                (Some(low), Some(high)) => format!(" ({} to {} %)", signed(low), signed(high)),
                _ => String::new(),
            };
            let mut groups = comparison.groups.iter().enumerate();
            let is_repeated = groups.all(|(index, group)| {
                let is_compared = index == 0 || group.name == change.group;
                !is_compared || group.counted().count() >= 3
            });
            let is_bound = change.why == Some(Doubt::LowerBound) || !change.bound().is_empty();
            let needs = match () {
                _ if is_bound => "one of both is only a lower bound",
                _ if is_repeated => "it needs more repeats",
                _ => "it needs three to five repeats of each run",
            };
            format!("is unknown: {}{interval}; {needs}", moved(actor, change))
        }
    }
}

/// A share with its sign and no unit, e.g. `+24.8`.
fn signed(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from(percent.abs() < 99.95);
    let text = format!("{percent:+.digits$}");
    // What rounds to nothing has no sign.
    match text.trim_start_matches(['+', '-', '0', '.']) {
        "" => "0".to_owned(),
        _ => text.replace('-', "−"),
    }
}

/// An absolute change, with its sign, in the unit of the row.
fn moved(row: &Compared, by: f64) -> String {
    let sign = if by < 0.0 { "−" } else { "+" };
    let values = row.sides.iter().filter_map(|side| side.value);
    let most = values.fold(0.0, f64::max);
    format!("{sign}{}", row.unit.show(&[Some(by.abs()), Some(most)])[0])
}

/// The change of a figure, e.g. `+24.8 % (+22.1 to +27.6)`. A figure that is itself a share
/// changes by percentage points, e.g. `−4.2 points (−5.0 to −3.3)`.
///
/// A figure that becomes several times as large has a factor, e.g. `8.5 times (3.4 to 21.5)`.
pub(crate) fn change(row: &Compared, change: &Change) -> String {
    let own = row.changes.iter().position(|one| one == change);
    let pair = [Some(0), own.map(|i| i + 1)];
    let mut pair = pair.iter().flatten().filter_map(|&i| row.sides.get(i));
    if pair.any(|side| row.is_without_stall(side)) {
        return "not both stalled".to_owned();
    }
    let points = row.unit == Unit::Share;
    let factors = change.factors().filter(|_| !points);
    let (low, high) = match (points, factors) {
        (true, _) => (change.absolute_low, change.absolute_high),
        (false, Some([_, low, high])) => (low, high),
        (false, None) => (change.relative_low, change.relative_high),
    };
    let end: fn(f64) -> String = match factors {
        Some(_) => |times| format!("{times:.1}"),
        None => signed,
    };
    let small = !points && change.is_from_next_to_nothing();
    let interval = match (low, high) {
        (Some(low), Some(high)) if change.basis != Basis::Counted && !small => {
            format!(" ({} to {})", end(low), end(high))
        }
        _ => String::new(),
    };
    let unit = if points { "points" } else { "%" };
    let by = match (change.relative, change.absolute, factors) {
        (_, Some(absolute), _) if points => format!("{} points", signed(absolute)),
        (_, Some(absolute), _) if small => moved(row, absolute),
        (_, _, Some([Some(times), ..])) => format!("{times:.1} times"),
        (Some(relative), ..) => format!("{} %", signed(relative)),
        (None, Some(absolute), _) => moved(row, absolute),
        (None, None, _) => String::new(),
    };
    let narrow = interval.replace(')', &format!(" {unit})"));
    let Some(words) = change.in_words() else {
        return format!("{}{by}{interval}", change.bound());
    };
    match change.why {
        Some(Doubt::MeasuredOnce) => format!("{words} ({by})"),
        Some(Doubt::TooNoisy | Doubt::TooFew) => format!("{words}{}", hidden(change, &narrow)),
        _ => words,
    }
}

/// The change that noise may hide, in brackets: the `narrow` interval, a factor, or nothing where
/// neither means anything.
fn hidden(change: &Change, narrow: &str) -> String {
    let (Some(low), Some(high)) = (change.relative_low, change.relative_high) else {
        return String::new();
    };
    let times = (1.0 + high).max(1.0 / (1.0 + low));
    match times {
        _ if times <= NARROW => narrow.to_owned(),
        _ if times <= WIDE => format!(" (up to {times:.1} times more or less)"),
        _ => String::new(),
    }
}

/// How good or bad a change is.
pub(crate) fn tone(compared: &Compared, change: &Change) -> Tone {
    if change.finding != ChangeFinding::Differs {
        return Tone::Plain;
    }
    let more = change.absolute.unwrap_or(0.0) > 0.0;
    let much = change.relative.is_none_or(|share| share.abs() >= MUCH);
    match (compared.better, more, much) {
        (Better::Neither, ..) => Tone::Note,
        (Better::Higher, true, _) | (Better::Lower, false, _) => Tone::Good,
        (_, _, true) => Tone::Bad,
        (_, _, false) => Tone::Warn,
    }
}

/// The figures of one table.
pub(crate) struct Table<'a> {
    pub(crate) title: String,
    pub(crate) rows: Vec<&'a Compared>,
}

/// A table for each actor that two groups have, and one for what a run has once.
pub(crate) fn tables(comparison: &Comparison) -> Vec<Table<'_>> {
    let mut tables: Vec<(Option<&str>, Table<'_>)> = Vec::new();
    for row in &comparison.figures {
        if row.sides.iter().all(|side| row.is_without_stall(side)) {
            continue;
        }
        let whose = (row.actor.as_deref(), row.op.as_deref());
        match tables.iter_mut().find(|(key, table)| {
            *key == whose.0 && table.rows.first().is_none_or(|first| first.op == row.op)
        }) {
            Some((_, table)) => table.rows.push(row),
            None => {
                let title = match whose {
                    (Some(actor), Some(op)) if actor != op => format!("{actor} ({op})"),
                    (Some(actor), _) => actor.to_owned(),
                    (None, _) => "discards and deletion".to_owned(),
                };
                let rows = vec![row];
                tables.push((whose.0, Table { title, rows }));
            }
        }
    }
    let known = |row: &&Compared| row.sides.iter().filter(|side| side.value.is_some()).count();
    let has_two = |table: &Table<'_>| table.rows.iter().map(known).max() > Some(1);
    tables.retain(|(actor, table)| actor.is_none() || has_two(table));
    tables.into_iter().map(|(_, table)| table).collect()
}

/// Whether no difference was seen between the reference and each of `groups`, where 10 % would have
/// been.
fn is_same(row: &Compared, mut groups: std::ops::Range<usize>) -> bool {
    let same = |group: usize| row.changes[group - 1].finding == ChangeFinding::Same;
    !groups.is_empty() && groups.all(same)
}

/// Returns the rows that are the same in all of `groups`, and the others.
pub(crate) fn same_and_others<'r>(
    rows: &[&'r Compared],
    groups: std::ops::Range<usize>,
) -> (Vec<&'r Compared>, Vec<&'r Compared>) {
    (rows.iter().copied()).partition(|row| is_same(row, groups.clone()))
}

/// Figures that are the same, with their value in the reference, e.g. `rate before 19,900/s`.
pub(crate) fn same<'a>(rows: impl Iterator<Item = &'a &'a Compared>) -> Vec<String> {
    let figure = |row: &&Compared| format!("{} {}", row.figure.label(), row.shown()[0]);
    rows.map(figure).collect()
}

/// The differences in the set-up. Warnings are listed by themselves.
pub(crate) fn set_up(comparison: &Comparison) -> Vec<&SetUpDifference> {
    let shown = |difference: &&SetUpDifference| difference.path != "/warnings";
    comparison.set_up.iter().filter(shown).collect()
}

/// A group with its number of runs, e.g. `before (3 runs)`.
pub(crate) fn group(name: &str, runs: usize) -> String {
    match runs {
        1 => name.to_owned(),
        n => format!("{name} ({n} runs)"),
    }
}

/// The values of a set-up key in one group.
pub(crate) fn values(values: &[String]) -> String {
    values.join(" / ")
}

/// Explains the brackets.
pub(crate) const LEGEND: &str = "In brackets: the 95 % confidence interval, in per cent of the \
    first, or in times the first; of shares, in percentage points. Same: no difference was seen, and 10 % would have been. Once: it happens once in a run, so only \
    repeats tell.";

/// Warnings of all runs, each once, with the runs that have it. Those that differ in figures alone
/// are one.
pub(crate) fn warnings(comparison: &Comparison) -> Vec<String> {
    let runs: Vec<&RunSummary> = comparison.groups.iter().flat_map(|g| &g.runs).collect();
    let mut seen: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for run in &runs {
        let name = run.name.as_str();
        for warning in &run.warnings {
            // Two of one run may be about two things.
            let same = |(texts, names): &&mut (Vec<&str>, Vec<&str>)| {
                texts.contains(&warning.as_str())
                    || !names.contains(&name)
                        && without_figures(texts[0]) == without_figures(warning)
            };
            match seen.iter_mut().find(same) {
                Some((_, names)) if names.contains(&name) => {}
                Some((texts, names)) => {
                    names.push(name);
                    texts.push(warning);
                }
                None => seen.push((vec![warning.as_str()], vec![name])),
            }
        }
    }
    let line = |(texts, names): &(Vec<&str>, Vec<&str>)| {
        let whose = match names[..] {
            [_] | [_, _] if names.len() < runs.len() => names.join(", "),
            _ if names.len() == runs.len() => "all runs".to_owned(),
            _ => format!("{} and {} more", names[0], names.len() - 1),
        };
        let figures = match texts.iter().all(|text| text == &texts[0]) {
            true => String::new(),
            false => format!(" (These figures are those of {}.)", names[0]),
        };
        format!("{whose}: {}{figures}", texts[0])
    };
    seen.iter().map(line).collect()
}

/// The words of a warning that are no figures.
fn without_figures(text: &str) -> Vec<&str> {
    let is_figure = |word: &&str| {
        word.trim_start_matches('(')
            .starts_with(|c: char| c.is_ascii_digit())
    };
    text.split(' ').filter(|word| !is_figure(word)).collect()
}
