//! A guard by trims: its own, or the kernel's.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use ssd::Card;

use super::Tell;
use super::by_btrfs::BtrfsGuard;
use super::by_trim::{TrimGuard, TrimLeft, TrimOptions, kernels_own};
use super::error::GuardError;

/// A running guard of one file system by trims.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are as many as guarded file systems"
)]
pub enum Trims<'a> {
    /// It trims what was freed.
    Own(TrimGuard<'a>),
    /// btrfs trims, and it sets the rate.
    Kernels(BtrfsGuard),
}

impl<'a> Trims<'a> {
    /// Takes charge of a mounted file system. Returns notes for the user.
    ///
    /// # Errors
    /// As [`TrimGuard::start`]; on btrfs if it isn't mounted with `discard=async`, or its limit
    /// can't be changed.
    pub fn start(
        path: &Path,
        options: TrimOptions,
        card: Option<&'a Card>,
    ) -> Result<(Trims<'a>, Vec<String>), GuardError> {
        if let Some(uuid) = kernels_own(path)? {
            let (guard, notes) = BtrfsGuard::start(path, uuid.as_deref(), options)?;
            return Ok((Trims::Kernels(guard), notes));
        }
        let (guard, notes) = TrimGuard::start(path, options, card)?;
        Ok((Trims::Own(guard), notes))
    }

    /// Guards until `stop` is set or an order ends it. Returns what is left.
    pub fn run(self, stop: &AtomicBool, tell: Tell<'_>) -> TrimLeft {
        match self {
            Trims::Own(guard) => guard.run(stop, tell),
            Trims::Kernels(guard) => guard.run(stop, tell),
        }
    }
}
