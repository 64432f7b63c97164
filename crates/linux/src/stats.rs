//! A block device's work since the last look: `/sys/class/block/X/stat`.
//!
//! Read every few milliseconds while a device stalls, so a reading opens and
//! allocates nothing, and touches no disk.
//!
//! ```no_run
//! use linux::{SysRoot, stats::DeviceStats};
//!
//! let stats = DeviceStats::open(&SysRoot::host(), "nvme0n1")?;
//! let before = stats.read()?;
//! // … something is deleted …
//! let did = stats.read()?.since(&before);
//! println!("{} discards, {} bytes", did.discards, did.discard_bytes);
//! # Ok::<(), linux::stats::StatsError>(())
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use record::DeviceInterval;

use crate::SysRoot;

/// Sectors in `stat` have 512 bytes, whatever the device's have.
const SECTOR_BYTES: u64 = 512;

/// Counters since the device appeared
/// (Linux, Documentation/admin-guide/iostats.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads completed.
    pub reads: u64,
    /// Sectors of 512 bytes read.
    pub read_sectors: u64,
    /// Sum of the reads' waits, in milliseconds; wraps at 2^32.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Sectors of 512 bytes written.
    pub write_sectors: u64,
    /// Sum of the writes' waits, in milliseconds; wraps at 2^32.
    pub write_ms: u64,
    /// Operations in flight now.
    pub in_flight: u64,
    /// Time with any operation in flight, in milliseconds; wraps at 2^32.
    pub busy_ms: u64,
    /// Discards completed; stays 0 before Linux 4.18.
    pub discards: u64,
    /// Sectors of 512 bytes discarded.
    pub discard_sectors: u64,
    /// Sum of the discards' waits, in milliseconds; wraps at 2^32.
    pub discard_ms: u64,
    /// Cache flushes completed; stays 0 before Linux 5.5.
    pub flushes: u64,
    /// Sum of the flushes' waits, in milliseconds; wraps at 2^32.
    pub flush_ms: u64,
}

/// How many figures a device has in Linux 5.5 or later.
const FIGURES: usize = 17;

/// Parses the text of `stat`: 11 figures, 15 since Linux 4.18, 17 since 5.5.
/// `None` when there are fewer than 11 or one isn't a number.
fn figures(text: &[u8]) -> Option<[u64; FIGURES]> {
    let mut figures = [0; FIGURES];
    let mut count = 0;
    let fields = text
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty());
    for (figure, field) in figures.iter_mut().zip(fields) {
        *figure = std::str::from_utf8(field).ok()?.parse().ok()?;
        count += 1;
    }
    (count >= 11).then_some(figures)
}

impl Counters {
    /// Parses a device's file `stat`; `None` if that isn't what it is.
    pub fn parse(text: &[u8]) -> Option<Counters> {
        figures(text).map(Counters::of)
    }

    fn of(figures: [u64; FIGURES]) -> Counters {
        Counters {
            reads: figures[0],
            read_sectors: figures[2],
            read_ms: figures[3],
            writes: figures[4],
            write_sectors: figures[6],
            write_ms: figures[7],
            in_flight: figures[8],
            busy_ms: figures[9],
            discards: figures[11],
            discard_sectors: figures[13],
            discard_ms: figures[14],
            flushes: figures[15],
            flush_ms: figures[16],
        }
    }

    /// Flushes since `earlier`, and the sum of their waits in milliseconds. Of a
    /// partition always 0: the kernel counts them for its drive alone.
    pub fn flushes_since(&self, earlier: &Counters) -> (u64, u64) {
        let flushes = difference(self.flushes, earlier.flushes);
        (flushes, difference(self.flush_ms, earlier.flush_ms))
    }

