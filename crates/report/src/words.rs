//! The record's and verdict's enumerations in words: what each means, and what to do next.

use ::timeline::RunRecord;
use ::timeline::record::{ActorInfo, DiscardSetting, LoopKind, Part, PhaseName, Target};
use ::timeline::units;
use ::timeline::verdict::{BaselineFrom, Finding, Reason};

/// How good or bad what is said is; how that looks is up to who shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    /// Worth knowing, neither good nor bad.
    Note,
    Warn,
    Bad,
}

/// A phase's name.
pub(crate) fn phase(name: PhaseName) -> &'static str {
    match name {
        PhaseName::Prepare => "prepare",
        PhaseName::Settle => "settle",
        PhaseName::Baseline => "baseline",
        PhaseName::Delete => "delete",
        PhaseName::Recovery => "recovery",
    }
}

/// A part's name.
pub(crate) fn part(part: Part) -> &'static str {
    match part {
        Part::Main => "main",
        Part::Control => "control",
    }
}

/// A moment as ISO 8601 has it, to the second, e.g. `2023-11-14T22:13:20Z`.
///
/// From days to a date as in Howard Hinnant's "chrono-compatible low-level date
/// algorithms" (`civil_from_days`).
pub(crate) fn utc(unix_s: f64) -> String {
    let seconds = unix_s.clamp(0.0, 2.5e11) as i64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year_of_era + era * 400 + carry;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A finding as a heading.
pub(crate) fn finding(finding: Finding) -> (Tone, &'static str) {
    match finding {
        Finding::Stall => (Tone::Bad, "STALL"),
        Finding::Slowdown => (Tone::Warn, "SLOWDOWN"),
        Finding::None => (Tone::Good, "NO STALL"),
        Finding::Inconclusive => (Tone::Warn, "INCONCLUSIVE"),
    }
}

/// Whether deleting will lead to discards, in a sentence.
pub(crate) fn discard_setting(setting: DiscardSetting) -> (Tone, &'static str) {
    match setting {
        DiscardSetting::On => (Tone::Good, "on: what is deleted is discarded at once"),
        DiscardSetting::Async => (
            Tone::Good,
            "asynchronous: what is deleted is discarded later, in the background",
        ),
        DiscardSetting::Off => (
            Tone::Warn,
            "off: the mount sends none, so deleting can't cause TRIM here",
        ),
        DiscardSetting::Unsupported => (
            Tone::Warn,
            "not supported: the mount would send them, but no device below takes them",
        ),
        DiscardSetting::Unknown => (Tone::Warn, "can't be told from here"),
    }
}

/// What an actor does, e.g. `random 4 KiB read, direct, io_uring, closed loop at depth 8`.
pub(crate) fn actor(actor: &ActorInfo) -> String {
    let mut text = String::new();
    if let Some(pattern) = &actor.pattern {
        text += &format!("{pattern} ");
    }
    if actor.block_bytes > 0 {
        text += &format!("{} ", block(actor.block_bytes));
    }
    text += &actor.op;
    match (actor.direct, actor.engine.as_str()) {
        (Some(true), _) => text += ", direct",
        // Records of imported logs once said so without knowing it.
        (None, _) | (Some(false), "fio" | "iostat") => {}
        (Some(false), _) => text += ", buffered",
    }
    text += &format!(", {}, {}", actor.engine, loop_kind(&actor.loop_kind));
    text
}

/// Closed or open loop, with its figures.
pub(crate) fn loop_kind(kind: &LoopKind) -> String {
    match *kind {
        LoopKind::Closed { depth } => format!("closed loop at depth {depth}"),
        LoopKind::Open {
            rate_per_s,
            poisson,
            ..
        } => {
            let arrivals = if poisson { " (Poisson)" } else { "" };
            format!("open loop at {}{arrivals}", units::rate(rate_per_s))
        }
    }
}

/// A block's size; whole units without the `.0` that would promise a measurement.
fn block(bytes: u64) -> String {
    let shown = units::bytes(bytes);
    if units::parse_size(&shown) == Ok(bytes) {
        shown.replace(".0 ", " ")
    } else {
        shown
    }
}

/// Where a baseline was taken, if not in its own phase.
pub(crate) fn baseline_from(from: Option<BaselineFrom>) -> Option<&'static str> {
    match from {
        Some(BaselineFrom::Phase) => None,
        Some(BaselineFrom::BeforeFirstDiscard) => {
            Some("Before: the steady seconds before the first discard.")
        }
        Some(BaselineFrom::Recovery) => {
            Some("Before: taken from the steady seconds after the last discard.")
        }
        Some(BaselineFrom::WithoutDiscards) => Some(
            "Without: the seconds of the deletion without discards, but with its writes; \
             during: all of it.",
        ),
        None => Some("There was no steady baseline."),
    }
}

