//! A histogram that one thread writes and another reads at any time.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::layout::{BLOCK, BLOCKS, COUNTERS, index_of};

/// Counters that only ever grow (and wrap around). Each block of them that changed has a mark, and
/// each group of blocks has one. So a reader looks at nothing else: of a hundred mostly idle
/// threads it reads a few bytes each.
#[derive(Debug)]
pub struct Counters {
    counts: Box<[AtomicU32]>,
    changed_blocks: Box<[AtomicU8]>,
    changed_groups: [AtomicU8; GROUPS],
}

/// Blocks per group.
const GROUP: usize = 64;
const GROUPS: usize = BLOCKS.div_ceil(GROUP);

impl Default for Counters {
    fn default() -> Self {
        Counters::new()
    }
}

impl Counters {
    /// All zero. Memory is taken as counters are used.
    pub fn new() -> Counters {
        Counters {
            counts: zeroed_counters(),
            changed_blocks: (0..BLOCKS).map(|_| AtomicU8::new(0)).collect(),
            changed_groups: std::array::from_fn(|_| AtomicU8::new(0)),
        }
    }

    /// Counts `n` operations of this latency. One thread only: there is no
    /// locked instruction in it.
    #[inline]
    pub fn add(&self, ns: u64, n: u32) {
        let index = index_of(ns);
        let counter = &self.counts[index];
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(n),
            Ordering::Relaxed,
        );
        // In this order: a reader that sees a mark sees what it stands for.
        let block = index / BLOCK;
        self.changed_blocks[block].store(1, Ordering::Release);
        self.changed_groups[block / GROUP].store(1, Ordering::Release);
    }

    /// Hands every change since the last call to `each`, as counter and
    /// increment, in order. `before` holds what was seen then.
    pub fn changes(&self, before: &mut [u32], mut each: impl FnMut(usize, u32)) {
        let groups = self.changed_groups.iter();
        for (mark, blocks) in groups.zip(0..GROUPS) {
            if !take(mark) {
                continue;
            }
            let blocks = blocks * GROUP..((blocks + 1) * GROUP).min(BLOCKS);
            for block in blocks {
                if !take(&self.changed_blocks[block]) {
                    continue;
                }
                let start = block * BLOCK;
                let counts = &self.counts[start..start + BLOCK];
                let before = &mut before[start..start + BLOCK];
                for (i, (count, before)) in counts.iter().zip(before).enumerate() {
                    let now = count.load(Ordering::Relaxed);
                    let n = now.wrapping_sub(*before);
                    if n != 0 {
                        *before = now;
                        each(start + i, n);
                    }
                }
            }
        }
    }
}

/// Takes a mark away before what it stands for is read: a change made
/// meanwhile either is seen now, or leaves its mark for the next time.
fn take(mark: &AtomicU8) -> bool {
    mark.load(Ordering::Relaxed) != 0 && mark.swap(0, Ordering::AcqRel) != 0
}

/// The initial value that [`Counters::changes`] compares with.
pub fn nothing_seen() -> Box<[u32]> {
    vec![0; COUNTERS].into_boxed_slice()
}

/// Zeroed by the kernel and not touched, so that unused counters take no memory.
fn zeroed_counters() -> Box<[AtomicU32]> {
    let zeroes = Box::into_raw(nothing_seen());
    // SAFETY: AtomicU32 has the size, alignment and bit validity of u32.
    unsafe { Box::from_raw(zeroes as *mut [AtomicU32]) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn total(counters: &Counters, before: &mut [u32]) -> u64 {
        let mut sum = 0;
        counters.changes(before, |_, n| sum += u64::from(n));
        sum
    }

    #[test]
    fn each_change_is_seen_once_and_in_order() {
        let counters = Counters::new();
        let mut before = nothing_seen();
        for ns in [5_000_000, 3, 3, 90_000] {
            counters.add(ns, 1);
        }
        let mut seen = Vec::new();
        counters.changes(&mut before, |i, n| seen.push((i, n)));
        assert_eq!(
            seen,
            [(3, 2), (index_of(90_000), 1), (index_of(5_000_000), 1)]
        );
        assert_eq!(total(&counters, &mut before), 0);
    }

    #[test]
    fn a_counter_may_wrap_around() {
        let counters = Counters::new();
        let mut before = nothing_seen();
        counters.add(7, u32::MAX);
        assert_eq!(total(&counters, &mut before), u64::from(u32::MAX));
        counters.add(7, 10);
        assert_eq!(total(&counters, &mut before), 10);
    }

    #[test]
    fn nothing_is_lost_or_doubled_while_both_sides_work() {
        const N: u64 = 3_000_000;
        let (counters, done) = (Counters::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..N {
                    // Few blocks, so that writer and reader meet in them.
                    counters.add(i % 300, 1);
                }
                done.store(true, Ordering::Release);
            });
            let (mut before, mut sum) = (nothing_seen(), 0);
            while !done.load(Ordering::Acquire) {
                sum += total(&counters, &mut before);
            }
            assert_eq!(sum + total(&counters, &mut before), N);
        });
    }
}
