//! The run drawn over time: why it stalled is seen best where rate, latency,
//! discards and debt stand above each other on one axis.

mod axis;
mod panel;
mod picture;
mod window;

use ::judge::Verdict;
use ::judge::verdict::Foreground;
use ::record::Part;
use ::record::RunRecord;

use self::panel::GUTTER;
use self::picture::Picture;
use self::window::{Window, means};
use super::Style;
use super::page::{Ink, Page, ink};
use crate::series::Discards;

/// The run drawn over time: rates, latencies, discards, debt, phases and events.
///
/// It begins with the baseline; a control run follows in a picture of its own
/// to the same scale of rates. Empty if no interval was recorded.
pub fn timeline(record: &RunRecord, verdict: &Verdict, style: &Style) -> String {
    let mut page = Page::new(style);
    let width = page.width() - GUTTER;
    let parts: Vec<(Part, Window)> = [Part::Main, Part::Control]
        .into_iter()
        .filter_map(|part| Some((part, Window::of_part(record, part, width)?)))
        .collect();
    let rates = highest_rates(record, &parts);
    let discards = Discards::of(record);
    for (n, (part, window)) in parts.iter().enumerate() {
        if n > 0 {
            page.blank();
        }
        let foreground: &[Foreground] = match part {
            Part::Main => &verdict.foreground,
            Part::Control => verdict.control.as_ref().map_or(&[], |c| &c.foreground),
        };
        if *part == Part::Control {
            page.line(&[ink(Ink::Bold, "Control run")]);
        }
        Picture {
            record,
            part: *part,
            window,
            highest_rates: &rates,
            discards: &discards,
            foreground,
        }
        .draw(&mut page);
    }
    page.finish()
}

/// The highest rate of each actor over all pictures, so that they compare.
fn highest_rates(record: &RunRecord, parts: &[(Part, Window)]) -> Vec<f64> {
    (0..record.head.actors.len())
        .map(|actor| {
            parts
                .iter()
                .flat_map(|(_, window)| means(record, window, actor))
                .flatten()
                .fold(0.0, f64::max)
        })
        .collect()
}
