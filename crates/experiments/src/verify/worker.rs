//! One thread: writes, overwrites, cuts, punches, removes, discards and reads its own slots.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use fastrand::Rng;
use rustix::fs::FallocateFlags;

use crate::verify::block::{self, BLOCK};
use crate::verify::check::{Checker, MOST};
use crate::verify::discards::{Freed, How};
use crate::verify::home::slot_name;
use crate::verify::place::Place;
use crate::verify::shared::Shared;
use crate::verify::slot::{Content, Slot};
use linux::files::Aligned;

/// A thread's slots and room.
pub(crate) struct Worker<'a, 'b> {
    shared: &'b Shared<'a>,
    slots: &'b mut [Slot],
    rng: Rng,
    checker: Checker<'a, 'b>,
    buffer: Aligned,
    /// Blocks written since the last commit in place of freed ones.
    refilled: usize,
}

impl<'a, 'b> Worker<'a, 'b> {
    pub(crate) fn new(shared: &'b Shared<'a>, slots: &'b mut [Slot], seed: u64) -> Self {
        Worker {
            shared,
            slots,
            rng: Rng::with_seed(seed),
            checker: Checker::new(shared),
            buffer: Aligned::new(MOST * BLOCK),
            refilled: 0,
        }
    }

    /// Writes all slots once.
    pub(crate) fn fill(&mut self) {
        for slot in 0..self.slots.len() {
            self.write_all(slot, 0..self.slots[slot].map.len());
        }
    }

    /// Does one thing after the other until it is over.
    pub(crate) fn churn(&mut self) {
        while !self.shared.is_over() {
            let slot = self.rng.usize(..self.slots.len());
            self.operate(slot);
        }
    }

    /// Reads all slots.
    pub(crate) fn read_all(&mut self) {
        for slot in 0..self.slots.len() {
            for start in (0..self.slots[slot].length).step_by(MOST) {
                if self.shared.is_over() {
                    return;
                }
                let end = self.slots[slot].length.min(start + MOST);
                self.checker.check(&mut self.slots[slot], start..end);
            }
        }
    }

    fn operate(&mut self, slot: usize) {
        let raw = matches!(self.shared.place, Place::Device { .. });
        match (self.rng.u32(..200), raw) {
            (0..110, _) => {
                let blocks = self.somewhere_to_write(slot);
                self.write(slot, blocks);
            }
            (110..178, _) => self.read(slot),
            (178..184, _) => self.sync(slot),
            (184..200, true) => self.discard(slot),
            (184..194, false) => self.punch(slot),
            (194..197, false) => self.truncate(slot),
            (197.., false) => self.remove(slot),
            (200.., true) => {}
        }
    }

    /// Blocks at a random place below `end`: often few, sometimes [`MOST`].
    fn somewhere(&mut self, end: usize) -> Range<usize> {
        let most = 1 << self.rng.u32(0..=MOST.trailing_zeros());
        let length = self.rng.usize(1..=most);
        let start = self.rng.usize(..end.max(1));
        start..end.min(start + length)
    }

    /// Blocks to write: mostly within a file or at its end, so that few of its blocks are holes.
    fn somewhere_to_write(&mut self, slot: usize) -> Range<usize> {
        let (length, end) = (self.slots[slot].length, self.slots[slot].map.len());
        let blocks = self.somewhere(end);
        if blocks.start <= length || self.rng.u32(..8) == 0 {
            return blocks;
        }
        let start = self.rng.usize(..=length);
        start..end.min(start + blocks.len())
    }

    /// Reads blocks that are about to be overwritten or freed, also what was never written: damage
    /// must not vanish unseen. A file's holes have no place on the drive that could be damaged, so
    /// those at both ends are left out.
    fn check_before(&mut self, slot: usize, blocks: Range<usize>) {
        let of = &mut self.slots[slot];
        let end = blocks.end.min(of.length);
        for start in (blocks.start..end).step_by(MOST) {
            let on_drive = |block: &usize| of.content(*block) != Content::Zeros;
            let mut part = start..end.min(start + MOST);
            if let (Some(first), Some(last)) = (part.clone().find(on_drive), part.rfind(on_drive)) {
                self.checker.check(of, first..last + 1);
            }
        }
    }

