//! Experiments in virtual time, recorded as the kernel counts, and fitted again.

#![allow(clippy::unwrap_used, unreachable_pub)] // helpers are seen by this test alone

mod hostile;
mod ladders;
mod queues;
mod record;
