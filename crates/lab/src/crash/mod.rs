//! Crash states: what a drive may hold after its power was cut, one after the other.
//!
//! A drive with a log ([`Spec::log`](crate::Spec::log)) writes down every write, discard and flush,
//! and marks that a workload sets ([`Lab::mark`](crate::Lab::mark)). After a power cut a drive holds
//! what a flush had covered, and any part of what came later, in any order. [`states()`] lists such
//! contents. [`check()`] makes a device of each and runs a command on it: a check of the file
//! system, a mount, the recovery of a database.
//!
//! A write counts as covered by a flush if it arrived before the flush did. A drive may be worse:
//! it need only cover what it had answered by then. So no state here is one that can't be.

mod check;
mod read;
mod states;

pub use check::{Check, Failed, Outcome, check};
pub(crate) use read::Log;
pub use read::{Recorded, What};
pub use states::{Landed, State, Torn, states};
