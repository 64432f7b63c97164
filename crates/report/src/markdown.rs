//! The verdict for an issue, a mail or a blog: GitHub's flavour of Markdown.

use judge::Verdict;
use record::RunRecord;

use crate::terminal::{self, Style};
use crate::words::Tone;
use crate::{facts, figures, words};
use record::units::names::{harmless, is_harmful};

/// The sentence, a table per actor, the figures, what to do next, and the
/// set-up folded away. Names are shown as they are: none becomes markup.
pub fn verdict(verdict: &Verdict, record: &RunRecord) -> String {
    let (_, heading) = words::finding(verdict.verdict);
    let mut text = format!("**{heading}** — {}\n\n", escaped(&verdict.summary));
    for seen in &verdict.foreground {
        let what = figures::work(seen, record);
        text += &format!("**{}**: {}\n\n", escaped(&seen.actor), escaped(&what));
        table(&mut text, seen);
    }
    for fact in facts::all(verdict) {
        text += &format!("- **{}**: {}\n", fact.label, escaped(&fact.text));
    }
    text.push('\n');
    for &reason in &verdict.reasons {
        let sign = match words::reason_tone(reason) {
            Tone::Note => "ℹ️",
            _ => "⚠️",
        };
        let advice = words::advice(reason, verdict, record);
        text += &format!("> {sign} {}\n>\n", escaped(&advice));
    }
    for warning in &verdict.warnings {
        text += &format!("> ⚠️ {}\n>\n", escaped(warning));
    }
    if text.ends_with(">\n") {
        text.truncate(text.len() - 2);
        text.push('\n');
    }
    set_up(&mut text, record);
    text
}

fn table(text: &mut String, seen: &judge::verdict::Foreground) {
    let [before, beside, after] = figures::columns(seen);
    *text += &format!("| | {before} | {beside} | {after} |\n|---|--:|--:|--:|\n");
    for line in figures::lines(seen) {
        let service = if line.service { " (service)" } else { "" };
        let bold = match line.tone {
            Tone::Bad | Tone::Warn => "**",
            _ => "",
        };
        let [before, beside, after] = &line.cells;
        *text += &format!(
            "| {}{service} | {before} | {bold}{beside}{bold} | {after} |\n",
            line.name
        );
    }
    text.push('\n');
    for note in figures::notes(seen) {
        *text += &format!("<sub>{}</sub>\n", escaped(&note));
    }
    text.push('\n');
}

fn set_up(text: &mut String, record: &RunRecord) {
    let head = &record.head;
    let style = Style {
        colour: false,
        width: 100,
        unicode: true,
    };
    *text += "<details><summary>Set-up</summary>\n\n";
    fenced(text, "text", &terminal::set_up(head, &style));
    *text += &format!(
        "trimbench {}, {}, intervals of {} ms; the scenario as it was run:\n\n",
        escaped(&head.version),
        words::utc(head.started_unix_s),
        head.interval_ms
    );
    let scenario = serde_json::to_string_pretty(&head.scenario).unwrap_or_default();
    fenced(text, "json", &scenario);
    *text += "</details>\n";
}

/// A block that nothing in it can end: its fence is longer than any inside.
fn fenced(text: &mut String, language: &str, body: &str) {
    let mut longest = 2;
    let mut run = 0;
    for c in body.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    *text += &format!(
        "{fence}{language}\n{}\n{fence}\n\n",
        harmless(body.trim_end())
    );
}

/// Text in which nothing is markup; line ends become spaces, control characters vanish.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            // A reference or a mention in an issue would notify somebody.
            '@' => safe += "&#64;",
            '#' => safe += "&#35;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => {
                safe.push('\\');
                safe.push(c);
            }
            c if c.is_whitespace() => safe.push(' '),
            c if is_harmful(c) => {}
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use judge::verdict::Reason;

    use super::*;
    use crate::common::T500;

    #[test]
    fn sentence_tables_figures_and_set_up() {
        let mut told = T500.verdict();
        told.reasons.push(Reason::DipsWithoutDiscards);
        let text = verdict(&told, &T500.record());
        assert!(text.starts_with("**STALL** — Deleting 1.0 TiB stalled reads for 16.9 s"));
        assert!(text.contains("| rate | 92,100/s | **3,920/s** | 92,100/s |"));
        assert!(text.contains("| p99 (service) |"));
        assert!(text.contains("\n> ⚠️ The foreground was slow"));
        assert!(text.contains("ext4 at /data from /dev/nvme0n1p2"));
        assert!(text.ends_with("</details>\n"));
    }

    #[test]
    fn names_do_not_become_markup() {
        let mut told = T500.verdict();
        let mut record = T500.record();
        let name = "<img src=x>|@someone\n# a `b` **c** [d](e)";
        told.foreground[0].actor = name.into();
        record.head.actors[0].name = name.into();
        record.head.target.path = "/x/```\n# out".into();
        let text = verdict(&told, &record);
        let (told, _) = text.split_once("<details>").unwrap();
        for markup in ["<img", "@someone", "\n# a", "`b`", "[d]("] {
            assert!(
                !told.replace("\\`", "").replace("\\[", "").contains(markup),
                "{markup}"
            );
        }
        assert!(told.contains("\\*\\*c\\*\\*") && told.contains("\\`b\\`"));
    }
}
