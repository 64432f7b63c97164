//! A card as TOML.

use std::fmt;

use super::{Card, KEYS, keys};

impl fmt::Display for Card {
    /// TOML that reads back as the same card.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "name = {}", toml_text(&self.name))?;
        writeln!(f, "about = {}", toml_text(&self.about))?;
        let mut section = "";
        for key in KEYS {
            let Some(entry) = self.entries.get(key.name) else {
                continue;
            };
            let (own, name) = keys::parts(key);
            if own != section {
                section = own;
                writeln!(f, "\n[{section}]")?;
            }
            writeln!(
                f,
                "{name} = {{ value = {}, sure = \"{}\", source = {} }}",
                value(&entry.text),
                entry.note.sure.name(),
                toml_text(&entry.note.source),
            )?;
        }
        Ok(())
    }
}

/// A number or a truth value bare, anything else as a string.
fn value(text: &str) -> String {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let whole = |part: &str| digits(part) && (part == "0" || !part.starts_with('0'));
    // What doesn't fit into TOML's 64 bits with a sign stays a string.
    let number = match text.split_once('.') {
        Some((before, after)) => whole(before) && digits(after),
        None => whole(text) && text.parse::<i64>().is_ok(),
    };
    if number || text == "true" || text == "false" {
        text.to_owned()
    } else {
        toml_text(text)
    }
}

/// A basic string of TOML.
fn toml_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
