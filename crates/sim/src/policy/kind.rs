//! The policies by name, and their parameters.

use std::time::Duration;

use pace::Goal;
use record::DiscardSetting;

use super::Policy;
use super::adaptive::Adaptive;
use super::btrfs::{BtrfsAsync, BtrfsSync};
use super::ext4::{Ext4Online, GROUP};
use super::f2fs::F2fs;
use super::ffs::{Coalesce, FFS_BLOCK, PerBlock, Queued};
use super::fstrim::Fstrim;
use super::guard::Guard;
use super::none::None as NoDiscards;
use super::xfs::XfsOnline;
use crate::keys::{Key, blocks, duration, number, share, show_duration, size, span, truth};
use crate::stack::Limits;
use crate::volume::AllocatorKind;

/// A kind of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// No discards.
    None,
    /// A discard for each block.
    PerBlock,
    /// A discard for each run of blocks that is long enough.
    Coalesce,
    /// Many ranges in a command; allocations cancel what waits.
    Queued,
    /// ext4 with `discard`.
    Ext4Online,
    /// XFS with `discard`.
    XfsOnline,
    /// btrfs with `discard=sync`.
    BtrfsSync,
    /// btrfs with `discard=async`.
    BtrfsAsync,
    /// f2fs with `discard`.
    F2fs,
    /// `fstrim` from time to time.
    Fstrim,
    /// `trimbench guard`.
    Guard,
    /// `trimbench rm` over ext4 with `discard`.
    Adaptive,
}

/// The parameters of all policies. Each kind uses a few.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    pub(crate) block: u64,
    pub(crate) at_least: u64,
    pub(crate) ranges: u64,
    pub(crate) range_bytes: u64,
    pub(crate) collect: Duration,
    pub(crate) depth: u64,
    pub(crate) throttled_depth: u64,
    pub(crate) throttle_after: Duration,
    pub(crate) delay: Duration,
    pub(crate) iops_limit: u64,
    pub(crate) kbps_limit: u64,
    pub(crate) piece: u64,
    pub(crate) every: Duration,
    pub(crate) paced: bool,
    pub(crate) max_age: Duration,
    pub(crate) min_run: Option<u64>,
    pub(crate) slowdown: f64,
    pub(crate) max_latency: Duration,
}

impl PolicyKind {
    /// All of them, in the order in which they are listed.
    pub const ALL: [PolicyKind; 12] = [
        PolicyKind::None,
        PolicyKind::PerBlock,
        PolicyKind::Coalesce,
        PolicyKind::Queued,
        PolicyKind::Ext4Online,
        PolicyKind::XfsOnline,
        PolicyKind::BtrfsSync,
        PolicyKind::BtrfsAsync,
        PolicyKind::F2fs,
        PolicyKind::Fstrim,
        PolicyKind::Guard,
        PolicyKind::Adaptive,
    ];

