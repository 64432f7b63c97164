//! Which files an LSM tree makes and drops next. Pure.
//!
//! All files are of one size. Keys are spread evenly: a file of level 0 holds
//! some of everywhere, and each other level is a row of files beside each
//! other. Once the last level is full, what comes down are new versions of
//! keys that are there, so that it grows no more.

use std::collections::HashSet;
use std::ops::Range;

use super::shape::Shape;

/// A file, as the tree's owner knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) number: u64,
    /// The file's bytes on the disk.
    pub(super) bytes: u64,
}

/// The keys there are: 0 up to this. Enough for files to be cut finely, and
/// few enough for the arithmetic of cutting.
const KEYS: u64 = 1 << 48;

#[derive(Debug)]
pub(super) struct Tree {
    shares: Vec<u64>,
    /// Level 0 in order of age; the others by their keys.
    levels: Vec<Vec<Placed>>,
}

#[derive(Debug, Clone)]
struct Placed {
    table: Table,
    keys: Range<u64>,
}

/// The next step.
#[derive(Debug)]
pub(super) enum Step {
    /// A memtable is full: a new file of level 0.
    Flush,
    /// A file goes down a level as it is: it overlaps nothing there.
    Move(Moved),
    /// Files of two levels are merged.
    Merge(Merge),
}

#[derive(Debug)]
pub(super) struct Moved {
    from: usize,
    number: u64,
}

#[derive(Debug)]
pub(super) struct Merge {
    /// The upper level; the outputs go to the next.
    from: usize,
    inputs: HashSet<u64>,
    keys: Range<u64>,
    outputs: usize,
}

impl Merge {
    /// Files it makes.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }
}

impl Tree {
    pub(super) fn new(shape: Shape) -> Tree {
        let shares = shape.shares().to_vec();
        Tree {
            levels: vec![Vec::new(); shares.len()],
            shares,
        }
    }

    /// Nothing is flushed while a level holds too much: so there is never more
    /// beyond the shares than one round of level 0. The deepest such level comes
    /// first, so that what is merged into never holds too much itself.
    pub(super) fn next(&self) -> Step {
        let last = self.levels.len() - 1;
        let full = |&level: &usize| self.files(level) > self.shares[level];
        if let Some(level) = (1..last).rev().find(full) {
            return self.compact(level);
        }
        if self.files(0) >= self.shares[0] {
            return Step::Merge(self.merge(0, &self.levels[0], &self.levels[1]));
        }
        Step::Flush
    }

    /// One file of the level: that which overlaps the fewest of the next
    /// (RocksDB's `kMinOverlappingRatio`), of those the oldest.
    fn compact(&self, level: usize) -> Step {
        let below = |file: &Placed| overlapping(&self.levels[level + 1], &file.keys);
        let cost = |file: &&Placed| (below(file).len(), file.table.number);
        let Some(file) = self.levels[level].iter().min_by_key(cost) else {
            return Step::Flush;
        };
        let overlapped = below(file);
        if overlapped.is_empty() && self.room_in(level + 1) > 0 {
            return Step::Move(Moved {
                from: level,
                number: file.table.number,
            });
        }
        let lower = &self.levels[level + 1][overlapped];
        Step::Merge(self.merge(level, std::slice::from_ref(file), lower))
    }

    fn merge(&self, from: usize, upper: &[Placed], lower: &[Placed]) -> Merge {
        let inputs = || upper.iter().chain(lower);
        let start = inputs().map(|file| file.keys.start).min();
        let end = inputs().map(|file| file.keys.end).max();
        let coming = self.room_in(from + 1).min(upper.len() as u64);
        Merge {
            from,
            inputs: inputs().map(|file| file.table.number).collect(),
            keys: start.unwrap_or(0)..end.unwrap_or(KEYS),
            outputs: lower.len() + coming as usize,
        }
    }

    pub(super) fn flushed(&mut self, table: Table) {
        self.levels[0].push(Placed {
            table,
            keys: 0..KEYS,
        });
    }

    pub(super) fn moved(&mut self, moved: &Moved) {
        let level = &mut self.levels[moved.from];
        let at = level.iter().position(|f| f.table.number == moved.number);
        if let Some(file) = at.map(|at| level.remove(at)) {
            self.place(moved.from + 1, [file]);
        }
    }

    /// The outputs are there: gives the inputs, which nobody needs any more.
    pub(super) fn merged(&mut self, merge: &Merge, outputs: Vec<Table>) -> Vec<Table> {
        let mut dropped = Vec::with_capacity(merge.inputs.len());
        for level in [merge.from, merge.from + 1] {
            self.levels[level].retain(|file| {
                let is_input = merge.inputs.contains(&file.table.number);
                if is_input {
                    dropped.push(file.table);
                }
                !is_input
            });
        }
        let pieces = cut(&merge.keys, outputs.len());
        let placed = outputs.into_iter().zip(pieces);
        self.place(
            merge.from + 1,
            placed.map(|(table, keys)| Placed { table, keys }),
        );
        dropped
    }

    /// Takes every file out of it.
    pub(super) fn take_all(&mut self) -> Vec<Table> {
        let all = self.levels.iter_mut().flat_map(|level| level.drain(..));
        all.map(|file| file.table).collect()
    }