    /// The difference since `earlier`. Never negative: the kernel adds up its processors' counters
    /// without a lock, so that a sum can be a trifle smaller than the one before.
    pub fn since(&self, earlier: &Counters) -> DeviceInterval {
        let bytes = |later, earlier| difference(later, earlier).saturating_mul(SECTOR_BYTES);
        DeviceInterval {
            reads: difference(self.reads, earlier.reads),
            read_bytes: bytes(self.read_sectors, earlier.read_sectors),
            read_ms: difference(self.read_ms, earlier.read_ms),
            writes: difference(self.writes, earlier.writes),
            write_bytes: bytes(self.write_sectors, earlier.write_sectors),
            write_ms: difference(self.write_ms, earlier.write_ms),
            discards: difference(self.discards, earlier.discards),
            discard_bytes: bytes(self.discard_sectors, earlier.discard_sectors),
            discard_ms: difference(self.discard_ms, earlier.discard_ms),
            in_flight: self.in_flight,
        }
    }
}

/// A counter that runs backwards has wrapped at 2^32, or has not moved if that would make an absurd
/// step. (The kernel prints milliseconds, and on 32-bit machines more, in 32 bits.)
fn difference(later: u64, earlier: u64) -> u64 {
    later.checked_sub(earlier).unwrap_or_else(|| {
        match (u32::try_from(later), u32::try_from(earlier)) {
            (Ok(later), Ok(earlier)) => {
                let step = later.wrapping_sub(earlier);
                if step < 1 << 31 { u64::from(step) } else { 0 }
            }
            _ => 0,
        }
    })
}

/// Why a device's counters can't be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StatsError {
    #[error("cannot open the counters of block device {device}: {source}")]
    Open { device: String, source: io::Error },
    #[error("cannot read the counters of block device {device}: {source}; was it removed?")]
    Read { device: String, source: io::Error },
    #[error("the counters of block device {device} have a form that isn't known")]
    Form { device: String },
}

/// A block device's counters, held open. Those of an NVMe drive that counts at its paths are the
/// sums over them ([`paths`]).
#[derive(Debug)]
pub struct DeviceStats {
    device: String,
    files: Vec<File>,
}

impl DeviceStats {
    /// Opens the counters of a device by its kernel name, e.g. `nvme0n1p2`.
    pub fn open(sys: &SysRoot, device: &str) -> Result<DeviceStats, StatsError> {
        let counting = counting(sys, device);
        let files = counting
            .iter()
            .map(|name| File::open(sys.class(name).join("stat")));
        let files = files.collect::<io::Result<Vec<File>>>();
        let files = files.map_err(|source| StatsError::Open {
            device: device.to_owned(),
            source,
        })?;
        Ok(DeviceStats {
            device: device.to_owned(),
            files,
        })
    }

    /// Opens the counters of several devices, to be read as their sums. The busy time is then that
    /// of all of them together.
    pub fn open_all(sys: &SysRoot, devices: &[String]) -> Result<DeviceStats, StatsError> {
        let mut all = DeviceStats {
            device: devices.join("+"),
            files: Vec::new(),
        };
        for device in devices {
            all.files.extend(DeviceStats::open(sys, device)?.files);
        }
        Ok(all)
    }

    /// The device's kernel name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Reads the counters. Makes one system call for each path, and allocates nothing unless it
    /// fails.
    pub fn read(&self) -> Result<Counters, StatsError> {
        let mut sum = [0u64; FIGURES];
        for file in &self.files {
            let mut text = [0u8; 512]; // 17 figures of at most 20 digits
            let length = file
                .read_at(&mut text, 0)
                .map_err(|source| StatsError::Read {
                    device: self.device.clone(),
                    source,
                })?;
            let one = figures(&text[..length]).ok_or_else(|| StatsError::Form {
                device: self.device.clone(),
            })?;
            for (sum, one) in sum.iter_mut().zip(one) {
                *sum = sum.saturating_add(one);
            }
        }
        Ok(Counters::of(sum))
    }
}

/// The devices whose counters are a device's: itself, or its paths where its own stand still.
fn counting(sys: &SysRoot, device: &str) -> Vec<String> {
    let is_off = |name: &str| sys.attribute(name, "queue/iostats").as_deref() == Some("0");
    if is_off(device) {
        let paths: Vec<String> = paths(sys, device)
            .into_iter()
            .filter(|path| !is_off(path))
            .collect();
        if !paths.is_empty() {
            return paths;
        }
    }
    vec![device.to_owned()]
}