    /// Its name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            PolicyKind::None => "none",
            PolicyKind::PerBlock => "per-block",
            PolicyKind::Coalesce => "coalesce",
            PolicyKind::Queued => "queued",
            PolicyKind::Ext4Online => "ext4-online",
            PolicyKind::XfsOnline => "xfs-online",
            PolicyKind::BtrfsSync => "btrfs-sync",
            PolicyKind::BtrfsAsync => "btrfs-async",
            PolicyKind::F2fs => "f2fs",
            PolicyKind::Fstrim => "fstrim",
            PolicyKind::Guard => "guard",
            PolicyKind::Adaptive => "adaptive",
        }
    }

    /// A description in a line.
    pub fn about(self) -> &'static str {
        match self {
            PolicyKind::None => "no discards at all",
            PolicyKind::PerBlock => "a discard for each block, before it is free (FFS, 2011)",
            PolicyKind::Coalesce => "a discard for each run of at least 96 KiB (FFS, 2011)",
            PolicyKind::Queued => "up to 64 ranges in a command; reuse cancels what waits",
            PolicyKind::Ext4Online => {
                "ext4 -o discard: each extent after the commit, one in flight"
            }
            PolicyKind::XfsOnline => "XFS -o discard: four in flight, then one",
            PolicyKind::BtrfsSync => "btrfs -o discard=sync: inside the commit",
            PolicyKind::BtrfsAsync => "btrfs -o discard=async: after 120 s, 64 MiB each, limited",
            PolicyKind::F2fs => "f2fs -o discard: eight in a round, while nothing else works",
            PolicyKind::Fstrim => "no online discards, and fstrim from time to time",
            PolicyKind::Guard => "trimbench guard: what was freed, as pace allows",
            PolicyKind::Adaptive => "trimbench rm: pieces as pace allows, on ext4 -o discard",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<PolicyKind> {
        PolicyKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

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

    /// Its usual parameters.
    pub fn usual(self) -> Parameters {
        let piece = match self {
            PolicyKind::BtrfsAsync => 64 << 20,
            _ => GROUP,
        };
        let at_least = match self {
            PolicyKind::Coalesce => 96 << 10,
            PolicyKind::F2fs => 64 << 10,
            _ => 0,
        };
        Parameters {
            block: FFS_BLOCK,
            at_least,
            ranges: 64,
            // 65,535 sectors, in whole blocks.
            range_bytes: 65_535 * 512 / 4096 * 4096,
            collect: Duration::from_secs(1),
            depth: 4,
            throttled_depth: 1,
            // 24 discards of 17.8 ms, by the log of 2024 of two T500 as RAID 0.
            throttle_after: Duration::from_millis(430),
            delay: Duration::from_secs(120),
            iops_limit: 1000,
            kbps_limit: 0,
            piece,
            every: Duration::from_secs(60),
            paced: false,
            max_age: Duration::from_secs(3600),
            min_run: None,
            slowdown: Goal::default().slowdown,
            max_latency: Duration::ZERO,
        }
    }

    /// A policy of this kind for a volume of so many bytes on drives with these limits.
    pub(crate) fn build(self, p: &Parameters, volume: u64, limits: Limits) -> Box<dyn Policy> {
        let goal = Goal {
            max_latency: (!p.max_latency.is_zero()).then_some(p.max_latency),
            ..Goal::slowdown(p.slowdown)
        };
        match self {
            PolicyKind::None => Box::new(NoDiscards),
            PolicyKind::PerBlock => Box::new(PerBlock::new(p.block)),
            PolicyKind::Coalesce => Box::new(Coalesce::new(p.at_least)),
            PolicyKind::Queued => Box::new(Queued::new(
                p.ranges as usize,
                p.range_bytes,
                p.at_least,
                p.collect,
                limits,
            )),
            PolicyKind::Ext4Online => Box::new(Ext4Online::new(p.piece, limits)),
            PolicyKind::XfsOnline => Box::new(XfsOnline::new(
                p.depth as usize,
                p.throttled_depth as usize,
                p.throttle_after,
                limits,
            )),
            PolicyKind::BtrfsSync => Box::new(BtrfsSync::new(limits)),
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

fn shown(value: impl ToString) -> String {
    value.to_string()
}

/// Every parameter of a policy.
pub(crate) const PARAMETERS: &[Key<Parameters>] = crate::keys::keys! { Parameters:
    "block" block "bytes in a block of the file system": blocks, units::bytes_exact;
    "at-least" at_least "shorter ranges are never discarded": size, units::bytes_exact;
    "ranges" ranges "most ranges in a command": |t| number(t, 1, 65_536), shown;
    "range-bytes" range_bytes "most bytes in a range": blocks, units::bytes_exact;
    "collect" collect "freed space is collected for so long": duration, show_duration;
    "depth" depth "discards in flight on each drive": |t| number(t, 1, 1024), shown;
    "throttled-depth" throttled_depth "the same, once reads wait": |t| number(t, 1, 1024), shown;
    "throttle-after" throttle_after "when that begins": duration, show_duration;
    "delay" delay "freed space waits so long for reuse": duration, show_duration;
    "iops-limit" iops_limit "discards a second; 0: any": |t| number(t, 0, 1_000_000), shown;
    "kbps-limit" kbps_limit "KiB a second; 0: any": |t| number(t, 0, 1 << 40), shown;
    "piece" piece "most bytes in a discard": blocks, units::bytes_exact;
    "every" every "time from one fstrim to the next": span, show_duration;
    "paced" paced "whether fstrim is paced as trimbench fstrim": truth, shown;
    "max-age" max_age "guard trims faster what was freed longer ago": span, show_duration;
    "min-run" min_run "shorter runs wait up to half of max-age; auto: by what trims cost": |t| match t { "auto" => Ok(None), _ => size(t).map(Some), }, |run: Option<u64>| run.map_or("auto".to_owned(), units::bytes_exact);
    "slowdown" slowdown "share of the foreground that it may cost": share, units::percent_exact;
    "max-latency" max_latency "most latency that it may add; 0: any": duration, show_duration;
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_parameter_takes_what_it_shows_and_belongs_to_a_policy() {
        for kind in PolicyKind::ALL {
            let usual = kind.usual();
            let mut again = usual.clone();
            for key in PARAMETERS {
                let text = (key.show)(&usual);
                assert_eq!((key.set)(&mut again, &text), Ok(()), "{}", key.name);
            }
            assert_eq!(again, usual);
            assert_eq!(PolicyKind::named(kind.name()), Some(kind));
            for name in kind.parameters() {
                assert!(PARAMETERS.iter().any(|key| key.name == *name), "{name}");
            }
        }
        let used = |name| {
            PolicyKind::ALL
                .iter()
                .any(|k| k.parameters().contains(&name))
        };
        assert!(PARAMETERS.iter().all(|key| used(key.name)));
    }
}
