//! The parts of a file system that are still to be trimmed.

use std::fs::File;

use linux::trim::FreeSpace;
use storage::layout::Layout;

use super::survey::Survey;
use super::windows::{Limit, NextFree, Window, WindowResult, Windows};

/// A short range at the beginning. btrfs trims the space that belongs to no chunk with any range.
/// This range lies where no chunk is, unless an old mkfs put one there. It is the shortest that
/// btrfs accepts: a sector, which is at most a page of the largest kind.
const NO_CHUNK: Window = Window {
    start: 0,
    length: 64 << 10,
    spans: 0,
    holds: None,
};

/// The windows of a file system that are still to be trimmed.
#[derive(Debug)]
pub(super) struct Remaining {
    windows: Windows,
    forecast: KernelForecast,
    /// Bytes to be looked at in all; `free`: those of them that can be free.
    all: u64,
    free: u64,
    /// The space of a btrfs that belongs to no chunk is still to be trimmed.
    unallocated: bool,
    /// A window whose call was cut short.
    cut_short: Option<Window>,
}

/// How a window ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was trimmed and measured.
    Whole,
    /// The machine slept meanwhile: it has to be trimmed once more.
    CutShort,
    /// It was trimmed, but this process was away, so that its time is unknown.
    Unmeasured,
}

impl Remaining {
    /// Returns all windows of a survey, or those from `position` on.
    pub(super) fn of(survey: &Survey, position: Option<u64>) -> Remaining {
        let mut windows = survey.windows();
        let all = windows.left();
        if let Some(position) = position {
            windows.seek(position);
        }
        let layout = &survey.fs.layout;
        Remaining {
            // It comes before the chunks: a trim that has trimmed none of them may not have come
            // to its end.
            unallocated: matches!(layout, Layout::Chunks(_)) && windows.left() == all,
            forecast: KernelForecast::at(layout, &survey.directory),
            windows,
            all,
            free: survey.free,
            cut_short: None,
        }
    }

    /// Returns the bytes to be looked at in all, those of an interrupted trim included.
    pub(super) fn all(&self) -> u64 {
        self.all
    }

    /// Returns the bytes that were looked at so far.
    pub(super) fn looked(&self) -> u64 {
        self.all.saturating_sub(self.windows.left())
    }

    /// Returns where the next window begins, in bytes.
    pub(super) fn position(&self) -> u64 {
        self.windows.position()
    }

    /// Returns whether nothing is left. On btrfs the space that belongs to no chunk is trimmed even
    /// where no chunk is asked for: a deletion may have emptied and removed some.
    pub(super) fn is_done(&self) -> bool {
        !self.unallocated && self.windows.is_done()
    }

    /// Estimates the bytes that will still be trimmed, from those `trimmed` of those `looked` at in
    /// this run.
    pub(super) fn expected(&self, trimmed: u64, looked: u64) -> u64 {
        let all = self.all.max(1) as f64;
        let usual = self.free as f64 / all;
        // The free space counts as if a tenth of all had shown it.
        let weight = all / 10.0;
        let density = (trimmed as f64 + usual * weight) / (looked as f64 + weight);
        ((self.windows.left() as f64 * density.min(1.0)) as u64).max(1)
    }

    /// Returns the next window, and where the call for it begins.
    pub(super) fn next(&mut self, limit: Limit) -> (Window, u64) {
        let window = match (self.unallocated, self.cut_short.take()) {
            (true, _) => NO_CHUNK,
            (false, Some(window)) => window,
            (false, None) => {
                self.forecast.pass(self.windows.position());
                self.windows
                    .next(limit, &mut |position| self.forecast.behind(position))
            }
        };
        let start = self.windows.begins(&window);
        (window, start)
    }

    /// Passes a window that was trimmed.
    pub(super) fn landed(
        &mut self,
        window: &Window,
        ended: Ended,
        came: WindowResult,
        limit: Limit,
    ) {
        match (self.unallocated, ended) {
            // It stays as it is: the same call is due.
            (true, Ended::CutShort) => {}
            (true, _) => self.unallocated = false,
            (false, Ended::CutShort) => self.cut_short = Some(*window),
            (false, Ended::Unmeasured) => self.windows.pass(window),
            (false, Ended::Whole) => self.windows.landed(window, came, limit),
        }
    }

    /// Ends the windows, because the kernel reports that the file system ends here.
    pub(super) fn end(&mut self) {
        self.windows.end();
    }
}

// Finds out how much is free on a file system before it is trimmed.

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
