//! Fewer points, all extremes: which intervals of a long record are drawn.
//!
//! The intervals are cut into buckets. Of each bucket those intervals are kept, as they are,
//! in which some series has its minimum or maximum. So each point was measured at its
//! moment. All series of a chart keep the same intervals, so a cursor finds them beside each
//! other.

use std::ops::Range;

/// Most points a series may have.
pub(crate) const POINTS: usize = 5000;

/// One series: its value in an interval; what isn't finite isn't drawn.
pub(crate) type Series<'a> = &'a dyn Fn(usize) -> f64;

/// The intervals to draw, in order; at most `limit`, of `0..len`.
///
/// Half of the buckets are spent on `focus` (what happened while discards were
/// processed) where it is shorter than half of the record.
pub(crate) fn indices(
    len: usize,
    focus: Range<usize>,
    series: &[Series<'_>],
    limit: usize,
) -> Vec<usize> {
    if len <= limit {
        return (0..len).collect();
    }
    // The record's two ends come on top.
    let per_bucket = 2 * series.len().max(1);
    let buckets = (limit.saturating_sub(2) / per_bucket).max(1);
    let mut kept = vec![0];
    for bucket in cut(len, focus, buckets) {
        keep(&mut kept, bucket, series);
    }
    kept.push(len - 1);
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// Adds the intervals in which a series is at an extreme of the bucket.
fn keep(kept: &mut Vec<usize>, bucket: Range<usize>, series: &[Series<'_>]) {
    for value in series {
        let mut extremes: Option<((usize, f64), (usize, f64))> = None;
        for i in bucket.clone() {
            let v = value(i);
            if !v.is_finite() {
                continue;
            }
            let (least, most) = extremes.get_or_insert(((i, v), (i, v)));
            if v < least.1 {
                *least = (i, v);
            }
            if v > most.1 {
                *most = (i, v);
            }
        }
        match extremes {
            Some(((least, _), (most, _))) => kept.extend([least, most]),
            // So that no line is drawn across what wasn't recorded.
            None => kept.push(bucket.start),
        }
    }
}

/// `0..len` in at most so many pieces, none empty.
fn cut(len: usize, focus: Range<usize>, buckets: usize) -> Vec<Range<usize>> {
    let focus = focus.start.min(len)..focus.end.min(len);
    let around = len - focus.len();
    if focus.is_empty() || 2 * focus.len() >= len || buckets < 8 {
        return pieces(0..len, buckets).collect();
    }
    let half = buckets / 2;
    let before = ((half * focus.start) as f64 / around as f64) as usize;
    let before = before.clamp(usize::from(focus.start > 0), half.saturating_sub(1).max(1));
    let after = half.saturating_sub(before).max(1);
    let focused = buckets - before - after;
    pieces(0..focus.start, before)
        .chain(pieces(focus.clone(), focused))
        .chain(pieces(focus.end..len, after))
        .collect()
}

fn pieces(range: Range<usize>, n: usize) -> impl Iterator<Item = Range<usize>> {
    let len = range.len();
    let at = move |i: usize| range.start + (i as u128 * len as u128 / n.max(1) as u128) as usize;
    (0..n)
        .map(move |i| at(i)..at(i + 1))
        .filter(|piece| !piece.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_extreme_of_every_bucket_survives(
            values in prop::collection::vec(prop::collection::vec(
                prop_oneof![9 => 0.0..1e6, 1 => Just(f64::NAN)], 1..3000), 1..5),
            focus in (0_usize..3000, 0_usize..3000),
            limit in 20_usize..600,
        ) {
            let len = values.iter().map(Vec::len).min().unwrap();
            let focus = focus.0.min(focus.1)..focus.0.max(focus.1);
            let functions: Vec<_> = values.iter().map(|v| move |i: usize| v[i]).collect();
            let series: Vec<Series<'_>> = functions.iter().map(|f| f as Series<'_>).collect();
            let kept = indices(len, focus.clone(), &series, limit);
            prop_assert!(kept.len() <= limit.max(2 * series.len() + 2));
            prop_assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!((kept[0], kept[kept.len() - 1]), (0, len - 1));
            if len <= limit {
                prop_assert_eq!(kept.len(), len);
                return Ok(());
            }
            let buckets = cut(len, focus, ((limit - 2) / (2 * series.len())).max(1));
            let covered: Vec<usize> = buckets.iter().cloned().flatten().collect();
            prop_assert_eq!(covered, (0..len).collect::<Vec<_>>());
            for value in &series {
                for bucket in &buckets {
                    let all = bucket.clone().map(value).filter(|v| v.is_finite());
                    let chosen = kept.iter().filter(|i| bucket.contains(i));
                    let chosen = chosen.map(|&i| value(i)).filter(|v| v.is_finite());
                    let (all, chosen): (Vec<f64>, Vec<f64>) = (all.collect(), chosen.collect());
                    for best in [f64::min, f64::max] {
                        prop_assert_eq!(
                            all.iter().copied().reduce(best),
                            chosen.iter().copied().reduce(best)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_short_record_is_drawn_as_it_is() {
        assert_eq!(indices(5, 0..0, &[&|_| 1.0], 10), [0, 1, 2, 3, 4]);
        assert!(indices(0, 0..0, &[], 10).is_empty());
    }

    #[test]
    fn half_of_the_points_go_to_where_it_happens() {
        let noise = |i: usize| (i as f64 * 1e3).sin();
        let kept = indices(100_000, 50_000..51_000, &[&noise], 500);
        let inside = kept
            .iter()
            .filter(|i| (50_000..51_000).contains(*i))
            .count();
        assert!((230..=260).contains(&inside), "{inside}");
    }
}
