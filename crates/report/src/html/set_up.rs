//! The set-up: all that is needed to repeat the run.

use judge::Verdict;
use record::RunRecord;
use record::{DeviceInfo, EndReason, Event, EventKind, Head};

use super::{escape, shell};
use crate::terminal::{self, Style};
use crate::words;

/// Where and when, and on which drives: what a reader must know to compare it.
pub(super) fn lines(head: &Head) -> String {
    // Lines break between the parts, with the comma at the end.
    let span = |part: &String| format!("<span>{}", escape::prose(part));
    let lines = [place(head), stack(head)].into_iter();
    lines
        .filter(|parts| !parts.is_empty())
        .map(|parts| parts.iter().map(span).collect::<Vec<_>>().join(",</span> "))
        .map(|line| format!("<p class=\"where\">{line}</span></p>\n"))
        .collect()
}

/// The file system, and the drives below it with their firmware and size.
fn stack(head: &Head) -> Vec<String> {
    let fs = head.target.fs.clone().into_iter();
    fs.chain(head.devices.iter().filter(|d| d.leaf).map(drive))
        .collect()
}

fn drive(device: &DeviceInfo) -> String {
    let known = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or_default().trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    };
    let mut text = match known(&device.model) {
        Some(model) => format!("{model} ({})", device.name),
        None => device.name.clone(),
    };
    if let Some(firmware) = known(&device.firmware) {
        text += &format!(", firmware {firmware}");
    }
    if device.size_bytes > 0 {
        text += &format!(", {}", record::units::bytes(device.size_bytes));
    }
    text
}

fn place(head: &Head) -> Vec<String> {
    let on = match head.host.name.as_str() {
        "" => String::new(),
        name => format!(" on {name}"),
    };
    let kernel = match head.host.kernel.as_str() {
        "" => String::new(),
        kernel => format!("Linux {kernel}"),
    };
    let at = format!("{}{on}", head.target.path);
    let mut parts = vec![at.trim_start().to_owned(), kernel, started(head)];
    parts.retain(|part| !part.is_empty());
    parts
}

/// When it started; an imported log may have no clock.
fn started(head: &Head) -> String {
    match head.started_unix_s > 0.0 {
        true => words::utc(head.started_unix_s),
        false => String::new(),
    }
}

/// The section with all of it.
///
/// # Errors
/// If the scenario or the verdict can't be written as JSON.
pub(super) fn section(record: &RunRecord, verdict: &Verdict) -> serde_json::Result<String> {
    let head = &record.head;
    let style = Style {
        colour: false,
        width: 100,
        unicode: true,
    };
    let set_up = escape::text(&terminal::set_up(head, &style));
    let mut html = format!("<pre tabindex=\"0\">{set_up}</pre>\n<dl>\n");
    let intervals = record.intervals.len();
    for (name, value) in [
        ("version", format!("trimbench {}", head.version)),
        ("started", started(head)),
        (
            "intervals",
            format!("{intervals} of {} ms", head.interval_ms),
        ),
        ("options", head.target.options.join(", ")),
        ("end", end(record)),
    ] {
        if !value.is_empty() {
            html += &format!("<dt>{name}</dt><dd>{}</dd>\n", escape::prose(&value));
        }
    }
    html += "</dl>\n";
    let notes: String = record.events.iter().filter_map(note).collect();
    if !notes.is_empty() {
        html += &format!("<h3>Noted while it ran</h3>\n<ul>\n{notes}</ul>\n");
    }
    html += &shell::json("Scenario, as it was run", &head.scenario)?;
    html += &shell::json("Devices", &head.devices)?;
    html += &shell::json("Verdict as JSON", verdict)?;
    Ok(shell::section("setup", "Set-up", &html))
}

/// How it ended.
fn end(record: &RunRecord) -> String {
    let Some(end) = &record.end else {
        return "the record breaks off: the run was killed".to_owned();
    };
    let how = match end.reason {
        EndReason::Completed => "completed",
        EndReason::Interrupted => "interrupted",
        EndReason::Failed => "failed",
    };
    let why = end.message.as_deref().map(|why| format!(": {why}"));
    format!("{how} after {:.1} s{}", end.at_s, why.unwrap_or_default())
}

fn note(event: &Event) -> Option<String> {
    let is_note = matches!(event.kind, EventKind::Warning | EventKind::Prepared);
    let detail = event.detail.as_deref().filter(|_| is_note)?;
    let detail = escape::prose(detail);
    Some(format!("<li>{:.1}&nbsp;s: {detail}</li>\n", event.at_s))
}
