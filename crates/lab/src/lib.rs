//! A simulated drive as a real block device.
//!
//! The [`ssd`] model, driven by the real clock, behind a block device: stock
//! file systems, fio and every command of trimbench run on a drive that behaves
//! like a given one, on any machine.
//!
//! ```text
//!   ext4, XFS, btrfs, fio …
//!   /dev/loopN                loop driver, direct I/O
//!   /run/…/NAME/fuse/disk     FUSE: each block request becomes one FUSE request
//!   server process            fuse -> device (model, clock, faults) -> store
//! ```
//!
//! [`Lab`] makes drives and takes them down; [`serve`] is the life of the
//! process behind one. Only the server holds `/dev/fuse`; the process that
//! makes the loop device and mounts is another, for one that waits for itself
//! can't even be killed.
//!
//! # What a crash leaves
//! Nothing. The server starts a guardian, which takes the drive down when the
//! server is gone, or when the process that makes the drive is killed half-way;
//! a server whose guardian is killed starts another. When both are killed at the
//! same moment the drive is dead, which can be told by locks that the kernel
//! drops, and [`Lab::sweep`], which every `trimbench lab` command begins with,
//! takes it down. A mount that is still in use is taken out of sight; its loop
//! device goes with its last user, and until then every message says who that
//! is. [`Lab::down_all`] looks at what the kernel has (mounts, loop devices,
//! processes, cgroups, sockets) when it is done, and fails if anything is left.
//!
//! # How true it is
//! Loop driver, FUSE and waking up add some 20 to 100 µs to each I/O, which the
//! model knows nothing of ([`Stats::late_us`] is the part after its due time).
//! To be true to a drive whose reads take 100 µs, stretch its time
//! ([`Spec::slower`]) until that doesn't matter: at 20 times slower depth and
//! TRIM rate are right within a few percent, and times divide by 20.
//!
//! [`record::as_drive()`] converts a whole record.
//!
//! # What file systems make of it
//! `make lab` measures it. The law of the stall is the queue's, and the same
//! under each: between two discards one queue depth of reads. What differs is
//! how large a discard is, and who sends it.
//! - ext4 sends one discard for each free extent, at most a block group of
//!   128 MiB, one after the other from a thread of the kernel, when the journal
//!   has committed: many short waits.
//! - XFS sends extents whole, up to the size of an allocation group and to
//!   `discard_max_bytes`, several at once. The loop driver sends them one by one
//!   all the same, so their mean wait is longer than one takes: few long waits.
//!   What a real drive would do with several in flight can't be seen here.
//! - btrfs sends at most 1 GiB in one piece. With `discard=sync` the commit
//!   does, in whoever's name it is: `sync` waits for all of them, and so does
//!   every write; with `discard=async` a worker, minutes later.
//!
//! # What such a drive can't do
//! - The loop driver sends discards and flushes one at a time and waits for
//!   each, and reads of the discards' own blkio cgroup (the root's, for a file
//!   system's) wait behind them, whatever the drive says. So the foreground
//!   belongs into [`Lab::foreground_cgroup`].
//! - FUSE holds the file's lock during a discard, and a write needs it: writes
//!   wait for discards, whatever φ is.
//! - The loop driver asks for zeros whose space may be freed (`mkfs`,
//!   `blkdiscard -z`) exactly as it asks for a discard. So they cost one, and
//!   what was discarded always reads as zeros, also what the drive rounded away
//!   or ignored; the model's map keeps that as mapped.

#![forbid(unsafe_code)]

mod control;
pub mod crash;
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
mod remains;
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
pub use group::Foreground;
pub use lab::{Info, Lab, Launcher};
pub use serve::serve;
pub use spec::{Fs, Spec};
pub use stats::{FaultStats, Kind, KindStats, Stats};
pub use sweep::Swept;
pub use trip::{AtDepth, Trip};
