//! The kernel of this machine, asked for real: loop devices over memory with
//! real file systems. Needs root, losetup and the mkfs programs.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod cgroups;
mod claims;
mod killed;
mod loops;
mod remounts;
mod targets;
