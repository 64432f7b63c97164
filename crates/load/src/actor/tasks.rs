//! The threads of tasks, and the stopwatch that their parts are timed with.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::lanes;
use super::shared::{Failures, Shared};
use super::spec::ActorSpec;
use crate::clock::Nanos;
use crate::error::LoadError;
use crate::meter::IoFailure;
use crate::pattern::scramble;
use crate::task::{Task, TaskSpec};

/// Starts a thread for each chain in flight.
pub(super) fn start(
    spec: &ActorSpec,
    task: &TaskSpec,
    shared: &Arc<Shared>,
    stop: &AtomicBool,
) -> Result<Vec<String>, LoadError> {
    let lanes = 0..spec.arrival.depth();
    let workers = lanes.map(|lane| {
        if stop.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped);
        }
        let seed = scramble(spec.seed).wrapping_add(u64::from(lane));
        Ok(Worker {
            shared: shared.clone(),
            lane: lane as usize,
            task: (task.kind.start)(task, lane, seed, stop)?,
            failures: Failures::default(),
        })
    });
    let workers = workers.collect::<Result<Vec<_>, LoadError>>()?;
    lanes::start(spec, shared, workers)?;
    Ok(Vec::new())
}

struct Worker {
    shared: Arc<Shared>,
    lane: usize,
    task: Box<dyn Task>,
    failures: Failures,
}

impl lanes::Worker for Worker {
    fn operate(&mut self, intended: Option<Nanos>) {
        let mut watch = Stopwatch {
            shared: &self.shared,
            lane: self.lane,
            intended,
            failed: false,
        };
        let outcome = self.task.operate(&mut watch);
        let counted = watch.failed;
        match outcome {
            Ok(()) => self.failures.good(),
            Err(error) => {
                self.failures.bad();
                if !counted {
                    let (meter, now) = (&self.shared.meters[0], self.shared.clock.now());
                    meter.fail(&meter.lanes()[self.lane], failure_of(&error), now);
                }
            }
        }
    }

    fn failures(&self) -> &Failures {
        &self.failures
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
            Ok(_) if intended < meter.left_out_before() => {}
            Ok(_) => {
                lane.response.add(now.since(intended).0, 1);
                if let Some(service) = &lane.service {
                    service.add(now.since(issued).0, 1);
                }
            }
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
