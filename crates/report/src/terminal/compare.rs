//! A comparison on the terminal.

use ::judge::compare::{Change, Compared, Comparison};

use super::Style;
use super::glyphs::{columns, left, right};
use super::page::{Ink, Page, ink, plain};
use crate::compare::words;
use crate::words::finding;

/// Columns of the figures' names.
const NAME: usize = 16;
/// Least columns of a value.
const VALUE: usize = 14;
/// Columns that a change may need.
const CHANGE: usize = 30;

/// A comparison as text: the groups, a sentence each, the tables, the set-up, warnings and notes.
/// The first figures are on the first screen, and the warnings on the last.
pub fn comparison(comparison: &Comparison, style: &Style) -> String {
    let mut page = Page::new(style);
    groups(&mut page, comparison);
    page.blank();
    for summary in &comparison.summaries {
        page.labelled(plain(""), 0, &[ink(Ink::Bold, summary.as_str())]);
    }
    for table in words::tables(comparison) {
        page.blank();
        page.line(&[ink(Ink::Bold, table.title.as_str())]);
        rows(&mut page, comparison, &table.rows);
    }
    page.labelled(plain(""), 2, &[ink(Ink::Dim, words::LEGEND)]);
    set_up(&mut page, comparison);
    page.blank();
    for warning in words::warnings(comparison) {
        page.labelled(ink(Ink::Bold, "warning"), 9, &[plain(warning)]);
    }
    for note in &comparison.notes {
        page.labelled(ink(Ink::Dim, "note"), 6, &[plain(note.as_str())]);
    }
    page.finish()
}

fn groups(page: &mut Page, comparison: &Comparison) {
    for (i, group) in comparison.groups.iter().enumerate() {
        let role = if i == 0 { " – the reference" } else { "" };
        let name = words::group(&group.name, group.runs.len());
        page.line(&[ink(Ink::Bold, name), ink(Ink::Dim, role)]);
        for run in &group.runs {
            let (tone, heading) = finding(run.verdict);
            let mut text = vec![ink(Ink::bold(tone), heading)];
            if group.runs.len() > 1 {
                text.push(plain(format!(" {}:", run.name)));
            }
            text.push(plain(format!(" {}", run.summary)));
            page.labelled(plain(""), 2, &text);
        }
    }
}

fn rows(page: &mut Page, comparison: &Comparison, rows: &[&Compared]) {
    let names: Vec<&str> = comparison.groups.iter().map(|g| g.name.as_str()).collect();
    let several = names.len() > 2;
    // Names may take the room that is left.
    let longest = names.iter().map(|name| columns(name) + 2).max();
    let room = page.width().saturating_sub(2 + NAME + 2 + CHANGE) / 2;
    let wide = room >= VALUE;
    let value = longest.unwrap_or(0).min(room).max(VALUE);
    for (i, name) in names.iter().enumerate().skip(1) {
        let [before, after] = [names[0], name].map(|name| right(name, value - 1));
        let header = format!("{} {before} {after}", left("", 2 + NAME));
        let mut line = vec![ink(Ink::Dim, header)];
        if wide {
            line.push(ink(Ink::Dim, "  change"));
        }
        page.line(&line);
        let (same, differing) = words::same_and_others(rows, i..i + 1);
        for row in differing {
            let change = &row.changes[i - 1];
            if several && row.sides[i].value.is_none() && row.sides[0].value.is_none() {
                continue;
            }
            self::row(page, row, i, change, wide.then_some(value));
        }
        if !same.is_empty() {
            let name = format!("  {}", left("same", NAME));
            let text = words::same(same.iter()).join(", ");
            page.labelled(ink(Ink::Dim, name), 2 + NAME + 2, &[plain(text)]);
        }
    }
}

/// `beside`: how wide values are, where the change has room beside them.
fn row(page: &mut Page, row: &Compared, i: usize, change: &Change, beside: Option<usize>) {
    let name = format!("  {}", left(row.figure.label(), NAME));
    let wide = beside.unwrap_or(VALUE);
    let sides = row.shown();
    let value = |i: usize| right(&sides[i], wide);
    let tone = Ink::of(words::tone(row, change));
    let text = ink(tone, words::change(row, change));
    let mut line = vec![ink(Ink::Dim, name), plain(value(0)), plain(value(i))];
    if beside.is_some() {
        line.extend([plain("  "), text]);
        page.line(&line);
    } else {
        page.line(&line);
        page.labelled(plain(""), 4, &[text]);
    }
}

fn set_up(page: &mut Page, comparison: &Comparison) {
    page.blank();
    let differences = words::set_up(comparison);
    if differences.is_empty() {
        page.line(&[plain("No difference in the set-up is known.")]);
        return;
    }
    page.line(&[ink(Ink::Bold, "What differs in the set-up")]);
    for difference in differences {
        let label = format!("  {}  ", difference.name);
        let values: Vec<String> = difference.values.iter().map(|v| words::values(v)).collect();
        let indent = columns(&label);
        page.labelled(ink(Ink::Dim, label), indent, &[plain(values.join(" → "))]);
    }
}
