//! Every file system, made and mounted in several ways, through the same steps on one drive.
//!
//! A [`Cell`] is a file system, a way to make it and a way to mount it. A [`Plan`] takes cells in
//! turns through [`Step`]s. [`Stage`] has the device, [`perform()`] carries the plan out, and
//! [`log`] keeps one line for each finished step, so that a killed suite goes on. [`Results`] are
//! medians and spreads of its lines. [`sheet()`] makes tables of them, and [`advise()`] ranks the
//! ways to free space.

mod advice;
mod cell;
mod drive;
pub mod log;
mod measure;
mod perform;
mod plan;
mod programs;
mod results;
mod sheet;
mod stage;
mod step;
mod target;

#[cfg(test)]
mod tests;

pub use advice::{Advice, Way, advise};
pub use cell::{Cell, Selection, select};
pub use measure::{Measure, Unit};
pub use perform::{Now, Watch, perform};
pub use plan::{Asked, Estimate, Plan};
pub use results::{Results, Row};
pub use sheet::sheet;
pub use stage::Stage;
pub use step::Step;
pub use target::{Raid0, Target};
