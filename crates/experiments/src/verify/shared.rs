//! The state that all workers of a test share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::verify::Plan;
use crate::verify::discards::Discards;
use crate::verify::finding::Finding;
use crate::verify::pattern::Pattern;
use crate::verify::place::{Place, Surveyed};
use crate::verify::report::{Failure, Operations, Outcome};

/// So many findings are looked into; the rest is counted.
const EXPLAINED: usize = 20_000;
/// So many failures in a row mean that the device is gone.
const IN_A_ROW: u64 = 50;

/// The state that all workers share.
pub(crate) struct Shared<'a> {
    pub(crate) volume: u64,
    pub(crate) place: &'a Place,
    pub(crate) plan: &'a Plan,
    pub(crate) surveyed: &'a Surveyed,
    pub(crate) began: Instant,
    /// When writing and discarding ends, once it has begun.
    pub(crate) churn_ends: OnceLock<Instant>,
    /// A signal stops the test.
    pub(crate) stop: &'a AtomicBool,
    /// The workers are to pause.
    pub(crate) pause: AtomicBool,
    pub(crate) discards: Discards,
    counts: Mutex<Counts>,
    moved: AtomicU64,
}

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) operations: Operations,
    pub(crate) findings: Vec<Finding>,
    pub(crate) finding_count: u64,
    failures: BTreeMap<(&'static str, String), u64>,
    in_a_row: u64,
    /// Why the test can't go on.
    pub(crate) fatal: Option<String>,
    /// The drive could not be read when the test had to end.
    pub(crate) gone: bool,
    pub(crate) notes: Vec<String>,
}

impl Counts {
    /// How the test ended. Data that only a drive that is gone can't return are not damaged.
    pub(crate) fn outcome(&self, stopped: bool) -> Outcome {
        let unreadable = |finding: &Finding| finding.pattern == Pattern::Unreadable;
        match () {
            () if self.gone && self.findings.iter().all(unreadable) => Outcome::Incomplete,
            () if self.finding_count > 0 => Outcome::Corrupt,
            () if self.fatal.is_some() => Outcome::Failed,
            () if stopped => Outcome::Interrupted,
            () if !self.failures.is_empty() => Outcome::Errors,
            () => Outcome::Clean,
        }
    }

    pub(crate) fn failures(&self) -> Vec<Failure> {
        let failure = |((operation, error), count): (&(&'static str, String), &u64)| Failure {
            operation: (*operation).to_owned(),
            error: error.clone(),
            count: *count,
        };
        self.failures.iter().map(failure).collect()
    }
}

impl<'a> Shared<'a> {
    pub(crate) fn new(plan: &'a Plan, surveyed: &'a Surveyed, stop: &'a AtomicBool) -> Shared<'a> {
        Shared {
            volume: plan.volume,
            place: &surveyed.place,
            plan,
            surveyed,
            began: Instant::now(),
            churn_ends: OnceLock::new(),
            stop,
            pause: AtomicBool::new(false),
            discards: Discards::default(),
            counts: Mutex::default(),
            moved: AtomicU64::new(0),
        }
    }

    /// The counts at the end.
    pub(crate) fn end(self) -> Counts {
        let counts = self.counts.into_inner();
        counts.unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Changes the counts.
    pub(crate) fn count<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the workers are to end their work.
    pub(crate) fn is_over(&self) -> bool {
        self.pause.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed) || self.is_fatal()
    }

    pub(crate) fn is_fatal(&self) -> bool {
        self.count(|counts| counts.fatal.is_some())
    }

    /// Counts bytes, and waits where the rate asks for that.
    pub(crate) fn moved(&self, bytes: u64) {
        let moved = self.moved.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let Some(rate) = self.plan.rate else { return };
        let due = Duration::from_secs_f64(moved as f64 / rate.max(1) as f64);
        while let Some(early) = due.checked_sub(self.began.elapsed()) {
            if self.is_over() {
                return;
            }
            thread::sleep(early.min(Duration::from_millis(50)));
        }
    }

    /// An operation went well.
    pub(crate) fn succeeded(&self, change: impl FnOnce(&mut Operations)) {
        self.count(|counts| {
            counts.in_a_row = 0;
            change(&mut counts.operations);
        });
    }

    /// The kernel reported an error.
    pub(crate) fn failed(&self, operation: &'static str, error: &io::Error) {
        self.count(|counts| {
            *counts
                .failures
                .entry((operation, error.to_string()))
                .or_default() += 1;
            counts.in_a_row += 1;
            let why = match error.kind() {
                io::ErrorKind::StorageFull => Some(
                    "the file system is full; free space or choose a smaller --size".to_owned(),
                ),
                io::ErrorKind::ReadOnlyFilesystem => Some(
                    "the file system has become read-only; the kernel's log tells why (dmesg)"
                        .to_owned(),
                ),
                _ if counts.in_a_row >= IN_A_ROW => Some(format!(
                    "{IN_A_ROW} operations in a row failed, the last ({operation}) with: {error}; \
                     the device may be gone, see the kernel's log (dmesg)"
                )),
                _ => None,
            };
            if counts.fatal.is_none() {
                counts.fatal = why;
            }
        });
    }

    pub(crate) fn found(&self, finding: Finding) {
        self.count(|counts| {
            counts.finding_count += 1;
            if counts.findings.len() < EXPLAINED {
                counts.findings.push(finding);
            }
        });
    }

    pub(crate) fn note(&self, note: String) {
        self.count(|counts| {
            if !counts.notes.contains(&note) {
                counts.notes.push(note);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_is_gone_is_no_damage_and_errors_are_not_clean() {
        let mut counts = Counts::default();
        assert_eq!(counts.outcome(false), Outcome::Clean);
        counts.failures.insert(("sync", "EIO".to_owned()), 3);
        assert_eq!(counts.outcome(false), Outcome::Errors);
        assert_eq!(counts.outcome(true), Outcome::Interrupted);
        counts.fatal = Some("the device may be gone".to_owned());
        assert_eq!(counts.outcome(false), Outcome::Failed);
        counts.gone = true;
        assert_eq!(counts.outcome(false), Outcome::Incomplete);
        let mut finding = crate::verify::report::tests::finding();
        counts.finding_count = 1;
        finding.pattern = Pattern::Unreadable;
        counts.findings = vec![finding.clone()];
        assert_eq!(counts.outcome(false), Outcome::Incomplete);
        counts.gone = false;
        assert_eq!(counts.outcome(false), Outcome::Corrupt);
        counts.gone = true;
        finding.pattern = Pattern::Zeros;
        counts.findings.push(finding);
        assert_eq!(counts.outcome(false), Outcome::Corrupt);
    }
}
