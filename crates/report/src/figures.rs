//! The table of an actor before discards, beside them, and after: its rows, its columns, and the
//! notes below it.

use ::judge::verdict::{BaselineFrom, Figures, Foreground, ServiceFigures};
use ::record::RunRecord;

use crate::words::{self, Tone};

/// A rate at most this share of the one before stands out.
const SLOWER: f64 = 0.9;

/// An actor's work, as the record has it or else the verdict.
pub(crate) fn work(seen: &Foreground, record: &RunRecord) -> String {
    let info = record.head.actors.iter().find(|a| a.name == seen.actor);
    match info {
        Some(info) => words::actor(info),
        None => format!("{}, {}", seen.op, words::loop_kind(&seen.loop_kind)),
    }
}

/// The names of the columns; a continuous deleter has no "before" of its own.
pub(crate) fn columns(seen: &Foreground) -> [&'static str; 3] {
    let before = match seen.baseline_from {
        Some(BaselineFrom::WithoutDiscards) => "without",
        _ => "before",
    };
    let beside = match seen.discarding {
        Some(_) => "while discarding",
        None => "while deleting",
    };
    [before, beside, "after"]
}

/// The figures of the columns.
pub(crate) fn compared(seen: &Foreground) -> [Figures; 3] {
    [seen.baseline, *seen.beside(), seen.recovery]
}

/// Their service times, where they differ: in a closed loop the intended start is the submission.
pub(crate) fn services(seen: &Foreground) -> Option<[Figures; 3]> {
    let of = |service: ServiceFigures| {
        let beside = match seen.discarding {
            Some(_) => service.discarding.unwrap_or_default(),
            None => service.delete,
        };
        [service.baseline, beside, service.recovery]
    };
    seen.service.filter(|_| seen.loop_kind.is_open()).map(of)
}

/// The notes: from when the latencies count, where the baseline lies, and what came before it.
pub(crate) fn notes(seen: &Foreground) -> Vec<String> {
    let from = if seen.loop_kind.is_open() {
        "Response time counts from the intended start, service time from submission."
    } else if seen.stall.is_none() {
        "From submission: in a closed loop, response and service time are the same."
    } else {
        // 17 of 90 s at 4 % of the rate left a measured p99 of 163 µs.
        "From submission: in a closed loop, response and service time are the same, and the \
         percentiles hide a stall, since few operations meet it."
    };
    let mut notes = Vec::new();
    if Row::known(seen).len() > 1 {
        notes.push(from.to_owned());
    }
    notes.extend(words::baseline_from(seen.baseline_from).map(str::to_owned));
    if let Some(before) = seen.undisturbed {
        let what = [(Row::Ops, ""), (Row::P99, "p99 "), (Row::Max, "max ")];
        let known = what.map(|(row, name)| format!("{name}{}", row.cell(&before)));
        let known = known.join(", ");
        notes.push(format!("Before the deletion, without its writes: {known}."));
    }
    notes
}

/// A row of an actor's table.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    /// Whether it has the service times of the row above.
    pub(crate) service: bool,
    pub(crate) cells: [String; 3],
    /// Of the figure in the middle.
    pub(crate) tone: Tone,
}

/// The rows that say something, each with its service times below where they differ.
pub(crate) fn lines(seen: &Foreground) -> Vec<Line> {
    let mut lines = Vec::new();
    let services = services(seen);
    for row in Row::known(seen) {
        lines.push(Line {
            name: row.name(),
            service: false,
            cells: compared(seen).map(|f| row.cell(&f)),
            tone: row.tone(seen),
        });
        if let Some(services) = services.filter(|_| row != Row::Ops) {
            lines.push(Line {
                name: row.name(),
                service: true,
                cells: services.map(|f| row.cell(&f)),
                tone: Tone::Plain,
            });
        }
    }
    lines
}

/// The rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    Ops,
    P50,
    P99,
    P999,
    Max,
}

impl Row {
    const ALL: [Row; 5] = [Row::Ops, Row::P50, Row::P99, Row::P999, Row::Max];

    /// The rows that say something: an imported log often has no latencies.
    pub(crate) fn known(seen: &Foreground) -> Vec<Row> {
        let stretches = compared(seen);
        let known = |row: &Row| stretches.iter().any(|f| row.value(f).is_some());
        let rows = Row::ALL.into_iter();
        rows.filter(|row| *row == Row::Ops || known(row)).collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Row::Ops => "rate",
            Row::P50 => "p50",
            Row::P99 => "p99",
            Row::P999 => "p99.9",
            Row::Max => "max",
        }
    }

    pub(crate) fn value(self, figures: &Figures) -> Option<f64> {
        match self {
            Row::Ops => figures.ops_per_s,
            Row::P50 => figures.p50_us,
            Row::P99 => figures.p99_us,
            Row::P999 => figures.p999_us,
            Row::Max => figures.max_us,
        }
    }

    pub(crate) fn cell(self, figures: &Figures) -> String {
        let show = match self {
            Row::Ops => record::units::rate,
            Row::P50 | Row::P99 | Row::P999 | Row::Max => record::units::latency_us,
        };
        self.value(figures).map_or("–".to_owned(), show)
    }

    /// How bad the figure in the middle is: what got worse is to stand out, and nothing else.
    pub(crate) fn tone(self, seen: &Foreground) -> Tone {
        let [before, beside, _] = compared(seen);
        let Some((before, beside)) = self.value(&before).zip(self.value(&beside)) else {
            return Tone::Plain;
        };
        match (self, seen.stall) {
            (Row::Ops, Some(_)) if beside <= SLOWER * before => Tone::Bad,
            (Row::Ops, None) if beside <= SLOWER * before => Tone::Warn,
            (Row::Ops, _) => Tone::Plain,
            _ if beside >= 10.0 * before => Tone::Bad,
            _ if beside >= 2.0 * before => Tone::Warn,
            _ => Tone::Plain,
        }
    }

    /// A rate has no service time.
    pub(crate) fn service_cell(self, figures: &Figures) -> String {
        match self {
            Row::Ops => String::new(),
            row => row.cell(figures),
        }
    }
}
