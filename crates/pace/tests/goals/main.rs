//! The goals, on every profile, in virtual time.

#![allow(clippy::unwrap_used)]

mod judge;
mod latency;
mod luck;
mod table;
mod trial;
