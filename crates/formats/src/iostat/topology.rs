//! Which device is made of which: iostat doesn't say.
//!
//! A RAID's reads are those of its members, second by second. So a device is made of some others if
//! its reads are the sum of theirs. Its reads are what programs saw; discards are counted where
//! they end, at the members. No name is looked at.

use super::log::Log;

/// Members' reads add up to within this share of the whole's.
const SUM: f64 = 0.02;

/// Two devices with the same reads are one above the other (a partition, a mapping) only if their
/// reads differ by less than this share. Two drives of one kind under one kind of load come close.
const SAME: f64 = 0.002;

/// With fewer operations in all, sums say nothing.
const ENOUGH: f64 = 1000.0;

/// More candidates than this aren't tried in every combination.
const MOST: usize = 14;

/// Nor more combinations than this, second by second.
const LOOKS: usize = 256;

/// A device made of others, as places in [`Log::columns`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) whole: usize,
    pub(super) members: Vec<usize>,
}

/// All devices that are made of others, as these rows of the log tell it.
pub(super) fn infer(log: &Log, rows: &[usize]) -> Vec<Made> {
    let busy: Vec<usize> = (0..log.columns.len())
        .filter(|&i| !log.columns[i].is_idle())
        .collect();
    let sums = Sums::of(log, &busy, rows);
    let stacks = sums.stacks();
    let mut found: Vec<Made> = stacks.iter().flat_map(|stack| links(stack)).collect();
    // A stack is used as its top, and made of what its bottom is made of.
    let tops: Vec<usize> = stacks.iter().map(|stack| stack[0]).collect();
    let most = sums.totals.iter().copied().fold(0.0, f64::max);
    let mut wholes: Vec<(usize, Vec<usize>)> = Vec::new();
    for (n, &top) in tops.iter().enumerate() {
        if sums.total(top) < ENOUGH.max(SUM * most) {
            continue;
        }
        if let Some(members) = sums.members(&stacks[n], &tops) {
            wholes.push((n, members));
        }
    }
    let part = |i: usize| {
        let of = |(n, members): &(usize, Vec<usize>)| tops[*n] == i || members.contains(&i);
        wholes.iter().any(of)
    };
    let mut joined: Vec<usize> = Vec::new();
    for (at, one) in stacks.iter().enumerate() {
        for other in &stacks[at + 1..] {
            let (a, b) = (one[0], other[0]);
            let told = [a, b].into_iter().any(|i| part(i) || joined.contains(&i));
            if told || sums.total(a) < ENOUGH || !sums.same(a, b) {
                continue;
            }
            let (upper, lower) = if sums.is_above(a, b) {
                (one, other)
            } else {
                (other, one)
            };
            found.extend(links(&[upper[upper.len() - 1], lower[0]]));
            joined.extend([a, b]);
        }
    }
    // Two that are made of the same lie one above the other: a volume on a RAID.
    while let Some((n, members)) = wholes.pop() {
        let stack = &stacks[n];
        match wholes.iter().position(|(_, others)| *others == members) {
            Some(twin) => {
                let other = wholes[twin].0;
                let (upper, lower) = match sums.is_above(stack[0], tops[other]) {
                    true => (n, other),
                    false => (other, n),
                };
                wholes[twin].0 = lower;
                found.extend(links(&[
                    stacks[upper][stacks[upper].len() - 1],
                    tops[lower],
                ]));
            }
            None => found.push(Made {
                whole: stack[stack.len() - 1],
                members,
            }),
        }
    }
    found
}

/// Each device of a stack is made of the one below it.
fn links(stack: &[usize]) -> impl Iterator<Item = Made> {
    stack.windows(2).map(|pair| Made {
        whole: pair[0],
        members: vec![pair[1]],
    })
}

/// The compared figures: reads, or writes where nobody reads.
struct Sums<'a> {
    log: &'a Log,
    rows: &'a [usize],
    kind: usize,
    busy: Vec<usize>,
    totals: Vec<f64>,
}

