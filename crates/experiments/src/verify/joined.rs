//! All findings of a test together: what belongs together becomes one, and each says more about the
//! others. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::verify::cause::Cause;
use crate::verify::discards::{CLOSE, Near};
use crate::verify::finding::Finding;
use crate::verify::pattern::Pattern;

/// Joins neighbours of one cause, links both ends of misdirected writes, and puts causes first that
/// explain other findings.
pub(crate) fn joined(mut findings: Vec<Finding>) -> Vec<Finding> {
    link(&mut findings);
    widen(&mut findings);
    weigh(&mut findings);
    findings.sort_by_key(|found| (found.file, found.offset_bytes));
    findings.dedup_by(|later, earlier| merge(earlier, later));
    findings.sort_by(|one, other| one.found_s.total_cmp(&other.found_s));
    findings.into_iter().map(Finding::summed_up).collect()
}

/// A damaged place is written anew at most so often. These writes may go astray, too, and cover what landed
/// first.
pub(crate) const REWRITTEN: u32 = 3;

/// A write that is missing here may be the one that landed elsewhere.
fn link(findings: &mut [Finding]) {
    let landed: Vec<_> = findings
        .iter()
        .filter(|found| found.cause == Cause::MisdirectedWrite)
        .filter_map(|found| match found.pattern {
            Pattern::OtherPlace {
                file,
                offset_bytes,
                generation,
            } => {
                let at = record::units::count(found.offset_bytes);
                let text = format!("{} at {at}", found.path);
                let range = offset_bytes..offset_bytes + found.length_bytes;
                Some((file, generation, range, text))
            }
            _ => None,
        })
        .collect();
    for found in findings {
        let own = found.offset_bytes..found.offset_bytes + found.length_bytes;
        let place = landed.iter().find(|(file, generation, range, _)| {
            *file == found.file
                && found
                    .expected_generation
                    .is_some_and(|own| (own..=own + REWRITTEN).contains(generation))
                && range.start < own.end
                && own.start < range.end
        });
        if let Some((_, _, _, text)) = place
            && found.causes().any(|cause| cause == Cause::LostWrite)
        {
            found.landed = Some(text.clone());
            found.cause = Cause::MisdirectedWrite;
            found.other_causes.clear();
        }
    }
}

/// A late trim explains all of its own damage, and most of any damage in space that is used again
/// and again. If for each place that it leaves there are fewer than this many others, it did none.
const SELDOM_LATE: usize = 4;

/// Where discards took too much, places around them may have that cause, too, however far it
/// reached. Each is at most twice as far from a discard as another one with that cause.
fn widen(findings: &mut [Finding]) {
    let is_late = |found: &&Finding| found.causes().any(|cause| cause == Cause::LateTrim);
    let is_wide = |found: &Finding| found.pointed && found.cause == Cause::WideTrim;
    let late = findings.iter().filter(is_late).count();
    let reached = findings.iter().filter(|one| one.trim_reach_bytes.is_some());
    let only_reached = reached.filter(|one| !is_late(one)).count();
    if !findings.iter().any(is_wide) || only_reached * SELDOM_LATE <= late {
        return;
    }
    let has_another = |found: &Finding| found.pointed && found.cause != Cause::WideTrim;
    let unexplained = findings.iter().filter(|found| !has_another(found));
    let mut reaches: Vec<u64> = unexplained
        .filter_map(|found| found.trim_reach_bytes)
        .collect();
    reaches.sort_unstable();
    let mut width = CLOSE;
    for reach in reaches {
        if reach > width.saturating_mul(2) {
            break;
        }
        width = width.max(reach);
    }
    for found in findings {
        if found.trim_reach_bytes.is_some_and(|reach| reach <= width) {
            found.may_be(Cause::WideTrim);
        }
    }
}

