//! The Linux kernel's files and calls for everything about discards.
//!
//! Everything that reads `/proc` and `/sys` or needs an unusual system call lives here. So the
//! floors above work with mounts, devices and counters, and never with files to parse. Parsing is
//! apart from reading: parsers take text, readers take a [`SysRoot`], and tests give both the text
//! of other machines.
//!
//! | module | question it answers |
//! |---|---|
//! | [`mounts`] | which mount is this path on? |
//! | [`fstab`] | which file systems does a table list? |
//! | [`crypttab`] | which encrypted devices are opened at the start, and may discards pass them? |
//! | [`deleters`] | how many paced deleters work on the same drive? |
//! | [`counters`] | a device's own counters, switched on for a while and off again whatever happens |
//! | [`stats`] | what did a block device do since I last asked? |
//! | [`space`] | how much may be written here? |
//! | [`holders`] | who would lose a file that is emptied? |
//! | [`host`] | which machine is this? |
//! | [`identify`] | which pages does a drive describe itself with? |
//! | [`fuse`] | connections of a FUSE server, and queues over io_uring |
//! | [`files`] | open, create and examine files for measuring |
//! | [`owner`] | a directory of our own, removed whatever happens |
//! | [`limit`] | how large a discard may be, for a while, and back again whatever happens |
//! | [`loop_device`] | a file as a block device |
//! | [`btrfs`] | commit, and clean up at once |
//! | [`async_discard`] | how many discards may btrfs's own trimmer send, for a while? |
//! | [`block`] | discard or zero a part of a block device |
//! | [`md`] | an array without a superblock, stopped whatever happens |
//! | [`dm`] | which targets make up a device of the device mapper? |
//! | [`trim`] | discard a file system's free space, window by window |
//! | [`watcher`] | a process that undoes a change when this one has ended, however |
//! | [`patience`] | trying again while something is held for a moment |
//! | [`cgroup`] | which control group is a thread in? |
//! | [`memory`] | a process that writing memory back depends on |
//! | [`clock`] | how long has the machine slept? |
//! | [`presence`] | did this thread run when it wanted to? |
//! | [`pressure`] | how long do tasks wait for I/O? |
//! | [`tasks`] | what does each thread do, and where in the kernel does it wait? |
//! | [`tracefs`] | which discards does the kernel send, and who asks for them? |

pub mod async_discard;
pub mod sysroot;

pub mod block;
pub mod btrfs;
mod btrfs_tree;
pub mod cgroup;
pub mod clock;
pub mod counters;
pub mod crypttab;
pub mod deleters;
pub mod dm;
pub mod files;
pub mod fstab;
pub mod fuse;
pub mod holders;
pub mod host;
pub mod identify;
pub mod limit;
pub mod loop_device;
pub mod md;
pub mod memory;
pub mod mount_point;
pub mod mounts;
pub mod opened;
pub mod owner;
pub mod patience;
pub mod presence;
pub mod pressure;
pub mod space;
pub mod stats;
pub mod subvolume;
pub mod tasks;
pub mod tracefs;
pub mod trim;
pub mod watcher;

pub use sysroot::SysRoot;
