//! The storage stack under a path, and how it treats discards.
//!
//! `linux` reads files and makes calls, without opinion. This crate says what they mean: so
//! every command counts discards by the same rule.
//!
//! | module | question it answers |
//! |---|---|
//! | [`describe`] | what lies under a path, and will deleting there send discards? |
//! | [`devices`] | which devices are under a mount, down to the drives? |
//! | [`file_system`] | what does each file system do about discards? |
//! | [`counter`] | whose statistics count a file system's discards, and how many copies of a byte do they see? |
//! | [`layout`] | where may a file system be cut into windows to trim it? |
//! | [`making`] | how are file systems made and mounted, with and without discards? |
//! | [`remount`] | discards off for a while, or on, and back again whatever happens |
//! | [`stack`] | which layers lie between a file system and its drives, and what does each do to discards? |
//! | [`disks`] | which drives are below a file that a process works on? |
//! | [`counter::over`] | over how many drives are data spread evenly? |
//! | [`deletions`] | by which events does a file system tell that a process frees space? |
//! | [`drive`] | what does a drive say about itself and discards? |
//! | [`Fault`] | in which kernels do discards harm an md array? |
//! | [`trimmable`] | which file systems would fstrim choose? |
//! | [`raw`] | may a raw device's data be destroyed, and is it ours alone? |

#![forbid(unsafe_code)]

pub mod counter;
pub mod deletions;
pub mod devices;
pub mod disks;
pub mod drive;
mod faults;
pub mod file_system;
pub mod layout;
pub mod making;
pub mod raw;
pub mod remount;
pub mod stack;
mod target;
pub mod trimmable;
mod warning;

pub use faults::Fault;
pub use file_system::{Commit, FileSystem, TrimReach};
pub use target::{
    Description, Harm, TargetError, describe, describe_device, describe_device_in, describe_mount,
    origin,
};
pub use warning::Warning;
