//! The frame of every page: its head, the tools above its charts, its data and scripts.

use serde::Serialize;

use super::escape;
use crate::charts::{Chart, Curves, Spans};
use crate::svg::{self, Medium};

const CSS: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");

const FOOTER: &str = "</main>\n<footer><p>Made by trimbench.</p></footer>\n";

/// How to use the script.
pub(crate) const HINT: &str = "<p class=\"note\">Point at a chart for its values. Drag to zoom, double-click to \
    go back. With the keyboard: Tab to a chart, arrow keys move the cursor (Shift: faster), Enter zooms \
    in, Backspace out, Esc goes back.</p>\n<noscript><p>Values at a cursor and zoom need JavaScript; \
    the tables have the values, too.</p></noscript>\n";

/// The content security policy: the page may load nothing.
const POLICY: &str = concat!(
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; ",
    "img-src data:; base-uri 'none'; form-action 'none'"
);

/// Buttons above the charts over time.
pub(crate) fn tools(spans: &Spans) -> String {
    let mut html = String::from(
        "<div class=\"tools\" role=\"toolbar\" aria-label=\"Zoom of all charts over time\" hidden>\n",
    );
    for (sign, label, by) in [
        ("+", "Zoom in", ".5 0"),
        ("−", "Zoom out", "2 0"),
        ("◀", "Earlier", "1 -.5"),
        ("▶", "Later", "1 .5"),
    ] {
        html += &format!(
            "<button type=\"button\" data-by=\"{by}\" aria-label=\"{label}\">{sign}</button>\n"
        );
    }
    let stretches = [
        ("Stall", "stall", spans.stalls()),
        ("From baseline", "view", Some(spans.view)),
        ("All", "all", Some(spans.all)),
    ];
    for (name, id, stretch) in stretches {
        if let Some([from, to]) = stretch {
            html += &format!(
                "<button type=\"button\" id=\"{id}\" data-to=\"{from} {to}\">{name}</button>\n"
            );
        }
    }
    html + "</div>\n"
}

/// Everything before the body's first element.
pub(crate) fn begin(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"trimbench\">\n\
         <title>{} – trimbench</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n",
        escape::text(title)
    )
}

/// The end of `<main>` and of the page, with the script.
pub(crate) fn end(html: String) -> String {
    html + &format!("{FOOTER}<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
}

/// Returns the begin of a page of charts: a link to its timeline, what was found, and a heading.
pub(crate) fn header(class: &str, found: &str, heading: &str, more: &str) -> String {
    format!(
        "<a class=\"skip\" href=\"#timeline\">To the timeline</a>\n<header>\n\
         <p class=\"finding {class}\">{found}</p>\n<h1>{heading}</h1>\n{more}\
         <button type=\"button\" id=\"theme\" hidden>Dark or light</button>\n</header>\n<main>\n"
    )
}

/// Returns a section with its heading.
pub(crate) fn section(id: &str, title: &str, body: &str) -> String {
    format!(
        "<section aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n{body}</section>\n"
    )
}

/// Returns a paragraph of plain text.
pub(crate) fn paragraph(class: &str, text: &str) -> String {
    format!("<p class=\"{class}\">{}</p>\n", escape::prose(text))
}

/// Returns an item of a list, of plain text.
pub(crate) fn item(class: &str, text: &str) -> String {
    format!("<li class=\"{class}\">{}</li>\n", escape::prose(text))
}

/// Returns a text that is shown on demand.
pub(crate) fn details(title: &str, text: &str) -> String {
    let text = escape::text(text);
    format!("<details><summary>{title}</summary>\n<pre tabindex=\"0\">{text}</pre>\n</details>\n")
}

/// Returns something as JSON that is shown on demand.
///
/// # Errors
/// If it can't be written as JSON.
pub(crate) fn json(title: &str, of: &impl Serialize) -> serde_json::Result<String> {
    Ok(details(title, &serde_json::to_string_pretty(of)?))
}

/// A cell of a table as HTML, and its class.
pub(crate) type Cell = (String, &'static str);

/// A cell without a class.
pub(crate) fn cell(text: &str) -> Cell {
    (escape::prose(text), "")
}

/// A table; `of` follows its name: attributes, `>`, a caption. The first cell of a row names it.
pub(crate) fn table(of: &str, head: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    let mut html = format!("<table{of}\n<thead><tr>");
    for name in head {
        html += &match name.is_empty() {
            true => "<td></td>".to_owned(),
            false => format!("<th scope=\"col\">{}</th>", escape::text(name)),
        };
    }
    html += "</tr></thead>\n<tbody>\n";
    for row in rows {
        html += "<tr>";
        for (i, (text, class)) in row.iter().enumerate() {
            let class = match class.is_empty() {
                true => String::new(),
                false => format!(" class=\"{class}\""),
            };
            html += &match i {
                0 => format!("<th scope=\"row\"{class}>{text}</th>"),
                _ => format!("<td{class}>{text}</td>"),
            };
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table>\n"
}

/// A table that can be wider than a phone, with the hint that it scrolls: the script shows it where
/// it does.
pub(crate) fn wide(class: &str, title: &str, table: &str) -> String {
    let title = escape::text(title);
    format!(
        "<p class=\"more\" hidden>Scroll the table sideways to see all of it. →</p>\n\
         <div class=\"overflow {class}\" tabindex=\"0\" role=\"group\" aria-label=\"{title}\">\n{table}</div>\n"
    )
}

/// Charts over time, with what their axes leave out.
pub(crate) fn charts(html: &mut String, charts: &[Chart], spans: &Spans) {
    for chart in charts {
        let about = "Arrow keys move the cursor, Enter zooms in, Escape goes back.";
        *html += &svg::over_time(chart, spans, Medium::Page).figure(&chart.id, about);
        if let Some(cut) = chart.cut() {
            *html += &paragraph("note cut", &format!("The axis is {cut}."));
        }
    }
}

/// Percentile curves beside each other.
pub(crate) fn curves(all: &[Curves]) -> String {
    let about = "The table above has the figures.";
    let figure = |one: &Curves| {
        svg::curves(one, Medium::Page).figure(&format!("curves-{}", one.actor), about)
    };
    let figures: String = all.iter().map(figure).collect();
    format!("<div class=\"pair\">\n{figures}</div>\n")
}
