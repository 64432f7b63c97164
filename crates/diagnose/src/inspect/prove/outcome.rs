//! The conclusion of a proof, from what was counted and read. Pure.

use serde::Serialize;
use storage::drive::ReadsAs;

/// Bytes that are compared at once.
pub(super) const BLOCK: usize = 4096;

/// From this share of the probe on, a layer passed it.
const PASSED: f64 = 0.5;

/// From this share of the probe on, its blocks are as they were.
const UNCHANGED: f64 = 0.9;

/// From this share on they changed. Nothing but a discard changes them, so half is proof; btrfs
/// may keep a part that was in a chunk of its own.
const CHANGED: f64 = 0.5;

/// The discards that a layer counted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counted {
    /// The layer's kernel name.
    pub name: String,
    /// The layers right below it.
    pub below: Vec<String>,
    /// Whether it is at the top.
    pub top: bool,
    /// Bytes discarded there; `None` if its counters say nothing.
    pub bytes: Option<u64>,
    /// Commands.
    pub commands: u64,
    /// Bytes over those of the probe, each copy counted once.
    pub share: f64,
}

/// The content of the probe's blocks afterwards, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Raw {
    /// Still the probe's data.
    pub unchanged_bytes: u64,
    /// Zeros.
    pub zero_bytes: u64,
    /// Something else.
    pub other_bytes: u64,
}

impl Raw {
    /// Compares blocks with those that were written.
    pub(super) fn add(&mut self, written: &[u8], read: &[u8]) {
        for (before, after) in written.chunks(BLOCK).zip(read.chunks(BLOCK)) {
            let bytes = after.len() as u64;
            match () {
                () if before == after => self.unchanged_bytes += bytes,
                () if after.iter().all(|&byte| byte == 0) => self.zero_bytes += bytes,
                () => self.other_bytes += bytes,
            }
        }
    }

    fn share(&self, bytes: u64) -> f64 {
        let all = self.unchanged_bytes + self.zero_bytes + self.other_bytes;
        bytes as f64 / all.max(1) as f64
    }
}

/// The result of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The drive got the discards, and the blocks changed.
    Arrives,
    /// The drive got the discards; the blocks could not be read, or only some changed.
    Counted,
    /// The drive got the discards, and the blocks are as they were.
    Ignored,
    /// A layer above the drive stopped them.
    Stops,
    /// The file system sent none.
    NotSent,
    /// Data beside the probe changed, too.
    TooMuch,
    /// No counter is on, and the blocks are as they were, or were not read.
    Unknown,
}

/// The result, and the layer at which discards stopped.
pub(super) fn conclude(
    layers: &[Counted],
    raw: Option<&Raw>,
    fence_intact: bool,
) -> (Outcome, Option<String>) {
    if !fence_intact {
        return (Outcome::TooMuch, None);
    }
    let passes = |layer: &Counted| layer.bytes.is_none() || layer.share >= PASSED;
    let tops: Vec<&Counted> = layers.iter().filter(|layer| layer.top).collect();
    let known = layers.iter().any(|layer| layer.bytes.is_some());
    if !known {
        let changed = raw.is_some_and(|raw| raw.share(raw.zero_bytes + raw.other_bytes) >= CHANGED);
        return match changed {
            true => (Outcome::Arrives, None),
            false => (Outcome::Unknown, None),
        };
    }
    if !tops.iter().any(|top| passes(top)) {
        return (Outcome::NotSent, None);
    }
    let stop = layers.iter().find(|layer| {
        let mut below = layers
            .iter()
            .filter(|one| layer.below.contains(&one.name))
            .peekable();
        passes(layer) && below.peek().is_some() && !below.any(passes)
    });
    if let Some(stop) = stop {
        // A layer without counters above that got none itself sent nothing.
        return match stop.top && stop.bytes.is_none() {
            true => (Outcome::NotSent, None),
            false => (Outcome::Stops, Some(stop.name.clone())),
        };
    }
    let outcome = match raw {
        Some(raw) if raw.share(raw.unchanged_bytes) >= UNCHANGED => Outcome::Ignored,
        Some(raw) if raw.share(raw.zero_bytes + raw.other_bytes) >= CHANGED => Outcome::Arrives,
        _ => Outcome::Counted,
    };
    (outcome, None)
}

/// Whether unchanged blocks break a drive's promise. `None`: it reported nothing.
pub(in super::super) fn breaks_promise(promise: Option<ReadsAs>) -> bool {
    !matches!(promise, Some(ReadsAs::Anything | ReadsAs::Deterministic))
}