    /// Writes blocks in place of freed ones. Space that was freed may be taken until a commit, so
    /// each worker forces one before it takes more than a file.
    fn refill(&mut self, slot: usize, blocks: Range<usize>) {
        if self.refilled + blocks.len() > self.slots[slot].map.len() {
            self.sync(slot);
            self.refilled = 0;
        }
        self.refilled += blocks.len();
        self.write_all(slot, blocks);
    }

    /// Writes blocks in pieces, until it is over.
    fn write_all(&mut self, slot: usize, blocks: Range<usize>) {
        for start in blocks.clone().step_by(MOST) {
            if self.shared.is_over() {
                return;
            }
            self.write(slot, start..blocks.end.min(start + MOST));
        }
    }

    fn write(&mut self, slot: usize, blocks: Range<usize>) {
        self.check_before(slot, blocks.clone());
        let of = &mut self.slots[slot];
        let fresh = blocks
            .clone()
            .any(|block| !matches!(of.content(block), Content::Data(_)));
        let generation = of.begin_write(self.shared.now_s());
        let bytes = self.buffer.get(blocks.len() * BLOCK);
        block::fill(
            bytes,
            of.identity(self.shared.volume, blocks.start, generation),
        );
        let at = of.base + Slot::offset(blocks.start);
        match of.file.write_all_at(bytes, at) {
            Ok(()) => {
                of.set(blocks.clone(), Content::Data(generation));
                of.length = of.length.max(blocks.end);
                self.shared.succeeded(|operations| {
                    operations.writes += 1;
                    operations.written_bytes += bytes.len() as u64;
                });
            }
            Err(error) => {
                // Any part of it may have arrived.
                of.set(blocks.clone(), Content::Unknown);
                self.shared.failed("write", &error);
                return;
            }
        }
        self.shared.moved(bytes_of(&blocks));
        // Space that was free before is where late trims strike. A read right now tells them
        // from writes that never arrived.
        if fresh || self.rng.u32(..8) == 0 {
            self.checker.check(&mut self.slots[slot], blocks);
        }
    }

    fn read(&mut self, slot: usize) {
        let length = self.slots[slot].length;
        if length > 0 {
            let mut blocks = self.somewhere(length);
            // A hole is read from no device.
            for _ in 0..self.rng.u32(..8) {
                if self.slots[slot].content(blocks.start) != Content::Zeros {
                    break;
                }
                blocks = self.somewhere(length);
            }
            self.checker.check(&mut self.slots[slot], blocks);
        }
    }

    fn sync(&mut self, slot: usize) {
        match self.slots[slot].file.sync_data() {
            Ok(()) => self.shared.succeeded(|operations| operations.syncs += 1),
            Err(error) => self.shared.failed("sync", &error),
        }
    }

    /// Discards a part of a region, and reads it.
    fn discard(&mut self, slot: usize) {
        let Place::Device { granularity, .. } = self.shared.place else {
            return;
        };
        if *granularity == 0 {
            return self.read(slot);
        }
        let end = self.slots[slot].map.len();
        let blocks = self.somewhere(end);
        let of = &mut self.slots[slot];
        // Only whole units: a device may leave the rest as it is.
        let start = (of.base + Slot::offset(blocks.start)).next_multiple_of(*granularity);
        let end = (of.base + Slot::offset(blocks.end)) / granularity * granularity;
        if start >= end {
            return;
        }
        let whole = |at: u64| ((at - of.base) / BLOCK as u64) as usize;
        let blocks = whole(start)..whole(end);
        self.check_before(slot, blocks.clone());
        let of = &mut self.slots[slot];
        // Before it takes effect: another worker may find what it took too much.
        self.shared.discards.add(Freed {
            range: start..end,
            began_s: self.shared.now_s(),
            how: How::Blkdiscard,
        });
        match linux::block::discard(&of.file, &(start..end)) {
            Ok(()) => {
                of.set(blocks.clone(), Content::Unknown);
                self.shared.succeeded(|operations| {
                    operations.discards += 1;
                    operations.discarded_bytes += end - start;
                });
                self.checker.check(&mut self.slots[slot], blocks.clone());
                // What is written where a discard may still be under way is what it can destroy.
                if self.rng.bool() {
                    self.write(slot, blocks);
                }
            }
            Err(error) => {
                of.set(blocks, Content::Unknown);
                self.shared.failed("discard", &error);
            }
        }
    }

