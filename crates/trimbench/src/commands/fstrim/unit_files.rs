//! The service and the timer of systemd, as text.

/// What marks the units that are ours to overwrite.
pub(super) const MARK: &str = "# Written by trimbench fstrim --install-timer";

/// The name of both.
pub(super) const NAME: &str = "trimbench-fstrim";

/// The units as packages install them.
const SERVICE: &str = include_str!("../../../../../deploy/systemd/trimbench-fstrim.service");
const TIMER: &str = include_str!("../../../../../deploy/systemd/trimbench-fstrim.timer");

/// The service with another command line.
pub(super) fn service(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| in_unit(word)).collect();
    let start = format!("ExecStart={}", words.join(" "));
    let lines = SERVICE.lines().map(|line| match line {
        line if line.starts_with("ExecStart=") => start.as_str(),
        line => line,
    });
    std::iter::once(MARK)
        .chain(lines)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The timer: every week, on each machine at a time of its own.
pub(super) fn timer() -> String {
    format!("{MARK}\n{TIMER}")
}

/// A word of a command line, as systemd.service(5) reads it.
fn in_unit(word: &str) -> String {
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

    #[test]
    fn both_are_marked_and_say_when_and_what() {
        let service = service(&["/bin/trimbench".to_owned(), "fstrim".to_owned()]);
        assert!(service.contains("ExecStart=/bin/trimbench fstrim\n"));
        for unit in [service, timer()] {
            assert!(unit.starts_with(MARK) && unit.contains("[Unit]"));
        }
        assert!(timer().contains("FixedRandomDelay=true\n"));
    }
}
