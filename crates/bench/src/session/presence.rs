//! How much of the time this process ran, and how long its actors' threads waited to.

use std::time::Duration;

use linux::presence::{RunQueue, Witness};
use load::{Actor, Clock, Nanos};
use record::absence::Absent;

use crate::warning::Warning;

/// After an absence, what was in flight is given so long to be reaped before it is looked.
const COME_BACK: Duration = Duration::from_millis(20);

/// A hypervisor that takes more than this share of the processors' time makes a warning.
const STOLEN: f64 = 0.05;

/// Watches the process, and the actors' threads.
#[derive(Debug)]
pub(super) struct Presence {
    /// `None` where there can be no more threads.
    witness: Option<Witness>,
    /// Of each actor, in order.
    actors: Vec<Threads>,
    /// When measuring began, and what the hypervisor had taken by then, in seconds.
    measured: Option<(Nanos, f64)>,
}

impl Presence {
    /// Begins to watch.
    pub(super) fn new() -> Presence {
        Presence {
            witness: Witness::start().ok(),
            actors: Vec::new(),
            measured: None,
        }
    }

    /// Whether the process was away since the last call, and how long. Operations that the actors
    /// began before its end are left out from now on.
    pub(super) fn absent(&mut self, actors: &[Actor], clock: Clock) -> Option<Absent> {
        let found = self.witness.as_ref().map_or(Vec::new(), Witness::take);
        let joined = found.into_iter().reduce(join)?;
        let leave_out = || {
            let now = clock.now();
            actors.iter().for_each(|actor| actor.leave_out_before(now));
        };
        leave_out();
        // Their threads may not have come to what completed meanwhile.
        clock.sleep_until(clock.now().plus(COME_BACK));
        leave_out();
        Some(joined)
    }

    /// The share of the last `seconds` that each actor's threads waited for a processor.
    pub(super) fn cpu_waits(&mut self, actors: &[Actor], seconds: f64) -> Vec<Option<f64>> {
        self.actors.resize_with(actors.len(), Threads::default);
        let both = self.actors.iter_mut().zip(actors);
        both.map(|(threads, actor)| threads.share(actor, seconds))
            .collect()
    }

    /// From now on it is measured, unless it was before.
    pub(super) fn measure(&mut self, now: Nanos) {
        self.measured.get_or_insert((now, self.stolen_s()));
    }

    fn stolen_s(&self) -> f64 {
        let witness = self.witness.as_ref();
        witness.map_or(0.0, |witness| witness.stolen().as_secs_f64())
    }

    /// A warning, if the hypervisor took much of the processors' time since
    /// [`Presence::measure`].
    pub(super) fn stolen(&self, now: Nanos, cpus: u32) -> Option<Warning> {
        let (from, before_s) = self.measured?;
        let all_s = now.since(from).as_secs_f64() * f64::from(cpus.max(1));
        let share = (self.stolen_s() - before_s) / all_s.max(1.0);
        (share > STOLEN).then_some(Warning::Stolen(share))
    }
}

/// Both as one, with the cause of the longer.
pub(super) fn join(one: Absent, other: Absent) -> Absent {
    let longer = if one.seconds >= other.seconds {
        one
    } else {
        other
    };
    Absent {
        seconds: one.seconds + other.seconds,
        ..longer
    }
}

/// The threads of one actor, and what each has waited.
#[derive(Debug, Default)]
struct Threads(Vec<Option<(RunQueue, Duration)>>);

impl Threads {
    fn share(&mut self, actor: &Actor, seconds: f64) -> Option<f64> {
        let (mut waited, mut count) = (Duration::ZERO, 0);
        for (queue, before) in self.0.iter_mut().flatten() {
            if let Some(now) = queue.waited() {
                waited += now.saturating_sub(*before);
                count += 1;
                *before = now;
            }
        }
        for id in actor.workers().threads(self.0.len()) {
            let queue = RunQueue::of_thread(id).ok();
            self.0.push(queue.and_then(|queue| {
                let now = queue.waited()?;
                Some((queue, now))
            }));
        }
        let share = waited.as_secs_f64() / f64::from(count) / seconds;
        // Fractions that nobody can measure only make the file long.
        (count > 0).then(|| (share.clamp(0.0, 1.0) * 1e4).round() / 1e4)
    }
}
