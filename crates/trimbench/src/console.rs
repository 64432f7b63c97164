//! How text looks where it goes.

use std::io::IsTerminal;

use ::console::Term;
use record::units::names;
use report::terminal::Style;

/// Where the text for people goes: to standard output, or to standard error
/// when standard output carries JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    /// Writes a text, which ends its own lines. A reader that has gone away is no error.
    pub(crate) fn print(self, text: &str) {
        use std::io::Write;
        let _ = match self {
            Stream::Out => std::io::stdout().lock().write_all(text.as_bytes()),
            Stream::Err => std::io::stderr().lock().write_all(text.as_bytes()),
        };
    }

    /// Writes indented JSON, in which nothing acts on a terminal.
    pub(crate) fn json(self, value: &serde_json::Value) {
        self.print(&names::harmless_json(&format!("{value:#}\n")));
    }

    /// Whether a person looks at it.
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Stream::Out => std::io::stdout().is_terminal(),
            Stream::Err => std::io::stderr().is_terminal(),
        }
    }

    /// Whether keys can be read from standard input.
    pub(crate) fn input_is_terminal() -> bool {
        std::io::stdin().is_terminal()
    }

    /// The style of a diagnosis.
    pub(crate) fn look(self) -> diagnose::Look {
        let style = self.style();
        diagnose::Look {
            width: style.width.into(),
            unicode: style.unicode,
            colour: style.colour,
        }
    }

    /// Colours only on a terminal and not with NO_COLOR.
    pub(crate) fn style(self) -> Style {
        let term = match self {
            Stream::Out => Term::stdout(),
            Stream::Err => Term::stderr(),
        };
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let columns = std::env::var("COLUMNS")
            .ok()
            .and_then(|text| text.parse().ok());
        Style {
            colour: self.is_terminal() && !no_colour,
            width: term
                .size_checked()
                .map(|(_, columns)| columns)
                .or(columns)
                .unwrap_or(100),
            unicode: speaks_unicode(),
        }
    }
}

/// Prints an error with its remedy.
pub(crate) fn error(error: &crate::exit::Error) {
    let (on, off) = match Stream::Err.style().colour {
        true => ("\x1b[1;31m", "\x1b[0m"),
        false => ("", ""),
    };
    let error = names::harmless(&error.to_string());
    Stream::Err.print(&format!("{on}trimbench:{off} {error}\n"));
}

/// The locale's character set, by the rules of setlocale(3): the first of these
/// that is set decides. Where none is, files and pipes take UTF-8 today.
fn speaks_unicode() -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
}
