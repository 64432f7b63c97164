//! Discards switched off for a while, and on again whatever happens; or on, and off again.
//!
//! The measurement's control needs the same mount without discards. Leaving a file system without
//! them for good would be worse than not measuring. So before anything is changed, a child process
//! starts that waits for the end of this one, be it by `kill -9`, and puts the option back. Only
//! killing that child too, or the machine's end, can prevent it; and a remount doesn't outlast the
//! machine's end.
//!
//! The kernel gets only the one option (`fspick`, `fsconfig`; Linux ≥ 5.2), so file systems that
//! keep options which aren't named change nothing else. Others reset options that aren't named to
//! their defaults: ntfs3 gives all files to root and lets everybody read them, f2fs syncs less
//! strictly. So only those known to keep them are remounted.
//!
//! ```no_run
//! use linux::mounts::Mount;
//! use storage::remount::DiscardGuard;
//!
//! let guard = DiscardGuard::off(&Mount::of("/srv")?)?;
//! // … a deletion here sends no discards …
//! guard.restore()?;
//! # Ok::<(), storage::remount::RemountError>(())
//! ```

mod lock;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::DiscardSetting;
use record::units::names;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount as syscalls;

use crate::FileSystem;
use linux::SysRoot;
use linux::mounts::{self, Mount, MountError};
use linux::patience;
use linux::watcher::{Undo, Watcher};
use lock::LockFile;

/// Another guard may hold the file system for so long: that of a process that was just killed is
/// about to restore it and release the lock.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// Why discards were not switched off, or not on again.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RemountError {
    #[error("{path} is mounted without discard already", path = names::shown(path))]
    AlreadyOff { path: PathBuf },
    #[error("{path} is mounted with discard already", path = names::shown(path))]
    AlreadyOn { path: PathBuf },
    #[error(
        "whether {path} ({fs}) sends discards is unknown from its options, so they can't be switched off or on either", path = names::shown(path))]
    Unknown { path: PathBuf, fs: String },
    #[error(
        "{fs} at {path} is not remounted: it may take the options that are not named for its defaults; unmount it and mount it with the option that you want", path = names::shown(path))]
    Forgetful { path: PathBuf, fs: String },
    #[error("{path} is mounted read-only", path = names::shown(path))]
    ReadOnly { path: PathBuf },
    #[error("something else is mounted over {path}", path = names::shown(path))]
    Covered { path: PathBuf },
    #[error("cannot remount {path}: it needs root (CAP_SYS_ADMIN)", path = names::shown(path))]
    NotPermitted { path: PathBuf },
    #[error("cannot remount {path}: this kernel has no fspick (Linux 5.2) or forbids it here", path = names::shown(path))]
    NoSystemCall { path: PathBuf },
    #[error(
        "another process has {path} without discards, or with them, and will restore its options; wait until it has ended", path = names::shown(path))]
    Busy { path: PathBuf },
    #[error(
        "{fs} at {path} stays {stays} discard when it is remounted; unmount it and mount it with -o {option} instead", path = names::shown(path))]
    Kept {
        path: PathBuf,
        fs: String,
        stays: &'static str,
        option: String,
    },
    #[error("cannot open {path}: {source}", path = names::shown(path))]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot remount {path} with {option}: {source}{messages}", path = names::shown(path))]
    Remount {
        path: PathBuf,
        option: String,
        source: io::Error,
        messages: String,
    },
    #[error("cannot start the process that would restore the options of {path}: {source}", path = names::shown(path))]
    Watcher { path: PathBuf, source: io::Error },
    #[error(
        "the options of {path} were {before} and are now {after}; restore them with: mount -o remount,{before} {}",
        names::shown(path), path = names::shown(path))]
    Differs {
        path: PathBuf,
        before: String,
        after: String,
    },
    #[error(
        "{path} is still {how} discard: {why}; restore it with: mount -o remount,{option} {}",
        names::shown(path), path = names::shown(path))]
    NotRestored {
        path: PathBuf,
        how: &'static str,
        option: String,
        why: Box<RemountError>,
    },
    #[error(transparent)]
    Mounts(#[from] MountError),
}

/// An option of a file system, as `fsconfig` takes it.
#[derive(Debug, Clone)]
struct FsOption {
    key: CString,
    value: Option<CString>,
}

impl FsOption {
    fn new(key: &str, value: &str) -> Option<FsOption> {
        let value = match value {
            "" => None,
            value => Some(CString::new(value).ok()?),
        };
        Some(FsOption {
            key: CString::new(key).ok()?,
            value,
        })
    }

