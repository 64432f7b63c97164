//! The front end there is: a FUSE file system with one file, `disk`.
//!
//! A loop device with direct I/O over that file turns block requests into FUSE
//! requests one to one: reads and writes are asynchronous; discards and flushes
//! come one at a time from each of the loop driver's workers.
//!
//! Two roads lead from the kernel here. Threads read requests from `/dev/fuse` and write the
//! answers to it. Where the kernel has it (Linux 6.14), queues over io_uring carry them instead.
//! That takes one system call for an answer and the next request, and wakes no other processor.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use crate::device::Device;

mod files;
mod message;
mod queues;
mod reply;
mod switch;

use files::{Action, Files};
use message::{Init, Request, can, op, out_header};
use queues::{Queues, written};
pub(crate) use reply::Reply;
use reply::{To, answer};
pub(crate) use switch::Switch;

/// The one file's name.
pub(crate) const FILE: &str = "disk";
/// The file system's, in the list of mounts.
const NAME: &str = "trimbench-lab";

/// Requests the kernel may have in flight; by default only 16.
const IN_FLIGHT: u16 = 1024;
/// Pages of a request at most: 1 MiB, the kernel's own limit.
const PAGES: u16 = 256;
/// Threads that take requests from `/dev/fuse`. More don't help: each is busy
/// for microseconds, and none ever waits.
const THREADS: usize = 2;

/// A mounted file system and its threads.
#[derive(Debug)]
pub(crate) struct Session {
    on: PathBuf,
    readers: Vec<JoinHandle<io::Result<()>>>,
    queues: Option<Queues>,
}

/// Mounts the file on a directory, and serves it until the file system is unmounted.
///
/// `granule`: the loop device's discard granularity, in bytes. `over_io_uring`: whether requests
/// shall come through queues, where the kernel has them. Else the old road does, and the reason is
/// returned.
///
/// # Errors
/// The error of mounting.
pub(crate) fn mount(
    device: &Arc<Device<Reply>>,
    size: u64,
    granule: u32,
    on: &Path,
    over_io_uring: bool,
) -> io::Result<(Session, Option<io::Error>)> {
    let files = Files { size, granule };
    let mut why = None;
    if over_io_uring {
        let switch = Switch::system();
        let made = switch.on().and_then(|on_now| {
            let made = Session::new(device, files, on, can::OVER_IO_URING);
            // The kernel has answered, so nobody needs the switch any more.
            drop(on_now);
            made
        });
        match made {
            Ok(session) => return Ok((session, None)),
            Err(error) => why = Some(error),
        }
        // The connection is gone, and its mount may be there.
        let _ = unmount(on, UnmountFlags::DETACH);
    }
    Ok((Session::new(device, files, on, 0)?, why))
}

impl Session {
    fn new(device: &Arc<Device<Reply>>, files: Files, on: &Path, also: u64) -> io::Result<Session> {
        let connection = linux::fuse::open()?;
        linux::fuse::mount_on(&connection, NAME, on)?;
        let agreed = greet(&connection, also)?;
        if agreed & also != also {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel offers no queues",
            ));
        }
        let queues = match also {
            0 => None,
            _ => Some(Queues::start(&connection, device, files)?),
        };
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
        })
    }

    /// Whether requests come through queues of io_uring.
    pub(crate) fn is_over_io_uring(&self) -> bool {
        self.queues.is_some()
    }

    /// Whether the file system was unmounted.
    pub(crate) fn is_finished(&self) -> bool {
        self.readers.iter().any(JoinHandle::is_finished)
    }

    /// Waits for the end of a file system that was unmounted.
    ///
    /// # Errors
    /// The error of the thread that ended otherwise.
    pub(crate) fn join(self) -> io::Result<()> {
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
