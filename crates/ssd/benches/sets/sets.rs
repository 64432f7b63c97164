//! Sets of ranges side by side.

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use rangemap::RangeSet;
use roaring::RoaringTreemap;
use ssd::extents::{BlockSet, Extents};

use crate::workload::{Step, VOLUME, Where, mixed, random, sequential};
use crate::{allocated, median};

trait Set: Default {
    const NAME: &'static str;
    fn insert(&mut self, range: Range<u64>);
    fn remove(&mut self, range: Range<u64>);
    fn ranges(&self) -> Vec<Range<u64>>;
}

impl Set for BlockSet {
    const NAME: &'static str = "BlockSet";
    fn insert(&mut self, range: Range<u64>) {
        black_box(BlockSet::insert(self, range));
    }
    fn remove(&mut self, range: Range<u64>) {
        black_box(BlockSet::remove(self, range));
    }
    fn ranges(&self) -> Vec<Range<u64>> {
        self.iter().collect()
    }
}

/// Over the standard library's BTreeMap.
impl Set for Extents {
    const NAME: &'static str = "BTreeMap";
    fn insert(&mut self, range: Range<u64>) {
        black_box(Extents::insert(self, range));
    }
    fn remove(&mut self, range: Range<u64>) {
        black_box(Extents::remove(self, range));
    }
    fn ranges(&self) -> Vec<Range<u64>> {
        self.iter().collect()
    }
}

impl Set for RangeSet<u64> {
    const NAME: &'static str = "rangemap";
    fn insert(&mut self, range: Range<u64>) {
        RangeSet::insert(self, range);
    }
    fn remove(&mut self, range: Range<u64>) {
        RangeSet::remove(self, range);
    }
    fn ranges(&self) -> Vec<Range<u64>> {
        self.iter().cloned().collect()
    }
}

impl Set for RoaringTreemap {
    const NAME: &'static str = "roaring";
    fn insert(&mut self, range: Range<u64>) {
        black_box(self.insert_range(range));
    }
    fn remove(&mut self, range: Range<u64>) {
        black_box(self.remove_range(range));
    }
    fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for block in self {
            match ranges.last_mut() {
                Some(last) if last.end == block => last.end += 1,
                _ => ranges.push(block..block + 1),
            }
        }
        ranges
    }
}

/// The cost of a set, and a sum over its ranges.
struct Cost {
    set: &'static str,
    nanoseconds: f64,
    bytes: f64,
    sum: u64,
}

fn cost<S: Set>(steps: &[Step]) -> Cost {
    let before = allocated();
    let mut set = S::default();
    let begun = Instant::now();
    for step in steps {
        match step {
            Step::Insert(range) => set.insert(range.clone()),
            Step::Remove(range) => set.remove(range.clone()),
        }
    }
    let nanoseconds = begun.elapsed().as_nanos() as f64 / steps.len() as f64;
    let bytes = allocated() - before;
    let ranges = set.ranges();
    Cost {
        set: S::NAME,
        nanoseconds,
        bytes: bytes as f64 / ranges.len() as f64,
        sum: checksum(&ranges),
    }
}

/// `BlockSet` again, with all ranges in one call.
fn batched(steps: &[Step]) -> Cost {
    let inserted = |step: &Step| match step {
        Step::Insert(range) => Some(range.clone()),
        Step::Remove(_) => None,
    };
    let ranges: Vec<_> = steps.iter().filter_map(inserted).collect();
    let before = allocated();
    let mut set = BlockSet::new();
    let begun = Instant::now();
    set.insert_all(&ranges);
    let nanoseconds = begun.elapsed().as_nanos() as f64 / ranges.len() as f64;
    let bytes = allocated() - before;
    let ranges = set.ranges();
    Cost {
        set: "insert_all",
        nanoseconds,
        bytes: bytes as f64 / ranges.len() as f64,
        sum: checksum(&ranges),
    }
}

/// The same for the same ranges in the same order (FNV-1a).
fn checksum(ranges: &[Range<u64>]) -> u64 {
    let numbers = ranges.iter().flat_map(|range| [range.start, range.end]);
    numbers.fold(0xcbf2_9ce4_8422_2325, |sum, number| {
        (sum ^ number).wrapping_mul(0x100_0000_01b3)
    })
}

pub(crate) fn compare(place: Where, operations: usize, rounds: usize) {
    println!("{operations} operations, {place:?}, of {VOLUME} blocks");
    println!(
        "  {:11} {:11} {:>22} {:>8} {:>16}",
        "workload", "set", "ns", "times", "bytes a range"
    );
    let workloads = [
        ("random", random(place, operations)),
        ("sequential", sequential(operations)),
        ("mixed", mixed(place, operations)),
    ];
    for (name, steps) in &workloads {
        let mut costs: Vec<Vec<Cost>> = Vec::new();
        for _ in 0..rounds {
            let mut round = vec![
                cost::<BlockSet>(steps),
                cost::<Extents>(steps),
                cost::<RangeSet<u64>>(steps),
            ];
            // Its removal rebuilds a container each time: minutes.
            if *name != "mixed" {
                round.push(cost::<RoaringTreemap>(steps));
                round.push(batched(steps));
            }
            assert!(
                round.iter().all(|cost| cost.sum == round[0].sum),
                "the sets differ"
            );
            costs.push(round);
        }
        let figures = |set: usize| median(costs.iter().map(|c| c[set].nanoseconds).collect());
        let ours = figures(0).0;
        for (set, cost) in costs[0].iter().enumerate() {
            let (middle, least, most) = figures(set);
            println!(
                "  {name:11} {:11} {:>22} {:8.1} {:16.1}",
                cost.set,
                format!("{middle:.1} ({least:.1} to {most:.1})"),
                middle / ours,
                cost.bytes
            );
        }
    }
    println!();
}
