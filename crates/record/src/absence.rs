//! Spans in which trimbench itself did not run: pure.
//!
//! A thread that sleeps wakes on time, unless something keeps it from running. So a measuring loop
//! compares each sleep with the length that it asked for. Beside it, the loop reads how long it
//! waited for a processor, how much the hypervisor took, and how long the machine was suspended.
//! [`absence`] concludes whether there was a gap, how long it was, and why. The time that I/O
//! spends in such a gap is not the drive's.

use serde::{Deserialize, Serialize};

/// A sleep that is late by more than this, in seconds, though its thread waited for no processor,
/// is a gap. Timers of a thread that runs are late by less than a millisecond.
const LEAST_S: f64 = 0.05;

/// A thread that only waited for a processor was away if it waited for longer than this, in
/// seconds: three usual intervals. Others of its process may have run meanwhile, and shorter
/// waits show in their own share of waiting.
const LEAST_WAITING_S: f64 = 0.3;

/// A clock that is read twice gives two readings: suspends shorter than this, in seconds, are none.
const LEAST_SUSPENDED_S: f64 = 0.02;

/// A cause explains a gap if it took at least this share of it.
const EXPLAINS: f64 = 0.5;

/// Readings of a thread and its machine at one moment, each counted from any start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Readings {
    /// How long the thread was ready to run and waited for a processor, in seconds.
    pub waited_s: f64,
    /// How long the hypervisor kept processors from this machine, in seconds, added up over them.
    pub stolen_s: f64,
    /// How long the machine was suspended, in seconds.
    pub suspended_s: f64,
    /// How often the thread waited for its own memory to be read from a disk.
    pub faults: u64,
}

/// A sleep of that thread, in seconds of a clock that stands still while the machine is suspended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nap {
    /// How long it was to be.
    pub asked_s: f64,
    /// How long it was.
    pub took_s: f64,
}

/// A gap in an observer's own presence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    /// How long it was at least, in seconds.
    pub seconds: f64,
    /// Why.
    pub cause: Cause,
}

crate::kinds! {
    /// Why trimbench did not run.
    #[derive(PartialOrd, Ord)]
    pub enum Cause["cause"] {
        // By a signal, a debugger, a frozen control group, or a hypervisor that doesn't count what
        // it takes.
        /// stopped
        Stopped = "stopped",
        // It was ready to run, and others had the processors, or its control group had no more time.
        /// waiting for a CPU
        WaitingForCpu = "waiting-for-cpu",
        // The hypervisor ran other machines.
        /// stolen by the hypervisor
        Stolen = "stolen",
        /// suspended
        Suspended = "suspended",
    }
}

impl Readings {
    /// The growth since `before`; nothing where a reading fell.
    #[must_use]
    pub fn since(&self, before: &Readings) -> Readings {
        Readings {
            waited_s: (self.waited_s - before.waited_s).max(0.0),
            stolen_s: (self.stolen_s - before.stolen_s).max(0.0),
            suspended_s: (self.suspended_s - before.suspended_s).max(0.0),
            faults: self.faults.saturating_sub(before.faults),
        }
    }
}

/// Whether a thread was away while it slept; `grown`: by how much its readings grew meanwhile.
///
/// A thread that waited for its own memory waited for a disk, perhaps for the one that it
/// measures. That is no absence.
pub fn absence(nap: Nap, grown: &Readings) -> Option<Absent> {
    let late_s = (nap.took_s - nap.asked_s).max(0.0);
    if grown.suspended_s >= LEAST_SUSPENDED_S {
        // The clock stands still meanwhile, or goes on.
        return Some(Absent {
            seconds: late_s.max(grown.suspended_s),
            cause: Cause::Suspended,
        });
    }
    let waited_s = grown.waited_s.min(late_s);
    let least_s = match late_s - waited_s > LEAST_S {
        true if grown.faults > 0 => return None,
        true => LEAST_S,
        false => LEAST_WAITING_S,
    };
    let explains = |seconds: f64| seconds >= EXPLAINS * late_s;
    let cause = match () {
        () if explains(waited_s) => Cause::WaitingForCpu,
        () if explains(grown.stolen_s) => Cause::Stolen,
        () => Cause::Stopped,
    };
    (late_s > least_s).then_some(Absent {
        seconds: late_s,
        cause,
    })
}

