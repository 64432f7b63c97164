//! The verdict as tables: what a person quotes, and what a screen reader reads.

use judge::Verdict;
use judge::verdict::Foreground;
use record::waits::{PhaseWaits, Wait};
use record::{Part, PhaseName, RunRecord};

use super::escape;
use super::shell::{self, cell};
use crate::charts::{Chart, Kind, Spans, Unit};
use crate::figures;
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
    let seen = verdict.foreground.iter();
    let tables: String = seen.map(|seen| actor(seen, record)).collect();
    let body = format!("<div class=\"pair\">\n{tables}</div>\n");
    shell::section("table", "Before, while discarding, and after", &body)
}

fn actor(seen: &Foreground, record: &RunRecord) -> String {
    let [before, beside, after] = figures::columns(seen);
    let caption = format!(
        ">\n<caption><b>{}</b>: {}</caption>",
        escape::text(&seen.actor),
        escape::prose(&figures::work(seen, record))
    );
    let rows = figures::lines(seen).into_iter().map(|line| {
        let classes = match line.service {
            true => ["service"; 4],
            false => ["", "", class(line.tone), ""],
        };
        let service = if line.service { " service" } else { "" };
        let name = [format!("{}{service}", line.name)];
        let cells = name.iter().chain(&line.cells).zip(classes);
        cells
            .map(|(text, class)| (escape::prose(text), class))
            .collect()
    });
    let table = shell::table(&caption, &["", before, beside, after], rows);
    let notes = figures::notes(seen).into_iter();
    let notes: String = notes.map(|note| shell::paragraph("note", &note)).collect();
    format!("<div class=\"actor\">\n{table}{notes}</div>\n")
}

/// Reasons and warnings: what to do next.
pub(super) fn advice(verdict: &Verdict, record: &RunRecord) -> String {
    if verdict.reasons.is_empty() && verdict.warnings.is_empty() {
        return String::new();
    }
    let mut html = String::from("<ul class=\"advice\" aria-label=\"What to know and to do\">\n");
    for &reason in &verdict.reasons {
        let tone = class(words::reason_tone(reason));
        html += &shell::item(tone, &words::advice(reason, verdict, record));
    }
    for warning in &verdict.warnings {
        html += &shell::item("warn", warning);
    }
    html + "</ul>\n"
}

/// The figures that the verdict rests on.
pub(super) fn figures(verdict: &Verdict) -> String {
    let facts = facts::all(verdict).into_iter().map(|fact| {
        let (label, class, text) = (fact.label, class(fact.tone), escape::prose(&fact.text));
        format!("<dt>{label}</dt><dd class=\"{class}\">{text}</dd>\n")
    });
    let body = format!("<dl>\n{}</dl>\n", facts.collect::<String>());
    shell::section("facts", "Figures", &body)
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
    let about = shell::paragraph("note", "The time of each actor's threads, added up.");
    let (deletion, others) = (waits_table(&deletion), waits_table(&others));
    let others = format!("<details><summary>Waits in other phases</summary>\n{others}</details>\n");
    shell::section(
        "waits",
        "Who waited in what",
        &(about + &deletion + &others),
    )
}

fn waits_table(waits: &[Waited<'_>]) -> String {
    let row = |(actor, phase, wait): &Waited<'_>| {
        let control = match phase.part {
            Part::Control => "control ",
            Part::Main => "",
        };
        let call = wait.call.as_ref().map(|call| format!(" ({call})"));
        let discards = match wait.discards {
            0 => String::new(),
            count => format!("{} of ", record::units::count(count)),
        };
        let cause = format!(
            "{discards}{}{}",
            wait.cause.about(),
            call.unwrap_or_default()
        );
        vec![
            cell(actor),
            cell(&format!("{control}{}", words::phase(phase.phase))),
            cell(&cause),
            cell(&record::units::seconds(wait.seconds)),
            cell(&record::units::percent(wait.share)),
            cell(&record::units::count(wait.looks)),
        ]
    };
    let head = ["actor", "phase", "waited for", "time", "share", "looks"];
    let table = shell::table(">", &head, waits.iter().map(row));
    shell::wide("waits", "Who waited in what", &table)
}

/// The timeline in rows: of each stretch the extremes that the charts show.
pub(super) fn over_time(record: &RunRecord, charts: &[Chart], spans: &Spans) -> String {
    let lines: Vec<_> = charts
        .iter()
        // Of the latencies the extremes say most.
        .flat_map(|chart| {
            let skip = if chart.bands { 1 } else { 0 };
            chart.lines.iter().skip(skip).map(move |line| (chart, line))
        })
        .collect();
    let names: Vec<String> = lines
        .iter()
        .map(|(chart, line)| match chart.lines.len() {
            1 => chart.title.clone(),
            _ => format!("{}: {}", chart.title, line.name),
        })
        .collect();
    let head: Vec<&str> = ["from", "phase"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .collect();
    let begin = record.intervals.at_s.first().copied().unwrap_or(0.0);
    let long = (record.intervals.end_s() - begin) / ROWS as f64;
    let stretches = if long > 0.0 { ROWS } else { 0 };
    let row = |n: usize| {
        let from = begin + n as f64 * long;
        let to = from + long;
        let mut cells = vec![cell(&format!("{from:.1} s")), (phase(spans, from, to), "")];
        for (chart, line) in &lines {
            let inside = chart.x.iter().zip(&line.y);
            let inside = inside.filter(|&(&x, y)| from <= x && x < to && y.is_finite());
            let (least, most) = inside
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (_, &y)| {
                    (a.min(y), b.max(y))
                });
            cells.push((range(chart.unit, least, most), ""));
        }
        cells
    };
    let title = "The timeline as a table";
    let table = shell::table(">", &head, (0..stretches).map(row));
    format!(
        "<details class=\"wide\"><summary>{title}</summary>\n\
         <p class=\"note\">The least and the most in each stretch of time.</p>\n{}</details>\n",
        shell::wide("fine", title, &table)
    )
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
        Unit::PerSecond => record::units::rate(value),
        Unit::Us => record::units::latency_us(value),
        Unit::BytesPerSecond => format!("{}/s", record::units::bytes_decimal(value as u64)),
        Unit::Bytes => record::units::bytes(value as u64),
        Unit::Count => record::units::count(value as u64),
        Unit::Share => record::units::percent(value),
    }
}
