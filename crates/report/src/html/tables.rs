//! The verdict as tables: what a person quotes, and what a screen reader reads.

use judge::Verdict;
use judge::verdict::Foreground;
use record::waits::{PhaseWaits, Wait};
use record::{Part, PhaseName, RunRecord};

use super::{escape, shell};
use crate::charts::{Chart, Kind, Spans, Unit};
use crate::figures::{self, Row};
use crate::words::Tone;
use crate::{facts, words};

/// Rows of the timeline as a table.
const ROWS: usize = 60;

/// The class that gives a tone its colour.
pub(crate) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Good => "good",
        Tone::Note => "info",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
    }
}

/// A table for each actor.
pub(super) fn before_during_after(verdict: &Verdict, record: &RunRecord) -> String {
    let mut html = String::from(
        "<section aria-labelledby=\"table-title\">\n\
         <h2 id=\"table-title\">Before, while discarding, and after</h2>\n<div class=\"pair\">\n",
    );
    for seen in &verdict.foreground {
        actor(&mut html, seen, record);
    }
    html + "</div>\n</section>\n"
}

fn actor(html: &mut String, seen: &Foreground, record: &RunRecord) {
    let info = record.head.actors.iter().find(|a| a.name == seen.actor);
    let what = info.map_or_else(
        || format!("{}, {}", seen.op, words::loop_kind(&seen.loop_kind)),
        words::actor,
    );
    let [before, beside, after] = figures::columns(seen);
    *html += &format!(
        "<div class=\"actor\">\n<table>\n<caption><b>{}</b>: {}</caption>\n<thead><tr><td></td>\
         <th scope=\"col\">{before}</th><th scope=\"col\">{beside}</th><th scope=\"col\">{after}</th>\
         </tr></thead>\n<tbody>\n",
        escape::text(&seen.actor),
        escape::prose(&what)
    );
    let services = figures::services(seen);
    for row in Row::told(seen) {
        let [before, beside, after] = figures::compared(seen).map(|f| escape::prose(&row.cell(&f)));
        *html += &format!(
            "<tr><th scope=\"row\">{}</th><td>{before}</td><td class=\"{}\">{beside}</td>\
             <td>{after}</td></tr>\n",
            row.name(),
            class(row.tone(seen))
        );
        if let Some(services) = services.filter(|_| row != Row::Ops) {
            let [before, beside, after] = services.map(|f| escape::prose(&row.service_cell(&f)));
            *html += &format!(
                "<tr class=\"service\"><th scope=\"row\">{} service</th><td>{before}</td>\
                 <td>{beside}</td><td>{after}</td></tr>\n",
                row.name()
            );
        }
    }
    *html += "</tbody>\n</table>\n";
    for note in figures::notes(seen) {
        *html += &format!("<p class=\"note\">{}</p>\n", escape::prose(&note));
    }
    *html += "</div>\n";
}

/// Reasons and warnings: what to do next.
pub(super) fn advice(verdict: &Verdict, record: &RunRecord) -> String {
    if verdict.reasons.is_empty() && verdict.warnings.is_empty() {
        return String::new();
    }
    let mut html = String::from("<ul class=\"advice\" aria-label=\"What to know and to do\">\n");
    for &reason in &verdict.reasons {
        html += &format!(
            "<li class=\"{}\">{}</li>\n",
            class(words::reason_tone(reason)),
            escape::prose(&words::advice(reason, verdict, record))
        );
    }
    for warning in &verdict.warnings {
        html += &format!("<li class=\"warn\">{}</li>\n", escape::prose(warning));
    }
    html + "</ul>\n"
}

/// The figures that the verdict rests on.
pub(super) fn figures(verdict: &Verdict) -> String {
    let mut html = String::from(
        "<section aria-labelledby=\"facts-title\">\n<h2 id=\"facts-title\">Figures</h2>\n<dl>\n",
    );
    for fact in facts::all(verdict) {
        html += &format!(
            "<dt>{}</dt><dd class=\"{}\">{}</dd>\n",
            fact.label,
            class(fact.tone),
            escape::prose(&fact.text)
        );
    }
    html + "</dl>\n</section>\n"
}

/// An actor, a phase, and a wait of that actor in it.
type Waited<'a> = (&'a str, &'a PhaseWaits, &'a Wait);

/// In what each actor waited: during the deletion, then in the other phases. Nothing where nobody
/// watched.
pub(super) fn waits(verdict: &Verdict) -> String {
    let actors = verdict.waits.iter().flat_map(|waits| &waits.actors);
    let phases = actors.flat_map(|one| one.phases.iter().map(move |phase| (one, phase)));
    let waits = phases.flat_map(|(one, phase)| {
        let waits = phase.waits.iter().filter(|wait| wait.share >= 0.001);
        waits.map(move |wait| (one.actor.as_str(), phase, wait))
    });
    let mut waits: Vec<Waited<'_>> = waits.collect();
    // By the time blocked; who runs or sleeps comes last.
    waits.sort_by(|(.., a), (.., b)| {
        let blocked = b.cause.is_blocked().cmp(&a.cause.is_blocked());
        blocked.then(b.seconds.total_cmp(&a.seconds))
    });
    let (deletion, others): (Vec<_>, Vec<_>) = waits
        .into_iter()
        .partition(|(_, phase, _)| (phase.phase, phase.part) == (PhaseName::Delete, Part::Main));
    if deletion.is_empty() {
        return String::new();
    }
    format!(
        "<section aria-labelledby=\"waits-title\">\n<h2 id=\"waits-title\">Who waited in what</h2>\n\
         <p class=\"note\">The time of each actor&#39;s threads, added up.</p>\n{}\
         <details><summary>Waits in other phases</summary>\n{}</details>\n</section>\n",
        waits_table(&deletion),
        waits_table(&others)
    )
}

