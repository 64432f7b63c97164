//! The policies by name, and their parameters.

use std::ops::Range;
use std::time::Duration;

use pace::Goal;
use record::DiscardSetting;
use record::units::settings::Key;

use super::adaptive::Adaptive;
use super::btrfs::BtrfsAsync;
use super::ffs::{InOrder, Queued};
use super::fstrim::Fstrim;
use super::guard::Guard;
use super::online::{F2fs, Online, XfsOnline};
use super::{Desk, Policy};
use crate::keys::{BLOCKS, DURATION, Pair, SHARE, SIZE, SPAN, TRUTH, settings};
use crate::stack::Limits;
use crate::volume::AllocatorKind;

record::kinds! {
    /// A kind of policy.
    pub enum PolicyKind["policy"] {
        /// No discards at all.
        None = "none",
        /// A discard for each block, before it is free (FFS, 2011).
        PerBlock = "per-block",
        /// A discard for each run of at least 96 KiB (FFS, 2011).
        Coalesce = "coalesce",
        /// Up to 64 ranges in a command; reuse cancels what waits.
        Queued = "queued",
        /// ext4 -o discard: each extent after the commit, one in flight.
        Ext4Online = "ext4-online",
        /// XFS -o discard: four in flight, then one.
        XfsOnline = "xfs-online",
        /// btrfs -o discard=sync: inside the commit.
        BtrfsSync = "btrfs-sync",
        /// btrfs -o discard=async: after 120 s, 64 MiB each, limited.
        BtrfsAsync = "btrfs-async",
        /// f2fs -o discard: eight in a round, while nothing else works.
        F2fs = "f2fs",
        /// No online discards, and fstrim from time to time.
        Fstrim = "fstrim",
        /// trimbench guard: what was freed, as pace allows.
        Guard = "guard",
        /// trimbench rm: pieces as pace allows, on ext4 -o discard.
        Adaptive = "adaptive",
    }
}

settings! {
    /// The parameters of all policies. Each kind uses a few.
    pub struct Parameters[] {
        /// Bytes in a block of the file system.
        "block" block: u64 = BLOCKS, "32k";
        /// Shorter ranges are never discarded.
        "at-least" at_least: u64 = SIZE, "0; coalesce: 96k; f2fs: 64k";
        /// Most ranges in a command.
        "ranges" ranges: u64 = 1..=65_536, "64";
        /// Most bytes in a range: 65,535 sectors, in whole blocks.
        "range-bytes" range_bytes: u64 = BLOCKS, "32764k";
        /// Freed space is collected for so long.
        "collect" collect: Duration = DURATION, "1s";
        /// Discards in flight on each drive.
        "depth" depth: u64 = 1..=1024, "4";
        /// The same, once reads wait.
        "throttled-depth" throttled_depth: u64 = 1..=1024, "1";
        /// When that begins: as 24 discards of 17.8 ms, by the log of 2024 of two T500 as RAID 0.
        "throttle-after" throttle_after: Duration = DURATION, "430ms";
        /// Freed space waits so long for reuse.
        "delay" delay: Duration = DURATION, "2m";
        /// Discards a second; 0: any.
        "iops-limit" iops_limit: u64 = 0..=1_000_000, "1000";
        /// KiB a second; 0: any.
        "kbps-limit" kbps_limit: u64 = 0..=1 << 40, "0";
        /// Most bytes in a discard.
        "piece" piece: u64 = BLOCKS, "128M; btrfs-async: 64M";
        /// Time from one fstrim to the next.
        "every" every: Duration = SPAN, "1m";
        /// Whether fstrim is paced as trimbench fstrim.
        "paced" paced: bool = TRUTH, "false";
        /// Guard trims faster what was freed longer ago.
        "max-age" max_age: Duration = SPAN, "1h";
        /// Shorter runs wait up to half of max-age; auto: by what trims cost.
        "min-run" min_run: Option<u64> = MIN_RUN, "auto";
        /// Share of the foreground that it may cost.
        "slowdown" slowdown: f64 = SHARE, "10%";
        /// Most latency that it may add; 0: any.
        "max-latency" max_latency: Duration = DURATION, "0";
    }
}

const MIN_RUN: Pair<Option<u64>> = Pair(
    |text| match text {
        "auto" => Ok(None),
        _ => Ok(Some(record::units::parse_size(text)?)),
    },
    |run| run.map_or("auto".to_owned(), record::units::bytes_exact),
);

impl PolicyKind {
    /// The way in which its file system allocates by default.
    pub fn allocator(self) -> AllocatorKind {
        match self {
            PolicyKind::PerBlock | PolicyKind::Coalesce | PolicyKind::Queued => AllocatorKind::Ffs,
            PolicyKind::XfsOnline => AllocatorKind::Xfs,
            PolicyKind::BtrfsSync | PolicyKind::BtrfsAsync | PolicyKind::F2fs => {
                AllocatorKind::Btrfs
            }
            _ => AllocatorKind::Ext4,
        }
    }

