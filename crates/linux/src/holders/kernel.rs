//! The kernel's lists of mount namespaces and of their mounts: `NS_MNT_GET_NEXT` (Linux 6.12),
//! `listmount` and `statmount` of another namespace (6.10).

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::mounts::DeviceNumber;

/// Numbers of the calls, on every architecture but Alpha.
const SYS_STATMOUNT: libc::c_long = 457;
const SYS_LISTMOUNT: libc::c_long = 458;

/// Lists a namespace from its root on (`LSMT_ROOT`).
pub(super) const FROM_ROOT: u64 = u64::MAX;

/// Parts of a description (`STATMOUNT_*`, include/uapi/linux/mount.h).
const FILE_SYSTEM: u64 = 0x1;
const MOUNT: u64 = 0x2;
const ROOT: u64 = 0x8;
const POINT: u64 = 0x10;
const OPTIONS: u64 = 0x80;

/// `OVERLAYFS_SUPER_MAGIC` (include/uapi/linux/magic.h).
const OVERLAY: u64 = 0x794c_7630;

/// The bytes of a description before its strings.
const FIXED: usize = 512;

/// The room for a description in words. Most are short; no path and no options are longer than a
/// page each.
const ROOMS: [usize; 2] = [1 << 9, 16 << 10];

/// `struct mnt_id_req`.
#[repr(C)]
struct Request {
    size: u32,
    spare: u32,
    mount: u64,
    param: u64,
    namespace: u64,
}

/// `struct mnt_ns_info`.
#[repr(C)]
#[derive(Default)]
struct NamespaceInfo {
    size: u32,
    mounts: u32,
    id: u64,
}

/// A mount namespace, kept while this is open.
pub(super) struct Namespace {
    pub(super) file: OwnedFd,
    pub(super) id: u64,
}

/// The direction in which the kernel's list of namespaces is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Direction {
    Next,
    Previous,
}

/// The description of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) device: DeviceNumber,
    pub(super) is_overlay: bool,
    pub(super) parent: u64,
    pub(super) root: PathBuf,
    pub(super) point: PathBuf,
    /// The options of the file system; only of an overlay.
    pub(super) options: Vec<u8>,
}

impl Namespace {
    /// Identifies the namespace of an open descriptor.
    ///
    /// # Errors
    /// The kernel's; `ENOTTY` before Linux 6.12.
    pub(super) fn of(file: OwnedFd) -> Result<Namespace, Errno> {
        let (mut info, _) = ask(file.as_fd(), libc::NS_MNT_GET_INFO)?;
        let id = std::mem::take(&mut info.id);
        Ok(Namespace { file, id })
    }

    /// Returns the namespace beside this one, in the order in which they were made.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn neighbour(&self, direction: Direction) -> Result<Option<Namespace>, Errno> {
        let request = match direction {
            Direction::Next => libc::NS_MNT_GET_NEXT,
            Direction::Previous => libc::NS_MNT_GET_PREV,
        };
        match ask(self.file.as_fd(), request) {
            Ok((info, number)) => {
                // SAFETY: the kernel has just made this descriptor for us.
                let file = unsafe { OwnedFd::from_raw_fd(number) };
                Ok(Some(Namespace { file, id: info.id }))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Fills `ids` with the numbers of mounts below the mount `below`, above the number `after`.
    /// Returns how many there are; fewer than `ids` has room for were the last.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn list(&self, below: u64, after: u64, ids: &mut [u64]) -> Result<usize, Errno> {
        let request = self.request(below, after);
        // SAFETY: the request has the layout of its size, and `ids` has room for so many numbers.
        let count = unsafe {
            libc::syscall(
                SYS_LISTMOUNT,
                &raw const request,
                ids.as_mut_ptr(),
                ids.len(),
                0,
            )
        };
        usize::try_from(count).map_err(|_| last_error())
    }

    /// Describes a mount.
    ///
    /// # Errors
    /// The kernel's; `ENOENT` if it is mounted no more.
    pub(super) fn describe(&self, mount: u64) -> Result<Described, Errno> {
        let found = self.stat(mount, FILE_SYSTEM | MOUNT | ROOT | POINT)?;
        let is_overlay = found.word(3) == OVERLAY;
        let options = match is_overlay {
            true => {
                let found = self.stat(mount, OPTIONS)?;
                found.text(4).to_owned()
            }
            false => Vec::new(),
        };
        let path = |at| PathBuf::from(OsString::from_vec(found.text(at).to_owned()));
        Ok(Described {
            device: DeviceNumber {
                major: found.number(16),
                minor: found.number(20),
            },
            is_overlay,
            parent: found.word(6),
            root: path(104),
            point: path(108),
            options,
        })
    }

    fn stat(&self, mount: u64, parts: u64) -> Result<Raw, Errno> {
        let request = self.request(mount, parts);
        for words in ROOMS {
            let mut raw = Raw(vec![0; words]);
            let size = words * size_of::<u64>();
            // SAFETY: the request has the layout of its size, and the buffer has so many bytes.
            let result = unsafe {
                libc::syscall(
                    SYS_STATMOUNT,
                    &raw const request,
                    raw.0.as_mut_ptr(),
                    size,
                    0,
                )
            };
            match (result, last_error()) {
                (0, _) if raw.word(1) & parts == parts => return Ok(raw),
                (0, _) => return Err(Errno::NODATA),
                (_, Errno::OVERFLOW) => {}
                (_, errno) => return Err(errno),
            }
        }
        Err(Errno::OVERFLOW)
    }

    fn request(&self, mount: u64, param: u64) -> Request {
        Request {
            size: size_of::<Request>() as u32,
            spare: 0,
            mount,
            param,
            namespace: self.id,
        }
    }
}

/// `struct statmount`, with its strings.
struct Raw(Vec<u64>);

impl Raw {
    /// The 64-bit word number `index`.
    fn word(&self, index: usize) -> u64 {
        self.0[index]
    }

    /// The 32-bit number at so many bytes.
    fn number(&self, at: usize) -> u32 {
        let bytes = self.0[at / 8].to_ne_bytes();
        let four = at % 8;
        u32::from_ne_bytes([
            bytes[four],
            bytes[four + 1],
            bytes[four + 2],
            bytes[four + 3],
        ])
    }

    /// The string whose place is at so many bytes.
    fn text(&self, at: usize) -> &[u8] {
        let bytes: &[u8] = as_bytes(&self.0);
        let begin = FIXED + self.number(at) as usize;
        let rest = bytes.get(begin..).unwrap_or_default();
        rest.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

fn as_bytes(words: &[u64]) -> &[u8] {
    // SAFETY: every byte of the words is initialised, and bytes have no alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

fn ask(
    namespace: BorrowedFd<'_>,
    request: libc::Ioctl,
) -> Result<(NamespaceInfo, libc::c_int), Errno> {
    let mut info = NamespaceInfo {
        size: size_of::<NamespaceInfo>() as u32,
        ..NamespaceInfo::default()
    };
    // SAFETY: each of these requests takes a `mnt_ns_info`, which lives through the call.
    let result = unsafe { libc::ioctl(namespace.as_raw_fd(), request, &raw mut info) };
    match result {
        -1 => Err(last_error()),
        number => Ok((info, number)),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
