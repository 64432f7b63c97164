//! An io_uring: two rings shared with the kernel, one to submit, one to reap.
//!
//! It is our own rather than a library's, because this loop's cost decides the benchmark's quality.
//! It needs three things in one place. The set-up flags that make a ring cheap are dropped one by
//! one where the kernel is too old for them. One system call submits and waits. Reaping needs none.
//!
//! The layout is that of `include/uapi/linux/io_uring.h`, Linux 6.12.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

mod abi;
mod area;

pub use abi::{Cqe, Sqe};
pub use area::Area;

/// The flag with which the device interrupts, and a system call submits and waits.
pub const INTERRUPT: u32 = 0;
/// The flag with which the waiting thread polls the device: direct I/O alone, on a device with
/// queues for it.
pub const IOPOLL: u32 = abi::SETUP_IOPOLL;
/// The flag with which a kernel thread polls the submission ring. This side polls the completion
/// ring for 50 µs before it waits in the kernel.
pub const SQPOLL: u32 = abi::SETUP_SQPOLL;

/// For so long the completion ring is polled.
const SPIN: Duration = Duration::from_micros(50);

/// Time without a submission after which the kernel thread of [`SQPOLL`] sleeps, in
/// milliseconds.
const SQ_IDLE_MS: u32 = 10;

/// A ring of its own, used by the thread that made it (`IORING_SETUP_SINGLE_ISSUER`).
#[derive(Debug)]
pub struct Ring {
    submit: Submission,
    complete: Completion,
    /// The file that `io_uring_enter` is called with or, cheaper, its registered index.
    enter_fd: RawFd,
    enter_flags: u32,
    setup_flags: u32,
    /// Dropped last: the rings above point into these.
    _maps: Vec<area::Mapping>,
    fd: OwnedFd,
}

#[derive(Debug)]
struct Submission {
    tail: NonNull<AtomicU32>,
    head: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    mask: u32,
    entries: u32,
    sqes: NonNull<Sqe>,
    /// Where the next entry goes; ahead of `tail` until [`Ring::enter`].
    next: u32,
    /// Entries the kernel has taken.
    taken: u32,
}

#[derive(Debug)]
struct Completion {
    head: NonNull<AtomicU32>,
    tail: NonNull<AtomicU32>,
    mask: u32,
    cqes: NonNull<Cqe>,
}

impl Ring {
    /// Makes a ring of at least `entries` (1 to 16384) submissions and twice the completions.
    ///
    /// # Errors
    /// The error of `io_uring_setup` or `mmap`; `Unsupported` on kernels before 5.11, which can't
    /// wait with a time-out.
    pub fn new(entries: u32) -> io::Result<Ring> {
        Ring::polling(entries, INTERRUPT)
    }

