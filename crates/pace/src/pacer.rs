//! The controllers behind one door.

use std::time::Duration;

use ssd::{Card, Time};

use crate::adaptive::Adaptive;
use crate::advice::{Advice, Why};
use crate::debt::{Debt, DebtMode, Duty};
use crate::feedback::Feedback;
use crate::goal::Goal;
use crate::plan::plan;
use crate::refusal::Refusal;
use crate::simple::{Fixed, Rate};
use crate::work::Work;

/// How it is paced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// All at once: plain deletion.
    Burst,
    /// A chunk, then a sleep, whatever the device does: slowrm's way.
    Fixed {
        /// Bytes freed at once, at least 1.
        chunk: u64,
        /// The pause after each.
        sleep: Duration,
    },
    /// So many bytes for each second, whatever the device does.
    Rate {
        /// Bytes for each second, at least 1.
        bytes_per_s: f64,
        /// Bytes freed at once, at least 1.
        piece: u64,
    },
    /// As fast as the goal allows.
    Adaptive(Goal),
}

/// Says how much may be freed now.
#[derive(Debug, Clone)]
pub struct Pacer {
    inner: Inner,
    mode: DebtMode,
}

#[derive(Debug, Clone)]
enum Inner {
    /// Burst, fixed and rate look at the debt only to know when it is paid.
    Blind {
        way: Way,
        debt: Debt,
        now: Time,
    },
    Adaptive(Box<Adaptive>),
}

#[derive(Debug, Clone)]
enum Way {
    Burst,
    Fixed(Fixed),
    Rate(Rate),
}

/// What a controller knows, for progress and summary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// Bytes freed and still to be discarded.
    pub debt: u64,
    /// Bytes whose discards were given up.
    pub written_off: u64,
    /// Bytes that were freed and have been discarded a second time ([`Work::discards_twice`]).
    pub discarded_twice: u64,
    /// Whether discards come at all, as far as can be told.
    pub answered: bool,
    /// The present piece in bytes; 0 where there is none.
    pub piece: u64,
    /// The time of a whole discard, in seconds, as learned so far.
    pub service_s: Option<f64>,
    /// The share of a discard's time that holds the others up, as learned.
    pub phi: f64,
    /// What the discards so far were charged with, in seconds: the most that others may have
    /// lost by them. `None` where nothing is charged. An [`Account`](crate::Account) measures.
    pub charged_s: Option<f64>,
    /// Whether nobody else is taken to use the device.
    pub idle: bool,
    /// How long one small discard has to make do, for the goal to hold, in seconds;
    /// 0 where nothing is to be held or known.
    pub rest_s: f64,
}

/// How often the debt is looked at where nothing else is known.
const POLL: Duration = Duration::from_millis(20);

impl Pacer {
    /// A controller; with a device card `adaptive` starts from what it says,
    /// without one it learns.
    ///
    /// # Errors
    /// If the card says that the goal can't be met.
    pub fn new(policy: Policy, work: &Work, card: Option<&Card>) -> Result<Pacer, Refusal> {
        let way = match policy {
            Policy::Burst => Way::Burst,
            Policy::Fixed { chunk, sleep } => Way::Fixed(Fixed::new(chunk, sleep)),
            Policy::Rate { bytes_per_s, piece } => Way::Rate(Rate::new(bytes_per_s, piece)),
            Policy::Adaptive(goal) => {
                if let Some(card) = card {
                    plan(card, work, &goal)?;
                }
                return Ok(Pacer {
                    inner: Inner::Adaptive(Box::new(Adaptive::new(goal, work, card))),
                    mode: work.mode,
                });
            }
        };
        Ok(Pacer {
            inner: Inner::Blind {
                way,
                debt: Debt::new(work.mode),
                now: Time::ZERO,
            },
            mode: work.mode,
        })
    }

    /// What is freed next lies in extents of so many bytes on average: shorter ones
    /// than [`Work`] promises are believed, until the discards themselves tell.
    pub fn expect_extents(&mut self, bytes: u64) {
        if let Inner::Adaptive(adaptive) = &mut self.inner {
            adaptive.expect_extents(bytes);
        }
    }

    /// What may be done now. It depends on nothing but what it was told so far.
    pub fn advise(&mut self, seen: &Feedback<'_>) -> Advice {
        let mode = self.mode;
        match &mut self.inner {
            Inner::Adaptive(adaptive) => adaptive.advise(seen),
            Inner::Blind { way, debt, now } => {
                *now = (*now).max(seen.now);
                debt.update(*now, seen.freed, seen.exempt, seen.discards.bytes);
                if seen.left == Some(0) {
                    if seen.settled {
                        debt.settle(true);
                    }
                    return match debt.duty(*now, seen.commits, Duration::ZERO) {
                        Duty::Paid => Advice::wait(Duration::ZERO, 1, Why::Done),
                        Duty::Wait => Advice::wait(POLL, 1, Why::Debt),
                        Duty::Commit => Advice::commit(1),
                    };
                }
                if mode == DebtMode::Never {
                    return Advice::free(u64::MAX, u64::MAX, Why::Unpaced);
                }
                match way {
                    Way::Burst => Advice::free(u64::MAX, u64::MAX, Why::Unpaced),
                    Way::Fixed(fixed) => fixed.advise(*now, seen.freed),
                    Way::Rate(rate) => rate.advise(*now, seen.freed, Why::Holding),
                }
            }
        }
    }

    /// Why nothing may be freed any more: the first pieces have shown that the
    /// goal can't be met. A card shows it beforehand.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.inner {
            Inner::Adaptive(adaptive) => adaptive.refusal(),
            Inner::Blind { .. } => None,
        }
    }

    /// From now on no latency is refused, because freed space can't be put back. Pieces get as small
    /// as they can, and [`crate::Account`] reports at the end whether the goal was met.
    pub fn commit_to_goal(&mut self) {
        if let Inner::Adaptive(adaptive) = &mut self.inner {
            adaptive.commit_to_goal();
        }
    }

    /// What it knows.
    pub fn state(&self) -> State {
        match &self.inner {
            Inner::Adaptive(adaptive) => adaptive.state(),
            Inner::Blind { debt, .. } => State {
                debt: debt.bytes(),
                written_off: debt.written_off(),
                discarded_twice: 0,
                answered: debt.is_answered(),
                piece: 0,
                service_s: None,
                phi: 1.0,
                charged_s: None,
                idle: false,
                rest_s: 0.0,
            },
        }
    }
}
