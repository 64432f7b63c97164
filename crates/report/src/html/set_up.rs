//! The set-up: all that is needed to repeat the run.

use judge::Verdict;
use record::RunRecord;
use record::{DeviceInfo, EndReason, EventKind, Head};

use super::escape;
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
    let told = |text: &Option<String>| {
        let text = text
            .as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty());
        text.map(str::to_owned)
    };
    let mut text = match told(&device.model) {
        Some(model) => format!("{model} ({})", device.name),
        None => device.name.clone(),
    };
    if let Some(firmware) = told(&device.firmware) {
        text += &format!(", firmware {firmware}");
    }
    if device.size_bytes > 0 {
        text += &format!(", {}", record::units::bytes(device.size_bytes));
    }
    text
}

fn place(head: &Head) -> Vec<String> {
    let mut parts = Vec::new();
    let on = match head.host.name.as_str() {
        "" => String::new(),
        name => format!(" on {name}"),
    };
    let place = format!("{}{on}", head.target.path);
    if !place.is_empty() {
        parts.push(place.trim_start().to_owned());
    }
    if !head.host.kernel.is_empty() {
        parts.push(format!("Linux {}", head.host.kernel));
    }
    // An imported log may have no clock.
    if head.started_unix_s > 0.0 {
        parts.push(words::utc(head.started_unix_s));
    }
    parts
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
    let mut html = format!(
        "<section aria-labelledby=\"setup-title\">\n<h2 id=\"setup-title\">Set-up</h2>\n\
         <pre tabindex=\"0\">{}</pre>\n<dl>\n",
        escape::text(&terminal::set_up(head, &style))
    );
    let end = match &record.end {
        None => "the record breaks off: the run was killed".to_owned(),
        Some(end) => {
            let how = match end.reason {
                EndReason::Completed => "completed",
                EndReason::Interrupted => "interrupted",
                EndReason::Failed => "failed",
            };
            let why = end.message.as_deref().map(|why| format!(": {why}"));
            format!("{how} after {:.1} s{}", end.at_s, why.unwrap_or_default())
        }
    };
    for (name, value) in [
        ("version", format!("trimbench {}", head.version)),
        (
            "started",
            match head.started_unix_s > 0.0 {
                true => words::utc(head.started_unix_s),
                false => String::new(),
            },
        ),
        (
            "intervals",
            format!("{} of {} ms", record.intervals.len(), head.interval_ms),
        ),
        ("options", head.target.options.join(", ")),
        ("end", end),
    ] {
        if value.is_empty() {
            continue;
        }
        html += &format!("<dt>{name}</dt><dd>{}</dd>\n", escape::prose(&value));
    }
    html += "</dl>\n";
    let told = record.events.iter().filter(|event| {
        matches!(event.kind, EventKind::Warning | EventKind::Prepared) && event.detail.is_some()
    });
    let notes: Vec<String> = told
        .map(|event| {
            let detail = event.detail.as_deref().unwrap_or_default();
            format!(
                "<li>{:.1}&nbsp;s: {}</li>\n",
                event.at_s,
                escape::prose(detail)
            )
        })
        .collect();
    if !notes.is_empty() {
        html += &format!(
            "<h3>Noted while it ran</h3>\n<ul>\n{}</ul>\n",
            notes.concat()
        );
    }
    for (title, text) in [
        (
            "Scenario, as it was run",
            serde_json::to_string_pretty(&head.scenario)?,
        ),
        ("Devices", serde_json::to_string_pretty(&head.devices)?),
        ("Verdict as JSON", serde_json::to_string_pretty(verdict)?),
    ] {
        html += &format!(
            "<details><summary>{title}</summary>\n<pre tabindex=\"0\">{}</pre>\n</details>\n",
            escape::text(&text)
        );
    }
    Ok(html + "</section>\n")
}
