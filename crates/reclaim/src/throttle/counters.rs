//! The devices' statistics, as the pacer takes them in.

use std::collections::BTreeSet;
use std::time::Duration;

use linux::SysRoot;
use linux::deleters::Deleters;
use linux::limit::whole;
use linux::stats::{Counters, DeviceStats, StatsError, namespaces, writes_in_flight};
use pace::{Discards, Flushes, Io, Others};
use storage::counter::Source;

/// The statistics of all devices whose counters count, added up since the beginning.
#[derive(Debug)]
pub(crate) struct DeviceCounters {
    /// The devices whose discards count: discards of a drive's other partitions are not part of the
    /// debt.
    counters: Vec<Leaf>,
    /// The whole drives, each once, with all namespaces of an NVMe drive. Discards slow down I/O in
    /// all of a drive's partitions and namespaces, and the kernel counts flushes for the drive
    /// alone.
    drives: Vec<(DeviceStats, Counters)>,
    /// Other paced deleters, which divide the goal with this one.
    deleters: Deleters,
    discards: Discarded,
    sums: Sums,
    others: Others,
}

#[derive(Debug)]
struct Leaf {
    stats: DeviceStats,
    before: Counters,
    /// The bytes that devices of its level discard for each byte freed.
    copies: f64,
}

/// The devices' discards, scaled so that a freed byte counts as one discarded byte.
#[derive(Debug, Clone, Copy, Default)]
struct Discarded {
    commands: f64,
    bytes: f64,
    ms: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    reads: u64,
    read_ms: u64,
    writes: u64,
    flushes: u64,
    flush_ms: u64,
}

/// The canary's own I/O, which is not the foreground's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CanaryIo {
    pub(super) ops: u64,
    pub(super) wait: Duration,
}

impl DeviceCounters {
    pub(crate) fn open(sys: &SysRoot, sources: &[Source]) -> Result<DeviceCounters, StatsError> {
        let open = |name: &String| {
            let stats = DeviceStats::open(sys, name)?;
            let now = stats.read()?;
            Ok((stats, now))
        };
        let leaf = |source: &Source| {
            let (stats, before) = open(&source.device)?;
            Ok(Leaf {
                stats,
                before,
                // Below 1 where it stands for devices that don't count.
                copies: source.copies.max(f64::MIN_POSITIVE),
            })
        };
        let drive = |name: &String| whole(sys, name).unwrap_or_else(|| name.clone());
        let drives: BTreeSet<String> = sources.iter().map(|one| drive(&one.device)).collect();
        let beside: BTreeSet<String> = drives
            .iter()
            .flat_map(|name| namespaces(sys, name))
            .collect();
        let beside = beside.difference(&drives);
        let names: Vec<String> = drives.iter().cloned().collect();
        let mut opened: Vec<_> = drives.iter().map(open).collect::<Result<_, _>>()?;
        // One that can't be read is no reason not to begin.
        opened.extend(beside.filter_map(|name| open(name).ok()));
        Ok(DeviceCounters {
            counters: sources.iter().map(leaf).collect::<Result<_, _>>()?,
            drives: opened,
            deleters: Deleters::join(sys, &names),
            discards: Discarded::default(),
            sums: Sums::default(),
            others: Others::default(),
        })
    }

    /// Reads the counters, and adds the change since the last time.
    pub(crate) fn read(&mut self) -> Result<(), StatsError> {
        self.read_within(Duration::MAX)
    }

    /// As [`read`](Self::read), for a time in which each device was busy with discards for at most
    /// `busy`. Where several are in flight, their waits add up to more.
    pub(super) fn read_within(&mut self, busy: Duration) -> Result<(), StatsError> {
        let busy_ms = u64::try_from(busy.as_millis().saturating_add(1)).unwrap_or(u64::MAX);
        let (all, discards, sums) = (self.counters.len(), &mut self.discards, &mut self.sums);
        each(&mut self.counters, |leaf| {
            let now = leaf.stats.read()?;
            let did = now.since(&leaf.before);
            discards.commands += did.discards as f64 / leaf.copies;
            discards.bytes += did.discard_bytes as f64 / leaf.copies;
            discards.ms += did.discard_ms.min(busy_ms) as f64 / leaf.copies;
            leaf.before = now;
            Ok(())
        })?;
        each(&mut self.drives, |(stats, before)| {
            let now = stats.read()?;
            let did = now.since(before);
            let (flushes, flush_ms) = now.flushes_since(before);
            *before = now;
            sums.reads += did.reads;
            sums.read_ms += did.read_ms;
            sums.writes += did.writes;
            sums.flushes += flushes;
            sums.flush_ms += flush_ms;
            Ok(())
        })?;
        if self.counters.len() < all {
            self.keep_copies(self.counters.len() as f64 / all as f64);
        }
        Ok(())
    }

    /// This share of the devices is left: each byte is kept less often from now on.
    fn keep_copies(&mut self, share: f64) {
        for leaf in &mut self.counters {
            leaf.copies = (leaf.copies * share).max(1.0);
        }
    }

