//! `--like`: a recorded run as a setup.

use std::path::Path;
use std::time::Duration;

use ::sim::{Drives, PolicyKind, Setup, WorkloadKind};
use judge::Verdict;
use judge::counting;
use judge::verdict::{Discard, Foreground};
use record::as_drive::slower;
use record::units::{bytes, latency_us, percent, seconds};
use record::{DeviceColumns, DiscardSetting, LoopKind, RunRecord, Slower, Target};
use ssd::fit;
use storage::FileSystem;

use crate::commands::fit::made;
use crate::commands::sim::LADDER;
use crate::commands::sim::args::Common;
use crate::commands::sim::setup::drives;
use crate::exit::{Error, usage};
use crate::input;

/// Reads that any SSD takes at once, at least, as in a fitted card.
const LEAST_PARALLEL: u32 = 32;

/// A volume is filled to this share at most.
const MOST_FILLED: f64 = 0.9;

/// Discards that the kernel lets be in flight at most.
const MOST_DEPTH: u64 = 1024;

/// Most extents that are rebuilt; a record with more discards than that is one of many small
/// files.
const MOST_EXTENTS: u64 = 4_000_000;

/// A recorded run, to be repeated.
pub(super) struct Recorded {
    name: String,
    /// As its file system sent its discards.
    setup: Setup,
    /// The size of its discards, in bytes, if no other one's time is known.
    only: Option<u64>,
    /// Its differences from the recorded run, in sentences.
    pub(super) notes: Vec<String>,
    /// The sentence about pauses that its own policy leaves out.
    paused: Option<String>,
    /// The longest wait of a recorded read, in microseconds.
    longest_us: Option<f64>,
}

impl Recorded {
    /// Reads a recorded run: its extents, its readers, and its drive as its discards show it, or as
    /// --profile.
    pub(super) fn read(path: &Path, common: &Common) -> Result<Recorded, Error> {
        let name = input::name(path);
        let input = input::read(path)?;
        let record = match input.is_slowed() {
            true => input.in_drives_time()?.record,
            false => input.record,
        };
        if common.workload != WorkloadKind::DropFile.name() {
            return Err(usage(format!(
                "--workload {}: --like repeats the deletion of {name}; leave one out",
                common.workload
            )));
        }
        let slowed = slower(&record.head.devices).ok().flatten();
        let mut notes: Vec<String> = slowed.iter().map(converted).collect();
        let verdict = crate::record_output::verdict(&record);
        let chunks = chunks(&record, deleted(&verdict));
        let extents = extents(&chunks, deleted(&verdict));
        if extents.is_empty() {
            return Err(usage(format!(
                "{name}: there are no discards in it, so its deletion can't be repeated"
            )));
        }
        let records = [&record];
        let fit = fit::fit(&records)?;
        let reads = reads(&verdict);
        let (drives, only) = match &common.profile {
            Some(profile) => {
                notes.push(format!(
                    "The deletion and the readers are those of {name}; the drive is that of --profile {profile}."
                ));
                let observed_us = reads.map_or(0.0, |reads| reads.latency_us);
                let device_us = fit.reads.service_us.value().unwrap_or(observed_us);
                let around_us = (observed_us - device_us).max(0.0);
                (
                    with_readers(drives(profile)?, reads, Some(around_us))?,
                    None,
                )
            }
            None => {
                let card = fit.card(&made::of(&records, None))?;
                (
                    with_readers(Drives::single(card), reads, None)?,
                    fit.only_bytes(),
                )
            }
        };
        let policy = of_file_system(&record.head.target);
        let mut setup = Setup::new(drives, policy, WorkloadKind::DropFile);
        if reads.is_some() {
            setup.per_io = Duration::ZERO;
        }
        if let Some(depth) = in_flight(&record, &verdict.discard) {
            (setup.parameters.depth, setup.parameters.throttled_depth) = (depth, depth);
        }
        setup.size = extents.iter().sum();
        setup.extents = extents;
        let target = &record.head.target;
        let available = target.available_bytes.unwrap_or(0);
        if available > setup.size {
            setup.volume = target.size_bytes;
            let used = 1.0 - available as f64 / target.size_bytes as f64;
            setup.fill = used.clamp(0.0, MOST_FILLED);
        }
        people(&mut setup, &record, &name)?;
        setup.interval = Duration::from_secs_f64(record.head.interval_ms / 1e3);
        setup.baseline = Duration::from_secs(5);
        notes.push(format!("In the record itself: {}", verdict.summary));
        notes.extend(verdict.foreground.iter().filter_map(drifted));
        Ok(Recorded {
            paused: paused(&chunks, &verdict, setup.size),
            longest_us: longest_read_us(&verdict),
            name,
            setup,
            only,
            notes,
        })
    }

