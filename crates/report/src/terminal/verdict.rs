//! The result of a run: the sentence first, then the figures it rests on, then the next step.

use ::judge::Verdict;
use ::judge::verdict::{Figures, Foreground};
use ::record::RunRecord;

use super::Style;
use super::glyphs::{left, right};
use super::page::{Ink, Page, Span, ink, plain};
use crate::figures::{Row, columns, notes};
use crate::{facts, figures, words};

/// Columns of the labels at the left.
const LABEL: usize = 13;

/// Shows the result of a run: the sentence, the tables, the cost, and the next step.
pub fn verdict(verdict: &Verdict, record: &RunRecord, style: &Style) -> String {
    let mut page = Page::new(style);
    let (tone, heading) = words::finding(verdict.verdict);
    page.labelled(
        ink(Ink::bold(tone), heading),
        heading.len() + 2,
        &[ink(Ink::Bold, verdict.summary.as_str())],
    );
    page.blank();
    for seen in &verdict.foreground {
        actor(&mut page, seen, record);
        page.blank();
    }
    for fact in facts::all(verdict) {
        let label = ink(Ink::Dim, format!("  {}", fact.label));
        page.labelled(label, LABEL, &[ink(Ink::of(fact.tone), fact.text)]);
    }
    checked(&mut page, verdict);
    advice(&mut page, verdict, record);
    page.finish()
}

/// Shows the result of each `--fail-on`, a line each; nothing without one.
pub fn conditions(verdict: &Verdict, style: &Style) -> String {
    let mut page = Page::new(style);
    checked(&mut page, verdict);
    page.finish()
}

fn checked(page: &mut Page, verdict: &Verdict) {
    for checked in &verdict.conditions {
        let (tone, text) = words::condition(checked);
        let label = ink(Ink::Dim, "  --fail-on");
        page.labelled(label, LABEL, &[ink(Ink::of(tone), text)]);
    }
}

fn advice(page: &mut Page, verdict: &Verdict, record: &RunRecord) {
    if !verdict.reasons.is_empty() || !verdict.warnings.is_empty() {
        page.blank();
    }
    for &reason in &verdict.reasons {
        let hue = Ink::of(words::reason_tone(reason));
        page.labelled(
            ink(hue, "- "),
            2,
            &[plain(words::advice(reason, verdict, record))],
        );
    }
    for warning in &verdict.warnings {
        page.labelled(ink(Ink::Yellow, "! "), 2, &[plain(warning.as_str())]);
    }
}

/// Columns of the rows' names.
const NAME: usize = 10;
/// Columns of a figure.
const CELL: usize = 10;
/// Columns of the figure in the middle, which has a long name.
const MIDDLE: usize = 18;

/// The actor's title, its table, and what its latencies count from.
fn actor(page: &mut Page, seen: &Foreground, record: &RunRecord) {
    let name = ink(Ink::Bold, seen.actor.as_str());
    let what = ink(Ink::Dim, format!(": {}", figures::work(seen, record)));
    page.labelled(plain(""), 2, &[name, what]);
    match figures::services(seen) {
        Some(services) if page.width() >= 2 + NAME + 6 * CELL => {
            side_by_side(page, seen, &services);
        }
        _ => stacked(page, seen),
    }
    for note in notes(seen) {
        page.labelled(plain(""), 2, &[ink(Ink::Dim, note)]);
    }
}

fn side_by_side(page: &mut Page, seen: &Foreground, services: &[Figures; 3]) {
    header(page, &columns(seen), &[2 * CELL; 3]);
    header(page, &["response", "service"].repeat(3), &[CELL; 6]);
    for row in Row::known(seen) {
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
fn stacked(page: &mut Page, seen: &Foreground) {
    let room = page.width().saturating_sub(NAME + 2 * CELL);
    let widths = [CELL, room.clamp(CELL, MIDDLE), CELL];
    header(page, &columns(seen), &widths);
    for line in figures::lines(seen) {
        let (name, inks) = match line.service {
            true => (" service", [Ink::Dim; 3]),
            false => (line.name, [Ink::Plain, Ink::of(line.tone), Ink::Plain]),
        };
        figures(page, name, &line.cells, &widths, &inks);
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
