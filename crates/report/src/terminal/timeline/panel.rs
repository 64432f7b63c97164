//! Bars several rows high, out of eighth blocks.

use crate::terminal::glyphs::right;
use crate::terminal::page::{Ink, Page, Span, ink};

/// Columns left of the plot: a label, and the line that bounds it.
pub(super) const GUTTER: usize = 12;

/// Eighths of a cell, from nothing to all of it.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One plot.
#[derive(Debug)]
pub(super) struct Panel {
    /// One label per row, from the top; as many rows as labels.
    pub(super) labels: Vec<String>,
    /// Height of each column, 0 to 1; `None` where there is nothing to draw.
    pub(super) bars: Vec<Option<f64>>,
    /// A second height, drawn lightly above the bar; empty if there is none.
    pub(super) shade: Vec<Option<f64>>,
    /// Colour of each column.
    pub(super) inks: Vec<Ink>,
}

impl Panel {
    pub(super) fn draw(&self, page: &mut Page) {
        let rows = self.labels.len();
        for (row, label) in self.labels.iter().enumerate() {
            // A label that is a place on the scale has a tick, a name has none.
            let tick =
                row == 0 || row + 1 == rows && label.starts_with(|c: char| c.is_ascii_digit());
            let mut line = vec![gutter(label, tick)];
            for (column, &hue) in self.inks.iter().enumerate() {
                let above = rows - 1 - row;
                let bar = eighths(self.bars[column], rows);
                let shade = eighths(self.shade.get(column).copied().flatten(), rows);
                let glyph = cell(bar, shade, above);
                let hue = if glyph == '░' { Ink::Dim } else { hue };
                push(&mut line, hue, glyph);
            }
            page.line(&line);
        }
    }
}

/// The label of a row and the line that bounds the plot.
pub(super) fn gutter(label: &str, tick: bool) -> Span {
    let bound = if tick { '┤' } else { '│' };
    ink(Ink::Dim, format!("{}{bound}", right(label, GUTTER - 1)))
}

/// Adds a glyph to the line, to its last span if that has the colour.
pub(super) fn push(line: &mut Vec<Span>, hue: Ink, glyph: char) {
    match line.last_mut() {
        Some(last) if last.ink == hue => last.text.push(glyph),
        _ => line.push(ink(hue, glyph)),
    }
}

/// Height in eighths of a row. Any value above 0 shows at least one.
fn eighths(height: Option<f64>, rows: usize) -> usize {
    match height {
        Some(height) if height > 0.0 => {
            let all = rows * 8;
            ((height * all as f64).round() as usize).clamp(1, all)
        }
        _ => 0,
    }
}

fn cell(bar: usize, shade: usize, row: usize) -> char {
    let part = |n: usize| n.saturating_sub(row * 8).min(8);
    match (part(bar), part(shade)) {
        (0, shade) if shade >= 4 => '░',
        (bar, _) => EIGHTHS[bar],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Style;

    fn drawn(rows: usize, bars: &[Option<f64>], shade: &[Option<f64>]) -> String {
        let mut labels = vec![String::new(); rows];
        labels[0] = "top".into();
        let panel = Panel {
            labels,
            bars: bars.to_vec(),
            shade: shade.to_vec(),
            inks: vec![Ink::Plain; bars.len()],
        };
        let mut page = Page::new(&Style {
            colour: false,
            width: 40,
            unicode: true,
        });
        panel.draw(&mut page);
        page.finish()
    }

    #[test]
    fn heights_are_in_eighths() {
        let bars = [
            None,
            Some(0.0),
            Some(1e-9),
            Some(0.5),
            Some(0.8125),
            Some(1.0),
        ];
        assert_eq!(
            drawn(2, &bars, &[]),
            "        top┤    ▅█\n           │  ▁███\n"
        );
    }

    #[test]
    fn the_mean_is_a_shade_above_the_least() {
        let bars = [Some(0.5), Some(0.0)];
        assert_eq!(
            drawn(2, &bars, &[Some(1.0), Some(0.5)]),
            "        top┤░\n           │█░\n"
        );
    }
}
