//! Ways of discarding, tried on a drive's model in virtual time.
//!
//! A volume with files lies on [`ssd`]'s model of one or several drives. A workload writes and
//! removes files, a foreground reads, writes and syncs beside it, and a [`Policy`] decides when the
//! drive learns which space was freed. [`run`] takes a [`Setup`] and returns an [`Outcome`]: a record
//! as of a real run, its verdict and its figures. Nothing waits: hours pass in seconds. The same
//! setup gives the same bytes.
//!
//! ```
//! use sim::{Drives, PolicyKind, Setup, WorkloadKind};
//!
//! let card = ssd::profiles::by_name("crucial-t500-2tb").unwrap().clone();
//! let drives = Drives::single(card);
//! let setup = Setup::new(drives, PolicyKind::Ext4Online, WorkloadKind::DropFile);
//! let outcome = sim::run(&setup).unwrap();
//! assert_eq!(outcome.figures.removed_bytes, 16 << 30);
//! ```

#![forbid(unsafe_code)]

mod engine;
mod keys;
mod outcome;
mod parallel;
mod policy;
mod recorder;
mod setup;
mod stack;
mod volume;
mod workload;

pub use engine::{SimError, run};
pub use outcome::{Figures, Outcome, pareto_front};
pub use parallel::in_order;
pub use policy::{Desk, Nature, Order, Parameters, Policy, PolicyKind, Seen};
pub use recorder::FreeSpace;
pub use setup::{Drives, STACKS, Setup, stack};
pub use stack::Limits;
pub use volume::AllocatorKind;
pub use workload::WorkloadKind;