/// Of several possible causes, the one that explains most findings is the most probable, if the
/// evidence of at least one of them points to it.
fn weigh(findings: &mut [Finding]) {
    let mut votes: BTreeMap<Cause, (u64, u64)> = BTreeMap::new();
    for found in findings.iter().filter(|found| found.pointed) {
        votes.entry(found.cause).or_default().1 += 1;
    }
    for cause in findings.iter().flat_map(Finding::causes) {
        votes
            .entry(cause)
            .and_modify(|(explained, _)| *explained += 1);
    }
    for found in findings {
        let mut causes: Vec<Cause> = found.causes().collect();
        causes.sort_by_key(|cause| Reverse(votes.get(cause)));
        let first = causes.remove(0);
        found.pointed &= first == found.cause;
        found.cause = first;
        found.other_causes = causes;
    }
}

/// Adds the later one to the earlier one, if it continues that.
fn merge(earlier: &mut Finding, later: &Finding) -> bool {
    let sector = |found: &Finding, bytes: u64| Some(found.device_sector? + bytes / 512);
    let length = earlier.length_bytes;
    let same = earlier.file == later.file
        && earlier.offset_bytes + length == later.offset_bytes
        && sector(earlier, length) == later.device_sector
        && earlier.pattern.continues(&later.pattern, length)
        && earlier.causes().eq(later.causes())
        && earlier.landed.is_some() == later.landed.is_some()
        && (earlier.second_read, earlier.rewritten) == (later.second_read, later.rewritten)
        && earlier.kernel_error == later.kernel_error;
    if same {
        earlier.pattern.add(&later.pattern);
        earlier.length_bytes += later.length_bytes;
        earlier.found_s = earlier.found_s.min(later.found_s);
        earlier.was_right |= later.was_right;
        let reaches = [earlier.trim_reach_bytes, later.trim_reach_bytes];
        earlier.trim_reach_bytes = reaches.into_iter().flatten().max();
        let nearest = [earlier.nearest_discard, later.nearest_discard];
        let distance = |near: &Near| near.distance_bytes;
        earlier.nearest_discard = nearest.into_iter().flatten().min_by_key(distance);
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::report::tests::finding;

    fn zeros(offset_bytes: u64, cause: Cause, other_causes: &[Cause]) -> Finding {
        Finding {
            offset_bytes,
            length_bytes: 4096,
            device_sector: Some(offset_bytes / 512),
            pattern: Pattern::Zeros,
            cause,
            other_causes: other_causes.to_vec(),
            expected_generation: Some(7),
            ..finding()
        }
    }

    #[test]
    fn neighbours_of_one_cause_become_one() {
        let all = [8192, 4096, 16384].map(|at| zeros(at, Cause::WideTrim, &[]));
        let found = joined(all.to_vec());
        let found: Vec<_> = found
            .iter()
            .map(|f| (f.offset_bytes, f.length_bytes))
            .collect();
        assert_eq!(found, [(4096, 8192), (16384, 4096)]);
        let other = zeros(8192, Cause::LateTrim, &[]);
        assert_eq!(
            joined(vec![zeros(4096, Cause::WideTrim, &[]), other]).len(),
            2
        );
    }

    #[test]
    fn both_ends_of_a_misdirected_write_are_linked() {
        let missing = zeros(4096, Cause::LostWrite, &[Cause::LateTrim]);
        let landed = Finding {
            file: 2,
            path: "/data/slot-000002".into(),
            pattern: Pattern::OtherPlace {
                file: 1,
                offset_bytes: 4096,
                generation: 7,
            },
            ..zeros(65536, Cause::MisdirectedWrite, &[])
        };
        let found = joined(vec![missing.clone(), landed.clone()]);
        assert_eq!(
            (found[0].cause, found[0].other_causes.len()),
            (Cause::MisdirectedWrite, 0)
        );
        let words = "the data were found in /data/slot-000002 at 65,536";
        assert!(found[0].summary.contains(words), "{}", found[0].summary);
        let another = Finding {
            expected_generation: Some(8),
            ..missing
        };
        let astray = Finding {
            expected_generation: Some(4),
            ..another.clone()
        };
        assert!(joined(vec![astray, landed.clone()])[0].landed.is_some());
        assert_eq!(joined(vec![another, landed])[0].cause, Cause::LostWrite);
    }

    #[test]
    fn what_explains_the_other_findings_comes_first() {
        let late = |at| zeros(at, Cause::LateTrim, &[Cause::WideTrim]);
        let unsure = zeros(8192, Cause::LostWrite, &[Cause::LateTrim]);
        let found = joined(vec![late(65536), late(131_072), unsure.clone()]);
        let first = found
            .iter()
            .find(|found| found.offset_bytes == 8192)
            .unwrap();
        assert_eq!(first.cause, Cause::LateTrim);
        assert_eq!(first.other_causes, [Cause::LostWrite]);
        assert_eq!(joined(vec![unsure])[0].cause, Cause::LostWrite);
    }

    /// Zeros that a discard explains that took `reach` bytes too much.
    fn reached(at: u64, reach: u64, cause: Cause, pointed: bool) -> Finding {
        Finding {
            trim_reach_bytes: Some(reach),
            pointed,
            ..zeros(at, cause, &[])
        }
    }

    #[test]
    fn discards_that_took_too_much_explain_zeros_at_any_distance() {
        let near = reached(4096, 4096, Cause::WideTrim, true);
        // Each gap is no wider than what others show, and the last one is.
        let far = [200_u64 << 10, 390 << 10, 700 << 10, 1300 << 10, 9 << 20];
        let causes = [Cause::Zeroed, Cause::LostWrite];
        let far = far.iter().zip(causes.iter().cycle());
        let mut all: Vec<Finding> = far
            .map(|(reach, cause)| reached(*reach * 16, *reach, *cause, false))
            .collect();
        all.push(reached(1 << 30, 8192, Cause::LateTrim, true));
        assert!(
            joined(all.clone())
                .iter()
                .all(|found| found.cause != Cause::WideTrim),
            "nothing points to discards that took too much"
        );
        all.extend([near.clone(), reached(1 << 31, 4096, Cause::WideTrim, true)]);
        let found = joined(all);
        let zeroed: Vec<u64> = found
            .iter()
            .filter(|found| found.cause != Cause::WideTrim)
            .filter_map(|found| found.trim_reach_bytes)
            .collect();
        assert_eq!(zeroed, [9 << 20], "{found:?}");
        let counts = crate::verify::cause::CauseCount::of(&found);
        let headline = counts[0].headline();
        let words = "most likely the drive trims up to 1.3 MiB too far (7 places, 28.0 KiB)";
        assert_eq!(headline, words);
    }

    #[test]
    fn late_trims_beside_other_discards_stay_late() {
        let mut all = vec![reached(4096, 4096, Cause::WideTrim, true)];
        for at in 1..6 {
            all.push(reached(at << 20, 8192, Cause::LateTrim, true));
        }
        let found = joined(all);
        let late = found.iter().filter(|found| found.cause == Cause::LateTrim);
        assert_eq!(
            late.filter(|found| found.other_causes.is_empty()).count(),
            5
        );
    }

    #[test]
    fn only_places_that_point_to_wide_trims_show_how_far_they_reached() {
        let mut near = reached(4096, 65536, Cause::WideTrim, true);
        near.other_causes.push(Cause::LateTrim);
        let mut far = reached(1 << 20, 21 << 20, Cause::LateTrim, true);
        far.other_causes.push(Cause::WideTrim);
        let all = vec![
            near.clone(),
            far,
            reached(1 << 21, 65536, Cause::WideTrim, true),
        ];
        let found = joined(all);
        assert!(found.iter().all(|found| found.cause == Cause::WideTrim));
        let count = &crate::verify::cause::CauseCount::of(&found)[0];
        assert_eq!(count.reach_bytes, Some(65536), "{found:?}");
    }
}
