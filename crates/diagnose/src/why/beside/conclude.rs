//! The sums → the waits that the record holds. Pure.

use record::waits::{ActorWaits, Cause, PhaseWaits, Timeline, Wait, WaitShares};
use record::{DeviceInterval, RunRecord, Waits};

use super::ledger::{Ledger, PhaseActor, Stretch, Sum, WaitKind};
use super::{Found, PERIOD};
use crate::why::Missing;
use crate::why::devices::slows_others;
use crate::why::observe::Did;
use crate::why::spans::Spans;

/// An interval counts as one of discards if they were in flight for this share of it, and as one
/// without below the other.
const WITH: f64 = 0.9;
const WITHOUT: f64 = 0.05;

/// An actor starves if it completes less than this share of what it does without discards,
const STARVED: f64 = 0.5;
/// where that is at least so many operations in an interval.
const FEW: f64 = 5.0;

/// SampledThread at, and nothing seen.
pub(super) fn nothing(missing: &Missing) -> Waits {
    Waits {
        missing: vec![in_words(missing)],
        ..Waits::default()
    }
}

/// The waits of all actors.
pub(super) fn waits(found: Found, record: &RunRecord, zero_s: f64) -> Waits {
    let acquitted = acquitted(&found, record, zero_s);
    let ledger = &found.ledger;
    let actors = ledger.actors.iter().enumerate();
    let actors = actors.map(|(index, name)| ActorWaits {
        actor: name.clone(),
        phases: phases(ledger, index, acquitted),
        shares: shares(&ledger.stretches[index], ledger.length(), acquitted),
    });
    Waits {
        actors: actors.collect(),
        timeline: timeline(ledger, zero_s),
        looks_per_s: 1.0 / PERIOD.as_secs_f64(),
        lost_events: found.lost,
        cpu_share: found.cpu_share,
        missing: found.missing.iter().map(in_words).collect(),
    }
}

fn in_words(missing: &Missing) -> String {
    format!("{}: {}", missing.what, missing.why)
}

/// Whether nothing was slower beside the discards, by the run's own statistics: no device of the
/// target, and no actor.
fn acquitted(found: &Found, record: &RunRecord, zero_s: f64) -> bool {
    let leaves = record.head.devices.iter().enumerate();
    let leaves = leaves.filter(|(_, device)| device.leaf);
    let slow = leaves.filter_map(|(index, device)| {
        let number = found.devices.iter().find(|one| one.1 == device.name)?.0;
        let spans = found.ledger.in_flight.get(&number)?;
        slows_others(&did(record, index, zero_s), spans)
    });
    let slow: Vec<bool> = slow.collect();
    !slow.is_empty() && slow.iter().all(|slows| !slows) && !starves(&found.ledger, record, zero_s)
}

/// Whether some actor completed far less while discards were in flight.
///
/// The devices' mean waits don't show that of a closed loop: of thousand reads between two discards
/// few meet one.
fn starves(ledger: &Ledger, record: &RunRecord, zero_s: f64) -> bool {
    let any = in_flight(ledger);
    let intervals = &record.intervals;
    let covered = |i: usize| {
        let (from, seconds) = (zero_s + intervals.at_s[i], f64::from(intervals.seconds[i]));
        any.covered(from, from + seconds) / seconds.max(1e-9)
    };
    let covered: Vec<f64> = (0..intervals.len()).map(covered).collect();
    intervals.actors.iter().any(|actor| {
        let ops = |with: &dyn Fn(f64) -> bool| -> Option<f64> {
            let there = (0..intervals.len()).filter(|&i| actor.running[i] && with(covered[i]));
            record::units::median(there.map(|i| f64::from(actor.ops[i])))
        };
        let (with, without) = (ops(&|share| share >= WITH), ops(&|share| share <= WITHOUT));
        with.zip(without)
            .is_some_and(|(with, without)| without >= FEW && with < STARVED * without)
    })
}

/// When a discard at least was in flight.
fn in_flight(ledger: &Ledger) -> Spans {
    let all = ledger.in_flight.values();
    all.fold(Spans::default(), |sum: Spans, one| sum.with(one))
}

/// A device's work in each interval of the record, on the monotonic clock.
fn did(record: &RunRecord, device: usize, zero_s: f64) -> Vec<Did> {
    let (all, columns) = (&record.intervals, &record.intervals.devices[device]);
    let did = |i: usize| Did {
        at_s: zero_s + all.at_s[i] + f64::from(all.seconds[i]),
        seconds: f64::from(all.seconds[i]),
        work: DeviceInterval {
            reads: columns.reads[i].into(),
            read_ms: columns.read_ms[i].into(),
            writes: columns.writes[i].into(),
            write_ms: columns.write_ms[i].into(),
            discards: columns.discards[i].into(),
            discard_ms: columns.discard_ms[i].into(),
            in_flight: columns.in_flight[i].into(),
            ..DeviceInterval::default()
        },
        flushes: (0, 0),
    };
    (0..all.len()).map(did).collect()
}

