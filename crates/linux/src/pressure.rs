//! How long tasks wait for I/O: `/proc/pressure/io` (Linux 4.20 or later, if the kernel counts it).
//!
//! The kernel counts tasks in `io_schedule` alone (kernel/sched/psi.c). Tasks that wait in a commit
//! or for a lock behind a stalled device are missing.

use std::io;
use std::path::Path;

use crate::SysRoot;

/// Sums since the machine started (Linux, Documentation/accounting/psi.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// How long one task at least waited, in microseconds.
    pub some_us: u64,
    /// How long all tasks that were not idle waited, in microseconds.
    pub full_us: u64,
}

impl Pressure {
    /// Reads the sums for I/O; `None` where the kernel does not count them.
    pub fn io(sys: &SysRoot) -> Option<Pressure> {
        Pressure::parse(&sys.text("/proc/pressure/io").ok()?)
    }

    /// Reads the sums for I/O of the tasks in a control group of version 2.
    ///
    /// # Errors
    /// The kernel's: `ENOENT` of version 1 and where it doesn't count them, `EOPNOTSUPP` where that
    /// is switched off.
    pub fn of_group(directory: &Path) -> io::Result<Pressure> {
        let text = std::fs::read_to_string(directory.join("io.pressure"))?;
        Pressure::parse(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Parses the file: `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, then the same of `full`.
    pub fn parse(text: &str) -> Option<Pressure> {
        let total = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let figure = line.split_once(" total=")?.1;
            figure.trim().parse().ok()
        };
        Some(Pressure {
            some_us: total("some ")?,
            full_us: total("full ").unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_sums_are_read() {
        let text = "some avg10=1.53 avg60=0.40 avg300=0.09 total=2813341\n\
                    full avg10=1.00 avg60=0.30 avg300=0.05 total=99\n";
        let found = Pressure::parse(text).unwrap();
        assert_eq!((found.some_us, found.full_us), (2_813_341, 99));
        assert_eq!(Pressure::parse(""), None);
        assert_eq!(Pressure::parse("some avg10=0.00 total=x"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            Pressure::parse(&text);
        }
    }
}