    /// The same, with another way of submitting and completing.
    ///
    /// # Errors
    /// Those of [`Ring::new`].
    pub fn polling(entries: u32, polling: u32) -> io::Result<Ring> {
        let mut params = abi::Params::default();
        let fd = setup(entries.next_power_of_two(), polling, &mut params)?;
        if params.features & abi::FEAT_EXT_ARG == 0 || params.features & abi::FEAT_SINGLE_MMAP == 0
        {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let raw = fd.as_raw_fd();
        let (sq, cq) = (&params.sq_off, &params.cq_off);
        let has_array = params.flags & abi::SETUP_NO_SQARRAY == 0;
        let sq_len = if has_array {
            sq.array + params.sq_entries * 4
        } else {
            0
        };
        let cq_len = cq.cqes + params.cq_entries * size_of::<Cqe>() as u32;
        let rings = area::Mapping::of_ring(raw, sq_len.max(cq_len) as usize, abi::OFF_SQ_RING)?;
        let sqes_len = params.sq_entries as usize * size_of::<Sqe>();
        let sqes = area::Mapping::of_ring(raw, sqes_len, abi::OFF_SQES)?;

        // SAFETY: the kernel says where in the mapping these aligned words
        // are, and the mapping outlives the ring.
        let word = |offset: u32| unsafe { rings.at::<AtomicU32>(offset as usize) };
        let read = |offset: u32| {
            // SAFETY: as above.
            unsafe { word(offset).as_ref() }.load(Ordering::Relaxed)
        };
        if has_array {
            for i in 0..params.sq_entries {
                // SAFETY: as above; entry i of the array is entry i of the ring, for good.
                unsafe { word(sq.array + i * 4).as_ref() }.store(i, Ordering::Relaxed);
            }
        }
        let start = read(sq.tail);
        let mut ring = Ring {
            submit: Submission {
                tail: word(sq.tail),
                head: word(sq.head),
                flags: word(sq.flags),
                mask: read(sq.ring_mask),
                entries: params.sq_entries,
                // SAFETY: as above.
                sqes: unsafe { sqes.at::<Sqe>(0) },
                next: start,
                taken: start,
            },
            complete: Completion {
                head: word(cq.head),
                tail: word(cq.tail),
                mask: read(cq.ring_mask),
                // SAFETY: as above.
                cqes: unsafe { rings.at::<Cqe>(cq.cqes as usize) },
            },
            enter_fd: raw,
            enter_flags: if params.features & abi::FEAT_NO_IOWAIT != 0 {
                abi::ENTER_NO_IOWAIT
            } else {
                0
            },
            setup_flags: params.flags,
            _maps: vec![rings, sqes],
            fd,
        };
        ring.register_itself();
        Ok(ring)
    }

    /// Lets later calls name the ring by index: saves a look-up of the file each time.
    fn register_itself(&mut self) {
        let mut update = abi::RsrcUpdate {
            offset: u32::MAX,
            resv: 0,
            data: self.fd.as_raw_fd() as u64,
        };
        // SAFETY: one valid update, as the count of 1 says; the kernel writes the index back.
        let done = unsafe { self.register(abi::REGISTER_RING_FDS, (&raw mut update).cast(), 1) };
        if done.is_ok_and(|n| n == 1) {
            self.enter_fd = update.offset as RawFd;
            self.enter_flags |= abi::ENTER_REGISTERED_RING;
        }
    }

    /// Registers one file; entries name it by index 0 with [`Sqe::fixed_file`].
    ///
    /// # Errors
    /// The kernel's error; entries then name the file itself.
    pub fn register_file(&mut self, fd: RawFd) -> io::Result<()> {
        let mut fd: i32 = fd;
        // SAFETY: an array of one descriptor.
        unsafe { self.register(abi::REGISTER_FILES, (&raw mut fd).cast(), 1) }.map(drop)
    }

    /// Lets the registered file go, now: a ring that is dropped does so later,
    /// in the background, and until then its file system can't be unmounted.
    /// Waits for what is in flight.
    pub fn unregister_file(&mut self) {
        // SAFETY: nothing is passed.
        let done = unsafe { self.register(abi::UNREGISTER_FILES, std::ptr::null_mut(), 0) };
        // None was registered: nothing to do.
        drop(done);
    }

    /// Registers memory, pinned until the ring is dropped, as buffer 0.
    ///
    /// # Errors
    /// `ENOMEM` where the limit on locked memory forbids it.
    pub fn register_area(&mut self, area: &Area) -> io::Result<()> {
        let mut iovec = libc::iovec {
            iov_base: area.as_ptr().cast(),
            iov_len: area.len(),
        };
        // SAFETY: an array of one vector over memory that is mapped.
        unsafe { self.register(abi::REGISTER_BUFFERS, (&raw mut iovec).cast(), 1) }.map(drop)
    }

    /// # Safety
    /// `arg` points to `count` items of the kind `opcode` asks for.
    unsafe fn register(&self, opcode: u32, arg: *mut libc::c_void, count: u32) -> io::Result<u32> {
        let fd = self.fd.as_raw_fd();
        // SAFETY: as the caller promises.
        let n = unsafe { libc::syscall(libc::SYS_io_uring_register, fd, opcode, arg, count) };
        if n < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(n as u32)
    }

    /// Submissions it has room for.
    pub fn entries(&self) -> u32 {
        self.submit.entries
    }

    /// Puts an entry into the ring; the kernel sees it at the next [`Ring::enter`].
    ///
    /// # Safety
    /// Buffers the entry names live until its completion has been reaped.
    ///
    /// # Panics
    /// When the ring is full: its owner keeps no more in flight than it has entries.
    #[inline]
    pub unsafe fn push(&mut self, sqe: Sqe) {
        let s = &mut self.submit;
        assert!(
            s.next.wrapping_sub(s.taken) < s.entries,
            "submission ring overrun"
        );
        // SAFETY: masked, so inside the mapping; the kernel doesn't read it before `tail` moves.
        unsafe { s.sqes.add((s.next & s.mask) as usize).write(sqe) };
        s.next = s.next.wrapping_add(1);
    }

    /// Submits what was pushed, waits for `wait` completions (0: only collects
    /// what is there), at most `timeout`.
    ///
    /// # Errors
    /// `EINTR`; `EAGAIN` and `EBUSY` when the kernel is short of memory or
    /// completions have to be reaped first: what wasn't taken is submitted by the
    /// next call. A time-out is no error.
    #[inline]
    pub fn enter(&mut self, wait: u32, timeout: Option<Duration>) -> io::Result<()> {
        let to_submit = self.submit.next.wrapping_sub(self.submit.taken);
        // SAFETY: points into the mapping. Release: the entries are written before.
        unsafe { self.submit.tail.as_ref() }.store(self.submit.next, Ordering::Release);
        let mut flags = self.enter_flags | abi::ENTER_GETEVENTS;
        if self.setup_flags & abi::SETUP_SQPOLL != 0 {
            self.submit.taken = self.submit.next;
            if !self.wakes_up() && self.polled(wait, timeout) {
                return Ok(());
            }
            flags |= abi::ENTER_SQ_WAKEUP;
        }
        let n = match timeout {
            None => {
                // SAFETY: no memory is passed.
                unsafe { self.enter_raw(to_submit, wait, flags, std::ptr::null(), 0) }
            }
            Some(timeout) => {
                let time = abi::Timespec::from(timeout);
                let arg = abi::GeteventsArg {
                    ts: (&raw const time) as u64,
                    ..abi::GeteventsArg::default()
                };
                let (arg, size) = ((&raw const arg).cast(), size_of::<abi::GeteventsArg>());
                // SAFETY: both structs live until the call returns.
                unsafe { self.enter_raw(to_submit, wait, flags | abi::ENTER_EXT_ARG, arg, size) }
            }
        };
        if n >= 0 {
            if self.setup_flags & abi::SETUP_SQPOLL == 0 {
                self.submit.taken = self.submit.taken.wrapping_add(n as u32);
            }
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // A failed wait doesn't tell how many were taken; the head does.
        // SAFETY: points into the mapping.
        let head = unsafe { self.submit.head.as_ref() }.load(Ordering::Acquire);
        if self.setup_flags & abi::SETUP_SQPOLL == 0 {
            self.submit.taken = head;
        }
        match error.raw_os_error() {
            Some(libc::ETIME) => Ok(()),
            _ => Err(error),
        }
    }

    /// Whether the kernel thread sleeps, so that a call must wake it.
    fn wakes_up(&self) -> bool {
        // The tail must be seen before the flag is looked at: the kernel does the reverse.
        std::sync::atomic::fence(Ordering::SeqCst);
        // SAFETY: points into the mapping.
        let flags = unsafe { self.submit.flags.as_ref() }.load(Ordering::Relaxed);
        flags & abi::SQ_NEED_WAKEUP != 0
    }

    /// Polls the completion ring; whether so many completions came.
    fn polled(&self, wait: u32, timeout: Option<Duration>) -> bool {
        let began = std::time::Instant::now();
        let most = timeout.unwrap_or(SPIN).min(SPIN);
        let c = &self.complete;
        // SAFETY: both point into the mapping.
        let (head, tail) = unsafe { (c.head.as_ref(), c.tail.as_ref()) };
        let head = head.load(Ordering::Relaxed);
        while tail.load(Ordering::Acquire).wrapping_sub(head) < wait {
            if began.elapsed() >= most {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// # Safety
    /// `arg` and `size` are what `flags` ask for.
    #[inline]
    unsafe fn enter_raw(
        &self,
        to_submit: u32,
        wait: u32,
        flags: u32,
        arg: *const libc::c_void,
        size: usize,
    ) -> libc::c_long {
        // SAFETY: as the caller promises.
        unsafe {
            libc::syscall(
                libc::SYS_io_uring_enter,
                self.enter_fd,
                to_submit,
                wait,
                flags,
                arg,
                size,
            )
        }
    }

    /// Hands every completion that is there to `each`, with no system call.
    #[inline]
    pub fn reap(&mut self, mut each: impl FnMut(Cqe)) -> u32 {
        let c = &self.complete;
        // SAFETY: both point into the mapping.
        let (head_word, tail_word) = unsafe { (c.head.as_ref(), c.tail.as_ref()) };
        let head = head_word.load(Ordering::Relaxed);
        let tail = tail_word.load(Ordering::Acquire);
        let mut at = head;
        while at != tail {
            // SAFETY: masked, so inside the mapping; the kernel wrote it before it moved the tail.
            each(unsafe { c.cqes.add((at & c.mask) as usize).read() });
            at = at.wrapping_add(1);
        }
        head_word.store(at, Ordering::Release);
        at.wrapping_sub(head)
    }
}

/// `io_uring_setup`, without those flags that this kernel doesn't know.
fn setup(entries: u32, polling: u32, params: &mut abi::Params) -> io::Result<OwnedFd> {
    // Newest first, as they are dropped: 6.6, 6.1, 6.0, 5.19, 5.18.
    // DEFER_TASKRUN needs SINGLE_ISSUER, so it goes before it.
    const OPTIONAL: [u32; 5] = [
        abi::SETUP_NO_SQARRAY,
        abi::SETUP_DEFER_TASKRUN,
        abi::SETUP_SINGLE_ISSUER,
        abi::SETUP_COOP_TASKRUN,
        abi::SETUP_SUBMIT_ALL,
    ];
    for dropped in 0..=OPTIONAL.len() {
        *params = abi::Params {
            flags: abi::SETUP_CQSIZE
                | polling
                | OPTIONAL[dropped..].iter().fold(0, |all, f| all | f),
            cq_entries: entries * 2,
            sq_thread_idle: SQ_IDLE_MS,
            ..abi::Params::default()
        };
        // SAFETY: `params` is valid and written back by the kernel.
        let fd =
            unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, &raw mut *params) } as RawFd;
        if fd >= 0 {
            // SAFETY: the kernel just gave us this descriptor (close-on-exec already).
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || dropped == OPTIONAL.len() {
            return Err(error);
        }
    }
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> Option<Ring> {
        match Ring::new(8) {
            Ok(ring) => Some(ring),
            Err(_) => {
                testkit::gate::skip("need io_uring");
                None
            }
        }
    }

    #[test]
    fn every_nop_comes_back_once() {
        let Some(mut ring) = ring() else { return };
        let mut seen = [0; 8];
        for _ in 0..3 {
            for i in 0..8 {
                // SAFETY: names no buffer.
                unsafe { ring.push(Sqe::nop(i)) };
            }
            ring.enter(8, None).expect("enter");
            assert_eq!(ring.reap(|c| seen[c.user_data as usize] += 1), 8);
        }
        assert_eq!(seen, [3; 8]);
        assert_eq!(ring.reap(|_| ()), 0);
    }

    #[test]
    fn a_kernel_thread_that_polls_takes_every_nop() {
        if ring().is_none() {
            return;
        }
        let mut ring = Ring::polling(8, SQPOLL).expect("since 5.11 for every user");
        let mut seen = [0; 8];
        for round in 0..50 {
            for i in 0..8 {
                // SAFETY: names no buffer.
                unsafe { ring.push(Sqe::nop(i)) };
            }
            // Long enough for the thread to fall asleep, twice.
            if round % 25 == 24 {
                std::thread::sleep(Duration::from_millis(30));
            }
            let mut came = 0;
            while came < 8 {
                ring.enter(8 - came, None).expect("enter");
                came += ring.reap(|c| seen[c.user_data as usize] += 1);
            }
        }
        assert_eq!(seen, [50; 8]);
    }

    #[test]
    fn a_wait_for_nothing_ends_at_its_time_out() {
        let Some(mut ring) = ring() else { return };
        let before = std::time::Instant::now();
        ring.enter(1, Some(Duration::from_millis(20)))
            .expect("enter");
        assert!(before.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    #[should_panic(expected = "overrun")]
    fn a_full_ring_refuses() {
        let Some(mut ring) = ring() else {
            panic!("overrun")
        };
        for i in 0..=u64::from(ring.entries()) {
            // SAFETY: names no buffer.
            unsafe { ring.push(Sqe::nop(i)) };
        }
    }

    #[test]
    fn reads_into_registered_memory_of_a_registered_file() {
        let Some(mut ring) = ring() else { return };
        let mut file = tempfile::tempfile().expect("temporary file");
        io::Write::write_all(&mut file, &[7; 4096]).expect("write");
        let area = Area::new(8192).expect("memory");
        ring.register_file(file.as_raw_fd()).expect("register file");
        ring.register_area(&area).expect("register buffer");
        let sqe = Sqe::read(0, area.at(4096), 4096, 0, 99)
            .fixed_file()
            .fixed_buffer();
        // SAFETY: the area outlives the ring's only I/O, reaped below.
        unsafe { ring.push(sqe) };
        ring.enter(1, None).expect("enter");
        let mut got = None;
        ring.reap(|c| got = Some((c.user_data, c.res)));
        assert_eq!(got, Some((99, 4096)));
        // SAFETY: no I/O is in flight.
        assert_eq!(unsafe { area.bytes(4096, 4096) }, [7; 4096]);
    }
}
