//! Paths and names in messages.
//!
//! A name may hold any byte but `/` and zero: escape codes that clear or rewrite the terminal,
//! line ends, bytes that are no UTF-8. Every message writes names through this module, so that
//! none of them reaches the terminal raw and a shell reads back what is printed.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path in quotes that a shell would undo: `'a b'`, `"it's"`, `'a'$'\n''b'`.
pub fn quoted(path: impl AsRef<Path>) -> String {
    let bytes = path.as_ref().as_os_str().as_bytes();
    let plain = |text: &str| !text.chars().any(is_harmful);
    match str::from_utf8(bytes) {
        Ok(text) if plain(text) && !text.contains('\'') => return format!("'{text}'"),
        Ok(text) if plain(text) && !text.contains(['"', '$', '`', '\\', '!']) => {
            return format!("\"{text}\"");
        }
        _ => {}
    }
    let mut out = Escaping::default();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\'' || is_harmful(c) {
                out.escape(c);
            } else {
                out.switch(false);
                out.text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|&byte| out.octal(byte));
    }
    out.finish()
}

/// A path as it is where a shell takes it as it is, e.g. `/data/a.db`; else [`quoted`].
pub fn shown(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    match path.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        _ => quoted(path),
    }
}

/// A message of several parts, in which each control character but a line end is replaced.
pub fn harmless(text: &str) -> String {
    let replaced = |c: char| match c {
        '\n' => c,
        c if is_harmful(c) => '\u{fffd}',
        c => c,
    };
    text.chars().map(replaced).collect()
}

/// JSON in which each character that a terminal acts on is written as `\u009b`, and which means the
/// same: JSON has such characters in strings alone.
pub fn harmless_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => text.push(c),
            c if is_harmful(c) => text += &format!("\\u{:04x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text
}

/// Whether a terminal acts on a character instead of showing it: control characters, and those that
/// turn the direction of the text around.
pub fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text in quotes, some of it in `$'…'`.
struct Escaping {
    text: String,
    escaped: bool,
}

impl Default for Escaping {
    fn default() -> Self {
        Escaping {
            text: "'".to_owned(),
            escaped: false,
        }
    }
}

impl Escaping {
    fn switch(&mut self, to: bool) {
        if self.escaped != to {
            self.text.push_str(if to { "'$'" } else { "''" });
            self.escaped = to;
        }
    }

    fn escape(&mut self, c: char) {
        let short = match c {
            '\n' => "\\n",
            '\t' => "\\t",
            '\r' => "\\r",
            '\'' => "\\'",
            _ => {
                let mut buffer = [0; 4];
                let bytes = c.encode_utf8(&mut buffer).bytes();
                return bytes.for_each(|byte| self.octal(byte));
            }
        };
        self.switch(true);
        self.text.push_str(short);
    }

    fn octal(&mut self, byte: u8) {
        self.switch(true);
        self.text.push_str(&format!("\\{byte:03o}"));
    }

    fn finish(mut self) -> String {
        self.text.push('\'');
        self.text
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn path(bytes: &[u8]) -> &Path {
        Path::new(OsStr::from_bytes(bytes))
    }

    #[test]
    fn names_are_quoted_as_rm_quotes_them() {
        for (name, words) in [
            (&b"a b"[..], "'a b'"),
            (b"it's", "\"it's\""),
            (b"a\nb", "'a'$'\\n''b'"),
            (b"\x1b[31m", "''$'\\033''[31m'"),
            (b"\xff", "''$'\\377'"),
            ("a\u{202e}b".as_bytes(), "'a'$'\\342\\200\\256''b'"),
            ("größe".as_bytes(), "'größe'"),
        ] {
            assert_eq!(quoted(path(name)), words);
        }
    }

    #[test]
    fn a_plain_path_is_shown_as_it_is() {
        for plain in ["/data/a.db", "/dev/mapper/vg-lv", "größe", "a=1,b:2"] {
            assert_eq!(shown(plain), plain);
        }
        for (name, words) in [("", "''"), ("a b", "'a b'"), ("$x", "'$x'"), ("~", "'~'")] {
            assert_eq!(shown(name), words);
        }
        assert_eq!(shown(path(b"/a\x1b[2J")), "'/a'$'\\033''[2J'");
    }

    #[test]
    fn json_means_the_same_and_nothing_in_it_acts_on_a_terminal() {
        let json = "{\"a\": \"\u{9b}31m\u{202e}\u{7f}\\n\",\n\"b\": 1}\n";
        let safe = "{\"a\": \"\\u009b31m\\u202e\\u007f\\n\",\n\"b\": 1}\n";
        assert_eq!(harmless_json(json), safe);
    }

    #[test]
    fn a_message_keeps_its_lines_and_nothing_else_that_a_terminal_acts_on() {
        assert_eq!(harmless("a\x1b[2Jb\nc\td"), "a\u{fffd}[2Jb\nc\u{fffd}d");
    }

    proptest::proptest! {
        #[test]
        fn no_name_reaches_a_terminal_raw(bytes: Vec<u8>) {
            let path = path(&bytes);
            for text in [quoted(path), shown(path)] {
                proptest::prop_assert!(!text.chars().any(is_harmful), "{text:?}");
            }
        }
    }
}
