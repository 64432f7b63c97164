//! A queue of a FUSE connection over io_uring: the requests of one processor.
//!
//! An entry is memory for one request and its answer. It belongs to the kernel while it waits for
//! a request, and to the holder of the [`Entry`] afterwards. The kernel fills the entry that became
//! free last. So no more entries take up memory than were in use at once.

use std::alloc::{Layout, alloc_zeroed};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::abi::{self, Cqe, GeteventsArg, Params, Sqe, Timespec};

/// Bytes of an entry's header: 128 for the request's or the answer's, 128 for the operation's, and
/// 32 about the entry (`struct fuse_uring_req_header`).
pub const HEADER_BYTES: usize = 288;
/// Where in the header the kernel says what to commit, and the size of the payload.
const COMMIT_ID: usize = 264;
const PAYLOAD_BYTES: usize = 272;
/// In the place of an entry: the bell rang.
const BELL: u64 = 0;

/// Memory for one request, and then for its answer.
#[derive(Debug)]
pub struct Entry(Box<Memory>);

#[derive(Debug)]
struct Memory {
    header: [u8; HEADER_BYTES],
    payload: Box<[u8]>,
    /// The two above, for the kernel.
    vectors: [[u64; 2]; 2],
    /// Which of the queue's entries it is.
    index: usize,
}

impl Entry {
    /// Which of its queue's entries it is, from 0.
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// The header: of the request, until an answer is written over it.
    pub fn header(&self) -> &[u8; HEADER_BYTES] {
        &self.0.header
    }

    /// The request's data behind the operation's own header.
    pub fn payload(&self) -> &[u8] {
        let len = u32_at(&self.0.header, PAYLOAD_BYTES) as usize;
        &self.0.payload[..len.min(self.0.payload.len())]
    }

    /// Room for the answer's data.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.0.payload
    }

    /// Makes it an answer: a header of at most 128 bytes, and the first `payload` bytes of the data.
    pub fn answer(&mut self, header: &[u8], payload: u32) {
        let len = header.len().min(128);
        self.0.header[..len].copy_from_slice(&header[..len]);
        self.0.header[PAYLOAD_BYTES..PAYLOAD_BYTES + 4].copy_from_slice(&payload.to_ne_bytes());
    }

    fn commit_id(&self) -> u64 {
        let mut id = [0; 8];
        id.copy_from_slice(&self.0.header[COMMIT_ID..COMMIT_ID + 8]);
        u64::from_ne_bytes(id)
    }
}

/// Zeroed memory, which takes no room until it is written. Unlike `vec!` this survives a system that
/// refuses so much address space.
fn zeroed(len: usize) -> io::Result<Box<[u8]>> {
    let layout = Layout::array::<u8>(len.max(1)).map_err(|_| ErrorKind::OutOfMemory)?;
    // SAFETY: the layout has a size.
    let at = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(ErrorKind::OutOfMemory)?;
    let slice = NonNull::slice_from_raw_parts(at, layout.size());
    // SAFETY: these bytes are initialized and belong to nobody else, and a box of them is freed with
    // this layout.
    Ok(unsafe { Box::from_raw(slice.as_ptr()) })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}

/// A queue, used by the thread that made it.
#[derive(Debug)]
pub struct Queue {
    number: u16,
    bell: OwnedFd,
    /// Where the bell's count is read to: the kernel's while the ring lives.
    rung: NonNull<u64>,
    next: u32,
    /// Entries whose requests came before the first [`Queue::wait`].
    early: Vec<Entry>,
    sq: SubmissionRing,
    cq: CompletionRing,
    /// Closed before the mappings go.
    ring: OwnedFd,
    connection: OwnedFd,
    _maps: [Map; 2],
}

#[derive(Debug)]
struct SubmissionRing {
    head: NonNull<AtomicU32>,
    tail: NonNull<AtomicU32>,
    mask: u32,
    sqes: NonNull<Sqe>,
}

#[derive(Debug)]
struct CompletionRing {
    head: NonNull<AtomicU32>,
    tail: NonNull<AtomicU32>,
    mask: u32,
    cqes: NonNull<Cqe>,
}

#[derive(Debug)]
struct Map {
    at: NonNull<u8>,
    len: usize,
}

