//! The trials that will be run, and how much they take.

use std::fmt;
use std::time::Duration;

use bench::Survey;
use record::units::{GIB, MIB, names};
use serde::Serialize;
use storage::FileSystem;

use crate::Error;
use crate::tune::candidates::{BESIDE, Setup, different, limits};
use crate::tune::target::Target;

/// Most that a run deletes, unless asked for.
const MOST: u64 = 4 * GIB;

/// Fewer bytes are freed too fast to see anything.
const LEAST: u64 = 64 * MIB;

/// Values of the limit, unless they are given.
const LIMITS: usize = 4;

/// The user's choice of trials.
#[derive(Debug, Clone)]
pub struct Request {
    /// Bytes that each run deletes; `None` for as much as is safe.
    pub size_bytes: Option<u64>,
    /// The longest time for all runs together.
    pub time: Duration,
    /// Runs of each trial.
    pub repeats: u32,
    /// Values of `discard_max_bytes`, in bytes; empty for a handful of our choice.
    pub limits_bytes: Vec<u64>,
    /// Ways of discarding.
    pub policies: Vec<Policy>,
    /// Share of others' throughput that what is paced may cost, 0 to 1.
    pub slowdown: f64,
}

/// The trials, in the order of a round.
#[derive(Debug)]
pub struct Trials {
    /// The set-up that all have in common.
    pub setup: Setup,
    /// Each trial once. As many runs may be repeated, because something disturbed them.
    pub all: Vec<Trial>,
    /// `discard_max_bytes` as it is.
    pub now_bytes: u64,
    /// Runs of each.
    pub repeats: u32,
    /// Above it the limit changes nothing.
    pub unit_bytes: Option<u64>,
}

impl Trials {
    /// Chooses what to try.
    ///
    /// # Errors
    /// When there is too little room or time, or a limit isn't one that the drives take.
    pub fn choose(request: &Request, target: &Target, survey: &Survey) -> Result<Trials, Error> {
        let program = std::env::current_exe()
            .map_err(|e| Error::Usage(format!("can't tell where this program is: {e}")))?;
        let mut setup = Setup {
            size_bytes: 0,
            slowdown: request.slowdown,
            program,
            mount_point: target.mount.mount_point.clone(),
            discards_twice: FileSystem::mounted(&target.mount).discards_twice(),
        };
        let usable = survey.space.usable_bytes();
        let room = usable.saturating_sub(setup.written_bytes());
        setup.size_bytes = request.size_bytes.unwrap_or((room / 2).min(MOST)) / MIB * MIB;
        if let Some(why) = unfit(request.size_bytes, room, setup.size_bytes) {
            let directory = names::shown(&target.directory);
            let reserve = record::units::bytes(survey.space.reserve_bytes());
            return Err(Error::Usage(format!(
                "{directory}: {why} ({reserve} stay free)"
            )));
        }
        let unit_bytes = FileSystem::mounted(&target.mount)
            .largest_discard_bytes(survey.space.block_bytes, survey.target.discard);
        let most = unit_bytes.unwrap_or(u64::MAX).min(setup.size_bytes);
        let sizes = match request.limits_bytes.is_empty() {
            // What can't be put back is changed for those alone who ask for it.
            true if !target.irreversible.is_empty() => vec![target.range.now_bytes],
            true => limits(&target.range, most, LIMITS),
            false => given(request, target, most)?,
        };
        // The present limit always: all else is compared with it.
        let now = target.range.now_bytes;
        let asked = |policy: &Policy| request.policies.contains(policy);
        let trial = |policy, limit_bytes| Trial {
            policy,
            limit_bytes,
        };
        let mut all: Vec<Trial> = sizes
            .into_iter()
            .map(|size| trial(Policy::Online, size))
            .collect();
        all.retain(|trial| trial.limit_bytes == now || asked(&trial.policy));
        let paced = [Policy::PacedRm, Policy::PacedFstrim]
            .into_iter()
            .filter(asked);
        all.extend(paced.map(|policy| trial(policy, now)));
        let least = BESIDE * all.len() as u32;
        if request.time < least {
            return Err(Error::Usage(format!(
                "--for {}: one run of each takes {} at least: give it that, or fewer limits or \
                 policies",
                record::units::duration_exact(request.time),
                record::units::minutes(least),
            )));
        }
        Ok(Trials {
            setup,
            all,
            now_bytes: now,
            repeats: request.repeats,
            unit_bytes,
        })
    }