    /// Reconfigures the file system mounted at an open directory. Allocates
    /// nothing, so that a forked child may call it. The descriptor holds what
    /// the kernel has to say.
    fn apply(&self, mounted: impl AsFd) -> Result<(), (Errno, Option<OwnedFd>)> {
        let flags =
            syscalls::FsPickFlags::FSPICK_CLOEXEC | syscalls::FsPickFlags::FSPICK_EMPTY_PATH;
        let context = syscalls::fspick(mounted, c"", flags).map_err(|errno| (errno, None))?;
        let set = match &self.value {
            None => syscalls::fsconfig_set_flag(&context, self.key.as_c_str()),
            Some(value) => {
                syscalls::fsconfig_set_string(&context, self.key.as_c_str(), value.as_c_str())
            }
        };
        match set.and_then(|()| syscalls::fsconfig_reconfigure(&context)) {
            Ok(()) => Ok(()),
            Err(errno) => Err((errno, Some(context))),
        }
    }

    fn text(&self) -> String {
        let key = self.key.to_string_lossy();
        match &self.value {
            None => key.into_owned(),
            Some(value) => format!("{key}={}", value.to_string_lossy()),
        }
    }
}

impl Undo for FsOption {
    fn undo(&self, mounted: BorrowedFd<'_>) -> bool {
        self.apply(mounted).is_ok()
    }
}

/// The setting that discards are switched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Off,
    On,
}

impl To {
    /// Whether a mount is so.
    fn holds(self, mount: &Mount) -> bool {
        let setting = FileSystem::mounted(mount).discard_setting(mount);
        let on = matches!(setting, DiscardSetting::On | DiscardSetting::Async);
        on == (self == To::On)
    }

    /// The option that makes a mount so.
    fn option(self, mount: &Mount) -> FsOption {
        let option = match self {
            To::Off => FsOption::new("nodiscard", ""),
            To::On => {
                let value = FileSystem::mounted(mount).default_discard();
                FsOption::new("discard", value.unwrap_or(""))
            }
        };
        option.expect("no option here has a zero byte")
    }

    /// How a mount is then.
    fn in_words(self) -> &'static str {
        match self {
            To::Off => "without",
            To::On => "with",
        }
    }

    /// How it is otherwise.
    fn opposite(self) -> &'static str {
        match self {
            To::Off => To::On.in_words(),
            To::On => To::Off.in_words(),
        }
    }
}

/// A mount whose discards are switched off, or on. It is again as it was when this
/// is dropped, and when this process ends in any way.
#[derive(Debug)]
pub struct DiscardGuard {
    before: Mount,
    to: To,
    restore: FsOption,
    /// The mount's root and its file system, locked (the watcher has both, too) until all is
    /// restored.
    mounted: Locked,
    /// `None` once restored.
    watcher: Option<Watcher>,
}

impl DiscardGuard {
    /// Remounts a mount without discards.
    ///
    /// # Errors
    /// When it has none, when it can't be remounted (root is needed; XFS takes the option only when
    /// it is mounted), or when another process has it remounted now. Then nothing has changed.
    pub fn off(mount: &Mount) -> Result<DiscardGuard, RemountError> {
        DiscardGuard::switch(mount, To::Off)
    }

    /// Remounts a mount with discards; btrfs with `discard=async`.
    ///
    /// # Errors
    /// When it has them already, and as [`DiscardGuard::off`].
    pub fn on(mount: &Mount) -> Result<DiscardGuard, RemountError> {
        DiscardGuard::switch(mount, To::On)
    }

    fn switch(mount: &Mount, to: To) -> Result<DiscardGuard, RemountError> {
        let path = mount.mount_point.clone();
        // The lock first: what is read under it, nobody else is about to restore.
        let mounted = open_locked(mount)?;
        let before = current(mount)?;
        let restore = restoring(&before, to)?;
        if before.read_only() {
            return Err(RemountError::ReadOnly { path });
        }
        let lock = mounted.lock.as_ref().map(AsFd::as_fd);
        let watcher = Watcher::start(&mounted.root, lock, &restore).map_err(|source| {
            RemountError::Watcher {
                path: path.clone(),
                source,
            }
        })?;
        let guard = DiscardGuard {
            before,
            to,
            restore,
            mounted,
            watcher: Some(watcher),
        };
        // From here on, dropping the guard restores.
        let option = to.option(&guard.before);
        reconfigure(&guard.mounted.root, &option, &path)?;
        if !to.holds(&current(&guard.before)?) {
            return Err(RemountError::Kept {
                path,
                fs: guard.before.fs.clone(),
                stays: to.opposite(),
                option: option.text(),
            });
        }
        Ok(guard)
    }

