//! What a run recorded, and what it means.
//!
//! Everything that measures (a native run, a run in virtual time, an imported
//! log) becomes one [`RunRecord`]; everything that concludes, draws or
//! compares reads only that. The record is JSON Lines, so it streams and a
//! killed run leaves a readable one. This crate makes no system call and has
//! no clock: it reads and writes any `Read` or `Write` it is given.
//!
//! ```no_run
//! let file = std::fs::File::open("run.jsonl.zst")?;
//! let record = timeline::record::RecordReader::read(file)?;
//! let verdict = timeline::judge(&record, &timeline::JudgeOptions::default());
//! println!("{}", verdict.summary);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod absence;
pub mod as_drive;
pub mod compare;
pub mod judge;
pub mod names;
pub mod record;
pub mod typed;
pub mod units;
pub mod verdict;

pub use as_drive::as_drive;
pub use judge::{JudgeOptions, judge};
pub use record::RunRecord;
pub use verdict::Verdict;