    /// Runs, but for those that are repeated.
    pub fn count(&self) -> usize {
        self.all.len() * self.repeats as usize
    }

    /// The drives whose limit will be changed and doesn't come back.
    pub fn left_changed<'a>(&self, target: &'a Target) -> &'a [String] {
        let mut limits = self.all.iter().map(|trial| trial.limit_bytes);
        match limits.any(|bytes| bytes != self.now_bytes) {
            true => &target.irreversible,
            false => &[],
        }
    }
}

/// The limits that were given, and the present one. Of those that act alike, since no discard is
/// larger than `most_bytes`, it returns one: the present one, or else the largest.
fn given(request: &Request, target: &Target, most_bytes: u64) -> Result<Vec<u64>, Error> {
    let range = target.range;
    let granularity = range.granularity_bytes.max(1);
    for &limit in &request.limits_bytes {
        let now = limit == range.now_bytes;
        if !now && (limit == 0 || limit > range.most_bytes() || !limit.is_multiple_of(granularity))
        {
            return Err(Error::Usage(format!(
                "limits {}: {} takes multiples of {} up to {}",
                record::units::bytes_exact(limit),
                target.drives.join(", "),
                record::units::bytes_exact(granularity),
                record::units::bytes_exact(range.most_bytes()),
            )));
        }
    }
    Ok(different(
        &request.limits_bytes,
        range.now_bytes,
        most_bytes,
    ))
}

/// Why so many bytes can't be deleted in each run where `room` bytes are, and what to do.
fn unfit(asked: Option<u64>, room: u64, size: u64) -> Option<String> {
    let [least, most] = [LEAST, room].map(record::units::bytes);
    if (LEAST..=room).contains(&size) {
        return None;
    }
    Some(match asked {
        Some(asked) if room >= LEAST => format!(
            "size={} can't be tried: each run deletes {least} to {most} here; give another size{}",
            record::units::bytes(asked),
            match size > room {
                true => " or free space",
                false => "",
            }
        ),
        _ => format!(
            "too little room: each run deletes at least {least}, and {most} may be deleted here; \
             free space"
        ),
    })
}

// A trial: a way of discarding, and how large a discard may be.

/// A way in which freed space is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The file system sends discards for whatever is deleted, and `rm` deletes.
    Online,
    /// The same, and `trimbench rm` deletes.
    PacedRm,
    /// The file system sends none, and `trimbench fstrim` does later.
    PacedFstrim,
}

impl Policy {
    /// All, from the one that changes least.
    pub const ALL: [Policy; 3] = [Policy::Online, Policy::PacedRm, Policy::PacedFstrim];

    /// Whether it needs a mount that sends discards by itself.
    pub fn is_online(self) -> bool {
        self != Policy::PacedFstrim
    }

    /// In words, short.
    pub fn in_words(self) -> &'static str {
        match self {
            Policy::Online => "online discard",
            Policy::PacedRm => "online discard, paced rm",
            Policy::PacedFstrim => "nodiscard, paced fstrim",
        }
    }
}

/// One of the things that are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Trial {
    /// How freed space is discarded.
    pub policy: Policy,
    /// `discard_max_bytes` meanwhile.
    pub limit_bytes: u64,
}

impl Trial {
    /// Whether it is online discard with this limit: at the present one, all else is compared
    /// with it.
    pub fn is_online_at(&self, limit_bytes: u64) -> bool {
        self.policy == Policy::Online && self.limit_bytes == limit_bytes
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = record::units::bytes(self.limit_bytes);
        write!(f, "{}, at most {limit}", self.policy.in_words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lacks_room_is_answered_with_free_space() {
        let why = |asked, room, size| unfit(asked, room, size).unwrap_or_default();
        assert_eq!(why(Some(GIB), 2 * GIB, GIB), "");
        assert_eq!(why(None, 2 * GIB, GIB), "");
        let small = why(Some(MIB), 2 * GIB, MIB);
        assert!(
            small.contains("size=1.0 MiB") && small.ends_with("give another size"),
            "{small}"
        );
        let large = why(Some(4 * GIB), 2 * GIB, 4 * GIB);
        assert!(
            large.ends_with("64.0 MiB to 2.0 GiB here; give another size or free space"),
            "{large}"
        );
        for asked in [None, Some(MIB), Some(GIB)] {
            let full = why(asked, 10 * MIB, asked.unwrap_or(5 * MIB));
            assert!(
                full.starts_with("too little room") && full.ends_with("free space"),
                "{full}"
            );
        }
    }
}
