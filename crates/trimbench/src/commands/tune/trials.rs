//! What is going to be tried, and how much that takes.

use std::time::Duration;

use ::tune::{Course, Ground, Policy, Trial, limits};
use bench::Survey;
use units::names;
use units::{GIB, MIB};

use crate::commands::tune::args::{PolicyArg, TuneArgs};
use crate::exit::Error;
use storage::FileSystem;

/// Most that a run deletes, unless asked for.
const MOST: u64 = 4 * GIB;
/// Fewer bytes are freed too fast to see anything.
const LEAST: u64 = 64 * MIB;
/// Values of the limit, unless they are given.
const LIMITS: usize = 4;

/// The trials, in the order of a round.
#[derive(Debug)]
pub(super) struct Trials {
    pub(super) course: Course,
    pub(super) all: Vec<Trial>,
    /// `discard_max_bytes` as it is.
    pub(super) now_bytes: u64,
    pub(super) repeats: u32,
    /// Above it the limit changes nothing.
    pub(super) unit_bytes: Option<u64>,
}

impl Trials {
    pub(super) fn choose(
        args: &TuneArgs,
        ground: &Ground,
        survey: &Survey,
    ) -> Result<Trials, Error> {
        let program = std::env::current_exe()
            .map_err(|e| Error::Usage(format!("can't tell where this program is: {e}")))?;
        let mut course = Course {
            size_bytes: 0,
            slowdown: args.slowdown,
            program,
            mount_point: ground.mount.mount_point.clone(),
            discards_again: FileSystem::mounted(&ground.mount).discards_twice(),
        };
        let usable = survey.space.usable_bytes();
        let room = usable.saturating_sub(course.written_bytes());
        course.size_bytes = args.size.unwrap_or((room / 2).min(MOST)) / MIB * MIB;
        if course.size_bytes < LEAST || course.size_bytes > room {
            return Err(Error::Usage(format!(
                "{}: too little room: each run deletes at least {}{}, and {} may be written beyond \
                 the {} that stay free; free some space{}",
                names::shown(&ground.directory),
                units::bytes(LEAST),
                args.size.map_or(String::new(), |size| format!(
                    " (asked for: {})",
                    units::bytes(size)
                )),
                units::bytes(usable),
                units::bytes(survey.space.reserve_bytes()),
                if args.size.is_some() {
                    " or give another --size"
                } else {
                    ""
                },
            )));
        }
        let unit_bytes = FileSystem::mounted(&ground.mount)
            .largest_discard_bytes(survey.space.block_bytes, survey.target.discard);
        let most = unit_bytes.unwrap_or(u64::MAX).min(course.size_bytes);
        let sizes = match args.limits.is_empty() {
            // What can't be put back is changed for those alone who ask for it.
            true if !ground.irreversible.is_empty() => vec![ground.range.now_bytes],
            true => limits(&ground.range, most, LIMITS),
            false => given(args, ground)?,
        };
        // The present limit always: all else is compared with it.
        let now = ground.range.now_bytes;
        let wanted = |&&size: &&u64| size == now || args.policies.contains(&PolicyArg::Online);
        let online = sizes.iter().filter(wanted).map(|&limit_bytes| Trial {
            policy: Policy::Online,
            limit_bytes,
        });
        let mut all: Vec<Trial> = online.collect();
        let paced = [
            (PolicyArg::Rm, Policy::PacedRm),
            (PolicyArg::Fstrim, Policy::PacedFstrim),
        ];
        for (arg, policy) in paced {
            if args.policies.contains(&arg) {
                all.push(Trial {
                    policy,
                    limit_bytes: now,
                });
            }
        }
        let least = course.beside() * all.len() as u32;
        if args.time < least {
            return Err(Error::Usage(format!(
                "--time {}: one run of each takes {} at least: give it that, or fewer --limits or \
                 --policies",
                units::duration_exact(args.time),
                minutes(least),
            )));
        }
        Ok(Trials {
            course,
            all,
            now_bytes: now,
            repeats: args.repeats,
            unit_bytes,
        })
    }

