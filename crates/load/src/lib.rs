//! Engines and actors: what makes the load, and times every I/O of it.
//!
//! The room exists so that everything hot is in one place. An [`Actor`] runs in threads of its own,
//! so that nothing else can delay it, and writes its measurements into a [`Meter`]. A [`Sampler`]
//! reads the meter from another thread at any time, also while the actor is blocked in a system
//! call. A [`Deletion`] frees space beside it, and a [`Fill`] makes the files first. All of them
//! share one [`Clock`].

pub mod actor;
pub mod aio;
pub mod child;
pub mod clock;
pub mod deleter;
mod error;
pub mod fill;
pub mod meter;
pub mod pattern;
pub mod ring;
pub mod sampler;
pub mod schedule;
pub mod target;
pub mod task;

pub use actor::{
    Actor, ActorSpec, Arrival, Blocks, Engine, EngineChoice, Op, Region, Series, Unfinished, Work,
};
pub use clock::{Clock, Nanos};
pub use deleter::{Deletion, DeletionOutcome, DeletionProgress, DeletionSpec};
pub use error::LoadError;
pub use fill::{Fill, FillProgress, FillReport, FillSpec};
pub use meter::{IoFailure, Meter};
pub use pattern::PatternKind;
pub use sampler::{Sample, Sampler};
pub use task::TaskSpec;
