//! Finds the effect of discards on the foreground: φ, and whether they are a barrier.

use judge::Verdict;
use judge::verdict::{Between, Finding, Foreground};
use record::RunRecord;

use super::cells::Evidence;
use super::figure::{Estimate, Figure};

/// The baseline's rate may be off by this share even where it is steady (else by its drift), and so
/// the time that was lost beside the discards.
const BASELINE_OFF: f64 = 0.02;

/// A drive whose φ is at most this isn't a barrier.
const NO_BARRIER: f64 = 0.8;

/// And one whose φ is at least this serves nothing beside a discard.
const BARRIER: f64 = 0.9;

/// How discards and the foreground got on with each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Share of a discard's time in which nothing else is served.
    pub phi: Figure,
    /// Whether discards are a barrier: nothing is served beside one, and between
    /// two of them one depth of the foreground is, however long they take.
    pub barrier: Option<Barrier>,
    /// Foreground operations for each discard during the stall.
    pub ops_per_discard: Option<f64>,
    /// Foreground operations in flight.
    pub depth: Option<u32>,
    /// Time that the foreground lost for each discard, in microseconds.
    pub lost_us: Option<f64>,
    /// The judge's figures, with their intervals.
    pub judged: judge::verdict::Fit,
}

/// Whether discards are a barrier, and what says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// They are: between two of them as many operations completed as were in
    /// flight.
    Batches,
    /// They are: the foreground lost about as much time as the discards took.
    TimeLost,
    /// They aren't: the foreground lost much less time than the discards took.
    None,
}

impl Share {
    /// Whether discards are a barrier, if it is known.
    pub fn is_barrier(&self) -> Option<bool> {
        self.barrier.map(|barrier| barrier != Barrier::None)
    }

    /// The figures from which a barrier, or none, is concluded, in words.
    pub fn seen(&self) -> String {
        let depth = self.depth.unwrap_or(0);
        let between = self.ops_per_discard.map_or_else(String::new, |ops| {
            format!("{ops:.1} operations between two discards, with {depth} in flight")
        });
        match self.barrier {
            Some(Barrier::Batches) => between,
            Some(Barrier::TimeLost) => format!(
                "other I/O lost about as much time as the discards took (and there were pauses: \
                 {between})"
            ),
            Some(Barrier::None) => "other I/O lost less time than the discards took".to_owned(),
            None => String::new(),
        }
    }

    pub(super) fn nothing(why: &str) -> Share {
        Share {
            phi: Figure::unknown(why),
            barrier: None,
            ops_per_discard: None,
            depth: None,
            lost_us: None,
            judged: judge::verdict::Fit::default(),
        }
    }

    /// Whether it says more than another.
    fn rank(&self) -> u32 {
        let score = |is: bool, worth: u32| if is { worth } else { 0 };
        score(self.barrier.is_some(), 8)
            + score(self.phi.value().is_some(), 4)
            + score(self.lost_us.is_some(), 2)
            + score(self.depth.is_some(), 1)
    }
}

/// The share that says most of what several records tell.
pub(super) fn best(shares: Vec<Share>) -> Share {
    let first = shares.first().cloned();
    let best = shares.into_iter().max_by_key(Share::rank);
    // Of equals the first.
    match (best, first) {
        (Some(best), Some(first)) if best.rank() == first.rank() => first,
        (Some(best), _) => best,
        (None, _) => Share::nothing("no record"),
    }
}

/// The share that one record shows; `service_us` is the time of each of its discards, if known.
pub(super) fn of(
    record: &RunRecord,
    verdict: &Verdict,
    evidence: &Evidence,
    service_us: Option<Estimate>,
) -> Share {
    // The fastest comes first.
    let closed = verdict
        .foreground
        .iter()
        .find(|f| !f.loop_kind.is_open() && f.baseline.ops_per_s.is_some() && f.lost_s.is_some());
    let Some(seen) = closed else {
        return Share::nothing(
            "no reads in closed loop ran beside the discards: what they lose shows it",
        );
    };
    let judged = verdict.fit.as_ref();
    let mut lost_us = None;
    let mut phi = phi(record, verdict, seen, evidence, service_us, &mut lost_us);
    let known = judged.filter(|f| f.ops_per_discard_95.is_some());
    let between = known.map(|f| f.between());
    let batches = known.is_some_and(|f| f.barrier == Some(true));
    let barrier = barrier(batches, between, &phi, evidence.devices);
    if let (Some(Barrier::Batches | Barrier::TimeLost), Figure::Known(phi)) = (barrier, &mut phi)
        && (phi.value > NO_BARRIER || (barrier == Some(Barrier::Batches) && phi.high >= BARRIER))
    {
        // A batch of what waits is served between two discards, and nothing beside one.
        (phi.value, phi.high) = (1.0, 1.0);
    }
    Share {
        phi,
        barrier,
        ops_per_discard: judged.and_then(|f| f.ops_per_discard),
        depth: Some(seen.loop_kind.depth()),
        lost_us,
        judged: judged.copied().unwrap_or_default(),
    }
}

