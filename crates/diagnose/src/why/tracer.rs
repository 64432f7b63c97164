//! The kernel's events as they come: an instance of tracefs, read into a [`Trace`].

use linux::tracefs::{Instance, TraceError, Tracefs};
use storage::deletions;
use storage::disks::Disks;

use super::Missing;
use super::observe::cpu_s;
use super::trace::{EVENTS, FILTER, STACKS, Trace, is_worker};

/// The buffer of the trace for each processor, in KiB: some thousand discards with their stacks.
const BUFFER_KIB: u32 = 1024;

/// At most so many stacks of discards are taken in a second; then the kernel saves the trouble
/// until the next.
const STACKS_PER_S: u64 = 200;

/// And of a sparing one.
const FEW_STACKS_PER_S: u64 = 20;

/// A sparing one leaves out deletions if reading takes so long in a second, in seconds,
const SPARE_S: f64 = 0.004;

/// for so long.
const PAUSE_S: f64 = 5.0;

/// A trace under way. Dropping it removes its instance of tracefs.
#[derive(Debug)]
pub struct Tracer {
    instance: Instance,
    trace: Trace,
    stacks_on: bool,
    stacks_per_s: u64,
    /// When the second began in which stacks are counted, and how many there were before it.
    second: (f64, u64),
    /// Of a sparing one: the time on a processor that reading took in that second, and the moment
    /// from which deletions are traced again.
    spare: Option<(f64, Option<f64>)>,
}

impl Tracer {
    /// Begins to trace discards and deletions.
    ///
    /// # Errors
    /// Without root, and where the kernel has no tracefs to offer: the facts that are missing then.
    pub fn begin(now_s: f64) -> Result<Tracer, Missing> {
        let instance = instance(true)?;
        Ok(Tracer::of(instance, Trace::default(), now_s))
    }

    /// Begins to trace discards, and no deletions.
    ///
    /// # Errors
    /// As [`Tracer::begin`].
    pub fn of_discards(now_s: f64) -> Result<Tracer, Missing> {
        let instance = instance(false)?;
        Ok(Tracer::of(instance, Trace::default(), now_s))
    }

    /// Begins to trace, with few stacks of discards. While many events come it leaves out those of
    /// deletions.
    ///
    /// # Errors
    /// As [`Tracer::begin`].
    pub fn sparing(now_s: f64) -> Result<Tracer, Missing> {
        let instance = instance(true)?;
        Ok(Tracer {
            stacks_per_s: FEW_STACKS_PER_S,
            spare: Some((0.0, None)),
            ..Tracer::of(instance, Trace::default(), now_s)
        })
    }

    fn of(instance: Instance, trace: Trace, now_s: f64) -> Tracer {
        Tracer {
            instance,
            trace,
            stacks_on: true,
            stacks_per_s: STACKS_PER_S,
            second: (now_s, 0),
            spare: None,
        }
    }

    /// Reads the events that have come.
    pub fn read(&mut self, now_s: f64, disks: &Disks) {
        let before_s = self.spare.map(|_| cpu_s());
        let trace = &mut self.trace;
        let _ = self.instance.read(&mut |line| trace.add_line(line, disks));
        trace.name(&linux::tasks::name_of_process);
        if now_s - self.second.0 >= 1.0 {
            self.second = (now_s, self.trace.stacks);
            if !self.stacks_on {
                self.stacks_on = self.instance.trigger("block", EVENTS[0], STACKS).is_ok();
            }
        } else if self.stacks_on && self.trace.stacks - self.second.1 > self.stacks_per_s {
            let stopped = self.instance.trigger("block", EVENTS[0], "!stacktrace");
            self.stacks_on = stopped.is_err();
        }
        if let Some(before_s) = before_s {
            self.save(now_s, cpu_s() - before_s);
        }
    }

    /// The threads of programs that have sent discards since [`Tracer::drain`].
    pub fn programs(&self) -> Vec<u32> {
        let all = self.trace.senders.iter();
        let own = all.filter(|one| one.discards > 0 && !is_worker(&one.comm));
        own.map(|one| one.pid).collect()
    }

    /// Whether a discard is in flight, as far as its events were read.
    pub fn is_discarding(&self, now_s: f64) -> bool {
        self.trace.is_discarding(now_s)
    }

    /// Leaves out deletions while reading takes too long.
    fn save(&mut self, now_s: f64, spent_s: f64) {
        let Some((sum_s, resumes_s)) = &mut self.spare else {
            return;
        };
        // A second has begun.
        *sum_s = spent_s + if self.second.0 == now_s { 0.0 } else { *sum_s };
        if resumes_s.is_some_and(|at_s| now_s >= at_s) {
            enable_deletions(&self.instance);
            *resumes_s = None;
        } else if resumes_s.is_none() && *sum_s > SPARE_S {
            for event in deletions::EVENTS {
                let _ = self.instance.disable(event.system, event.name);
            }
            *resumes_s = Some(now_s + PAUSE_S);
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

/// An instance with the events of discards, and of deletions where they are asked for.
fn instance(deletions: bool) -> Result<Instance, Missing> {
    let made = || -> Result<Instance, TraceError> {
        let instance = Instance::create(Tracefs::find()?, BUFFER_KIB)?;
        for event in EVENTS {
            instance.enable("block", event, FILTER)?;
        }
        instance.trigger("block", EVENTS[0], STACKS)?;
        if deletions {
            enable_deletions(&instance);
        }
        Ok(instance)
    };
    made().map_err(|error| Missing {
        what: "who sends discards, why, and how long each takes".to_owned(),
        why: error.to_string(),
    })
}

fn enable_deletions(instance: &Instance) {
    for event in deletions::EVENTS {
        // A kernel has those of its own file systems, and formats change.
        if instance.has(event.system, event.name) {
            let _ = instance.enable(event.system, event.name, event.filter);
        }
    }
}
