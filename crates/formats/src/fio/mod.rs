//! fio: its logs and its JSON.
//!
//! ```
//! use formats::fio::{Grid, Input, series};
//!
//! let log = "1795207889468, 400, 0, 0, 0\n1795207889568, 500, 0, 0, 0\n";
//! let input = Input { name: "job1_iops.1.log".to_owned(), text: log.as_bytes() };
//! let all = series([input], None)?;
//! let grid = Grid { started_unix_s: 1795207889.368, at_s: &[0.0, 0.1], seconds: &[0.1, 0.1] };
//! let column = all[0].intervals(&grid);
//! assert_eq!(column[1].unwrap().ops, 50);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bins;
mod grid;
mod jobs;
mod json;
mod latencies;
pub mod logs;
mod options;
mod progress;
pub(crate) mod record;
mod series;
mod thread;
mod trims;
mod unit;
mod windows;

pub use grid::Grid;
pub(crate) use jobs::UNTIMED;
pub use json::{DirectionOutput, JobOutput, LatencyOutput, Output};
pub use logs::Direction;
pub use options::Options;
pub use progress::progress;
pub use record::{record, totals};
pub use series::{FioSeries, Input, series};
