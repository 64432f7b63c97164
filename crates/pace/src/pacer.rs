//! The controllers behind one interface.

use std::fmt;
use std::time::Duration;

use ssd::{Card, Time};

use crate::adaptive::Adaptive;
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

/// Decides how much may be freed now.
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

/// The state of a controller, for progress and summary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// Bytes freed and still to be discarded.
    pub debt: u64,
    /// Bytes whose discards were given up.
    pub written_off: u64,
    /// Bytes that were freed and have been discarded a second time ([`Work::discards_twice`]).
    pub discarded_twice: u64,
    /// Whether discards come at all, as far as the pacer can observe.
    pub answered: bool,
    /// The present piece in bytes; 0 where there is none.
    pub piece: u64,
    /// The time of a whole discard, in seconds, as learned so far.
    pub service_s: Option<f64>,
    /// The share of a discard's time that slows others down, as learned.
    pub phi: f64,
    /// The time that others may have lost by the discards so far, at most, in seconds. `None` where
    /// nothing is charged. An [`Account`](crate::Account) measures.
    pub charged_s: Option<f64>,
    /// Whether the pacer assumes that nobody else uses the device.
    pub idle: bool,
    /// The time in which only one small discard may run for the goal to be kept, in seconds: φ·S
    /// divided by the goal's share. 0 where nothing is limited or known.
    pub rest_s: f64,
}

/// How often the debt is looked at where nothing else is known.
const POLL: Duration = Duration::from_millis(20);

impl Pacer {
    /// Creates a controller. With a device card `adaptive` starts from the card's figures, without
    /// one it learns.
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

    /// Sets the mean size of the extents that are freed next, in bytes. The pacer uses sizes below
    /// that of [`Work`] until the discards themselves show it.
    pub fn expect_extents(&mut self, bytes: u64) {
        if let Inner::Adaptive(adaptive) = &mut self.inner {
            adaptive.expect_extents(bytes);
        }
    }

    /// Returns the next step. It depends on nothing but the feedback so far.
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

    /// Returns why nothing may be freed any more: the first pieces have shown that the goal can't
    /// be met. A card shows it beforehand.
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

    /// Returns the state of the controller.
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

// The answer of a controller.

/// The next step that the caller may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// So many bytes may be freed now; 0: none. If an extent's boundary lies
    /// within, free up to the last one and no further: a cut extent costs one
    /// more discard. `u64::MAX`: all.
    pub allow: u64,
    /// At most so many in each call (a truncation, or files together), at
    /// least 1.
    pub piece: u64,
    /// Force a commit of the file system, then ask again at once, with
    /// [`Feedback::commits`](crate::Feedback::commits) one higher.
    pub commit: bool,
    /// When to ask again: so long from now. After freeing: at once.
    pub ask_again: Duration,
    /// A word for the progress line.
    pub why: Why,
}

/// The reason for an advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// It tries a piece to measure its cost.
    Probing,
    /// It goes as fast as the goal allows.
    Holding,
    /// Discards slowed others down more than the goal allows.
    BackingOff,
    /// Freed space isn't discarded yet.
    Debt,
    /// Nobody else uses the device.
    Idle,
    /// The rest fits into the loss that one window allows.
    Finishing,
    /// Free space runs low: the goal is lifted.
    Urgent,
    /// The deadline needs more than the goal.
    Deadline,
    /// Nothing is paced.
    Unpaced,
    /// The goal can't be met: [`Pacer::refusal`](crate::Pacer::refusal) says why.
    Refused,
    /// All is freed, and the debt is paid or written off.
    Done,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Probing => "probing",
            Why::Holding => "holding",
            Why::BackingOff => "backing off",
            Why::Debt => "waiting for the debt",
            Why::Idle => "idle",
            Why::Finishing => "finishing",
            Why::Urgent => "urgent",
            Why::Deadline => "hurrying for the deadline",
            Why::Unpaced => "unpaced",
            Why::Refused => "refused",
            Why::Done => "done",
        })
    }
}

impl Advice {
    /// Returns the advice to free `allow` bytes in pieces of at most `piece` bytes, then to ask
    /// again at once.
    pub(crate) fn free(allow: u64, piece: u64, why: Why) -> Advice {
        Advice {
            allow,
            piece: piece.max(1),
            commit: false,
            ask_again: Duration::ZERO,
            why,
        }
    }

    /// Returns the advice to free nothing and to ask again after this time.
    pub(crate) fn wait(ask_again: Duration, piece: u64, why: Why) -> Advice {
        Advice {
            allow: 0,
            piece: piece.max(1),
            commit: false,
            ask_again,
            why,
        }
    }

    /// Returns the advice to force a commit.
    pub(crate) fn commit(piece: u64) -> Advice {
        Advice {
            commit: true,
            ..Advice::wait(Duration::ZERO, piece, Why::Debt)
        }
    }
}
