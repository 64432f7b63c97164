//! Which fault of the drive a damage looks like. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::verify::discards::Around;
use crate::verify::finding::Finding;
use crate::verify::pattern::Pattern;

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

impl Evidence {
    /// Whether the place was read wrong once only, or stays wrong when it is written anew.
    fn is_bad_place(&self) -> bool {
        self.second_read == Again::Right || matches!(self.rewritten, Again::Same | Again::Different)
    }

    /// The fewest bytes by which a discard must have taken too much to explain the damage; `None`
    /// if none can.
    pub fn trim_reach_bytes(&self) -> Option<u64> {
        let may_be_trim = self.pattern == Pattern::Zeros && !self.is_bad_place();
        self.around.reach_bytes.filter(|_| may_be_trim)
    }

    /// Whether the evidence points to a cause. Otherwise the cause is only left for want of a better
    /// one.
    pub fn points_to(&self, cause: Cause) -> bool {
        match (self.pattern, cause) {
            (Pattern::Zeros, Cause::Zeroed) => self.is_bad_place(),
            (Pattern::Zeros, Cause::LostWrite) => false,
            (Pattern::Zeros, Cause::LateTrim) => self.around.before_write,
            (Pattern::Zeros, Cause::WideTrim) => self.around.touches || self.around.close,
            _ => true,
        }
    }
}

/// The fault that explains the damage best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The drive returned bad data, with every other byte 0xff.
    BadPattern,
    /// Bits flipped.
    BitFlips,
    /// The drive returned zeros, and no discard and no write explains them.
    Zeroed,
    /// A write did not reach its place.
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
    /// The explanations that the evidence leaves, the most probable one first.
    pub fn of(evidence: &Evidence) -> Vec<Cause> {
        let once = evidence.second_read == Again::Right;
        vec![match evidence.pattern {
            Pattern::Zeros => return Cause::of_zeros(evidence, once),
            Pattern::EveryOtherByteFf => Cause::BadPattern,
            Pattern::BitFlips { .. } => Cause::BitFlips,
            Pattern::Unreadable => Cause::ReportedError,
            Pattern::Stale { .. } if once => Cause::StaleRead,
            Pattern::Stale { .. } => Cause::LostWrite,
            Pattern::OtherPlace { .. } | Pattern::Shifted { .. } if once => Cause::MisdirectedRead,
            Pattern::OtherPlace { .. } => Cause::MisdirectedWrite,
            Pattern::Shifted { .. } | Pattern::Unknown => Cause::Unknown,
        }]
    }

    /// Zeros come from trims and lost writes as well as from bad reads. A place that stays zero
    /// when it is written anew is bad itself, whatever discards were near. Data that were read
    /// rightly once were no lost write.
    fn of_zeros(evidence: &Evidence, once: bool) -> Vec<Cause> {
        let around = &evidence.around;
        if once {
            return vec![Cause::Zeroed];
        }
        if matches!(evidence.rewritten, Again::Same | Again::Different) {
            // Both writes may have been lost.
            let others = (!evidence.was_right).then_some(Cause::LostWrite);
            return std::iter::once(Cause::Zeroed).chain(others).collect();
        }
        let late = around.before_write || around.unknown;
        let wide = around.touches || around.close || around.unknown;
        let mut causes = Vec::new();
        // Where all discards are known and none came before the write, a lost write would have left
        // the earlier data.
        if !evidence.was_right && (late || !wide) {
            causes.push(Cause::LostWrite);
        }
        let mut trims = [(late, Cause::LateTrim), (wide, Cause::WideTrim)];
        if around.touches || around.close && !around.before_write {
            trims.reverse();
        }
        causes.extend(
            trims
                .iter()
                .filter(|(may, _)| *may)
                .map(|(_, cause)| *cause),
        );
        if causes.is_empty() {
            causes.push(Cause::Zeroed);
        }
        causes
    }

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Cause::BadPattern => "bad-pattern",
            Cause::BitFlips => "bit-flips",
            Cause::Zeroed => "zeroed",
            Cause::LostWrite => "lost-write",
            Cause::StaleRead => "stale-read",
            Cause::MisdirectedWrite => "misdirected-write",
            Cause::MisdirectedRead => "misdirected-read",
            Cause::LateTrim => "late-trim",
            Cause::WideTrim => "wide-trim",
            Cause::ReportedError => "reported-error",
            Cause::Unknown => "unknown",
        }
    }

    /// In words, to be read after "length, pattern:".
    pub fn words(self) -> &'static str {
        match self {
            Cause::BadPattern => "the drive returned bad data",
            Cause::BitFlips => "the drive returned damaged data",
            Cause::Zeroed => "the drive returned zeros in place of the data",
            Cause::LostWrite => "a write that the drive acknowledged did not reach its place",
            Cause::StaleRead => "one read returned an earlier state",
            Cause::MisdirectedWrite => "a write landed in the wrong place",
            Cause::MisdirectedRead => "one read returned another place's data",
            Cause::LateTrim => "a discard took effect after the space had been written anew",
            Cause::WideTrim => "a discard took more than it was asked to",
            Cause::ReportedError => "the read failed",
            Cause::Unknown => "the data were overwritten or damaged",
        }
    }

    /// The drive's fault, in words that make a sentence. `reach_bytes`: how far too far its discards
    /// reached, as far as that is known.
    pub fn fault(self, reach_bytes: Option<u64>) -> String {
        let fault = match self {
            Cause::BadPattern | Cause::BitFlips => "the drive returns damaged data",
            Cause::Zeroed => "the drive returns zeros in place of data",
            Cause::LostWrite => "the drive loses writes that it acknowledged",
            Cause::StaleRead => "the drive returns earlier data",
            Cause::MisdirectedWrite => "the drive writes data to the wrong place",
            Cause::MisdirectedRead => "the drive returns another place's data",
            Cause::LateTrim => "the drive trims late, after the space was written anew",
            Cause::WideTrim => match reach_bytes {
                Some(bytes) => {
                    return format!(
                        "the drive trims up to {} too far",
                        record::units::bytes(bytes)
                    );
                }
                None => "the drive trims too far",
            },
            Cause::ReportedError => "data can't be read",
            Cause::Unknown => "data are overwritten or damaged",
        };
        fault.to_owned()
    }

    /// Whether it is a fault of discards alone.
    pub fn is_trim(self) -> bool {
        matches!(self, Cause::LateTrim | Cause::WideTrim)
    }
}

