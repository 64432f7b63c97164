//! A trial: a way of discarding, and how large a discard may be.

use std::fmt;

use serde::Serialize;

/// A way in which freed space is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The file system sends discards for whatever is deleted, and `rm` deletes.
    Online,
    /// The same, and `trimbench rm` deletes.
    PacedRm,
    /// The file system sends none, and `trimbench fstrim` does later.
    PacedFstrim,
}

impl Policy {
    /// All, from the one that changes least.
    pub const ALL: [Policy; 3] = [Policy::Online, Policy::PacedRm, Policy::PacedFstrim];

    /// Whether it needs a mount that sends discards by itself.
    pub fn is_online(self) -> bool {
        self != Policy::PacedFstrim
    }

    /// In words, short.
    pub fn in_words(self) -> &'static str {
        match self {
            Policy::Online => "online discard",
            Policy::PacedRm => "online discard, paced rm",
            Policy::PacedFstrim => "nodiscard, paced fstrim",
        }
    }
}

/// One of the things that are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Trial {
    /// How freed space is discarded.
    pub policy: Policy,
    /// `discard_max_bytes` meanwhile.
    pub limit_bytes: u64,
}

impl Trial {
    /// Whether it is online discard with this limit: at the present one, all else is compared
    /// with it.
    pub fn is_online_at(&self, limit_bytes: u64) -> bool {
        self.policy == Policy::Online && self.limit_bytes == limit_bytes
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = record::units::bytes(self.limit_bytes);
        write!(f, "{}, at most {limit}", self.policy.in_words())
    }
}
