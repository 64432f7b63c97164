//! Small files, which go whole: together, where several lie in one directory.

use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;

use super::{LARGE, Remover};
use crate::ReclaimError;
use crate::rm::arguments::{Argument, held};
use crate::rm::fresh::{self, Owed};
use crate::rm::lost;
use crate::rm::talk::Problem;
use crate::tree::At;

/// Small files are removed together until they hold so much.
const TOGETHER: u64 = 1 << 20;
const MOST_TOGETHER: usize = 512;

/// A small file that waits for leave.
pub(super) struct Pending {
    name: CString,
    path: PathBuf,
    bytes: u64,
}

impl Remover<'_> {
    /// Removes files of one directory.
    pub(in crate::rm) fn remove_files(
        &mut self,
        parent: BorrowedFd<'_>,
        files: &[&Argument],
    ) -> Result<(), ReclaimError> {
        let Some(first) = files.first() else {
            return Ok(());
        };
        self.begin_with(parent, &first.path, false);
        self.remove_all_files(parent, files)
            .map_err(|error| lost::explained(error, parent, &first.path))
    }

    fn remove_all_files(
        &mut self,
        parent: BorrowedFd<'_>,
        files: &[&Argument],
    ) -> Result<(), ReclaimError> {
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
            self.step()?;
            let stat = match rustix::fs::statat(parent, &*file.name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(errno) => {
                    self.stays(&file.path, Problem::System(errno))?;
                    continue;
                }
            };
            if self.asked(parent, &file.name, &file.path, &stat)? {
                self.one_of_many(at, file, &stat)?;
            }
        }
        self.flush(at).map(|_| ())
    }

    fn one_of_many(
        &mut self,
        at: At<'_>,
        file: &Argument,
        stat: &Stat,
    ) -> Result<(), ReclaimError> {
        if self.is_paced(at)? && held(stat) < LARGE && stat.st_nlink == 1 {
            self.wait_with(at, &file.name, file.path.clone(), stat)?;
        } else {
            self.paced(at, &file.name, &file.path, stat, None)?;
        }
        Ok(())
    }

    /// Has a small file wait for leave together with others of its directory. False where
    /// some were removed, and not all of them could be.
    pub(super) fn wait_with(
        &mut self,
        at: At<'_>,
        name: &CStr,
        path: PathBuf,
        stat: &Stat,
    ) -> Result<bool, ReclaimError> {
        let bytes = self.owed(at, name, stat);
        let name = name.to_owned();
        self.pending.push(Pending { name, path, bytes });
        self.pending_bytes += bytes;
        match self.pending_bytes >= TOGETHER || self.pending.len() >= MOST_TOGETHER {
            true => self.flush(at),
            false => Ok(true),
        }
    }

    /// Removes those that wait. Returns whether all of their directory's are gone.
    pub(super) fn flush(&mut self, at: At<'_>) -> Result<bool, ReclaimError> {
        self.pending_bytes = 0;
        let pending = std::mem::take(&mut self.pending);
        let before = std::mem::take(&mut self.some_stay);
        Ok(self.remove_together(at, pending)? && !before)
    }

    /// The same before a question: who says yes to one sees it go before the next.
    pub(super) fn flush_first(&mut self, at: BorrowedFd<'_>) -> Result<(), ReclaimError> {
        if let Ok(at) = At::of(at) {
            self.some_stay = !self.flush(at)?;
        }
        Ok(())
    }

    fn remove_together(&mut self, at: At<'_>, files: Vec<Pending>) -> Result<bool, ReclaimError> {
        let mut left: u64 = files.iter().map(|file| file.bytes).sum();
        let mut allowed = 0;
        let mut all_gone = true;
        for Pending { name, path, bytes } in files {
            self.step()?;
            while allowed < bytes {
                let Some((free, mut relay)) = self.free(at.device) else {
                    break;
                };
                allowed += free.allow(left.max(bytes) - allowed, &mut relay)?;
            }
            let names = self.names;
            all_gone &= self.unlink(at.fd, &name, &path)?;
            left = left.saturating_sub(bytes);
            // What was gone before, be it named twice, is freed by nobody here.
            if self.names > names {
                allowed = allowed.saturating_sub(bytes);
                self.freed(at.device, bytes);
            }
        }
        Ok(all_gone)
    }

    /// Bytes of a small file that are discarded when its name goes.
    pub(super) fn owed(&mut self, at: At<'_>, name: &CStr, stat: &Stat) -> u64 {
        let owed = fresh::on_disk(at.fd, name, stat);
        if let Owed::Later(bytes) = owed {
            self.open_elsewhere.0 += 1;
            self.open_elsewhere.1 += bytes;
        }
        owed.now()
    }

    pub(super) fn small(
        &mut self,
        at: At<'_>,
        name: &CStr,
        path: &Path,
        bytes: u64,
    ) -> Result<bool, ReclaimError> {
        let one = Pending {
            name: name.to_owned(),
            path: path.to_owned(),
            bytes,
        };
        self.remove_together(at, vec![one])
    }

    /// Waits until so many bytes may be freed at once.
    pub(super) fn allow(&mut self, device: u64, bytes: u64) -> Result<(), ReclaimError> {
        if let Some((free, mut relay)) = self.free(device) {
            let mut allowed = 0;
            while allowed < bytes {
                allowed += free.allow(bytes - allowed, &mut relay)?;
            }
        }
        Ok(())
    }

    pub(super) fn freed(&mut self, device: u64, bytes: u64) {
        if let Some((free, _)) = self.free(device) {
            free.freed(bytes);
        }
    }
}