    /// The discard setting that a mount of it would show.
    pub(crate) fn setting(self) -> DiscardSetting {
        match self {
            PolicyKind::None => DiscardSetting::Off,
            PolicyKind::BtrfsAsync
            | PolicyKind::F2fs
            | PolicyKind::Queued
            | PolicyKind::Fstrim
            | PolicyKind::Guard => DiscardSetting::Async,
            _ => DiscardSetting::On,
        }
    }

    /// The names of the parameters that it uses.
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            PolicyKind::None => &[],
            PolicyKind::PerBlock => &["block"],
            PolicyKind::Coalesce => &["at-least"],
            PolicyKind::Queued => &["at-least", "ranges", "range-bytes", "collect"],
            PolicyKind::Ext4Online => &["piece"],
            PolicyKind::XfsOnline => &["depth", "throttled-depth", "throttle-after"],
            PolicyKind::BtrfsSync => &[],
            PolicyKind::BtrfsAsync => &["delay", "iops-limit", "kbps-limit", "piece"],
            PolicyKind::F2fs => &["at-least"],
            PolicyKind::Fstrim => &["every", "piece", "paced", "slowdown", "max-latency"],
            PolicyKind::Guard => &["max-age", "min-run", "piece", "slowdown", "max-latency"],
            PolicyKind::Adaptive => &["piece", "slowdown", "max-latency"],
        }
    }

    /// The parameters that it uses, each with the text of its value in `all`.
    pub fn shown(self, all: &Parameters) -> impl Iterator<Item = (&'static Key, String)> {
        let own = self.parameters();
        all.shown().filter(|(key, _)| own.contains(&key.name))
    }

    /// Its usual parameters.
    pub fn usual(self) -> Parameters {
        Parameters::usual(self.name())
    }

    /// A policy of this kind for a volume of so many bytes on drives with these limits.
    pub(crate) fn build(self, p: &Parameters, volume: u64, limits: Limits) -> Box<dyn Policy> {
        let goal = Goal {
            max_latency: (!p.max_latency.is_zero()).then_some(p.max_latency),
            ..Goal::slowdown(p.slowdown)
        };
        match self {
            PolicyKind::None => Box::new(NoDiscards),
            PolicyKind::PerBlock => Box::new(InOrder::new(p.block, 0)),
            PolicyKind::Coalesce => Box::new(InOrder::new(limits.max_bytes, p.at_least)),
            PolicyKind::Queued => Box::new(Queued::new(
                p.ranges as usize,
                p.range_bytes,
                p.at_least,
                p.collect,
                limits,
            )),
            PolicyKind::Ext4Online => Box::new(Online::ext4(p.piece, limits)),
            PolicyKind::XfsOnline => Box::new(XfsOnline::new(
                p.depth as usize,
                p.throttled_depth as usize,
                p.throttle_after,
                limits,
            )),
            PolicyKind::BtrfsSync => Box::new(Online::btrfs(limits)),
            PolicyKind::BtrfsAsync => Box::new(BtrfsAsync::new(
                p.delay,
                p.iops_limit,
                p.kbps_limit,
                p.piece,
                limits,
            )),
            PolicyKind::F2fs => Box::new(F2fs::new(p.at_least, limits)),
            PolicyKind::Fstrim => {
                let goal = p.paced.then_some(goal);
                Box::new(Fstrim::new(p.every, p.piece, goal, volume))
            }
            PolicyKind::Guard => Box::new(Guard::new(goal, p.piece, p.max_age, p.min_run)),
            PolicyKind::Adaptive => Box::new(Adaptive::new(goal, p.piece, limits)),
        }
    }
}

// No discards at all.

/// A mount without `discard`: the drive never hears of what is free.
#[derive(Debug, Default)]
pub(super) struct NoDiscards;

impl Policy for NoDiscards {
    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        desk.release(ranges);
    }

    fn discarded(&mut self, _: u64, _: &mut Desk<'_>) {}

    fn is_settled(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_takes_what_it_shows_and_belongs_to_a_policy() {
        let keys = || Parameters::KEYS.iter().map(|key| key.name);
        for &kind in PolicyKind::ALL {
            let usual = kind.usual();
            let mut again = PolicyKind::None.usual();
            for (key, text) in usual.shown() {
                assert_eq!(again.set_own(key.name, &text), Ok(()), "{key:?}");
            }
            assert_eq!(again, usual);
            assert_eq!(usual.slowdown, Goal::default().slowdown);
            for name in kind.parameters() {
                assert!(keys().any(|key| key == *name), "{name}");
            }
        }
        let used = |name| {
            PolicyKind::ALL
                .iter()
                .any(|k| k.parameters().contains(&name))
        };
        assert!(keys().all(used));
    }

    #[test]
    fn a_policys_defaults_are_its_file_systems_units() {
        let usual = PolicyKind::Ext4Online.usual();
        assert_eq!((usual.piece, usual.block), (128 << 20, 32 << 10));
        assert_eq!(PolicyKind::BtrfsAsync.usual().piece, 64 << 20);
        assert_eq!(PolicyKind::F2fs.usual().at_least, 64 << 10);
        assert_eq!(usual.range_bytes, 65_535 * 512 / 4096 * 4096);
    }
}
