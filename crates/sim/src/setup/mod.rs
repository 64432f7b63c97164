//! Everything that decides a run: drive, volume, policy, workload, foreground.

use std::time::Duration;

use ssd::Card;

use crate::policy::{Parameters, PolicyKind};
use crate::volume::AllocatorKind;
use crate::workload::WorkloadKind;

mod keys;
mod policies;
mod stacks;
mod text;

pub use keys::{SETTINGS, describe_policies};
pub(crate) use policies::named;
pub use policies::{Named, policies};
pub use stacks::{STACKS, stack};
pub use text::{Cells, Document};

/// One or several drives of a kind, in stripes.
#[derive(Debug, Clone, PartialEq)]
pub struct Drives {
    /// The profile's or the stack's name.
    pub name: String,
    /// One card for each drive.
    pub cards: Vec<Card>,
    /// Bytes on one drive before the next one's turn.
    pub chunk: u64,
}

impl Drives {
    /// A single drive.
    pub fn single(card: Card) -> Drives {
        Drives {
            name: card.name().to_owned(),
            cards: vec![card],
            chunk: 512 << 10,
        }
    }
}

/// A run's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The drives below the volume.
    pub drives: Drives,
    /// The policy.
    pub policy: PolicyKind,
    /// The policy's name in tables; its kind's name, as a rule.
    pub policy_name: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// The workload.
    pub workload: WorkloadKind,
    /// The way of allocating; `None`: the policy's file system's.
    pub allocator: Option<AllocatorKind>,
    /// The volume's size in bytes; 0: twice what the workload has, and at least 16 GiB.
    pub volume: u64,
    /// Share of the volume that other files use.
    pub fill: f64,
    /// Bytes that the workload has.
    pub size: u64,
    /// Files that the workload has.
    pub files: u64,
    /// Lengths of the extents of the file to drop, in place of the allocator's.
    pub extents: Vec<u64>,
    /// The pause of a continuous workload.
    pub pause: Duration,
    /// How long a continuous workload runs, all phases together.
    pub length: Duration,
    /// Time before the deletion.
    pub baseline: Duration,
    /// Time after the last discard.
    pub recovery: Duration,
    /// The longest time that is waited for the last discard.
    pub limit: Duration,
    /// Reads in flight, each followed by the next.
    pub readers: u32,
    /// Reads a second at random times, whatever becomes of them.
    pub reads_per_s: f64,
    /// Writes of 4 KiB in flight.
    pub writers: u32,
    /// Programs that write 4 KiB and sync, again and again.
    pub syncers: u32,
    /// The readers' thread's time for each I/O.
    pub per_io: Duration,
    /// The kernel's time between two discards.
    pub per_discard: Duration,
    /// The deleter's time for each file.
    pub per_file: Duration,
    /// The time of a commit, beside its flush.
    pub commit_time: Duration,
    /// The file system commits after so long, if there is anything to commit.
    pub commit_every: Duration,
    /// A row of the record.
    pub interval: Duration,
    /// Decides all that is random.
    pub seed: u64,
    /// The drive's flash; none is modelled without.
    pub flash: Option<ssd::flash::Geometry>,
}

impl Setup {
    /// The usual settings for a drive: 16 GiB in one file, beside 8 reads in flight.
    pub fn new(drives: Drives, policy: PolicyKind, workload: WorkloadKind) -> Setup {
        Setup {
            drives,
            policy,
            policy_name: policy.name().to_owned(),
            parameters: policy.usual(),
            workload,
            allocator: None,
            volume: 0,
            fill: 0.0,
            size: match workload {
                WorkloadKind::Spill | WorkloadKind::LogPurge => 2 << 30,
                WorkloadKind::Churn => 1 << 30,
                _ => 16 << 30,
            },
            files: match workload {
                WorkloadKind::Churn => 16_384,
                _ => 1_000,
            },
            extents: Vec::new(),
            pause: Duration::from_millis(100),
            length: Duration::from_secs(60),
            baseline: Duration::from_secs(2),
            recovery: Duration::from_secs(2),
            limit: Duration::from_secs(300),
            readers: 8,
            reads_per_s: 0.0,
            writers: 0,
            syncers: 0,
            per_io: Duration::from_micros(10),
            per_discard: Duration::from_micros(50),
            per_file: Duration::from_micros(50),
            commit_time: Duration::from_millis(1),
            commit_every: Duration::from_secs(5),
            interval: Duration::from_millis(100),
            seed: 1,
            flash: None,
        }
    }

    /// Changes the policy; its parameters become the usual ones.
    pub fn set_policy(&mut self, named: &Named) {
        self.policy = named.kind;
        self.policy_name = named.name.clone();
        self.parameters = named.parameters.clone();
    }

    /// Sets a setting, or a parameter of the policy, from text.
    ///
    /// # Errors
    /// In words: if there is none of this name (with the nearest), or it doesn't take the value.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        if let Some(key) = crate::keys::find(SETTINGS, name) {
            return (key.set)(self, text);
        }
        let own = self.policy.parameters();
        match crate::keys::find(crate::policy::PARAMETERS, name) {
            Some(key) if own.contains(&name) => (key.set)(&mut self.parameters, text),
            Some(_) => Err(format!("the policy {} has no '{name}'", self.policy.name())),
            None => {
                let names = SETTINGS.iter().map(|key| key.name);
                let near = crate::keys::nearest(name, names.chain(own.iter().copied()));
                let hint = units::typed::hint(&near);
                Err(format!("there is no setting '{name}'{hint}"))
            }
        }
    }

    /// All settings as JSON, as they are written in a grid.
    pub fn describe(&self) -> serde_json::Value {
        let mut settings = serde_json::Map::new();
        let mut note = |name: &str, value: String| {
            settings.insert(name.to_owned(), value.into());
        };
        note("profile", self.drives.name.clone());
        note("policy", self.policy.name().to_owned());
        note("workload", self.workload.name().to_owned());
        for key in SETTINGS {
            note(key.name, (key.show)(self));
        }
        for name in self.policy.parameters() {
            if let Some(key) = crate::keys::find(crate::policy::PARAMETERS, name) {
                note(key.name, (key.show)(&self.parameters));
            }
        }
        serde_json::json!({ "simulated": settings })
    }

    /// The way of allocating.
    pub fn allocator(&self) -> AllocatorKind {
        // Given extents are laid out as they are: btrfs has no tables between them.
        let usual = match self.extents.is_empty() {
            true => self.policy.allocator(),
            false => AllocatorKind::Btrfs,
        };
        self.allocator.unwrap_or(usual)
    }

    /// The volume's size in bytes, whole stripes.
    pub fn volume_bytes(&self) -> u64 {
        let extents: u64 = self.extents.iter().map(|&bytes| bytes + 8192).sum();
        let wanted = match self.volume {
            0 => (self.size.max(extents).saturating_mul(2)).max(16 << 30),
            bytes => bytes,
        };
        let stripe = self.drives.chunk.max(4096) * self.drives.cards.len().max(1) as u64;
        wanted.div_ceil(stripe).saturating_mul(stripe)
    }
}
