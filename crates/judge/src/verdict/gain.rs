//! The gain of a trim: writes after it over writes before it.

use serde::{Deserialize, Serialize};

/// The gain of a trim of all free space, of a run whose deletion is `trim`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The finding.
    pub finding: GainFinding,
    /// Why it is inconclusive; `None` of the others.
    pub why: Option<GainDoubt>,
    /// The finding, its figures and the next step, in words.
    pub sentence: String,
    /// Bytes that the devices discarded in the trim.
    pub trimmed_bytes: Option<u64>,
    /// Bytes that the writers wrote in the whole run.
    pub written_bytes: u64,
    /// Bytes that went into the drive's fast cache before writes became slower; `None` where no
    /// such step was seen.
    pub cache_bytes: Option<u64>,
    /// Bytes per second of all writers.
    pub rate: Option<Ratio>,
    /// The 99th percentile of a write's latency, in microseconds: the mean over seconds.
    pub p99_us: Option<Ratio>,
    /// The rate that the trend before the trim leads to after it, over the rate before: 1 where
    /// there is no trend that stands out.
    pub trend: Option<f64>,
}

/// A figure after the trim over the same before it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Before the trim.
    pub before: f64,
    /// After it.
    pub after: f64,
    /// After over before.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

/// The effect of a trim on writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GainFinding {
    /// They are at least 10 % faster, and neither chance nor a trend explains it.
    Gained,
    /// They are not, and a gain of 10 % would have been seen.
    Nothing,
    /// They are at least 10 % slower.
    Slower,
    /// The record shows none of these.
    Inconclusive,
}

/// Why a gain is inconclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GainDoubt {
    /// The run did not reach its end.
    CutShort,
    /// The devices saw no discards.
    NotTrimmed,
    /// Too few seconds of writing before or after the trim.
    TooShort,
    /// A drive's fast cache, which may have recovered meanwhile, was not filled again.
    Cache,
    /// The rate changed as much without the trim.
    Trend,
    /// The rate scatters too much.
    TooNoisy,
}
