//! The queue beside a device of which every block's state is known.

use std::collections::VecDeque;
use std::ops::Range;

use fastrand::Rng;
use ssd::extents::{Command, CommandLimits, DiscardQueue, Order, Short};

/// Blocks: some chunks of a set.
const VOLUME: u64 = 40_000;

/// A block, as file system and drive know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// It holds data.
    Live,
    /// It is free, and the drive doesn't know.
    Freed,
    /// It is free, and a command with it is in flight.
    InFlight,
    /// It is free, and the drive knows, or will never know.
    Clean,
}

struct Shadow {
    blocks: Vec<Block>,
    queue: DiscardQueue,
    limits: CommandLimits,
    order: Order,
    short: Short,
    commands: VecDeque<Command>,
    sent: u64,
    cancelled: u64,
}

fn places(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}

impl Shadow {
    fn new(rng: &mut Rng) -> Shadow {
        let limits = CommandLimits {
            ranges: rng.usize(1..5),
            blocks: [1, 7, 64, 1 << 20][rng.usize(..4)],
            at_least: rng.u64(..12),
        };
        let order = [Order::Longest, Order::Address][rng.usize(..2)];
        let short = [Short::Drop, Short::Wait][rng.usize(..2)];
        Shadow {
            blocks: vec![Block::Clean; VOLUME as usize],
            queue: DiscardQueue::new(limits, order, short),
            limits,
            order,
            short,
            commands: VecDeque::new(),
            sent: 0,
            cancelled: 0,
        }
    }

    fn step(&mut self, rng: &mut Rng) {
        // Mostly near the end of a chunk, so that ranges meet.
        let start = match rng.u8(..4) {
            0 => rng.u64(..VOLUME - 300),
            _ => (1 << 14) - 150 + rng.u64(..300),
        };
        let most = if rng.u8(..20) == 0 { 300 } else { 12 };
        let range = start..start + rng.u64(1..most);
        match rng.u8(..10) {
            0..=3 => self.delete(range),
            4..=6 => self.write(range),
            7 | 8 => self.send(),
            _ => self.answer(rng),
        }
    }

    /// A file system frees what is live.
    fn delete(&mut self, range: Range<u64>) {
        for at in range {
            if self.blocks[at as usize] == Block::Live {
                self.blocks[at as usize] = Block::Freed;
                self.queue
                    .free(at..at + 1)
                    .expect("a live block is never in flight");
            }
        }
    }

    /// An allocator takes a whole range if it is free.
    fn write(&mut self, range: Range<u64>) {
        let states = &self.blocks[places(&range)];
        if states.contains(&Block::Live) {
            return;
        }
        let busy = states.iter().position(|&state| state == Block::InFlight);
        let freed = states
            .iter()
            .filter(|&&state| state == Block::Freed)
            .count() as u64;
        match self.queue.allocate(range.clone()) {
            // No free block is lost to the allocator.
            Ok(cancelled) => {
                assert_eq!((busy, cancelled), (None, freed));
                self.cancelled += cancelled;
                self.blocks[places(&range)].fill(Block::Live);
            }
            Err(refused) => {
                assert_eq!(Some((refused.0.start - range.start) as usize), busy);
            }
        }
    }

    fn send(&mut self) {
        let Some(command) = self.queue.send() else {
            let least = self.limits.at_least.max(1);
            let long = |range: Range<u64>| range.end - range.start >= least;
            assert!(
                !self.queue.pending().iter().any(long),
                "something could be sent"
            );
            return self.forget_dropped();
        };
        assert!((1..=self.limits.ranges).contains(&command.ranges.len()));
        for range in &command.ranges {
            assert!(range.end - range.start <= self.limits.blocks);
            for state in &mut self.blocks[places(range)] {
                assert_eq!(
                    *state,
                    Block::Freed,
                    "only free blocks are ever in a command"
                );
                *state = Block::InFlight;
            }
            self.sent += range.end - range.start;
        }
        if self.order == Order::Longest {
            let lengths = command.ranges.iter().map(|range| range.end - range.start);
            assert!(lengths.is_sorted_by(|a, b| a >= b));
        }
        self.commands.push_back(command);
        self.forget_dropped();
    }

    /// Blocks that the queue has dropped stay free.
    fn forget_dropped(&mut self) {
        if self.short == Short::Wait {
            return;
        }
        for at in 0..VOLUME {
            if self.blocks[at as usize] == Block::Freed && !self.queue.pending().contains(at) {
                self.blocks[at as usize] = Block::Clean;
            }
        }
    }

    /// A command ends, well mostly; not always in order.
    fn answer(&mut self, rng: &mut Rng) {
        if self.commands.is_empty() {
            return;
        }
        let Some(command) = self.commands.remove(rng.usize(..self.commands.len())) else {
            return;
        };
        let (ranges, state) = match rng.u8(..8) {
            0 => (self.queue.fail(command.id), Block::Freed),
            _ => (self.queue.complete(command.id), Block::Clean),
        };
        assert_eq!(ranges, command.ranges);
        for range in &ranges {
            self.blocks[places(range)].fill(state);
        }
        assert_eq!(self.queue.complete(command.id), []);
    }

    /// The queue holds what it should.
    fn check(&self) {
        let count = |state| self.blocks.iter().filter(|&&held| held == state).count() as u64;
        assert_eq!(self.queue.pending().covered(), count(Block::Freed));
        assert_eq!(self.queue.in_flight().covered(), count(Block::InFlight));
    }
}

/// Millions of steps in a soak.
#[test]
fn no_live_block_is_in_a_command_and_no_free_one_is_lost() {
    let rounds = match std::env::var_os("TRIMBENCH_SOAK") {
        Some(_) => 2000,
        None => 24,
    };
    let rng = &mut Rng::with_seed(7);
    let (mut sent, mut cancelled) = (0, 0);
    for _ in 0..rounds {
        let mut shadow = Shadow::new(rng);
        for _ in 0..2000 {
            shadow.step(rng);
        }
        shadow.check();
        sent += shadow.sent;
        cancelled += shadow.cancelled;
        // With nothing more to allocate all is discarded but what is too short.
        while let Some(command) = shadow.queue.send() {
            shadow.queue.complete(command.id);
        }
        let left = shadow.queue.pending();
        assert!(
            left.iter()
                .all(|range| range.end - range.start < shadow.limits.at_least)
        );
    }
    assert!(
        sent > 1000 && cancelled > 1000,
        "{sent} sent, {cancelled} cancelled"
    );
}

#[test]
fn an_elevator_goes_one_way_and_skips_short_ranges() {
    let limits = CommandLimits {
        ranges: 1,
        blocks: 10,
        at_least: 4,
    };
    for short in [Short::Wait, Short::Drop] {
        let mut queue = DiscardQueue::new(limits, Order::Address, short);
        let send = |queue: &mut DiscardQueue| queue.send().map(|command| command.ranges[0].clone());
        queue.free(50..60).unwrap();
        assert_eq!(send(&mut queue), Some(50..60));
        for range in [0..3, 6..14, 20..22, 63..65, 70..85] {
            queue.free(range).unwrap();
        }
        assert_eq!(send(&mut queue), Some(70..80));
        assert_eq!(send(&mut queue), Some(80..85));
        assert_eq!(send(&mut queue), Some(6..14));
        // Dropped are those that it has passed.
        let left = [0..3, 20..22, 63..65].into_iter();
        let left = left.filter(|range| short == Short::Wait || range.start == 20);
        assert!(queue.pending().iter().eq(left));
        assert_eq!(send(&mut queue), None);
        assert_eq!(queue.pending().is_empty(), short == Short::Drop);
    }
}
