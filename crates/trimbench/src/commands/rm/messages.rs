//! The messages of a deletion: those of rm, and its cost for other I/O.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pace::{Kept, Limit};
use reclaim::throttle::Summary;
use reclaim::{Cleaned, Event, Intention, Reply, Where};
use record::DiscardSetting;
use record::units::names::quoted;
use record::units::{bytes, counted, seconds};
use storage::FileSystem;

use super::ask;
use super::progress::line;
use crate::console::Stream;
use crate::interference;
use crate::status_line::Live;

/// So many directories with interrupted removals are named.
const SHOWN: usize = 3;

/// Fewer bytes without discards are not reported.
const NAMED: u64 = 1 << 20;

/// Reports, asks, and stops when the user presses Ctrl-C.
pub(super) struct Printer {
    quiet: bool,
    /// Where each removed name is printed, if it is.
    verbose: Option<Stream>,
    stop: Arc<AtomicBool>,
    shown: Live,
    /// There was a note, printed or not.
    noted: bool,
}

impl Printer {
    pub(super) fn new(quiet: bool, verbose: Option<Stream>, stop: Arc<AtomicBool>) -> Printer {
        Printer {
            quiet,
            verbose,
            stop,
            shown: Live::new("trimbench rm"),
            noted: false,
        }
    }

    /// Whether anything was noted so far.
    pub(super) fn has_noted(&self) -> bool {
        self.noted
    }

    /// Removes the live line.
    pub(super) fn end(&mut self) {
        self.shown.end();
    }

    /// Receives an event of the deletion.
    pub(super) fn hear(&mut self, event: Event<'_>) -> Reply {
        let mut yes = true;
        match event {
            Event::Progress(progress) if !self.quiet => {
                self.shown.show(|elapsed| line(&progress, elapsed));
            }
            Event::Note(sentence) => {
                self.noted = true;
                if !self.quiet {
                    self.print(&sentence);
                }
            }
            Event::Removed { path, directory } => {
                if let Some(to) = self.verbose {
                    let kind = if directory { "directory " } else { "" };
                    let text = format!("removed {kind}{}\n", quoted(path));
                    self.shown.print(to, &text);
                }
            }
            Event::Failed(path, problem) => self.print(&problem.message(path)),
            Event::Question {
                path,
                what,
                protected,
            } => {
                self.shown.end();
                yes = ask::about(path, what, protected, &self.stop);
            }
            Event::Progress(_) | Event::Trimmed { .. } => {}
        }
        match self.stop.load(Ordering::Relaxed) {
            true => Reply::Stop,
            false if yes => Reply::Yes,
            false => Reply::No,
        }
    }

    fn print(&self, text: &dyn Display) {
        self.shown
            .print(Stream::Err, &format!("trimbench rm: {text}\n"));
    }
}

/// Describes the deletion of several subvolumes together.
pub(super) fn subvolumes(intentions: &[Intention]) -> Option<String> {
    let all: Vec<Option<u64>> = intentions
        .iter()
        .flat_map(|one| one.subvolumes.clone())
        .collect();
    let exclusive: Option<u64> = all.iter().copied().sum();
    let free = exclusive.map(|least| {
        let least = bytes(least);
        format!(", free at least {least}: what they share with each other alone comes free, too")
    });
    let text = format!("{} subvolumes, in this order", all.len());
    (all.len() > 1).then(|| text + &free.unwrap_or_default() + "\n")
}

