//! Finds out how much is free on a file system before it is trimmed.

use std::fs::File;
use std::time::Duration;

use linux::SysRoot;
use linux::trim::{Ahead, FreeSpace, Groups};
use storage::layout::Layout;

use super::windows::{Forecast, NextFree};

/// The kernel's account of free space: ext4's block groups, or XFS's free extents.
#[derive(Debug, Default)]
pub(super) struct KernelForecast {
    groups: Option<Groups>,
    free: Option<FreeSpace>,
}

impl KernelForecast {
    /// Opens the account of the file system of `directory`, which lies on `device`.
    pub(super) fn at(layout: &Layout, directory: &File, device: Option<&str>) -> KernelForecast {
        let (groups, free) = match layout {
            Layout::Groups { .. } => {
                let open = |name| Groups::open(&SysRoot::host(), name);
                (device.and_then(open), None)
            }
            Layout::Allocation { .. } => (None, FreeSpace::open(directory)),
            _ => (None, None),
        };
        KernelForecast { groups, free }
    }

    /// Reads on to `group` for at most `at_most`. Returns whether it got there, or the kernel has
    /// no list of groups.
    pub(super) fn skip_to(&mut self, group: u64, at_most: Duration) -> bool {
        let skip = |groups: &mut Groups| groups.skip_to(group, at_most);
        self.groups.as_mut().is_none_or(skip)
    }
}

impl Forecast for KernelForecast {
    fn group(&mut self, group: u64) -> Option<Ahead> {
        self.groups.as_mut()?.ahead(group)
    }

    fn behind(&mut self, position: u64) -> NextFree {
        match self.free.as_mut().map(|free| free.behind(position)) {
            Some(Ok(Some(extent))) => NextFree::Extent(extent),
            Some(Ok(None)) => NextFree::Nothing,
            _ => NextFree::Unknown,
        }
    }
}
