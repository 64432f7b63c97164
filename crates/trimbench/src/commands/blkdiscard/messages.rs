//! The messages of `trimbench blkdiscard`.

use std::ops::Range;
use std::time::Duration;

use pace::Work;
use reclaim::Progress;
use reclaim::device::Discarded;
use record::units::names::{quoted, shown};
use ssd::Card;

use crate::commands::blkdiscard::args::BlkdiscardArgs;
use crate::exit::Error;
use crate::{goal, interference};

/// The range, and a forecast where the drive is known.
pub(super) fn intention(
    args: &BlkdiscardArgs,
    range: &Range<u64>,
    work: &Work,
    card: Option<&Card>,
) -> Result<String, Error> {
    let bytes = range.end - range.start;
    let text = format!(
        "{}: would discard {} from byte {} on, and destroy what is there",
        shown(&args.device),
        record::units::bytes(bytes),
        range.start
    );
    let refused = |refusal| Error::Reclaim(reclaim::ReclaimError::Refused(refusal));
    let Some(card) = card else {
        let untested = args.goal.foreseen(None, work).map_err(refused)?;
        let lines = std::iter::once(diagnose::forecast::NO_CARD.to_owned()).chain(untested);
        let lines: String = lines.map(|line| format!("  {line}\n")).collect();
        return Ok(format!("{text}\n{lines}"));
    };
    let plan = pace::plan(card, work, &args.goal.goal()).map_err(refused)?;
    Ok(format!(
        "{text}\n  in about {}, in pieces of {}; in one call the drive would be busy for {}, and \
         others would lose {}\n",
        record::units::seconds(plan.time.as_secs_f64()),
        record::units::bytes(plan.piece),
        record::units::seconds(plan.plain.time.as_secs_f64()),
        record::units::seconds(plan.plain.lost.as_secs_f64())
    ))
}

/// How far it is.
pub(super) fn line(progress: &Progress, elapsed: Duration) -> String {
    let per_s = progress.freed_bytes as f64 / elapsed.as_secs_f64().max(1e-9);
    let mut parts = vec![
        format!(
            "{} of {} discarded",
            record::units::bytes(progress.freed_bytes),
            record::units::bytes(progress.total_bytes)
        ),
        record::units::byte_rate(per_s),
    ];
    if let Some(added) = progress.added_latency {
        let added = record::units::latency_us(added.as_secs_f64() * 1e6);
        parts.push(format!("other I/O waits {added} longer"));
    }
    let left = progress.total_bytes.saturating_sub(progress.freed_bytes);
    if left > 0 && per_s >= 1.0 && elapsed >= Duration::from_secs(3) {
        parts.push(format!(
            "{} left",
            record::units::seconds(left as f64 / per_s)
        ));
    }
    parts.join(", ")
}

/// Describes where it stopped, with the command that continues.
pub(super) fn stopped(args: &BlkdiscardArgs, range: &Range<u64>, at: u64) -> String {
    let mut words = vec![
        format!("--offset={at}"),
        format!("--length={}", range.end - at),
    ];
    words.extend(args.step.map(|step| format!("--step={step}")));
    words.extend(args.force.then(|| "--force".to_owned()));
    words.extend(args.goal.given());
    format!(
        "trimbench blkdiscard: {}: interrupted at byte {at}; go on with: trimbench blkdiscard \
         --destroy-data{} {}\n",
        shown(&args.device),
        goal::in_shell(&words),
        quoted(&args.device)
    )
}

/// The result.
pub(super) fn summary(discarded: &Discarded) -> String {
    format!(
        "discarded {} in {} and {}; {}",
        record::units::bytes(discarded.bytes),
        record::units::counted(discarded.calls, "call"),
        record::units::seconds(discarded.summary.elapsed.as_secs_f64()),
        interference::lost(&discarded.summary)
    )
}
