//! The record's and verdict's enumerations in words: what each means, and what to do next.

use std::path::Path;

use ::judge::Verdict;
use ::judge::counting;
use ::judge::verdict::condition::{CheckResult, Checked};
use ::judge::verdict::{BaselineFrom, Finding, Reason};
use ::record::RunRecord;
pub(crate) use ::record::units::utc;
use ::record::units::{self, bytes, percent, rate, seconds};
use ::record::{
    ActorInfo, DiscardSetting, EventKind, Head, LoopKind, Part, PhaseName, Target, Written,
};
use storage::FileSystem;

/// How good or bad a statement is; the caller decides how that looks.
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

/// An event's mark in a picture; what comes before the baseline isn't drawn.
pub(crate) fn event(kind: EventKind) -> Option<&'static str> {
    match kind {
        EventKind::DeletionBegan => Some("deletion began"),
        EventKind::DeletionReturned => Some("it returned"),
        EventKind::CommitForced => Some("commit forced"),
        EventKind::CommitReturned => Some("commit done"),
        EventKind::DebtPaid => Some("debt paid"),
        EventKind::DiscardsDidNotCome => Some("discards did not come"),
        EventKind::Interrupted => Some("interrupted"),
        _ => None,
    }
}

/// A part's name.
pub(crate) fn part(part: Part) -> &'static str {
    match part {
        Part::Main => "main",
        Part::Control => "control",
    }
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

/// The result of a condition: `stall(wal)>200ms failed: wal 0.29 s, limit 200 ms`.
pub(crate) fn condition(checked: &Checked) -> (Tone, String) {
    let (tone, result) = match checked.result {
        CheckResult::Held => (Tone::Bad, "failed"),
        CheckResult::Passed => (Tone::Good, "passed"),
        CheckResult::Unknown => (Tone::Warn, "unknown"),
    };
    let seen = match (&checked.actor, checked.value) {
        (Some(actor), Some(value)) => format!("{actor} {}", checked.unit.show(value)),
        _ => "the record has no such figure".to_owned(),
    };
    let (condition, limit) = (&checked.condition, checked.unit.show(checked.limit));
    (tone, format!("{condition} {result}: {seen}, limit {limit}"))
}

/// Whether deleting will lead to discards, in a sentence.
pub(crate) fn discard_setting(setting: DiscardSetting) -> (Tone, &'static str) {
    match setting {
        DiscardSetting::On => (Tone::Good, "on: what is deleted is discarded at once"),
        DiscardSetting::Async => {
            let text = "asynchronous: what is deleted is discarded later, in the background";
            (Tone::Good, text)
        }
        DiscardSetting::Off => {
            let text = "off: the mount sends none, so deleting can't cause TRIM here";
            (Tone::Warn, text)
        }
        DiscardSetting::Unsupported => {
            let text = "not supported: the mount would send them, but no device below takes them";
            (Tone::Warn, text)
        }
        DiscardSetting::Unknown => (Tone::Warn, "whether the mount sends any is unknown here"),
    }
}

/// The bytes that a drive counts, e.g. `8.0 GiB written by the host, 12.0 GiB to flash`; `None` where it
/// doesn't count those of the host.
pub(crate) fn written(written: &Written) -> Option<String> {
    let host = bytes(written.host_written_bytes?);
    let flash = written.flash_written_bytes.map(bytes);
    let flash = flash.map_or(String::new(), |flash| format!(", {flash} to flash"));
    Some(format!("{host} written by the host{flash}"))
}

/// The work of an actor, e.g. `random 4 KiB read, direct, io_uring, closed loop at depth 8`.
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
    let loops = match (&actor.loop_kind, actor.engine.as_str()) {
        // A log of iostat shows no more: a fixed rate has operations in flight, too.
        (LoopKind::Closed { depth }, "iostat") => format!("about {depth} in flight"),
        (kind, _) => loop_kind(kind),
    };
    text += &format!(", {}, {loops}", actor.engine);
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
            format!("open loop at {}{arrivals}", rate(rate_per_s))
        }
    }
}