    /// Returns the drives' reads since the beginning, the canary's included.
    pub(super) fn reads(&self) -> u64 {
        self.sums.reads
    }

    /// From now on counts from zero.
    pub(super) fn restart(&mut self) -> Result<(), StatsError> {
        self.read()?;
        self.discards = Discarded::default();
        self.sums = Sums::default();
        self.others = Others::default();
        Ok(())
    }

    /// Flushes since the beginning.
    pub(super) fn flushes(&self) -> Flushes {
        Flushes {
            commands: self.sums.flushes,
            busy: Duration::from_millis(self.sums.flush_ms),
        }
    }

    /// Returns whether any device's counters are read.
    pub(super) fn has_devices(&self) -> bool {
        !self.counters.is_empty()
    }

    /// Returns the names of the drives whose reads and flushes count.
    pub(super) fn drives(&self) -> Vec<String> {
        let names = self.drives.iter().map(|(stats, _)| stats.device());
        names.map(str::to_owned).collect()
    }

    /// How many paced deleters besides us work on these drives.
    pub(crate) fn deleters_beside(&self) -> u32 {
        self.deleters.others()
    }

    /// Returns the writes and discards that are in flight now; `None` where the kernel doesn't show
    /// them.
    pub(super) fn writes_in_flight(&self) -> Option<u64> {
        let root = SysRoot::host();
        let counters = self.counters.iter();
        counters
            .map(|leaf| writes_in_flight(&root, leaf.stats.device()))
            .sum()
    }

    /// Discards since the beginning, so scaled that a freed byte is a discarded
    /// byte; mirrors work at the same time.
    pub(crate) fn discards(&self) -> Discards {
        Discards {
            commands: self.discards.commands.round() as u64,
            bytes: self.discards.bytes.round() as u64,
            busy: Some(Duration::from_secs_f64(self.discards.ms / 1e3)),
        }
    }

    /// Returns what the foreground did, without the own canary. Never falls.
    pub(super) fn others(&mut self, own: CanaryIo) -> Others {
        let wait = Duration::from_millis(self.sums.read_ms).saturating_sub(own.wait);
        let reads = self.others.reads;
        self.others = Others {
            reads: Io {
                ops: reads.ops.max(self.sums.reads.saturating_sub(own.ops)),
                wait: reads.wait.max(wait),
            },
            writes: self.sums.writes,
        };
        self.others
    }
}

