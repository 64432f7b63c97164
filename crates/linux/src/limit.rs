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

use std::path::{Path, PathBuf};
use std::{fs, io};

use record::units::names;

use crate::SysRoot;
use crate::sysroot::number;
use crate::watcher::{self, Before, Setting};

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
    setting: Setting,
    before_bytes: u64,
    /// The value that is there after it is put back.
    back_bytes: u64,
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
        let file = Setting::lock(&path).map_err(|source| match source.kind() {
            io::ErrorKind::ResourceBusy => LimitError::Busy { file: path.clone() },
            _ => LimitError::Open {
                file: path.clone(),
                source,
            },
        })?;
        let before_bytes = watcher::number(&file).map_err(|error| unread(&path, error))?;
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
        let before = Before {
            unchanged: before_bytes.to_string(),
            text: back.to_string(),
        };
        let setting = Setting::take(file, before).map_err(|source| LimitError::Watcher {
            file: path.clone(),
            source,
        })?;
        Ok(LimitGuard {
            device: whole,
            path,
            setting,
            before_bytes,
            back_bytes,
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
            let wanted = [self.before_bytes, self.back_bytes];
            return put_back(&self.setting, &self.path, wanted);
        }
        write(&self.setting, &self.path, &bytes.to_string(), bytes)?;
        match self
            .setting
            .number()
            .map_err(|error| unread(&self.path, error))?
        {
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
        let (path, wanted) = (self.path.clone(), [self.before_bytes, self.back_bytes]);
        self.setting
            .restore(|setting| put_back(setting, &path, wanted))
    }

    /// Leaves the limit as it is now.
    pub fn keep(mut self) {
        self.setting.keep();
    }
}

/// Writes the old value, unless one of those that are as good is there.
fn put_back(setting: &Setting, path: &Path, [before, back]: [u64; 2]) -> Result<(), LimitError> {
    let now = || setting.number().map_err(|error| unread(path, error));
    let is_back = |now| now == before || now == back;
    if !is_back(now()?) {
        write(setting, path, &setting.before.text, back)?;
    }
    match now()? {
        now if is_back(now) => Ok(()),
        now => Err(LimitError::NotRestored {
            file: path.to_owned(),
            before: back,
            now,
        }),
    }
}

fn write(setting: &Setting, path: &Path, text: &str, bytes: u64) -> Result<(), LimitError> {
    setting.write(text).map_err(|source| LimitError::Write {
        file: path.to_owned(),
        bytes,
        source,
    })
}

fn unread(path: &Path, source: io::Error) -> LimitError {
    LimitError::Read {
        file: path.to_owned(),
        source,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watcher::Undo;
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
        let file = fs::OpenOptions::new().read(true).write(true).open(&path);
        let file = file.unwrap();
        let back = Before {
            unchanged: (8u64 << 30).to_string(),
            text: "4294966784".to_owned(),
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
