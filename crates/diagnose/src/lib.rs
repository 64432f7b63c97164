//! Explains what a machine does about TRIM: from its files and the drives' own pages.
//!
//! | module | question it answers |
//! |---|---|
//! | [`forecast`] | which discards will a deletion or a trim send? |
//! | [`inspect`] | does TRIM arrive, what stops it, and what will it cost? |
//! | [`quiet`] | when does a week of I/O leave time for a trim? |
//! | [`watch`] | what do devices do now, who sends discards, and who is blocked? |
//! | [`why`] | who waits, for whom, and what has TRIM to do with it? |

#![forbid(unsafe_code)]

pub mod forecast;
pub mod inspect;
pub mod quiet;
pub mod watch;
pub mod why;

/// How a text looks in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
    /// Whether it shows colours.
    pub colour: bool,
}

/// Breaks a text at spaces, so that no line is wider than the terminal if words allow it. `first`
/// and `rest` begin the first line and the others. A number and its unit stay together.
fn wrapped(text: &str, width: usize, first: &str, rest: &str) -> String {
    let (mut lines, mut line) = (String::new(), first.to_owned());
    let mut is_empty = true;
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let number = |last: &&mut String| last.ends_with(|c: char| c.is_ascii_digit());
        match words.last_mut().filter(number) {
            Some(last) if record::units::is_unit(word) => *last += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    for word in &words {
        let length = line.chars().count() + 1 + word.chars().count();
        if !is_empty && length > width.max(40) {
            lines += &line;
            lines.push('\n');
            line = rest.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    lines + &line + "\n"
}