/// Describes what would be done with an argument.
pub(super) fn intention(intention: &Intention) -> String {
    let way = intention.in_place.as_ref();
    let way = way.map_or(String::new(), |why| format!(", in place ({why})"));
    let pace = match (intention.paced, &intention.unpaced) {
        (true, _) => "paced".to_owned(),
        (false, None) => "at once".to_owned(),
        (false, Some(why)) => format!("at once ({why})"),
    };
    let path = quoted(&intention.path);
    let below = &intention.subvolumes;
    let exclusive = match (below.iter().copied().sum::<Option<u64>>(), below.len()) {
        (Some(exclusive), 1) => format!("{} that only it has", bytes(exclusive)),
        (Some(exclusive), _) => format!("at least {}", bytes(exclusive)),
        (None, _) => "an unknown amount (no quotas count it)".to_owned(),
    };
    if intention.subvolume {
        return format!("{path}: would delete the subvolume and free {exclusive}, {pace}{way}\n");
    }
    let names = counted(intention.names, "name");
    let most = if intention.at_most && intention.bytes > 0 {
        "at most "
    } else {
        ""
    };
    let freed = bytes(intention.bytes);
    let stays = match (intention.stays.files, bytes(intention.stays.bytes)) {
        (0, _) => String::new(),
        (1, stay) => format!("; {stay} stay, because 1 file also has other names"),
        (files, stay) => format!("; {stay} stay, because {files} files also have other names"),
    };
    let below = match below.len() {
        0 => String::new(),
        count => format!(
            " and, with {} in it, {exclusive}",
            counted(count as u64, "subvolume")
        ),
    };
    format!("{path}: would free {most}{freed} in {names}{below}, {pace}{way}{stays}\n")
}

/// Describes that nothing was resumed, with the directories where something is left and whether more
/// is noted.
pub(super) fn nothing_left(place: &Where, (others, noted): (Vec<PathBuf>, bool)) -> String {
    let Where::Directory(directory) = place else {
        return "trimbench rm: nothing to go on with\n".to_owned();
    };
    let elsewhere = match (&others[..], noted) {
        ([], false) => String::new(),
        ([], true) => "; --resume=all names what you left elsewhere".to_owned(),
        ([other], _) => {
            let other = quoted(other);
            format!(
                "; an interrupted removal is in {other}, go on with: trimbench rm --resume={other}"
            )
        }
        (all, _) => {
            let shown = all.iter().take(SHOWN).map(quoted);
            let more = if all.len() > SHOWN { " and others" } else { "" };
            format!(
                "; interrupted removals are in {}{more}, go on with all: trimbench rm --resume=all",
                shown.collect::<Vec<_>>().join(", ")
            )
        }
    };
    let directory = quoted(directory);
    format!("trimbench rm: nothing to go on with in {directory}{elsewhere}\n")
}

/// The result of a deletion, and whether its goal was met: in sentences.
pub(super) fn summary(summary: &Summary) -> String {
    if summary.freed == 0 && summary.cleaned.is_none() {
        return String::new();
    }
    let (freed, took) = (bytes(summary.freed), seconds(summary.elapsed.as_secs_f64()));
    let came = match summary.later {
        Some(fs) => later(fs, summary.freed.saturating_sub(summary.exempt)),
        None => discarded(summary),
    };
    let gave_up = (summary.later.is_none() && summary.written_off > 0).then(|| {
        format!(
            "no discards came for {}: a process may still have the file open, or the loop device's \
             file has no blocks for it",
            bytes(summary.written_off)
        )
    });
    let exempt = (summary.exempt >= NAMED).then(|| {
        format!(
            "{} needed no discard: the drive did not have them yet, or another file shares them",
            bytes(summary.exempt)
        )
    });
    let mut lines = vec![format!("freed {freed} in {took}, {came}")];
    lines.extend(gave_up.into_iter().chain(exempt));
    lines.extend(interference::report(summary));
    let work = summary.cleaned.iter();
    lines.extend(work.map(|work| cleaned(work, summary)));
    let lines = lines.into_iter();
    lines
        .map(|line| format!("trimbench rm: {line}\n"))
        .collect()
}