    /// Finds out whether a mount could be remounted without discards, as far as
    /// that shows without doing it.
    ///
    /// # Errors
    /// Those of [`DiscardGuard::off`], but for what the file system itself refuses.
    pub fn check_off(mount: &Mount) -> Result<(), RemountError> {
        let path = mount.mount_point.clone();
        let mounted = open_locked(mount)?;
        let before = current(mount)?;
        restoring(&before, To::Off)?;
        if before.read_only() {
            return Err(RemountError::ReadOnly { path });
        }
        let flags =
            syscalls::FsPickFlags::FSPICK_CLOEXEC | syscalls::FsPickFlags::FSPICK_EMPTY_PATH;
        // Asks for the right to mount, and changes nothing before a reconfiguration.
        match syscalls::fspick(&mounted.root, c"", flags) {
            Ok(_) => Ok(()),
            Err(Errno::NOSYS) => Err(RemountError::NoSystemCall { path }),
            Err(Errno::PERM) => Err(RemountError::NotPermitted { path }),
            Err(errno) => Err(RemountError::Open {
                path,
                source: errno.into(),
            }),
        }
    }

    /// Leaves the mount as it was switched, until it is unmounted.
    pub fn keep(mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.dismiss();
        }
    }

    /// Switches discards back and makes sure that all options are as they were.
    ///
    /// # Errors
    /// When that can't be done, not even after some ten seconds of trying; or
    /// when another option has changed meanwhile. It says how to restore it.
    pub fn restore(mut self) -> Result<(), RemountError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), RemountError> {
        let Some(watcher) = self.watcher.take() else {
            return Ok(());
        };
        match self.switch_back() {
            Ok(()) => watcher.dismiss(),
            // It goes on trying for a while.
            Err(why) => {
                if !watcher.restore() {
                    return Err(RemountError::NotRestored {
                        path: self.before.mount_point.clone(),
                        how: self.to.in_words(),
                        option: self.restore.text(),
                        why: Box::new(why),
                    });
                }
            }
        }
        let now = current(&self.before)?;
        if now.super_options != self.before.super_options
            || now.mount_options != self.before.mount_options
        {
            return Err(RemountError::Differs {
                path: self.before.mount_point.clone(),
                before: self.before.options().join(","),
                after: now.options().join(","),
            });
        }
        Ok(())
    }

    fn switch_back(&self) -> Result<(), RemountError> {
        // Nothing to do when switching failed, or was ignored.
        if current(&self.before)?.super_options != self.before.super_options {
            reconfigure(&self.mounted.root, &self.restore, &self.before.mount_point)?;
        }
        Ok(())
    }
}

impl Drop for DiscardGuard {
    fn drop(&mut self) {
        // Nobody is left to tell: whoever can be told calls restore.
        let _ = self.put_back();
    }
}

/// The same mount as it is once nobody has it who will restore its options: a guard, or
/// what watches for one that was just killed.
///
/// # Errors
/// When another process goes on having it, or it is gone.
pub fn settled(mount: &Mount) -> Result<Mount, RemountError> {
    let _locked = open_locked(mount)?;
    current(mount)
}

/// A mount's root, open and locked, and the lock of its file system.
#[derive(Debug)]
struct Locked {
    root: OwnedFd,
    /// `None` where there is no place for it.
    lock: Option<LockFile>,
}

/// Opens a mount's root and locks its file system against other guards.
fn open_locked(mount: &Mount) -> Result<Locked, RemountError> {
    let path = || mount.mount_point.clone();
    let failed = |errno: Errno| RemountError::Open {
        path: path(),
        source: errno.into(),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(&mount.mount_point, flags, Mode::empty()).map_err(failed)?;
    let opened = Mount::of(format!("/proc/self/fd/{}", root.as_raw_fd()))?;
    if opened.id != mount.id {
        return Err(RemountError::Covered { path: path() });
    }
    let lock = |fd: BorrowedFd<'_>| {
        let take = || rustix::fs::flock(fd, FlockOperation::NonBlockingLockExclusive);
        patience::while_is(Errno::WOULDBLOCK, BUSY_FOR, take).map_err(|errno| match errno {
            Errno::WOULDBLOCK => RemountError::Busy { path: path() },
            errno => failed(errno),
        })
    };
    lock(root.as_fd())?;
    let lock = LockFile::lock(mount.device, lock)?;
    Ok(Locked { root, lock })
}

