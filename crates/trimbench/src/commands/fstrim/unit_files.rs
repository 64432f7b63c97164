//! The service and the timer of systemd, as text.

use diagnose::quiet::Window;

use crate::systemd::with_command;

/// The mark of the units that are ours to overwrite.
pub(super) const MARK: &str = "# Written by trimbench fstrim --install-timer";

/// The name of both.
pub(super) const NAME: &str = "trimbench-fstrim";

/// The units as packages install them.
const SERVICE: &str = include_str!("../../../systemd/trimbench-fstrim.service");
const TIMER: &str = include_str!("../../../systemd/trimbench-fstrim.timer");

/// The service with another command line.
pub(super) fn service(command: &[String]) -> String {
    with_command(SERVICE, MARK, command)
}

/// The timer: every week, on each machine at a time of its own, or in this window.
pub(super) fn timer(window: Option<&Window>) -> String {
    let lines = TIMER.lines().filter_map(|line| {
        let Some(window) = window else {
            return Some(line.to_owned());
        };
        match line.split_once('=').map_or(line, |(key, _)| key) {
            "OnCalendar" => Some(format!("# {window}.\nOnCalendar={}", window.calendar())),
            "RandomizedDelaySec" => Some(format!("RandomizedDelaySec={}min", window.spare)),
            // A machine that was off would trim when it is busy.
            "Persistent" => None,
            _ => Some(line.replace("half a day", "the window")),
        }
    });
    let lines: Vec<String> = lines.collect();
    format!("{MARK}\n{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_marked_and_say_when_and_what() {
        let service = service(&["/bin/trimbench".to_owned(), "fstrim".to_owned()]);
        assert!(service.contains("ExecStart=/bin/trimbench fstrim\n"));
        for unit in [service, timer(None)] {
            assert!(unit.starts_with(MARK) && unit.contains("[Unit]"));
        }
        assert!(timer(None).contains("FixedRandomDelay=true\n"));
    }
}
