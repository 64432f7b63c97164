//! The loops of actors that have a thread for each operation in flight: one
//! thread is one lane of the meters.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use record::LoopKind;

use super::shared::{Failures, Shared, sharpen_timers};
use super::spec::ActorSpec;
use crate::clock::Nanos;
use crate::error::LoadError;
use crate::meter::IoFailure;
use crate::schedule::Schedule;
use crate::task::Task;

/// A waiting lane looks this often whether it was stopped.
const NAP: Duration = Duration::from_millis(100);

/// How long lanes may take to end when not all of them could be started.
const GRACE: Duration = Duration::from_secs(5);

/// A lane needs little more than its system calls.
const STACK: usize = 128 << 10;

/// Starts a thread for each task.
pub(super) fn start<T: Task + 'static>(
    spec: &ActorSpec,
    shared: &Arc<Shared>,
    tasks: Vec<T>,
) -> Result<(), LoadError> {
    let tickets = Tickets::new(spec, shared);
    for (lane, task) in tasks.into_iter().enumerate() {
        let running = shared.enter();
        let (tickets, lane_shared) = (tickets.clone(), shared.clone());
        let thread = std::thread::Builder::new()
            .name(format!("io:{}:{lane}", spec.name))
            .stack_size(STACK);
        let spawned = thread.spawn(move || {
            let _running = running;
            // Dropped before the guard: once the actor counts as ended, it
            // holds no file open that would keep a file system from being unmounted.
            let task = task;
            lane_shared.workers.join();
            sharpen_timers();
            work(task, &lane_shared, lane, &tickets);
        });
        if let Err(source) = spawned {
            shared.stop();
            // The others may be in the middle of what they began.
            shared.wait_all_ended(GRACE);
            let what = "start a thread for each operation in flight";
            return Err(LoadError::system(what)(source));
        }
    }
    Ok(())
}

fn work(mut task: impl Task, shared: &Shared, lane: usize, tickets: &Tickets) {
    let mut failures = Failures::default();
    while let Some(intended) = tickets.take() {
        let mut watch = Stopwatch {
            shared,
            lane,
            intended,
            failed: false,
        };
        match task.operate(&mut watch) {
            Ok(()) => failures.good(),
            Err(error) => {
                failures.bad();
                if !watch.failed {
                    let (meter, now) = (&shared.meters[0], shared.clock.now());
                    meter.fail(&meter.lanes()[lane], failure_of(&error), now);
                }
            }
        }
        failures.back_off();
    }
}

/// Where the lanes of one actor get their turns.
#[derive(Clone)]
struct Tickets {
    shared: Arc<Shared>,
    /// `None`: a closed loop.
    schedule: Option<Arc<Mutex<Schedule>>>,
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
    fn take(&self) -> Option<Option<Nanos>> {
        if self.shared.stopping() {
            return None;
        }
        let Some(schedule) = &self.schedule else {
            return Some(None);
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
                return Some(Some(intended));
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

/// Times the parts of one operation of a task.
pub(crate) struct Stopwatch<'a> {
    shared: &'a Shared,
    lane: usize,
    /// When the operation was due, until its first part begins.
    intended: Option<Nanos>,
    /// Whether a part has failed, and so been counted.
    failed: bool,
}

impl Stopwatch<'_> {
    /// Does a part and counts it in that series (an index into the kind's
    /// series). In an open loop the response time of an operation's first part
    /// counts from when the operation was due, that of the others from when
    /// they begin.
    ///
    /// # Errors
    /// The part's own, which is counted.
    #[inline]
    pub(crate) fn time<T>(
        &mut self,
        series: usize,
        part: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let clock = self.shared.clock;
        let meter = &self.shared.meters[series];
        let lane = &meter.lanes()[self.lane];
        let issued = clock.now();
        let intended = self.intended.take().unwrap_or(issued);
        lane.slots[0].begin(intended, issued);
        let outcome = part();
        let now = clock.now();
        lane.slots[0].end();
        match &outcome {
            Ok(_) => meter.succeed(lane, intended, issued, now),
            Err(error) => {
                self.failed = true;
                meter.fail(lane, failure_of(error), now);
            }
        }
        outcome
    }
}

fn failure_of(error: &io::Error) -> IoFailure {
    match error.kind() {
        // What `write_all` and `read_exact` make of a file that was cut.
        io::ErrorKind::WriteZero | io::ErrorKind::UnexpectedEof => IoFailure::Short,
        _ => IoFailure::Os(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}
