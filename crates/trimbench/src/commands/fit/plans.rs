//! The rungs of a ladder, each a run of its own.
//!
//! A rung frees a file in extents of one size, so that one discard of that size is in flight and
//! nothing disturbs it.
//!
//! - ext4 and btrfs wait for each discard, so the file is freed and committed at once. With a
//!   commit for each extent the flush kept the discards waiting: b came out half too large on
//!   drives whose flush takes a millisecond.
//! - XFS would send all discards at once, so each extent is committed.
//!
//! There isn't even a read now and then. On a SATA drive reads wait for the commit's flush, and the
//! discard that follows would wait for them.
//!
//! If a figure at either end of the ladder isn't certain, the rung is repeated. Other work of the
//! machine only ever makes discards look slower, and the more discards there are, the less it
//! counts.
//!
//! The last run deletes as fast as it can beside readers: their loss shows φ and the kind of queue.

use std::time::Duration;

use bench::Survey;
use bench::plan::{ActorSpec, Deletion, Discard, LoopKind, Method, Place, Plan, Truncate, Unlink};
use bench::scenario::Phases;
use record::units::{GIB, MIB};
use ssd::fit::{Fit, Point};

use crate::exit::Error;
use storage::FileSystem;

/// Discards of a rung: enough for a mean, and soon over.
const MOST: u64 = 64;
/// The fewest discards of a rung that give a mean.
const LEAST: u64 = 4;
/// Discards beside readers, at least.
const LOADED: u64 = 32;
/// The shortest stall beside readers, in seconds of the drive's own time: the judge counts one of
/// 200 ms.
const STALL_S: f64 = 0.5;
/// The most runs that may be added to make the ladder's ends certain.
pub(super) const MORE: usize = 4;
/// An end that is known to this share is certain. From two such ends b follows to a tenth, even if
/// the size costs no more than half of a large discard's time.
const SURE: f64 = 0.05;
/// Most that is written at once, unless asked for.
const SPACE: u64 = 4 * GIB;
/// Bytes of the file that is read meanwhile.
const FOREGROUND: u64 = 64 * MIB;
/// How long the discards may come after the deletion: XFS and btrfs commit after 30 s.
const DRAIN: Duration = Duration::from_secs(40);
/// Between two pieces: a discard is over before the next one comes.
const PAUSE: Duration = Duration::from_millis(20);
/// And at least this, in the drive's own time, where that is stretched.
const OWN_PAUSE: Duration = Duration::from_millis(4);

/// A run of the ladder.
#[derive(Debug)]
pub(super) struct Rung {
    /// Describes the run in words.
    pub(super) about: String,
    pub(super) plan: Plan,
}

/// The runs of a ladder.
#[derive(Debug)]
pub(super) struct Ladder {
    /// The runs without readers, from the smallest size to the largest.
    pub(super) quiet: Vec<Rung>,
    /// The sizes of their discards.
    sizes: Vec<u64>,
    /// Most that is written at once.
    pub(super) space: u64,
    /// How many times slower the drive is than the one it stands for.
    times: f64,
}

/// Makes the ladder of a place. `times`: how many times slower the drive is than the one that it
/// stands for.
pub(super) fn of(
    survey: &Survey,
    sizes: &[u64],
    space: Option<u64>,
    times: f64,
) -> Result<Ladder, Error> {
    let most = largest(survey);
    let usable = match survey.place {
        Place::Directory(_) => survey.space.usable_bytes(),
        Place::Device { .. } => survey.space.size_bytes,
    };
    let room = usable.saturating_sub(FOREGROUND);
    let space = space.unwrap_or(SPACE.min(room / 2)).min(room);
    let mut sizes: Vec<u64> = sizes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    let unit = survey.space.block_bytes.max(4096);
    if let Some(odd) = sizes.iter().find(|&&s| s == 0 || !s.is_multiple_of(unit)) {
        return Err(Error::Usage(format!(
            "sizes {odd}: discards are whole blocks, so give multiples of {unit} bytes"
        )));
    }
    let fits = |&size: &u64| size <= most && space / size >= LEAST;
    let sizes: Vec<u64> = sizes.into_iter().filter(fits).collect();
    if sizes.is_empty() {
        return Err(Error::Usage(format!(
            "no size of the ladder fits: discards here are at most {}, and of {} at least {LEAST} \
             must go into {}; give smaller sizes, or free some space",
            record::units::bytes(most),
            "each size",
            record::units::bytes(space)
        )));
    }
    let pause = OWN_PAUSE.mul_f64(times).max(PAUSE);
    let quiet = sizes
        .iter()
        .map(|&size| quiet(survey, size, (space / size).min(MOST), pause))
        .collect();
    Ok(Ladder {
        quiet,
        sizes,
        space,
        times,
    })
}

