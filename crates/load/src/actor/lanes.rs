//! The loops of actors that have a thread for each operation in flight: one
//! thread is one lane of the meters.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use record::LoopKind;

use super::shared::{Failures, Shared, sharpen_timers};
use super::spec::ActorSpec;
use crate::clock::Nanos;
use crate::error::LoadError;
use crate::schedule::Schedule;

/// A waiting lane looks this often whether it was stopped.
const NAP: Duration = Duration::from_millis(100);

/// How long lanes may take to end when not all of them could be started.
const GRACE: Duration = Duration::from_secs(5);

/// A lane needs little more than its system calls.
const STACK: usize = 128 << 10;

/// The work of one thread, over and over.
pub(super) trait Worker: Send + 'static {
    /// One operation; `intended` is when it was due, in an open loop.
    fn operate(&mut self, intended: Option<Nanos>);

    /// How it has been going.
    fn failures(&self) -> &Failures;
}

/// Starts a thread for each worker.
pub(super) fn start<W: Worker>(
    spec: &ActorSpec,
    shared: &Arc<Shared>,
    workers: Vec<W>,
) -> Result<(), LoadError> {
    let tickets = Tickets::new(spec, shared);
    for (lane, worker) in workers.into_iter().enumerate() {
        let running = shared.enter();
        let (tickets, lane_shared) = (tickets.clone(), shared.clone());
        let thread = std::thread::Builder::new()
            .name(format!("io:{}:{lane}", spec.name))
            .stack_size(STACK);
        let spawned = thread.spawn(move || {
            let _running = running;
            // Dropped before the guard: once the actor counts as ended, it
            // holds no file open that would keep a file system from being unmounted.
            let mut worker = worker;
            lane_shared.workers.join();
            sharpen_timers();
            while let Some(ticket) = tickets.take() {
                worker.operate(ticket.intended());
                worker.failures().back_off();
            }
        });
        if let Err(source) = spawned {
            shared.stop();
            // The others may be in the middle of what they began.
            shared.wait_all_ended(GRACE);
            return Err(LoadError::System {
                what: "start a thread for each operation in flight",
                source,
            });
        }
    }
    Ok(())
}

/// Where the lanes of one actor get their turns.
#[derive(Clone)]
struct Tickets {
    shared: Arc<Shared>,
    /// `None`: a closed loop.
    schedule: Option<Arc<Mutex<Schedule>>>,
}

enum Ticket {
    /// A closed loop: begin now.
    Now,
    /// An open loop: this one is due.
    At(Nanos),
}

impl Ticket {
    fn intended(&self) -> Option<Nanos> {
        match *self {
            Ticket::Now => None,
            Ticket::At(intended) => Some(intended),
        }
    }
}

impl Tickets {
    fn new(spec: &ActorSpec, shared: &Arc<Shared>) -> Tickets {
        let schedule = match spec.arrival {
            LoopKind::Closed { .. } => None,
            LoopKind::Open {
                rate_per_s,
                poisson,
                ..
            } => {
                let start = shared.clock.now();
                let schedule = Schedule::new(start, rate_per_s, poisson, spec.seed);
                shared.publish_next(schedule.next());
                Some(Arc::new(Mutex::new(schedule)))
            }
        };
        Tickets {
            shared: shared.clone(),
            schedule,
        }
    }

    /// The next operation, once it is due; `None` after the stop.
    fn take(&self) -> Option<Ticket> {
        if self.shared.stopping() {
            return None;
        }
        let Some(schedule) = &self.schedule else {
            return Some(Ticket::Now);
        };
        let intended = {
            let mut schedule = schedule.lock().unwrap_or_else(PoisonError::into_inner);
            schedule.skip_to(self.shared.meters[0].left_out_before());
            let intended = schedule.next();
            schedule.advance();
            self.shared.publish_next(schedule.next());
            intended
        };
        loop {
            let now = self.shared.clock.now();
            if now >= intended {
                return Some(Ticket::At(intended));
            }
            // One that was due when the stop came is done all the same.
            if self.shared.stopped_at().is_some_and(|at| at < intended) {
                return None;
            }
            let left = Duration::from_nanos(intended.since(now).0);
            std::thread::sleep(left.min(NAP));
        }
    }
}
