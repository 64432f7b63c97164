//! A comparison as one page, in the form of the report's.

use judge::compare::{Comparison, Group};

use super::overlay::{self, Overlay};
use super::words;
use crate::html::shell::{self, cell};
use crate::html::{escape, tables};
use crate::words::{Tone, finding};

/// The page of a comparison of these groups.
///
/// # Errors
/// If the comparison can't be written as JSON.
pub fn page(comparison: &Comparison, groups: &[Group<'_>]) -> serde_json::Result<String> {
    let names: Vec<&str> = comparison.groups.iter().map(|g| g.name.as_str()).collect();
    let title = names.join(" and ");
    let mut html = shell::begin(&format!("Comparison of {title}"));
    let summaries = comparison.summaries.iter();
    let summaries: String = summaries
        .map(|text| shell::paragraph("summary", text))
        .collect();
    let heading = escape::text(&title);
    html += &shell::header("plain", "COMPARISON", &heading, &summaries);
    let drawn = overlay::overlay(groups, comparison);
    timeline(&mut html, &drawn);
    html += &figures(comparison);
    html += &runs(comparison);
    html += &curves(&drawn);
    html += &set_up(comparison);
    let json = serde_json::to_string_pretty(comparison)?;
    Ok(shell::end(
        html + &shell::details("Comparison as JSON", &json),
    ))
}

fn runs(comparison: &Comparison) -> String {
    let mut html = "<dl>\n".to_owned();
    for group in &comparison.groups {
        let name = words::group(&group.name, group.runs.len());
        html += &format!("<dt>{}</dt><dd>", escape::text(&name));
        for run in &group.runs {
            let (tone, heading) = finding(run.verdict);
            let file = match group.runs.len() {
                1 => String::new(),
                _ => escape::text(&format!(" {}:", run.name)),
            };
            let (class, summary) = (tables::class(tone), escape::prose(&run.summary));
            html +=
                &format!("<div><span class=\"{class}\">{heading}</span>{file} {summary}</div>\n");
        }
        html += "</dd>\n";
    }
    html += "</dl>\n<ul class=\"advice\" aria-label=\"What to know\">\n";
    html.extend(
        comparison
            .notes
            .iter()
            .map(|note| shell::item("info", note)),
    );
    let warnings = words::warnings(comparison).into_iter();
    html.extend(warnings.map(|warning| shell::item("warn", &warning)));
    shell::section("runs", "What each found", &(html + "</ul>\n"))
}

fn figures(comparison: &Comparison) -> String {
    let mut html =
        shell::paragraph("note", words::LEGEND) + &shell::paragraph("note", words::COLOURS);
    for table in words::tables(comparison) {
        let mut head = vec![""];
        for (i, group) in comparison.groups.iter().enumerate() {
            head.push(&group.name);
            head.extend((i > 0).then_some("change"));
        }
        let rows = table.rows.iter().map(|row| {
            let mut cells = vec![cell(row.figure.label())];
            for (i, side) in words::sides(row).iter().enumerate() {
                cells.push(cell(side));
                if let Some(change) = i.checked_sub(1).and_then(|i| row.changes.get(i)) {
                    let class = match words::tone(row, change) {
                        Tone::Plain => "change",
                        Tone::Good => "change good",
                        Tone::Note => "change info",
                        Tone::Warn => "change warn",
                        Tone::Bad => "change bad",
                    };
                    cells.push((bracketed(&words::change(row, change)), class));
                }
            }
            cells
        });
        let caption = escape::text(&table.title);
        let caption = format!(">\n<caption><b>{caption}</b></caption>");
        let shown = shell::table(&caption, &head, rows);
        html += &shell::wide("actor", &table.title, &shown);
    }
    shell::section("table", "Figures", &html)
}

/// A change whose interval in brackets stays on one line.
fn bracketed(change: &str) -> String {
    match change.split_once(" (") {
        Some((by, interval)) => {
            let interval = escape::text(interval).replace(' ', "\u{a0}");
            format!("{} ({interval}", escape::prose(by))
        }
        None => escape::prose(change),
    }
}

fn timeline(html: &mut String, drawn: &Overlay) {
    let medians = match drawn.medians {
        true => "; of repeats the median",
        false => "",
    };
    let about = format!(
        "Time 0 is each run's first deletion call; of an imported log, which has none, its first \
         discards. The charts begin with the longest deletion and twice its length on both sides. \
         A point is {} long: the mean rate in it, or the longest latency{medians}.",
        record::units::seconds(drawn.spans.step_s)
    );
    *html += "<section id=\"timeline\" aria-labelledby=\"timeline-title\">\n\
              <h2 id=\"timeline-title\">Timeline</h2>\n";
    *html += &shell::paragraph("note", &about);
    *html += shell::HINT;
    if !drawn.adrift.is_empty() {
        let runs = drawn.adrift.join(", ");
        let note = "Neither a deletion nor discards tell where time 0 is in";
        *html += &format!(
            "<p class=\"note\">{note} {}: it begins with the record there.</p>\n",
            escape::text(&runs)
        );
    }
    if !drawn.spans.lanes.is_empty() {
        let note = "The bars above a chart show when each line's foreground stalled, in the colours \
            and the order of the legend.";
        *html += &shell::paragraph("note", note);
    }
    *html += &shell::tools("Deletion", &drawn.spans);
    shell::charts(html, &drawn.charts, &drawn.spans);
    *html += "</section>\n";
}

fn curves(drawn: &Overlay) -> String {
    if drawn.curves.is_empty() {
        return String::new();
    }
    let note = match drawn.medians {
        true => "Response times; of repeats all operations together.",
        false => "Response times.",
    };
    let figures = shell::curves(&drawn.curves, "The tables above have the figures.");
    let body = shell::paragraph("note", note) + &figures;
    shell::section("curves", "Percentile curves during the deletion", &body)
}

fn set_up(comparison: &Comparison) -> String {
    let title = "What differs in the set-up";
    let others = words::set_up(comparison);
    if others.is_empty() {
        return shell::section("setup", title, "<p>Nothing that is known.</p>\n");
    }
    let mut head = vec![""];
    head.extend(comparison.groups.iter().map(|group| group.name.as_str()));
    let rows = others.iter().map(|difference| {
        let values = difference.values.iter().map(|values| words::values(values));
        let cells = [difference.name.clone()].into_iter().chain(values);
        cells.map(|text| (escape::text(&text), "")).collect()
    });
    let table = shell::table(" class=\"setup\">", &head, rows);
    shell::section("setup", title, &shell::wide("", title, &table))
}