    fn punch(&mut self, slot: usize) {
        let length = self.slots[slot].length;
        if length == 0 {
            return;
        }
        let blocks = self.somewhere(length);
        self.check_before(slot, blocks.clone());
        let freed = self.freed(slot, blocks.clone(), How::Punch);
        let of = &mut self.slots[slot];
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let (at, length) = (Slot::offset(blocks.start), bytes_of(&blocks));
        match rustix::fs::fallocate(&of.file, flags, at, length) {
            Ok(()) => {
                of.set(blocks, Content::Zeros);
                self.log(freed);
                self.shared.succeeded(|operations| operations.punches += 1);
            }
            Err(rustix::io::Errno::OPNOTSUPP) => {
                self.shared
                    .note("this file system punches no holes".to_owned());
            }
            Err(errno) => {
                of.set(blocks, Content::Unknown);
                self.shared.failed("punch", &errno.into());
            }
        }
    }

    /// Cuts a file short, or makes it longer.
    fn truncate(&mut self, slot: usize) {
        let end = self.slots[slot].map.len();
        let length = self.rng.usize(..=end);
        let before = self.slots[slot].length;
        self.check_before(slot, length..before);
        let freed = match length < before {
            true => self.freed(slot, length..before, How::Truncate),
            false => Vec::new(),
        };
        let of = &mut self.slots[slot];
        match of.file.set_len(Slot::offset(length)) {
            Ok(()) => {
                of.set(length..end, Content::Zeros);
                of.length = length;
                self.log(freed);
                self.shared
                    .succeeded(|operations| operations.truncations += 1);
                if self.rng.bool() {
                    self.refill(slot, before..length);
                }
            }
            Err(error) => {
                of.set(length.min(before)..end, Content::Unknown);
                self.shared.failed("truncate", &error);
            }
        }
    }

    /// Removes a file and makes it again.
    fn remove(&mut self, slot: usize) {
        let length = self.slots[slot].length;
        self.check_before(slot, 0..length);
        let freed = self.freed(slot, 0..length, How::Unlink);
        let Place::Directory { home, direct, .. } = self.shared.place else {
            return;
        };
        let of = &mut self.slots[slot];
        let name = slot_name(of.number);
        let made = home
            .unlink(&name)
            .and_then(|()| home.open(&name, true, *direct));
        match made {
            Ok(file) => {
                of.file = file;
                let end = of.map.len();
                of.set(0..end, Content::Zeros);
                of.length = 0;
                self.log(freed);
                self.shared.succeeded(|operations| operations.removals += 1);
                // Soon it takes space that was just freed.
                let length = self.rng.usize(..=end);
                self.refill(slot, 0..length);
            }
            Err(error) => self.removal_failed(slot, &error),
        }
    }

    /// The name may be gone or not: goes on with an empty file, if it can be had.
    fn removal_failed(&mut self, slot: usize, error: &io::Error) {
        self.shared.failed("removal", error);
        let Place::Directory { home, direct, .. } = self.shared.place else {
            return;
        };
        let of = &mut self.slots[slot];
        let made = home
            .open(&slot_name(of.number), true, *direct)
            .and_then(|file| file.set_len(0).map(|()| file));
        let end = of.map.len();
        match made {
            Ok(file) => {
                of.file = file;
                of.length = 0;
                of.set(0..end, Content::Zeros);
            }
            Err(_) => of.set(0..end, Content::Unknown),
        }
    }

