//! The messages of `trimbench blkdiscard`.

use std::ops::Range;
use std::time::Duration;

use pace::Work;
use reclaim::Progress;
use reclaim::device::Discarded;
use record::units::names::{quoted, shown};
use record::units::{byte_rate, bytes, counted, seconds};
use ssd::Card;

use crate::commands::blkdiscard::args::BlkdiscardArgs;
use crate::exit::Error;
use crate::{freeing, goal, interference};

/// The range, and a forecast where the drive is known.
pub(super) fn intention(
    args: &BlkdiscardArgs,
    range: &Range<u64>,
    work: &Work,
    card: Option<&Card>,
) -> Result<String, Error> {
    let (device, size) = (shown(&args.device), bytes(range.end - range.start));
    let begin = range.start;
    let text =
        format!("{device}: would discard {size} from byte {begin} on, and destroy what is there");
    let refused = |refusal| Error::Reclaim(reclaim::ReclaimError::Refused(refusal));
    let Some(card) = card else {
        let untested = args.goal.foreseen(None, work).map_err(refused)?;
        let lines = std::iter::once(diagnose::forecast::NO_CARD.to_owned()).chain(untested);
        let lines: String = lines.map(|line| format!("  {line}\n")).collect();
        return Ok(format!("{text}\n{lines}"));
    };
    let plan = pace::plan(card, work, &args.goal.goal()).map_err(refused)?;
    let [time, busy, lost] =
        [plan.time, plan.plain.time, plan.plain.lost].map(|span| seconds(span.as_secs_f64()));
    Ok(format!(
        "{text}\n  in about {time}, step by step; in one call the drive would be busy for {busy}, and \
         others would lose {lost}\n"
    ))
}

/// How far it is.
pub(super) fn line(progress: &Progress, elapsed: Duration) -> String {
    let (done, all) = (progress.freed_bytes, progress.total_bytes);
    let per_s = done as f64 / elapsed.as_secs_f64().max(1e-9);
    let discarded = format!("{} of {} discarded", bytes(done), bytes(all));
    let parts = vec![discarded, byte_rate(per_s)];
    let left = Some(all.saturating_sub(done));
    freeing::line(parts, progress, left, per_s, elapsed)
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
    let (device, again) = (shown(&args.device), quoted(&args.device));
    let words = goal::in_shell(&words);
    format!(
        "trimbench blkdiscard: {device}: interrupted at byte {at}; go on with: trimbench blkdiscard \
         --destroy-data{words} {again}\n"
    )
}

/// The result, a fact a line.
pub(super) fn summary(discarded: &Discarded) -> Vec<String> {
    let (all, calls) = (bytes(discarded.bytes), counted(discarded.calls, "call"));
    let took = seconds(discarded.summary.elapsed.as_secs_f64());
    let text = format!("discarded {all} in {calls} and {took}");
    let report = interference::report(&discarded.summary);
    std::iter::once(text).chain(report).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    /// How long a step is follows from what other I/O does meanwhile.
    #[test]
    fn a_dry_run_foresees_the_time_and_not_the_length_of_a_step() {
        let words = ["trimbench", "blkdiscard", "--dry-run", "/dev/none"];
        let Command::Blkdiscard(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command");
        };
        let card = ssd::profiles::by_name("samsung-870-evo-2tb").unwrap();
        let work = Work::new(64 << 30, 1);
        let text = intention(&args, &(0..64 << 30), &work, Some(card)).unwrap();
        assert!(
            text.contains("64.0 GiB") && text.contains("in about"),
            "{text}"
        );
        assert_eq!(text.matches("iB").count(), 1, "{text}");
    }
}
