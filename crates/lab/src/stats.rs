//! Counts a drive's commands as it answers them.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

record::kinds! {
    /// The kinds of commands that are counted.
    pub enum Kind["kind of commands"] {
        /// Reads.
        Read = "read",
        /// Writes.
        Write = "write",
        /// Flushes.
        Flush = "flush",
        /// Discards, and zeros whose space may be freed: a loop device sends both alike.
        Discard = "discard",
        /// Zeros whose space is kept.
        Zero = "zero",
    }
}

/// The counts and the state of a drive. `kinds`, `late_us` and the bytes of discards count since it was
/// made or its counts were reset, everything else since it was made or as it is now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stats {
    /// By kind, in the order of [`Kind::ALL`].
    pub kinds: Vec<KindStats>,
    /// Bytes that the drive's map holds.
    pub mapped_bytes: u64,
    /// Bytes that discards unmapped.
    pub unmapped_bytes: u64,
    /// Bytes of discards lost by rounding inwards to the drive's granule.
    pub lost_to_rounding_bytes: u64,
    /// Bytes of discards too short to be taken.
    pub ignored_bytes: u64,
    /// Pages that the host wrote and that cleaning moved, in its flash, those of wearing it in among
    /// them; `None`: its flash isn't modelled.
    #[serde(default)]
    pub flash_pages: Option<[u64; 2]>,
    /// Memory or disk space that the data take on this machine.
    pub stored_bytes: u64,
    /// Writes that failed because the data took all they may: the store's limit,
    /// or all the memory or disk space there is.
    pub no_room: u64,
    /// Commands not answered.
    pub in_flight: u64,
    /// How much later than the model's time commands were answered, in microseconds: the median,
    /// 99th percentile and worst. With large values this machine is too slow for this drive:
    /// stretch its time.
    pub late_us: [f64; 3],
    /// Faults that were set and not cleared.
    pub faults: Vec<FaultStats>,
    /// How long the drive will still do nothing, in seconds; `None`: it doesn't hang.
    pub hangs_for_s: Option<f64>,
    /// Whether it has power. Without it everything fails.
    pub power: bool,
}

/// A fault, and the number of commands that it struck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultStats {
    /// The fault, as it was set.
    pub fault: String,
    /// Commands that it struck.
    pub struck: u64,
    /// It has struck as often as it was set to, and strikes no more.
    pub over: bool,
}

/// The counts of one kind of commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindStats {
    /// Which.
    pub kind: Kind,
    /// Commands answered, failed ones among them.
    pub commands: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Bytes they named.
    pub bytes: u64,
    /// Real time from the command's arrival at the drive to its answer, in
    /// microseconds: mean, 50th, 99th, 99.9th percentile, largest.
    pub mean_us: f64,
    /// See `mean_us`.
    pub p50_us: f64,
    /// See `mean_us`.
    pub p99_us: f64,
    /// See `mean_us`.
    pub p999_us: f64,
    /// See `mean_us`.
    pub max_us: f64,
    /// The latencies' histogram: pairs of an upper bound in µs and the number of commands. It has
    /// the non-empty steps of powers of two only.
    pub histogram: Vec<(u64, u64)>,
}

/// The counts behind [`Stats`].
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    of: [Count; 5],
    late: Histogram<u64>,
}

#[derive(Debug, Clone)]
struct Count {
    /// Answered ones, and their time together if none had been late.
    served: (u64, Duration),
    failed: u64,
    bytes: u64,
    latency: Histogram<u64>,
    commands: u64,
}

impl Counts {
    pub(crate) fn new() -> Counts {
        Counts {
            of: std::array::from_fn(|_| Count {
                served: (0, Duration::ZERO),
                failed: 0,
                bytes: 0,
                latency: histogram(),
                commands: 0,
            }),
            late: histogram(),
        }
    }

    /// Counts an answer.
    pub(crate) fn done(
        &mut self,
        kind: Kind,
        bytes: u64,
        took: Duration,
        late: Duration,
        failed: bool,
    ) {
        let count = &mut self.of[kind as usize];
        let punctual = took.saturating_sub(late);
        count.served = (count.served.0 + 1, count.served.1 + punctual);
        count.commands += 1;
        count.bytes += bytes;
        count.failed += u64::from(failed);
        count.latency.saturating_record(nanos(took));
        self.late.saturating_record(nanos(late));
    }

    /// Commands answered since these counts began, and their time together if none had been late.
    pub(crate) fn served(&self, kind: Kind) -> (u64, Duration) {
        self.of[kind as usize].served
    }

    /// Counts a command that failed before the model saw it.
    pub(crate) fn failed(&mut self, kind: Kind) {
        let count = &mut self.of[kind as usize];
        count.commands += 1;
        count.failed += 1;
    }

    pub(crate) fn stats(&self) -> Stats {
        let us = |nanos: u64| nanos as f64 / 1000.0;
        let late = |q| us(self.late.value_at_quantile(q));
        Stats {
            kinds: Kind::ALL
                .iter()
                .zip(&self.of)
                .map(|(&kind, count)| {
                    let of = &count.latency;
                    let at = |q| us(of.value_at_quantile(q));
                    KindStats {
                        kind,
                        commands: count.commands,
                        failed: count.failed,
                        bytes: count.bytes,
                        mean_us: of.mean() / 1000.0,
                        p50_us: at(0.5),
                        p99_us: at(0.99),
                        p999_us: at(0.999),
                        max_us: us(of.max()),
                        histogram: steps(of),
                    }
                })
                .collect(),
            late_us: [late(0.5), late(0.99), us(self.late.max())],
            ..Stats::default()
        }
    }
}

fn steps(of: &Histogram<u64>) -> Vec<(u64, u64)> {
    of.iter_log(1000, 2.0)
        .map(|step| {
            let us = (step.value_iterated_to() + 1) / 1000;
            (us, step.count_since_last_iteration())
        })
        .filter(|&(_, commands)| commands > 0)
        .collect()
}

/// 1 ns to an hour, within 1 %.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 2)
        .unwrap_or_else(|_| unreachable!("these bounds are valid"))
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_kind_and_tells_latencies_in_microseconds() {
        let mut counts = Counts::new();
        let us = Duration::from_micros;
        for _ in 0..99 {
            counts.done(Kind::Read, 4096, us(100), us(1), false);
        }
        counts.done(Kind::Read, 4096, us(5000), us(1), true);
        counts.failed(Kind::Write);
        let stats = counts.stats();
        let read = &stats.kinds[0];
        assert_eq!((read.commands, read.failed, read.bytes), (100, 1, 409_600));
        assert!((read.p50_us - 100.0).abs() < 2.0 && (read.max_us - 5000.0).abs() < 50.0);
        assert_eq!(read.histogram.iter().map(|s| s.1).sum::<u64>(), 100);
        assert!(read.histogram.contains(&(128, 99)));
        assert_eq!((stats.kinds[1].commands, stats.kinds[1].failed), (1, 1));
    }
}
