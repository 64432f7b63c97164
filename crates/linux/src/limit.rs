//! How large a discard may be: `queue/discard_max_bytes`, changed for a while and
//! put back whatever happens.
//!
//! As with a remount, a child process waits for the end of this one, be it by `kill -9`, and puts
//! the value back. The kernel takes multiples of the granularity only (Linux 6.12,
//! block/blk-sysfs.c) and cuts a larger value to the hardware's limit. So a driver's own odd limit
//! comes back with the next multiple above it. And it takes no number above 4 GiB − 1
//! (`queue_var_store` there, Linux 4.2 to 6.18), though NVMe drives start with 2 TiB. Such a limit,
//! once it was changed, comes back with the next start only. [`back`] computes
//! the value to write.
//!
//! ```no_run
//! use linux::{SysRoot, limit::LimitGuard};
//!
//! let guard = LimitGuard::take(&SysRoot::host(), "sda1")?;
//! guard.set(16 << 20)?;
//! // … no discard here is larger than 16 MiB …
//! guard.restore()?;
//! # Ok::<(), linux::limit::LimitError>(())
//! ```

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use record::units::names;

use crate::SysRoot;
use crate::patience;
use crate::sysroot::number;
use crate::watcher::{Undo, Watcher};

/// For so long another process may hold the limit: one that was just killed is
/// about to put it back.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// The largest number that the kernel takes for a limit.
const MOST: u64 = u32::MAX as u64;

/// Why a limit was not set, or not put back.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LimitError {
    #[error("{device} has no queue that /sys/class/block shows")]
    NoQueue { device: String },
    #[error("{device} takes no discards ({file} is 0)", file = names::shown(file))]
    None { device: String, file: PathBuf },
    #[error("cannot open {}: {source}{}", names::shown(file), root_needed(source))]
    Open { file: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", names::shown(file))]
    Read { file: PathBuf, source: io::Error },
    #[error(
        "another process has changed {} and will put it back; wait until it has ended",
        names::shown(file)
    )]
    Busy { file: PathBuf },
    #[error(
        "cannot start the process that would put {} back: {source}",
        names::shown(file)
    )]
    Watcher { file: PathBuf, source: io::Error },
    #[error("cannot write {bytes} to {}: {source}", names::shown(file))]
    Write {
        file: PathBuf,
        bytes: u64,
        source: io::Error,
    },
    #[error("{} was to become {asked} and is {now}", names::shown(file))]
    Ignored { file: PathBuf, asked: u64, now: u64 },
    #[error(
        "{} is {now} and was {before}; put it back with: echo {before} > {}",
        names::shown(file),
        names::shown(file)
    )]
    NotRestored {
        file: PathBuf,
        before: u64,
        now: u64,
    },
}

fn root_needed(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; it needs root",
        _ => "",
    }
}

/// A device's limit, ours to change. It is again what it was, or as near to it as the
/// kernel lets it, when this is dropped, and when this process ends in any way.
#[derive(Debug)]
pub struct LimitGuard {
    /// Kernel name of the whole device.
    device: String,
    path: PathBuf,
    /// Open for reading and writing, and locked (by the watcher too) until the value is back.
    file: File,
    before_bytes: u64,
    /// The value that is there after it is put back.
    back_bytes: u64,
    back: Back,
    /// `None` once it is back.
    watcher: Option<Watcher>,
}

/// The value to write to get the old value back.
#[derive(Debug)]
struct Back {
    /// The old value.
    before: String,
    /// The text to write.
    asked: String,
}

impl Undo for Back {
    fn undo(&self, on: BorrowedFd<'_>) -> bool {
        let mut text = [0u8; 32];
        let length = rustix::io::pread(on, &mut text, 0).unwrap_or(0);
        // Where nothing was set, nothing is written: not every value comes back so.
        text[..length].trim_ascii_end() == self.before.as_bytes()
            || rustix::io::pwrite(on, self.asked.as_bytes(), 0) == Ok(self.asked.len())
    }
}

