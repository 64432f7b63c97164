//! Discards that can't be this deletion's.
//!
//! Statistics don't show who sent a discard. But the discards of a deletion have limits:
//!
//! - none where the mount sends none;
//! - none before its first call;
//! - below a loop device or a volume, none that did not come through that;
//! - no more than its file system discards for what was freed.
//!
//! In a simulation all discards are the deletion's.
//!
//! Discards beyond the limits belong to others. Of those within, the first count as the deletion's.

use std::ops::Range;

use super::counting::{Counted, MEANINGFUL, SIGNIFICANT, significant, upper};
use super::discards::{Seen, TRICKLE_BYTES, in_service};
use super::spans::Spans;
use super::stats::total;
use super::window::Window;
use crate::verdict::{NotTheDeletions, OthersDiscards};
use record::units::{bytes, seconds};
use record::{ActorInfo, DiscardSetting, Part, RunRecord};

/// Discards on the deletion's devices that can't be its own.
#[derive(Debug, Clone, Default)]
pub(super) struct Others {
    /// Their sum, in bytes; 0 where there are next to none.
    pub(super) total_bytes: u64,
    /// Those in the delete phase.
    pub(super) during_bytes: u64,
    /// Sum of the waits of those that completed in each interval, in milliseconds; empty
    /// where there are none.
    pub(super) wait_ms: Vec<u64>,
    /// Whether one of them was in service in an interval.
    pub(super) covered: Vec<bool>,
    /// Whether an interval has discards that may be the deletion's and don't count: they came
    /// after its phase, or when all that it freed had been discarded.
    pub(super) unsure: Vec<bool>,
    /// Why most of them can't be the deletion's.
    pub(super) why: Option<NotTheDeletions>,
}

impl Others {
    /// Returns no discards of others, in so many intervals.
    pub(super) fn none(intervals: usize) -> Others {
        Others {
            covered: vec![false; intervals],
            unsure: vec![false; intervals],
            ..Others::default()
        }
    }

    /// Returns whether there are more than a few.
    pub(super) fn any(&self) -> bool {
        self.total_bytes > 0
    }

    /// Returns their figures for the verdict; `None` if there are none.
    pub(super) fn figures(&self, record: &RunRecord) -> Option<OthersDiscards> {
        Some(OthersDiscards {
            bytes: self.total_bytes,
            during_bytes: self.during_bytes,
            active_s: self.active_s(record),
            why: self.why.filter(|_| self.any())?,
        })
    }

    /// Returns a sentence for the user where there were any.
    pub(super) fn warning(&self, record: &RunRecord) -> Option<String> {
        let figures = self.figures(record)?;
        let (bytes, took) = (bytes(figures.bytes), seconds(figures.active_s));
        let why = figures.why.in_words();
        Some(format!(
            "Others discarded {bytes} in {took} on the same devices ({why}). They don't count as this \
             deletion's, and the baseline leaves out the seconds with them."
        ))
    }

    /// Returns the time with their discards in service, in seconds.
    pub(super) fn active_s(&self, record: &RunRecord) -> f64 {
        let all = 0..self.covered.len();
        Spans::filtered(all, |i| self.covered[i]).seconds(record)
    }

    /// Returns the intervals of a phase without them; `None` where less than half of its time is
    /// left.
    pub(super) fn spare(&self, phase: &Range<usize>, record: &RunRecord) -> Option<Spans> {
        let free = Spans::filtered(phase.clone(), |i| !self.covered[i]);
        let whole = Spans::from(phase.clone());
        (2.0 * free.seconds(record) >= whole.seconds(record)).then_some(free)
    }
}

/// The limits of a part's own discards.
struct Limits {
    /// Whether the deletion can have sent any.
    sends: bool,
    /// Whether the foreground frees space itself, so that discards come before the deletion.
    foreground_frees: bool,
    /// The most that is discarded for what was freed, in bytes.
    most: f64,
    /// The most that came through the devices above, in bytes.
    through: f64,
}