    /// The places on the device that blocks of a file take, before they are freed.
    fn freed(&self, slot: usize, blocks: Range<usize>, how: How) -> Vec<Freed> {
        let of = &self.slots[slot];
        let part = Slot::offset(blocks.start)..Slot::offset(blocks.end);
        let began_s = self.shared.now_s();
        let places = self.shared.place.on_device(of, part).into_iter();
        places
            .map(|range| Freed {
                range,
                began_s,
                how,
            })
            .collect()
    }

    fn log(&self, freed: Vec<Freed>) {
        for one in freed {
            self.shared.discards.add(one);
        }
    }
}

fn bytes_of(blocks: &Range<usize>) -> u64 {
    (blocks.len() * BLOCK) as u64
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;
    use crate::verify::block::Identity;
    use crate::verify::cause::Cause;
    use crate::verify::home::Home;
    use crate::verify::place::{Addresses, Surveyed};
    use crate::verify::{Plan, Where};

    const VOLUME: u64 = 7;

    fn surveyed(directory: &Path) -> Surveyed {
        Surveyed {
            place: Place::Directory {
                home: Home::create(directory).unwrap(),
                addresses: Addresses::unknown(),
                direct: false,
            },
            path: directory.to_owned(),
            fs: None,
            device: None,
            size_bytes: 0,
            erase_block_bytes: None,
            notes: Vec::new(),
        }
    }

    fn plan(directory: &Path) -> Plan {
        Plan {
            place: Where::Directory(directory.to_owned()),
            duration: Duration::ZERO,
            size_bytes: None,
            rate: None,
            workers: 1,
            fstrim: false,
            volume: VOLUME,
        }
    }

    #[test]
    fn damage_in_what_was_never_written_is_found_before_it_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let (surveyed, plan) = (surveyed(directory.path()), plan(directory.path()));
        // Data are in 0..16 and 48..64, and a write of another file landed in block 20.
        for (rest, overwritten) in [
            (Content::Zeros, 10..50),
            (Content::Unknown, 18..30),
            (Content::Unknown, 10..30),
            (Content::Unknown, 18..50),
        ] {
            let stop = AtomicBool::new(false);
            let shared = Shared::new(&plan, &surveyed, &stop);
            let mut slots = [surveyed.place.slot(1, 64).unwrap()];
            let mut worker = Worker::new(&shared, &mut slots, 1);
            worker.write(0, 0..16);
            worker.write(0, 48..64);
            worker.slots[0].set(16..48, rest);
            let mut block = vec![0; BLOCK];
            let elsewhere = Identity {
                volume: VOLUME,
                file: 2,
                generation: 1,
                offset: 0,
            };
            block::fill(&mut block, elsewhere);
            let file = &worker.slots[0].file;
            file.write_all_at(&block, Slot::offset(20)).unwrap();

            worker.write(0, overwritten.clone());
            let findings = shared.count(|counts| counts.findings.clone());
            let found = |finding: &crate::verify::finding::Finding| {
                (finding.cause, finding.offset_bytes, finding.length_bytes)
            };
            let found: Vec<_> = findings.iter().map(found).collect();
            let landed = (Cause::MisdirectedWrite, Slot::offset(20), BLOCK as u64);
            assert_eq!(found, [landed], "{rest:?} {overwritten:?}");
            std::fs::remove_file(home_of(&surveyed).path().join(slot_name(1))).unwrap();
        }
    }

    fn home_of(surveyed: &Surveyed) -> &Home {
        match &surveyed.place {
            Place::Directory { home, .. } => home,
            Place::Device { .. } => unreachable!("it is a directory"),
        }
    }
}
