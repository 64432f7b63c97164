//! Tests the rules that every controller keeps to, whatever feedback it gets.

#![allow(clippy::unwrap_used)]

mod absences;
mod debts;
mod plans;
mod properties;
mod world;