/// A block's size; whole units without the `.0` that would promise a measurement.
fn block(bytes: u64) -> String {
    let shown = units::bytes(bytes);
    match units::parse_size(&shown) == Ok(bytes) {
        true => shown.replace(".0 ", " "),
        false => shown,
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
        Some(BaselineFrom::WithoutDiscards) => {
            Some("Without: the seconds of the deletion without discards, but with its writes.")
        }
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

/// Explains a reason for this record, with the next step.
pub(crate) fn advice(why: Reason, verdict: &Verdict, record: &RunRecord) -> String {
    let target = &record.head.target;
    match why {
        Reason::TooNoisy => too_noisy(verdict),
        Reason::TooLittleDeleted => too_little(verdict, &record.head),
        Reason::NoDiscards if record.head.scenario.get("simulated").is_some() => {
            "The policy sent none, or hardly any, while the run lasted.".to_owned()
        }
        Reason::NoDiscards if verdict.discard.commands != Some(0) => {
            no_discards(target).replacen("no discards", "hardly any discards", 1)
        }
        Reason::NoDiscards => no_discards(target),
        Reason::CountersOff if record.head.scenario.get("imported_from").is_some() => {
            "The log has no columns of discards, so it is unknown whether discards came, and a dip \
             may be theirs. Record with sysstat 12.1 or newer, on Linux 4.18 or newer."
                .to_owned()
        }
        Reason::CountersOff => counters_off(&counting::blind(&record.head.devices)),
        Reason::DevicesUnknown if target.mount.is_none() => {
            "What the devices did was not recorded, so a stall looks like any other dip. Record \
             `iostat -x -y -t 1` beside it, and import both."
                .to_owned()
        }
        Reason::TooFewOperations if verdict.foreground.is_empty() => {
            "No reads or writes were measured meanwhile: there were none, or they were over too \
             soon. So no stall can show. The figures of the discards stand."
                .to_owned()
        }
        why => fixed(why).to_owned(),
    }
}

/// How large a loss would have been seen, and what would help.
fn too_noisy(verdict: &Verdict) -> String {
    let seen = verdict.foreground.iter().filter_map(|f| f.detectable);
    let least = seen.min_by(f64::total_cmp).filter(|&loss| loss < 1.0);
    let seen = match least.map(percent) {
        Some(loss) => format!("Only a loss of {loss} or more would have been seen"),
        None => "No loss would have been seen".to_owned(),
    };
    format!(
        "Without discards the foreground scatters so much that a loss of 10 % is within that scatter. \
         {seen}. Delete more, so that its discards last longer; make the baseline longer; stop \
         other load; or compare several runs with several without discards (trimbench compare)."
    )
}

/// No stall is shorter, in seconds.
const SHORTEST_STALL_S: f64 = 0.2;

/// How much to delete, or how closely to look.
fn too_little(verdict: &Verdict, head: &Head) -> String {
    let target = &head.target;
    let option = match (head.scenario.get("simulated"), target.size_bytes) {
        (Some(_), _) => " (--set size=…)",
        // A log of another program.
        (None, 0) => "",
        _ => " (--size)",
    };
    let place = match target.mount {
        Some(_) => "file system",
        None => "device",
    };
    let more = match verdict.try_bytes.map(bytes) {
        Some(size) => format!("Delete {size}{option}, which would take seconds."),
        None if target.size_bytes == 0 => "Delete more.".to_owned(),
        None => format!(
            "So much does not fit here: this {place} is too small, or too full, for a \
             conclusive run. Use a larger one, or free space first."
        ),
    };
    let two_s = 2.0 * head.interval_ms / 1e3;
    let closer = match (two_s > SHORTEST_STALL_S, target.size_bytes) {
        (false, _) => "",
        (true, 0) => " Or measure with trimbench run, which looks every 100 ms.",
        (true, _) => " Or look closer: --set phases.interval=100ms.",
    };
    format!(
        "The discards were over too soon to tell whether they stall: a stall lasts two intervals \
         and 200 ms (here {}), a slowdown one second. {more}{closer}",
        seconds(two_s.max(SHORTEST_STALL_S))
    )
}

/// The next step where counters are off.
fn counters_off(devices: &[&str]) -> String {
    let on = |device: &&str| format!("echo 1 > /sys/class/block/{device}/queue/iostats");
    let commands: Vec<String> = devices.iter().map(on).collect();
    let (devices, commands) = (devices.join(" and "), commands.join("; "));
    format!(
        "The counters of {devices} are switched off (queue/iostats is 0), so it is unknown whether \
         discards came, and a dip may be theirs. Switch them on ({commands}), or run with \
         --set counters=enable."
    )
}

/// Returns the text of a reason, of a table of all that have one of their own.
macro_rules! texts {
    ($of:ident { $($reason:ident => $text:literal,)+ } $($other:pat => $more:expr,)*) => {
        match $of { $(Reason::$reason => $text,)+ $($other => $more,)* }
    };
}

/// Explains a reason whose text is always the same, with the next step.
fn fixed(reason: Reason) -> &'static str {
    use Reason::{CountersOff, NoDiscards, TooLittleDeleted, TooNoisy};
    texts! { reason {
        ForeignDiscards => "Discards that can't be this deletion's came while it was measured: an \
            fstrim (`systemctl list-timers fstrim.timer`), another program that frees space on the \
            same drive, or files deleted below a loop device. Repeat the run when no other program \
            discards.",
        DevicesUnknown => "No block device is known below the target, so nothing counted discards, \
            and a dip may be theirs. Is /sys mounted? In a container or on a network file system \
            run on the host or the server.",
        Absent => "trimbench itself did not run while most of the discards were processed, so what \
            they did was not seen. Repeat the run, and let it run through: no suspend, no Ctrl-Z, \
            enough processors.",
        DiscardsDidNotCome => "Not all that was freed had been discarded when the wait for it \
            ended, so a stall may have lasted longer: wait longer (phases.drain-limit; of sim: \
            limit). Background discards (btrfs discard=async, f2fs) can wait for minutes. If none \
            came, a layer between file system and drive may swallow them, e.g. dm-crypt without \
            allow_discards.",
        NoDeletion => "Nothing was deleted, so there is nothing to judge. If the run was stopped \
            early, let it reach its delete phase.",
        NothingDeleted => "The free space did not grow, so the outside program or the event \
            deleted nothing: it failed, it moved the files, another name or an open file kept \
            them, or they lie on another file system. Check the command, and give a PATH on the \
            file system that it frees.",
        NoSteadyBaseline => "The foreground never was steady enough to compare with. Stop what \
            else uses the device, or give it longer to settle and a longer baseline; after a big \
            write a drive may work in the background for minutes.",
        TooFewOperations => "Too few operations, or too short a time of discards, to see a loss of \
            10 %. Delete more, or raise the rate or depth of the foreground.",
        ControlDipsToo => "The control run, which sent no discards, lost about as much: TRIM isn't \
            proven to be the cause. Deleting itself may be the cause (the file system's own work, \
            or its journal).",
        DipsWithoutDiscards => "The foreground was slow without discards, or for longer than they \
            took: something else slowed it, or the drive goes on trimming after it has answered. \
            Look for other load; a control run (--control) shows whether it comes back without \
            discards.",
        Interrupted => "The run was interrupted before it was over; what is judged is what had \
            been recorded by then. Repeat it to its end.",
        Failed => "The run failed before it was over; what is judged is what had been recorded by \
            then. Its error says what to do; then repeat it.",
        DiscardsAllTheTime => "Discards were in service nearly all the time while files were \
            created and dropped, so what they cost can't be separated from what the writes cost. A \
            control run (--control) has the writes without the discards; or leave longer pauses \
            between the deletions, or look closer (--set phases.interval=10ms).",
        MoreWritesWithDiscards => "The devices wrote far more in the seconds with discards than in \
            those without: it may be the writes that slow the foreground. A control run \
            (--control) has them without the discards; or let the deleter write more evenly.",
        Writeback => "Only writes into the page cache were slow. The kernel lets them run at the \
            memory's speed until too much is dirty, then slows them down, with discards or \
            without. A control run (--control) has the writes without the discards; or add a \
            reader, or write past the cache.",
        ForegroundErrors => "The foreground had errors, so its rate isn't the device's. See the \
            kernel's log (dmesg), and don't trust the figures before they are gone.",
        }
        // `advice` has these, with their figures.
        TooNoisy | TooLittleDeleted | NoDiscards | CountersOff => "",
    }
}

/// Explains why no discards came, from the settings of the mount and its devices.
fn no_discards(target: &Target) -> String {
    let mount = target.mount.as_deref().unwrap_or("MOUNTPOINT");
    match target.discard {
        DiscardSetting::Off => {
            let fs = FileSystem::of(target.fs.as_deref().unwrap_or(""));
            let device = target.source.as_deref().unwrap_or("DEVICE");
            let switch_on = fs.discard_on(device, Path::new(mount));
            format!(
                "The devices saw no discards, since {mount} is mounted without them. To see what they \
                 would do: {switch_on}, then run again. A periodic fstrim can still stall this system."
            )
        }
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
            "The device got discards to process, but its statistics show no discards. Before Linux \
             4.18 there are none; otherwise a layer below swallows them."
                .to_owned()
        }
        DiscardSetting::On => format!(
            "The devices saw no discards, though {mount} is mounted with them. Was the run long \
             enough for a commit, and did the deletion free whole blocks? A second name or an open \
             file keeps the data of a deleted file alive."
        ),
        DiscardSetting::Unknown => "The devices saw no discards, and whether this mount sends any \
            is unknown here. In a container or on a network file system they are sent, if \
            at all, by the host or the server: run there."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(why: Reason, target: &Target) -> String {
        match why {
            Reason::NoDiscards => no_discards(target),
            Reason::CountersOff => counters_off(&["the devices"]),
            why => fixed(why).to_owned(),
        }
    }

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
    fn where_nothing_ran_nothing_could_stall() {
        let mut record = crate::common::SHORT.record();
        record.head.actors.clear();
        record.intervals.actors.clear();
        let verdict = ::judge::judge(&record, &::judge::JudgeOptions::default());
        let text = advice(Reason::TooFewOperations, &verdict, &record);
        assert!(
            text.starts_with("No reads or writes were measured meanwhile"),
            "{text}"
        );
    }

    #[test]
    fn long_intervals_are_named_where_the_discards_were_over_too_soon() {
        let mut record = crate::common::SHORT.record();
        let verdict = ::judge::judge(&record, &::judge::JudgeOptions::default());
        let mut of = |interval_ms, size_bytes| {
            record.head.interval_ms = interval_ms;
            record.head.target.size_bytes = size_bytes;
            advice(Reason::TooLittleDeleted, &verdict, &record)
        };
        let run = of(1000.0, 1 << 40);
        assert!(
            run.contains("(here 2.0 s)") && run.contains("phases.interval=100ms"),
            "{run}"
        );
        let log = of(1000.0, 0);
        assert!(log.contains("trimbench run, which looks"), "{log}");
        let fine = of(100.0, 1 << 40);
        assert!(
            fine.contains("(here 0.20 s)") && !fine.contains("interval="),
            "{fine}"
        );
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
            Reason::NothingDeleted,
            Reason::ForeignDiscards,
            Reason::CountersOff,
            Reason::DevicesUnknown,
            Reason::NoSteadyBaseline,
            Reason::TooFewOperations,
            Reason::ControlDipsToo,
            Reason::DipsWithoutDiscards,
            Reason::Interrupted,
            Reason::Failed,
            Reason::DiscardsAllTheTime,
            Reason::MoreWritesWithDiscards,
            Reason::Writeback,
            Reason::Absent,
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
            fs: Some("ext4".into()),
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
