//! Blocks by their number of valid pages.

/// The valid pages of each block, and the written blocks in the order of these numbers.
#[derive(Debug, Clone)]
pub(super) struct Valid {
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
    pub(super) fn new(blocks: u32, pages_in_block: u32) -> Valid {
        Valid {
            counts: vec![0; blocks as usize],
            buckets: vec![Vec::new(); pages_in_block as usize + 1],
            at: vec![NOT_OFFERED; blocks as usize],
            least: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn of(&self, block: u32) -> u32 {
        self.counts[block as usize]
    }

    /// A page of an open block became valid.
    pub(super) fn gain(&mut self, block: u32) {
        self.counts[block as usize] += 1;
    }

    /// A page is no longer valid.
    pub(super) fn lose(&mut self, block: u32) {
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
    pub(super) fn offer(&mut self, block: u32) {
        let count = self.counts[block as usize] as usize;
        let bucket = &mut self.buckets[count];
        self.at[block as usize] = bucket.len() as u32;
        bucket.push(block);
        self.least = self.least.min(count);
    }

    /// Takes out the block with the fewest valid pages.
    pub(super) fn take_least(&mut self) -> Option<u32> {
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
