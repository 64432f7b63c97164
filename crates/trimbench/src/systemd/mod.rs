//! Units of systemd that trimbench writes: their words, and what is there already.

use std::fs;
use std::io;
use std::path::Path;

use units::names::{harmless, quoted, shown};

use crate::exit::Error;

pub(crate) mod program;

/// Is there while systemd runs: sd_booted(3).
pub(crate) const RUNS: &str = "/run/systemd/system";

/// The content of a unit's place.
pub(crate) enum There {
    Nothing,
    /// A unit that trimbench wrote, and its text.
    Ours(String),
    Others,
}

/// The lines that differ, `-` before the old and `+` before the new; nothing if none do.
pub(crate) fn difference(path: &Path, old: &str, new: &str) -> String {
    let only = |sign: char, these: &str, those: &str| -> String {
        let missing = these
            .lines()
            .filter(|line| !those.lines().any(|l| l == *line));
        missing
            .map(|line| format!("  {sign} {}\n", harmless(line)))
            .collect()
    };
    let lines = only('-', old, new) + &only('+', new, old);
    match lines.is_empty() {
        true => lines,
        false => format!("  {}\n{lines}", shown(path)),
    }
}

/// Returns what is at a unit's place.
pub(crate) fn there(path: &Path, mark: &str) -> Result<There, Error> {
    let failed = |source: io::Error| Error::OutputOpen {
        path: path.to_owned(),
        source,
    };
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(There::Nothing),
        Err(error) => Err(failed(error)),
        // A mask is a link to /dev/null.
        Ok(found) if !found.is_file() => Ok(There::Others),
        Ok(_) => {
            let text = fs::read(path).map_err(failed)?;
            let text = String::from_utf8_lossy(&text).into_owned();
            Ok(match text.starts_with(mark) {
                true => There::Ours(text),
                false => There::Others,
            })
        }
    }
}

/// A path that a unit can name, whatever directory it starts in.
pub(crate) fn absolute(path: &Path) -> Result<String, Error> {
    let refused = |why: &str| Error::Usage(format!("{}: {why}", quoted(path)));
    let absolute = std::path::absolute(path).map_err(|error| refused(&error.to_string()))?;
    // Another character in the place of a byte would make another path of it.
    let text = absolute.to_str().map(str::to_owned);
    text.ok_or_else(|| refused("not UTF-8, so no unit can name it"))
}

/// The end of a line would be the end of the command, and the rest another setting.
pub(crate) fn refuse_control(words: &[String]) -> Result<(), Error> {
    let odd = |word: &&String| word.chars().any(char::is_control);
    match words.iter().find(odd) {
        None => Ok(()),
        Some(word) => Err(Error::Usage(format!(
            "{}: holds a control character, so no unit can name it",
            quoted(Path::new(word))
        ))),
    }
}

/// A service with this mark and this command line.
pub(crate) fn with_command(service: &str, mark: &str, command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| in_unit(word)).collect();
    let start = format!("ExecStart={}", words.join(" "));
    let lines = service.lines().map(|line| match line {
        line if line.starts_with("ExecStart=") => start.as_str(),
        line => line,
    });
    std::iter::once(mark)
        .chain(lines)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// A word of a command line, as systemd.service(5) reads it.
pub(crate) fn in_unit(word: &str) -> String {
    let escaped = word.replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%$@+".contains(c);
    if !escaped.is_empty() && escaped.chars().all(plain) {
        return escaped;
    }
    let escaped = escaped.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_systemd() {
        assert_eq!(in_unit("/usr/bin/trimbench"), "/usr/bin/trimbench");
        assert_eq!(in_unit("10%"), "10%%");
        assert_eq!(in_unit("/with space"), "\"/with space\"");
        assert_eq!(in_unit("a\"b$\\"), "\"a\\\"b$$\\\\\"");
        assert_eq!(in_unit(""), "\"\"");
    }
}
