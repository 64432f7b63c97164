//! The reads and writes of the whole machine: `/proc/vmstat`.
//!
//! A device whose counters are off (`queue/iostats` is 0) still shows here: the kernel counts
//! each submitted bio, whatever the device says (Linux `submit_bio`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::SysRoot;

/// Bytes that all programs together have had read from and written to block devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes read.
    pub read: u64,
    /// Bytes written, discards not among them.
    pub written: u64,
}

/// `/proc/vmstat`, kept open.
#[derive(Debug)]
pub struct Vmstat(File);

impl Vmstat {
    /// Opens it.
    ///
    /// # Errors
    /// If there is no /proc.
    pub fn open(sys: &SysRoot) -> io::Result<Vmstat> {
        File::open(sys.path("/proc/vmstat")).map(Vmstat)
    }

    /// Bytes read and written since the machine started. `None` if the kernel doesn't say.
    pub fn read(&self) -> Option<Traffic> {
        let mut text = vec![0; 32 << 10];
        let mut length = 0;
        while length < text.len() {
            match self.0.read_at(&mut text[length..], length as u64) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(_) => return None,
            }
        }
        parse(&String::from_utf8_lossy(&text[..length]))
    }
}

fn parse(text: &str) -> Option<Traffic> {
    let kib = |name: &str| crate::sysroot::value(text, name)?.parse::<u64>().ok();
    Some(Traffic {
        read: kib("pgpgin ")?.saturating_mul(1024),
        written: kib("pgpgout ")?.saturating_mul(1024),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_in_kib() {
        let text = "nr_free_pages 7\npgpgin 12\npgpgout 5\npswpin 0\n";
        let expected = Traffic {
            read: 12 << 10,
            written: 5 << 10,
        };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("pgpgin 12\n"), None);
    }

    #[test]
    fn this_machine_tells() {
        let vmstat = Vmstat::open(&SysRoot::host()).unwrap();
        assert!(vmstat.read().is_some());
    }
}