impl LimitGuard {
    /// Takes the limit of a device (a partition's is its drive's), and changes
    /// nothing yet.
    ///
    /// # Errors
    /// When there is none, it is 0, it isn't ours to write, or another process has it.
    pub fn take(sys: &SysRoot, device: &str) -> Result<LimitGuard, LimitError> {
        let whole = whole(sys, device).ok_or_else(|| LimitError::NoQueue {
            device: device.to_owned(),
        })?;
        let queue = sys.class(&whole).join("queue");
        let path = queue.join("discard_max_bytes");
        let open = |source| LimitError::Open {
            file: path.clone(),
            source,
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).open(&path).map_err(open)?;
        let lock = || rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        patience::while_is(Errno::WOULDBLOCK, BUSY_FOR, lock).map_err(|errno| match errno {
            Errno::WOULDBLOCK => LimitError::Busy { file: path.clone() },
            errno => open(errno.into()),
        })?;
        let before_bytes = read(&file).map_err(|source| LimitError::Read {
            file: path.clone(),
            source,
        })?;
        if before_bytes == 0 {
            return Err(LimitError::None {
                device: whole,
                file: path,
            });
        }
        let granularity = number(&queue.join("discard_granularity")).unwrap_or(1);
        let most = most(before_bytes, granularity);
        let (back, back_bytes) = match back(before_bytes, granularity) {
            Some(back) => (back, before_bytes),
            None => (most, most),
        };
        let back = Back {
            before: before_bytes.to_string(),
            asked: back.to_string(),
        };
        let watcher = Watcher::start(&file, None, &back).map_err(|source| LimitError::Watcher {
            file: path.clone(),
            source,
        })?;
        Ok(LimitGuard {
            device: whole,
            path,
            file,
            before_bytes,
            back_bytes,
            back,
            watcher: Some(watcher),
        })
    }

    /// Kernel name of the device whose limit it is.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The value before, in bytes.
    pub fn before_bytes(&self) -> u64 {
        self.before_bytes
    }

    /// Sets the limit, a multiple of the granularity above 0, in bytes.
    ///
    /// # Errors
    /// When the kernel refuses it, or makes something else of it.
    pub fn set(&self, bytes: u64) -> Result<(), LimitError> {
        if bytes == self.before_bytes {
            return self.put_back();
        }
        self.write(&bytes.to_string(), bytes)?;
        match self.now()? {
            now if now == bytes => Ok(()),
            now => Err(LimitError::Ignored {
                file: self.path.clone(),
                asked: bytes,
                now,
            }),
        }
    }

    /// Puts the old value back, or the one nearest to it that the kernel takes.
    ///
    /// # Errors
    /// When that can't be done. It says how.
    pub fn restore(mut self) -> Result<(), LimitError> {
        self.end()
    }

    /// Leaves the limit as it is now.
    pub fn keep(mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.dismiss();
        }
    }

    fn end(&mut self) -> Result<(), LimitError> {
        let Some(watcher) = self.watcher.take() else {
            return Ok(());
        };
        match self.put_back() {
            Ok(()) => watcher.dismiss(),
            // It goes on trying for a while.
            Err(error) if !watcher.restore() => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }

    fn put_back(&self) -> Result<(), LimitError> {
        let is_back = |now| now == self.before_bytes || now == self.back_bytes;
        if !is_back(self.now()?) {
            self.write(&self.back.asked, self.back_bytes)?;
        }
        match self.now()? {
            now if is_back(now) => Ok(()),
            now => Err(LimitError::NotRestored {
                file: self.path.clone(),
                before: self.back_bytes,
                now,
            }),
        }
    }

    fn now(&self) -> Result<u64, LimitError> {
        read(&self.file).map_err(|source| LimitError::Read {
            file: self.path.clone(),
            source,
        })
    }

    fn write(&self, text: &str, bytes: u64) -> Result<(), LimitError> {
        let written = self.file.write_all_at(text.as_bytes(), 0);
        written.map_err(|source| LimitError::Write {
            file: self.path.clone(),
            bytes,
            source,
        })
    }
}

impl Drop for LimitGuard {
    fn drop(&mut self) {
        // Nobody is left to tell: whoever can be told calls restore.
        let _ = self.end();
    }
}

/// Kernel name of the drive whose queue a device uses: itself, or what it is a
/// partition of.
pub fn whole(sys: &SysRoot, device: &str) -> Option<String> {
    let own = fs::canonicalize(sys.class(device)).ok()?;
    let whole = match own.join("partition").exists() {
        true => own.parent()?,
        false => &own,
    };
    let name = whole.file_name()?.to_str()?;
    whole.join("queue").is_dir().then(|| name.to_owned())
}

/// `discard_max_bytes` of a whole device as it is now, in bytes; `None` where it can't be read.
pub fn bytes_of(sys: &SysRoot, device: &str) -> Option<u64> {
    number(&sys.class(device).join("queue/discard_max_bytes"))
}

/// The largest limit that can be set for discards of up to `hw_bytes`: whole granules,
/// and no more than the kernel takes.
pub fn most(hw_bytes: u64, granularity: u64) -> u64 {
    let granularity = granularity.max(1);
    hw_bytes.min(MOST) / granularity * granularity
}