/// How bad a reason is.
pub(crate) fn reason_tone(reason: Reason) -> Tone {
    match reason {
        Reason::NoDiscards => Tone::Note,
        _ => Tone::Warn,
    }
}

/// What a reason means of this record, and what to do or try next.
pub(crate) fn advice(why: Reason, record: &RunRecord) -> String {
    let head = &record.head;
    if why == Reason::NoDiscards && head.devices.is_empty() && head.target.mount.is_none() {
        return "What the devices did was not recorded, so a stall can't be told from another dip. Record \
            `iostat -x -y -t 1` beside it, and import both."
            .to_owned();
    }
    reason(why, &head.target)
}

fn reason(reason: Reason, target: &Target) -> String {
    match reason {
        Reason::NoDiscards => no_discards(target),
        Reason::DiscardsDidNotCome => "Most of what was freed had not been discarded when the \
            wait for it ended (--drain-limit). Background discards (btrfs discard=async, f2fs) can wait for \
            minutes; otherwise a layer between file system and drive may swallow them, e.g. \
            dm-crypt without allow_discards."
            .to_owned(),
        Reason::NoDeletion => "Nothing was deleted, so there is nothing to judge. If the run was \
            stopped early, let it reach its delete phase."
            .to_owned(),
        Reason::NoSteadyBaseline => "The foreground never was steady enough to compare with. Stop \
            what else uses the device, or give it longer to settle and a longer baseline; after a \
            big write a drive may work in the background for minutes."
            .to_owned(),
        Reason::TooFewOperations => "Too few operations, or too short a time of discards, to see \
            a loss of 10 %. Delete more, or raise the rate or depth of the foreground."
            .to_owned(),
        Reason::ControlDipsToo => "The control run, which sent no discards, lost about as much: \
            TRIM isn't proven to be the cause. Deleting itself may be what hurts (the file \
            system's own work, or its journal)."
            .to_owned(),
        Reason::DipsWithoutDiscards => "The foreground dipped while no discards were processed: \
            something else slowed it. Look for other load, or background work of the drive; a \
            control run (--control) shows whether it comes back without discards."
            .to_owned(),
        Reason::Interrupted => "The run was interrupted before it was over; what is judged is \
            what had been recorded by then. Repeat it to its end."
            .to_owned(),
        Reason::Failed => "The run failed before it was over; what is judged is what had been \
            recorded by then. Its error says what to do; then repeat it."
            .to_owned(),
        Reason::DiscardsAllTheTime => "Discards were in service nearly all the time while files \
            were created and dropped, so it can't be told what they cost from what the writes \
            cost. A control run (--control) has the writes without the discards; or leave longer \
            pauses between the deletions, or look closer (--interval)."
            .to_owned(),
        Reason::MoreWritesWithDiscards => "The devices wrote far more in the seconds with \
            discards than in those without: it may be the writes that slow the foreground. A \
            control run (--control) has them without the discards; or let the deleter write \
            more evenly."
            .to_owned(),
        Reason::ForegroundErrors => "The foreground had errors, so its rate isn't the device's. \
            See the kernel's log (dmesg), and don't trust the figures before they are gone."
            .to_owned(),
    }
}