/// Splits the discards: the bytes of each interval that count as the part's own, and those of
/// others.
///
/// It looks for others at the devices whose discards count. Where those lie below a loop device or
/// a volume, it looks at that, too. There another process may discard space that is free already,
/// and such discards never reach the drive.
pub(super) fn split(
    record: &RunRecord,
    window: &Window,
    counted: &Counted,
    seen: &Seen,
    freed: Option<u64>,
    continuous: bool,
) -> (Vec<u64>, Others) {
    let n = record.intervals.len();
    let delete = window.delete.clone().unwrap_or(0..0);
    let within = |i: usize| {
        if delete.contains(&i) {
            seen.bytes[i]
        } else {
            0
        }
    };
    let all = || (0..n).map(within).collect();
    if !window.has_phases || window.part == Part::Control || is_simulated(record) {
        return (all(), Others::none(n));
    }
    let above = upper(record, counted, delete.start..window.all.end);
    let mut limits = Limits::of(record, freed, continuous);
    let above = above.map(|above| {
        let seen = Seen::of(record, &above);
        let bytes = total(seen.bytes[delete.start..window.all.end].iter().copied());
        let shares = Shares::of(&seen, window, &limits, freed);
        limits.through = THROUGH * bytes as f64 + TRICKLE_BYTES as f64;
        (seen, shares)
    });
    let here = Shares::of(seen, window, &limits, freed);
    let found = here.others(record, seen, window, freed);
    let above = above.map(|(seen, shares)| shares.others(record, &seen, window, freed));
    let mut own = here.own;
    if !found.any() {
        for i in delete {
            own[i] += here.others[i];
        }
    }
    let more = above.filter(|above| above.total_bytes > found.total_bytes);
    let unsure = found.unsure.clone();
    let others = more.map_or(found, |more| Others { unsure, ..more });
    (own, others)
}

/// Whose the discards of some devices are, in each interval.
struct Shares {
    /// Bytes that may be the deletion's and lie in its phase.
    own: Vec<u64>,
    /// Bytes that can't be its.
    others: Vec<u64>,
    /// Whether there are more than a trickle that may be its and don't count.
    unsure: Vec<bool>,
    /// Bytes that can't be its, by why.
    why: [u64; NotTheDeletions::ALL.len()],
}

impl Shares {
    fn of(seen: &Seen, window: &Window, limits: &Limits, freed: Option<u64>) -> Shares {
        let n = seen.bytes.len();
        let end = window.all.end;
        let delete = window.delete.clone().unwrap_or(end..end);
        let whole = freed.unwrap_or(TRICKLE_BYTES) as f64;
        let mut trickle = SIGNIFICANT * whole;
        // Discards that go on after the phase are many small ones.
        let later = &seen.bytes[delete.end.min(end)..end];
        if total(later.iter().copied()) as f64 >= MEANINGFUL * whole {
            trickle = trickle.min(significant(later) as f64);
        }
        let much = |bytes: u64| bytes as f64 >= trickle.max(1.0);
        let mut it = Shares {
            own: vec![0; n],
            others: vec![0; n],
            unsure: vec![false; n],
            why: [0; 4],
        };
        let mut used = 0.0;
        for i in window.all.clone() {
            let bytes = seen.bytes[i];
            let (ours, why) = if !limits.sends {
                (0, NotTheDeletions::MountSendsNone)
            } else if i < delete.start && limits.foreground_frees {
                it.unsure[i] = much(bytes);
                continue;
            } else if i < delete.start {
                (0, NotTheDeletions::BeforeIt)
            } else {
                let left = (limits.most.min(limits.through) - used).max(0.0);
                (bytes.min(left as u64), limits.beyond())
            };
            used += ours as f64;
            match delete.contains(&i) {
                true => it.own[i] = ours,
                false => it.unsure[i] = much(ours),
            }
            it.others[i] = bytes - ours;
            let sum = &mut it.why[why as usize];
            *sum = sum.saturating_add(it.others[i]);
        }
        it
    }