fn waits_table(waits: &[Waited<'_>]) -> String {
    let mut html = shell::wide("waits", "Who waited in what");
    html += "<table>\n<thead><tr><th scope=\"col\">actor</th><th scope=\"col\">phase</th>\
             <th scope=\"col\">waited for</th><th scope=\"col\">time</th>\
             <th scope=\"col\">share</th><th scope=\"col\">looks</th></tr></thead>\n<tbody>\n";
    for (actor, phase, wait) in waits {
        let control = match phase.part {
            Part::Control => "control ",
            Part::Main => "",
        };
        let call = wait.call.as_ref().map(|call| format!(" ({call})"));
        let discards = match wait.discards {
            0 => String::new(),
            count => format!("{} of ", units::count(count)),
        };
        html += &format!(
            "<tr><th scope=\"row\">{}</th><td>{control}{}</td><td>{discards}{}{}</td><td>{}</td>\
             <td>{}</td><td>{}</td></tr>\n",
            escape::text(actor),
            words::phase(phase.phase),
            wait.cause.words(),
            escape::text(&call.unwrap_or_default()),
            escape::prose(&units::seconds(wait.seconds)),
            escape::prose(&units::percent(wait.share)),
            units::count(wait.looks),
        );
    }
    html + "</tbody>\n</table>\n</div>\n"
}

/// The timeline in rows: of each stretch the extremes that the charts show.
pub(super) fn over_time(record: &RunRecord, charts: &[Chart], spans: &Spans) -> String {
    let mut html = String::from(
        "<details class=\"wide\"><summary>The timeline as a table</summary>\n\
         <p class=\"note\">The least and the most in each stretch of time.</p>\n",
    );
    html += &shell::wide("fine", "The timeline as a table");
    html += "<table>\n<thead><tr><th scope=\"col\">from</th><th scope=\"col\">phase</th>";
    let lines: Vec<_> = charts
        .iter()
        // Of the latencies the extremes say most.
        .flat_map(|chart| {
            let skip = if chart.bands { 1 } else { 0 };
            chart.lines.iter().skip(skip).map(move |line| (chart, line))
        })
        .collect();
    for (chart, line) in &lines {
        let name = if chart.lines.len() == 1 {
            chart.title.clone()
        } else {
            format!("{}: {}", chart.title, line.name)
        };
        html += &format!("<th scope=\"col\">{}</th>", escape::text(&name));
    }
    html += "</tr></thead>\n<tbody>\n";
    let begin = record.intervals.at_s.first().copied().unwrap_or(0.0);
    let long = (record.intervals.end_s() - begin) / ROWS as f64;
    let stretches = if long > 0.0 { ROWS } else { 0 };
    for n in 0..stretches {
        let from = begin + n as f64 * long;
        let to = from + long;
        html += &format!(
            "<tr><th scope=\"row\">{from:.1} s</th><td>{}</td>",
            phase(spans, from, to)
        );
        for (chart, line) in &lines {
            let inside = chart.x.iter().zip(&line.y);
            let inside = inside.filter(|&(&x, y)| from <= x && x < to && y.is_finite());
            let (least, most) = inside
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (_, &y)| {
                    (a.min(y), b.max(y))
                });
            html += &format!("<td>{}</td>", range(chart.unit, least, most));
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table>\n</div>\n</details>\n"
}

/// The phase that the middle of a stretch is in, and whether an actor stalled in it.
fn phase(spans: &Spans, from: f64, to: f64) -> String {
    let phases = spans.phases.iter().rev();
    let mut text = phases
        .into_iter()
        .find(|phase| phase.from <= (from + to) / 2.0)
        .map_or(String::new(), |phase| {
            let control = if phase.control { "control " } else { "" };
            format!("{control}{}", phase.name)
        });
    for (kind, word) in [(Kind::Stall, "stall"), (Kind::Dip, "dip")] {
        let mut marks = spans.marks.iter().filter(|mark| mark.kind == kind);
        if marks.any(|mark| mark.from < to && from < mark.to) {
            text += &format!(", <b>{word}</b>");
        }
    }
    text
}

fn range(unit: Unit, least: f64, most: f64) -> String {
    if least > most {
        return "–".to_owned();
    }
    let (least, most) = (shown(unit, least), shown(unit, most));
    if least == most {
        most
    } else {
        format!("{least} – {most}")
    }
}

/// A value of a chart, with its unit.
pub(crate) fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::PerSecond => units::rate(value),
        Unit::Us => units::latency_us(value),
        Unit::BytesPerSecond => format!("{}/s", units::bytes_decimal(value as u64)),
        Unit::Bytes => units::bytes(value as u64),
        Unit::Count => units::count(value as u64),
        Unit::Share => units::percent(value),
    }
}
