//! Finds out how much is free on a file system before it is trimmed.

use std::fs::File;

use linux::trim::FreeSpace;
use storage::layout::Layout;

use super::windows::NextFree;

/// The kernel's list of the free extents of ext4 or XFS.
#[derive(Debug)]
pub(super) struct KernelForecast(Option<FreeSpace>);

impl KernelForecast {
    /// Opens the list of the file system of `directory`.
    pub(super) fn at(layout: &Layout, directory: &File) -> KernelForecast {
        KernelForecast(match layout {
            Layout::Groups { .. } | Layout::Allocation { .. } => FreeSpace::open(directory),
            _ => None,
        })
    }

    /// Forgets what is free before a position.
    pub(super) fn pass(&mut self, position: u64) {
        if let Some(free) = &mut self.0 {
            free.pass(position);
        }
    }

    /// Returns the first free extent that ends behind a position.
    pub(super) fn behind(&mut self, position: u64) -> NextFree {
        match self.0.as_mut().map(|free| free.behind(position)) {
            Some(Ok(Some(extent))) => NextFree::Extent(extent),
            Some(Ok(None)) => NextFree::Nothing,
            _ => NextFree::Unknown,
        }
    }
}
