//! The only front end: a FUSE file system with one file, `disk`.
//!
//! A loop device with direct I/O over that file turns each block request into one FUSE request.
//! Reads and writes are asynchronous. Discards and flushes come one at a time from each of the loop
//! driver's workers.
//!
//! Where the kernel has them (Linux 6.14), queues over io_uring carry requests and answers. One
//! system call takes an answer and brings the next request, and no other processor is woken.
//! Elsewhere threads read requests from `/dev/fuse` and write the answers to it.

mod message;
mod queues;
mod reply;
mod switch;

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::{fmt, io};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};

pub(crate) use reply::Reply;
pub use switch::put_back_switch;

use crate::device::{Device, Op};
use message::{Init, Request, can, op, out_header};
use queues::{Queues, written};
use reply::{Action, Files, To, answer};
use switch::Switch;

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
    queues: Option<Queues>,
    transport: Transport,
}

/// Bytes of memory that a drive's queues of io_uring may take, where the kernel has them.
pub(crate) fn queues_memory() -> u64 {
    match Switch::system().is_there() {
        true => queues::memory(),
        false => 0,
    }
}

/// Mounts the file on a directory, and serves it until the file system is unmounted.
///
/// `granule`: the discard granularity that the loop device reports, in bytes. `io_uring`: whether
/// queues shall carry the requests, where they can be had. [`Session::transport`] has the outcome.
///
/// # Errors
/// The kernel's error for the mount.
pub(crate) fn mount(
    device: &Arc<Device<Reply>>,
    size: u64,
    granule: u32,
    on: &Path,
    io_uring: bool,
) -> io::Result<Session> {
    let files = Files { size, granule };
    let because = if io_uring {
        match with_queues(device, files, on) {
            Ok(session) => return Ok(session),
            Err(why) => {
                // If there is a mount, this ends the connection, which a queue's thread may keep open,
                // and fails requests that wait for the queues.
                let _ = unmount(on, UnmountFlags::FORCE | UnmountFlags::DETACH);
                why
            }
        }
    } else {
        "io-uring=false was given".to_owned()
    };
    let connection = linux::fuse::open()?;
    linux::fuse::mount_on(&connection, NAME, on)?;
    greet(&connection, 0)?;
    Session::new(
        connection,
        device,
        files,
        on,
        None,
        Transport::DevFuse { because },
    )
}

/// Mounts the file so that queues carry the requests.
///
/// # Errors
/// The reason that there are no queues.
fn with_queues(device: &Arc<Device<Reply>>, files: Files, on: &Path) -> Result<Session, String> {
    let no_queues = || "this kernel has no queues for it (Linux 6.14 does)".to_owned();
    let failed = |error: io::Error| error.to_string();
    // The first to open it may load the module that has the switch.
    let connection = linux::fuse::open().map_err(failed)?;
    let switch = Switch::system();
    let switched_on = switch.on().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => no_queues(),
        _ => failed(error),
    })?;
    linux::fuse::mount_on(&connection, NAME, on).map_err(failed)?;
    let agreed = greet(&connection, can::OVER_IO_URING).map_err(failed)?;
    // The kernel has made its offer, so nobody needs the switch any more.
    drop(switched_on);
    if agreed & can::OVER_IO_URING == 0 {
        return Err(no_queues());
    }
    let queues = Queues::start(&connection, device, files)
        .map_err(|error| format!("its queues can't be made ({error})"))?;
    let session = Session::new(
        connection,
        device,
        files,
        on,
        Some(queues),
        Transport::IoUring,
    );
    session.map_err(failed)
}

impl Session {
    fn new(
        connection: OwnedFd,
        device: &Arc<Device<Reply>>,
        files: Files,
        on: &Path,
        queues: Option<Queues>,
        transport: Transport,
    ) -> io::Result<Session> {
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
            queues,
            transport,
        })
    }

    /// The way that requests come.
    pub(crate) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Whether the file system was unmounted, or a thread has failed.
    pub(crate) fn is_finished(&self) -> bool {
        let queues = self.queues.as_ref().is_some_and(Queues::is_finished);
        queues || self.readers.iter().any(JoinHandle::is_finished)
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
        let readers = ended.collect::<io::Result<()>>();
        readers.and(self.queues.map_or(Ok(()), Queues::join))
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

/// Answers the kernel's first message; returns the flags that hold.
fn greet(connection: &OwnedFd, also: u64) -> io::Result<u64> {
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
    let wanted = can::ASYNC_READ
        | can::BIG_WRITES
        | can::ASYNC_DIO
        | can::PARALLEL_DIROPS
        | can::MAX_PAGES
        | also;
    let out = init.answer(wanted, IN_FLIGHT, PAGES);
    let header = out_header(request.unique, 0, out.bytes().len());
    let answer = [io::IoSlice::new(&header), io::IoSlice::new(out.bytes())];
    rustix::io::writev(connection, &answer)?;
    Ok(init.flags & wanted)
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
                    to: To::Connection(Arc::clone(file)),
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

// The way from the kernel to a drive's server.

/// How the kernel's requests reach a drive's server, and the answers the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "over")]
pub enum Transport {
    /// Through queues of io_uring, one for each processor (Linux 6.14).
    #[serde(rename = "io_uring")]
    IoUring,
    /// By reads and writes of `/dev/fuse`.
    #[serde(rename = "/dev/fuse")]
    DevFuse {
        /// The reason that there are no queues.
        because: String,
    },
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::IoUring => f.write_str("FUSE over io_uring"),
            Transport::DevFuse { because } => write!(f, "FUSE over /dev/fuse, because {because}"),
        }
    }
}
