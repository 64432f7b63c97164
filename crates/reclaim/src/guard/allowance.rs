//! How much a program may free itself now: what a throttle allows, kept ready.
//!
//! A thread asks the throttle for the bytes that programs asked for and didn't get yet, and waits
//! for them. So a request is answered at once, with the bytes that are ready. Bytes that are
//! granted count as freed.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pace::{Goal, Policy, Work};

use crate::throttle::{Purpose, Setup, Stack, Throttle, ThrottleOptions};
use crate::watch::{Progress, Watch};

/// A throttle ends after this time without a request.
const IDLE: Duration = Duration::from_secs(5);
const NAP: Duration = Duration::from_millis(20);

/// Ready bytes are dropped after this time without a request.
const STALE: Duration = Duration::from_secs(2);

/// Bytes that were asked for, and that are ready.
#[derive(Debug, Default)]
struct Pot {
    wanted: u64,
    ready: u64,
    asked: Option<Instant>,
}

/// Grants bytes to programs.
#[derive(Debug)]
pub(super) struct Allowance {
    on: OwnedFd,
    goal: Mutex<Goal>,
    options: ThrottleOptions,
    pot: Mutex<Pot>,
}

impl Allowance {
    pub(super) fn new(on: OwnedFd, goal: Goal, options: ThrottleOptions) -> Allowance {
        Allowance {
            on,
            goal: Mutex::new(goal),
            options,
            pot: Mutex::default(),
        }
    }

    /// Changes the goal of the next throttle.
    pub(super) fn set_goal(&self, goal: Goal) {
        *self
            .goal
            .lock()
            .unwrap_or_else(|broken| broken.into_inner()) = goal;
    }

    /// Grants as many of `bytes` as are ready now. The rest will be ready soon.
    pub(super) fn take(&self, bytes: u64) -> u64 {
        let mut pot = self.pot.lock().unwrap_or_else(|broken| broken.into_inner());
        pot.asked = Some(Instant::now());
        let taken = bytes.min(pot.ready);
        pot.ready -= taken;
        // Several programs may ask; each asks again for what it still needs.
        pot.wanted = pot.wanted.max(bytes - taken);
        taken
    }

    /// Returns the bytes that are asked for now; `None` after a while without a request.
    fn wanted(&self) -> Option<u64> {
        let mut pot = self.pot.lock().unwrap_or_else(|broken| broken.into_inner());
        let since = pot.asked?.elapsed();
        if since > STALE {
            (pot.wanted, pot.ready) = (0, 0);
        }
        if since > IDLE {
            pot.asked = None;
            return None;
        }
        Some(pot.wanted.saturating_sub(pot.ready))
    }

    fn put(&self, bytes: u64) {
        let mut pot = self.pot.lock().unwrap_or_else(|broken| broken.into_inner());
        pot.ready = pot.ready.saturating_add(bytes);
        pot.wanted = pot.wanted.saturating_sub(bytes);
    }

    /// Keeps bytes ready until the guard has ended.
    pub(super) fn run(&self, ended: &AtomicBool) {
        let mut throttle: Option<Throttle> = None;
        while !ended.load(Ordering::Relaxed) {
            match self.wanted() {
                None => throttle = None,
                Some(0) => {}
                Some(wanted) => {
                    if throttle.is_none() {
                        throttle = self.start(wanted);
                    }
                    let Some(held) = &mut throttle else {
                        // It can't be observed: nothing is held back.
                        self.put(wanted);
                        continue;
                    };
                    match held.grant(wanted, &mut Ended(ended)) {
                        Ok(advice) => {
                            let bytes = advice.allow.min(wanted);
                            held.freed(bytes, 0);
                            self.put(bytes);
                        }
                        Err(_) => throttle = None,
                    }
                    continue;
                }
            }
            std::thread::sleep(NAP);
        }
    }

    fn start(&self, bytes: u64) -> Option<Throttle> {
        let stack = Stack::at(self.on.as_fd()).ok()?;
        let goal = *self
            .goal
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        let started = Throttle::start(&Setup {
            on: self.on.as_fd(),
            stack: &stack,
            purpose: Purpose::Delete,
            work: &stack.shape(&Work::new(bytes, 1)),
            policy: Policy::Adaptive(goal),
            card: None,
            options: &self.options,
        });
        started.ok().map(|(throttle, _)| throttle)
    }
}

/// Ends with the guard.
struct Ended<'a>(&'a AtomicBool);

impl Watch for Ended<'_> {
    fn tick(&mut self, _: &Progress) -> std::ops::ControlFlow<()> {
        match self.0.load(Ordering::Relaxed) {
            true => std::ops::ControlFlow::Break(()),
            false => std::ops::ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_granted_soon_and_never_more() {
        let here = tempfile::tempdir_in("/dev/shm").unwrap();
        let on = std::fs::File::open(here.path()).unwrap().into();
        let allowance = Allowance::new(on, Goal::default(), ThrottleOptions::default());
        let ended = AtomicBool::new(false);
        assert_eq!(
            allowance.take(1 << 30),
            0,
            "nothing is ready yet, and no program waits"
        );
        let mut sum = 0;
        std::thread::scope(|threads| {
            threads.spawn(|| allowance.run(&ended));
            let began = Instant::now();
            while sum < 1 << 30 && began.elapsed() < Duration::from_secs(20) {
                sum += allowance.take((1 << 30) - sum);
                std::thread::sleep(Duration::from_millis(5));
            }
            ended.store(true, Ordering::Relaxed);
        });
        assert_eq!(sum, 1 << 30);
        assert_eq!(allowance.pot.lock().unwrap().wanted, 0);
    }
}
