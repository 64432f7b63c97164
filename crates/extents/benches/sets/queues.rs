//! Queues that put discards in order: what the 2008 text compared for a block layer's elevator.
//!
//! Its figures are times relative to a red-black tree: of all insertions, of all extractions in
//! order, and of both.

use std::collections::{BTreeMap, LinkedList};
use std::hint::black_box;
use std::time::{Duration, Instant};

use avl::AvlTreeMap;
use crossbeam_skiplist::SkipMap;
use extents::BlockSet;
use fastrand::Rng;
use fibonacci_heap::FibonacciHeap;
use intrusive_collections::{Bound, KeyAdapter, RBTree, RBTreeLink, intrusive_adapter};

use crate::median;
use crate::workload::VOLUME;

/// Discards that wait, by their first blocks. All are of one length.
trait Queue: Default {
    const NAME: &'static str;
    fn put(&mut self, start: u64);
    fn take(&mut self) -> Option<u64>;
}

/// Kept sorted, searched from its end.
impl Queue for LinkedList<u64> {
    const NAME: &'static str = "list";
    fn put(&mut self, start: u64) {
        let behind = self.iter().rev().take_while(|&&held| held > start).count();
        let mut tail = self.split_off(self.len() - behind);
        self.push_back(start);
        self.append(&mut tail);
    }
    fn take(&mut self) -> Option<u64> {
        self.pop_front()
    }
}

impl Queue for AvlTreeMap<u64, u64> {
    const NAME: &'static str = "AVL";
    fn put(&mut self, start: u64) {
        self.insert(start, 8);
    }
    fn take(&mut self) -> Option<u64> {
        let first = *self.keys().next()?;
        self.remove(&first);
        Some(first)
    }
}

impl Queue for SkipMap<u64, u64> {
    const NAME: &'static str = "skip list";
    fn put(&mut self, start: u64) {
        self.insert(start, 8);
    }
    fn take(&mut self) -> Option<u64> {
        self.pop_front().map(|entry| *entry.key())
    }
}

impl Queue for FibonacciHeap {
    const NAME: &'static str = "Fibonacci heap";
    fn put(&mut self, start: u64) {
        let _ = self.insert(start as i32);
    }
    fn take(&mut self) -> Option<u64> {
        self.extract_min().map(|start| start as u64)
    }
}

impl Queue for BTreeMap<u64, u64> {
    const NAME: &'static str = "BTreeMap";
    fn put(&mut self, start: u64) {
        self.insert(start, 8);
    }
    fn take(&mut self) -> Option<u64> {
        self.pop_first().map(|(start, _)| start)
    }
}

struct Waiting {
    link: RBTreeLink,
    start: u64,
}

intrusive_adapter!(ByStart = Box<Waiting>: Waiting { link => RBTreeLink });

impl<'a> KeyAdapter<'a> for ByStart {
    type Key = u64;
    fn get_key(&self, waiting: &'a Waiting) -> u64 {
        waiting.start
    }
}

impl Queue for RBTree<ByStart> {
    const NAME: &'static str = "red-black tree";
    fn put(&mut self, start: u64) {
        let link = RBTreeLink::new();
        self.insert(Box::new(Waiting { link, start }));
    }
    fn take(&mut self) -> Option<u64> {
        let mut first = self.lower_bound_mut(Bound::Unbounded);
        first.remove().map(|waiting| waiting.start)
    }
}

impl Queue for BlockSet {
    const NAME: &'static str = "BlockSet";
    fn put(&mut self, start: u64) {
        self.insert(start..start + 8);
    }
    fn take(&mut self) -> Option<u64> {
        self.pop_first().map(|range| range.start)
    }
}

struct Times {
    queue: &'static str,
    put: Duration,
    taken: Duration,
}

fn times<Q: Queue>(starts: &[u64]) -> Times {
    let mut queue = Q::default();
    let begun = Instant::now();
    starts.iter().for_each(|&start| queue.put(start));
    let put = begun.elapsed();
    let begun = Instant::now();
    let mut last = None;
    while let Some(start) = queue.take() {
        assert!(last < Some(start), "out of order");
        last = black_box(Some(start));
    }
    Times {
        queue: Q::NAME,
        put,
        taken: begun.elapsed(),
    }
}

pub(crate) fn compare(discards: usize, rounds: usize) {
    let rng = &mut Rng::with_seed(3);
    // Far enough apart that none merge; small enough for a heap of i32.
    let step = (VOLUME.min(1 << 31) / discards as u64) & !15;
    let sorted: Vec<u64> = (0..discards as u64).map(|at| at * step).collect();
    let mut random = sorted.clone();
    rng.shuffle(&mut random);
    println!("{discards} discards put in order: time relative to a red-black tree");
    println!(
        "  {:8} {:15} {:>8} {:>8} {:>8}",
        "input", "queue", "insert", "extract", "total"
    );
    for (name, starts) in [("sorted", &sorted), ("random", &random)] {
        let round = || {
            let mut round = vec![
                times::<RBTree<ByStart>>(starts),
                times::<AvlTreeMap<u64, u64>>(starts),
                times::<SkipMap<u64, u64>>(starts),
                times::<FibonacciHeap>(starts),
                times::<BTreeMap<u64, u64>>(starts),
                times::<BlockSet>(starts),
            ];
            // At random a list takes the square of the time.
            if name == "sorted" {
                round.push(times::<LinkedList<u64>>(starts));
            }
            round
        };
        let all: Vec<Vec<Times>> = (0..rounds).map(|_| round()).collect();
        let figures = |queue: usize, time: &dyn Fn(&Times) -> Duration| {
            median(
                all.iter()
                    .map(|round| time(&round[queue]).as_secs_f64())
                    .collect(),
            )
            .0
        };
        let parts: [&dyn Fn(&Times) -> Duration; 3] =
            [&|times| times.put, &|times| times.taken, &|times| {
                times.put + times.taken
            }];
        for (queue, times) in all[0].iter().enumerate() {
            let [put, taken, total] = parts.map(|part| figures(queue, part) / figures(0, part));
            println!(
                "  {name:8} {:15} {put:8.2} {taken:8.2} {total:8.2}",
                times.queue
            );
        }
    }
}
