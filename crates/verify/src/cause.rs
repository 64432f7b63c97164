//! Which fault of the drive a damage looks like. Pure.

use serde::Serialize;

use crate::discards::Around;
use crate::pattern::Pattern;

/// The result of reading a damaged place once more, or of reading it after it was written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Again {
    /// It was right.
    Right,
    /// It was wrong in the same way.
    Same,
    /// It was wrong in another way.
    Different,
    /// The kernel reported an error.
    Error,
    /// It was not tried.
    NotTried,
}

/// All that is known about a damaged place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// The damaged place's content.
    pub pattern: Pattern,
    /// A second read, right after the first one.
    pub second_read: Again,
    /// A read after the place was written anew.
    pub rewritten: Again,
    /// Whether it was read rightly after it was last written.
    pub was_right: bool,
    /// The discards around it.
    pub around: Around,
}

/// The fault that explains the damage best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The drive returned bad data, with every other byte 0xff.
    BadPattern,
    /// Bits flipped.
    BitFlips,
    /// The drive returns zeros where it holds data.
    Zeroed,
    /// A write never reached the medium.
    LostWrite,
    /// A read returned an earlier state of the medium.
    StaleRead,
    /// Data were written to another place.
    MisdirectedWrite,
    /// A read returned another place's data.
    MisdirectedRead,
    /// A discard was carried out after the space was written anew.
    LateTrim,
    /// A discard took more than it was asked to.
    WideTrim,
    /// The kernel reported an error instead of data.
    ReportedError,
    /// None of these.
    Unknown,
}

impl Cause {
    /// The explanation that the evidence supports best.
    pub fn of(evidence: &Evidence) -> Cause {
        let once = evidence.second_read == Again::Right;
        match evidence.pattern {
            Pattern::EveryOtherByteFf => Cause::BadPattern,
            Pattern::BitFlips { .. } => Cause::BitFlips,
            Pattern::Unreadable => Cause::ReportedError,
            Pattern::Stale { .. } if once => Cause::StaleRead,
            Pattern::Stale { .. } => Cause::LostWrite,
            Pattern::OtherPlace { .. } | Pattern::Shifted { .. } if once => Cause::MisdirectedRead,
            Pattern::OtherPlace { .. } => Cause::MisdirectedWrite,
            Pattern::Zeros => Cause::of_zeros(evidence, once),
            Pattern::Shifted { .. } | Pattern::Unknown => Cause::Unknown,
        }
    }

    /// Zeros come from trims and lost writes as well as from bad reads. A place that stays zero
    /// when it is written anew is bad itself, whatever discards were near.
    fn of_zeros(evidence: &Evidence, once: bool) -> Cause {
        let bad_place = matches!(evidence.rewritten, Again::Same | Again::Different);
        if once || bad_place {
            Cause::Zeroed
        } else if evidence.around.touches && (evidence.was_right || !evidence.around.before_write) {
            Cause::WideTrim
        } else if !evidence.was_right {
            Cause::LostWrite
        } else if evidence.around.before_write {
            Cause::LateTrim
        } else if evidence.around.close {
            Cause::WideTrim
        } else {
            Cause::Zeroed
        }
    }

    /// In words, to be read after "length, pattern:".
    pub fn words(self) -> &'static str {
        match self {
            Cause::BadPattern => "the drive returned bad data",
            Cause::BitFlips => "the drive returned damaged data",
            Cause::Zeroed => "the drive returned zeros for data that it holds",
            Cause::LostWrite => "a write that the drive acknowledged never reached the medium",
            Cause::StaleRead => "one read returned an earlier state",
            Cause::MisdirectedWrite => "a write landed in the wrong place",
            Cause::MisdirectedRead => "one read returned another place's data",
            Cause::LateTrim => "a discard took effect after the space had been written anew",
            Cause::WideTrim => "a discard took more than it was asked to",
            Cause::ReportedError => "the read failed",
            Cause::Unknown => "the data were overwritten or damaged",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeros() -> Evidence {
        Evidence {
            pattern: Pattern::Zeros,
            second_read: Again::Same,
            rewritten: Again::Right,
            was_right: true,
            around: Around::default(),
        }
    }

    #[test]
    fn zeros_are_explained_by_what_happened_around_them() {
        let around = |before_write, touches| Around {
            before_write,
            touches,
            ..Around::default()
        };
        let close = Around {
            close: true,
            ..Around::default()
        };
        let cases = [
            (zeros(), Cause::Zeroed),
            (
                Evidence {
                    was_right: false,
                    ..zeros()
                },
                Cause::LostWrite,
            ),
            (
                Evidence {
                    around: around(true, false),
                    ..zeros()
                },
                Cause::LateTrim,
            ),
            (
                Evidence {
                    around: around(false, true),
                    ..zeros()
                },
                Cause::WideTrim,
            ),
            (
                Evidence {
                    around: around(true, true),
                    ..zeros()
                },
                Cause::WideTrim,
            ),
            (
                Evidence {
                    around: close,
                    ..zeros()
                },
                Cause::WideTrim,
            ),
            (
                Evidence {
                    around: close,
                    was_right: false,
                    ..zeros()
                },
                Cause::LostWrite,
            ),
            (
                Evidence {
                    around: around(true, true),
                    rewritten: Again::Same,
                    ..zeros()
                },
                Cause::Zeroed,
            ),
            (
                Evidence {
                    around: around(true, false),
                    second_read: Again::Right,
                    ..zeros()
                },
                Cause::Zeroed,
            ),
            (
                Evidence {
                    around: around(true, false),
                    was_right: false,
                    ..zeros()
                },
                Cause::LostWrite,
            ),
        ];
        for (evidence, cause) in cases {
            assert_eq!(Cause::of(&evidence), cause, "{evidence:?}");
        }
    }

    #[test]
    fn the_second_read_tells_a_bad_read_from_a_bad_write() {
        let other = Pattern::OtherPlace {
            file: 1,
            offset_bytes: 0,
            generation: 1,
        };
        let stale = Pattern::Stale { generation: 1 };
        for (pattern, second_read, cause) in [
            (other, Again::Right, Cause::MisdirectedRead),
            (other, Again::Same, Cause::MisdirectedWrite),
            (stale, Again::Right, Cause::StaleRead),
            (stale, Again::Same, Cause::LostWrite),
            (Pattern::Unreadable, Again::Error, Cause::ReportedError),
            (Pattern::EveryOtherByteFf, Again::Right, Cause::BadPattern),
        ] {
            let evidence = Evidence {
                pattern,
                second_read,
                ..zeros()
            };
            assert_eq!(Cause::of(&evidence), cause);
        }
    }
}