/// Describes the work of the kernel's cleaner, which nothing paces.
fn cleaned(work: &Cleaned, summary: &Summary) -> String {
    let (took, subvolumes) = (work.took, counted(work.subvolumes, "subvolume"));
    let length = |time: Duration| seconds(time.as_secs_f64());
    let quotas = work.quotas.filter(|quotas| !quotas.is_zero());
    let quotas = quotas.map_or(String::new(), |quotas| {
        let length = length(quotas);
        format!(", {length} of it in the accounting of quotas (btrfs quota disable saves it)")
    });
    let is = |kept| {
        let mut goals = summary.goals.iter();
        goals.any(|goal| matches!(goal.limit, Limit::Slowdown(_)) && goal.kept == kept)
    };
    let so = match (is(Kept::Missed), is(Kept::Unsure)) {
        (true, _) => "at a quiet time other I/O loses less",
        (_, true) => "only the time before and after shows other I/O without it",
        _ => "",
    };
    let took = length(took);
    let others = match work.others {
        0 => String::new(),
        others => format!(", and {others} that others had deleted: their space is counted too"),
    };
    let work = format!("the kernel's cleaner freed {subvolumes} in {took}{quotas}{others}");
    match so {
        "" => work,
        so => format!("{work}. Nothing slows it down, and it works while rm pauses, too: {so}"),
    }
}

/// Describes discards that come when the deletion is over.
fn later(fs: FileSystem, freed: u64) -> String {
    let (freed, when) = (bytes(freed), fs.when(DiscardSetting::Async, true));
    format!("the file system discards {freed} later ({when}), which rm does not pace")
}