    /// Returns the discards of others, if they are more than a trickle: at least [`TRICKLE_BYTES`],
    /// and 1 % of what was freed.
    fn others(
        &self,
        record: &RunRecord,
        seen: &Seen,
        window: &Window,
        freed: Option<u64>,
    ) -> Others {
        let n = self.others.len();
        let unsure = self.unsure.clone();
        let total_bytes = total(self.others.iter().copied());
        let least = freed.map_or(0.0, |freed| MEANINGFUL * freed as f64);
        if total_bytes < TRICKLE_BYTES || (total_bytes as f64) < least {
            return Others {
                unsure,
                ..Others::none(n)
            };
        }
        let share = |i: usize| self.others[i] as f64 / seen.bytes[i].max(1) as f64;
        let commands = |i| (f64::from(seen.commands[i]) * share(i)).ceil() as u32;
        let commands: Vec<u32> = (0..n).map(commands).collect();
        let wait_ms = |i| (seen.wait_ms[i] as f64 * share(i)) as u64;
        let wait_ms: Vec<u64> = (0..n).map(wait_ms).collect();
        let least = significant(&self.others);
        let significant: Vec<bool> = self.others.iter().map(|&bytes| bytes >= least).collect();
        let all = NotTheDeletions::ALL.into_iter();
        let delete = window.delete.clone().unwrap_or(0..0);
        Others {
            covered: in_service(record, &significant, &commands, &wait_ms),
            during_bytes: total(self.others[delete].iter().copied()),
            total_bytes,
            wait_ms,
            unsure,
            why: all.max_by_key(|&why| self.why[why as usize]),
        }
    }
}

impl Limits {
    fn of(record: &RunRecord, freed: Option<u64>, continuous: bool) -> Limits {
        let head = &record.head;
        let silent = matches!(
            head.target.discard,
            DiscardSetting::Off | DiscardSetting::Unsupported
        );
        let foreground_frees = head.actors.iter().any(frees);
        let bounded = head.target.discards_at_most.zip(freed);
        let most = bounded.filter(|_| !foreground_frees && !continuous);
        Limits {
            sends: !(silent && leaves_discards_to_the_mount(record)),
            foreground_frees,
            most: most.map_or(f64::INFINITY, |(most, freed)| most.of(freed)),
            through: f64::INFINITY,
        }
    }

    /// Returns why discards beyond the limits can't be the deletion's.
    fn beyond(&self) -> NotTheDeletions {
        match self.through < self.most {
            true => NotTheDeletions::FromElsewhere,
            false => NotTheDeletions::MoreThanFreed,
        }
    }
}

/// Devices below discard at most this multiple of what those above did.
const THROUGH: f64 = 1.02;

/// Returns whether the run was simulated: nobody but its deletion discards.
pub(super) fn is_simulated(record: &RunRecord) -> bool {
    record.head.scenario.get("simulated").is_some()
}

/// Returns whether nothing of the deletion discards by itself, as an fstrim or an outside program
/// may.
fn leaves_discards_to_the_mount(record: &RunRecord) -> bool {
    let scenario = &record.head.scenario;
    let Some(method) = scenario.pointer("/deletion/method") else {
        // Only a run says how it deletes; one without a deletion sends none at all.
        let deletion = scenario.get("deletion");
        return deletion.is_some_and(serde_json::Value::is_null);
    };
    let key = match method {
        serde_json::Value::Object(fields) => fields.keys().next().map(String::as_str),
        other => other.as_str(),
    };
    let known = [
        "unlink", "truncate", "punch", "swap", "purge", "lsm", "spill",
    ];
    key.is_some_and(|key| known.contains(&key))
}

/// Returns whether an actor frees space, as far as its operation shows.
pub(super) fn frees(actor: &ActorInfo) -> bool {
    !matches!(actor.op.as_str(), "read" | "write" | "nop") || actor.engine == "fio"
}
