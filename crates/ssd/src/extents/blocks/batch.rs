//! Many ranges in order, for a visit of each chunk only once.

use std::ops::Range;

/// Ranges that are sorted at once. The copies take 32 MiB.
pub(super) const LARGEST: usize = 1 << 20;

/// The ranges that aren't empty, in order and merged where they touch.
pub(super) fn sorted(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|r| !r.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    sorted.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    sorted
}

/// The union of two lists of runs that are in order.
pub(super) fn union(
    a: impl Iterator<Item = Range<u16>>,
    b: impl Iterator<Item = Range<u16>>,
) -> Vec<Range<u16>> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    let mut all: Vec<Range<u16>> = Vec::with_capacity(64);
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.start > y.start => b.next(),
            (Some(_), _) => a.next(),
            (None, _) => b.next(),
        };
        let Some(run) = next else { return all };
        match all.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => all.push(run),
        }
    }
}
