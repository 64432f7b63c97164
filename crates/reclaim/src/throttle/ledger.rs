//! Keeps account of the bytes freed so far, and of those whose discards were waited for.

/// Bytes of one deletion.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ledger {
    /// Bytes to be freed in all.
    pub(super) total: u64,
    /// Bytes freed so far.
    pub(super) freed: u64,
    /// Of them, bytes for which no discard comes.
    pub(super) exempt: u64,
    settles: bool,
    /// All that was freed was committed, and its discards were waited for.
    pub(super) settled: bool,
}

impl Ledger {
    /// Begins a deletion of `total` bytes. `settles`: a commit of the whole file system returns
    /// when the discards of all that was freed are done.
    pub(super) fn new(total: u64, settles: bool) -> Ledger {
        Ledger {
            total,
            settles,
            ..Ledger::default()
        }
    }

    /// Adds freed bytes and bytes for which no discard comes.
    pub(super) fn add(&mut self, freed: u64, exempt: u64) {
        self.freed += freed;
        self.exempt += exempt;
        self.settled &= freed == 0;
        assert!(
            self.freed >= self.exempt,
            "more was exempt from discards than was freed: {self:?}"
        );
    }

    /// The whole file system was committed.
    pub(super) fn committed_whole(&mut self) {
        self.settled = self.settles;
    }

    /// Returns the freed bytes for which discards come.
    pub(super) fn due(&self) -> u64 {
        self.freed - self.exempt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freeing_ends_what_a_commit_settled() {
        let mut ledger = Ledger::new(100, true);
        ledger.add(40, 10);
        assert_eq!((ledger.due(), ledger.settled), (30, false));
        ledger.committed_whole();
        ledger.add(0, 5);
        assert!(ledger.settled, "nothing more was freed");
        ledger.add(1, 0);
        assert!(!ledger.settled);
    }

    #[test]
    #[should_panic(expected = "more was exempt")]
    fn more_exempt_bytes_than_freed_ones_are_a_fault() {
        Ledger::new(100, true).add(4, 5);
    }
}