    /// The policy with which the record's file system sends its discards.
    pub(super) fn policy(&self) -> PolicyKind {
        self.setup.policy
    }

    /// Why a policy can't be simulated, if it can't.
    pub(super) fn lacks(&self, policy: PolicyKind) -> Option<String> {
        let size = self.only?;
        let own = self.policy();
        (policy != own && policy != PolicyKind::None).then(|| {
            format!(
                "{} shows the time of discards of about {} alone, so only {} can be simulated. {LADDER}; \
                 then add --profile CARD",
                self.name,
                bytes(size),
                own.name()
            )
        })
    }

    /// The setup of a policy.
    pub(super) fn with(&self, policy: PolicyKind) -> Result<Setup, Error> {
        if let Some(why) = self.lacks(policy) {
            return Err(usage(format!("--policy {}: {why}", policy.name())));
        }
        let mut setup = self.setup.clone();
        if policy != setup.policy {
            (setup.policy, setup.parameters) = (policy, policy.usual());
        }
        Ok(setup)
    }

    /// The notes on a repeat with the record's own policy.
    pub(super) fn notes_on(&self, simulated: &Setup, verdict: &Verdict) -> Vec<String> {
        if simulated.policy != self.policy() {
            return Vec::new();
        }
        let longer = self.longest_us.zip(longest_read_us(verdict));
        let longer = longer.filter(|(recorded_us, here_us)| *recorded_us > LONGER * here_us);
        let longer = longer.map(|(recorded_us, here_us)| {
            let [recorded, here] = [recorded_us, here_us].map(latency_us);
            format!("In the record a read waited up to {recorded}, here up to {here}.")
        });
        self.paused.iter().cloned().chain(longer).collect()
    }
}

/// Everybody who read, wrote and synced beside the deletion.
fn people(setup: &mut Setup, record: &RunRecord, name: &str) -> Result<(), Error> {
    setup.readers = 0;
    for actor in &record.head.actors {
        match (actor.op.as_str(), actor.loop_kind) {
            ("read", LoopKind::Closed { depth }) => setup.readers += depth,
            ("read", LoopKind::Open { .. }) if actor.name != "canary" => {
                return Err(usage(format!(
                    "{name}: {} read at a fixed rate, and how many of its reads the host and the drive \
                     took at once is unknown, so they can't be repeated; record a reader in closed loop",
                    actor.name
                )));
            }
            ("write", loop_kind) => setup.writers += loop_kind.depth(),
            ("fsync", _) => setup.syncers += 1,
            _ => {}
        }
    }
    Ok(())
}

/// The sentence about a reader whose rate before the deletion is no steady one.
fn drifted(seen: &Foreground) -> Option<String> {
    let drift = percent(seen.drifted()?);
    let name = &seen.actor;
    Some(format!(
        "The baseline of {name} drifted by {drift} in the record, so its rate here is uncertain."
    ))
}

/// A recorded wait this many times the simulated one is no scatter.
const LONGER: f64 = 1.25;

/// The longest wait of the reads in closed loop, in microseconds.
fn longest_read_us(verdict: &Verdict) -> Option<f64> {
    let reads = verdict.foreground.iter();
    let reads = reads.filter(|seen| seen.op == "read" && !seen.loop_kind.is_open());
    reads
        .filter_map(|seen| seen.beside().max_us)
        .reduce(f64::max)
}

/// The policy with which a file system sends its discards.
fn of_file_system(target: &Target) -> PolicyKind {
    let fs = FileSystem::of(target.fs.as_deref().unwrap_or_default());
    match (fs, target.discard) {
        (FileSystem::Xfs, _) => PolicyKind::XfsOnline,
        (FileSystem::Btrfs, DiscardSetting::Async) => PolicyKind::BtrfsAsync,
        (FileSystem::Btrfs, _) => PolicyKind::BtrfsSync,
        (FileSystem::F2fs, _) => PolicyKind::F2fs,
        _ => PolicyKind::Ext4Online,
    }
}

/// The sentence about a record in stretched time.
fn converted(slowed: &Slower) -> String {
    let (times, how) = slowed.in_words();
    format!(
        "The record's drive was {times} times {how} than the one it stands for. All times are that one's."
    )
}

/// A record whose discards took this many times as long as the drive was busy with them had pauses.
const WITH_PAUSES: f64 = 2.0;

