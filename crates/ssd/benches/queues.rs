//! Queues that put discards in order: what the 2008 text compared for a block layer's elevator.
//!
//! Its figures are times relative to a red-black tree: of all insertions, of all extractions in
//! order, and of both. `make bench-extents` runs it. The queues take turns, round after round, so that a drift of the
//! machine meets all of them.

use std::collections::{BTreeMap, LinkedList};
use std::hint::black_box;
use std::time::{Duration, Instant};

use avl::AvlTreeMap;
use crossbeam_skiplist::SkipMap;
use fastrand::Rng;
use fibonacci_heap::FibonacciHeap;
use intrusive_collections::{Bound, KeyAdapter, RBTree, RBTreeLink, intrusive_adapter};
use ssd::extents::Extents;

/// Blocks of 4 KiB in 8 TiB.
const VOLUME: u64 = 1 << 31;

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

impl Queue for Extents {
    const NAME: &'static str = "Extents";
    fn put(&mut self, start: u64) {
        self.insert(start..start + 8);
    }
    fn take(&mut self) -> Option<u64> {
        let first = self.first()?;
        self.remove(first.clone());
        Some(first.start)
    }
}

/// How long a queue takes.
struct Times {
    queue: &'static str,
    put: Duration,
    taken: Duration,
}

impl Times {
    /// Of insertion, extraction and both, relative to another queue.
    fn relative_to(&self, base: &Times) -> (&'static str, [f64; 3]) {
        let all = |times: &Times| [times.put, times.taken, times.put + times.taken];
        let (own, base) = (all(self), all(base));
        let ratio = |at: usize| own[at].as_secs_f64() / base[at].as_secs_f64();
        (self.queue, std::array::from_fn(ratio))
    }
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

/// Every queue relative to the red-black tree. The list takes the square of the time at random, so
/// it and its tree get the first tenth of the input.
fn round(starts: &[u64]) -> Vec<(&'static str, [f64; 3])> {
    let tree = times::<RBTree<ByStart>>(starts);
    let queues = [
        times::<AvlTreeMap<u64, u64>>(starts),
        times::<SkipMap<u64, u64>>(starts),
        times::<FibonacciHeap>(starts),
        times::<BTreeMap<u64, u64>>(starts),
        times::<Extents>(starts),
    ];
    let tenth = &starts[..starts.len() / 10];
    let list = times::<LinkedList<u64>>(tenth);
    let list = list.relative_to(&times::<RBTree<ByStart>>(tenth));
    let mut rows = vec![tree.relative_to(&tree), list];
    rows.extend(queues.iter().map(|queue| queue.relative_to(&tree)));
    rows
}

fn compare(discards: usize, rounds: usize) {
    let rng = &mut Rng::with_seed(3);
    // Far enough apart that none merge; small enough for a heap of i32.
    let step = (VOLUME / discards as u64) & !15;
    let sorted: Vec<u64> = (0..discards as u64).map(|at| at * step).collect();
    let mut random = sorted.clone();
    rng.shuffle(&mut random);
    println!(
        "{discards} discards put in order ({} for the list): time relative to a red-black tree",
        discards / 10
    );
    println!(
        "  {:8} {:15} {:>8} {:>8} {:>8}",
        "input", "queue", "insert", "extract", "total"
    );
    for (name, starts) in [("sorted", &sorted), ("random", &random)] {
        let all: Vec<_> = (0..rounds).map(|_| round(starts)).collect();
        for (at, (queue, _)) in all[0].iter().enumerate() {
            let [put, taken, total] =
                std::array::from_fn(|time| median(all.iter().map(|row| row[at].1[time]).collect()));
            println!("  {name:8} {queue:15} {put:8.2} {taken:8.2} {total:8.2}");
        }
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[(figures.len() - 1) / 2]
}

fn main() {
    // `cargo test` runs benches, too, with this argument missing.
    let full = std::env::args().any(|word| word == "--bench");
    let (discards, rounds) = if full { (100_000, 5) } else { (200, 1) };
    compare(discards, rounds);
}
