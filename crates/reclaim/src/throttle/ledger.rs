//! Keeps account of the bytes freed so far, and of those whose discards were waited for.

/// Bytes of one deletion.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ledger {
    total: u64,
    freed: u64,
    exempt: u64,
    settles: bool,
    settled: bool,
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
    }

    /// The whole file system was committed.
    pub(super) fn committed_whole(&mut self) {
        self.settled = self.settles;
    }

    /// Returns the bytes to be freed in all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the bytes freed so far.
    pub(super) fn freed(&self) -> u64 {
        self.freed
    }

    /// Returns the bytes for which no discard comes.
    pub(super) fn exempt(&self) -> u64 {
        self.exempt
    }

    /// Returns the freed bytes for which discards come.
    pub(super) fn due(&self) -> u64 {
        self.freed.saturating_sub(self.exempt)
    }

    /// Returns whether all that was freed was committed, and its discards were waited for.
    pub(super) fn is_settled(&self) -> bool {
        self.settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freeing_ends_what_a_commit_settled() {
        let mut ledger = Ledger::new(100, true);
        ledger.add(40, 10);
        assert_eq!((ledger.due(), ledger.is_settled()), (30, false));
        ledger.committed_whole();
        ledger.add(0, 5);
        assert!(ledger.is_settled(), "nothing more was freed");
        ledger.add(1, 0);
        assert!(!ledger.is_settled());
    }
}
