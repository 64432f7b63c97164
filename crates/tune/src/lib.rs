//! Which discard settings suit a drive: bounded experiments, and what follows from
//! them.
//!
//! [`Ground`] finds the file system of a device, [`limits`] picks a handful of
//! values of `discard_max_bytes`, and a [`Trial`] is one of them with a
//! [`Policy`]. [`Held`] sets them and puts the old ones back whatever happens;
//! each run is a [`bench::Plan`] made by [`Course::plan`]. What came of the runs
//! are [`Figures`], of several [`Point`]s; [`frontier`] and [`advise`] say what
//! they mean, in pure functions.
#![forbid(unsafe_code)]

mod advice;
mod candidates;
mod course;
mod disturbed;
mod figures;
mod freed;
mod frontier;
mod ground;
mod held;
mod point;
mod trial;

pub mod persist;

pub use advice::{Advice, Cost, Finding, Goal, advise};
pub use candidates::{Range, limits};
pub use course::{Course, surveyed_anew};
pub use disturbed::{Disturbance, disturbed};
pub use figures::Figures;
pub use freed::{FreeError, free, free_with_groups};
pub use frontier::{Measure, beats, frontier};
pub use ground::{Ground, GroundError};
pub use held::{Held, HeldError};
pub use point::{Point, Spread};
pub use trial::{Policy, Trial};