impl Map {
    fn new(ring: &OwnedFd, len: usize, offset: u64) -> io::Result<Map> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping where the kernel likes it; nothing else lies there.
        let at = unsafe { mmap(std::ptr::null_mut(), len, access, flags, ring, offset) }?;
        let at = NonNull::new(at.cast()).ok_or(ErrorKind::OutOfMemory)?;
        Ok(Map { at, len })
    }

    /// # Safety
    /// A `T` lies there, within the mapping.
    unsafe fn at<T>(&self, offset: u32) -> NonNull<T> {
        // SAFETY: within the mapping, the caller says.
        unsafe { self.at.add(offset as usize) }.cast()
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: it is ours alone, and the rings that point into it go with it.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}

impl Queue {
    /// Makes queue `number`, that of a processor, with so many entries of so many bytes of payload,
    /// and gives all of them to the kernel.
    ///
    /// # Errors
    /// If there is no io_uring for this process, or the connection takes no queues.
    pub fn new(
        connection: OwnedFd,
        number: u16,
        entries: u16,
        payload: usize,
    ) -> io::Result<Queue> {
        let mut params = Params {
            flags: abi::SETUP_SQE128
                | abi::SETUP_SUBMIT_ALL
                | abi::SETUP_SINGLE_ISSUER
                | abi::SETUP_DEFER_TASKRUN,
            ..Params::default()
        };
        let wanted = u32::from(entries) + 1;
        // SAFETY: the kernel writes into the structure, which outlives the call.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, wanted, &raw mut params) };
        let fd = i32::try_from(fd).unwrap_or(-1);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new file that nobody else has.
        let ring = unsafe { OwnedFd::from_raw_fd(fd) };
        if params.features & abi::FEAT_SINGLE_MMAP == 0 {
            return Err(ErrorKind::Unsupported.into());
        }
        let (sq, cq) = (&params.sq_off, &params.cq_off);
        let sq_len = sq.array + params.sq_entries * 4;
        let cq_len = cq.cqes + params.cq_entries * size_of::<Cqe>() as u32;
        let rings = Map::new(&ring, sq_len.max(cq_len) as usize, abi::OFF_SQ_RING)?;
        let sqes_len = params.sq_entries as usize * size_of::<Sqe>();
        let sqes = Map::new(&ring, sqes_len, abi::OFF_SQES)?;
        // SAFETY: the kernel gives the places of these aligned words in the mapping, which lives
        // as long as the queue.
        let word = |offset| unsafe { rings.at::<AtomicU32>(offset) };
        // SAFETY: as above.
        let read = |offset| unsafe { word(offset).as_ref() }.load(Ordering::Relaxed);
        for i in 0..params.sq_entries {
            // SAFETY: as above; entry i of the array is entry i of the ring, for good.
            unsafe { word(sq.array + i * 4).as_ref() }.store(i, Ordering::Relaxed);
        }
        let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?;
        let mut queue = Queue {
            number,
            bell,
            rung: NonNull::from(Box::leak(Box::new(0))),
            next: read(sq.tail),
            early: Vec::new(),
            sq: SubmissionRing {
                head: word(sq.head),
                tail: word(sq.tail),
                mask: read(sq.ring_mask),
                // SAFETY: the mapping begins with the first entry.
                sqes: unsafe { sqes.at(0) },
            },
            cq: CompletionRing {
                head: word(cq.head),
                tail: word(cq.tail),
                mask: read(cq.ring_mask),
                // SAFETY: as above.
                cqes: unsafe { rings.at(cq.cqes) },
            },
            ring,
            connection,
            _maps: [rings, sqes],
        };
        queue.listen();
        for index in 0..entries.into() {
            queue.register(index, zeroed(payload)?);
        }
        queue.enter(0, None)?;
        // A connection that takes no queues says so at once. One whose last queue this is may send a
        // request at once.
        let mut early = Vec::new();
        queue.reap(&mut early)?;
        queue.early = early;
        Ok(queue)
    }

    /// A file that wakes [`Queue::wait`] when 8 bytes, a number other than 0, are written to it.
    ///
    /// # Errors
    /// If there are too many open files.
    pub fn bell(&self) -> io::Result<OwnedFd> {
        self.bell.try_clone()
    }

    /// Gives an entry back: with an answer, and for the next request. It reaches the kernel with
    /// the next [`Queue::wait`].
    pub fn commit(&mut self, entry: Entry) {
        let id = entry.commit_id();
        self.arm(entry, abi::COMMIT_AND_FETCH, id);
    }

