//! How much of the time this process ran, and how long its actors' threads waited to.

use std::time::Duration;

use linux::presence::{RunQueue, Sleeper};
use load::{Actor, Nanos};
use record::absence::Absent;

/// After an absence, what was in flight is given so long to be reaped before it is looked.
const COME_BACK: Duration = Duration::from_millis(20);

/// A hypervisor that takes more than this share of the processors' time makes a warning.
const STOLEN: f64 = 0.05;

/// Watches the sampling thread, and the actors' threads.
#[derive(Debug)]
pub(super) struct Presence {
    sleeper: Sleeper,
    /// Since the interval began.
    absent: Option<Absent>,
    /// Of each actor, in order.
    actors: Vec<Threads>,
    /// When measuring began, and what the hypervisor had taken by then, in seconds.
    measured: Option<(Nanos, f64)>,
}

impl Presence {
    /// Watches the thread that calls this.
    pub(super) fn new() -> Presence {
        Presence {
            sleeper: Sleeper::new(),
            absent: None,
            actors: Vec::new(),
            measured: None,
        }
    }

    /// Sleeps; if the process is away meanwhile, whatever the actors had begun is left out.
    pub(super) fn nap(&mut self, length: Duration, actors: &[Actor], now: impl Fn() -> Nanos) {
        let Some(absent) = self.sleeper.nap(length) else {
            return;
        };
        // Their threads may not have come to what completed meanwhile.
        std::thread::sleep(COME_BACK);
        let now = now();
        actors.iter().for_each(|actor| actor.leave_out_before(now));
        self.absent = Some(match self.absent {
            None => absent,
            Some(before) => Absent {
                seconds: before.seconds + absent.seconds,
                ..absent
            },
        });
    }

    /// Whether the process was away in the interval that ends now, and how long.
    pub(super) fn take_absent(&mut self) -> Option<Absent> {
        self.absent.take()
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
        self.measured.get_or_insert((now, self.sleeper.stolen_s()));
    }

    /// A warning, if the hypervisor took much of the processors' time since
    /// [`Presence::measure`].
    pub(super) fn stolen(&self, now: Nanos, cpus: u32) -> Option<String> {
        let (from, before_s) = self.measured?;
        let all_s = now.since(from).as_secs_f64() * f64::from(cpus.max(1));
        let share = (self.sleeper.stolen_s() - before_s) / all_s.max(1.0);
        (share > STOLEN).then(|| {
            format!(
                "The hypervisor took {} of this machine's processor time while it was measured, so \
                 rates and waits tell less of the drive.",
                units::percent(share)
            )
        })
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
        for id in actor.threads(self.0.len()) {
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
