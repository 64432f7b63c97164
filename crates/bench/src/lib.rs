//! Runs a scenario: actors and phases become a [`timeline::RunRecord`].
//!
//! [`Survey`] looks at a place without changing it, [`sizes::choose`] picks
//! what is safe there, a [`Plan`] says in full what is to be done, and a
//! [`Claimed`] run does it, records it, and removes what it made. What the record means is not
//! told here: that is `timeline::judge`'s.
#![forbid(unsafe_code)]

mod commit;
mod discarded;
mod drain;
mod error;
mod grid;
mod head;
mod kept;
mod observer;
pub mod plan;
mod run;
mod session;
mod sink;
pub mod sizes;
mod steady;
mod survey;
mod watched;
mod workplace;

pub use error::BenchError;
pub use head::preview;
pub use observer::{Observer, Second};
pub use plan::Plan;
pub use run::{Claimed, Outcome};
pub use survey::{Survey, Swept, kept_foreground_path, sweep};
