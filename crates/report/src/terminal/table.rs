//! One actor before, during and after the deletion.

use ::timeline::record::{ActorInfo, RunRecord};
use ::timeline::units;
use ::timeline::verdict::{Figures, Foreground, ServiceFigures};

use super::glyphs::{left, right};
use super::page::{Ink, Page, Span, ink, plain};
use super::words;

/// Columns of the rows' names.
const NAME: usize = 10;
/// Columns of a figure where three stand side by side.
const CELL: usize = 10;
/// Columns of a figure where six do.
const NARROW: usize = 10;

/// The actor's title, its table, and what its latencies count from.
pub(super) fn actor(page: &mut Page, seen: &Foreground, record: &RunRecord) {
    let info = record.head.actors.iter().find(|a| a.name == seen.actor);
    title(page, seen, info);
    // In a closed loop the intended start is the submission, so one says it all.
    let service = seen.service.filter(|_| seen.loop_kind.is_open());
    match service {
        Some(service) if page.width() >= 2 + NAME + 6 * NARROW => {
            side_by_side(page, seen, &service);
        }
        Some(service) => stacked(page, seen, &service),
        None => simple(page, seen),
    }
    let from = if seen.loop_kind.is_open() {
        "Response time counts from the intended start, service time from submission."
    } else if seen.stall.is_none() {
        "From submission: in a closed loop, response and service time are the same."
    } else {
        // 17 of 90 s at 4 % of the rate left a measured p99 of 163 µs.
        "From submission: in a closed loop, response and service time are the same, and the \
         percentiles hide a stall, since few operations meet it."
    };
    page.labelled(plain(""), 2, &[ink(Ink::Dim, from)]);
    if let Some(note) = words::baseline_from(seen.baseline_from) {
        page.labelled(plain(""), 2, &[ink(Ink::Dim, note)]);
    }
}

fn title(page: &mut Page, seen: &Foreground, info: Option<&ActorInfo>) {
    let what = match info {
        Some(info) => words::actor(info),
        None => format!("{}, {}", seen.op, words::loop_kind(&seen.loop_kind)),
    };
    page.labelled(
        plain(""),
        2,
        &[
            ink(Ink::Bold, seen.actor.as_str()),
            ink(Ink::Dim, format!(": {what}")),
        ],
    );
}

fn simple(page: &mut Page, seen: &Foreground) {
    header(page, &["before", "during", "after"], CELL);
    for row in Row::ALL {
        let cells = [seen.baseline, seen.delete, seen.recovery].map(|f| row.cell(&f));
        figures(
            page,
            row.name(),
            &cells,
            CELL,
            &[Ink::Plain, row.hue(seen), Ink::Plain],
        );
    }
}

fn side_by_side(page: &mut Page, seen: &Foreground, service: &ServiceFigures) {
    header(page, &["before", "during", "after"], 2 * NARROW);
    header(page, &["response", "service"].repeat(3), NARROW);
    for row in Row::ALL {
        let hue = row.hue(seen);
        let inks = [Ink::Plain, Ink::Dim, hue, Ink::Dim, Ink::Plain, Ink::Dim];
        let pairs = [
            (&seen.baseline, &service.baseline),
            (&seen.delete, &service.delete),
            (&seen.recovery, &service.recovery),
        ];
        let cells: Vec<String> = pairs
            .iter()
            .flat_map(|(response, service)| [row.cell(response), row.service_cell(service)])
            .collect();
        figures(page, row.name(), &cells, NARROW, &inks);
    }
}

/// The same where six columns have no room: service times in rows of their own.
fn stacked(page: &mut Page, seen: &Foreground, service: &ServiceFigures) {
    header(page, &["before", "during", "after"], CELL - 1);
    for row in Row::ALL {
        let cells = [seen.baseline, seen.delete, seen.recovery].map(|f| row.cell(&f));
        figures(
            page,
            row.name(),
            &cells,
            CELL - 1,
            &[Ink::Plain, row.hue(seen), Ink::Plain],
        );
        if row != Row::Ops {
            let cells =
                [service.baseline, service.delete, service.recovery].map(|f| row.service_cell(&f));
            figures(page, " service", &cells, CELL - 1, &[Ink::Dim; 3]);
        }
    }
}

fn header(page: &mut Page, names: &[&str], cell: usize) {
    let mut line = vec![plain(" ".repeat(NAME))];
    line.extend(names.iter().map(|name| ink(Ink::Dim, right(name, cell))));
    page.line(&line);
}

fn figures(page: &mut Page, name: &str, cells: &[String], cell: usize, inks: &[Ink]) {
    let mut line: Vec<Span> = vec![ink(Ink::Dim, format!("  {}", left(name, NAME - 2)))];
    line.extend(
        cells
            .iter()
            .zip(inks)
            .map(|(text, &hue)| ink(hue, right(text, cell))),
    );
    page.line(&line);
}

/// The rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Ops,
    P50,
    P99,
    P999,
    Max,
}

impl Row {
    const ALL: [Row; 5] = [Row::Ops, Row::P50, Row::P99, Row::P999, Row::Max];

    fn name(self) -> &'static str {
        match self {
            Row::Ops => "rate",
            Row::P50 => "p50",
            Row::P99 => "p99",
            Row::P999 => "p99.9",
            Row::Max => "max",
        }
    }

    fn value(self, figures: &Figures) -> Option<f64> {
        match self {
            Row::Ops => figures.ops_per_s,
            Row::P50 => figures.p50_us,
            Row::P99 => figures.p99_us,
            Row::P999 => figures.p999_us,
            Row::Max => figures.max_us,
        }
    }

    fn cell(self, figures: &Figures) -> String {
        let show = match self {
            Row::Ops => units::rate,
            Row::P50 | Row::P99 | Row::P999 | Row::Max => units::latency_us,
        };
        self.value(figures).map_or("–".to_owned(), show)
    }

    /// The colour of the figure during the deletion: what got worse stands out.
    fn hue(self, seen: &Foreground) -> Ink {
        if self == Row::Ops {
            return match (seen.stall, seen.ops_ratio) {
                (Some(_), _) => Ink::Red,
                (None, Some(ratio)) if ratio <= 0.9 => Ink::Yellow,
                _ => Ink::Plain,
            };
        }
        let (before, during) = (self.value(&seen.baseline), self.value(&seen.delete));
        match before.zip(during) {
            Some((before, during)) if during >= 10.0 * before => Ink::Red,
            Some((before, during)) if during >= 2.0 * before => Ink::Yellow,
            _ => Ink::Plain,
        }
    }

    /// A rate has no service time.
    fn service_cell(self, figures: &Figures) -> String {
        if self == Row::Ops {
            String::new()
        } else {
            self.cell(figures)
        }
    }
}