/// From whether batches passed between the discards, and from what was lost. `between` is `None`
/// where nobody stalled, so that nothing was counted.
fn barrier(
    batches: bool,
    between: Option<Between>,
    phi: &Figure,
    devices: usize,
) -> Option<Barrier> {
    if batches {
        // Also by chance, on a drive that serves others beside a discard.
        let contradicted = phi.estimate().is_some_and(|phi| phi.high <= NO_BARRIER);
        return (!contradicted).then_some(Barrier::Batches);
    }
    // Pauses between discards let more pass than a batch; then what was lost beside
    // them decides, and if that says neither, nothing is told.
    let phi = phi.estimate()?;
    if phi.high <= NO_BARRIER && devices == 1 {
        // Pauses lower phi, too: then as much may have passed as a barrier lets pass.
        let excluded = between.is_none_or(|between| between == Between::Other);
        excluded.then_some(Barrier::None)
    } else if between.is_some() && phi.low >= BARRIER {
        Some(Barrier::TimeLost)
    } else {
        None
    }
}

fn phi(
    record: &RunRecord,
    verdict: &Verdict,
    seen: &Foreground,
    evidence: &Evidence,
    service_us: Option<Estimate>,
    lost: &mut Option<f64>,
) -> Figure {
    if evidence.devices > 1 {
        return Figure::unknown(
            "several drives take turns: what one of them slowed down isn't known",
        );
    }
    if verdict.verdict == Finding::Inconclusive {
        return Figure::unknown("the run was inconclusive, so what other I/O lost isn't known");
    }
    if record
        .events
        .iter()
        .any(|e| e.kind == record::EventKind::ContinuousDeletionBegan)
    {
        return Figure::unknown("the deleter wrote all the time, which costs others, too");
    }
    // As many of the size of which the time is known: small ones take another.
    let known = super::all_cells(std::slice::from_ref(&evidence.cells));
    let discards = match known.mib > 0.0 {
        true => evidence.all.mib / (known.mib / known.discards),
        false => evidence.all.discards,
    };
    let (Some(lost_s), Some(active_s)) = (seen.lost_s, verdict.discard.active_s) else {
        return Figure::unknown("what other I/O lost isn't known");
    };
    if discards < 1.0 {
        return Figure::unknown("no discards");
    }
    let lost_us = lost_s * 1e6 / discards;
    *lost = Some(lost_us);
    let Some(service) = service_us else {
        return Figure::unknown(format!(
            "only its product with the time of a discard is identified: other I/O lost {} for each",
            record::units::latency_us(lost_us)
        ));
    };
    let off = seen.drifted().unwrap_or(BASELINE_OFF);
    let off_us = off * active_s * 1e6 / discards;
    let clip = |phi: f64| phi.clamp(0.0, 1.0);
    let estimate = Estimate {
        value: clip(lost_us / service.value),
        low: clip((lost_us - off_us) / service.high),
        high: clip((lost_us + off_us) / service.low.max(f64::MIN_POSITIVE)),
    };
    if estimate.half_width() > 0.25 {
        return Figure::unknown(format!(
            "between {} and {}: too little was lost beside too short discards",
            record::units::percent(estimate.low),
            record::units::percent(estimate.high)
        ));
    }
    Figure::Known(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_barrier_is_said_only_where_the_operations_exclude_one() {
        let phi = Figure::Known(Estimate {
            value: 0.4,
            low: 0.3,
            high: 0.5,
        });
        let between = |depth: u32, interval: [f64; 2]| {
            let fit = judge::verdict::Fit {
                depth: Some(depth),
                ops_per_discard_95: Some(interval),
                ..Default::default()
            };
            fit.between()
        };
        let by = |interval| barrier(false, Some(between(4, interval)), &phi, 1);
        assert_eq!(by([1.0, 19.0]), None, "one depth is possible");
        assert_eq!(by([3.2, 9.0]), None, "it begins within a quarter of one");
        assert_eq!(by([30.0, 50.0]), Some(Barrier::None));
        assert_eq!(barrier(false, None, &phi, 1), Some(Barrier::None));
        // What was lost still shows a barrier.
        let all = Figure::Known(Estimate {
            value: 0.98,
            low: 0.95,
            high: 1.0,
        });
        let lost = barrier(false, Some(between(4, [1.0, 19.0])), &all, 1);
        assert_eq!(lost, Some(Barrier::TimeLost));
    }
}
