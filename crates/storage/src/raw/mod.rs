//! Claiming a raw block device whose data may be destroyed.
//!
//! A device is claimed only when nobody uses it in any way the kernel knows of. It must hold
//! nothing that would be recognised, or what the caller forces it to destroy. While
//! claimed, the kernel lets nobody mount it.

mod in_use;
mod signatures;

pub use in_use::shared_medium;
pub use signatures::{Signature, signatures};

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::DiscardLimits;
use record::units::names;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::devices;
use linux::SysRoot;
use linux::files::Caching;
use linux::mounts::{DeviceNumber, MountError};

/// A device may be busy for so long: a process that was just killed, or just forked and hasn't run
/// its program yet, releases it in a moment.
const BUSY_FOR: Duration = Duration::from_millis(500);

/// Why a device isn't claimed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RawError {
    #[error("cannot examine {path}: {source}", path = names::shown(path))]
    Path { path: PathBuf, source: io::Error },
    #[error("{path} is not a block device; name one, such as /dev/sdb", path = names::shown(path))]
    NotABlockDevice { path: PathBuf },
    #[error("{path} is not known in /sys; is /sys mounted?", path = names::shown(path))]
    NotInSys { path: PathBuf },
    #[error("{path} is in use: {used}; nothing was touched", path = names::shown(path))]
    InUse { path: PathBuf, used: String },
    #[error("{path} is busy: the kernel says that it is held; see lsblk and fuser {path}", path = names::shown(path))]
    Busy { path: PathBuf },
    #[error("{path} is read-only; see blockdev --setrw {path}", path = names::shown(path))]
    ReadOnly { path: PathBuf },
    #[error("cannot open {path}: it needs root or membership in the device's group", path = names::shown(path))]
    NotPermitted { path: PathBuf },
    #[error("cannot open {path}: {source}", path = names::shown(path))]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} has no size; is there a medium in it?", path = names::shown(path))]
    NoSize { path: PathBuf },
    #[error(
        "{path} holds data: {}; if that may be destroyed, add --force, or wipe it with: wipefs --all {path}",
        names(found),
        path = names::shown(path))]
    Signatures {
        path: PathBuf,
        found: Vec<Signature>,
    },
    #[error("cannot read {path} to see whether it holds data: {source}", path = names::shown(path))]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Mounts(#[from] MountError),
}

fn names(found: &[Signature]) -> String {
    let names: Vec<String> = found
        .iter()
        .map(|one| format!("{} (at byte {})", one.name, one.offset_bytes))
        .collect();
    names.join(", ")
}

/// A block device that is ours alone while this lives.
#[derive(Debug)]
pub struct RawDevice {
    path: PathBuf,
    /// Opened with `O_EXCL`: mounting, swapping and md, dm and btrfs are refused while it is open.
    claim: File,
    name: String,
    discard: DiscardLimits,
    size_bytes: u64,
}

