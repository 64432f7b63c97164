//! Erase blocks, garbage collection and wear behind a drive's map.
//!
//! A page can be written once; a block of pages is erased as a whole. A drive writes every page of
//! its host to a new place, and must clean blocks: it moves their valid pages, and erases them. So
//! the flash is written more often than the host writes: *write amplification*. A page that the
//! host has discarded needs no moving, which is the use of TRIM.
//!
//! [`Flash`] counts, and knows no time. It has one open block, for the host's pages and for moved
//! ones, and cleans when no other block is free. The results agree with the models of P. Desnoyers
//! ("Analytic modeling of SSD write performance", 2012) and T. Frankie ("A mathematical model of
//! the trim command in NAND-flash SSDs", 2012); `tests/flash.rs` compares.

mod geometry;

use std::collections::VecDeque;
use std::ops::Range;

pub use geometry::{Cleaning, Geometry, GeometryError};

/// No place, or no page.
const NOWHERE: u32 = u32::MAX;

/// Blocks beyond the spare space: the open one, and the one that is cleaned into.
const WORKING: u32 = 2;

/// The flash of one drive.
#[derive(Debug, Clone)]
pub struct Flash {
    geometry: Geometry,
    /// Place of each of the host's pages.
    places: Vec<u32>,
    /// The host's page at each place.
    pages: Vec<u32>,
    valid: Valid,
    erased: Vec<u32>,
    /// Written blocks, the oldest first.
    written: VecDeque<u32>,
    free: Vec<u32>,
    /// The next place in the open block, and its end.
    next: u32,
    end: u32,
    used: u64,
    stats: FlashStats,
}

/// Counters of the flash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlashStats {
    /// Pages that the host wrote.
    pub host_pages: u64,
    /// Pages that were moved to clean blocks.
    pub moved_pages: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Pages that the host discarded and that held data.
    pub trimmed_pages: u64,
}

impl FlashStats {
    /// The work since an earlier look.
    #[must_use]
    pub fn since(self, earlier: FlashStats) -> FlashStats {
        FlashStats {
            host_pages: self.host_pages - earlier.host_pages,
            moved_pages: self.moved_pages - earlier.moved_pages,
            erases: self.erases - earlier.erases,
            trimmed_pages: self.trimmed_pages - earlier.trimmed_pages,
        }
    }

    /// Pages written to the flash for each one of the host; `None` if the host wrote none.
    pub fn write_amplification(self) -> Option<f64> {
        let all = self.host_pages + self.moved_pages;
        (self.host_pages > 0).then(|| all as f64 / self.host_pages as f64)
    }
}

/// How often blocks were erased.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wear {
    /// The least.
    pub least: u32,
    /// On average.
    pub mean: f64,
    /// The most.
    pub most: u32,
}

impl Flash {
    /// Empty flash for a host's space of so many bytes; at most 2³² − 2 pages, else the space is
    /// cut to that.
    pub fn new(geometry: Geometry, bytes: u64) -> Flash {
        let in_block = u64::from(geometry.pages_in_block);
        let most = u64::from(u32::MAX - 1);
        let pages = (bytes / geometry.page_bytes).max(1);
        let physical = ((pages as f64 * (1.0 + geometry.spare) / in_block as f64).ceil() as u64)
            .max(pages.div_ceil(in_block) + 1);
        let blocks = (physical + u64::from(WORKING)).min(most / in_block) as u32;
        Flash {
            geometry,
            places: vec![NOWHERE; pages.min(most) as usize],
            pages: vec![NOWHERE; blocks as usize * in_block as usize],
            valid: Valid::new(blocks, geometry.pages_in_block),
            erased: vec![0; blocks as usize],
            written: VecDeque::new(),
            // The last is taken first, so that the first blocks are written first.
            free: (0..blocks).rev().collect(),
            next: 0,
            end: 0,
            used: 0,
            stats: FlashStats::default(),
        }
    }

    /// The host writes a range: every page that it touches.
    pub fn write(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        let page = self.geometry.page_bytes;
        let end = range.end.div_ceil(page).min(self.places.len() as u64);
        for at in range.start / page..end {
            self.write_page(at as u32);
        }
    }

