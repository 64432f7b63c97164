//! How a drive behaves.

#![forbid(unsafe_code)]
