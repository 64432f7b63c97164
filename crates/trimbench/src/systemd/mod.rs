//! Units of systemd that trimbench writes: their words, and what is there already.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use linux::files::directory_of;
use record::units::names::{harmless, quoted, shown};

use crate::console::Stream;
use crate::exit::{Error, usage};
use crate::goal::in_shell;

mod program;

/// Is there while systemd runs: sd_booted(3).
const RUNS: &str = "/run/systemd/system";

/// The path of this program.
pub(crate) fn own_program() -> Result<PathBuf, Error> {
    std::env::current_exe()
        .map_err(|error| usage(format!("where trimbench is installed is unknown: {error}")))
}

/// Units of one `kind` ("timer"), which run `program`: each with its place and its text, which
/// begins with `mark`.
pub(crate) struct Units<'a> {
    pub(crate) kind: &'a str,
    pub(crate) mark: &'a str,
    pub(crate) program: &'a Path,
    pub(crate) files: &'a [(PathBuf, String)],
}

impl Units<'_> {
    /// Writes them, and prints what changes in those that are there.
    ///
    /// # Errors
    /// If their directory does not exist, if they could not run the program, or if there are others
    /// of these names. Without `force` also if root should not run the program, or if units of
    /// trimbench would change.
    pub(crate) fn write(&self, force: bool) -> Result<(), Error> {
        let (kind, program, files) = (self.kind, self.program, self.files);
        let mut changes = String::new();
        for (path, text) in files {
            require_directory(directory_of(path))?;
            if is_hidden(program, text) {
                return Err(usage(format!(
                    "the {kind} would run {}, and has a /tmp of its own (PrivateTmp), where that \
                     isn't; install trimbench (e.g. into /usr/local/bin) and run it from there",
                    shown(program)
                )));
            }
            changes += &change(path, self.mark, text)?;
        }
        if !force {
            if let Some(why) = program::unfit(program) {
                return Err(usage(format!(
                    "the {kind} would run {}, and {why}; install trimbench (e.g. into \
                     /usr/local/bin) and run it from there, or give --set replace=true",
                    shown(program)
                )));
            }
            if !changes.is_empty() {
                return Err(usage(format!(
                    "a {kind} is there already, and this would change it:\n{changes}give all its \
                     mounts and options again, or give --set replace=true"
                )));
            }
        }
        for (path, text) in files {
            let put = linux::files::replace(path, text.as_bytes(), 0o644);
            put.map_err(Error::unwritten(path))?;
        }
        if !changes.is_empty() {
            Stream::Out.print(&format!("Changed:\n{changes}"));
        }
        Ok(())
    }

    /// Prints them, with their places, and why [`write`](Units::write) would refuse the program.
    pub(crate) fn show(&self) {
        for (path, text) in self.files {
            Stream::Out.print(&format!("# {}\n{text}\n", shown(path)));
        }
        if let Some(why) = program::unfit(self.program) {
            let refusal = format!("would be refused without --set replace=true: {why}");
            Stream::Err.print(&format!("trimbench: {refusal}\n"));
        }
    }
}

/// Whether systemd runs.
pub(crate) fn runs() -> bool {
    Path::new(RUNS).is_dir()
}

/// Returns how a command is started: by `units` of systemd, and where that doesn't run by a line of
/// cron with these times.
pub(crate) fn next_steps(units: &str, times: &str, command: &[String]) -> String {
    match runs() {
        true => units.to_owned(),
        false => format!(
            "systemd is not running here, so nothing starts it. For cron, put this line into \
             /etc/cron.d/trimbench:\n  {}\nWhere it runs:\n{units}",
            cron_line(times, command)
        ),
    }
}

/// A line of `/etc/cron.d`, as crontab(5) reads it: an unescaped `%` ends the command.
pub(crate) fn cron_line(times: &str, command: &[String]) -> String {
    let command = in_shell(command).replace('%', "\\%");
    format!("{times} root{command}")
}

