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
    html += &format!(
        "<a class=\"skip\" href=\"#timeline\">To the timeline</a>\n<header>\n\
         <p class=\"finding plain\">COMPARISON</p>\n<h1>{}</h1>\n",
        escape::text(&title)
    );
    for summary in &comparison.summaries {
        html += &format!("<p class=\"summary\">{}</p>\n", escape::prose(summary));
    }
    html +=
        "<button type=\"button\" id=\"theme\" hidden>Dark or light</button>\n</header>\n<main>\n";
    let drawn = overlay::overlay(groups, comparison);
    timeline(&mut html, &drawn);
    figures(&mut html, comparison);
    runs(&mut html, comparison);
    curves(&mut html, &drawn);
    set_up(&mut html, comparison);
    html += &format!(
        "<details><summary>Comparison as JSON</summary>\n<pre tabindex=\"0\">{}</pre>\n</details>\n",
        escape::text(&serde_json::to_string_pretty(comparison)?)
    );
    Ok(shell::end(html))
}

fn runs(html: &mut String, comparison: &Comparison) {
    *html += "<section aria-labelledby=\"runs-title\">\n<h2 id=\"runs-title\">What each found</h2>\n<dl>\n";
    for group in &comparison.groups {
        let name = words::group(&group.name, group.runs.len());
        *html += &format!("<dt>{}</dt><dd>", escape::text(&name));
        for run in &group.runs {
            let (tone, heading) = finding(run.verdict);
            let file = match group.runs.len() {
                1 => String::new(),
                _ => format!(" {}:", run.name),
            };
            *html += &format!(
                "<div><span class=\"{}\">{heading}</span>{} {}</div>\n",
                tables::class(tone),
                escape::text(&file),
                escape::prose(&run.summary)
            );
        }
        *html += "</dd>\n";
    }
    *html += "</dl>\n<ul class=\"advice\" aria-label=\"What to know\">\n";
    for note in &comparison.notes {
        *html += &format!("<li class=\"info\">{}</li>\n", escape::prose(note));
    }
    for warning in words::warnings(comparison) {
        *html += &format!("<li class=\"warn\">{}</li>\n", escape::prose(&warning));
    }
    *html += "</ul>\n</section>\n";
}

fn figures(html: &mut String, comparison: &Comparison) {
    *html += &format!(
        "<section aria-labelledby=\"table-title\">\n<h2 id=\"table-title\">Figures</h2>\n\
         <p class=\"note\">{}</p>\n<p class=\"note\">{}</p>\n",
        escape::prose(words::LEGEND),
        escape::prose(words::COLOURS)
    );
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
        let caption = format!(
            ">\n<caption><b>{}</b></caption>",
            escape::text(&table.title)
        );
        let shown = shell::table(&caption, &head, rows);
        *html += &shell::wide("actor", &table.title, &shown);
    }
    *html += "</section>\n";
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
    *html += &format!(
        "<section id=\"timeline\" aria-labelledby=\"timeline-title\">\n\
         <h2 id=\"timeline-title\">Timeline</h2>\n\
         <p class=\"note\">Time 0 is each run&#39;s first deletion call; of an imported log, which has none, its \
         first discards. The charts begin with the longest deletion and twice its length on both sides. \
         A point is {} long: the mean rate in it, or the longest latency{}.</p>\n{}",
        escape::prose(&record::units::seconds(drawn.spans.step_s)),
        if drawn.medians {
            "; of repeats the median"
        } else {
            ""
        },
        shell::HINT
    );
    if !drawn.adrift.is_empty() {
        *html += &format!(
            "<p class=\"note\">Neither a deletion nor discards tell where time 0 is in {}: it begins with the \
             record there.</p>\n",
            escape::text(&drawn.adrift.join(", "))
        );
    }
    if !drawn.spans.lanes.is_empty() {
        *html += "<p class=\"note\">The bars above a chart show when each line&#39;s foreground stalled, in the \
                  colours and the order of the legend.</p>\n";
    }
    *html += &shell::tools("Deletion", &drawn.spans);
    shell::charts(html, &drawn.charts, &drawn.spans);
    *html += "</section>\n";
}

fn curves(html: &mut String, drawn: &Overlay) {
    if drawn.curves.is_empty() {
        return;
    }
    *html += &format!(
        "<section aria-labelledby=\"curves-title\">\n<h2 id=\"curves-title\">Percentile curves during the \
         deletion</h2>\n<p class=\"note\">Response times{}.</p>\n",
        if drawn.medians {
            "; of repeats all operations together"
        } else {
            ""
        }
    );
    *html += &shell::curves(&drawn.curves, "The tables above have the figures.");
    *html += "</section>\n";
}

fn set_up(html: &mut String, comparison: &Comparison) {
    *html += "<section aria-labelledby=\"setup-title\">\n\
              <h2 id=\"setup-title\">What differs in the set-up</h2>\n";
    let others = words::set_up(comparison);
    if others.is_empty() {
        *html += "<p>Nothing that is known.</p>\n</section>\n";
        return;
    }
    let mut head = vec![""];
    head.extend(comparison.groups.iter().map(|group| group.name.as_str()));
    let rows = others.iter().map(|difference| {
        let values = difference.values.iter().map(|values| words::values(values));
        let cells = [difference.name.clone()].into_iter().chain(values);
        cells.map(|text| (escape::text(&text), "")).collect()
    });
    let table = shell::table(" class=\"setup\">", &head, rows);
    *html += &shell::wide("", "What differs in the set-up", &table);
    *html += "</section>\n";
}
