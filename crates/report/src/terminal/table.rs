//! One actor before discards, beside them, and after.

use ::judge::verdict::{Figures, Foreground};
use ::record::{ActorInfo, RunRecord};

use super::glyphs::{left, right};
use super::page::{Ink, Page, Span, ink, plain};
use crate::figures::{self, Row, columns, notes};
use crate::words;

/// Columns of the rows' names.
const NAME: usize = 10;
/// Columns of a figure.
const CELL: usize = 10;
/// Columns of the figure in the middle, which has a long name.
const MIDDLE: usize = 18;

/// The actor's title, its table, and what its latencies count from.
pub(super) fn actor(page: &mut Page, seen: &Foreground, record: &RunRecord) {
    let info = record.head.actors.iter().find(|a| a.name == seen.actor);
    title(page, seen, info);
    match figures::services(seen) {
        Some(services) if page.width() >= 2 + NAME + 6 * CELL => {
            side_by_side(page, seen, &services);
        }
        services => stacked(page, seen, services),
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

fn side_by_side(page: &mut Page, seen: &Foreground, services: &[Figures; 3]) {
    header(page, &columns(seen), &[2 * CELL; 3]);
    header(page, &["response", "service"].repeat(3), &[CELL; 6]);
    for row in Row::told(seen) {
        let hue = Ink::of(row.tone(seen));
        let inks = [Ink::Plain, Ink::Dim, hue, Ink::Dim, Ink::Plain, Ink::Dim];
        let pairs = figures::compared(seen).into_iter().zip(services);
        let cells: Vec<String> = pairs
            .flat_map(|(response, service)| [row.cell(&response), row.service_cell(service)])
            .collect();
        figures(page, row.name(), &cells, &[CELL; 6], &inks);
    }
}

/// Three columns. Service times, if there are some, have rows of their own.
fn stacked(page: &mut Page, seen: &Foreground, services: Option<[Figures; 3]>) {
    let room = page.width().saturating_sub(NAME + 2 * CELL);
    let widths = [CELL, room.clamp(CELL, MIDDLE), CELL];
    header(page, &columns(seen), &widths);
    for row in Row::told(seen) {
        let cells = figures::compared(seen).map(|f| row.cell(&f));
        let inks = [Ink::Plain, Ink::of(row.tone(seen)), Ink::Plain];
        figures(page, row.name(), &cells, &widths, &inks);
        if let Some(services) = services.filter(|_| row != Row::Ops) {
            let cells = services.map(|f| row.service_cell(&f));
            figures(page, " service", &cells, &widths, &[Ink::Dim; 3]);
        }
    }
}

fn header(page: &mut Page, names: &[&str], widths: &[usize]) {
    let mut line = vec![plain(" ".repeat(NAME))];
    let cells = names.iter().zip(widths);
    line.extend(cells.map(|(name, &width)| ink(Ink::Dim, right(name, width))));
    page.line(&line);
}

fn figures(page: &mut Page, name: &str, cells: &[String], widths: &[usize], inks: &[Ink]) {
    let mut line: Vec<Span> = vec![ink(Ink::Dim, format!("  {}", left(name, NAME - 2)))];
    let cells = cells.iter().zip(widths).zip(inks);
    line.extend(cells.map(|((text, &width), &hue)| ink(hue, right(text, width))));
    page.line(&line);
}