/// The sentence about a deletion in parts with pauses, which is repeated without them.
fn paused(chunks: &[Chunk], verdict: &Verdict, size: u64) -> Option<String> {
    let took_s = chunks.last()?.end_s - chunks.first()?.start_s;
    let discard = &verdict.discard;
    // Intervals are longer than a short pause, and discards in flight at once wait for each other.
    let waits_s = discard.await_us? * discard.commands? as f64 / 1e6;
    let busy_s = discard.active_s?.min(waits_s);
    (took_s > WITH_PAUSES * busy_s.max(chunks[0].end_s - chunks[0].start_s)).then(|| {
        let (size, took) = (bytes(size), seconds(took_s));
        format!(
            "The record's discards of {size} took {took} with pauses; here they are sent without."
        )
    })
}

/// The drive's discards in flight of a file system that waits for none. On average its own are half of
/// those that it sends at once, and a device above the drive may cut each into several.
fn in_flight(record: &RunRecord, discard: &Discard) -> Option<u64> {
    let top = record.head.devices.iter().position(|one| one.level == 0)?;
    let device = &record.intervals.devices[top];
    let within = fit::window(record);
    let least = counting::significant(&device.discard_bytes[within.clone()]);
    let (mut sent, mut wait_ms) = (0.0, 0.0);
    for i in within.filter(|&i| device.discard_bytes[i] >= least) {
        sent += f64::from(device.discards[i]);
        wait_ms += f64::from(device.discard_ms[i]);
    }
    let average = wait_ms / 1e3 / discard.active_s?;
    let all_at_once = 2.0 * average >= sent;
    let own = if all_at_once { sent } else { average.max(1.0) };
    let pieces = discard.commands? as f64 / sent;
    let depth = own * pieces;
    depth
        .is_finite()
        .then(|| (depth.round() as u64).clamp(1, MOST_DEPTH))
}

/// Reads as their readers observed them.
#[derive(Clone, Copy)]
struct Reads {
    latency_us: f64,
    depth: u32,
}

/// The recorded reads; `None` without a baseline of readers in closed loop.
fn reads(verdict: &Verdict) -> Option<Reads> {
    let (mut depth, mut per_s) = (0, 0.0);
    for seen in &verdict.foreground {
        if seen.op == "read" && !seen.loop_kind.is_open() {
            depth += seen.loop_kind.depth();
            per_s += seen.baseline.ops_per_s?;
        }
    }
    let latency_us = f64::from(depth) / per_s * 1e6;
    (per_s > 0.0).then_some(Reads { latency_us, depth })
}

/// The drives with the record's readers: a read takes as long as they observed. On other drives it
/// takes as long as there, plus the record's time of the kernel and the program around a read.
fn with_readers(
    mut drives: Drives,
    reads: Option<Reads>,
    around_us: Option<f64>,
) -> Result<Drives, Error> {
    let Some(Reads { latency_us, depth }) = reads else {
        return Ok(drives);
    };
    for card in &mut drives.cards {
        let own_us = card.figures().read.latency.as_secs_f64() * 1e6;
        let latency_us = around_us.map_or(latency_us, |around_us| own_us + around_us);
        let parallel = card
            .figures()
            .read
            .parallelism
            .max(depth)
            .max(LEAST_PARALLEL);
        *card = card.with(&format!("read.latency={latency_us:.3}us"))?;
        *card = card.with(&format!("read.parallelism={parallel}"))?;
    }
    Ok(drives)
}

/// Discards of an interval, or of those over which one figure was spread.
struct Chunk {
    start_s: f64,
    end_s: f64,
    count: u64,
    bytes: u64,
}

/// The bytes that were deleted, as far as they are known.
fn deleted(verdict: &Verdict) -> u64 {
    // An event may discard more than it frees.
    let deleted = verdict.deletion.iter().filter(|d| d.event.is_none());
    let deleted = deleted.map(|d| d.bytes).filter(|&bytes| bytes > 0);
    deleted
        .chain(verdict.discard.bytes)
        .min()
        .unwrap_or(u64::MAX)
}

