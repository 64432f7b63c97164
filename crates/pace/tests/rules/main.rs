//! What every controller keeps to, whatever it is told.

#![allow(clippy::unwrap_used)]

mod absences;
mod debts;
mod plans;
mod properties;
mod world;
