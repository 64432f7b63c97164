//! The page of a run: its sections in their order.

use judge::Verdict;
use record::RunRecord;

use super::{escape, set_up, shell, tables};
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
    html += &format!(
        "<a class=\"skip\" href=\"#timeline\">To the timeline</a>\n<header>\n\
         <p class=\"finding {}\">{heading}</p>\n<h1>{}</h1>\n{}\
         <button type=\"button\" id=\"theme\" hidden>Dark or light</button>\n</header>\n<main>\n",
        tables::class(tone),
        escape::prose(&verdict.summary),
        set_up::lines(&record.head),
    );
    html += &tables::before_during_after(verdict, record);
    html += &tables::advice(verdict, record);
    html += &tables::figures(verdict);
    html += &tables::waits(verdict);
    let spans = charts::spans(record, verdict);
    timeline(&mut html, record, &spans);
    heat(&mut html, &charts::heat(record, seconds), &spans);
    curves(&mut html, record);
    cost(&mut html, record, verdict);
    html += &set_up::section(record, verdict)?;
    Ok(shell::end(html))
}

fn timeline(html: &mut String, record: &RunRecord, spans: &Spans) {
    let charts = charts::over_time(record);
    *html += "<section id=\"timeline\" aria-labelledby=\"timeline-title\">\n\
              <h2 id=\"timeline-title\">Timeline</h2>\n\
              <p class=\"note\">Grey bands: phases. Red: the actor stalled. Yellow: it \
              dipped without discards. Latencies are response times; the maximum includes the wait of the \
              oldest operation still in flight.</p>\n";
    *html += &events(spans);
    *html += shell::HINT;
    *html += &shell::tools("From baseline", spans);
    let most = charts.iter().map(|chart: &Chart| chart.x.len()).max();
    if let Some(most) = most.filter(|&most| most < record.intervals.len()) {
        *html += &format!(
            "<p class=\"note\">Each line has at most {} of the record&#39;s {} intervals: in each stretch \
             those with the least and the greatest value, half of them during the deletion. The CSV has \
             all.</p>\n",
            record::units::count(most as u64),
            record::units::count(record.intervals.len() as u64)
        );
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
    let told: Vec<String> = lettered
        .map(|(letter, event)| format!("{letter} {} at {:.2} s", event.word, event.at))
        .collect();
    format!(
        "<p class=\"note events\">Dashed lines: {}.</p>\n",
        escape::prose(&told.join("; "))
    )
}

/// How long the heat maps' columns are.
fn columns(heat: &[Heat]) -> String {
    let widths = heat.iter().map(Heat::widths);
    let [least, most] = widths.fold([f64::INFINITY, 0.0], |[least, most], [a, b]| {
        [a.min(least), b.max(most)]
    });
    let (least, most) = (record::units::seconds(least), record::units::seconds(most));
    if least == most {
        format!("A column is {most}, as fine as this record has it.")
    } else {
        format!("A column is {least} during the deletion, and up to {most} elsewhere.")
    }
}

fn heat(html: &mut String, heat: &[Heat], spans: &Spans) {
    *html +=
        "<section aria-labelledby=\"heat-title\">\n<h2 id=\"heat-title\">Latency heat map</h2>\n";
    if heat.is_empty() {
        *html += "<p class=\"note\">This record has no histograms of single seconds.</p>\n";
    } else {
        *html += &format!(
            "<p class=\"note\">How many operations completed with which latency. A stall is a gap with a \
             fleck high above its end. {}</p>\n",
            escape::prose(&columns(heat))
        );
    }
    for one in heat {
        let about = "Operations by time and latency; the percentile curves tell the same in sum.";
        let id = format!("heat-{}", one.actor);
        *html += &svg::heat(one, spans, Medium::Page).figure(&id, about);
    }
    *html += "</section>\n";
}

fn curves(html: &mut String, record: &RunRecord) {
    let all = charts::curves(record);
    if all.is_empty() {
        return;
    }
    *html += "<section aria-labelledby=\"curves-title\">\n<h2 id=\"curves-title\">Percentile \
              curves</h2>\n";
    *html += &shell::curves(&all, "The table above has the figures.");
    *html += "</section>\n";
}

fn cost(html: &mut String, record: &RunRecord, verdict: &Verdict) {
    let cost = charts::cost(record, verdict);
    if cost.is_empty() {
        return;
    }
    *html += "<section aria-labelledby=\"cost-title\">\n<h2 id=\"cost-title\">Cost of a discard</h2>\n\
              <p class=\"note\">S is the time for which one discard occupies the drive, and L its size. a is the \
              fixed time of every discard, b the time for each MiB of it: S = a + b·L. A point is an \
              interval: the mean size of its discards and their mean wait. The wait includes queueing, so \
              points lie above the line.</p>\n";
    let mut about = match cost.line {
        Some([a, b]) => format!(
            "Here S = {} + {} per MiB.",
            record::units::latency_us(a),
            record::units::latency_us(b)
        ),
        None => {
            "This record gives no a and b: they take discards of different sizes, each seen to \
                 slow down the foreground."
                .to_owned()
        }
    };
    if let Some([mib, us]) = cost.service {
        about += &format!(
            " The large dot marks S as the verdict has it: {} at {}.",
            record::units::latency_us(us),
            record::units::bytes((mib * record::units::MIB as f64) as u64)
        );
    }
    if let Some(beyond) = cost.told_beyond() {
        about += &format!(" {beyond}: the axes are cut so that the others can be seen.");
    }
    *html += &format!("<p class=\"note\">{}</p>\n", escape::prose(&about));
    *html += &svg::cost(&cost, &svg::drives(record), Medium::Page).figure("cost", &about);
    *html += "</section>\n";
}
