//! iostat: its extended reports -> [`RunRecord`](::record::RunRecord).
//!
//! ```
//! use formats::iostat::{Log, Options, record};
//!
//! let text = "Device r/s rkB/s d/s dkB/s aqu-sz\nsda 2500.00 10000.00 0.00 0.00 7.9\n\n".repeat(8);
//! let log = Log::read(text.as_bytes())?;
//! let record = record(&log, None, &Options::default())?;
//! assert_eq!(record.head.actors[0].name, "sda");
//! let verdict = judge::judge(&record, &judge::JudgeOptions::default());
//! # assert_eq!(verdict.foreground[0].actor, "sda");
//! # Ok::<(), formats::Unfit>(())
//! ```

mod actors;
mod boot;
mod builder;
mod columns;
mod devices;
mod grid;
mod json;
mod log;
mod notes;
mod own;
mod record;
pub(crate) mod stamp;
mod text;
mod topology;

pub use crate::options::{First, Moment, Options};
pub use log::Log;
pub use notes::Notes;
pub(crate) use record::in_zone;
pub use record::record;