// The causes of all findings together, the most frequent one first. Pure.

/// A cause with the findings that it explains best.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CauseCount {
    /// The cause.
    pub cause: Cause,
    /// Findings that it explains best.
    pub findings: u64,
    /// Their length, in bytes.
    pub bytes: u64,
    /// Findings of these that other causes explain, too.
    pub unsure: u64,
    /// These other causes.
    pub other_causes: Vec<Cause>,
    /// Of discards that took too much: the most bytes by which one did. A lower bound, because
    /// only places with data show it. `None` for other causes, and where it is not known.
    pub reach_bytes: Option<u64>,
}

impl CauseCount {
    /// Counts the causes of findings, the most frequent one first.
    pub fn of(findings: &[Finding]) -> Vec<CauseCount> {
        let mut counts: BTreeMap<Cause, CauseCount> = BTreeMap::new();
        for found in findings {
            let count = counts.entry(found.cause).or_insert_with(|| CauseCount {
                cause: found.cause,
                findings: 0,
                bytes: 0,
                unsure: 0,
                other_causes: Vec::new(),
                reach_bytes: None,
            });
            count.findings += 1;
            count.bytes += found.length_bytes;
            count.unsure += u64::from(!found.other_causes.is_empty());
            count.other_causes.extend(&found.other_causes);
            let reach = found.trim_reach_bytes.filter(|_| found.pointed);
            if found.cause == Cause::WideTrim {
                count.reach_bytes = count.reach_bytes.max(reach);
            }
        }
        let mut counts: Vec<CauseCount> = counts.into_values().collect();
        for count in &mut counts {
            count.other_causes.sort();
            count.other_causes.dedup();
        }
        counts.sort_by_key(|count| std::cmp::Reverse(count.findings));
        counts
    }

    /// The drive's fault, and how many places show it.
    pub(crate) fn headline(&self) -> String {
        let mut fault = self.cause.fault(self.reach_bytes);
        if self.unsure == self.findings {
            for other in &self.other_causes {
                fault += &format!(", or {}", other.fault(None));
            }
        } else if self.unsure > 0 {
            fault = format!("most likely {fault}");
        }
        format!(
            "{fault} ({}, {})",
            record::units::counted(self.findings, "place"),
            record::units::bytes(self.bytes),
        )
    }

    /// The cause's name, with the other causes that its findings may have.
    pub(crate) fn counted(&self) -> String {
        let mut text = format!(
            "{} {}",
            record::units::count(self.findings),
            self.cause.name()
        );
        if self.unsure > 0 {
            let others: Vec<&str> = self.other_causes.iter().map(|cause| cause.name()).collect();
            text += &match self.unsure == self.findings {
                true => format!(", or else {}", others.join(" or ")),
                false => format!(
                    " ({} of them may be {} instead)",
                    record::units::count(self.unsure),
                    others.join(" or ")
                ),
            };
        }
        text
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
        use Cause::{LateTrim, LostWrite, WideTrim, Zeroed};
        let none = Around::default();
        let before_write = Around {
            before_write: true,
            ..none
        };
        let touches = Around {
            touches: true,
            ..none
        };
        let close = Around {
            close: true,
            ..none
        };
        let both = Around {
            before_write: true,
            ..touches
        };
        let unknown = Around {
            unknown: true,
            ..none
        };
        let cases: [(bool, Around, &[Cause]); 12] = [
            (true, none, &[Zeroed]),
            (true, before_write, &[LateTrim]),
            (true, touches, &[WideTrim]),
            (true, close, &[WideTrim]),
            (true, both, &[WideTrim, LateTrim]),
            (true, unknown, &[LateTrim, WideTrim]),
            (false, none, &[LostWrite]),
            (false, before_write, &[LostWrite, LateTrim]),
            (false, touches, &[WideTrim]),
            (false, close, &[WideTrim]),
            (false, both, &[LostWrite, WideTrim, LateTrim]),
            (false, unknown, &[LostWrite, LateTrim, WideTrim]),
        ];
        for (was_right, around, causes) in cases {
            let evidence = Evidence {
                was_right,
                around,
                ..zeros()
            };
            assert_eq!(Cause::of(&evidence), causes, "{evidence:?}");
            let once = Evidence {
                second_read: Again::Right,
                ..evidence
            };
            assert_eq!(Cause::of(&once), [Zeroed], "{once:?}");
            let bad = Evidence {
                rewritten: Again::Same,
                ..evidence
            };
            let causes: &[Cause] = match was_right {
                true => &[Zeroed],
                false => &[Zeroed, LostWrite],
            };
            assert_eq!(Cause::of(&bad), causes, "{bad:?}");
        }
    }

    #[test]
    fn a_name_is_that_of_the_json() {
        for cause in [Cause::BadPattern, Cause::LostWrite, Cause::ReportedError] {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
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
            assert_eq!(Cause::of(&evidence), [cause]);
        }
    }
}
