//! A comparison for an issue, a mail or a blog: GitHub's flavour of Markdown.

use judge::compare::Comparison;

use super::words;
use crate::markdown::escaped;
use crate::words::{Tone, finding};

/// The sentences, a table for each actor, what differs in the set-up, and the
/// runs' own verdicts. Names are shown as they are: none becomes markup.
pub fn comparison(comparison: &Comparison) -> String {
    let mut text = String::new();
    for summary in &comparison.summaries {
        text += &format!("**{}**\n\n", escaped(summary));
    }
    for table in words::tables(comparison) {
        text += &format!("### {}\n\n", escaped(&table.title));
        let groups = 1..comparison.groups.len();
        let (same, differing) = words::same_and_others(&table.rows, groups);
        if !same.is_empty() {
            let same = escaped(&words::same(same.iter()).join(", "));
            text += &format!("Same: {same}.\n\n");
        }
        if differing.is_empty() {
            continue;
        }
        let names = comparison.groups.iter().map(|group| group.name.as_str());
        let mut header = String::from("| |");
        for (i, name) in names.enumerate() {
            header += &format!(" {} |", escaped(name));
            header += if i > 0 { " change |" } else { "" };
        }
        let columns = 2 * comparison.groups.len().max(1) - 1;
        text += &format!("{header}\n|---|{}\n", "--:|".repeat(columns));
        for row in differing {
            text += &format!("| {} |", row.figure.label());
            for (i, side) in row.shown().iter().enumerate() {
                text += &format!(" {side} |");
                if let Some(change) = i.checked_sub(1).and_then(|i| row.changes.get(i)) {
                    let shown = words::change(row, change);
                    text += &match words::tone(row, change) {
                        Tone::Bad | Tone::Warn => format!(" **{shown}** |"),
                        _ => format!(" {shown} |"),
                    };
                }
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text += &format!("<sub>{}</sub>\n\n", words::LEGEND);
    set_up(&mut text, comparison);
    for warning in words::warnings(comparison) {
        text += &format!("> ⚠️ {}\n>\n", escaped(&warning));
    }
    for note in &comparison.notes {
        text += &format!("> ℹ️ {}\n>\n", escaped(note));
    }
    if text.ends_with(">\n") {
        text.truncate(text.len() - 2);
        text.push('\n');
    }
    text += "<details><summary>Each run</summary>\n\n";
    for group in &comparison.groups {
        for run in &group.runs {
            let (_, heading) = finding(run.verdict);
            let [group, run, summary] = [&group.name, &run.name, &run.summary].map(|s| escaped(s));
            text += &format!("- {group}, {run}: **{heading}** — {summary}\n");
        }
    }
    text + "\n</details>\n"
}

fn set_up(text: &mut String, comparison: &Comparison) {
    let differences = words::set_up(comparison);
    if differences.is_empty() {
        *text += "No difference in the set-up is known.\n\n";
        return;
    }
    *text += "### What differs in the set-up\n\n| |";
    for group in &comparison.groups {
        *text += &format!(" {} |", escaped(&group.name));
    }
    *text += &format!("\n|---|{}\n", "---|".repeat(comparison.groups.len()));
    for difference in differences {
        *text += &format!("| {} |", escaped(&difference.name));
        for values in &difference.values {
            *text += &format!(" {} |", escaped(&words::values(values)));
        }
        text.push('\n');
    }
    text.push('\n');
}
