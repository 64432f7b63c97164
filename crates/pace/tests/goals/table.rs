//! Goal by goal and profile by profile.

use std::time::Duration;

use pace::{Goal, Pacer, Policy, Work};
use ssd::{Card, Drive, Time};
use testkit::harness::{Harness, Outcome, Pace, Pieces, Readers};

use crate::judge::{Judged, judge};
use crate::trial::{Deleter, DeleterLog, card};

pub(crate) const START: Time = Time::from_nanos(500_000_000);
pub(crate) const READERS: Readers = Readers::Closed {
    depth: 2,
    per_io: Duration::from_micros(5),
};
pub(crate) const CANARY: Duration = Duration::from_millis(2);
const MIB: u64 = 1 << 20;

/// A drive and a file on it.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) label: &'static str,
    pub(crate) card: Card,
    pub(crate) work: Work,
    readers: Readers,
}

impl Case {
    fn new(label: &'static str, name: &str, changes: &[&str], extent: u64, extents: u64) -> Case {
        Case {
            label,
            card: card(name, changes),
            work: Work::new(extent * extents, extents),
            readers: READERS,
        }
    }

    /// On a drive that is a little different.
    pub(crate) fn with(&self, changes: &[&str]) -> Case {
        let card = changes
            .iter()
            .fold(self.card.clone(), |card, change| card.with(change).unwrap());
        Case {
            card,
            ..self.clone()
        }
    }

    /// Returns this case on a drive so slow that its reads, too, take milliseconds, with readers at
    /// depth 8. A small machine can keep up with such a drive when it simulates one.
    fn slowed(mut self, changes: &[&str]) -> Case {
        let slow = ["read.latency=2400us", "read.parallelism=32"];
        for change in changes.iter().chain(&slow) {
            self.card = self.card.with(change).unwrap();
        }
        self.readers = Readers::Closed {
            depth: 8,
            per_io: Duration::ZERO,
        };
        self
    }

    pub(crate) fn drive(&self) -> Drive {
        let mut drive = Drive::new(self.card.figures().clone(), 1 << 41, 1);
        drive.premap(0..1 << 41);
        drive
    }

    pub(crate) fn harness<'s>(&self, deleter: Deleter) -> Harness<'s> {
        // As long as the longest window that begins with the last discard.
        let window = (100.0 * self.service()).max(1.0);
        Harness::new(self.readers, 3)
            .canary(CANARY)
            .lingering(Duration::from_secs_f64(window + 0.1))
            .drive(self.drive(), deleter)
    }

    /// The readers' rate beside nothing.
    pub(crate) fn baseline(&self) -> f64 {
        let nobody = Pieces::of([].into_iter(), Pace::Gap(Duration::ZERO));
        let harness = Harness::new(self.readers, 3)
            .canary(CANARY)
            .drive(self.drive(), nobody);
        harness.run(Duration::from_secs(2)).unwrap().reads.len() as f64 / 2.0
    }

    pub(crate) fn run(&self, policy: Policy, known: bool, limit: f64) -> (Outcome, DeleterLog) {
        let pacer = Pacer::new(policy, &self.work, known.then_some(&self.card)).unwrap();
        let (deleter, log) = Deleter::new(pacer, &self.work, 0, START);
        let outcome = self
            .harness(deleter)
            .run(Duration::from_secs_f64(0.5 + limit))
            .unwrap();
        let log = log.borrow().clone();
        (outcome, log)
    }

    /// Returns the loss of plain deletion.
    pub(crate) fn plain(&self) -> Judged {
        let (outcome, _) = self.run(Policy::Burst, false, 4.0);
        judge(&outcome, START, self.baseline(), 1.0, 0.0)
    }

    /// S of the discard that plain deletion sends, in seconds.
    pub(crate) fn service(&self) -> f64 {
        let discard = self.card.figures().discard.as_ref().unwrap();
        let size = (self.work.bytes / self.work.extents).min(self.work.unit);
        discard.service(size, 0, 1).as_secs_f64() * discard.phi()
    }
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("870 EVO", "samsung-870-evo-2tb", &[], 128 * MIB, 600),
        Case::new("T500", "crucial-t500-2tb", &[], 128 * MIB, 500),
        Case::new(
            "root disk",
            "crucial-t500-2tb",
            &["a=20us", "b=128us/MiB"],
            128 * MIB,
            64,
        ),
        Case::new("980 PRO", "samsung-980-pro-1tb", &[], 4096 * MIB, 128),
        Case::new("Vertex 2", "ocz-vertex-2", &[], 128 * MIB, 40),
        Case::new("Agility 2", "ocz-agility-2", &[], 128 * MIB, 40),
        Case::new("XtremIO", "emc-xtremio-10tb", &[], 128 * MIB, 32),
        Case::new("FusionIO", "fusionio", &[], 128 * MIB, 256),
        Case::new("T500 1M", "crucial-t500-2tb", &[], MIB, 1000),
        Case::new("870 EVO 1M", "samsung-870-evo-2tb", &[], MIB, 2000),
    ]
}

