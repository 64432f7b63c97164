//! The result of a run: the sentence first, then the figures it rests on, then the next step.

use ::judge::Verdict;
use ::record::RunRecord;

use super::page::{Ink, Page, ink, plain};
use super::{Style, table};
use crate::{facts, words};

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
        table::actor(&mut page, seen, record);
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