/// The value to write for a limit to return to `bytes`, which it is now: the least multiple of the
/// granularity that isn't below. `None`: the kernel takes none such.
pub fn back(bytes: u64, granularity: u64) -> Option<u64> {
    bytes
        .checked_next_multiple_of(granularity.max(1))
        .filter(|&back| back <= MOST)
}

fn read(file: &File) -> io::Result<u64> {
    let mut text = [0u8; 32];
    let length = file.read_at(&mut text, 0)?;
    let text = std::str::from_utf8(&text[..length]).map_err(io::Error::other)?;
    text.trim().parse().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use testkit::Machine;

    #[test]
    fn an_odd_limit_is_asked_for_by_the_granule_above_it() {
        assert_eq!(back((1 << 30) - 512, 4096), Some(1 << 30));
        assert_eq!(back(1 << 30, 4096), Some(1 << 30));
        assert_eq!(back(1 << 30, 0), Some(1 << 30));
        assert_eq!(back(u64::MAX, 4096), None);
    }

    #[test]
    fn what_the_kernel_takes_no_more_is_told() {
        // An NVMe drive's, and a loop device's.
        assert_eq!(back((1 << 41) - 512, 512), None);
        assert_eq!(back(4_294_966_784, 4096), None);
        assert_eq!(back(4_294_963_200, 4096), Some(4_294_963_200));
        assert_eq!(most((1 << 41) - 512, 512), 4_294_966_784);
        assert_eq!(most(4_294_966_784, 4096), 4_294_963_200);
        assert_eq!(most(1 << 30, 0), 1 << 30);
    }

    #[test]
    fn what_has_no_queue_or_takes_no_discards_is_said() {
        let machine = Machine::new("");
        machine.device("pci/sda", "8:0", Some(0));
        let taken = |device| LimitGuard::take(&SysRoot::at(machine.root()), device).unwrap_err();
        assert!(matches!(taken("nosuch"), LimitError::NoQueue { .. }));
        assert!(matches!(taken("sda"), LimitError::None { .. }));
    }

    #[test]
    fn sets_and_puts_back() {
        let machine = Machine::new("");
        machine.device("pci/sda", "8:0", Some(1 << 30));
        let guard = LimitGuard::take(&SysRoot::at(machine.root()), "sda").unwrap();
        assert_eq!((guard.device(), guard.before_bytes()), ("sda", 1 << 30));
        let busy = LimitGuard::take(&SysRoot::at(machine.root()), "sda").unwrap_err();
        assert!(matches!(busy, LimitError::Busy { .. }), "{busy}");
        guard.set(1_234_567_890).unwrap();
        let file = SysRoot::at(machine.root())
            .class("sda")
            .join("queue/discard_max_bytes");
        assert_eq!(fs::read_to_string(&file).unwrap().trim(), "1234567890");
        guard.restore().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap().trim(), "1073741824");
    }

    #[test]
    fn what_cannot_come_back_comes_as_near_as_it_can() {
        let machine = Machine::new("");
        machine.device("pci/nvme0n1", "259:0", Some(8 << 30));
        let file = SysRoot::at(machine.root())
            .class("nvme0n1")
            .join("queue/discard_max_bytes");
        let guard = LimitGuard::take(&SysRoot::at(machine.root()), "nvme0n1").unwrap();
        guard.set(guard.before_bytes()).unwrap();
        assert_eq!(number(&file), 8 << 30);
        guard.set(1 << 30).unwrap();
        guard.set(guard.before_bytes()).unwrap();
        guard.restore().unwrap();
        assert_eq!(number(&file), (1 << 32) - 512);
    }

    #[test]
    fn a_watcher_leaves_alone_what_is_as_it_was() {
        let machine = Machine::new("");
        machine.device("pci/nvme0n1", "259:0", Some(8 << 30));
        let path = SysRoot::at(machine.root())
            .class("nvme0n1")
            .join("queue/discard_max_bytes");
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.unwrap();
        let back = Back {
            before: (8u64 << 30).to_string(),
            asked: "4294966784".to_owned(),
        };
        assert!(back.undo(file.as_fd()));
        assert_eq!(number(&path), 8 << 30);
        fs::write(&path, "1073741824\n").unwrap();
        assert!(back.undo(file.as_fd()));
        assert_eq!(number(&path), (1 << 32) - 512);
    }

    fn number(file: &std::path::Path) -> u64 {
        fs::read_to_string(file).unwrap().trim().parse().unwrap()
    }
}
