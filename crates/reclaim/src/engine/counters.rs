//! What the devices have done, as the pacer wants to hear it.

use std::time::Duration;

use linux::SysRoot;
use linux::limit::whole;
use linux::stats::{Counters, DeviceStats, StatsError};
use pace::{Discards, Flushes, Io, Others};

/// The statistics of all leaves, added up since the beginning.
#[derive(Debug)]
pub(super) struct Leaves {
    leaves: Vec<(DeviceStats, Counters)>,
    /// The drives of leaves that are partitions: those have no flushes of their own.
    drives: Vec<(DeviceStats, Counters)>,
    copies: f64,
    sums: Sums,
    others: Others,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    commands: u64,
    bytes: u64,
    discard_ms: u64,
    reads: u64,
    read_ms: u64,
    writes: u64,
    write_ms: u64,
    flushes: u64,
    flush_ms: u64,
}

/// What our own canary did: none of it is the others'.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Own {
    pub(super) ops: u64,
    pub(super) wait: Duration,
}

impl Sums {
    fn flushed(&mut self, (flushes, ms): (u64, u64)) {
        self.flushes += flushes;
        self.flush_ms += ms;
    }
}

impl Leaves {
    pub(super) fn open(sys: &SysRoot, names: &[String], copies: f64) -> Result<Leaves, StatsError> {
        let open = |name: &String| {
            let stats = DeviceStats::open(sys, name)?;
            let now = stats.read()?;
            Ok((stats, now))
        };
        let drives = names.iter().filter_map(|name| {
            let drive = whole(sys, name).filter(|drive| drive != name)?;
            open(&drive).ok()
        });
        Ok(Leaves {
            leaves: names.iter().map(open).collect::<Result<_, _>>()?,
            drives: drives.collect(),
            copies: copies.max(1.0),
            sums: Sums::default(),
            others: Others::default(),
        })
    }

    /// Reads what happened since the last time.
    pub(super) fn read(&mut self) -> Result<(), StatsError> {
        self.read_within(Duration::MAX)
    }

    /// The same, of a time in which each device was busy with discards for at
    /// most so long: their waits add up to more where several are in flight.
    pub(super) fn read_within(&mut self, busy: Duration) -> Result<(), StatsError> {
        let busy_ms = u64::try_from(busy.as_millis().saturating_add(1)).unwrap_or(u64::MAX);
        for (stats, before) in &mut self.leaves {
            let now = stats.read()?;
            let did = now.since(before);
            self.sums.flushed(now.flushes_since(before));
            *before = now;
            self.sums.commands += did.discards;
            self.sums.bytes += did.discard_bytes;
            self.sums.discard_ms += did.discard_ms.min(busy_ms);
            self.sums.reads += did.reads;
            self.sums.read_ms += did.read_ms;
            self.sums.writes += did.writes;
            self.sums.write_ms += did.write_ms;
        }
        for (stats, before) in &mut self.drives {
            let now = stats.read()?;
            self.sums.flushed(now.flushes_since(before));
            *before = now;
        }
        Ok(())
    }

    /// Flushes since the beginning.
    pub(super) fn flushes(&self) -> Flushes {
        Flushes {
            commands: self.sums.flushes,
            busy: Duration::from_millis(self.sums.flush_ms),
        }
    }

    /// Writes and discards that are in flight now; `None` where nobody tells.
    pub(super) fn writes_in_flight(&self) -> Option<u64> {
        let root = SysRoot::host();
        let in_flight = |(stats, _): &(DeviceStats, Counters)| -> Option<u64> {
            let name = stats.device().replace('/', "!");
            let path = root.path("/sys/class/block").join(name).join("inflight");
            let text = std::fs::read_to_string(path).ok()?;
            text.split_whitespace().nth(1)?.parse().ok()
        };
        self.leaves.iter().map(in_flight).sum()
    }

    /// Discards since the beginning, so scaled that a freed byte is a discarded
    /// byte; mirrors work at the same time.
    pub(super) fn discards(&self) -> Discards {
        let busy = Duration::from_millis(self.sums.discard_ms).div_f64(self.copies);
        Discards {
            commands: (self.sums.commands as f64 / self.copies) as u64,
            bytes: (self.sums.bytes as f64 / self.copies) as u64,
            busy: Some(busy),
        }
    }