/// Whether a whole device is an NVMe drive whose discards its paths count, and not itself: before
/// Linux 6.3 (`nvme_mpath_start_request`), and where `queue/iostats` is 0.
pub fn counts_at_paths(sys: &SysRoot, device: &str) -> bool {
    counting(sys, device).iter().all(|name| name != device)
}

/// The paths to an NVMe drive with several: hidden devices such as `nvme0c1n1` of `nvme0n1`
/// (drivers/nvme/host/multipath.c). Empty for any other device.
pub fn paths(sys: &SysRoot, drive: &str) -> Vec<String> {
    let split = |name: &str| -> Option<(u32, Option<u32>, u32)> {
        let (before, space) = name.strip_prefix("nvme")?.rsplit_once('n')?;
        let (subsystem, controller) = match before.split_once('c') {
            Some((subsystem, controller)) => (subsystem, Some(controller.parse().ok()?)),
            None => (before, None),
        };
        Some((subsystem.parse().ok()?, controller, space.parse().ok()?))
    };
    let Some((subsystem, None, space)) = split(drive) else {
        return Vec::new();
    };
    let is_path = |name: &String| matches!(split(name), Some((own, Some(_), number)) if own == subsystem && number == space);
    sys.devices().into_iter().filter(is_path).collect()
}

/// Writes and discards that a device has under way: the second figure of `inflight` (Linux,
/// Documentation/ABI/stable/sysfs-block). `None` where the kernel doesn't give it.
pub fn writes_in_flight(sys: &SysRoot, device: &str) -> Option<u64> {
    let one = |name: &String| -> Option<u64> {
        let text = sys.attribute(name, "inflight")?;
        text.split_whitespace().nth(1)?.parse().ok()
    };
    counting(sys, device).iter().map(one).sum()
}

