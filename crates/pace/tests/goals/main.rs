//! The goals, on every profile, in virtual time.

#![allow(clippy::unwrap_used)]

mod judge;
mod luck;
mod table;
mod trial;