impl<'a> Sums<'a> {
    fn of(log: &'a Log, busy: &[usize], rows: &'a [usize]) -> Sums<'a> {
        let total = |i: usize, kind: usize| log.sum(rows, i, |s| s.count[kind]);
        let reads: f64 = busy.iter().map(|&i| total(i, 0)).sum();
        let kind = usize::from(reads < ENOUGH);
        Sums {
            log,
            rows,
            kind,
            busy: busy.to_vec(),
            totals: (0..log.columns.len()).map(|i| total(i, kind)).collect(),
        }
    }

    fn total(&self, i: usize) -> f64 {
        self.totals[i]
    }

    fn discards(&self, i: usize) -> f64 {
        self.log.sum(self.rows, i, |s| s.bytes[2])
    }

    fn rate(&self, i: usize, row: usize) -> f64 {
        f64::from(self.log.columns[i].at(row).count[self.kind])
    }

    fn weight(&self, row: usize) -> f64 {
        self.log.rows[row].weight()
    }

    /// Devices that did exactly the same in every row, the upper first: a drive
    /// and its only partition. Members of a RAID are alike, but never as much.
    fn stacks(&self) -> Vec<Vec<usize>> {
        let mut stacks: Vec<Vec<usize>> = Vec::new();
        for &i in &self.busy {
            let same = |stack: &&mut Vec<usize>| self.total(i) >= ENOUGH && self.equal(i, stack[0]);
            match stacks.iter_mut().find(same) {
                Some(stack) => {
                    let below = stack.iter().position(|&other| self.is_above(i, other));
                    stack.insert(below.unwrap_or(stack.len()), i);
                }
                None => stacks.push(vec![i]),
            }
        }
        stacks
    }

    fn equal(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|i| &self.log.columns[i]);
        self.rows
            .iter()
            .all(|&r| one.at(r).count[..2] == other.at(r).count[..2])
    }

    /// Of two that did the same, the lower one is where discards are; else it
    /// doesn't matter, and the longer name is mostly that of a part.
    fn is_above(&self, one: usize, other: usize) -> bool {
        let (a, b) = (self.discards(one), self.discards(other));
        let length = |i: usize| self.log.columns[i].name.len();
        a < b || a == b && length(one) > length(other)
    }

    /// The members of a stack of devices, as tops of other stacks; `None` if no
    /// set of them adds up to it.
    fn members(&self, stack: &[usize], tops: &[usize]) -> Option<Vec<usize>> {
        let whole = stack[0];
        let total = self.total(whole);
        let others = tops.iter().copied().filter(|&i| i != whole);
        let mut candidates: Vec<usize> = others
            .filter(|&i| (SUM * total..(1.0 - SUM) * total).contains(&self.total(i)))
            .filter(|&i| self.beyond(i, whole) <= SUM * total)
            .collect();
        candidates.sort_by(|&a, &b| self.total(b).total_cmp(&self.total(a)));
        candidates.truncate(MOST);
        let mut best: Option<(f64, Vec<usize>)> = None;
        let mut looks = 0;
        for set in 1_u32..1 << candidates.len() {
            if set.count_ones() < 2 {
                continue;
            }
            let members: Vec<usize> = (0..candidates.len())
                .filter(|bit| set >> bit & 1 == 1)
                .map(|bit| candidates[bit])
                .collect();
            let together: f64 = members.iter().map(|&i| self.total(i)).sum();
            if (together - total).abs() > SUM * total {
                continue;
            }
            looks += 1;
            if looks > LOOKS {
                break;
            }
            let apart = self.apart(whole, &members);
            if apart <= SUM * total && best.as_ref().is_none_or(|b| apart < b.0) {
                best = Some((apart, members));
            }
        }
        let (_, mut members) = best?;
        members.sort_unstable();
        // A whole that counts discards itself counts the members' ones.
        let own = self.discards(whole);
        let theirs: f64 = members.iter().map(|&i| self.discards(i)).sum();
        (own == 0.0 || (own - theirs).abs() <= 0.1 * theirs).then_some(members)
    }

    /// How much a device did beyond what another did, report by report.
    fn beyond(&self, i: usize, whole: usize) -> f64 {
        let rows = self.rows.iter();
        let beyond =
            rows.map(|&r| self.weight(r) * (self.rate(i, r) - self.rate(whole, r)).max(0.0));
        beyond.sum()
    }

    /// How far members are from a whole, report by report.
    fn apart(&self, whole: usize, members: &[usize]) -> f64 {
        let rows = self.rows.iter();
        let apart = rows.map(|&r| {
            let together: f64 = members.iter().map(|&i| self.rate(i, r)).sum();
            self.weight(r) * (together - self.rate(whole, r)).abs()
        });
        apart.sum()
    }

    fn same(&self, one: usize, other: usize) -> bool {
        let total = self.total(one);
        (total - self.total(other)).abs() <= SAME * total
            && self.apart(one, &[other]) <= SAME * total
    }
}