/// The option that puts a mount's discards back exactly as they are.
fn restoring(mount: &Mount, to: To) -> Result<FsOption, RemountError> {
    let path = || mount.mount_point.clone();
    let unknown = || RemountError::Unknown {
        path: path(),
        fs: mount.fs.clone(),
    };
    let setting = FileSystem::mounted(mount).discard_setting(mount);
    let switches = !matches!(
        setting,
        DiscardSetting::Unsupported | DiscardSetting::Unknown
    );
    if switches && !FileSystem::mounted(mount).keeps_options() {
        return Err(RemountError::Forgetful {
            path: path(),
            fs: mount.fs.clone(),
        });
    }
    match (setting, to) {
        (DiscardSetting::On | DiscardSetting::Async, To::Off) => {
            let value = mount.super_option("discard").unwrap_or("");
            FsOption::new("discard", value).ok_or_else(unknown)
        }
        (DiscardSetting::Off, To::On) => FsOption::new("nodiscard", "").ok_or_else(unknown),
        (DiscardSetting::Off | DiscardSetting::Unsupported, _) => {
            Err(RemountError::AlreadyOff { path: path() })
        }
        (DiscardSetting::On | DiscardSetting::Async, To::On) => {
            Err(RemountError::AlreadyOn { path: path() })
        }
        (DiscardSetting::Unknown, _) => Err(unknown()),
    }
}

/// The same mount, as it is now.
fn current(mount: &Mount) -> Result<Mount, RemountError> {
    mounts::list(&SysRoot::host())?
        .into_iter()
        .find(|now| now.id == mount.id)
        .ok_or_else(|| {
            RemountError::Mounts(MountError::NotListed {
                path: mount.mount_point.clone(),
            })
        })
}

fn reconfigure(mounted: &OwnedFd, option: &FsOption, path: &Path) -> Result<(), RemountError> {
    let path = || path.to_path_buf();
    option
        .apply(mounted)
        .map_err(|(errno, context)| match errno {
            Errno::PERM | Errno::ACCESS => RemountError::NotPermitted { path: path() },
            Errno::NOSYS => RemountError::NoSystemCall { path: path() },
            errno => RemountError::Remount {
                path: path(),
                option: option.text(),
                source: errno.into(),
                messages: context.map(messages).unwrap_or_default(),
            },
        })
}

/// The kernel's messages in a configuration context: one per read, after a letter and a space.
fn messages(context: OwnedFd) -> String {
    let mut all = String::new();
    let mut message = [0u8; 512];
    while let Ok(length @ 1..) = rustix::io::read(&context, &mut message) {
        let text = String::from_utf8_lossy(&message[..length]);
        let text = text.trim_end();
        all.push_str("; ");
        all.push_str(text.get(2..).unwrap_or(text));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(fs: &str, options: &str) -> Mount {
        let line = format!("1 1 8:1 / /mnt rw,relatime - {fs} /dev/sda1 {options}\n");
        mounts::parse(line.as_bytes()).remove(0)
    }

    #[test]
    fn restores_exactly_what_was_there() {
        let of = |fs, options| restoring(&mount(fs, options), To::Off).map(|option| option.text());
        assert_eq!(of("ext4", "rw,discard,data=ordered").unwrap(), "discard");
        assert_eq!(of("btrfs", "rw,discard=async").unwrap(), "discard=async");
        assert_eq!(of("btrfs", "rw,discard").unwrap(), "discard");
        assert!(matches!(
            of("ext4", "rw"),
            Err(RemountError::AlreadyOff { .. })
        ));
        assert!(matches!(
            of("nfs4", "rw"),
            Err(RemountError::Unknown { .. })
        ));
        for (fs, options) in [
            ("ntfs3", "rw,uid=1000,umask=077,discard"),
            ("f2fs", "rw,discard,fsync_mode=strict"),
        ] {
            let refused = of(fs, options);
            assert!(
                matches!(refused, Err(RemountError::Forgetful { .. })),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn memory_has_nothing_to_switch_off() {
        if let Ok(memory) = Mount::of("/dev/shm")
            && memory.fs == "tmpfs"
        {
            let refused = DiscardGuard::off(&memory).unwrap_err();
            assert!(
                matches!(refused, RemountError::AlreadyOff { .. }),
                "{refused}"
            );
        }
    }
}