/// The discards of a record's deletion of so many bytes. Those that are far fewer bytes than the usual
/// are the file system's own, or others'; those after as many bytes are others'.
fn chunks(record: &RunRecord, deleted: u64) -> Vec<Chunk> {
    let within = fit::window(record);
    let rows = &record.intervals;
    let counted = counting::counted_in(record, within.clone());
    let sums = |of: fn(&DeviceColumns, usize) -> u64| {
        counted.sums(within.clone(), |device, i| of(&rows.devices[device], i))
    };
    let counts = sums(|device, i| device.discards[i].into());
    let bytes = sums(|device, i| device.discard_bytes[i]);
    let least = (bytes.iter().sum::<u64>() / 1000).max(1);
    let spread = record.head.devices_spread_over();
    let mut all = Vec::new();
    let mut from = within.start;
    while from < within.end {
        let to = ((from / spread + 1) * spread).min(within.end);
        let part = from - within.start..to - within.start;
        let sum = |all: &[u64]| all[part.clone()].iter().sum::<u64>();
        all.push(Chunk {
            start_s: rows.at_s[from],
            end_s: rows.at_s[to - 1] + f64::from(rows.seconds[to - 1]),
            count: sum(&counts),
            bytes: sum(&bytes),
        });
        from = to;
    }
    all.retain(|chunk| chunk.count > 0 && chunk.bytes >= least);
    let mut sum = 0;
    all.retain(|chunk| {
        let before = sum;
        sum += chunk.bytes;
        before < deleted
    });
    all
}

