//! Judges records: [`judge()`] makes a [`Verdict`] of one, [`compare`] a comparison of several.
//!
//! It makes no system call and has no clock: a record can be judged again
//! years later, and gives the same verdict.
//!
//! ```no_run
//! let file = std::fs::File::open("run.jsonl.zst")?;
//! let record = record::RecordReader::read(file)?;
//! let verdict = judge::judge(&record, &judge::JudgeOptions::default());
//! println!("{}", verdict.summary);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod compare;
mod judging;
pub mod verdict;

pub use judging::{JudgeOptions, counting, drift, gain, judge};
pub use verdict::Verdict;
