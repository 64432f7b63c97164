//! Figures and their changes in words.

use timeline::compare::{
    Basis, Better, Change, ChangeFinding, Compared, Comparison, Doubt, Figure, Percentile, Side,
    Stretch, Unit,
};
use timeline::units;

use crate::words::Tone;

/// A change of at least this share is worth a colour that stands out.
const MUCH: f64 = 0.1;

/// What a figure is called in a table.
pub(crate) fn label(figure: Figure) -> &'static str {
    use Percentile::{P50, P99, P999};
    match figure {
        Figure::BaselineRate => "rate before",
        Figure::DeleteRate => "rate during",
        Figure::OpsRatio => "rate left",
        Figure::Stall => "stall",
        Figure::Longest => "longest stall",
        Figure::Depth => "left in stall",
        Figure::Lost => "lost time",
        Figure::Worst => "worst latency",
        Figure::Latency(Stretch::Baseline, P50) => "p50 before",
        Figure::Latency(Stretch::Baseline, P99) => "p99 before",
        Figure::Latency(Stretch::Baseline, P999) => "p99.9 before",
        Figure::Latency(Stretch::Delete, P50) => "p50 during",
        Figure::Latency(Stretch::Delete, P99) => "p99 during",
        Figure::Latency(Stretch::Delete, P999) => "p99.9 during",
        Figure::Latency(Stretch::Recovery, P50) => "p50 after",
        Figure::Latency(Stretch::Recovery, P99) => "p99 after",
        Figure::Latency(Stretch::Recovery, P999) => "p99.9 after",
        Figure::TrimRate => "TRIM rate",
        Figure::DiscardBytes => "discarded",
        Figure::DiscardCommands => "commands",
        Figure::DiscardActive => "active",
        Figure::Drain => "drained after",
        Figure::Await => "mean wait",
        Figure::DeletionSeconds => "deletion calls",
    }
}

/// A value with its unit.
pub(crate) fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::OpsPerSecond => units::rate(value),
        Unit::Seconds if value == 0.0 => "0 s".to_owned(),
        Unit::Seconds => units::seconds(value),
        Unit::Microseconds => units::latency_us(value),
        Unit::BytesPerSecond => format!("{}/s", units::bytes_decimal(value as u64)),
        Unit::Bytes => units::bytes(value as u64),
        Unit::Count => units::count(value.round() as u64),
        Unit::Share => units::percent(value),
    }
}

/// A group's value.
pub(crate) fn side(unit: Unit, side: &Side) -> String {
    let sign = if side.is_lower_bound { "≥ " } else { "" };
    match side.value {
        Some(told) => format!("{sign}{}", value(unit, told)),
        None => "–".to_owned(),
    }
}

/// A share with its sign and no unit, e.g. `+24.8`.
fn signed(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from(percent.abs() < 99.95);
    let text = format!("{percent:+.digits$}");
    // What rounds to nothing has no sign.
    if text.trim_start_matches(['+', '-', '0', '.']).is_empty() {
        "0".to_owned()
    } else {
        text.replace('-', "−")
    }
}

/// An absolute change, with its sign.
fn moved(unit: Unit, by: f64) -> String {
    let sign = if by < 0.0 { "−" } else { "+" };
    format!("{sign}{}", value(unit, by.abs()))
}

/// What became of a figure, e.g. `+24.8 % (+22.1 to +27.6)`.
pub(crate) fn change(unit: Unit, change: &Change) -> String {
    let interval = match (change.relative_low, change.relative_high) {
        (Some(low), Some(high)) if change.basis != Basis::Counted => {
            format!(" ({} to {})", signed(low), signed(high))
        }
        _ => String::new(),
    };
    let by = match (change.relative, change.absolute) {
        (Some(relative), _) => format!("{} %", signed(relative)),
        (None, Some(absolute)) => moved(unit, absolute),
        (None, None) => String::new(),
    };
    match (change.finding, change.why) {
        (ChangeFinding::Differs, _) => format!("{by}{interval}"),
        (ChangeFinding::Same, _) => match change.within.filter(|&within| within > 0.0) {
            Some(within) => format!("same within {}", units::percent(within)),
            None => "same".to_owned(),
        },
        (ChangeFinding::CannotTell, Some(Doubt::NotMeasured) | None) => "not measured".to_owned(),
        (ChangeFinding::CannotTell, Some(Doubt::MeasuredOnce)) => {
            format!("can't tell: once ({by})")
        }
        (ChangeFinding::CannotTell, Some(Doubt::LowerBound)) => {
            "can't tell: a lower bound".to_owned()
        }
        (ChangeFinding::CannotTell, Some(Doubt::TooNoisy)) => {
            format!("can't tell{}", interval.replace(')', " %)"))
        }
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

/// A table for each actor, and one for what a run has once.
pub(crate) fn tables(comparison: &Comparison) -> Vec<Table<'_>> {
    let mut tables: Vec<(Option<&str>, Table<'_>)> = Vec::new();
    for row in &comparison.figures {
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
    tables.into_iter().map(|(_, table)| table).collect()
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

/// What the brackets and colours mean.
pub(crate) const LEGEND: &str = "In brackets: the 95 % confidence interval, in per cent of the \
    first. Same: no difference was seen, and 10 % would have been. Once: it happens once in a run, so only \
    repeats tell.";
