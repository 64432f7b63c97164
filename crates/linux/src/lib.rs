//! What the Linux kernel says about discards, and what it does when asked.
//!
//! Everything that reads `/proc` and `/sys` or needs an unusual system call
//! lives here, so that the floors above speak of mounts, devices and counters
//! and never of files to parse. Parsing is kept apart from reading: parsers
//! take text, readers take a [`SysRoot`], and tests give both what other
//! machines once said.
//!
//! | module | question it answers |
//! |---|---|
//! | [`target`] | what is under this path, and will deleting there send discards? |
//! | [`mounts`] | which mount is this path on? |
//! | [`devices`] | which block devices are under it, down to the leaves? |
//! | [`stats`] | what did a block device do since I last asked? |
//! | [`space`] | how much may be written here? |
//! | [`host`] | which machine is this? |
//! | [`files`] | open, create and examine files for measuring |
//! | [`owner`] | a directory of our own, removed whatever happens |
//! | [`raw`] | may this device's data be destroyed, and is it ours alone? |
//! | [`remount`] | discards off for a while, on again whatever happens |

mod discard;
#[cfg(test)]
mod fake;
mod patience;
mod sysroot;

pub mod devices;
pub mod files;
pub mod host;
pub mod mounts;
pub mod owner;
pub mod raw;
pub mod remount;
pub mod space;
pub mod stats;
pub mod target;

pub use sysroot::SysRoot;