/// Refuses a directory for units that is not there.
fn require_directory(directory: &Path) -> Result<(), Error> {
    match directory.is_dir() {
        true => Ok(()),
        false => Err(usage(format!(
            "{}: no such directory for units; make it with: mkdir -p {}, or give another --set \
             unit-dir=DIR",
            shown(directory),
            quoted(directory)
        ))),
    }
}

/// Whether a unit can't see a program, because it has a `/tmp` and a `/var/tmp` of its own.
fn is_hidden(program: &Path, unit: &str) -> bool {
    let below = |directory: &&str| program.starts_with(directory);
    unit.lines().any(|line| line == "PrivateTmp=yes") && ["/tmp", "/var/tmp"].iter().any(below)
}

/// The lines that differ, `-` before the old and `+` before the new; nothing if none do.
fn difference(path: &Path, old: &str, new: &str) -> String {
    let only = |sign: char, these: &str, those: &str| -> String {
        let missing = |line: &&str| !those.lines().any(|other| other == *line);
        let missing = these.lines().filter(missing);
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

/// Returns what a new text changes at a unit's place; nothing where there is no unit.
fn change(path: &Path, mark: &str, new: &str) -> Result<String, Error> {
    let failed = Error::unopened(path);
    let old = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(failed(error)),
        // A mask is a link to /dev/null.
        Ok(found) if !found.is_file() => Vec::new(),
        Ok(_) => fs::read(path).map_err(&failed)?,
    };
    let old = String::from_utf8_lossy(&old);
    match old.starts_with(mark) {
        true => Ok(difference(path, &old, new)),
        false => Err(usage(format!(
            "{} is there and wasn't written by trimbench: it is left as it is; remove it, or give \
             another --set unit-dir=DIR",
            shown(path)
        ))),
    }
}

/// A path that a unit can name, whatever directory it starts in.
pub(crate) fn absolute(path: &Path) -> Result<String, Error> {
    let refused = |why: &str| usage(format!("{}: {why}", quoted(path)));
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
        Some(word) => Err(usage(format!(
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
    /// Units of one text, in a directory.
    fn refused(program: &str, directory: &Path, text: &str) -> String {
        let files = [(directory.join("one.service"), text.to_owned())];
        let units = Units {
            kind: "service",
            mark: "# mine",
            program: Path::new(program),
            files: &files,
        };
        units.write(true).unwrap_err().to_string()
    }

    #[test]
    fn a_line_of_cron_keeps_its_percent_signs() {
        let words = ["/opt/trimbench", "fstrim", "--slowdown=5%"].map(str::to_owned);
        assert_eq!(
            cron_line("@reboot", &words),
            "@reboot root /opt/trimbench fstrim --slowdown=5\\%"
        );
    }

    #[test]
    fn a_unit_with_a_tmp_of_its_own_runs_no_program_of_tmp() {
        let units = tempfile::tempdir().unwrap();
        let text = "# mine\n[Service]\nPrivateTmp=yes\n";
        let why = refused("/var/tmp/build/trimbench", units.path(), text);
        assert!(
            why.contains("/var/tmp/build/trimbench, and has a /tmp"),
            "{why}"
        );
        assert_eq!(fs::read_dir(units.path()).unwrap().count(), 0);
        assert!(!is_hidden(Path::new("/tmpfs/trimbench"), text));
        assert!(!is_hidden(Path::new("/tmp/trimbench"), "[Service]\n"));
    }

    #[test]
    fn a_directory_for_units_that_is_missing_is_named_with_the_way_to_make_it() {
        let missing = tempfile::tempdir().unwrap().path().join("a b");
        let why = refused("/usr/bin/trimbench", &missing, "# mine\n");
        assert!(
            why.contains("no such directory") && why.contains("mkdir -p '/"),
            "{why}"
        );
        assert!(!why.contains("free space"), "{why}");
    }
}
