//! The kernel's events as they come: an instance of tracefs, read into a [`Trace`].

use linux::tracefs::{Instance, TraceError, Tracefs};
use storage::deletions;
use storage::disks::Disks;

use super::Missing;
use super::observe::cpu_s;
use super::trace::{EVENTS, FILTER, Trace, is_worker};

/// The buffer of the trace for each processor, in KiB: some thousand discards with their stacks.
const BUFFER_KIB: u32 = 1024;

/// About so many stacks are taken in a second, three for a discard: after more, none until as many
/// would have been due.
const STACKS_PER_S: f64 = 600.0;

/// And of a sparing one.
const FEW_STACKS_PER_S: f64 = 100.0;

/// The longest time without stacks, in seconds.
const WITHOUT_S: f64 = 1.0;

/// A sparing one leaves out deletions if reading takes so long in a second, in seconds,
const SPARE_S: f64 = 0.004;

/// for so long.
const PAUSE_S: f64 = 5.0;

/// A trace under way. Dropping it removes its instance of tracefs.
#[derive(Debug)]
pub struct Tracer {
    instance: Instance,
    trace: Trace,
    stacks_per_s: f64,
    /// When events were read last, and the stacks until then.
    last: (f64, u64),
    /// The moment from which stacks are taken again, while they aren't.
    stacks_from_s: Option<f64>,
    /// Of a sparing one.
    spare: Option<Spare>,
}

/// The effort of a sparing tracer.
#[derive(Debug, Default)]
struct Spare {
    /// When the second began that is counted.
    began_s: f64,
    /// The time on a processor that reading took in it.
    spent_s: f64,
    /// The moment from which deletions are traced again, while they aren't.
    resumes_s: Option<f64>,
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
            spare: Some(Spare::default()),
            ..Tracer::of(instance, Trace::default(), now_s)
        })
    }

    fn of(instance: Instance, trace: Trace, now_s: f64) -> Tracer {
        Tracer {
            instance,
            trace,
            stacks_per_s: STACKS_PER_S,
            last: (now_s, 0),
            stacks_from_s: None,
            spare: None,
        }
    }

    /// Reads the events that have come.
    pub fn read(&mut self, now_s: f64, disks: &Disks) {
        let before_s = cpu_s();
        let trace = &mut self.trace;
        let _ = self.instance.read(&mut |line| trace.add_line(line, disks));
        trace.name(&linux::tasks::name_of_process);
        self.limit_stacks(now_s);
        self.save(now_s, cpu_s() - before_s);
    }

    /// Takes no stacks for a while after many.
    fn limit_stacks(&mut self, now_s: f64) {
        let (last_s, before) = std::mem::replace(&mut self.last, (now_s, self.trace.stacks));
        match self.stacks_from_s {
            Some(from_s) if now_s >= from_s => {
                if self.instance.stacks(true).is_ok() {
                    self.stacks_from_s = None;
                }
            }
            Some(_) => {}
            None => {
                let came = self.trace.stacks - before;
                let from_s = pause(now_s, last_s, came, self.stacks_per_s);
                if from_s.is_some() && self.instance.stacks(false).is_ok() {
                    self.stacks_from_s = from_s;
                }
            }
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

    /// The fact that is missing while deletions are left out.
    pub fn leaves_out(&self) -> Option<Missing> {
        self.spare.as_ref()?.resumes_s?;
        Some(Missing {
            what: "who frees space".to_owned(),
            why: "many events come, so those of deletions are left out for 5 s".to_owned(),
        })
    }

    /// Leaves out deletions while reading takes too long.
    fn save(&mut self, now_s: f64, spent_s: f64) {
        let Some(spare) = &mut self.spare else {
            return;
        };
        if now_s - spare.began_s >= 1.0 {
            (spare.began_s, spare.spent_s) = (now_s, 0.0);
        }
        spare.spent_s += spent_s;
        if spare.resumes_s.is_some_and(|at_s| now_s >= at_s) {
            enable_deletions(&self.instance);
            spare.resumes_s = None;
        } else if spare.resumes_s.is_none() && spare.spent_s > SPARE_S {
            for event in deletions::EVENTS {
                let _ = self.instance.disable(event.system, event.name);
            }
            spare.resumes_s = Some(now_s + PAUSE_S);
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

/// Returns the moment from which stacks are taken again, after so many have come since `last_s`; `None`: at
/// once.
fn pause(now_s: f64, last_s: f64, came: u64, per_s: f64) -> Option<f64> {
    let due_s = last_s + came as f64 / per_s;
    (due_s > now_s).then(|| due_s.min(now_s + WITHOUT_S))
}

/// An instance with the events of discards, and of deletions where they are asked for.
fn instance(deletions: bool) -> Result<Instance, Missing> {
    let made = || -> Result<Instance, TraceError> {
        let instance = Instance::create(Tracefs::find()?, BUFFER_KIB)?;
        for event in EVENTS {
            instance.enable("block", event, FILTER)?;
        }
        instance.stacks(true)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_many_stacks_none_are_taken_until_as_many_are_due() {
        assert_eq!(pause(1.1, 1.0, 10, 100.0), None);
        let from_s = pause(1.1, 1.0, 30, 100.0).unwrap();
        assert!((from_s - 1.3).abs() < 1e-9, "{from_s}");
        assert_eq!(pause(1.1, 1.0, 5000, 100.0), Some(1.1 + WITHOUT_S));
    }
}