/// The lengths of the deletion's extents: each chunk's bytes in as many parts as it had discards,
/// `left` in all.
fn extents(chunks: &[Chunk], mut left: u64) -> Vec<u64> {
    let mut extents = Vec::new();
    for &Chunk { count, bytes, .. } in chunks {
        if extents.len() as u64 + count > MOST_EXTENTS {
            continue;
        }
        for _ in 0..count {
            let extent = (bytes / count).max(4096).min(left) / 4096 * 4096;
            if extent == 0 {
                return extents;
            }
            left -= extent;
            extents.push(extent);
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may")]

    use record::units::MIB;
    use record::*;

    use super::*;

    #[test]
    fn a_record_in_stretched_time_is_said_to_be_converted() {
        let (times, converted_already) = (4.0, true);
        let said = converted(&Slower {
            times,
            converted: converted_already,
        });
        assert!(
            said.starts_with("The record's drive was 4 times slower"),
            "{said}"
        );
    }

    /// A control run, and from 8 s on a deletion of 160 MiB: in each second discards of 32 MiB, so
    /// many MiB together.
    fn record(mib: &[u64]) -> RunRecord {
        let mut record = RunRecord::new(Head {
            schema: RUN_SCHEMA.into(),
            run: None,
            version: "0".into(),
            started_unix_s: 1.7e9,
            host: Host::default(),
            target: Target::default(),
            scenario: serde_json::json!({}),
            interval_ms: 1e3,
            actors: vec![],
            devices: vec![DeviceInfo {
                leaf: true,
                ..DeviceInfo::disk("sda")
            }],
        })
        .unwrap();
        for (name, part, at_s) in [
            (PhaseName::Delete, Part::Control, 0.0),
            (PhaseName::Prepare, Part::Main, 4.0),
            (PhaseName::Baseline, Part::Main, 6.0),
            (PhaseName::Delete, Part::Main, 8.0),
            (PhaseName::Recovery, Part::Main, 12.0),
        ] {
            record
                .push(&Line::Phase(Phase { name, part, at_s }))
                .unwrap();
        }
        let deletion = DeletionLine {
            part: Part::Main,
            at_s: 8.0,
            seconds: 0.1,
            bytes: 160 * MIB,
            files: 1,
            ..DeletionLine::default()
        };
        record.push(&Line::Deletion(deletion)).unwrap();
        for (i, mib) in mib.iter().enumerate() {
            let device = DeviceInterval {
                discards: mib / 32,
                discard_bytes: mib * MIB,
                discard_ms: if *mib > 0 { 1000 } else { 0 },
                ..DeviceInterval::default()
            };
            let interval = Interval {
                at_s: i as f64,
                seconds: 1.0,
                devices: vec![device],
                ..Interval::default()
            };
            record.push(&Line::Interval(interval)).unwrap();
        }
        record
    }

    #[test]
    fn a_file_system_has_its_own_policy() {
        let of = |fs: &str, discard| {
            of_file_system(&Target {
                fs: Some(fs.to_owned()),
                discard,
                ..Target::default()
            })
        };
        for (fs, discard, policy) in [
            ("xfs", DiscardSetting::On, PolicyKind::XfsOnline),
            ("btrfs", DiscardSetting::Async, PolicyKind::BtrfsAsync),
            ("btrfs", DiscardSetting::On, PolicyKind::BtrfsSync),
            ("ext4", DiscardSetting::On, PolicyKind::Ext4Online),
        ] {
            assert_eq!(of(fs, discard), policy, "{fs}");
        }
    }

    /// iostat's two seconds of 4 and 3 discards of 32 MiB, spread over halves of them.
    #[test]
    fn figures_that_were_spread_are_taken_together() {
        let mut record = record(&[0, 0, 0, 0, 0, 0, 0, 0, 64, 64, 48, 48, 0, 0]);
        record.head.spread_devices_over(2);
        let device = &mut record.intervals.devices[0];
        (device.discards[10], device.discards[11]) = (1, 2);
        record.deletions.clear();
        let verdict = crate::record_output::verdict(&record);
        assert_eq!(
            extents(&chunks(&record, deleted(&verdict)), deleted(&verdict)),
            [32 * MIB; 7]
        );
    }

    #[test]
    fn the_control_the_preparation_and_others_are_not_repeated() {
        let alone = [0, 0, 0, 0, 0, 0, 0, 0, 96, 64, 0, 0, 0, 0];
        let among = [640, 64, 0, 0, 320, 96, 0, 0, 96, 64, 128, 64, 320, 0];
        for mib in [alone, among] {
            let record = record(&mib);
            let verdict = crate::record_output::verdict(&record);
            let extents = extents(&chunks(&record, deleted(&verdict)), deleted(&verdict));
            assert_eq!(extents, [32 * MIB; 5], "{mib:?}");
        }
    }

    /// The sentence about missing waits in a repeat of a simulated deletion of such extents, of which
    /// XFS sends so many at once.
    fn missing(policy: PolicyKind, at_once: u64, extents: &[u64]) -> Option<String> {
        let card = ssd::profiles::by_name("crucial-t500-2tb").unwrap();
        // Beside its bytes, a discard costs nothing.
        let card = card.with("discard.a=0").unwrap();
        let card = card.with("discard.b=300us/MiB").unwrap();
        let drives = Drives::single(card);
        let mut recorded = Setup::new(drives, policy, WorkloadKind::DropFile);
        let parameters = &mut recorded.parameters;
        (parameters.depth, parameters.throttled_depth) = (at_once, at_once);
        recorded.extents = extents.iter().map(|mib| mib * MIB).collect();
        let record = ::sim::run(&recorded).unwrap().record;
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = RecordWriter::new(&file);
        record.lines().for_each(|line| writer.write(&line).unwrap());
        writer.finish().unwrap();
        let common = Common {
            profile: None,
            like: None,
            workload: "drop-file".into(),
            set: Vec::new(),
        };
        let recorded = Recorded::read(file.path(), &common).unwrap();
        let again = ::sim::run(&recorded.setup).unwrap();
        recorded.notes_on(&recorded.setup, &again.verdict).pop()
    }

    #[test]
    fn waits_that_a_repeat_lacks_are_named_with_the_recorded_one() {
        let mixed = [100, 10, 4, 20, 8].repeat(12);
        let text = missing(PolicyKind::Ext4Online, 1, &mixed).unwrap();
        assert!(text.contains("a read waited up to 30."), "{text}");
        assert_eq!(missing(PolicyKind::Ext4Online, 1, &[50; 24]), None);
        for at_once in [1, 24] {
            assert_eq!(missing(PolicyKind::XfsOnline, at_once, &[50; 24]), None);
        }
    }

    #[test]
    fn pauses_of_the_record_are_told_as_left_out() {
        let mut at_once = [0; 30];
        at_once[8..12].fill(40);
        let mut with_pauses = at_once;
        with_pauses[8..12].fill(0);
        (with_pauses[8], with_pauses[24]) = (96, 64);
        let said = |mib| {
            let record = record(mib);
            let verdict = crate::record_output::verdict(&record);
            paused(&chunks(&record, 160 * MIB), &verdict, 160 * MIB)
        };
        assert_eq!(said(&at_once), None);
        // What others discard later is little, and no part of it.
        let mut with_strays = record(&at_once);
        let device = &mut with_strays.intervals.devices[0];
        (device.discards[28], device.discard_bytes[28]) = (2, 8192);
        let verdict = crate::record_output::verdict(&with_strays);
        let told = |bytes| paused(&chunks(&with_strays, bytes), &verdict, bytes);
        assert_eq!(told(160 * MIB), None);
        // Others' may be large, and come when all is discarded.
        let mut with_others = at_once;
        with_others[28] = 40;
        assert_eq!(said(&with_others), None);
        let text = said(&with_pauses).unwrap();
        assert!(text.contains("160 MiB took 17.0 s with pauses"), "{text}");
    }
}
