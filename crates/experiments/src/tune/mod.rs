//! Which discard settings suit a drive: bounded experiments, and what follows from
//! them.
//!
//! [`Target`] finds the file system of a device, and a [`Trial`] is a value of
//! `discard_max_bytes` with a [`Policy`]. [`Trials`] are those of a [`Request`], and
//! [`Rounds`] run them in turns.
//! [`Settings`] changes what a trial needs and puts the old values back whatever happens;
//! each run is a [`bench::Plan`] made by [`Setup::plan`]. A run gives [`Figures`], and
//! the runs of a trial give a [`Point`]. The pure functions of [`frontier`] and [`advise`]
//! interpret them. [`rules`] make a limit outlast a restart.

mod advice;
mod candidates;
mod disturbed;
mod figures;
mod free;
mod frontier;
mod rounds;
mod rule;
mod settings;
mod target;
mod trials;

pub use advice::{Advice, Cost, Finding, Goal, advise};
pub use candidates::{BESIDE, Range, Setup};
pub use figures::Figures;
pub use free::{free, free_with_groups};
pub use frontier::{Measure, Point, beats, frontier};
pub use rounds::{Findings, Rounds, Run, Watch};
pub use rule::{RULES, rules};
pub use settings::Settings;
pub use target::Target;
pub use trials::{Policy, Request, Trial, Trials};
