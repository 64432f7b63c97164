//! One damaged place, and the sentence about it.

use serde::Serialize;

use crate::verify::cause::{Again, Cause};
use crate::verify::discards::Near;
use crate::verify::pattern::Pattern;

/// One damaged place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The file, or the device and its region.
    pub path: String,
    /// Whether it is a file, and not a region of a raw device.
    #[serde(skip)]
    pub is_file: bool,
    /// Where the data of a misdirected write were found that ought to be here.
    #[serde(skip)]
    pub landed: Option<String>,
    /// Whether its own evidence points to `cause`. Otherwise the cause is only left for want of a
    /// better one.
    #[serde(skip)]
    pub pointed: bool,
    /// The number of the file or region, from 1.
    pub file: u32,
    /// Where the damage begins in the file or region, in bytes.
    pub offset_bytes: u64,
    /// How long it is, in bytes.
    pub length_bytes: u64,
    /// The device; `None` where the place on it is not known.
    pub device: Option<String>,
    /// Where the damage begins on the device, in 512-byte sectors.
    pub device_sector: Option<u64>,
    /// The largest of 512 bytes, 4 KiB and the erase block that the beginning on the device, or
    /// else in the file, is a multiple of, in bytes.
    pub aligned_bytes: u64,
    /// The smallest erase block of the device in bytes, if it reports one beyond 4 KiB.
    pub erase_block_bytes: Option<u64>,
    /// The content of the place.
    pub pattern: Pattern,
    /// The fault that explains it best.
    pub cause: Cause,
    /// Other faults that explain it, too, the most probable one first. If there are any, the
    /// evidence doesn't decide.
    pub other_causes: Vec<Cause>,
    /// The write that it ought to hold; `None` for a hole.
    pub expected_generation: Option<u32>,
    /// Seconds from the beginning of the test to the discovery.
    pub found_s: f64,
    /// Seconds from the beginning of the test to the write that it ought to hold.
    pub written_s: Option<f64>,
    /// Whether the place was read rightly after it was last written.
    pub was_right: bool,
    /// A second read, right after the first.
    pub second_read: Again,
    /// A read after the place was written anew.
    pub rewritten: Again,
    /// The kernel's error, if it reported one.
    pub kernel_error: Option<String>,
    /// The nearest discard in space.
    pub nearest_discard: Option<Near>,
    /// The latest discard.
    pub latest_discard: Option<Near>,
    /// The fewest bytes by which a discard must have taken too much to reach the end of the place;
    /// `None` if none can have.
    pub trim_reach_bytes: Option<u64>,
    /// All of it in a sentence.
    pub summary: String,
}

impl Finding {
    /// All causes that explain it, the most probable one first.
    pub fn causes(&self) -> impl Iterator<Item = Cause> {
        std::iter::once(self.cause).chain(self.other_causes.iter().copied())
    }

    /// Adds a cause that other findings point to. It comes first unless this finding's own evidence
    /// points to another.
    pub(crate) fn may_be(&mut self, cause: Cause) {
        self.other_causes.retain(|other| *other != cause);
        if self.cause != cause {
            let second = match self.pointed {
                true => cause,
                false => std::mem::replace(&mut self.cause, cause),
            };
            self.other_causes.insert(0, second);
        }
        self.pointed = true;
    }

    /// Writes the sentence.
    #[must_use]
    pub fn summed_up(mut self) -> Finding {
        self.summary = sentence(&self);
        self
    }
}

/// The largest unit of 512 bytes, 4 KiB and the erase block that an offset is a multiple of; 1 if
/// it is none.
pub fn alignment(offset: u64, erase_block: Option<u64>) -> u64 {
    let units = [erase_block.unwrap_or(0), 4096, 512];
    let fits = |unit: &u64| *unit > 0 && offset.is_multiple_of(*unit);
    units.into_iter().find(fits).unwrap_or(1)
}

/// Exact, because the length is evidence.
fn length(bytes: u64) -> String {
    match bytes % 1024 {
        0 => format!("{} KiB", record::units::count(bytes / 1024)),
        _ => format!("{} bytes", record::units::count(bytes)),
    }
}

/// One cause, or several that are possible.
fn hedged<'a>(mut causes: impl Iterator<Item = &'a str>) -> String {
    let first = causes.next().unwrap_or_default();
    let others: String = causes.map(|cause| format!(", or {cause}")).collect();
    match others.is_empty() {
        true => first.to_owned(),
        false => format!("most likely {first}{others}"),
    }
}

