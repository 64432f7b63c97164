//! What lies under a path, and how it treats discards.
//!
//! `linux` reads files and makes calls, without opinion. This crate says what they mean: so
//! every command counts discards by the same rule.
//!
//! | module | question it answers |
//! |---|---|
//! | [`target`] | what lies under a path, and will deleting there send discards? |
//! | [`devices`] | which devices are under a mount, down to the drives? |
//! | [`file_system`] | what does each file system do about discards? |
//! | [`counter`] | whose statistics count a file system's discards, and how many copies of a byte do they see? |
//! | [`layout`] | where may a file system be cut into windows to trim it? |
//! | [`remount`] | discards off for a while, or on, and back again whatever happens |
//! | [`raw`] | may a raw device's data be destroyed, and is it ours alone? |

#![forbid(unsafe_code)]

pub mod counter;
pub mod devices;
pub mod file_system;
pub mod layout;
pub mod raw;
pub mod remount;
pub mod target;

pub use file_system::{Commit, FileSystem};

use std::path::Path;

use linux::SysRoot;

pub use target::{Description, TargetError};

/// Describes the mounted file system that holds `path`, with how its devices count discards.
///
/// # Errors
/// When the path, its mount or its space cannot be examined.
pub fn describe(path: impl AsRef<Path>) -> Result<Description, TargetError> {
    let mut found = target::describe(path)?;
    counter::complete(&SysRoot::host(), &mut found);
    Ok(found)
}

/// Describes a raw block device by its path, with how it and what is below it count discards.
/// Opens nothing.
///
/// # Errors
/// When the path is no block device.
pub fn describe_device(path: impl AsRef<Path>) -> Result<Description, TargetError> {
    let mut found = target::describe_device(path)?;
    counter::complete(&SysRoot::host(), &mut found);
    Ok(found)
}
