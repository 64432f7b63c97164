//! Experiments on a drive: what is tried takes turns, in rounds, and medians and spreads say what
//! came of it.
//!
//! [`tune`] tries settings of discard on a mounted file system. [`suite`] makes file systems in
//! several ways and takes each through the same steps. Both have turns, [`Spread`] and [`Error`]. [`verify`] writes
//! data that describe themselves beside discards, and finds the fault that explains the damage.
#![forbid(unsafe_code)]

mod error;
mod spread;
pub mod suite;
pub mod tune;
pub mod verify;

pub use error::Error;
pub use spread::Spread;

/// Returns all in the order of a round, counted from 0. Each round begins with another one than
/// the round before, so that whatever drifts affects all alike.
pub(crate) fn turns<T>(all: &[T], round: usize) -> impl Iterator<Item = &T> {
    let (last, first) = all.split_at(round % all.len().max(1));
    first.iter().chain(last)
}
