//! One actor before, during and after the deletion.

use ::judge::verdict::{Foreground, ServiceFigures};
use ::record::{ActorInfo, RunRecord};

use super::glyphs::{left, right};
use super::page::{Ink, Page, Span, ink, plain};
use crate::figures::{Row, columns, notes};
use crate::words;

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
    for note in notes(seen) {
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
    header(page, &columns(seen), CELL);
    for row in Row::told(seen) {
        let cells = [seen.baseline, seen.delete, seen.recovery].map(|f| row.cell(&f));
        figures(
            page,
            row.name(),
            &cells,
            CELL,
            &[Ink::Plain, Ink::of(row.tone(seen)), Ink::Plain],
        );
    }
}

fn side_by_side(page: &mut Page, seen: &Foreground, service: &ServiceFigures) {
    header(page, &columns(seen), 2 * NARROW);
    header(page, &["response", "service"].repeat(3), NARROW);
    for row in Row::told(seen) {
        let hue = Ink::of(row.tone(seen));
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
    header(page, &columns(seen), CELL - 1);
    for row in Row::told(seen) {
        let cells = [seen.baseline, seen.delete, seen.recovery].map(|f| row.cell(&f));
        figures(
            page,
            row.name(),
            &cells,
            CELL - 1,
            &[Ink::Plain, Ink::of(row.tone(seen)), Ink::Plain],
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
