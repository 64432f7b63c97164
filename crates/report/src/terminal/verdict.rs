//! What a run found: the sentence first, then the figures it rests on, then what to do next.

use ::timeline::verdict::Reason;
use ::timeline::{RunRecord, Verdict};

use super::page::{Ink, Page, ink, plain};
use super::{Style, facts, table, words};

/// What a run found: the sentence, the tables, the cost, and what to do next.
pub fn verdict(verdict: &Verdict, record: &RunRecord, style: &Style) -> String {
    let mut page = Page::new(style);
    let (hue, heading) = words::finding(verdict.verdict);
    page.labelled(
        ink(hue, heading),
        heading.len() + 2,
        &[ink(Ink::Bold, verdict.summary.as_str())],
    );
    page.blank();
    for seen in &verdict.foreground {
        table::actor(&mut page, seen, record);
        page.blank();
    }
    facts::all(&mut page, verdict);
    advice(&mut page, verdict, record);
    page.finish()
}

fn advice(page: &mut Page, verdict: &Verdict, record: &RunRecord) {
    let target = &record.head.target;
    if !verdict.reasons.is_empty() || !verdict.warnings.is_empty() {
        page.blank();
    }
    for &reason in &verdict.reasons {
        let hue = if reason == Reason::NoDiscards {
            Ink::Blue
        } else {
            Ink::Yellow
        };
        page.labelled(ink(hue, "- "), 2, &[plain(words::reason(reason, target))]);
    }
    for warning in &verdict.warnings {
        page.labelled(ink(Ink::Yellow, "! "), 2, &[plain(warning.as_str())]);
    }
}