/// The namespaces of an NVMe drive, as block devices; none of any other. They are directories
/// beside each other: of the controller, or of the subsystem where it has several paths.
pub fn namespaces(sys: &SysRoot, drive: &str) -> Vec<String> {
    let is_one = |name: &str| {
        let rest = name
            .strip_prefix("nvme")
            .and_then(|rest| rest.split_once('n'));
        // `nvme0c1n1` is one of the paths.
        rest.is_some_and(|(drive, number)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits(drive) && digits(number)
        })
    };
    if !is_one(drive) {
        return Vec::new();
    }
    let mut names = crate::sysroot::entries(&sys.class(drive).join(".."));
    names.retain(|name| is_one(name));
    names
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_under_way_is_read() {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("sys/class/block/sda");
        std::fs::create_dir_all(&class).unwrap();
        std::fs::write(class.join("inflight"), "       3        7\n").unwrap();
        let sys = SysRoot::at(root.path());
        assert_eq!(writes_in_flight(&sys, "sda"), Some(7));
        assert_eq!(writes_in_flight(&sys, "sdb"), None);
    }

    use super::*;

    use proptest::prelude::*;

    const TEXT: &[u8] = b"   50360     8712  4997338    14734    10992    13835  1409120     2952        7     5968    17987     4997       48   373056      267     1034       33\n";

    #[test]
    fn reads_all_three_forms() {
        let now = Counters::parse(TEXT).unwrap();
        assert_eq!(
            (now.reads, now.read_sectors, now.read_ms),
            (50360, 4_997_338, 14734)
        );
        assert_eq!(
            (now.writes, now.write_sectors, now.write_ms),
            (10992, 1_409_120, 2952)
        );
        assert_eq!((now.in_flight, now.busy_ms), (7, 5968));
        assert_eq!(
            (now.discards, now.discard_sectors, now.discard_ms),
            (4997, 373_056, 267)
        );
        assert_eq!(now.flushes, 1034);
        let fifteen = Counters::parse(b"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15").unwrap();
        assert_eq!((fifteen.discard_ms, fifteen.flushes), (15, 0));
        assert_eq!(
            now.flushes_since(&fifteen),
            (now.flushes, now.flush_ms),
            "{now:?}"
        );
        let eleven = Counters::parse(b"1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!((eleven.busy_ms, eleven.discards), (10, 0));
        assert_eq!(Counters::parse(b"1 2 3 4 5 6 7 8 9 10"), None);
        assert_eq!(Counters::parse(b"1 2 x 4 5 6 7 8 9 10 11"), None);
    }

    #[test]
    fn differences_are_in_bytes_and_in_flight_is_the_latest() {
        let earlier = Counters::parse(b"1 0 8 2 1 0 8 2 9 10 11 1 0 2048 5").unwrap();
        let later = Counters::parse(b"3 0 16 5 2 0 24 3 4 20 22 2 0 6144 9").unwrap();
        let did = later.since(&earlier);
        assert_eq!((did.reads, did.read_bytes, did.read_ms), (2, 4096, 3));
        assert_eq!((did.writes, did.write_bytes, did.write_ms), (1, 8192, 1));
        assert_eq!(
            (did.discards, did.discard_bytes, did.discard_ms),
            (1, 2 << 20, 4)
        );
        assert_eq!(did.in_flight, 4);
    }

    #[test]
    fn milliseconds_wrap_and_small_steps_back_are_nothing() {
        assert_eq!(difference(5, u64::from(u32::MAX) - 4), 10);
        assert_eq!(difference(99, 100), 0);
        assert_eq!(difference(1, u64::MAX), 0);
    }

    #[test]
    fn a_drive_that_counts_nothing_has_the_counts_of_its_paths() {
        let root = tempfile::tempdir().unwrap();
        let device = |name: &str, iostats: &str, discards: u64| {
            let class = root.path().join("sys/class/block").join(name);
            std::fs::create_dir_all(class.join("queue")).unwrap();
            std::fs::write(class.join("queue/iostats"), iostats).unwrap();
            let text = format!("1 0 8 2 1 0 8 2 3 10 11 {discards} 0 2048 5");
            std::fs::write(class.join("stat"), text).unwrap();
            std::fs::write(class.join("inflight"), "0 3\n").unwrap();
        };
        device("nvme0n1", "0\n", 0);
        device("nvme0n2", "0\n", 0);
        for (path, discards) in [("nvme0c0n1", 5), ("nvme0c1n1", 7), ("nvme1c0n1", 100)] {
            device(path, "1\n", discards);
        }
        let sys = SysRoot::at(root.path());
        assert_eq!(paths(&sys, "nvme0n1"), ["nvme0c0n1", "nvme0c1n1"]);
        assert!(paths(&sys, "nvme0c0n1").is_empty() && paths(&sys, "sda").is_empty());
        let read = |name: &str| DeviceStats::open(&sys, name).unwrap().read().unwrap();
        assert_eq!(read("nvme0n1").discards, 12);
        let both = ["nvme0n1", "nvme1c0n1"].map(str::to_owned);
        let both = DeviceStats::open_all(&sys, &both).unwrap();
        assert_eq!(both.device(), "nvme0n1+nvme1c0n1");
        assert_eq!(both.read().unwrap().discards, 112);
        assert_eq!(writes_in_flight(&sys, "nvme0n1"), Some(6));
        assert!(counts_at_paths(&sys, "nvme0n1") && !counts_at_paths(&sys, "nvme0n2"));
        // From Linux 6.3 on it counts itself, and its paths the same once more.
        device("nvme0n1", "1\n", 12);
        assert_eq!(read("nvme0n1").discards, 12);
        assert!(!counts_at_paths(&sys, "nvme0n1"));
    }

    #[test]
    fn reads_a_device_of_this_machine() {
        let Some(name) = std::fs::read_dir("/sys/class/block")
            .ok()
            .and_then(|mut all| all.next()?.ok()?.file_name().into_string().ok())
        else {
            return testkit::gate::skip("need a block device");
        };
        let stats = DeviceStats::open(&SysRoot::host(), &name).unwrap();
        let earlier = stats.read().unwrap();
        assert!(stats.read().unwrap().reads >= earlier.reads);
        assert!(DeviceStats::open(&SysRoot::host(), "nosuch").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            Counters::parse(&text);
        }

        #[test]
        fn a_step_forward_is_exact(earlier in any::<u64>(), step in any::<u64>()) {
            if let Some(later) = earlier.checked_add(step) {
                prop_assert_eq!(difference(later, earlier), step);
            }
        }
    }
}
