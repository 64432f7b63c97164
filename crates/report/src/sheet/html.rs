//! A sheet as one page, without scripts.

use super::{Sheet, Table, svg};
use crate::html::escape;
use crate::html::shell::{self, cell};
use crate::svg::shapes::within_a_page;

/// The page; `json` is the same content for programs, shown folded.
pub fn html(of: &Sheet, json: &str) -> String {
    let mut html = shell::begin(&of.title);
    html += &format!(
        "<header>\n<p class=\"finding plain\">SUITE</p>\n<h1>{}</h1>\n",
        escape::text(&of.title)
    );
    for line in &of.about {
        html += &format!("<p class=\"summary\">{}</p>\n", escape::prose(line));
    }
    html += "</header>\n<main>\n";
    if !of.notes.is_empty() {
        html += "<ul class=\"advice\" aria-label=\"What follows\">\n";
        for note in &of.notes {
            html += &format!("<li class=\"info\">{}</li>\n", escape::prose(note));
        }
        html += "</ul>\n";
    }
    if !of.panels.is_empty() {
        html += "<section aria-labelledby=\"charts-title\">\n\
                 <h2 id=\"charts-title\">Side by side</h2>\n\
                 <p class=\"note\">Bars are medians; a line goes from the least to the most. Each \
                 chart has its own scale.</p>\n\
                 <div class=\"overflow charts\" tabindex=\"0\" role=\"group\" \
                 aria-label=\"Small charts\">\n";
        html += within_a_page(&svg(of));
        html += "</div>\n</section>\n";
    }
    for (i, one) in of.tables.iter().enumerate() {
        html += &table(one, i);
    }
    html += &format!(
        "<details><summary>Figures as JSON</summary>\n<pre tabindex=\"0\">{}</pre>\n</details>\n",
        escape::text(json)
    );
    html + "</main>\n<footer><p>Made by trimbench.</p></footer>\n</body>\n</html>\n"
}

fn table(of: &Table, number: usize) -> String {
    let title = escape::text(&of.title);
    let mut html = format!(
        "<section aria-labelledby=\"table-{number}\">\n<h2 id=\"table-{number}\">{title}</h2>\n"
    );
    if !of.note.is_empty() {
        html += &format!("<p class=\"note\">{}</p>\n", escape::prose(&of.note));
    }
    let head: Vec<&str> = of.columns.iter().map(String::as_str).collect();
    let rows = of
        .rows
        .iter()
        .map(|row| row.iter().map(|text| cell(text)).collect());
    let table = shell::table(">", &head, rows);
    html + &format!(
        "<div class=\"overflow\" tabindex=\"0\" role=\"group\" aria-label=\"{title}\">\n{table}</div>\n</section>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sheet::tests::sample;

    #[test]
    fn a_page_holds_every_figure_and_no_script() {
        let page = html(&sample(), "{\"a\": \"</pre><script>\"}");
        for part in [
            "152\u{a0}s (150\u{a0}s to 155\u{a0}s)",
            "<svg",
            "Recommended",
            "x|fs",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(
            page.matches("<table>").count(),
            page.matches("</table>").count()
        );
    }
}
