//! Values as they are written in a card.

use record::units::UnitError;

use super::Queue;
use crate::flash::{Geometry, GeometryError};

/// A time for each MiB.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct PerMib {
    nanos: f64,
}

impl PerMib {
    /// So many nanoseconds for each MiB; below 0 and no number are 0.
    pub fn from_nanos(nanos: f64) -> PerMib {
        PerMib {
            // Not `nanos.max(0.0)` alone: that lets infinity through.
            nanos: if nanos.is_finite() {
                nanos.max(0.0)
            } else {
                0.0
            },
        }
    }

    /// Nanoseconds for each MiB.
    pub fn as_nanos(self) -> f64 {
        self.nanos
    }

    /// The cost of so many bytes, in nanoseconds.
    pub fn nanos_for(self, bytes: u64) -> f64 {
        self.nanos * (bytes as f64 / record::units::MIB as f64)
    }
}

pub(super) fn per_mib(text: &str) -> Result<PerMib, String> {
    let wrong = || format!("'{text}' is not a time by size: give e.g. 8.44us/MiB");
    let (time, size) = text.split_once('/').ok_or_else(wrong)?;
    let mib = match size.trim() {
        "KiB" => 1.0 / 1024.0,
        "MiB" => 1.0,
        "GiB" => 1024.0,
        _ => return Err(wrong()),
    };
    let time = time.trim();
    let end = time
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(time.len());
    let number: f64 = time[..end].parse().map_err(|_| wrong())?;
    let scale = match time[end..].trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let nanos = number * scale / mib;
    if !nanos.is_finite() {
        return Err("a time by size that no drive takes".to_owned());
    }
    Ok(PerMib::from_nanos(nanos))
}

pub(super) fn flash(text: &str) -> Result<Option<Geometry>, String> {
    match text.trim() {
        "off" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|e: GeometryError| e.to_string()),
    }
}

pub(super) fn share_above_0(text: &str) -> Result<f64, String> {
    match record::units::parse_share(text)? {
        share if share >= 0.001 => Ok(share),
        _ => Err(format!("'{text}' is too little: at least 0.1%")),
    }
}

/// A jitter above a third could make a time negative.
pub(super) fn jitter(text: &str) -> Result<f64, String> {
    match record::units::parse_share(text)? {
        jitter if jitter <= 0.33 => Ok(jitter),
        _ => Err(format!("a jitter of '{text}' is too much: at most 33%")),
    }
}

pub(super) fn count(text: &str) -> Result<u32, UnitError> {
    record::units::parse_whole(text, 1..=u32::MAX)
}

pub(super) fn granule(text: &str) -> Result<u64, String> {
    match record::units::parse_size(text)? {
        granule if granule >= 512 && granule.is_power_of_two() => Ok(granule),
        _ => Err(format!(
            "'{text}' is no granule: give a power of 2 from 512"
        )),
    }
}

/// A queue kind; φ is a key of its own.
pub(super) fn queue(text: &str, phi: f64) -> Result<Queue, String> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["exclusive"] => Ok(Queue::Exclusive { phi }),
        ["non-ncq-drain"] if phi == 1.0 => Ok(Queue::NonNcqDrain),
        ["non-ncq-drain"] => Err(format!(
            "the host holds everything back while a non-NCQ TRIM runs, so phi is 1, not {phi}; \
             set queue=exclusive to have another"
        )),
        ["parallel", k] => Ok(Queue::Parallel { k: count(k)?, phi }),
        _ => Err(format!(
            "'{text}' is not a queue kind: give exclusive, non-ncq-drain, or e.g. parallel 4"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_by_size() {
        for (text, nanos) in [
            ("8.44us/MiB", 8440.0),
            ("0.59 us / MiB", 590.0),
            ("1ns/KiB", 1024.0),
            ("1.024ms/GiB", 1000.0),
            ("0s/MiB", 0.0),
        ] {
            let cost = per_mib(text).unwrap();
            assert!((cost.as_nanos() - nanos).abs() < 1e-9, "{text}: {cost:?}");
        }
        for text in [
            "",
            "8",
            "8us",
            "us/MiB",
            "8us/MB",
            "8/MiB",
            "-1us/MiB",
            "1..2us/MiB",
        ] {
            assert!(per_mib(text).is_err(), "{text}");
        }
        assert_eq!(per_mib("2us/MiB").unwrap().nanos_for(1 << 19), 1000.0);
    }

    #[test]
    fn a_non_ncq_trim_holds_everything() {
        assert_eq!(queue("non-ncq-drain", 1.0), Ok(Queue::NonNcqDrain));
        let error = queue("non-ncq-drain", 0.5).unwrap_err();
        assert!(error.contains("queue=exclusive"), "{error}");
        assert_eq!(
            queue("parallel 4", 0.0),
            Ok(Queue::Parallel { k: 4, phi: 0.0 })
        );
        for text in ["parallel", "parallel 0", "parallel x", "serial", ""] {
            assert!(queue(text, 1.0).is_err(), "{text}");
        }
    }
}