impl RawDevice {
    /// Claims the device at `path` for destruction. Writes nothing.
    /// With `force` known data on it, such as a file system, may be destroyed.
    ///
    /// # Errors
    /// When it isn't a block device, can't be written, has no size, or holds known data without
    /// `force`. Also when it is in use in any way: mounted, swap, held by another
    /// device, claimed by another program, open for writing or mapped by one.
    pub fn claim(path: impl AsRef<Path>, force: bool) -> Result<RawDevice, RawError> {
        let path = path.as_ref().to_path_buf();
        let failed = |source| RawError::Path {
            path: path.clone(),
            source,
        };
        let metadata = std::fs::metadata(&path).map_err(failed)?;
        if !metadata.file_type().is_block_device() {
            return Err(RawError::NotABlockDevice { path });
        }
        let sys = SysRoot::host();
        let not_in_sys = || RawError::NotInSys { path: path.clone() };
        let name = sys
            .device_name(DeviceNumber::from_raw(metadata.rdev()))
            .ok_or_else(not_in_sys)?;
        refuse_used(&sys, &path, &name)?;
        if in_use::is_read_only(&sys, &name) {
            return Err(RawError::ReadOnly { path });
        }
        let claim = open_exclusively(&path)?;
        // The name could have come to mean another device in between.
        if claim.metadata().map_err(failed)?.rdev() != metadata.rdev() {
            return Err(RawError::Busy { path });
        }
        // What was mounted in between would have made the claim fail; but a loop device over this
        // one makes no claim of its own, and neither does a program that writes to it.
        refuse_used(&sys, &path, &name)?;
        let size_bytes = (&claim).seek(SeekFrom::End(0)).map_err(failed)?;
        if size_bytes == 0 {
            return Err(RawError::NoSize { path });
        }
        let found = signatures(&claim, size_bytes).map_err(|source| RawError::Read {
            path: path.clone(),
            source,
        })?;
        if !found.is_empty() && !force {
            return Err(RawError::Signatures { path, found });
        }
        let info = devices::under_device(&sys, &name)
            .ok()
            .and_then(|tree| tree.devices.into_iter().next())
            .ok_or_else(not_in_sys)?;
        Ok(RawDevice {
            path,
            claim,
            name,
            discard: info.discard,
            size_bytes,
        })
    }

    /// The path it was claimed by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its kernel name, e.g. `sdb`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its size, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Its discard limits; `max_bytes` 0 means that it takes none.
    pub fn discard(&self) -> DiscardLimits {
        self.discard
    }

    /// Opens it once more, for reading and writing. The new file stays usable
    /// after this claim is dropped, and then protects nothing.
    pub fn open(&self, caching: Caching) -> Result<File, RawError> {
        let direct = match caching {
            Caching::Direct => OFlags::DIRECT,
            Caching::Buffered => OFlags::empty(),
        };
        // Through the open file, since the path could mean another device by now.
        let own = format!("/proc/self/fd/{}", self.claim.as_raw_fd());
        rustix::fs::open(own, OFlags::RDWR | OFlags::CLOEXEC | direct, Mode::empty())
            .map(File::from)
            .map_err(|errno| RawError::Open {
                path: self.path.clone(),
                source: errno.into(),
            })
    }
}

/// Names a user of the device at `path`; `None` where none is found.
pub fn user(path: &Path) -> Option<String> {
    let sys = SysRoot::host();
    let name = sys.device_at(path)?;
    let used = in_use::used(&sys, &name).ok().flatten();
    used.or_else(|| in_use::opened(&sys, &name))
}

/// Refuses a device that is used, or that a process still has open when it had time to close it.
fn refuse_used(sys: &SysRoot, path: &Path, name: &str) -> Result<(), RawError> {
    let refused = |used| RawError::InUse {
        path: path.to_path_buf(),
        used,
    };
    if let Some(used) = in_use::used(sys, name)? {
        return Err(refused(used));
    }
    let mut opened = None;
    let free = linux::patience::while_is(Errno::BUSY, BUSY_FOR, || {
        opened = in_use::opened(sys, name);
        opened.is_none().then_some(()).ok_or(Errno::BUSY)
    });
    match (free, opened) {
        (Err(_), Some(used)) => Err(refused(used)),
        _ => Ok(()),
    }
}

fn open_exclusively(path: &Path) -> Result<File, RawError> {
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOCTTY;
    let open = || rustix::fs::open(path, flags, Mode::empty());
    linux::patience::while_is(Errno::BUSY, BUSY_FOR, open)
        .map(File::from)
        .map_err(|errno| {
            let path = path.to_path_buf();
            match errno {
                Errno::BUSY => RawError::Busy { path },
                Errno::ROFS => RawError::ReadOnly { path },
                Errno::ACCESS | Errno::PERM => RawError::NotPermitted { path },
                Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM => RawError::NoSize { path },
                errno => RawError::Open {
                    path,
                    source: errno.into(),
                },
            }
        })
}
