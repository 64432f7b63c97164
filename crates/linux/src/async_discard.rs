//! The trimmer of btrfs itself (`discard=async`): how many discards a second it may send.
//!
//! `/sys/fs/btrfs/UUID/discard/iops_limit` is changed for a while, and put back whatever happens: a
//! child process waits for the end of this one, as for a device's limit ([`crate::limit`]). The
//! kernel then waits 1000 / limit ms from one discard to the next (Linux 6.12,
//! `btrfs_discard_calc_delay`); at 0 it takes six hours for all that waits.

use std::io;
use std::path::PathBuf;

use crate::SysRoot;
use crate::sysroot::number;
use crate::watcher::{Before, Setting};

/// The largest limit that the kernel keeps apart: it counts whole milliseconds.
pub const MOST_PER_S: u32 = 1000;

/// The limit of a mounted btrfs, ours to change. It is again what it was when this is dropped, and
/// when this process ends in any way.
#[derive(Debug)]
pub struct AsyncDiscard {
    directory: PathBuf,
    setting: Setting,
}

/// The free space that the trimmer hasn't discarded yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Bytes.
    pub bytes: u64,
    /// In so many extents.
    pub extents: u64,
}

/// Where the trimmer of a btrfs has its files.
fn directory(sys: &SysRoot, uuid: &str) -> PathBuf {
    sys.path(format!("/sys/fs/btrfs/{uuid}/discard"))
}

impl AsyncDiscard {
    /// Takes the limit of the btrfs with this UUID, and changes nothing yet.
    ///
    /// # Errors
    /// When the kernel has none (before Linux 6.1), when it isn't ours to write, or when another
    /// process has changed it and will put it back (`ResourceBusy`).
    pub fn take(sys: &SysRoot, uuid: &str) -> io::Result<AsyncDiscard> {
        let directory = directory(sys, uuid);
        let path = directory.join("iops_limit");
        let file = Setting::lock(&path)?;
        let text = std::fs::read_to_string(path)?;
        let before = Before {
            unchanged: text.clone(),
            text,
        };
        Ok(AsyncDiscard {
            directory,
            setting: Setting::take(file, before)?,
        })
    }

    /// The limit before.
    pub fn before(&self) -> &str {
        self.setting.before.text.trim()
    }

    /// From now on at most so many discards a second, 1 to [`MOST_PER_S`].
    ///
    /// # Errors
    /// The kernel's error, as after an unmount.
    pub fn set(&self, per_second: u32) -> io::Result<()> {
        let text = per_second.clamp(1, MOST_PER_S).to_string();
        self.setting.write(&text)
    }

    /// Puts the old limit back.
    ///
    /// # Errors
    /// The kernel's error, as after an unmount.
    pub fn restore(mut self) -> io::Result<()> {
        self.setting.restore(Setting::put_back)
    }

    /// The free space that isn't discarded yet.
    pub fn waiting(&self) -> Waiting {
        Waiting {
            bytes: self.number("discardable_bytes"),
            extents: self.number("discardable_extents"),
        }
    }

    /// Bytes that the trimmer has discarded since the mount, and those that were used again before it
    /// came to them.
    pub fn settled_bytes(&self) -> (u64, u64) {
        let discarded = self.number("discard_extent_bytes") + self.number("discard_bitmap_bytes");
        (discarded, self.number("discard_bytes_saved"))
    }

    /// A counter; 0 where it can't be read, or is below 0 for a moment.
    fn number(&self, name: &str) -> u64 {
        number(&self.directory.join(name)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_limit_is_changed_and_put_back() {
        let root = tempfile::tempdir().unwrap();
        let sys = SysRoot::at(root.path());
        let directory = directory(&sys, "u-u");
        fs::create_dir_all(&directory).unwrap();
        for (name, value) in [
            ("iops_limit", "1000\n"),
            ("discardable_bytes", "-4096\n"),
            ("discardable_extents", "3\n"),
            ("discard_extent_bytes", "8192\n"),
            ("discard_bitmap_bytes", "4096\n"),
            ("discard_bytes_saved", "7\n"),
        ] {
            fs::write(directory.join(name), value).unwrap();
        }
        assert!(AsyncDiscard::take(&sys, "other").is_err());
        let taken = AsyncDiscard::take(&sys, "u-u").unwrap();
        assert_eq!(taken.before(), "1000");
        let again = AsyncDiscard::take(&sys, "u-u").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::ResourceBusy);
        let (bytes, extents) = (0, 3);
        assert_eq!(taken.waiting(), Waiting { bytes, extents });
        assert_eq!(taken.settled_bytes(), (12288, 7));
        let limit = || fs::read_to_string(directory.join("iops_limit")).unwrap();
        taken.set(5000).unwrap();
        assert_eq!(limit(), "1000\n");
        taken.set(7).unwrap();
        assert_eq!(&limit()[..1], "7");
        drop(taken);
        assert_eq!(limit(), "1000\n");
    }
}
