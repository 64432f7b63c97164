//! The frame of every page: its head, the tools above its charts, its data and scripts.

use serde::Serialize;

use super::escape;
use crate::charts::Chart;

const UPLOT_CSS: &str = include_str!("../../assets/uplot/uPlot.min.css");
const UPLOT_JS: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const UPLOT_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");
const CSS: &str = include_str!("../../assets/report.css");

/// Ours, in the order in which they need each other.
const SCRIPTS: [&str; 6] = [
    include_str!("../../assets/format.js"),
    include_str!("../../assets/theme.js"),
    include_str!("../../assets/time.js"),
    include_str!("../../assets/heat.js"),
    include_str!("../../assets/curves.js"),
    include_str!("../../assets/main.js"),
];

/// The content security policy: the page may load nothing.
const POLICY: &str = concat!(
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; ",
    "img-src data:; base-uri 'none'; form-action 'none'"
);

/// Buttons above the charts over time; `view` names the stretch that is shown first.
pub(crate) fn tools(view: &str) -> String {
    format!(
        "<div class=\"tools\" role=\"toolbar\" aria-label=\"Zoom of all charts over time\" hidden>\n\
         <button type=\"button\" data-do=\"in\" aria-label=\"Zoom in\">+</button>\n\
         <button type=\"button\" data-do=\"out\" aria-label=\"Zoom out\">−</button>\n\
         <button type=\"button\" data-do=\"left\" aria-label=\"Earlier\">◀</button>\n\
         <button type=\"button\" data-do=\"right\" aria-label=\"Later\">▶</button>\n\
         <button type=\"button\" data-do=\"stall\">Stall</button>\n\
         <button type=\"button\" data-do=\"view\">{view}</button>\n\
         <button type=\"button\" data-do=\"all\">All</button>\n\
         <label><input type=\"checkbox\" id=\"log\" checked> log latency</label>\n</div>\n"
    )
}

/// Everything before the body's first element.
pub(crate) fn begin(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"trimbench\">\n\
         <title>{} – trimbench</title>\n<style>\n{UPLOT_CSS}\n{CSS}</style>\n</head>\n<body>\n",
        escape::text(title)
    )
}

/// The end of `<main>` and of the page, with the scripts' data and the scripts.
///
/// # Errors
/// If the data can't be written as JSON.
pub(crate) fn end(mut html: String, data: &impl Serialize) -> serde_json::Result<String> {
    html += "</main>\n<footer><p>Made by trimbench. Charts: uPlot, under the licence that stands in this \
             file&#39;s source.</p></footer>\n";
    html += &format!("<!--\nuPlot:\n{UPLOT_LICENCE}-->\n");
    html += "<script type=\"application/json\" id=\"data\">";
    html += &escape::json(data)?;
    html += "</script>\n<script>\n";
    html += UPLOT_JS;
    html += "\n</script>\n<script>\n(() => {\n'use strict';\n";
    for script in SCRIPTS {
        html += script;
    }
    html += "})();\n</script>\n</body>\n</html>\n";
    Ok(html)
}

/// The begin of what holds a table that can be wider than a phone, with the hint that
/// it scrolls: the script shows it where it does.
pub(crate) fn wide(class: &str, title: &str) -> String {
    format!(
        "<p class=\"more\" hidden>Scroll the table sideways to see all of it. →</p>\n\
         <div class=\"overflow {class}\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">\n",
        escape::text(title)
    )
}

/// Places for charts over time, with what their axes leave out.
pub(crate) fn charts(html: &mut String, charts: &[Chart]) {
    for chart in charts {
        let about = "Arrow keys move the cursor, Enter zooms in, Escape goes back.";
        figure(html, &chart.id, &chart.title, about);
        if let Some(cut) = chart.cut() {
            *html += &format!(
                "<p class=\"note cut\">The axis is {}.</p>\n",
                escape::prose(&cut)
            );
        }
    }
}

/// A place for a chart: the script fills it, a screen reader reads its label.
pub(crate) fn figure(html: &mut String, id: &str, title: &str, about: &str) {
    let title = escape::prose(title);
    let about = escape::prose(about);
    *html += &format!(
        "<figure id=\"{id}\">\n<figcaption>{title}</figcaption>\n\
         <div class=\"plot\" tabindex=\"0\" role=\"group\" aria-roledescription=\"chart\" \
         aria-label=\"{title}. {about}\"></div>\n\
         <p class=\"readout\" aria-live=\"polite\"></p>\n</figure>\n"
    );
}
