//! Reports of the kernel about new names and closed files on a whole file system.
//!
//! Each report names a directory, by a handle, and a name in it (`FAN_REPORT_DFID_NAME`, Linux 5.9;
//! fanotify(7)). A program that changes a file never waits for the reader of the reports.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A report that holds a handle of a directory and a name (Linux, include/uapi/linux/fanotify.h).
const INFO_DFID_NAME: u8 = 2;
/// `struct fanotify_event_metadata` has this length.
const METADATA: usize = 24;
/// `struct fanotify_event_info_header` and the file system's number come before the handle.
const BEFORE_HANDLE: usize = 12;

/// Reports of one file system.
#[derive(Debug)]
pub struct Changes {
    group: OwnedFd,
    buffer: Vec<u8>,
}

/// A handle of a directory, as the kernel gives it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle {
    /// `struct file_handle`: the length, the kind and the bytes.
    bytes: Vec<u8>,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A name appeared in a directory, or a file that was open for writing was closed.
    Name {
        /// The directory.
        directory: Handle,
        /// The name in it.
        name: CString,
        /// It is a directory.
        is_directory: bool,
        /// A file that was open for writing was closed.
        closed: bool,
    },
    /// Reports were lost.
    Lost,
}

impl Changes {
    /// Asks for reports about the file system of an open directory.
    ///
    /// # Errors
    /// The kernel's: `EPERM` without `CAP_SYS_ADMIN`, `EINVAL` before Linux 5.9, `ENODEV` or
    /// `EXDEV` where the file system has no handles or many numbers (btrfs subvolumes).
    pub fn of(directory: impl AsFd) -> io::Result<Changes> {
        let report = libc::FAN_REPORT_DIR_FID | libc::FAN_REPORT_NAME;
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | report;
        // SAFETY: takes two numbers.
        let group = unsafe { libc::fanotify_init(flags, libc::O_RDONLY as libc::c_uint) };
        if group < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just made, and nobody else has it.
        let group = unsafe { OwnedFd::from_raw_fd(group) };
        let mask = libc::FAN_CREATE | libc::FAN_MOVED_TO | libc::FAN_CLOSE_WRITE | libc::FAN_ONDIR;
        // SAFETY: both descriptors are open; the path is a constant.
        let marked = unsafe {
            libc::fanotify_mark(
                group.as_raw_fd(),
                libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM,
                mask,
                directory.as_fd().as_raw_fd(),
                c".".as_ptr(),
            )
        };
        match marked {
            0 => Ok(Changes {
                group,
                buffer: vec![0; 64 << 10],
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits for reports, for at most so long, and returns those that came.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, at_most: Duration) -> io::Result<Vec<Change>> {
        let timeout = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        let mut ready = [PollFd::new(&self.group, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        match rustix::io::read(&self.group, &mut self.buffer) {
            Ok(length) => Ok(parse(&self.buffer[..length])),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(Vec::new()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Handle {
    /// Opens the directory, as a path alone. `on`: any open file of its file system.
    ///
    /// # Errors
    /// The kernel's: `ESTALE` where it is gone, `EPERM` without `CAP_DAC_READ_SEARCH`.
    pub fn open(&self, on: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // The kernel wants the numbers before the bytes aligned.
        let mut aligned = vec![0u32; self.bytes.len().div_ceil(4)];
        for (word, bytes) in aligned.iter_mut().zip(self.bytes.chunks(4)) {
            let mut four = [0; 4];
            four[..bytes.len()].copy_from_slice(bytes);
            *word = u32::from_ne_bytes(four);
        }
        // SAFETY: the handle is whole, as `parse` made sure: its first number is the length of
        // the bytes after the second. It is only read.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                on.as_raw_fd(),
                aligned.as_mut_ptr(),
                flags,
            )
        };
        match i32::try_from(opened) {
            // SAFETY: the kernel has just opened it for us.
            Ok(opened) if opened >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(opened) }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The reports in a buffer that the kernel filled. Leaves out the reports that it doesn't understand.
fn parse(mut buffer: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    while let (Some(length), Some(mask)) = (u32_at(buffer, 0), u64_at(buffer, 8)) {
        let length = length as usize;
        if length < METADATA || length > buffer.len() {
            break;
        }
        let (event, rest) = buffer.split_at(length);
        buffer = rest;
        if mask & libc::FAN_Q_OVERFLOW != 0 {
            changes.push(Change::Lost);
            continue;
        }
        if let Some((directory, name)) = named(&event[METADATA..]) {
            changes.push(Change::Name {
                directory,
                name,
                is_directory: mask & libc::FAN_ONDIR != 0,
                closed: mask & libc::FAN_CLOSE_WRITE != 0,
            });
        }
    }
    changes
}

/// The directory and the name among the parts of a report.
fn named(mut parts: &[u8]) -> Option<(Handle, CString)> {
    loop {
        let kind = *parts.first()?;
        let length = usize::from(u16::from_ne_bytes(parts.get(2..4)?.try_into().ok()?));
        let part = parts
            .get(..length)
            .filter(|part| part.len() > BEFORE_HANDLE)?;
        if kind == INFO_DFID_NAME {
            let handle = &part[BEFORE_HANDLE..];
            let bytes = u32_at(handle, 0)? as usize;
            let end = bytes.checked_add(8)?;
            let name = CStr::from_bytes_until_nul(handle.get(end..)?).ok()?;
            let bytes = handle.get(..end)?.to_vec();
            return Some((Handle { bytes }, name.to_owned()));
        }
        parts = &parts[length..];
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_new_file_is_reported_with_its_directory() {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let open = std::fs::File::open(place.path()).unwrap();
        let mut changes = match Changes::of(&open) {
            Ok(changes) => changes,
            Err(error) => {
                // Without root, or in a container that forbids it.
                eprintln!("skipped: no fanotify here: {error}");
                return;
            }
        };
        std::fs::write(place.path().join("new"), "1").unwrap();
        let own = rustix::fs::fstat(&open).unwrap().st_ino;
        let began = std::time::Instant::now();
        // The kernel may merge the report of the creation with that of the close.
        let mut was_closed = false;
        while !was_closed {
            assert!(began.elapsed() < Duration::from_secs(20), "no report");
            for change in changes.wait(Duration::from_millis(100)).unwrap() {
                let Change::Name {
                    directory,
                    name,
                    is_directory,
                    closed,
                } = change
                else {
                    continue;
                };
                let Ok(directory) = directory.open(open.as_fd()) else {
                    continue;
                };
                if rustix::fs::fstat(&directory).unwrap().st_ino == own {
                    assert!(name.as_c_str() == c"new" && !is_directory);
                    was_closed |= closed;
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            parse(&bytes);
        }

        #[test]
        fn a_report_is_read_as_it_was_written(
            handle in prop::collection::vec(any::<u8>(), 0..40),
            name in "[a-z]{1,20}",
            directory in any::<bool>(),
        ) {
            let mut part = vec![INFO_DFID_NAME, 0, 0, 0];
            part.extend([7; 8]);
            let mut whole = (handle.len() as u32).to_ne_bytes().to_vec();
            whole.extend(1u32.to_ne_bytes());
            whole.extend(&handle);
            part.extend(&whole);
            part.extend(name.as_bytes());
            part.push(0);
            let length = part.len() as u16;
            part[2..4].copy_from_slice(&length.to_ne_bytes());
            let mut event = ((METADATA + part.len()) as u32).to_ne_bytes().to_vec();
            event.extend([3, 0, 24, 0]);
            let mask = libc::FAN_CREATE | if directory { libc::FAN_ONDIR } else { 0 };
            event.extend(mask.to_ne_bytes());
            event.extend([0xff; 8]);
            event.extend(&part);
            let two = [event.clone(), event].concat();
            let name = CString::new(name).unwrap();
            let one = Change::Name {
                directory: Handle { bytes: whole },
                name,
                is_directory: directory,
                closed: false,
            };
            prop_assert_eq!(parse(&two), vec![one.clone(), one]);
        }
    }
}
