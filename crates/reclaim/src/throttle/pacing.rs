//! How freeing is paced: one set of choices for all throttles of a command.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use pace::{Goal, Policy};
use ssd::Card;

/// The file that the canary reads.
#[derive(Debug, Clone, Default)]
pub enum CanaryFile {
    /// A file of 1 MiB without a name, made on the file system.
    #[default]
    Made,
    /// This file, open for direct reads, with at least 4 KiB of written data.
    Given(Arc<File>),
    /// There is no canary.
    Without,
}

/// How freeing is paced.
#[derive(Debug, Clone)]
pub struct Pacing {
    /// How much is freed, and when.
    pub policy: Policy,
    /// A card of the drive, if there is one.
    pub card: Option<Card>,
    /// The canary's file.
    pub canary: CanaryFile,
    /// The canary's reads each second; `None`: forty.
    pub reads_per_s: Option<f64>,
    /// A blkio cgroup of version 1 in which the canary reads: that of the
    /// foreground of a simulated drive, whose reads don't wait in the loop
    /// driver behind discards.
    pub canary_group: Option<PathBuf>,
    /// No commit is forced after a piece: discards come when the file system
    /// likes. Only for policies that don't wait for them.
    pub skip_commits: bool,
}

impl Pacing {
    /// Paces by this policy, without a card, and with a canary of forty reads each second.
    pub fn new(policy: Policy) -> Pacing {
        Pacing {
            policy,
            card: None,
            canary: CanaryFile::default(),
            reads_per_s: None,
            canary_group: None,
            skip_commits: false,
        }
    }

    /// Returns the goal that the policy keeps, if it has one.
    pub(crate) fn goal(&self) -> Option<Goal> {
        match self.policy {
            Policy::Adaptive(goal) => Some(goal),
            _ => None,
        }
    }
}
