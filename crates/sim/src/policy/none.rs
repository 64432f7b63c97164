//! No discards at all.

use std::ops::Range;

use super::{Desk, Policy};

/// A mount without `discard`: the drive never hears of what is free.
#[derive(Debug, Default)]
pub(super) struct None;

impl Policy for None {
    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        desk.release(ranges);
    }

    fn discarded(&mut self, _: u64, _: &mut Desk<'_>) {}

    fn is_settled(&self) -> bool {
        true
    }
}
