//! `sim run --like`: a recorded run as a setup.

use std::path::Path;
use std::time::Duration;

use ::sim::{Drives, Named, Setup, WorkloadKind};
use record::{LoopKind, RunRecord};
use ssd::fit;

use crate::commands::fit::made;
use crate::commands::sim::args::Common;
use crate::exit::{Error, usage};
use crate::input;

/// Reads that any SSD takes at once, at least, as in a fitted card.
const LEAST_PARALLEL: u32 = 32;

/// Most extents that are rebuilt; a record with more discards than that is one of many small
/// files.
const MOST_EXTENTS: u64 = 4_000_000;

/// The setup that repeats a recorded run: its drive as its discards show it, its extents, and its
/// readers.
pub(super) fn setup(path: &Path, common: &Common, policy: Named) -> Result<Setup, Error> {
    let name = input::name(path);
    let input = input::read(path)?;
    let record = match input.is_slowed() {
        true => input.in_drives_time()?.record,
        false => input.record,
    };
    let records = [&record];
    let mut card = fit::fit(&records)?.card(&made::of(&records, None))?;
    let reads = reads(&record);
    if let Some((latency_us, parallel)) = reads {
        card = card.with(&format!("read.latency={latency_us:.3}us"))?;
        card = card.with(&format!("read.parallelism={parallel}"))?;
    }
    let mut setup = Setup::new(Drives::single(card), policy, WorkloadKind::DropFile);
    if reads.is_some() {
        setup.per_io = Duration::ZERO;
    }
    if common.workload != WorkloadKind::DropFile.name() {
        return Err(usage(format!(
            "--workload {}: --like repeats the deletion of {name}; leave one out",
            common.workload
        )));
    }
    setup.extents = extents(&record);
    if setup.extents.is_empty() {
        return Err(usage(format!(
            "{name}: there are no discards in it, so its deletion can't be repeated"
        )));
    }
    setup.size = setup.extents.iter().sum();
    setup.readers = 0;
    for actor in &record.head.actors {
        match (actor.op.as_str(), actor.loop_kind) {
            ("read", LoopKind::Closed { depth }) => setup.readers += depth,
            ("read", LoopKind::Open { rate_per_s, .. }) if actor.name != "canary" => {
                setup.reads_per_s += rate_per_s;
            }
            ("write", loop_kind) => setup.writers += loop_kind.depth(),
            ("fsync", _) => setup.syncers += 1,
            _ => {}
        }
    }
    setup.interval = Duration::from_secs_f64(record.head.interval_ms / 1e3);
    setup.baseline = Duration::from_secs(5);
    Ok(setup)
}

/// The time of a read as its readers observed it, in microseconds, and how many the drive takes at
/// once; `None` without a baseline of readers in closed loop. The device's own time, as a card has
/// it, leaves out the time of the kernel and the program around each read.
fn reads(record: &RunRecord) -> Option<(f64, u32)> {
    let verdict = crate::verdicts::verdict(record);
    let (mut depth, mut per_s) = (0, 0.0);
    for seen in &verdict.foreground {
        if seen.op == "read" && !seen.loop_kind.is_open() {
            depth += seen.loop_kind.depth();
            per_s += seen.baseline.ops_per_s?;
        }
    }
    (per_s > 0.0).then(|| (f64::from(depth) / per_s * 1e6, depth.max(LEAST_PARALLEL)))
}

/// The lengths of the extents: each interval's bytes in as many parts as it had discards. Discards
/// that are far smaller than the usual are the file system's own.
fn extents(record: &RunRecord) -> Vec<u64> {
    let leaves = record.head.devices.iter().zip(&record.intervals.devices);
    let leaves = leaves.filter(|(info, _)| info.leaf);
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    let mut total = 0;
    for (_, columns) in leaves {
        for (&count, &bytes) in columns.discards.iter().zip(&columns.discard_bytes) {
            if count > 0 && bytes > 0 {
                stretches.push((count.into(), bytes));
                total += bytes;
            }
        }
    }
    let mut extents = Vec::new();
    for (count, bytes) in stretches {
        let is_significant = bytes >= total / 1000;
        if is_significant && extents.len() as u64 + count <= MOST_EXTENTS {
            let each = (bytes / count).max(4096) / 4096 * 4096;
            extents.extend(std::iter::repeat_n(each, count as usize));
        }
    }
    extents
}
