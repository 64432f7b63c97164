//! The damage to a sector. Pure.

use serde::Serialize;

use crate::verify::block::{self, Identity, SECTOR};

/// Bits that may differ for a sector to count as the expected one with flipped bits.
const MOST_FLIPS: u32 = 64;

/// The content that a sector ought to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The sector with this identity.
    Data(Identity),
    /// Zeros: a hole of this file, of the sector at this place.
    Zeros(Identity),
    /// Anything but another place's data: it was trimmed, or its content is not known.
    Anything(Identity),
}

impl Expected {
    /// The volume, file and offset that belong there.
    pub fn place(&self) -> &Identity {
        match self {
            Expected::Data(place) | Expected::Zeros(place) | Expected::Anything(place) => place,
        }
    }
}

/// The content that a damaged sector has instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Pattern {
    /// Every other byte is 0xff, the rest is right.
    EveryOtherByteFf,
    /// All bytes are zero.
    Zeros,
    /// An earlier write to this place.
    Stale {
        /// Which writing of the file it is; 0 if an earlier test wrote it.
        generation: u32,
    },
    /// Data of this test that belong to another place.
    OtherPlace {
        /// The number of the file or region that it belongs to.
        file: u32,
        /// The offset there, in bytes.
        offset_bytes: u64,
        /// Which writing of that file.
        generation: u32,
    },
    /// Data of this test that begin at no multiple of a sector.
    Shifted {
        /// Bytes by which they begin too late.
        by_bytes: u32,
    },
    /// The right data with some bits wrong.
    BitFlips {
        /// How many.
        bits: u32,
    },
    /// Data that are not of this test, or are damaged beyond recognition.
    Unknown,
    /// It could not be read: the kernel reported an error.
    Unreadable,
}

/// Returns the damage to a sector; `None` if it is as expected.
pub fn of(sector: &[u8], expected: &Expected) -> Option<Pattern> {
    let place = expected.place();
    let zero = block::is_zero(sector);
    match expected {
        Expected::Data(identity) if block::is(sector, identity) => return None,
        Expected::Zeros(_) | Expected::Anything(_) if zero => return None,
        _ if zero => return Some(Pattern::Zeros),
        _ => {}
    }
    let identified = block::identify(sector);
    if let (Expected::Data(_), Some(found)) = (expected, identified)
        && found.volume != place.volume
    {
        return Some(Pattern::Stale { generation: 0 });
    }
    if let Some(found) = identified.filter(|found| found.volume == place.volume) {
        if (found.file, found.offset) != (place.file, place.offset) {
            return Some(Pattern::OtherPlace {
                file: found.file,
                offset_bytes: found.offset,
                generation: found.generation,
            });
        }
        return match expected {
            Expected::Anything(_) => None,
            _ => Some(Pattern::Stale {
                generation: found.generation,
            }),
        };
    }
    match expected {
        Expected::Anything(_) => None,
        Expected::Zeros(_) => Some(Pattern::Unknown),
        Expected::Data(identity) => Some(damage(sector, identity)),
    }
}

/// The damage to a sector that isn't any sector of ours as it was written.
fn damage(sector: &[u8], identity: &Identity) -> Pattern {
    let mut wanted = [0; SECTOR];
    block::fill(&mut wanted, *identity);
    for first in [0, 1] {
        let mut bytes = sector.iter().zip(&wanted).enumerate();
        if bytes.all(|(at, (is, ought))| match at % 2 == first {
            true => *is == 0xff,
            false => is == ought,
        }) {
            return Pattern::EveryOtherByteFf;
        }
    }
    let bits: u32 = sector
        .iter()
        .zip(&wanted)
        .map(|(is, ought)| (is ^ ought).count_ones())
        .sum();
    if bits <= MOST_FLIPS {
        return Pattern::BitFlips { bits };
    }
    match block::find(sector, identity.volume) {
        Some(at) if at > 0 => Pattern::Shifted {
            by_bytes: at as u32,
        },
        _ => Pattern::Unknown,
    }
}

impl Pattern {
    /// Whether two neighbouring sectors show the same, so that one finding covers both. The later
    /// one follows `bytes` behind the earlier one.
    pub fn continues(&self, later: &Pattern, bytes: u64) -> bool {
        match (self, later) {
            (Pattern::Stale { .. }, Pattern::Stale { .. })
            | (Pattern::BitFlips { .. }, Pattern::BitFlips { .. }) => true,
            (
                Pattern::OtherPlace {
                    file, offset_bytes, ..
                },
                Pattern::OtherPlace {
                    file: later,
                    offset_bytes: at,
                    ..
                },
            ) => file == later && offset_bytes + bytes == *at,
            _ => self == later,
        }
    }

    /// Adds a sector that continues this one.
    pub fn add(&mut self, later: &Pattern) {
        if let (Pattern::BitFlips { bits }, Pattern::BitFlips { bits: more }) = (self, later) {
            *bits += more;
        }
    }

