//! The Linux kernel's files and calls for everything about discards.
//!
//! Everything that reads `/proc` and `/sys` or needs an unusual system call lives here. So the
//! floors above work with mounts, devices and counters, and never with files to parse. Parsing is
//! apart from reading: parsers take text, readers take a [`SysRoot`], and tests give both the text
//! of other machines.
//!
//! | module | question it answers |
//! |---|---|
//! | [`target`] | what is under this path, and will deleting there send discards? |
//! | [`mounts`] | which mount is this path on? |
//! | [`mounted`] | which files are mounted by themselves, here or in a container? |
//! | [`fstab`] | which file systems does a table list? |
//! | [`devices`] | which block devices are under it, down to the leaves? |
//! | [`deleters`] | how many paced deleters work on the same drive? |
//! | [`counters`] | a device's own counters, switched on for a while and off again whatever happens |
//! | [`stats`] | what did a block device do since I last asked? |
//! | [`space`] | how much may be written here? |
//! | [`host`] | which machine is this? |
//! | [`files`] | open, create and examine files for measuring |
//! | [`owner`] | a directory of our own, removed whatever happens |
//! | [`raw`] | may this device's data be destroyed, and is it ours alone? |
//! | [`remount`] | discards off for a while, or on, and back again whatever happens |
//! | [`limit`] | how large a discard may be, for a while, and back again whatever happens |
//! | [`loop_device`] | a file as a block device |
//! | [`btrfs`] | commit, and clean up at once |
//! | [`block`] | discard or zero a part of a block device |
//! | [`trim`] | discard a file system's free space, window by window |
//! | [`cgroup`] | which control group is a thread in? |
//! | [`memory`] | a process that writing memory back depends on |
//! | [`clock`] | how long has the machine slept? |
//! | [`presence`] | did this thread run when it wanted to? |
//! | [`vm`] | what does the whole machine read and write? |

mod discard;
#[cfg(test)]
mod fake;
mod patience;
mod sysroot;
mod watcher;

pub mod block;
pub mod btrfs;
pub mod cgroup;
pub mod clock;
pub mod counters;
pub mod deleters;
pub mod devices;
pub mod files;
pub mod fstab;
pub mod host;
pub mod limit;
pub mod loop_device;
pub mod memory;
pub mod mounted;
pub mod mounts;
pub mod opened;
pub mod owner;
pub mod presence;
pub mod raw;
pub mod remount;
pub mod space;
pub mod stats;
pub mod target;
pub mod trim;
pub mod vm;

pub use sysroot::SysRoot;