fn phases(ledger: &Ledger, actor: usize, acquitted: bool) -> Vec<PhaseWaits> {
    let scenes = ledger.sums.iter().filter(|(scene, _)| scene.1 == actor);
    let phases = scenes.map(|(scene, sums)| {
        let phase = ledger.phases[scene.0];
        let mut waits = ways(sums.iter(), acquitted);
        let seconds: f64 = waits.iter().map(|wait| wait.seconds).sum();
        waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        for wait in &mut waits {
            wait.share = short(wait.seconds / seconds.max(1e-9));
        }
        count_discards(&mut waits, ledger, scene);
        PhaseWaits {
            phase: phase.name,
            part: phase.part,
            seconds,
            threads: ledger.threads.get(scene).map_or(0, |all| all.len() as u64),
            waits,
        }
    });
    phases.filter(|phase| phase.seconds > 0.0).collect()
}

/// The ways, with what discards covered as waits behind them, unless they are acquitted.
fn ways<'a>(sums: impl Iterator<Item = (&'a WaitKind, &'a Sum)>, acquitted: bool) -> Vec<Wait> {
    let mut waits: Vec<Wait> = Vec::new();
    let mut add = |cause, call: Option<&str>, seconds: f64, looks| {
        if seconds <= 0.0 {
            return;
        }
        let same = |one: &&mut Wait| one.cause == cause && one.call.as_deref() == call;
        match waits.iter_mut().find(same) {
            Some(one) => {
                one.seconds += seconds;
                one.looks += looks;
            }
            None => waits.push(Wait {
                cause,
                call: call.map(str::to_owned),
                seconds,
                share: 0.0,
                looks,
                discards: 0,
            }),
        }
    };
    for (&(cause, call), sum) in sums {
        let behind = if acquitted {
            cause
        } else {
            Cause::BehindDiscards
        };
        add(cause, call, sum.seconds, sum.looks);
        add(behind, call, sum.behind_s, sum.behind_looks);
    }
    // Events tell the length of a wait in its own discards, and looks the call.
    let mut own = waits
        .iter()
        .filter(|one| one.cause == Cause::InDiscards && one.call.is_some());
    if let (Some(only), None) = (own.next().cloned(), own.next()) {
        let unnamed = |one: &Wait| one.cause == Cause::InDiscards && one.call.is_none();
        if let Some(index) = waits.iter().position(unnamed) {
            let (seconds, looks) = (waits[index].seconds, waits[index].looks);
            waits.remove(index);
            let named = |one: &&mut Wait| one.cause == Cause::InDiscards && one.call == only.call;
            if let Some(one) = waits.iter_mut().find(named) {
                one.seconds += seconds;
                one.looks += looks;
            }
        }
    }
    waits
}

/// Its discards belong to the longest wait in them.
fn count_discards(waits: &mut [Wait], ledger: &Ledger, scene: &PhaseActor) {
    let count = ledger.discards.get(scene).copied().unwrap_or(0);
    let mut own = waits.iter_mut();
    if let Some(wait) = own.find(|wait| wait.cause == Cause::InDiscards) {
        wait.discards = count;
    }
}

fn shares(all: &[Stretch], length: usize, acquitted: bool) -> WaitShares {
    let of = |part: &dyn Fn(&Stretch) -> f64| -> Vec<f32> {
        let share = |one: &Stretch| short(part(one) / one.all_s.max(1e-9)) as f32;
        let mut shares: Vec<f32> = all.iter().map(share).collect();
        if shares.iter().all(|share| *share == 0.0) {
            return Vec::new();
        }
        shares.resize(length, 0.0);
        shares
    };
    let behind_s = |one: &Stretch| if acquitted { 0.0 } else { one.behind_s };
    WaitShares {
        own: of(&|one| one.own_s),
        behind: of(&behind_s),
        otherwise: of(&|one| one.otherwise_s + one.behind_s - behind_s(one)),
    }
}

fn timeline(ledger: &Ledger, zero_s: f64) -> Timeline {
    let any = in_flight(ledger);
    let stretch_s = ledger.stretch_s;
    let share = |index: usize| {
        let from_s = ledger.from_s + index as f64 * stretch_s;
        short(any.covered(from_s, from_s + stretch_s) / stretch_s) as f32
    };
    Timeline {
        at_s: (ledger.from_s - zero_s).max(0.0),
        stretch_s,
        discarding: (0..ledger.length()).map(share).collect(),
    }
}

/// A share with three decimals: more only make the file long.
fn short(share: f64) -> f64 {
    (share.clamp(0.0, 1.0) * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
