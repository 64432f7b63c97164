//! The kernel's events as they come: an instance of tracefs, read into a [`Trace`].

use linux::tracefs::{Instance, TraceError, Tracefs};
use storage::deletions;
use storage::disks::Disks;

use super::Missing;
use super::trace::{EVENTS, FILTER, STACKS, Trace};

/// The buffer of the trace for each processor, in KiB: some thousand discards with their stacks.
const BUFFER_KIB: u32 = 1024;

/// At most so many stacks of discards are taken in a second; then the kernel saves the trouble
/// until the next.
const STACKS_PER_S: u64 = 200;

/// A trace under way. Dropping it removes its instance of tracefs.
#[derive(Debug)]
pub struct Tracer {
    instance: Instance,
    trace: Trace,
    stacks_on: bool,
    stacks_per_s: u64,
    /// When the second began in which stacks are counted, and how many there were before it.
    second: (f64, u64),
}

impl Tracer {
    /// Begins to trace discards, flushes and deletions.
    ///
    /// # Errors
    /// Without root, and where the kernel has no tracefs to offer: the facts that are missing then.
    pub fn begin(now_s: f64) -> Result<Tracer, Missing> {
        Tracer::sparing(now_s, STACKS_PER_S)
    }

    /// Begins to trace, with at most so many stacks of discards in a second.
    ///
    /// # Errors
    /// As [`Tracer::begin`].
    pub fn sparing(now_s: f64, stacks_per_s: u64) -> Result<Tracer, Missing> {
        let instance = instance().map_err(|error| Missing {
            what: "who sends discards, why, and how long each takes".to_owned(),
            why: error.to_string(),
        })?;
        Ok(Tracer {
            instance,
            trace: Trace::default(),
            stacks_on: true,
            stacks_per_s,
            second: (now_s, 0),
        })
    }

    /// Reads the events that have come.
    pub fn read(&mut self, now_s: f64, disks: &Disks) {
        let trace = &mut self.trace;
        let _ = self.instance.read(&mut |line| trace.take(line, disks));
        if now_s - self.second.0 >= 1.0 {
            self.second = (now_s, self.trace.stacks);
            if !self.stacks_on {
                self.stacks_on = self.instance.trigger("block", EVENTS[0], STACKS).is_ok();
            }
        } else if self.stacks_on && self.trace.stacks - self.second.1 > self.stacks_per_s {
            let stopped = self.instance.trigger("block", EVENTS[0], "!stacktrace");
            self.stacks_on = stopped.is_err();
        }
    }

    /// Reads, and takes out all that has come since the last call.
    pub fn drain(&mut self, now_s: f64, disks: &Disks) -> Trace {
        self.read(now_s, disks);
        self.trace.drain(now_s)
    }

    /// Reads the last events and ends.
    pub fn finish(mut self, now_s: f64, disks: &Disks) -> Trace {
        self.read(now_s, disks);
        self.trace.lost = self.trace.lost.max(self.instance.lost());
        self.trace.finish(now_s);
        self.trace
    }
}

/// An instance with all events of ours.
fn instance() -> Result<Instance, TraceError> {
    let instance = Instance::create(Tracefs::find()?, BUFFER_KIB)?;
    for event in EVENTS {
        instance.enable("block", event, FILTER)?;
    }
    instance.trigger("block", EVENTS[0], STACKS)?;
    for event in deletions::EVENTS {
        // A kernel has those of its own file systems, and formats change.
        if instance.has(event.system, event.name) {
            let _ = instance.enable(event.system, event.name, event.filter);
        }
    }
    Ok(instance)
}
