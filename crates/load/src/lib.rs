//! Engines and actors: what makes the load, and times every I/O of it.
//!
//! The room exists so that everything hot is in one place. An [`Actor`] runs in threads of its own,
//! so that nothing else can delay it, and writes its measurements into a [`Meter`]. A [`Sampler`]
//! reads the meter from another thread at any time, also while the actor is blocked in a system
//! call. A [`Deletion`] frees space beside it, and a [`Fill`] makes the files first. All of them
//! share one [`Clock`].
//!
//! # Decisions
//!
//! **Our own io_uring.** The time of submission is half of the measurement, so the engine controls when
//! it submits and reaps. It needs `DEFER_TASKRUN`, and registered files, buffers and ring descriptor;
//! it drops each in turn where the kernel refuses it. That takes a few hundred lines over three system
//! calls. Each I/O costs one reading of the time-stamp counter when it is pushed, and each pass over
//! the completion queue costs another. A reading per completion would cost more than everything else.
//!
//! **libaio by four system calls.** libaio keeps direct I/O in flight where containers forbid io_uring,
//! as their default profiles do. The library only wraps the four calls, so trimbench makes them itself.
//! It reads completions from the ring that the kernel maps into user space, without a system call.
//!
//! **A signal handler for mapped files.** A store to a mapped file that is cut off or unreadable raises
//! `SIGBUS`. The engine mmap makes no system call per block that could return an error, so a
//! handler counts the fault and lets the store go to a spare page.
//!
//! **A thread for each actor.** Submitting can block (a frozen file system, a full queue). A blocked
//! deleter must delay neither the readers nor the sampler, which has to see the block.
//!
//! **Meters with a single writer.** An actor's thread counts in atomics that only it writes, so the hot
//! path has no lock and no read-modify-write instruction. The counters have HdrHistogram's layout, so a
//! sample is a subtraction. The sampler records an actor that hangs by its constant counts and the
//! growing age of its oldest I/O.
//!
//! **Outside programs and events.** `load::child` starts an outside program in a process group, and
//! kills the whole group when the run ends. The program's last line becomes the message if it fails. An
//! event (`load::deleter::event`) is one more way to delete: it reports the growth of the free space
//! (`statvfs`) as freed. Other processes write and delete meanwhile, so it ends when the discards are
//! quiet, not when the debt is zero.

pub mod actor;
pub mod aio;
pub mod child;
pub mod clock;
pub mod deleter;
mod error;
pub mod fill;
mod mapped;
pub mod meter;
pub mod pattern;
pub mod ring;
pub mod sampler;
pub mod schedule;
pub mod target;
pub mod task;
pub mod workers;

pub use actor::{
    Actor, ActorSpec, Allowance, Blocks, Engine, Op, Region, Series, Unfinished, Work,
};
pub use clock::{Clock, Nanos};
pub use deleter::{Deletion, DeletionOutcome, DeletionProgress, DeletionSpec};
pub use error::LoadError;
pub use fill::{Fill, FillReport, FillSpec};
pub use meter::{IoFailure, Meter};
pub use pattern::PatternKind;
pub use record::LoopKind;
pub use sampler::{Sample, Sampler};
pub use task::TaskSpec;
pub use workers::Workers;