    /// The host discards a range: the pages that it covers whole.
    pub fn trim(&mut self, range: &Range<u64>) {
        let page = self.geometry.page_bytes;
        let end = (range.end / page).min(self.places.len() as u64);
        for at in range.start.div_ceil(page)..end {
            self.trim_page(at as u32);
        }
    }

    /// The host writes one of its pages; one that it doesn't have is left out.
    pub fn write_page(&mut self, page: u32) {
        if page as usize >= self.places.len() {
            return;
        }
        self.make_room();
        self.forget(page);
        self.used += 1;
        self.stats.host_pages += 1;
        self.put(page);
    }

    /// The host discards one of its pages.
    pub fn trim_page(&mut self, page: u32) {
        if self
            .places
            .get(page as usize)
            .is_some_and(|&place| place != NOWHERE)
        {
            self.forget(page);
            self.places[page as usize] = NOWHERE;
            self.stats.trimmed_pages += 1;
        }
    }

    /// Its counters.
    pub fn stats(&self) -> FlashStats {
        self.stats
    }

    /// How often its blocks were erased.
    pub fn wear(&self) -> Wear {
        Wear {
            least: self.erased.iter().copied().min().unwrap_or(0),
            mean: self.stats.erases as f64 / self.erased.len().max(1) as f64,
            most: self.erased.iter().copied().max().unwrap_or(0),
        }
    }

    /// Pages that the host has.
    pub fn host_pages(&self) -> u32 {
        self.places.len() as u32
    }

    /// Of them, those that hold data.
    pub fn used_pages(&self) -> u64 {
        self.used
    }

    /// The page's data is no longer at its place.
    fn forget(&mut self, page: u32) {
        let place = self.places[page as usize];
        if place != NOWHERE {
            self.used -= 1;
            self.valid.lose(place / self.geometry.pages_in_block);
        }
    }

    fn put(&mut self, page: u32) {
        let place = self.next;
        self.next += 1;
        self.places[page as usize] = place;
        self.pages[place as usize] = page;
        self.valid.gain(place / self.geometry.pages_in_block);
        if self.next == self.end {
            self.close();
        }
    }

    /// The open block is full.
    fn close(&mut self) {
        let block = self.end / self.geometry.pages_in_block - 1;
        match self.geometry.cleaning {
            Cleaning::Greedy => self.valid.offer(block),
            Cleaning::Fifo => self.written.push_back(block),
        }
        self.end = self.next;
        self.open();
    }

    fn open(&mut self) {
        if let Some(block) = self.free.pop() {
            self.next = block * self.geometry.pages_in_block;
            self.end = self.next + self.geometry.pages_in_block;
        }
    }

    /// Cleans until a block is free beside the open one.
    fn make_room(&mut self) {
        if self.next == self.end {
            self.open();
        }
        while self.free.is_empty() {
            let victim = match self.geometry.cleaning {
                Cleaning::Greedy => self.valid.take_least(),
                Cleaning::Fifo => self.written.pop_front(),
            };
            let Some(victim) = victim else { return };
            self.clean(victim);
        }
    }

    fn clean(&mut self, block: u32) {
        let first = block * self.geometry.pages_in_block;
        // It is erased when its pages are moved; its space is in hand then, and not before.
        for place in first..first + self.geometry.pages_in_block {
            let page = self.pages[place as usize];
            if page != NOWHERE && self.places[page as usize] == place {
                self.valid.lose(block);
                self.stats.moved_pages += 1;
                self.put(page);
            }
            self.pages[place as usize] = NOWHERE;
        }
        self.erased[block as usize] += 1;
        self.stats.erases += 1;
        self.free.insert(0, block);
        if self.next == self.end {
            self.open();
        }
    }
}

// Blocks by their number of valid pages.

/// The valid pages of each block, and the written blocks in the order of these numbers.
#[derive(Debug, Clone)]
struct Valid {
    counts: Vec<u32>,
    /// Written blocks with so many valid pages.
    buckets: Vec<Vec<u32>>,
    /// Each written block's place in its bucket.
    at: Vec<u32>,
    /// No bucket below this one has a block.
    least: usize,
}