/// Why no discards came depends on what the mount and its devices said before.
fn no_discards(target: &Target) -> String {
    let mount = target.mount.as_deref().unwrap_or("MOUNTPOINT");
    match target.discard {
        DiscardSetting::Off => format!(
            "The devices saw no discards, since {mount} is mounted without them. To see what they \
             would do: mount -o remount,discard {mount}, then run again. A periodic fstrim can \
             still stall this system."
        ),
        DiscardSetting::Unsupported => format!(
            "The devices saw no discards, since none below {mount} takes them. The list of \
             devices shows where they stop; dm-crypt needs allow_discards, md RAID 4/5/6 needs \
             devices_handle_discard_safely, and a virtual disk needs discard=unmap (or the like) \
             on its host."
        ),
        DiscardSetting::Async => "The devices saw no discards yet: the file system sends them in \
            the background, minutes later (btrfs waits 120 s). Let the recovery phase last longer \
            to see them."
            .to_owned(),
        DiscardSetting::On if target.mount.is_none() => {
            "The device was told to discard, but its statistics show no discards. Before Linux \
             4.18 there are none; otherwise a layer below swallows them."
                .to_owned()
        }
        DiscardSetting::On => format!(
            "The devices saw no discards, though {mount} is mounted with them. Was the run long \
             enough for a commit, and did the deletion free whole blocks? A second name or an open \
             file keeps the data of a deleted file alive."
        ),
        DiscardSetting::Unknown => "The devices saw no discards, and whether this mount sends any \
            can't be told from here. In a container or on a network file system they are sent, if \
            at all, by the host or the server: run there."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_log_does_not_tell_is_not_said() {
        let mut info = crate::common::SHORT.record().head.actors.remove(0);
        assert!(actor(&info).contains(", direct, io_uring, "));
        info.direct = Some(false);
        assert!(actor(&info).contains(", buffered, io_uring, "));
        for engine in ["fio", "iostat"] {
            info.engine = engine.to_owned();
            assert!(!actor(&info).contains("buffered"), "{}", actor(&info));
        }
        (info.direct, info.engine) = (None, "libaio".to_owned());
        assert!(actor(&info).ends_with("read, libaio, closed loop at depth 8"));
    }

    #[test]
    fn moments_are_dates() {
        assert_eq!(utc(0.0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400.9), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_735_689_599.0), "2024-12-31T23:59:59Z");
        assert_eq!(utc(f64::NAN), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn a_block_is_named_without_false_digits() {
        assert_eq!(block(4096), "4 KiB");
        assert_eq!(block(4100), "4.0 KiB");
        assert_eq!(block(512), "512 B");
        assert_eq!(block(1 << 20), "1 MiB");
    }

    #[test]
    fn each_reason_is_a_sentence_with_what_to_do() {
        let settings = [
            DiscardSetting::On,
            DiscardSetting::Async,
            DiscardSetting::Off,
            DiscardSetting::Unsupported,
            DiscardSetting::Unknown,
        ];
        let reasons = [
            Reason::NoDiscards,
            Reason::DiscardsDidNotCome,
            Reason::NoDeletion,
            Reason::NoSteadyBaseline,
            Reason::TooFewOperations,
            Reason::ControlDipsToo,
            Reason::DipsWithoutDiscards,
            Reason::Interrupted,
            Reason::Failed,
            Reason::DiscardsAllTheTime,
            Reason::MoreWritesWithDiscards,
            Reason::ForegroundErrors,
        ];
        let mut texts = std::collections::BTreeSet::new();
        for discard in settings {
            let target = Target {
                discard,
                ..Target::default()
            };
            texts.extend(reasons.map(|why| reason(why, &target)));
        }
        // No discards has a remedy for each setting, and on a raw device its own.
        assert_eq!(texts.len(), reasons.len() - 1 + settings.len());
        for text in texts {
            assert!(text.ends_with('.') && !text.contains("  "), "{text}");
            assert!(
                text.matches(". ").count() + text.matches(": ").count() > 0,
                "{text}"
            );
        }
    }

    #[test]
    fn no_discards_says_how_to_get_some() {
        let target = Target {
            mount: Some("/data".into()),
            discard: DiscardSetting::Off,
            ..Target::default()
        };
        let text = reason(Reason::NoDiscards, &target);
        assert!(text.contains("mount -o remount,discard /data"), "{text}");
        let text = reason(
            Reason::NoDiscards,
            &Target {
                discard: DiscardSetting::Unsupported,
                ..target
            },
        );
        assert!(text.contains("allow_discards"), "{text}");
    }
}
