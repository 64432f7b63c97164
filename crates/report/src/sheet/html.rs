//! A sheet as one page, without scripts.

use super::{Sheet, Table};
use crate::html::escape;
use crate::html::shell::{self, cell, paragraph};

/// The page; `json` is the same content for programs, shown folded.
pub fn html(of: &Sheet, json: &str) -> String {
    let title = escape::text(&of.title);
    let about: String = of
        .about
        .iter()
        .map(|line| paragraph("summary", line))
        .collect();
    let mut html = shell::begin(&of.title);
    html += &format!(
        "<header>\n<p class=\"finding plain\">SUITE</p>\n<h1>{title}</h1>\n{about}</header>\n<main>\n"
    );
    if !of.notes.is_empty() {
        let notes: String = of
            .notes
            .iter()
            .map(|note| shell::item("info", note))
            .collect();
        html += &format!("<ul class=\"advice\" aria-label=\"What follows\">\n{notes}</ul>\n");
    }
    for (i, one) in of.tables.iter().enumerate() {
        html += &table(one, i);
    }
    html += &shell::details("Figures as JSON", json);
    shell::end_without_script(html)
}

fn table(of: &Table, number: usize) -> String {
    let note = match of.note.as_str() {
        "" => String::new(),
        note => paragraph("note", note),
    };
    let head: Vec<&str> = of.columns.iter().map(String::as_str).collect();
    let cells = |row: &Vec<String>| row.iter().map(|text| cell(text)).collect();
    let table = shell::table(">", &head, of.rows.iter().map(cells));
    let body = note + &shell::overflow("", &of.title, &table);
    shell::section(&format!("table-{number}"), &escape::text(&of.title), &body)
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
