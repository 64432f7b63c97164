//! Tools that tests of several crates share. No program depends on it.
//!
//! | module | what it has |
//! |---|---|
//! | [`api_server`] | the part of Kubernetes' API server that keeps Leases |
//! | [`formats`] | files as each version of trimbench wrote them |
//! | [`gate`] | which tests can run here, and which must run alone |
//! | [`harness`] | readers and discards beside a simulated drive, in virtual time |
//! | [`loop_fs`] | file systems on loop devices, removed when a test is over |
//! | [`loop_device`] | loop devices over sparse images, the same |
//! | [`machine`] | a `/proc`, `/sys` and `/dev` as another machine has them |
//! | [`measured`] | figures of drives of 2024 that their models must reach |
//! | [`recorded`] | figures of drives of 2024, and the logs that iostat makes of them |
//! | `schema` | validators of JSON schemas |
//! | [`sweep`] | removes what killed test runs left behind |

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that can't be set up fails")]

pub mod api_server;
pub mod formats;
pub mod gate;
pub mod harness;
pub mod loop_device;
pub mod loop_fs;
pub mod machine;
pub mod measured;
pub mod recorded;
#[cfg(feature = "schema")]
pub mod schema;
pub mod sweep;

pub use machine::Machine;
/// The generator of made-up noise: the same numbers from the same seed for ever.
pub use ssd::Rng;
