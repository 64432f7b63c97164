//! The causes of all findings together, the most frequent one first. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::verify::cause::Cause;
use crate::verify::finding::Finding;

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
