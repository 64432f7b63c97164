//! The answer of a controller.

use std::fmt;
use std::time::Duration;

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
