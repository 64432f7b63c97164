//! Phases, events and seconds under the plots.

use ::record::Part;
use ::record::RunRecord;

use super::panel::{GUTTER, gutter};
use super::window::Window;
use crate::charts::events;
use crate::terminal::glyphs::columns;
use crate::terminal::page::{Ink, Page, ink, plain};
use crate::words;

/// Columns between two labelled ticks, at least.
const TICK_ROOM: usize = 9;

/// A line of phases with their borders: `├ baseline ──┼ delete ──┤`.
pub(super) fn phases(page: &mut Page, record: &RunRecord, part: Part, window: &Window) {
    let width = window.columns.len();
    let mut starts: Vec<(usize, &str)> = Vec::new();
    for phase in record.phases.iter().filter(|phase| phase.part == part) {
        if let Some(column) = window.column(phase.at_s) {
            // Of two phases in one column the later is the one that lasts.
            starts.retain(|&(other, _)| other < column);
            starts.push((column, words::phase(phase.name)));
        }
    }
    if starts.is_empty() {
        return;
    }
    let mut line = vec!['─'; width];
    for (n, &(column, name)) in starts.iter().enumerate() {
        line[column] = if n == 0 { '├' } else { '┼' };
        let end = starts.get(n + 1).map_or(width, |&(next, _)| next);
        let label = format!(" {name} ");
        if column + 1 + label.len() <= end {
            for (i, c) in label.chars().enumerate() {
                line[column + 1 + i] = c;
            }
        }
    }
    let blank = starts[0].0;
    line[..blank].fill(' ');
    page.line(&[
        gutter("phase", false),
        plain(line.iter().collect::<String>()),
    ]);
}

/// The events: a digit each in the plot, and in words below.
pub(super) struct Events {
    marks: Vec<char>,
    legend: Vec<(char, String)>,
}

impl Events {
    pub(super) fn of(record: &RunRecord, window: &Window) -> Events {
        let mut marks = vec![' '; window.columns.len()];
        let mut legend = Vec::new();
        let mut names = "123456789abcdefghijklmnopqrstuvwxyz".chars();
        for event in events(record) {
            let Some(column) = window.column(event.at) else {
                continue;
            };
            // Events can be closer than a column; the next free one will do.
            let free = (column..marks.len())
                .chain((0..column).rev())
                .find(|&at| marks[at] == ' ');
            if let (Some(free), Some(name)) = (free, names.next()) {
                marks[free] = name;
                legend.push((name, format!("{} {:.1} s", event.word, event.at)));
            }
        }
        Events { marks, legend }
    }

    pub(super) fn draw_marks(&self, page: &mut Page) {
        if !self.legend.is_empty() {
            let marks: String = self.marks.iter().collect();
            page.line(&[gutter("events", false), ink(Ink::Bold, marks)]);
        }
    }

    pub(super) fn draw_legend(&self, page: &mut Page) {
        let mut line = vec![plain(" ".repeat(GUTTER))];
        let mut used = GUTTER;
        for (name, text) in &self.legend {
            let wide = columns(text) + 2;
            if used > GUTTER && used + 3 + wide > page.width() {
                page.line(&line);
                line = vec![plain(" ".repeat(GUTTER))];
                used = GUTTER;
            }
            if used > GUTTER {
                line.push(plain("   "));
                used += 3;
            }
            line.push(ink(Ink::Bold, *name));
            line.push(ink(Ink::Dim, format!(" {text}")));
            used += wide;
        }
        if used > GUTTER {
            page.line(&line);
        }
    }
}

/// Ticks and seconds since the record's zero.
pub(super) fn seconds(page: &mut Page, window: &Window) {
    let width = window.columns.len();
    let per_column = window.seconds_per_column();
    let step = round_step(per_column * TICK_ROOM as f64);
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let mut line = vec!['─'; width];
    let mut labels = " ".repeat(GUTTER);
    let mut at = (window.from_s / step).ceil();
    let mut first = true;
    while let Some(column) = window.column(at * step) {
        // Where the numbers are too large for their step to count, don't loop for ever.
        if at + 1.0 == at {
            break;
        }
        line[column] = '┬';
        let unit = if first { " s" } else { "" };
        let label = format!("{:.decimals$}{unit}", at * step);
        let number = label.len() - unit.len();
        let place = (GUTTER + column).saturating_sub(number / 2);
        let used = labels.len();
        if place > used || first {
            labels += &" ".repeat(place.saturating_sub(used));
            labels += &label;
            first = false;
        }
        at += 1.0;
    }
    let corner = format!("{}└", " ".repeat(GUTTER - 1));
    let ticks: String = line.iter().collect();
    page.line(&[ink(Ink::Dim, corner + &ticks)]);
    page.line(&[ink(Ink::Dim, labels)]);
}

/// The least of 1, 2, 5, 10, 20, … (also below 1) that isn't less.
fn round_step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|n| n * decade)
        .find(|&step| step >= least)
        .unwrap_or(10.0 * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (least, step) in [
            (0.04, 0.05),
            (1.0, 1.0),
            (1.1, 2.0),
            (6.0, 10.0),
            (450.0, 500.0),
        ] {
            assert!((round_step(least) - step).abs() < 1e-9 * step, "{least}");
        }
    }
}
