//! The judge against records whose truth is known: drives measured in 2024,
//! rebuilt and as recorded, and everything that only looks like a TRIM stall.

mod baselines;
mod build;
mod claims;
mod continuous;
mod control;
mod edges;
mod event;
mod faults;
mod figures;
mod foregrounds;
mod fuzzed;
mod gain;
mod others;
mod permuted;
mod presence;
mod recorded;
mod recovery;
mod rows;
mod said;
mod writes;