/// Describes how much was discarded. Space that was free before can be part of it (ext4 discards up
/// to the next block in use), and others' discards that can't be distinguished.
fn discarded(summary: &Summary) -> String {
    if !summary.counted {
        return "discards not counted".to_owned();
    }
    if summary.written_off > 0 {
        let came = summary.freed - summary.written_off.min(summary.freed);
        return format!("{} discarded", bytes(summary.discarded.min(came)));
    }
    if summary.discarded_twice > 0 {
        let twice = bytes(summary.discarded_twice);
        return format!(
            "all discarded, at most {twice} of it once more by the drive, with emptied block groups"
        );
    }
    let (all, beside) = (
        bytes(summary.discarded),
        summary.discarded.saturating_sub(summary.freed),
    );
    if all == bytes(summary.freed) || beside == 0 {
        return format!("{all} discarded");
    }
    let beside = bytes(beside);
    format!("all discarded, with {beside} of free space beside it or of others")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(freed: u64, discarded: u64) -> Summary {
        Summary {
            elapsed: Duration::from_secs(2),
            freed,
            discarded,
            discards: 1,
            answered: true,
            counted: true,
            ..Summary::default()
        }
    }

    #[test]
    fn no_more_is_claimed_than_was_freed() {
        let said = |freed, discarded| summary(&of(freed, discarded));
        let mib = 1 << 20;
        assert_eq!(
            said(64 * mib, 60 * mib),
            "trimbench rm: freed 64.0 MiB in 2.0 s, 60.0 MiB discarded\n\
             trimbench rm: other I/O lost: not measured (too few reads and flushes, or their load changed)\n\
             trimbench rm: trimbench's own reads: not measured\n"
        );
        let more = said(64 * mib, 80 * mib);
        let claimed = "all discarded, with 16.0 MiB of free space beside it or of others\n";
        assert!(more.contains(claimed), "{more}");
        assert!(said(64 * mib, 64 * mib + 4096).contains("64.0 MiB discarded\n"));
        assert_eq!(said(0, mib), "");
    }

    #[test]
    fn discards_that_come_later_are_announced_and_not_measured() {
        let later = |later, written_off| Summary {
            counted: false,
            later: Some(later),
            written_off,
            ..of(300 << 20, 256 << 20)
        };
        assert_eq!(
            summary(&later(FileSystem::Btrfs, 300 << 20)),
            "trimbench rm: freed 300 MiB in 2.0 s, the file system discards 300 MiB later (in the \
             background, 120 s after the deletion), which rm does not pace\n"
        );
        let f2fs = summary(&later(FileSystem::F2fs, 0));
        let claimed = "(in the background, when it is idle), which rm does not pace\n";
        assert!(f2fs.ends_with(claimed), "{f2fs}");
    }

    #[test]
    fn bytes_that_no_discard_comes_for_are_explained() {
        let fresh = |exempt| Summary {
            exempt,
            ..of(128 << 20, 0)
        };
        let text = summary(&fresh(128 << 20));
        let claimed = "freed 128 MiB in 2.0 s, 0 B discarded\ntrimbench rm: 128 MiB needed no discard: the drive did";
        assert!(text.contains(claimed), "{text}");
        assert!(!summary(&fresh(4096)).contains("needed no discard"));
    }

    #[test]
    fn a_dry_run_tells_what_other_names_keep() {
        let of = |at_most, files| Intention {
            path: "t".into(),
            bytes: 1 << 20,
            stays: reclaim::Stays {
                files,
                bytes: files << 20,
            },
            at_most,
            names: 5,
            in_place: None,
            paced: true,
            unpaced: None,
            subvolume: false,
            subvolumes: Vec::new(),
        };
        assert_eq!(
            intention(&of(false, 2)),
            "'t': would free 1.0 MiB in 5 names, paced; 2.0 MiB stay, because 2 files also have \
             other names\n"
        );
        assert_eq!(
            intention(&of(true, 0)),
            "'t': would free at most 1.0 MiB in 5 names, paced\n"
        );
    }

    #[test]
    fn an_own_absence_is_reported() {
        use record::absence::{Absent, Cause};
        let summary = super::summary(&Summary {
            absences: vec![Absent {
                seconds: 2.0,
                cause: Cause::Stopped,
            }],
            ..of(1 << 30, 1 << 30)
        });
        let said = "trimbench rm: trimbench itself did not run for 2.0 s (stopped). All figures \
                    leave that time out.\n";
        assert!(summary.ends_with(said), "{summary}");
    }

    #[test]
    fn beside_the_cleaner_a_goal_that_was_not_certainly_met_has_its_reason() {
        let cleaned = Cleaned {
            subvolumes: 20,
            others: 5,
            took: Duration::from_secs(3),
            quotas: Some(Duration::from_secs(1)),
        };
        let of = |kept| Summary {
            cleaned: Some(cleaned),
            goals: vec![pace::GoalResult {
                limit: pace::Limit::Slowdown(0.1),
                kept,
                measured: None,
                witness: None,
                first_missed_s: None,
                worst: None,
            }],
            ..of(0, 0)
        };
        let (met, missed) = (summary(&of(Kept::Met)), summary(&of(Kept::Missed)));
        let work = "the kernel's cleaner freed 20 subvolumes in 3.0 s, 1.0 s of it in the accounting of \
                    quotas (btrfs quota disable saves it), and 5 that others had deleted";
        assert!(met.contains(work) && missed.contains(work), "{met}");
        let free = Cleaned {
            quotas: Some(Duration::ZERO),
            ..cleaned
        };
        let free = summary(&Summary {
            cleaned: Some(free),
            ..of(Kept::Met)
        });
        assert!(!free.contains("quota"), "nothing to save: {free}");
        let why = "works while rm pauses, too: at a quiet time";
        assert!(missed.contains(why) && !met.contains(why), "{missed} {met}");
        let unsure = summary(&of(Kept::Unsure));
        let why = "works while rm pauses, too: only the time before and after shows";
        assert!(unsure.contains(why), "{unsure}");
    }

    #[test]
    fn what_btrfs_discards_twice_is_not_called_others() {
        let summary = Summary {
            discarded_twice: 1 << 30,
            ..of(1 << 30, 2 << 30)
        };
        let claimed = discarded(&summary);
        assert_eq!(
            claimed,
            "all discarded, at most 1.0 GiB of it once more by the drive, with emptied block groups"
        );
        // Nor is all said to be discarded of which a part never was.
        let part = Summary {
            written_off: 256 << 20,
            ..summary
        };
        assert_eq!(discarded(&part), "768 MiB discarded");
    }
}