    /// The pattern in words, to be read after the length.
    pub fn words(&self) -> String {
        match self {
            Pattern::EveryOtherByteFf => "every other byte 0xff".to_owned(),
            Pattern::Zeros => "all zeros".to_owned(),
            Pattern::Stale { generation: 0 } => "stale (what an earlier test had put there)".into(),
            Pattern::Stale { generation } => {
                format!("stale (what write {generation} had put there)")
            }
            Pattern::OtherPlace {
                file,
                offset_bytes,
                generation,
            } => format!(
                "the data of another place (file {file} at {}, write {generation})",
                record::units::count(*offset_bytes)
            ),
            Pattern::Shifted { by_bytes } => format!("shifted by {by_bytes} bytes"),
            Pattern::BitFlips { bits: 1 } => "one bit flipped".to_owned(),
            Pattern::BitFlips { bits } => format!("{bits} bits flipped"),
            Pattern::Unknown => "unknown data".to_owned(),
            Pattern::Unreadable => "unreadable".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Identity {
        Identity {
            volume: 5,
            file: 2,
            generation: 10,
            offset: 4096,
        }
    }

    fn sector(identity: Identity) -> [u8; SECTOR] {
        let mut sector = [0; SECTOR];
        block::fill(&mut sector, identity);
        sector
    }

    #[test]
    fn each_kind_of_damage_is_named() {
        let expected = Expected::Data(own());
        let good = sector(own());
        assert_eq!(of(&good, &expected), None);
        assert_eq!(of(&[0; SECTOR], &expected), Some(Pattern::Zeros));
        for first in [0, 1] {
            let mut holes = good;
            holes
                .iter_mut()
                .skip(first)
                .step_by(2)
                .for_each(|b| *b = 0xff);
            assert_eq!(of(&holes, &expected), Some(Pattern::EveryOtherByteFf));
        }
        let mut flipped = good;
        flipped[0] ^= 1;
        flipped[511] ^= 0x81;
        assert_eq!(of(&flipped, &expected), Some(Pattern::BitFlips { bits: 3 }));
        let stale = sector(Identity {
            generation: 4,
            ..own()
        });
        assert_eq!(
            of(&stale, &expected),
            Some(Pattern::Stale { generation: 4 })
        );
        let other = sector(own().after(1 << 20));
        let place = Pattern::OtherPlace {
            file: 2,
            offset_bytes: 4096 + (1 << 20),
            generation: 10,
        };
        assert_eq!(of(&other, &expected), Some(place));
        let mut shifted = [0x55; SECTOR];
        shifted[100..].copy_from_slice(&good[..412]);
        assert_eq!(
            of(&shifted, &expected),
            Some(Pattern::Shifted { by_bytes: 100 })
        );
        assert_eq!(of(&[0x55; SECTOR], &expected), Some(Pattern::Unknown));
    }

    #[test]
    fn holes_and_trimmed_space_have_rules_of_their_own() {
        let (hole, free) = (Expected::Zeros(own()), Expected::Anything(own()));
        assert_eq!(of(&[0; SECTOR], &hole), None);
        assert_eq!(of(&[0; SECTOR], &free), None);
        assert_eq!(of(&sector(own()), &free), None);
        assert_eq!(of(&[9; SECTOR], &free), None);
        assert_eq!(of(&[9; SECTOR], &hole), Some(Pattern::Unknown));
        assert!(matches!(
            of(&sector(own()), &hole),
            Some(Pattern::Stale { .. })
        ));
        let other = sector(own().after(512));
        assert!(matches!(
            of(&other, &free),
            Some(Pattern::OtherPlace { .. })
        ));
        // Another test's data mean something only where ours ought to be.
        let foreign = sector(Identity { volume: 6, ..own() });
        let earlier = Some(Pattern::Stale { generation: 0 });
        assert_eq!(of(&foreign, &Expected::Data(own())), earlier);
        assert_eq!(of(&foreign, &free), None);
        assert_eq!(of(&foreign, &hole), Some(Pattern::Unknown));
    }

    #[test]
    fn neighbours_that_show_the_same_become_one() {
        let other = |offset_bytes| Pattern::OtherPlace {
            file: 1,
            offset_bytes,
            generation: 3,
        };
        assert!(other(512).continues(&other(1024), 512));
        assert!(!other(512).continues(&other(512), 512));
        let mut flips = Pattern::BitFlips { bits: 2 };
        assert!(flips.continues(&Pattern::BitFlips { bits: 1 }, 512));
        flips.add(&Pattern::BitFlips { bits: 1 });
        assert_eq!(flips.words(), "3 bits flipped");
        assert!(!Pattern::Zeros.continues(&Pattern::Unknown, 512));
    }
}