impl Ladder {
    /// Returns the end of the ladder that isn't certain, and the run that measures it once more.
    pub(super) fn again<'s>(&self, seen: &'s Fit) -> Option<(&'s Point, &Rung)> {
        let point = seen.unsure_end(SURE, self.times)?;
        let off = |size: u64| (size as f64 / (point.mib * MIB as f64)).ln().abs();
        let rungs = self.sizes.iter().zip(&self.quiet);
        let nearest = rungs.min_by(|a, b| off(*a.0).total_cmp(&off(*b.0)));
        nearest.map(|(_, rung)| (point, rung))
    }

    /// Returns the run beside readers, once the time of a discard is known. It uses the largest
    /// size of which enough discards fit into the space.
    pub(super) fn loaded(&self, survey: &Survey, seen: &Fit) -> Rung {
        let wanted = |size: u64| {
            let service_us = seen.service_at_most_us(size).unwrap_or(0.0).max(1.0);
            LOADED.max((STALL_S * 1e6 / service_us).ceil() as u64)
        };
        let room = |&&size: &&u64| self.space / size >= wanted(size);
        let size = self.sizes.iter().rev().find(room).or(self.sizes.first());
        let size = size.copied().unwrap_or(self.space);
        let discards = (self.space / size).min(wanted(size)).max(1);
        loaded(survey, size, discards, self.times)
    }
}

/// The largest discard that reaches the devices in one piece.
fn largest(survey: &Survey) -> u64 {
    let leaves = survey.devices.iter().filter(|d| d.leaf);
    let limits = leaves.map(|d| d.discard.max_bytes).filter(|&b| b > 0);
    limits.min().unwrap_or(u64::MAX)
}

fn quiet(survey: &Survey, size: u64, discards: u64, pause: Duration) -> Rung {
    let method: Method = match survey.place {
        Place::Device { .. } => Discard { step_bytes: size }.into(),
        Place::Directory(_) => match FileSystem::named(&survey.target).waits_for_discards() {
            true => Unlink { parallel: 1 }.into(),
            // A piece is an extent and the hole before it (`load::fill`).
            false => Truncate {
                chunk_bytes: size + survey.space.block_bytes.max(4096),
                sleep: pause,
                fsync: true,
            }
            .into(),
        },
    };
    let phases = Phases {
        settle: Some(Duration::ZERO),
        baseline: Some(Duration::ZERO),
        ..phases()
    };
    Rung {
        about: format!(
            "{discards} discards of {}, one by one",
            record::units::bytes(size)
        ),
        plan: plan(survey, None, phases, method, size, discards),
    }
}

fn loaded(survey: &Survey, size: u64, discards: u64, times: f64) -> Rung {
    let method: Method = match survey.place {
        Place::Device { .. } => Discard { step_bytes: size }.into(),
        Place::Directory(_) => Unlink { parallel: 1 }.into(),
    };
    let arrival = LoopKind::Closed { depth: 8 };
    let phases = Phases {
        drain_limit: Some(DRAIN.mul_f64(times.max(1.0))),
        ..phases()
    };
    Rung {
        about: format!(
            "{discards} discards of {}, back to back, beside 8 reads in flight",
            record::units::bytes(size)
        ),
        plan: plan(survey, Some(arrival), phases, method, size, discards),
    }
}

fn phases() -> Phases {
    Phases {
        settle: Some(Duration::from_secs(5)),
        baseline: Some(Duration::from_secs(2)),
        recovery: Some(Duration::from_millis(500)),
        drain_limit: Some(DRAIN),
        ..Phases::default()
    }
}

fn plan(
    survey: &Survey,
    readers: Option<LoopKind>,
    phases: Phases,
    method: Method,
    size: u64,
    discards: u64,
) -> Plan {
    let direct = survey.direct.is_ok();
    let file = matches!(survey.place, Place::Directory(_));
    Plan {
        actors: readers
            .into_iter()
            .map(|arrival| ActorSpec::reader(direct, arrival))
            .collect(),
        deletion: Some(Deletion {
            method,
            size_bytes: size * discards,
            files: 1,
            // Gaps between the pieces: file systems discard together what was freed
            // side by side, also from one commit to the next.
            extent_bytes: file.then_some(size),
            commit: true,
        }),
        ..Plan::plain(survey.place.clone(), direct, FOREGROUND, phases)
    }
}