/// Reads each device. It drops one that no longer exists, e.g. an unplugged leg of a mirror.
///
/// # Errors
/// If no device is left, or if the error is another one.
fn each<T>(
    devices: &mut Vec<T>,
    mut read: impl FnMut(&mut T) -> Result<(), StatsError>,
) -> Result<(), StatsError> {
    let mut failed = None;
    devices.retain_mut(|device| match read(device) {
        Ok(()) => true,
        Err(error) => {
            failed = Some(error);
            false
        }
    });
    match failed {
        Some(StatsError::Read { .. }) if !devices.is_empty() => Ok(()),
        Some(error) => Err(error),
        None => Ok(()),
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

    /// `a` and `b` hold the same.
    fn mirror(sys: &SysRoot) -> DeviceCounters {
        let leg = |name| Source {
            copies: 2.0,
            ..Source::single(name)
        };
        DeviceCounters::open(sys, &[leg("a"), leg("b")]).unwrap()
    }

    #[test]
    fn sums_over_leaves_and_takes_ourselves_out() {
        let root = tempfile::tempdir().unwrap();
        stat(root.path(), "a", 1000, [7, 4096, 70]);
        stat(root.path(), "b", 0, [0, 0, 0]);
        let sys = SysRoot::at(root.path());
        let mut mirror = mirror(&sys);
        mirror.read().unwrap();
        assert_eq!(mirror.discards().bytes, 0, "what was before doesn't count");
        stat(root.path(), "a", 1100, [9, 4096 + 2048, 90]);
        stat(root.path(), "b", 50, [2, 2048, 30]);
        mirror.read().unwrap();
        let discards = mirror.discards();
        assert_eq!((discards.commands, discards.bytes), (2, 1 << 20));
        assert_eq!(discards.busy, Some(Duration::from_millis(25)));
        let own = CanaryIo {
            ops: 30,
            wait: Duration::from_millis(40),
        };
        let others = mirror.others(own);
        assert_eq!(
            (others.reads.ops, others.reads.wait),
            (120, Duration::from_millis(110))
        );
        // A canary's read may show before its device counts it: counts never fall.
        let ahead = CanaryIo { ops: 40, ..own };
        assert_eq!(mirror.others(ahead).reads.ops, 120);
        let none = DeviceCounters::open(&sys, &[Source::single("c")]);
        assert!(none.unwrap_err().to_string().contains('c'));
    }

    #[test]
    fn a_mirrors_leg_may_go_but_not_the_last() {
        let root = tempfile::tempdir().unwrap();
        let sys = SysRoot::at(root.path());
        for name in ["a", "b"] {
            stat(root.path(), name, 0, [0, 0, 0]);
        }
        let mut mirror = mirror(&sys);
        for name in ["a", "b"] {
            stat(root.path(), name, 10, [3, 2048, 30]);
        }
        mirror.read().unwrap();
        let before = mirror.discards();
        assert_eq!((before.commands, before.bytes), (3, 1 << 20));
        // What can be opened and not read any more is gone.
        fs::create_dir_all(root.path().join("sys/class/block/gone/stat")).unwrap();
        let unplug = |mirror: &mut DeviceCounters, at: usize| {
            mirror.counters[at].stats = DeviceStats::open(&sys, "gone").unwrap();
            mirror.drives[at].0 = DeviceStats::open(&sys, "gone").unwrap();
        };
        unplug(&mut mirror, 1);
        mirror.read().unwrap();
        assert_eq!(mirror.discards(), before, "what was is what it was");
        stat(root.path(), "a", 15, [5, 2048 + 4096, 70]);
        mirror.read().unwrap();
        let now = mirror.discards();
        assert_eq!((now.commands, now.bytes), (5, 3 << 20));
        assert_eq!(mirror.others(CanaryIo::default()).reads.ops, 25);
        unplug(&mut mirror, 0);
        assert!(matches!(mirror.read(), Err(StatsError::Read { .. })));
    }

    #[test]
    fn who_uses_another_namespace_is_there() {
        let root = tempfile::tempdir().unwrap();
        let (drive, class) = (
            root.path().join("sys/devices/nvme0"),
            root.path().join("sys/class/block"),
        );
        fs::create_dir_all(&class).unwrap();
        let put = |name: &str, reads: u64| {
            fs::create_dir_all(drive.join(name)).unwrap();
            let text = format!("{reads} 0 8 {reads} 0 0 0 0 0 0 0 0 0 0 0 3 30\n");
            fs::write(drive.join(name).join("stat"), text).unwrap();
        };
        for name in ["nvme0n1", "nvme0n2", "nvme0c1n1", "power"] {
            put(name, 0);
            std::os::unix::fs::symlink(drive.join(name), class.join(name)).unwrap();
        }
        let sys = SysRoot::at(root.path());
        let mut counters = DeviceCounters::open(&sys, &[Source::single("nvme0n1")]).unwrap();
        for (name, reads) in [("nvme0n1", 10), ("nvme0n2", 700), ("nvme0c1n1", 5000)] {
            put(name, reads);
        }
        counters.read().unwrap();
        assert_eq!(counters.others(CanaryIo::default()).reads.ops, 710);
        assert_eq!(namespaces(&sys, "sda"), [""; 0]);
    }

    /// Two partitions of one drive.
    #[test]
    fn others_and_flushes_are_the_drives_and_discards_the_partitions() {
        let root = tempfile::tempdir().unwrap();
        let drive = root.path().join("sys/devices/d");
        let class = root.path().join("sys/class/block");
        fs::create_dir_all(drive.join("queue")).unwrap();
        fs::create_dir_all(&class).unwrap();
        std::os::unix::fs::symlink(&drive, class.join("d")).unwrap();
        for part in ["d1", "d2"] {
            fs::create_dir_all(drive.join(part)).unwrap();
            fs::write(drive.join(part).join("partition"), "1\n").unwrap();
            std::os::unix::fs::symlink(drive.join(part), class.join(part)).unwrap();
        }
        let put = |place: &str, reads: u64, discards: u64, flushes: u64| {
            let sectors = discards * 2048;
            let flushes = format!("{flushes} {}", flushes * 10);
            let text =
                format!("{reads} 0 8 {reads} 5 0 0 0 0 0 0 {discards} 0 {sectors} 0 {flushes}\n");
            fs::write(drive.join(place), text).unwrap();
        };
        for (place, flushes) in [("d1/stat", 0), ("d2/stat", 0), ("stat", 7)] {
            put(place, 100, 1, flushes);
        }
        let sys = SysRoot::at(root.path());
        let open = |names: &[&str]| {
            let sources: Vec<Source> = names.iter().map(|&name| Source::single(name)).collect();
            DeviceCounters::open(&sys, &sources).unwrap()
        };
        let (mut one, mut both) = (open(&["d1"]), open(&["d1", "d2"]));
        let mut all = open(&["d"]);
        put("d1/stat", 100, 2, 0);
        put("d2/stat", 180, 4, 0);
        put("stat", 180, 5, 9);
        for (counters, mib) in [(&mut one, 1), (&mut both, 4), (&mut all, 4)] {
            counters.read().unwrap();
            assert_eq!(counters.discards().bytes, mib << 20);
            assert_eq!(counters.others(CanaryIo::default()).reads.ops, 80);
            let Flushes { commands, busy } = counters.flushes();
            assert_eq!((commands, busy), (2, Duration::from_millis(20)));
        }
    }
}
