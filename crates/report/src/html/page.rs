//! The page of a run: its sections in their order.

use judge::Verdict;
use record::RunRecord;

use super::{escape, set_up, shell, tables};
use record::units::{MIB, bytes, count, latency_us, seconds};

use crate::charts::{self, Chart, Heat, Spans};
use crate::seconds::Seconds;
use crate::svg::{self, Medium};
use crate::words;

pub(super) fn page(
    record: &RunRecord,
    verdict: &Verdict,
    seconds: &Seconds,
) -> serde_json::Result<String> {
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
    html += &heat(&charts::heat(record, seconds), &spans);
    html += &curves(record);
    html += &cost(record, verdict);
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
    *html += &shell::tools("From baseline", spans);
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

/// How long the heat maps' columns are.
fn columns(heat: &[Heat]) -> String {
    let widths = heat.iter().map(Heat::widths);
    let [least, most] = widths.fold([f64::INFINITY, 0.0], |[least, most], [a, b]| {
        [a.min(least), b.max(most)]
    });
    let (least, most) = (seconds(least), seconds(most));
    if least == most {
        format!("A column is {most}, as fine as this record has it.")
    } else {
        format!("A column is {least} during the deletion, and up to {most} elsewhere.")
    }
}

fn heat(heat: &[Heat], spans: &Spans) -> String {
    let note = match heat.is_empty() {
        true => "This record has no histograms of single seconds.".to_owned(),
        false => format!(
            "How many operations completed with which latency. A stall is a gap with a fleck high \
             above its end. {}",
            columns(heat)
        ),
    };
    let figure = |one: &Heat| {
        let about = "Operations by time and latency; the percentile curves tell the same in sum.";
        let id = format!("heat-{}", one.actor);
        svg::heat(one, spans, Medium::Page).figure(&id, about)
    };
    let figures: String = heat.iter().map(figure).collect();
    let body = shell::paragraph("note", &note) + &figures;
    shell::section("heat", "Latency heat map", &body)
}

fn curves(record: &RunRecord) -> String {
    let all = charts::curves(record);
    if all.is_empty() {
        return String::new();
    }
    let figures = shell::curves(&all, "The table above has the figures.");
    shell::section("curves", "Percentile curves", &figures)
}

fn cost(record: &RunRecord, verdict: &Verdict) -> String {
    let cost = charts::cost(record, verdict);
    if cost.is_empty() {
        return String::new();
    }
    let note = "S is the time for which one discard occupies the drive, and L its size. a is the \
        fixed time of every discard, b the time for each MiB of it: S = a + b·L. A point is an \
        interval: the mean size of its discards and their mean wait. The wait includes queueing, so \
        points lie above the line.";
    let mut about = match cost.line.map(|line| line.map(latency_us)) {
        Some([a, b]) => format!("Here S = {a} + {b} per MiB."),
        None => {
            "This record gives no a and b: they take discards of different sizes, each seen to \
            slow down the foreground."
                .to_owned()
        }
    };
    if let Some([mib, us]) = cost.service {
        let (us, size) = (latency_us(us), bytes((mib * MIB as f64) as u64));
        about += &format!(" The large dot marks S as the verdict has it: {us} at {size}.");
    }
    if let Some(beyond) = cost.beyond_in_words() {
        about += &format!(" {beyond}: the axes are cut so that the others can be seen.");
    }
    let notes = [note, &about].map(|text| shell::paragraph("note", text));
    let figure = svg::cost(&cost, &svg::drives(record), Medium::Page).figure("cost", &about);
    shell::section("cost", "Cost of a discard", &(notes.concat() + &figure))
}
