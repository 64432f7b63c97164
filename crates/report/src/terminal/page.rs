//! Lines of text in colour that keep three promises, whatever their content. No line is
//! wider than the terminal. Without colour there are no escape codes (names of files and
//! drives can hold some). Where Unicode isn't shown, all is ASCII.

use super::Style;
use crate::words::Tone;
use record::units::is_unit;

use super::glyphs::{ascii, columns, cut, is_harmless, left, split_at_columns, wide};

/// Colours by meaning are chosen where text is made; these are the sixteen that
/// every theme has, so that they are readable on light and dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
    BoldRed,
    BoldGreen,
    BoldYellow,
}

impl Ink {
    /// The look of a tone.
    pub(super) fn of(tone: Tone) -> Ink {
        match tone {
            Tone::Plain => Ink::Plain,
            Tone::Good => Ink::Green,
            Tone::Note => Ink::Blue,
            Tone::Warn => Ink::Yellow,
            Tone::Bad => Ink::Red,
        }
    }

    /// The same in a heading.
    pub(super) fn bold(tone: Tone) -> Ink {
        match tone {
            Tone::Plain | Tone::Note => Ink::Bold,
            Tone::Good => Ink::BoldGreen,
            Tone::Warn => Ink::BoldYellow,
            Tone::Bad => Ink::BoldRed,
        }
    }

    /// The parameters of the SGR sequence (ECMA-48) that switches it on.
    fn code(self) -> &'static str {
        match self {
            Ink::Plain => "",
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Red => "31",
            Ink::Green => "32",
            Ink::Yellow => "33",
            Ink::Blue => "34",
            Ink::Magenta => "35",
            Ink::Cyan => "36",
            Ink::BoldRed => "1;31",
            Ink::BoldGreen => "1;32",
            Ink::BoldYellow => "1;33",
        }
    }
}

/// Text in one colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) ink: Ink,
    pub(super) text: String,
}

/// Text in a colour.
pub(super) fn ink(ink: Ink, text: impl Into<String>) -> Span {
    Span {
        ink,
        text: text.into(),
    }
}

/// Text as it is.
pub(super) fn plain(text: impl Into<String>) -> Span {
    ink(Ink::Plain, text)
}

/// Text that grows line by line.
#[derive(Debug)]
pub(super) struct Page {
    style: Style,
    text: String,
}

impl Page {
    pub(super) fn new(style: &Style) -> Self {
        Page {
            style: *style,
            text: String::new(),
        }
    }

    /// Columns a line may have.
    pub(super) fn width(&self) -> usize {
        usize::from(self.style.width.max(40))
    }