    fn place(&mut self, level: usize, files: impl IntoIterator<Item = Placed>) {
        let level = &mut self.levels[level];
        level.extend(files);
        level.sort_by_key(|file| file.keys.start);
    }

    fn files(&self, level: usize) -> u64 {
        self.levels[level].len() as u64
    }

    /// Files by which a level may grow: only the last has an end.
    fn room_in(&self, level: usize) -> u64 {
        if level + 1 < self.levels.len() {
            return u64::MAX;
        }
        self.shares[level].saturating_sub(self.files(level))
    }
}

/// Those of a row of files that hold any of the keys.
fn overlapping(row: &[Placed], keys: &Range<u64>) -> Range<usize> {
    let first = row.partition_point(|file| file.keys.end <= keys.start);
    let behind = row.partition_point(|file| file.keys.start < keys.end);
    first..behind.max(first)
}

/// Into so many equal pieces.
fn cut(keys: &Range<u64>, pieces: usize) -> impl Iterator<Item = Range<u64>> + use<> {
    let (start, len) = (keys.start, u128::from(keys.end - keys.start));
    let at = move |i: usize| start + (len * i as u128 / pieces as u128) as u64;
    (0..pieces).map(move |i| at(i)..at(i + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lives through so many steps; `look` sees the files there are at most
    /// during each, and the tree after it.
    fn live(shape: Shape, steps: usize, mut look: impl FnMut(&Step, u64, &Tree)) -> Tree {
        let mut tree = Tree::new(shape);
        let mut numbers = (1..).map(|number| Table { number, bytes: 1 });
        for _ in 0..steps {
            let live: u64 = tree.levels.iter().map(|level| level.len() as u64).sum();
            let step = tree.next();
            let made = match &step {
                Step::Flush => 1,
                Step::Move(_) => 0,
                Step::Merge(merge) => merge.outputs(),
            };
            let mut new: Vec<Table> = numbers.by_ref().take(made).collect();
            match &step {
                Step::Flush => tree.flushed(new.remove(0)),
                Step::Move(moved) => tree.moved(moved),
                Step::Merge(merge) => {
                    let dropped = tree.merged(merge, new);
                    assert_eq!(dropped.len(), merge.inputs.len());
                }
            }
            look(&step, live + made as u64, &tree);
        }
        tree
    }

    proptest! {
        #[test]
        fn it_never_takes_more_than_its_space_and_levels_hold(
            levels in 2..=7u32, files in 10..400u64,
        ) {
            let Some(shape) = Shape::of(levels, files) else {
                prop_assert!(files < 8 + u64::from(levels));
                return Ok(());
            };
            let shares = shape.shares().to_vec();
            live(shape, 3000, |step, live, tree| {
                assert!(live <= files, "{live} of {files} files in {step:?}");
                let last = levels as usize - 1;
                assert!(tree.files(0) <= shares[0]);
                assert!(tree.files(last) <= shares[last], "{shares:?}");
                // What came from level 0 at once may be on its way down.
                for level in 1..last {
                    assert!(tree.files(level) <= shares[level] + shares[0], "{shares:?}");
                }
                for row in &tree.levels[1..] {
                    assert!(row.is_sorted_by(|a, b| a.keys.end <= b.keys.start));
                    assert!(row.iter().all(|file| file.keys.start < file.keys.end));
                }
            });
        }
    }

    #[test]
    fn it_fills_up_and_then_rewrites() {
        let shape = Shape::of(4, 300).expect("fits");
        let full: u64 = shape.shares()[1..].iter().sum();
        let (mut flushes, mut written) = (0, 0);
        let tree = live(shape, 20_000, |step, _, _| match step {
            Step::Flush => {
                flushes += 1;
                written += 1;
            }
            Step::Move(_) => {}
            Step::Merge(merge) => written += merge.outputs(),
        });
        let files: usize = tree.levels[1..].iter().map(Vec::len).sum();
        assert!(files as u64 * 10 >= full * 9, "{files} of {full}");
        // Leveled compaction writes everything several times; with a fan-out
        // of 10 some 5 to 10 times for each level.
        let amplification = written as f64 / f64::from(flushes);
        assert!((4.0..40.0).contains(&amplification), "{amplification}");
    }

    #[test]
    fn every_level_is_compacted() {
        let mut from = [0; 4];
        live(Shape::of(4, 200).expect("fits"), 5000, |step, _, _| {
            if let Step::Merge(merge) = step {
                from[merge.from] += 1;
            }
        });
        assert!(from[..3].iter().all(|&merges| merges > 50), "{from:?}");
        assert_eq!(from[3], 0);
    }

    #[test]
    fn a_merge_that_failed_comes_again() {
        let mut tree = live(Shape::of(3, 60).expect("fits"), 4, |_, _, _| {});
        let (Step::Merge(first), Step::Merge(second)) = (tree.next(), tree.next()) else {
            panic!("four files of level 0 are merged");
        };
        assert_eq!(first.inputs, second.inputs);
        assert_eq!(tree.take_all().len(), 4);
        assert!(matches!(tree.next(), Step::Flush));
    }
}