/// `3.0 s (stopped)`, or of several `4.2 s in 3 spans (stopped, suspended)`; `None` of none.
pub fn in_words(all: &[Absent]) -> Option<String> {
    let seconds: f64 = all.iter().map(|absent| absent.seconds).sum();
    let mut causes: Vec<Cause> = all.iter().map(|absent| absent.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    let why: Vec<&str> = causes.into_iter().map(Cause::about).collect();
    let spans = match all.len() {
        0 => return None,
        1 => String::new(),
        n => format!(" in {n} spans"),
    };
    let seconds = crate::units::seconds(seconds);
    Some(format!("{seconds}{spans} ({})", why.join(", ")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAP: f64 = 0.1;

    fn late(seconds: f64) -> Nap {
        Nap {
            asked_s: NAP,
            took_s: NAP + seconds,
        }
    }

    fn nothing() -> Readings {
        Readings::default()
    }

    fn cause(late_s: f64, grown: Readings) -> Option<Cause> {
        absence(late(late_s), &grown).map(|absent| absent.cause)
    }

    #[test]
    fn a_sleep_that_is_late_without_a_reason_was_a_stop() {
        let absent = absence(late(3.0), &nothing()).unwrap();
        assert_eq!(absent.cause, Cause::Stopped);
        assert!((absent.seconds - 3.0).abs() < 1e-9);
        assert_eq!(absence(late(0.0), &nothing()), None);
        assert_eq!(absence(late(0.03), &nothing()), None);
    }

    #[test]
    fn who_waits_for_a_processor_is_away_only_after_long() {
        let waited = |waited_s| Readings {
            waited_s,
            ..nothing()
        };
        assert_eq!(cause(1.0, waited(1.0)), Some(Cause::WaitingForCpu));
        assert_eq!(cause(0.1, waited(0.1)), None);
        // Most of it was a stop all the same.
        assert_eq!(cause(1.0, waited(0.2)), Some(Cause::Stopped));
    }

    #[test]
    fn the_hypervisor_and_sleep_are_told_apart() {
        let stolen = Readings {
            stolen_s: 0.5,
            ..nothing()
        };
        assert_eq!(cause(0.5, stolen), Some(Cause::Stolen));
        assert_eq!(cause(2.0, stolen), Some(Cause::Stopped));
        let slept = Readings {
            suspended_s: 3600.0,
            ..nothing()
        };
        let absent = absence(late(0.0), &slept).unwrap();
        assert_eq!((absent.seconds, absent.cause), (3600.0, Cause::Suspended));
    }

    #[test]
    fn who_waits_for_a_disk_is_there() {
        let faulted = Readings {
            faults: 1,
            ..nothing()
        };
        assert_eq!(cause(2.0, faulted), None);
    }

    #[test]
    fn several_are_summed_in_words() {
        let of = |seconds, cause| Absent { seconds, cause };
        assert_eq!(in_words(&[]), None);
        let one = [of(3.0, Cause::Stopped)];
        assert_eq!(in_words(&one).unwrap(), "3.0 s (stopped)");
        let three = [
            of(1.0, Cause::WaitingForCpu),
            of(3.0, Cause::Stopped),
            of(1.0, Cause::Stopped),
        ];
        let said = "5.0 s in 3 spans (stopped, waiting for a CPU)";
        assert_eq!(in_words(&three).unwrap(), said);
    }

    proptest! {
        /// Never longer than the sleep was late or the machine was suspended, never of a sleep
        /// that was on time, and longer lateness is no less of an absence.
        #[test]
        fn an_absence_is_no_longer_than_what_passed(
            late_s in 0.0..100.0f64, waited_s in 0.0..100.0f64, stolen_s in 0.0..100.0f64,
            suspended_s in 0.0..10.0f64, more_s in 0.0..100.0f64,
        ) {
            let grown = Readings { waited_s, stolen_s, suspended_s, faults: 0 };
            let found = absence(late(late_s), &grown);
            if let Some(absent) = found {
                prop_assert!(absent.seconds <= late_s.max(suspended_s) + 1e-9);
                prop_assert!(absent.seconds > 0.0);
                prop_assert!(absence(late(late_s + more_s), &grown).is_some());
            }
            let awake = Readings { suspended_s: 0.0, ..grown };
            prop_assert_eq!(absence(late(0.0), &awake), None);
        }
    }
}
