//! Decides how much may be freed now.
//!
//! Freeing space makes a file system send discards. A drive that works at one for S = a + b·L does
//! nothing else meanwhile. Freeing B bytes in n pieces costs the others n(a+δ) + b·B in any order.
//! Pacing spreads that cost as thinly as the goal asks, and must not add to it.
//!
//! A deleter that sleeps a fixed time between pieces doesn't know when they have been discarded,
//! nor what that cost others. This crate decides from what the device has acknowledged:
//!
//! - [`plan`]: piece, rate, time and the cost for others, from a device card, before anything is
//!   freed; or a [`Refusal`] with a goal that can be met;
//! - [`Pacer`]: the same decision at each moment, from [`Feedback`], with `burst`, `fixed` and
//!   `rate` to compare with `adaptive`;
//! - [`Account`]: the cost of a deletion for others, measured beside every policy, and whether its
//!   goals were kept;
//! - [`Debt`]: freed space that is still to be discarded, or never will be;
//! - [`trims`]: which free space is trimmed when, where nothing is discarded as it is freed.
//!
//! The caller, who frees, keeps to three rules:
//!
//! - An allowance that reaches beyond an extent's boundary is used up to the last boundary within,
//!   because a cut extent costs one more discard.
//! - After freeing, and the commit that makes the file system send the discards, it asks again at
//!   once.
//! - Its report of the others leaves out its own canary. Where nobody else does anything, the goal
//!   has nobody to protect. Only a latency still limits the discards.
//!
//! The crate is pure: no system call, no clock, no thread. The caller is a program with the kernel,
//! or a simulation with `ssd`'s model, and frees in a loop:
//!
//! ```no_run
//! # use pace::{Feedback, Goal, Pacer, Policy, Why, Work};
//! # fn look() -> Feedback<'static> { Feedback::default() }
//! # fn free(_: u64) {}
//! # fn force_commit() {}
//! # let work = Work::new(8 << 30, 64);
//! let mut pacer = Pacer::new(Policy::Adaptive(Goal::default()), &work, None)?;
//! loop {
//!     let advice = pacer.advise(&look());
//!     match advice.why {
//!         Why::Done | Why::Refused => break,
//!         _ if advice.commit => force_commit(),
//!         _ if advice.allow > 0 => free(advice.allow), // and ask again at once
//!         _ => std::thread::sleep(advice.ask_again),
//!     }
//! }
//! # Ok::<(), pace::Refusal>(())
//! ```

#![forbid(unsafe_code)]

mod account;
mod adaptive;
mod budget;
mod cost;
mod debt;
mod feedback;
mod flight;
mod goal;
mod interference;
mod latency;
mod meter;
mod ownership;
mod pacer;
mod pause;
mod piece;
mod plan;
mod pressure;
mod quantity;
mod refusal;
mod shape;
mod simple;
mod terms;
pub mod trims;
mod work;
mod worth;

pub use account::{
    Account, Beside, CanaryWaits, Discarded, GoalResult, Kept, LateReads, Limit, Measured,
    Observed, Quiet, ReaderLoss, Witness, Worst,
};
pub use debt::{Debt, DebtMode, Duty};
pub use feedback::{Canary, Discards, Feedback, Flushes, Io, Others, Space};
pub use goal::Goal;
pub use pacer::{Advice, Pacer, Policy, State, Why};
pub use plan::{Plain, Plan, plan};
pub use pressure::GroupWait;
pub use refusal::Refusal;
pub use work::{GROUP, SMALLEST_GROUP, Work};
pub use worth::Worth;