const NOT_OFFERED: u32 = u32::MAX;

impl Valid {
    fn new(blocks: u32, pages_in_block: u32) -> Valid {
        Valid {
            counts: vec![0; blocks as usize],
            buckets: vec![Vec::new(); pages_in_block as usize + 1],
            at: vec![NOT_OFFERED; blocks as usize],
            least: 0,
        }
    }

    #[cfg(test)]
    fn of(&self, block: u32) -> u32 {
        self.counts[block as usize]
    }

    /// A page of an open block became valid.
    fn gain(&mut self, block: u32) {
        self.counts[block as usize] += 1;
    }

    /// A page is no longer valid.
    fn lose(&mut self, block: u32) {
        let offered = self.at[block as usize] != NOT_OFFERED;
        if offered {
            self.withdraw(block);
        }
        self.counts[block as usize] -= 1;
        if offered {
            self.offer(block);
        }
    }

    /// A block is full: it may be cleaned.
    fn offer(&mut self, block: u32) {
        let count = self.counts[block as usize] as usize;
        let bucket = &mut self.buckets[count];
        self.at[block as usize] = bucket.len() as u32;
        bucket.push(block);
        self.least = self.least.min(count);
    }

    /// Takes out the block with the fewest valid pages.
    fn take_least(&mut self) -> Option<u32> {
        while self.buckets.get(self.least)?.is_empty() {
            self.least += 1;
            if self.least == self.buckets.len() {
                self.least = 0;
                return None;
            }
        }
        let block = *self.buckets[self.least].first()?;
        self.withdraw(block);
        Some(block)
    }

    fn withdraw(&mut self, block: u32) {
        let bucket = &mut self.buckets[self.counts[block as usize] as usize];
        let at = std::mem::replace(&mut self.at[block as usize], NOT_OFFERED) as usize;
        bucket.swap_remove(at);
        if let Some(&moved) = bucket.get(at) {
            self.at[moved as usize] = at as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn flash(cleaning: Cleaning) -> Flash {
        let geometry = Geometry {
            page_bytes: 4096,
            pages_in_block: 8,
            spare: 0.25,
            cleaning,
        };
        Flash::new(geometry, 4096 * 400)
    }

    /// Each of the host's pages is at one place, and each block counts its valid pages.
    fn check(flash: &Flash) {
        let mut counts = vec![0; flash.erased.len()];
        let mut used = 0;
        for (page, &place) in flash.places.iter().enumerate() {
            if place != NOWHERE {
                assert_eq!(flash.pages[place as usize], page as u32);
                counts[(place / 8) as usize] += 1;
                used += 1;
            }
        }
        assert_eq!(used, flash.used);
        for (block, &count) in counts.iter().enumerate() {
            assert_eq!(flash.valid.of(block as u32), count, "block {block}");
        }
    }

    #[test]
    fn no_page_is_lost_whatever_is_written_and_discarded() {
        for cleaning in [Cleaning::Greedy, Cleaning::Fifo] {
            let mut flash = flash(cleaning);
            let mut rng = Rng::new(3);
            let mut held = vec![false; 400];
            for step in 0..30_000 {
                let page = rng.below(400) as u32;
                let write = rng.below(10) < 7;
                match write {
                    true => flash.write_page(page),
                    false => flash.trim_page(page),
                }
                held[page as usize] = write;
                if step % 1000 == 0 {
                    check(&flash);
                }
            }
            check(&flash);
            let used = held.iter().filter(|&&held| held).count() as u64;
            assert_eq!(flash.used_pages(), used);
            assert!(flash.stats().erases > 1000);
            assert!(flash.wear().least > 0);
        }
    }

    #[test]
    fn writing_in_order_moves_nothing() {
        let mut flash = flash(Cleaning::Greedy);
        for _ in 0..20 {
            flash.write(&(0..4096 * 400));
        }
        assert_eq!(flash.stats().write_amplification(), Some(1.0));
        flash.trim(&(1..8192));
        assert_eq!(flash.used_pages(), 399);
    }
}
