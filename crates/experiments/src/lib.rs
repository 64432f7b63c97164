//! Experiments on a drive: what is tried takes turns, in rounds, and medians and spreads say what
//! came of it.
//!
//! [`tune`] tries settings of discard on a mounted file system. [`suite`] makes file systems in
//! several ways and takes each through the same steps. Both have turns, [`Spread`] and [`Error`]. [`verify`] writes
//! data that describe themselves beside discards, and finds the fault that explains the damage.
#![forbid(unsafe_code)]

pub mod suite;
pub mod tune;
pub mod verify;

use std::fmt::Display;
use std::io;

use bench::BenchError;
use serde::Serialize;

/// Returns all in the order of a round, counted from 0. Each round begins with another one than
/// the round before, so that whatever drifts affects all alike.
pub(crate) fn turns<T>(all: &[T], round: usize) -> impl Iterator<Item = &T> {
    let (last, first) = all.split_at(round % all.len().max(1));
    first.iter().chain(last)
}

// Why an experiment ended.

/// Why an experiment failed or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request can't be carried out; the text says what to ask for instead.
    #[error("{0}")]
    Usage(String),
    /// Something failed: a step, a setting, or all that follows.
    #[error("{0}")]
    Failed(String),
    /// A signal stopped it.
    #[error("interrupted; the same command goes on where it was")]
    Stopped,
    /// A run that failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A simulated drive that can't be made.
    #[error(transparent)]
    Lab(#[from] lab::LabError),
    /// A device that may not be touched.
    #[error(transparent)]
    Raw(#[from] storage::raw::RawError),
}

impl Error {
    /// Whether the request was at fault, and nothing was begun.
    pub fn is_usage(&self) -> bool {
        match self {
            Error::Usage(_) | Error::Raw(_) => true,
            Error::Bench(error) => error.is_usage(),
            Error::Lab(error) => error.is_usage(),
            Error::Failed(_) | Error::Stopped => false,
        }
    }

    /// A failure in its own words.
    pub(crate) fn failed(error: impl Display) -> Error {
        Error::Failed(error.to_string())
    }

    /// A failed call of the system, with what was tried.
    pub(crate) fn of(what: impl Display) -> impl Fn(io::Error) -> Error {
        move |error| Error::Failed(format!("{what}: {error}"))
    }
}

// A figure over several rounds.

/// The median of a figure over several rounds, and its range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest value.
    pub low: f64,
    /// The median: of an even count the mean of the middle two.
    pub median: f64,
    /// The largest value.
    pub high: f64,
    /// How many values there are.
    #[serde(skip)]
    pub count: usize,
}

impl Spread {
    /// Of values in any order; `None` without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut all: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
        all.sort_unstable_by(f64::total_cmp);
        Some(Spread {
            low: *all.first()?,
            high: *all.last()?,
            count: all.len(),
            median: record::units::median(all)?,
        })
    }

    /// Half of the range.
    pub fn half_range(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_median_and_the_range() {
        let of = |all: &[f64]| Spread::of(all.iter().copied());
        let three = of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((three.median, three.low, three.high), (2.0, 1.0, 3.0));
        assert_eq!(of(&[4.0, 1.0]).unwrap().median, 2.5);
        assert_eq!(of(&[4.0, f64::NAN]).unwrap().half_range(), 0.0);
        assert_eq!(of(&[]), None);
    }

    proptest! {
        #[test]
        fn a_median_lies_between_the_ends(values in prop::collection::vec(-1e6f64..1e6, 1..9)) {
            let spread = Spread::of(values.iter().copied()).unwrap();
            prop_assert!(spread.low <= spread.median && spread.median <= spread.high);
            prop_assert_eq!(spread.count, values.len());
        }
    }
}
