//! The service and the timer of systemd, as text.

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

/// The timer: every week, on each machine at a time of its own.
pub(super) fn timer() -> String {
    format!("{MARK}\n{TIMER}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