    /// Gives the kernel all answers, waits for a request or the bell, and appends the entries of
    /// all requests that came. `span`: the longest wait; `None`: as long as it takes.
    ///
    /// # Errors
    /// `ENOTCONN` or `ECONNABORTED` when the connection has ended; the error of `io_uring_enter`.
    pub fn wait(&mut self, span: Option<Duration>, came: &mut Vec<Entry>) -> io::Result<()> {
        let wait = u32::from(self.early.is_empty());
        came.append(&mut self.early);
        match self.enter(wait, span) {
            // A signal, or the end of the span; or the kernel had no memory for a submission, and
            // takes it the next time.
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
                    || error.raw_os_error() == Some(libc::ETIME) => {}
            done => done?,
        }
        self.reap(came)
    }

    /// Appends the entries of all requests that came; the last error of one that failed.
    fn reap(&mut self, came: &mut Vec<Entry>) -> io::Result<()> {
        // SAFETY: the words lie in the mapping, and only this thread writes the head.
        let (head_word, tail) = unsafe { (self.cq.head.as_ref(), self.cq.tail.as_ref()) };
        let mut head = head_word.load(Ordering::Relaxed);
        let tail = tail.load(Ordering::Acquire);
        let (mut rang, mut outcome) = (false, Ok(()));
        while head != tail {
            // SAFETY: the kernel has written this entry before it moved the tail.
            let cqe = unsafe { self.cq.cqes.add((head & self.cq.mask) as usize).read() };
            head = head.wrapping_add(1);
            if cqe.user_data == BELL {
                rang = true;
                continue;
            }
            // SAFETY: the pointer is of the box that `arm` gave to the kernel. The completion gives
            // it back, exactly once.
            let memory = unsafe { Box::from_raw(cqe.user_data as *mut Memory) };
            match cqe.res {
                0.. => came.push(Entry(memory)),
                errno => outcome = Err(io::Error::from_raw_os_error(-errno)),
            }
        }
        head_word.store(head, Ordering::Release);
        if rang {
            self.listen();
        }
        outcome
    }

    fn register(&mut self, index: usize, payload: Box<[u8]>) {
        let len = payload.len() as u64;
        let mut memory = Box::new(Memory {
            header: [0; HEADER_BYTES],
            payload,
            vectors: [[0; 2]; 2],
            index,
        });
        memory.vectors = [
            [memory.header.as_mut_ptr() as u64, HEADER_BYTES as u64],
            [memory.payload.as_mut_ptr() as u64, len],
        ];
        self.arm(Entry(memory), abi::REGISTER, 0);
    }

    /// Lets the kernel have an entry, until it completes.
    fn arm(&mut self, entry: Entry, number: u32, commit_id: u64) {
        let connection = self.connection.as_raw_fd();
        let memory = Box::into_raw(entry.0);
        // SAFETY: the box was just taken apart, so the pointer is valid.
        let vectors = unsafe { &raw const (*memory).vectors } as u64;
        let vectors = if number == abi::REGISTER { vectors } else { 0 };
        self.push(Sqe::fuse(
            connection,
            number,
            self.number,
            vectors,
            commit_id,
            memory as u64,
        ));
    }

    fn listen(&mut self) {
        let (bell, into) = (self.bell.as_raw_fd(), self.rung.as_ptr() as u64);
        self.push(Sqe::read(bell, into, 8, BELL));
    }

    /// There is always room: an entry is with the kernel or with the caller, and so is the bell.
    fn push(&mut self, sqe: Sqe) {
        let at = (self.next & self.sq.mask) as usize;
        // SAFETY: within the ring; the kernel reads it only once the tail has passed it.
        unsafe { self.sq.sqes.add(at).write(sqe) };
        self.next = self.next.wrapping_add(1);
        // SAFETY: the word lies in the mapping; only this thread writes it.
        unsafe { self.sq.tail.as_ref() }.store(self.next, Ordering::Release);
    }

    /// Submits all, and waits for so many completions, or for the span.
    fn enter(&self, wait: u32, span: Option<Duration>) -> io::Result<()> {
        // SAFETY: the word lies in the mapping.
        let taken = unsafe { self.sq.head.as_ref() }.load(Ordering::Acquire);
        let submit = self.next.wrapping_sub(taken);
        let time = span.map(Timespec::of);
        let time_at = time.as_ref().map_or(0, |time| &raw const *time as u64);
        let arg = GeteventsArg::timeout(time_at);
        // SAFETY: the memory that the entries point to is the kernel's until they complete. The
        // argument and its time outlive the call.
        let done = unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.ring.as_raw_fd(),
                submit,
                wait,
                abi::ENTER_GETEVENTS | abi::ENTER_EXT_ARG,
                &raw const arg,
                size_of::<GeteventsArg>(),
            )
        };
        match done {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