    /// What others did, without what our own canary did. Never falls.
    pub(super) fn others(&mut self, own: Own) -> Others {
        let wait = Duration::from_millis(self.sums.read_ms).saturating_sub(own.wait);
        let reads = self.others.reads;
        self.others = Others {
            reads: Io {
                ops: reads.ops.max(self.sums.reads.saturating_sub(own.ops)),
                wait: reads.wait.max(wait),
            },
            writes: Io {
                ops: self.sums.writes,
                wait: Duration::from_millis(self.sums.write_ms),
            },
        };
        self.others
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn stat(root: &std::path::Path, device: &str, reads: u64, discards: [u64; 3]) {
        let directory = root.join("sys/class/block").join(device);
        fs::create_dir_all(&directory).unwrap();
        let [count, sectors, ms] = discards;
        let text = format!("{reads} 0 8 {reads} 0 0 0 0 0 0 0 {count} 0 {sectors} {ms} 0 0\n");
        fs::write(directory.join("stat"), text).unwrap();
    }

    #[test]
    fn sums_over_leaves_and_takes_ourselves_out() {
        let root = tempfile::tempdir().unwrap();
        stat(root.path(), "a", 1000, [7, 4096, 70]);
        stat(root.path(), "b", 0, [0, 0, 0]);
        let sys = SysRoot::at(root.path());
        let names = ["a".to_owned(), "b".to_owned()];
        let mut mirror = Leaves::open(&sys, &names, 2.0).unwrap();
        mirror.read().unwrap();
        assert_eq!(mirror.discards().bytes, 0, "what was before doesn't count");
        stat(root.path(), "a", 1100, [9, 4096 + 2048, 90]);
        stat(root.path(), "b", 50, [2, 2048, 30]);
        mirror.read().unwrap();
        let discards = mirror.discards();
        assert_eq!((discards.commands, discards.bytes), (2, 1 << 20));
        assert_eq!(discards.busy, Some(Duration::from_millis(25)));
        let own = Own {
            ops: 30,
            wait: Duration::from_millis(40),
        };
        let others = mirror.others(own);
        assert_eq!(
            (others.reads.ops, others.reads.wait),
            (120, Duration::from_millis(110))
        );
        // A canary that is seen before its device's counters doesn't turn them back.
        let ahead = Own { ops: 40, ..own };
        assert_eq!(mirror.others(ahead).reads.ops, 120);
        let none = Leaves::open(&sys, &["c".to_owned()], 1.0);
        assert!(none.unwrap_err().to_string().contains('c'));
    }

    #[test]
    fn a_partitions_flushes_are_its_drives() {
        let root = tempfile::tempdir().unwrap();
        let drive = root.path().join("sys/devices/d");
        let class = root.path().join("sys/class/block");
        fs::create_dir_all(drive.join("d1")).unwrap();
        fs::create_dir_all(drive.join("queue")).unwrap();
        fs::create_dir_all(&class).unwrap();
        fs::write(drive.join("d1/partition"), "1\n").unwrap();
        std::os::unix::fs::symlink(&drive, class.join("d")).unwrap();
        std::os::unix::fs::symlink(drive.join("d1"), class.join("d1")).unwrap();
        let flushed = |place: &str, count: u64, ms: u64| {
            let text = format!("1 0 8 1 0 0 0 0 0 0 0 0 0 0 0 {count} {ms}\n");
            fs::write(drive.join(place), text).unwrap();
        };
        flushed("d1/stat", 0, 0);
        flushed("stat", 7, 70);
        let sys = SysRoot::at(root.path());
        let mut part = Leaves::open(&sys, &["d1".to_owned()], 1.0).unwrap();
        let mut all = Leaves::open(&sys, &["d".to_owned()], 1.0).unwrap();
        flushed("stat", 9, 95);
        for leaves in [&mut part, &mut all] {
            leaves.read().unwrap();
            let Flushes { commands, busy } = leaves.flushes();
            assert_eq!((commands, busy), (2, Duration::from_millis(25)));
        }
    }
}
