//! A simulated drive as a real block device.
//!
//! The [`ssd`] model, driven by the real clock, stands behind a block device. So stock file
//! systems, fio and every command of trimbench run on a drive that behaves like a given one, on any
//! machine.
//!
//! ```text
//!   ext4, XFS, btrfs, fio …
//!   /dev/loopN                loop driver, direct I/O
//!   /run/…/NAME/fuse/disk     FUSE: each block request becomes one FUSE request
//!   server process            fuse -> device (model, clock, faults) -> store
//! ```
//!
//! [`Lab`] makes drives and takes them down; [`serve`] is the life of the process behind one. Only
//! the server holds `/dev/fuse`. Another process makes the loop device and mounts, because a
//! process that waits for itself can't even be killed.
//!
//! # What a crash leaves
//! A crash leaves nothing. The server starts a guardian, which takes the drive down when the server
//! has died, or when the process that makes the drive is killed half-way. A server whose guardian
//! is killed starts another.
//!
//! When both are killed at the same moment the drive is dead, which shows in locks that the kernel
//! drops. Every `trimbench lab` command begins with [`Lab::sweep`], which takes it down.
//!
//! A mount that is still in use is taken out of sight. Its loop device disappears with its last
//! user, and until then every message names that user. When it is done, [`Lab::down_all`] looks at
//! all that the kernel has (mounts, loop devices, processes, cgroups, sockets), and fails if
//! anything is left.
//!
//! # How true it is
//! The loop driver, FUSE and waking up add some 50 to 90 µs to each I/O. The server measures that, and
//! the model counts commands as having come earlier by it. [`Trip`] has the rates of reads beside the
//! card's, by depth, and [`Stats::late_us`] the part of an answer after its due time. Where a drive is
//! faster than this machine's way to it, stretch its time ([`Spec::slower`]). At 20 times slower, depth
//! and TRIM rate are right within a few percent, and times divide by 20.
//!
//! [`record::as_drive()`] converts a whole record.
//!
//! # What file systems make of it
//! `make lab` measures it. The law of the stall is the queue's, and the same under each: between
//! two discards there is one queue depth of reads. File systems differ in the size of a discard and
//! in its sender.
//! - ext4 sends one discard for each free extent, at most a block group of 128 MiB. A kernel thread
//!   sends them one after the other when the journal has committed: many short waits.
//! - XFS sends extents whole, up to the size of an allocation group and to `discard_max_bytes`,
//!   several at once. The loop driver still sends them one by one, so their mean wait is longer
//!   than one takes: few long waits. The effect of several in flight on a real drive can't be seen
//!   here.
//! - btrfs sends at most 1 GiB in one piece. With `discard=sync` the commit sends them, in
//!   whichever process it runs: `sync` and every write wait for all of them. With `discard=async` a
//!   worker sends them minutes later.
//!
//! # What such a drive can't do
//! - The loop driver sends discards and flushes one at a time and waits for each. Reads of the
//!   discards' own blkio cgroup (the root's, for a file system's) wait behind them, whatever the
//!   drive does. So the foreground belongs into [`Lab::foreground_cgroup`].
//! - FUSE holds the file's lock during a discard, and a write needs it: writes wait for discards,
//!   whatever φ is.
//! - The loop driver asks for zeros whose space may be freed (`mkfs`, `blkdiscard -z`) exactly as
//!   it asks for a discard. So they cost one. All that was discarded reads as zeros, also the part
//!   that the drive rounded away or ignored; the model's map keeps that part as mapped.

#![forbid(unsafe_code)]

mod control;
mod device;
mod discards;
mod down;
mod error;
mod faults;
mod fuse;
mod group;
mod guardian;
mod lab;
mod lock;
mod mounts;
mod place;
mod queue;
mod room;
mod serve;
mod spec;
mod stats;
mod store;
mod sweep;
mod trip;
mod up;

pub use down::Down;
pub use error::LabError;
pub use faults::{BadFault, Fault};
pub use fuse::reach_of_message;
pub use group::Foreground;
pub use lab::{Info, Lab, Launcher};
pub use serve::serve;
pub use spec::{Fs, Spec};
pub use stats::{FaultStats, Kind, KindStats, Stats};
pub use sweep::Swept;
pub use trip::{AtDepth, Trip};
