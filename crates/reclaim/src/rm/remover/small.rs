//! Removes files whole: small ones, and larger ones where they fit into a piece.
//!
//! A deletion of many of them is as fast as its cheapest step. So a small file costs one `stat` for
//! its size and one `unlink`. The volume grants pieces that many files share, and commits once
//! for each piece.

use std::ffi::{CStr, OsStr};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::Stat;

use super::Remover;
use crate::Result;
use crate::event::Problem;
use crate::rm::arguments::Argument;
use crate::rm::lost;
use crate::rm::on_disk::ExpectedDiscards;
use crate::rm::spared::Why;
use crate::rm::tree::At;
use crate::rm::volumes::Current;

/// Files that are removed whole are looked at for mounts this far apart at least.
const LOOKS_APART: Duration = Duration::from_secs(1);

impl Remover<'_> {
    /// Removes files of one directory.
    pub(in crate::rm) fn remove_files(
        &mut self,
        parent: BorrowedFd<'_>,
        files: &[&Argument],
    ) -> Result<()> {
        let Some(first) = files.first() else {
            return Ok(());
        };
        self.current = Current::new(parent, &first.path, false);
        self.remove_all_files(parent, files)
            .map_err(|error| lost::explained(error, parent, &first.path))
    }

    fn remove_all_files(&mut self, parent: BorrowedFd<'_>, files: &[&Argument]) -> Result<()> {
        let at = match At::of(parent) {
            Ok(at) => at,
            Err(errno) => {
                for file in files {
                    self.stays(&file.path, Problem::System(errno))?;
                }
                return Ok(());
            }
        };
        for file in files {
            self.dialogue.step()?;
            self.name(at, &file.name, &file.path, None)?;
        }
        Ok(())
    }

    /// Returns whether a large file may be removed whole, as one of many: no other process seems to
    /// have it, and it fits into a piece.
    pub(super) fn goes_whole(
        &mut self,
        at: At<'_>,
        name: &CStr,
        stat: &Stat,
        expected: ExpectedDiscards,
    ) -> Result<bool> {
        let ExpectedDiscards::Now(bytes) = expected else {
            return Ok(false);
        };
        // This only spares a wait for discards that don't come.
        if self.looked.is_none_or(|at| at.elapsed() >= LOOKS_APART) {
            self.looked = Some(Instant::now());
            let name = OsStr::from_bytes(name.to_bytes());
            if self.search.is_mounted(at.fd, name, stat) {
                return Ok(false);
            }
        }
        match self.volumes.of(at.device) {
            Some(volume) => volume.fits(bytes, &mut |event| self.dialogue.hear(event)),
            None => Ok(true),
        }
    }

    /// Removes a name and its whole file, when the pacer allows that.
    pub(super) fn whole(
        &mut self,
        at: At<'_>,
        name: &CStr,
        path: &Path,
        expected: ExpectedDiscards,
    ) -> Result<bool> {
        let bytes = expected.now();
        self.allow(at.device, bytes)?;
        let names = self.names();
        let gone = self.unlink(at.fd, name, path)?;
        // A file that was gone before is freed by nobody here.
        if self.names() > names {
            self.freed(at.device, bytes);
            if let ExpectedDiscards::OnClose(bytes, process) = expected {
                self.spared.add(Why::Open(process.and_then(named)), bytes);
            }
        }
        Ok(gone)
    }

    /// Waits until so many bytes may be freed at once.
    pub(super) fn allow(&mut self, device: u64, bytes: u64) -> Result<()> {
        match self.volumes.of(device) {
            Some(volume) => volume.allow(bytes, &mut |event| self.dialogue.hear(event)),
            None => Ok(()),
        }
    }

    /// Reports to the volume that so many bytes were freed.
    pub(super) fn freed(&mut self, device: u64, bytes: u64) {
        if let Some(volume) = self.volumes.of(device) {
            volume.freed(bytes);
        }
    }
}

/// Returns a process in words; `None` if it has ended.
pub(super) fn named(pid: u32) -> Option<String> {
    let stat = linux::tasks::Thread { pid, tid: pid }.stat()?;
    Some(format!(
        "{} (pid {pid})",
        record::units::names::shown(stat.comm)
    ))
}