/// Drives slowed.
pub(crate) fn slow_cases() -> Vec<Case> {
    let slowed = |label, name, extent, extents, changes: &[&str]| {
        Case::new(label, name, &[], extent, extents).slowed(changes)
    };
    vec![
        slowed(
            "slow T500",
            "crucial-t500-2tb",
            128 * MIB,
            80,
            &["a=7.8ms", "b=65us/MiB"],
        ),
        slowed(
            "slow 870",
            "samsung-870-evo-2tb",
            128 * MIB,
            64,
            &["a=5.3ms", "b=110us/MiB"],
        ),
        slowed(
            "slow 980",
            "samsung-980-pro-1tb",
            128 * MIB,
            800,
            &["a=2ms", "b=0us/MiB"],
        ),
    ]
}

#[test]
fn goals_are_held_where_reads_are_slow_as_well() {
    for case in slow_cases() {
        let baseline = case.baseline();
        let plain = case.plain();
        println!("{}: {baseline:.0}/s, plain {plain:?}", case.label);
        for goal in [0.05, 0.10, 0.20, 0.30, 0.50] {
            hold(&case, goal, false, &plain, baseline);
        }
    }
}

/// Prints one row of the goal's table.
fn show(label: &str, goal: f64, judged: &Judged, plain: &Judged, log: &DeleterLog) {
    println!(
        "{label:10} goal {:2.0} %: worst window {:4.1} %, mean {:4.1} %, lost/plain {:.3}, \
         time/optimum {:.3}, time/plain {:5.2}, low {}, {} pieces",
        goal * 100.0,
        judged.worst_window * 100.0,
        judged.mean * 100.0,
        judged.lost / plain.lost,
        judged.time / (plain.lost / goal).max(plain.time),
        judged.time / plain.time,
        judged.low,
        log.frees.len(),
    );
}

fn hold(case: &Case, goal: f64, known: bool, plain: &Judged, baseline: f64) {
    let limit = plain.lost / goal * 1.4 + 2.0;
    let (outcome, log) = case.run(Policy::Adaptive(Goal::slowdown(goal)), known, limit);
    let window = (2.0 * case.service() / goal).max(1.0);
    let judged = judge(&outcome, START, baseline, window, case.service());
    show(case.label, goal, &judged, plain, &log);
    let what = format!(
        "{} at {goal}, card {known}: {judged:?}, plain {plain:?}",
        case.label
    );
    assert!(log.done.is_some(), "{what}");
    assert!(judged.worst_window <= goal + 0.03, "{what}");
    // Where all is over within one window, the window counts, not the mean.
    let within_one = judged.time < window;
    assert!(judged.mean <= goal + 0.02 || within_one, "{what}");
    assert!(judged.lost <= 1.15 * plain.lost, "{what}");
    assert!(
        judged.time <= 1.25 * (plain.lost / goal).max(plain.time),
        "{what}"
    );
    assert!(goal > 0.3 || judged.low == 0, "{what}");
    if case.label == "980 PRO" && goal == 0.10 {
        assert!(judged.time <= 1.2 * plain.time, "{what}");
    }
}

#[test]
fn goals_are_held_on_every_drive() {
    for case in cases() {
        let baseline = case.baseline();
        let plain = case.plain();
        for goal in [0.05, 0.10, 0.20, 0.30, 0.50] {
            hold(&case, goal, false, &plain, baseline);
        }
        for goal in [0.10, 0.30] {
            hold(&case, goal, true, &plain, baseline);
        }
    }
}

#[test]
fn what_costs_nothing_is_not_paced() {
    let case = Case::new("ideal", "ideal", &[], 128 * MIB, 800);
    for known in [false, true] {
        let (_, log) = case.run(Policy::Adaptive(Goal::default()), known, 10.0);
        let took = log.done.unwrap().since(START).as_secs_f64();
        println!("ideal: {took:.3} s in {} pieces", log.frees.len());
        // A commit of 2 ms for each of 800 extents would take 1.6 s.
        assert!(took < 0.5, "{took}");
    }
}
