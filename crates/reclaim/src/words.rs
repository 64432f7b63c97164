//! Names and errors in words, as rm writes them.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

/// What the system says, without its number.
pub fn of_io(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// The same.
pub fn of(errno: Errno) -> String {
    of_io(&errno.into())
}

/// A path in quotes that a shell would undo: `'a b'`, `"it's"`, `'a'$'\n''b'`.
pub fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let plain = |text: &str| !text.chars().any(char::is_control);
    match str::from_utf8(bytes) {
        Ok(text) if plain(text) && !text.contains('\'') => return format!("'{text}'"),
        Ok(text) if plain(text) && !text.contains(['"', '$', '`', '\\', '!']) => {
            return format!("\"{text}\"");
        }
        _ => {}
    }
    let mut out = String::from("'");
    let mut escaped = false;
    let mut switch = |out: &mut String, to: bool| {
        if escaped != to {
            out.push_str(if to { "'$'" } else { "''" });
            escaped = to;
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\'' || c.is_control() {
                switch(&mut out, true);
                match c {
                    '\n' => out.push_str("\\n"),
                    '\t' => out.push_str("\\t"),
                    '\r' => out.push_str("\\r"),
                    '\'' => out.push_str("\\'"),
                    other => {
                        let mut buffer = [0; 4];
                        for byte in other.encode_utf8(&mut buffer).bytes() {
                            out.push_str(&format!("\\{byte:03o}"));
                        }
                    }
                }
            } else {
                switch(&mut out, false);
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            switch(&mut out, true);
            out.push_str(&format!("\\{byte:03o}"));
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn names_are_quoted_as_rm_quotes_them() {
        for (name, words) in [
            (&b"a b"[..], "'a b'"),
            (b"it's", "\"it's\""),
            (b"a\nb", "'a'$'\\n''b'"),
            (b"\xff", "''$'\\377'"),
            ("größe".as_bytes(), "'größe'"),
        ] {
            assert_eq!(quoted(Path::new(OsStr::from_bytes(name))), words);
        }
        assert_eq!(of(Errno::NOENT), "No such file or directory");
    }
}
