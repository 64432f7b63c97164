//! Does TRIM arrive, what stops it, and what will it cost?
//!
//! [`inspect`] only reads: files of the kernel and of the system, and the pages in which drives
//! describe themselves. [`text::page`] shows an [`Inspection`] to people; its JSON is its
//! serialization, [`JSON_SCHEMA`].

pub mod collect;
pub mod findings;
mod gather;
pub mod metrics;
pub mod policy;
pub mod prove;
pub mod text;

use std::path::PathBuf;

use linux::SysRoot;
use record::Origin;
use serde::Serialize;
use ssd::Card;
use storage::TargetError;

use crate::forecast::{self, DeletionError, Forecast};
use storage::drive::Drive;
use storage::stack::Stack;

pub use crate::why::Missing;
pub use findings::{Finding, Severity};
pub use policy::{Now, Policy};
pub use prove::{Proof, prove};

/// The schema that every inspection names.
pub const SCHEMA: &str = "trimbench.inspect/1";

/// The JSON schema of an inspection.
pub const JSON_SCHEMA: &str = include_str!("../../schema/inspect-1.json");

/// The place to inspect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The stack under a path or a block device.
    Path(PathBuf),
    /// Every mounted file system on block devices, and drives without one.
    All,
}

/// How to inspect.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The present.
    pub now: Now,
    /// Whether drives and the device mapper may be asked: whether this is root.
    pub privileged: bool,
    /// The drive's card, for what it will cost.
    pub card: Option<Card>,
    /// The result of a proof, for its findings.
    pub proof: Option<Proof>,
    /// Files and directories whose deletion to forecast.
    pub if_deleted: Vec<PathBuf>,
}

/// All that was found out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// Whose inspection it is.
    pub origin: Origin,
    /// Whether the machine is a virtual one, by its drives or its firmware.
    pub virtual_machine: bool,
    /// The stacks, one for each file system or device.
    pub stacks: Vec<Stack>,
    /// The drives below them, each once.
    pub drives: Vec<Drive>,
    /// The programs that trim beside the file systems.
    pub policy: Policy,
    /// Lines of `/etc/crypttab` for encrypted devices of the stacks.
    pub crypttab: Vec<CryptLine>,
    /// The result of a proof; `None` without one.
    pub proof: Option<Proof>,
    /// The discards of a deletion that was asked about; `None` if none was.
    pub if_deleted: Option<Forecast>,
    /// The findings, the gravest first.
    pub findings: Vec<Finding>,
    /// Facts that could not be found out.
    pub missing: Vec<Missing>,
}

/// A line of `/etc/crypttab`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CryptLine {
    /// The kernel's name of the opened device, e.g. `dm-0`.
    pub device: String,
    /// The number of the line, from 1.
    pub line: usize,
    /// Whether it lets discards pass from the next start on.
    pub allows_discards: bool,
    /// The line with `discard` among its options.
    #[serde(skip)]
    pub with_discard: String,
}

/// Why nothing can be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// A deletion that can't be forecast.
    #[error(transparent)]
    Deletion(#[from] DeletionError),
    /// There is no such path.
    #[error(
        "cannot inspect {}: {source}; name a path, a mount or a block device",
        record::units::names::shown(path)
    )]
    Path {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A device that `/sys` doesn't know.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl Inspection {
    /// The kernel's release; empty if it is unknown.
    pub fn kernel(&self) -> &str {
        self.origin.kernel.as_deref().unwrap_or_default()
    }

    /// The drive of this kernel name.
    pub fn drive(&self, name: &str) -> Option<&Drive> {
        self.drives.iter().find(|drive| drive.name == name)
    }

    /// The gravest finding's severity.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Inspects a machine.
///
/// # Errors
/// When the path doesn't exist. [`Inspection::missing`] lists all else that can't be found out.
pub fn inspect(
    sys: &SysRoot,
    asked: &Scope,
    options: &Options,
) -> Result<Inspection, InspectError> {
    let mut found = gather::gather(sys, asked, options)?;
    found.proof.clone_from(&options.proof);
    if let (false, Some(stack)) = (options.if_deleted.is_empty(), found.stacks.first()) {
        let card = options.card.as_ref();
        found.if_deleted = Some(forecast::if_deleted(&options.if_deleted, stack, card)?);
    }
    // A forecast of this deletion leaves no need for that of an example.
    let card = options.card.as_ref();
    let card = card.filter(|_| found.if_deleted.is_none());
    found.findings = findings::find(&found, card);
    Ok(found)
}