fn sentence(found: &Finding) -> String {
    let aligned = match found.aligned_bytes {
        512 => "512-byte but not 4-KiB aligned".to_owned(),
        4096 if found.erase_block_bytes.is_some() => "4-KiB but not erase-block aligned".to_owned(),
        4096 => "4-KiB aligned".to_owned(),
        1 => "not aligned".to_owned(),
        _ => "erase-block aligned".to_owned(),
    };
    let error = match &found.kernel_error {
        Some(error) => format!(", and the kernel reported: {error}"),
        None if found.cause == Cause::BadPattern => " without an error".to_owned(),
        None => ", and the kernel reported no error".to_owned(),
    };
    let place = if found.is_file { "file" } else { "region" };
    let mut text = format!(
        "{} is damaged: it starts {} bytes into the {place}, {aligned}, {} long, {}: {}{error}",
        found.path,
        record::units::count(found.offset_bytes),
        length(found.length_bytes),
        found.pattern.words(),
        hedged(found.causes().map(Cause::words)),
    );
    if let Some(landed) = &found.landed {
        text += &format!("; the data were found in {landed}");
    }
    text += match found.second_read {
        Again::Right => "; a second read was right",
        Again::Same => "; a second read gave the same",
        Again::Different => "; a second read gave other wrong data",
        Again::Error => "; a second read failed",
        Again::NotTried => "",
    };
    text += match found.rewritten {
        Again::Right => "; writing it anew mended it",
        Again::Same | Again::Different => "; writing it anew did not mend it",
        Again::Error => "; writing it anew failed",
        Again::NotTried => "",
    };
    if let (Some(device), Some(sector)) = (&found.device, found.device_sector) {
        text += &format!("; sector {sector} of {device}");
    }
    if let Some(near) = &found.nearest_discard {
        let place = match near.distance_bytes {
            0 => "covers or touches it".to_owned(),
            bytes => format!("is {} away", record::units::bytes(bytes)),
        };
        text += &format!(
            "; the nearest discard ({}) {place} and came {} before",
            near.how.words(),
            record::units::seconds(near.seconds_before)
        );
    }
    text += ".";
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::discards::How;

    /// The case of 2009: a drive that returned every other byte as 0xff.
    fn the_drive_of_2009() -> Finding {
        Finding {
            path: "/data/file".into(),
            is_file: true,
            landed: None,
            pointed: true,
            file: 1,
            offset_bytes: 64_519_680,
            length_bytes: 16 << 10,
            device: Some("/dev/sdb".into()),
            device_sector: Some(1_234_567),
            aligned_bytes: alignment(64_519_680, None),
            erase_block_bytes: None,
            pattern: Pattern::EveryOtherByteFf,
            cause: Cause::BadPattern,
            other_causes: Vec::new(),
            expected_generation: Some(3),
            found_s: 12.0,
            written_s: Some(2.0),
            was_right: false,
            second_read: Again::Same,
            rewritten: Again::NotTried,
            kernel_error: None,
            nearest_discard: Some(Near {
                how: How::Unlink,
                distance_bytes: 8192,
                seconds_before: 4.0,
            }),
            latest_discard: None,
            trim_reach_bytes: None,
            summary: String::new(),
        }
    }

    #[test]
    fn the_sentence_is_that_of_2009() {
        let found = the_drive_of_2009().summed_up();
        for words in [
            "starts 64,519,680 bytes into the file, 512-byte but not 4-KiB aligned, 16 KiB long, \
             every other byte 0xff: the drive returned bad data without an error",
            "a second read gave the same",
            "sector 1234567 of /dev/sdb",
            "the nearest discard (a removed file) is 8.0 KiB away and came 4.0 s before",
        ] {
            assert!(found.summary.contains(words), "{}", found.summary);
        }
        let reported = Finding {
            kernel_error: Some("Input/output error".into()),
            ..found
        };
        let summary = reported.summed_up().summary;
        assert!(!summary.contains("without an error"), "{summary}");
        assert!(summary.contains("the kernel reported: Input/output error"));
    }

    #[test]
    fn where_the_evidence_does_not_decide_the_sentence_hedges() {
        let found = Finding {
            pattern: Pattern::Zeros,
            cause: Cause::LostWrite,
            other_causes: vec![Cause::LateTrim],
            ..the_drive_of_2009()
        };
        let summary = found.summed_up().summary;
        for words in [
            "all zeros: most likely a write that the drive \
             acknowledged did not reach its place, or a discard took effect after",
            "anew, and the kernel reported no error",
        ] {
            assert!(summary.contains(words), "{summary}");
        }
    }

    #[test]
    fn the_largest_unit_that_fits_is_the_alignment() {
        assert_eq!(alignment(512, None), 512);
        assert_eq!(alignment(8192, Some(1 << 20)), 4096);
        assert_eq!(alignment(1 << 20, Some(1 << 20)), 1 << 20);
        assert_eq!(alignment(3, None), 1);
    }
}
