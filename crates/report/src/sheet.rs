//! A sheet: tables with the same rows, as text.
//!
//! It knows nothing of what its figures mean: whoever measured them fills it.

use unicode_width::UnicodeWidthStr;

/// Tables and sentences about one subject.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheet {
    /// The subject.
    pub title: String,
    /// Sentences below the title: what was measured, and how.
    pub about: Vec<String>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Sentences of what follows.
    pub notes: Vec<String>,
}

/// A table whose first column names its rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// The meaning of its figures; may be empty.
    pub note: String,
    /// Names of the columns, the first of the rows' names.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

/// The sheet as plain text. Tables that are wider than `width` columns are turned: a block for each
/// row, with a line for each figure.
pub fn text(of: &Sheet, width: usize) -> String {
    let mut text = format!("{}\n", of.title);
    for line in &of.about {
        text += &format!("  {line}\n");
    }
    for table in &of.tables {
        text += &format!("\n{}", table.title);
        if !table.note.is_empty() {
            text += &format!(" ({})", table.note);
        }
        text.push('\n');
        text += &lines(table, width);
    }
    if !of.notes.is_empty() {
        text.push('\n');
    }
    for note in &of.notes {
        text += &format!("{note}\n");
    }
    // Names may come from another machine.
    record::units::names::harmless(&text)
}

/// A table's lines.
fn lines(table: &Table, width: usize) -> String {
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|i| {
            let cells = table.rows.iter().filter_map(|row| row.get(i));
            let cells = cells.chain(table.columns.get(i));
            cells.map(|cell| cell.width()).max().unwrap_or(0)
        })
        .collect();
    let needed: usize = widths.iter().map(|width| width + 2).sum();
    if needed > width {
        return turned(table);
    }
    let line = |cells: &[String]| {
        let mut line = String::new();
        for (i, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let space = " ".repeat(width.saturating_sub(cell.width()));
            line += &match i {
                0 => format!("  {cell}{space}"),
                _ => format!("  {space}{cell}"),
            };
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(&table.columns);
    for row in &table.rows {
        text += &line(row);
    }
    text
}

/// A block for each row.
fn turned(table: &Table) -> String {
    let names = table.columns.iter().skip(1);
    let width = names.map(|name| name.width()).max().unwrap_or(0);
    let mut text = String::new();
    for row in &table.rows {
        text += &format!("  {}\n", row.first().map_or("", String::as_str));
        for (name, cell) in table.columns.iter().zip(row).skip(1) {
            let space = " ".repeat(width - name.width());
            text += &format!("    {name}{space}  {cell}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sheet with everything, and a hostile name.
    fn sample() -> Sheet {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Sheet {
            title: "Suite on </script><script>alert(1)</script>".to_owned(),
            about: vec!["64 files of 16 MiB".to_owned()],
            tables: vec![Table {
                title: "mkfs".to_owned(),
                note: "on a blank drive".to_owned(),
                columns: words(&["file system", "with discard", "without"]),
                rows: vec![
                    words(&["ext4", "152 s (150 s to 155 s)", "4.9 s"]),
                    words(&["x|fs", "–", "1.0 s"]),
                ],
            }],
            notes: vec!["Recommended: a thing.".to_owned()],
        }
    }

    /// Found by the fuzz test, in the log of a suite.
    #[test]
    fn no_name_of_a_sheet_acts_on_the_terminal() {
        let mut sheet = sample();
        let hostile = "a\u{1b}[2J\u{9b}1m\u{202e}";
        sheet.title = hostile.to_owned();
        sheet.tables[0].rows[0][0] = hostile.to_owned();
        sheet.notes.push(hostile.to_owned());
        for text in [text(&sheet, 100), text(&sheet, 20)] {
            assert!(!text.contains(|c| c != '\n' && record::units::names::is_harmful(c)));
        }
    }

    #[test]
    fn text_lines_up_and_turns_where_there_is_no_room() {
        let wide = text(&sample(), 100);
        let lines: Vec<&str> = wide.lines().collect();
        assert_eq!(lines[3], "mkfs (on a blank drive)");
        assert_eq!(lines[4], "  file system            with discard  without");
        assert_eq!(lines[5], "  ext4         152 s (150 s to 155 s)    4.9 s");
        assert_eq!(lines[6], "  x|fs                              –    1.0 s");
        let narrow = text(&sample(), 40);
        assert!(
            narrow.contains("  ext4\n    with discard  152 s"),
            "{narrow}"
        );
        assert!(narrow.ends_with("\nRecommended: a thing.\n"), "{narrow}");
    }
}
