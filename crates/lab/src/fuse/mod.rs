//! The only front end: a FUSE file system with one file, `disk`.
//!
//! A loop device with direct I/O over that file turns each block request into one FUSE request.
//! Reads and writes are asynchronous. Discards and flushes come one at a time from each of the loop
//! driver's workers.
//!
//! Threads read requests from `/dev/fuse` and write the answers to it.

mod message;
mod reply;

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

pub(crate) use reply::Reply;

use crate::device::{Device, Op};
use message::{Init, Request, can, op, out_header};
use reply::{Action, Files, answer};

/// The one file's name.
pub(crate) const FILE: &str = "disk";

/// The file system's, in the list of mounts.
const NAME: &str = "trimbench-lab";

/// Requests the kernel may have in flight; by default only 16.
const IN_FLIGHT: u16 = 1024;

/// Pages of a request at most: 1 MiB, the kernel's own limit.
const PAGES: u16 = 256;

/// Threads that take requests from `/dev/fuse`. More don't help: each is busy for microseconds, and
/// none ever waits.
const THREADS: usize = 2;

/// A mounted file system and its threads.
#[derive(Debug)]
pub(crate) struct Session {
    on: PathBuf,
    readers: Vec<JoinHandle<io::Result<()>>>,
}

/// Mounts the file on a directory, and serves it until the file system is unmounted.
///
/// `granule`: the discard granularity that the loop device reports, in bytes.
///
/// # Errors
/// The kernel's error for the mount.
pub(crate) fn mount(
    device: &Arc<Device<Reply>>,
    size: u64,
    granule: u32,
    on: &Path,
) -> io::Result<Session> {
    let files = Files { size, granule };
    let connection = linux::fuse::open()?;
    linux::fuse::mount_on(&connection, NAME, on)?;
    greet(&connection)?;
    let mut connections = vec![connection];
    while connections.len() < THREADS {
        connections.push(linux::fuse::clone_of(&connections[0])?);
    }
    let readers = connections.into_iter().enumerate().map(|(number, file)| {
        let device = Arc::clone(device);
        thread::Builder::new()
            .name(format!("lab-fuse-{number}"))
            .spawn(move || serve(&Arc::new(file), &device, files))
    });
    Ok(Session {
        on: on.to_owned(),
        readers: readers.collect::<io::Result<_>>()?,
    })
}

impl Session {
    /// Whether the file system was unmounted, or a thread has failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.readers.iter().any(JoinHandle::is_finished)
    }

    /// Ends a file system of which a thread has failed, and waits for the end of all threads.
    ///
    /// # Errors
    /// The error of the thread that failed.
    pub(crate) fn end(self) -> io::Result<()> {
        // Requests that the thread had taken would never be answered: this fails them. The loop device
        // keeps the mount busy, and whoever takes the drive down finds the device by it. After an
        // unmount there is nothing to do.
        let _ = unmount(&self.on, UnmountFlags::FORCE);
        self.join()
    }

    fn join(self) -> io::Result<()> {
        let ended = self.readers.into_iter().map(|reader| match reader.join() {
            Ok(ended) => ended,
            Err(_) => Err(io::Error::other("a thread panicked")),
        });
        ended.collect()
    }

    /// Unmounts the file system, and waits for its end.
    ///
    /// # Errors
    /// If it is in use.
    pub(crate) fn unmount_and_join(self) -> io::Result<()> {
        unmount(&self.on, UnmountFlags::empty())?;
        self.join()
    }
}

/// Answers the kernel's first message.
fn greet(connection: &OwnedFd) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let len = read(connection, &mut buffer)?;
    let request = Request::whole(&buffer[..len]).filter(|request| request.opcode == op::INIT);
    let init = request.as_ref().and_then(Init::of);
    let (Some(request), Some(init)) = (request, init) else {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel's FUSE is older than 7.23",
        ));
    };
    let wanted =
        can::ASYNC_READ | can::BIG_WRITES | can::ASYNC_DIO | can::PARALLEL_DIROPS | can::MAX_PAGES;
    let out = init.answer(wanted, IN_FLIGHT, PAGES);
    let header = out_header(request.unique, 0, out.bytes().len());
    let answer = [io::IoSlice::new(&header), io::IoSlice::new(out.bytes())];
    rustix::io::writev(connection, &answer)?;
    Ok(())
}

/// Returns the bytes of a drive of this size that a message of the kernel would read or change, and
/// touches none: for tests of the parser with any message.
pub fn reach_of_message(message: &[u8], size: u64) -> Option<Range<u64>> {
    let request = Request::whole(message)?;
    if request.opcode == op::INIT {
        Init::of(&request)?.answer(can::ASYNC_READ, IN_FLIGHT, PAGES);
        return None;
    }
    let files = Files {
        size,
        granule: 4096,
    };
    match files.act(&request) {
        Action::Submit(Op::Read(range) | Op::Discard(range) | Op::Zero(range)) => Some(range),
        Action::Submit(Op::Write(at, data)) => Some(at..at + data.len() as u64),
        Action::Submit(Op::Flush) | Action::Answer(_) | Action::Ignore => None,
    }
}

/// Takes requests from `/dev/fuse`, until the file system is unmounted.
fn serve(file: &Arc<OwnedFd>, device: &Device<Reply>, files: Files) -> io::Result<()> {
    // A write's data, and its headers.
    let mut buffer = vec![0; usize::from(PAGES) * 4096 + 4096];
    loop {
        let len = match read(file, &mut buffer) {
            Ok(len) => len,
            Err(error) if is_the_end(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let Some(request) = Request::whole(&buffer[..len]) else {
            continue;
        };
        let unique = request.unique;
        match files.act(&request) {
            Action::Submit(op) => {
                let reply = Reply {
                    unique,
                    written: written(&op),
                    to: Arc::clone(file),
                };
                device.submit(op, reply);
            }
            Action::Answer(Ok(out)) => answer(file, unique, 0, out.bytes()),
            Action::Answer(Err(errno)) => answer(file, unique, errno.raw_os_error(), &[]),
            Action::Ignore => {}
        }
    }
}

/// Reads one request.
fn read(connection: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(connection, &mut *buffer) {
            // A request that was interrupted before it was read.
            Err(Errno::INTR | Errno::NOENT | Errno::AGAIN) => {}
            read => return Ok(read?),
        }
    }
}

/// Whether an error says that the file system was unmounted or the connection aborted.
fn is_the_end(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    let ends = [Errno::NODEV, Errno::NOTCONN, Errno::CONNABORTED];
    errno.is_some_and(|errno| ends.contains(&errno))
}

/// Bytes of a write, which its answer repeats.
fn written(op: &Op<'_>) -> Option<u32> {
    match op {
        // A request is no longer than a few MiB.
        Op::Write(_, data) => u32::try_from(data.len()).ok(),
        _ => None,
    }
}
