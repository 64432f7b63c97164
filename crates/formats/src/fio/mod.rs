//! fio: its job file, its logs and its JSON.
//!
//! A bench that runs fio beside its own recording takes three steps. It reads the job file and puts
//! its actors into the record's head. It has fio run the file with logs. When all is over, it takes
//! their series:
//!
//! ```
//! use formats::fio::{About, Grid, Input, JobFile, Logging, series};
//!
//! let file = JobFile::parse("[reader]\nrw=randread\nfilename=/data/f\n")?;
//! let actors = file.actors();
//! let logging = Logging { dir: "/tmp/logs".to_owned(), window_ms: 100, histogram_ms: 100 };
//! let job = file.with_logs(&logging); // for fio to run
//! # assert!(job.contains("write_iops_log=/tmp/logs/job1"));
//! // … afterwards, with every *.log that is in the directory:
//! let log = "1795207889468, 400, 0, 0, 0\n1795207889568, 500, 0, 0, 0\n";
//! let input = Input { name: "job1_iops.1.log".to_owned(), text: log.as_bytes() };
//! let about = About { jobs: Some(&file), output: None };
//! let all = series([input], &about)?;
//! let grid = Grid { started_unix_s: 1795207889.368, at_s: &[0.0, 0.1], seconds: &[0.1, 0.1] };
//! let column = all[0].intervals(&grid);
//! assert_eq!(column[1].unwrap().ops, 50);
//! assert_eq!(all[0].info, actors[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bins;
mod grid;
mod jobfile;
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
pub use jobfile::{Job, JobFile, Logging, with_in_each_job};
pub(crate) use jobs::UNTIMED;
pub use json::{DirectionOutput, JobOutput, LatencyOutput, Output};
pub use logs::Direction;
pub use options::Options;
pub use progress::progress;
pub use record::{record, totals};
pub use series::{About, FioSeries, Input, series};
