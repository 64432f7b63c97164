//! The page of a run: its sections in their order.

use judge::Verdict;
use record::RunRecord;

use super::{escape, set_up, shell, tables};
use record::units::count;

use crate::charts::{self, Chart, Spans};
use crate::words;

pub(super) fn page(record: &RunRecord, verdict: &Verdict) -> serde_json::Result<String> {
    let (tone, heading) = words::finding(verdict.verdict);
    let title = match record.head.target.path.as_str() {
        "" => heading.to_owned(),
        path => format!("{heading}: {path}"),
    };
    let mut html = shell::begin(&title);
    let summary = escape::prose(&verdict.summary);
    let set_up = set_up::lines(&record.head);
    html += &shell::header(tables::class(tone), heading, &summary, &set_up);
    html += &tables::before_during_after(verdict, record);
    html += &tables::advice(verdict, record);
    html += &tables::figures(verdict);
    html += &tables::waits(verdict);
    let spans = charts::spans(record, verdict);
    timeline(&mut html, record, &spans);
    html += &curves(record);
    html += &set_up::section(record, verdict)?;
    Ok(shell::end(html))
}

fn timeline(html: &mut String, record: &RunRecord, spans: &Spans) {
    let charts = charts::over_time(record);
    *html += "<section id=\"timeline\" aria-labelledby=\"timeline-title\">\n\
              <h2 id=\"timeline-title\">Timeline</h2>\n\
              <p class=\"note\">Grey bands: phases. Red: the actor stalled. Yellow: it \
              dipped. Latencies are response times; the maximum includes the wait of the \
              oldest operation still in flight.</p>\n";
    *html += &events(spans);
    *html += shell::HINT;
    *html += &shell::tools(spans);
    let most = charts.iter().map(|chart: &Chart| chart.x.len()).max();
    if let Some(most) = most.filter(|&most| most < record.intervals.len()) {
        let (most, all) = (count(most as u64), count(record.intervals.len() as u64));
        let note = format!(
            "Each line has at most {most} of the record's {all} intervals: in each stretch those with \
             the least and the greatest value, half of them during the deletion. The CSV has all."
        );
        *html += &shell::paragraph("note", &note);
    }
    shell::charts(html, &charts, spans);
    *html += &tables::over_time(record, &charts, spans);
    *html += "</section>\n";
}

/// The dashed lines in words, with their moments.
fn events(spans: &Spans) -> String {
    if spans.events.is_empty() {
        return String::new();
    }
    let lettered = spans.lettered().into_iter();
    let lines: Vec<String> = lettered
        .map(|(letter, event)| format!("{letter} {} at {:.2} s", event.word, event.at))
        .collect();
    shell::paragraph(
        "note events",
        &format!("Dashed lines: {}.", lines.join("; ")),
    )
}

fn curves(record: &RunRecord) -> String {
    let all = charts::curves(record);
    if all.is_empty() {
        return String::new();
    }
    let figures = shell::curves(&all);
    shell::section("curves", "Percentile curves", &figures)
}