    /// Runs, but for those that are repeated.
    pub(super) fn count(&self) -> usize {
        self.all.len() * self.repeats as usize
    }

    /// Runs that may be repeated because something disturbed them.
    pub(super) fn spare(&self) -> usize {
        self.all.len()
    }

    /// What will be done, before it is.
    pub(super) fn told(&self, args: &TuneArgs, ground: &Ground) -> String {
        let range = ground.range;
        let mut text = format!(
            "{} ({}), on {}: discard_max_bytes is {} of at most {}, and deleting sends {}.\n\n",
            names::shown(&ground.mount.mount_point),
            ground.mount.fs,
            ground.drives.join(", "),
            units::bytes_exact(range.now_bytes),
            units::bytes_exact(range.hw_bytes),
            if ground.is_online() {
                "discards"
            } else {
                "none (nodiscard)"
            },
        );
        text += "Will try, in turns:\n";
        for trial in &self.all {
            let now = trial.limit_bytes == range.now_bytes;
            let as_is = now && trial.policy == Policy::Online && ground.is_online();
            text += &format!(
                "  {}{}\n",
                super::name(trial.policy, trial.limit_bytes),
                if as_is { " (as it is)" } else { "" }
            );
        }
        let each = self.course.written_bytes();
        let runs = self.count();
        let most_runs = (runs + self.spare()) as u64;
        text += &format!(
            "\n{runs} runs{}, each beside 8 readers and an fsync 20 times a second. Each writes {}, \
             {} in all (at most {}), and deletes it again. At least {}, and never longer than {}.\n\
             What it sets is put back at the end, whatever the end is{}.\n{}\n",
            match self.spare() {
                0 => String::new(),
                spare => format!(" (up to {spare} more where something disturbs one)"),
            },
            units::bytes(each),
            units::bytes(each.saturating_mul(runs as u64)),
            units::bytes(each.saturating_mul(most_runs)),
            minutes(self.course.beside() * runs as u32),
            minutes(args.time),
            if args.apply {
                ", but for what it advises (--apply)"
            } else {
                ""
            },
            self.irreversible(args, ground),
        );
        text
    }

    /// The drives whose limit will be changed and doesn't come back.
    fn left_changed<'a>(&self, ground: &'a Ground) -> &'a [String] {
        let mut limits = self.all.iter().map(|trial| trial.limit_bytes);
        match limits.any(|bytes| bytes != self.now_bytes) {
            true => &ground.irreversible,
            false => &[],
        }
    }

    /// What is said where a limit doesn't come back.
    fn irreversible(&self, args: &TuneArgs, ground: &Ground) -> String {
        let most = ground.range.most_bytes();
        let left = self.left_changed(ground);
        if !left.is_empty() {
            format!(
                "But the limit of {} will be {most} until the next start: Linux takes no more for \
                 it by hand.\n",
                left.join(", ")
            )
        } else if !ground.irreversible.is_empty() && args.policies.contains(&PolicyArg::Online) {
            format!(
                "No other limit is tried: that of {} would come back with the next start only, for \
                 Linux takes no more than {most} by hand; --limits tries others all the same.\n",
                ground.irreversible.join(", ")
            )
        } else {
            String::new()
        }
    }
}

/// The limits that were given, and the present one.
fn given(args: &TuneArgs, ground: &Ground) -> Result<Vec<u64>, Error> {
    let range = ground.range;
    let granularity = range.granularity_bytes.max(1);
    for &limit in &args.limits {
        let now = limit == range.now_bytes;
        if !now && (limit == 0 || limit > range.most_bytes() || !limit.is_multiple_of(granularity))
        {
            return Err(Error::Usage(format!(
                "--limits {}: {} takes multiples of {} up to {}",
                units::bytes_exact(limit),
                ground.drives.join(", "),
                units::bytes_exact(granularity),
                units::bytes_exact(range.most_bytes()),
            )));
        }
    }
    let mut all = args.limits.clone();
    all.push(range.now_bytes);
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    Ok(all)
}

fn minutes(time: Duration) -> String {
    match time.as_secs() {
        s if s >= 120 => format!("{} min", s.div_ceil(60)),
        s => format!("{s} s"),
    }
}