    /// Adds a line; what is beyond the width is cut.
    pub(super) fn line(&mut self, spans: &[Span]) {
        let mut room = self.width();
        let total: usize = spans.iter().map(|span| columns(&span.text)).sum();
        let cut_needed = total > room;
        let mut line = String::new();
        for span in spans {
            let wide = columns(&span.text);
            let last = cut_needed && wide >= room;
            let text = match last {
                // One column more than there is makes `cut` mark the place.
                true => cut(&format!("{} ", span.text), room),
                false => span.text.clone(),
            };
            room -= columns(&text);
            self.paint(&mut line, span.ink, &text);
            if last {
                break;
            }
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds an empty line.
    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Adds a text under a label, wrapped between words and indented under
    /// itself. The label takes `indent` columns.
    pub(super) fn labelled(&mut self, label: Span, indent: usize, text: &[Span]) {
        // However deep a label is, the text keeps some room.
        let indent = indent.min(self.width() - 20);
        let mut line = vec![Span {
            ink: label.ink,
            text: left(&label.text, indent),
        }];
        let mut used = indent;
        let mut fresh = true;
        for span in text {
            for word in words(&span.text) {
                let mut word = word;
                let wide = columns(&word.text);
                if !fresh && used + usize::from(word.spaced) + wide > self.width() {
                    self.line(&line);
                    line = vec![plain(" ".repeat(indent))];
                    used = indent;
                    fresh = true;
                }
                // A path longer than the line has to break somewhere.
                while fresh && indent + columns(&word.text) > self.width() {
                    let (head, tail) = split_at_columns(&word.text, self.width() - indent);
                    line.push(ink(span.ink, head));
                    self.line(&line);
                    line = vec![plain(" ".repeat(indent))];
                    used = indent;
                    word.text = tail;
                }
                let space = if !fresh && word.spaced { " " } else { "" };
                let text = format!("{space}{}", word.text);
                used += columns(&text);
                line.push(ink(span.ink, text));
                fresh = false;
            }
        }
        self.line(&line);
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn paint(&self, out: &mut String, ink: Ink, text: &str) {
        let start = out.len();
        for c in text.chars() {
            let c = if is_harmless(c) { c } else { '\u{fffd}' };
            match self.style.unicode || c.is_ascii() {
                true => out.push(c),
                false => out.extend(std::iter::repeat_n(ascii(c), wide(c))),
            }
        }
        let code = ink.code();
        if self.style.colour && !code.is_empty() && !out[start..].trim().is_empty() {
            out.insert_str(start, &format!("\x1b[{code}m"));
            out.push_str("\x1b[0m");
        }
    }
}

/// A word, and whether a space was before it.
struct Word {
    text: String,
    spaced: bool,
}

/// Splits at spaces, but keeps a figure and its unit together.
fn words(text: &str) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let leading = text.starts_with(' ');
    for word in text.split_whitespace() {
        let spaced = leading || !out.is_empty();
        match out.last_mut() {
            Some(last) if is_unit(word) && last.text.ends_with(|c: char| c.is_ascii_digit()) => {
                last.text.push(' ');
                last.text.push_str(word);
            }
            _ => out.push(Word {
                text: word.to_owned(),
                spaced,
            }),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STYLE: Style = Style {
        colour: false,
        width: 40,
        unicode: true,
    };

    #[test]
    fn a_long_text_is_indented_under_itself() {
        let mut page = Page::new(&STYLE);
        let text = "the longest took 16.9 s, the foreground lost 16.2 s";
        page.labelled(plain("stall"), 8, &[plain(text)]);
        assert_eq!(
            page.finish(),
            "stall   the longest took 16.9 s, the\n        foreground lost 16.2 s\n"
        );
    }

    #[test]
    fn a_figure_keeps_its_unit() {
        let mut page = Page::new(&STYLE);
        page.labelled(
            plain(""),
            0,
            &[plain("thirty-eight columns are before 12345 ms")],
        );
        page.labelled(
            plain(""),
            0,
            &[plain("thirty-nine columns are before it 12345 ms.")],
        );
        let text = page.finish();
        assert!(text.contains("before 12345 ms\n"), "{text}");
        assert!(text.contains("before it\n12345 ms.\n"), "{text}");
    }

    #[test]
    fn a_name_cannot_send_escape_codes() {
        let mut page = Page::new(&STYLE);
        page.line(&[plain("a\x1b[2Jb\u{202e}c\td")]);
        assert_eq!(page.finish(), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\n");
    }

    #[test]
    fn colour_ends_with_its_text() {
        let mut page = Page::new(&Style {
            colour: true,
            ..STYLE
        });
        page.line(&[ink(Ink::BoldRed, "STALL"), plain(" here")]);
        assert_eq!(page.finish(), "\x1b[1;31mSTALL\x1b[0m here\n");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide(text in any::<String>(), label in any::<String>(),
                               width in 0_u16..120, indent in 0_usize..200, unicode: bool) {
            let mut page = Page::new(&Style { colour: false, width, unicode });
            page.line(&[plain(label.clone()), plain(text.clone())]);
            page.labelled(plain(label), indent, &[plain(text.clone()), ink(Ink::Red, text)]);
            for line in page.finish().lines() {
                prop_assert!(columns(line) <= usize::from(width.max(40)), "{line:?}");
                prop_assert!(unicode || line.is_ascii());
            }
        }
    }
}
