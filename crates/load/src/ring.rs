//! An io_uring as the engine needs it, used by the thread that made it.
//!
//! The set-up flags that make a ring cheap are dropped one by one where the kernel is too old for
//! them. One system call submits and waits. Reaping needs none.

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{Builder, EnterFlags, IoUring, opcode};

mod area;

pub use area::Area;

/// The device interrupts, and a system call submits and waits.
pub const INTERRUPT: u8 = 0;
/// The waiting thread polls the device: direct I/O alone, on a device with queues for it.
pub const IOPOLL: u8 = 1;
/// A kernel thread polls the submission ring. This side polls the completion ring for 50 µs before
/// it waits in the kernel.
pub const SQPOLL: u8 = 2;

/// For so long the completion ring is polled.
const SPIN: Duration = Duration::from_micros(50);
/// Time without a submission after which the kernel thread of [`SQPOLL`] sleeps, in
/// milliseconds.
const SQ_IDLE_MS: u32 = 10;

/// A ring, and how its entries name the file and the memory that they are about.
pub struct Ring {
    ring: IoUring,
    flags: EnterFlags,
    file: RawFd,
    fixed_file: bool,
    fixed_buffer: bool,
}

impl Ring {
    /// Makes a ring of at least `entries` (1 to 16384) submissions and twice the completions.
    /// `way`: [`INTERRUPT`], [`IOPOLL`] or [`SQPOLL`].
    ///
    /// # Errors
    /// The error of `io_uring_setup` or `mmap`.
    pub fn new(entries: u32, way: u8) -> io::Result<Ring> {
        let ring = setup(entries.next_power_of_two(), way)?;
        let flags = match ring.params().is_feature_no_iowait() {
            true => EnterFlags::GETEVENTS | EnterFlags::NO_IOWAIT,
            false => EnterFlags::GETEVENTS,
        };
        Ok(Ring {
            ring,
            flags,
            file: -1,
            fixed_file: false,
            fixed_buffer: false,
        })
    }

    /// Registers the file and the memory of all entries, as far as the kernel takes them. The memory
    /// is pinned until the ring is dropped.
    ///
    /// # Errors
    /// `ENOMEM` where the limit on locked memory forbids to register it. Each I/O then costs a little
    /// more.
    pub fn attach(&mut self, file: RawFd, area: &Area) -> io::Result<()> {
        let submitter = self.ring.submitter();
        self.fixed_file = submitter.register_files(&[file]).is_ok();
        self.file = if self.fixed_file { 0 } else { file };
        let memory = libc::iovec {
            iov_base: area.as_ptr().cast(),
            iov_len: area.len(),
        };
        // SAFETY: one vector over memory that is mapped. The owner of an entry keeps it until the
        // entry was reaped.
        unsafe { submitter.register_buffers(&[memory]) }?;
        self.fixed_buffer = true;
        Ok(())
    }

    /// Lets the registered file go, now: a ring that is dropped does so later, in the background, and
    /// until then its file system can't be unmounted. Waits for what is in flight.
    pub fn detach(&mut self) {
        // None was registered: nothing to do.
        let _ = self.ring.submitter().unregister_files();
    }

    /// An entry that reads `len` bytes at `offset` of the file to `address`.
    #[inline]
    pub fn read(&self, address: *mut u8, len: u32, offset: u64) -> Entry {
        let entry = match self.fixed_buffer {
            true => opcode::ReadFixed::new(Fd(self.file), address, len, 0)
                .offset(offset)
                .build(),
            false => opcode::Read::new(Fd(self.file), address, len)
                .offset(offset)
                .build(),
        };
        self.of_file(entry)
    }

    /// An entry that writes `len` bytes from `address` to `offset` of the file.
    #[inline]
    pub fn write(&self, address: *const u8, len: u32, offset: u64) -> Entry {
        let entry = match self.fixed_buffer {
            true => opcode::WriteFixed::new(Fd(self.file), address, len, 0)
                .offset(offset)
                .build(),
            false => opcode::Write::new(Fd(self.file), address, len)
                .offset(offset)
                .build(),
        };
        self.of_file(entry)
    }

    #[inline]
    fn of_file(&self, entry: Entry) -> Entry {
        match self.fixed_file {
            true => entry.flags(Flags::FIXED_FILE),
            false => entry,
        }
    }

    /// Puts an entry into the ring under a name; the kernel sees it at the next [`Ring::enter`].
    ///
    /// # Safety
    /// Buffers the entry names live until its completion has been reaped.
    ///
    /// # Panics
    /// When the ring is full: its owner keeps no more in flight than it has entries.
    #[inline]
    pub unsafe fn push(&mut self, entry: Entry, name: u64) {
        // SAFETY: as the caller promises.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(name)) };
        assert!(pushed.is_ok(), "submission ring overrun");
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
        let polls = self.ring.params().is_setup_sqpoll();
        let submissions = self.ring.submission();
        let pushed = submissions.len() as u32;
        let awake = polls && !submissions.need_wakeup();
        drop(submissions);
        let mut flags = self.flags;
        if polls {
            if awake && self.polled(wait, timeout) {
                return Ok(());
            }
            flags |= EnterFlags::SQ_WAKEUP;
        }
        let submitter = self.ring.submitter();
        let entered = match timeout.map(Timespec::from) {
            // SAFETY: no memory is passed.
            None => unsafe { submitter.enter::<()>(pushed, wait, flags.bits(), None) },
            Some(time) => {
                let flags = flags | EnterFlags::EXT_ARG;
                let arguments = SubmitArgs::new().timespec(&time);
                // SAFETY: both structs live until the call returns.
                unsafe { submitter.enter(pushed, wait, flags.bits(), Some(&arguments)) }
            }
        };
        match entered {
            Err(error) if error.raw_os_error() == Some(libc::ETIME) => Ok(()),
            entered => entered.map(drop),
        }
    }

    /// Polls the completion ring; whether so many completions came.
    fn polled(&mut self, wait: u32, timeout: Option<Duration>) -> bool {
        let began = Instant::now();
        let most = timeout.unwrap_or(SPIN).min(SPIN);
        while self.ring.completion().len() < wait as usize {
            if began.elapsed() >= most {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Hands the name and the result of every completion that is there to `each`, with no system
    /// call. A result is the bytes moved, or minus an `errno`.
    #[inline]
    pub fn reap(&mut self, mut each: impl FnMut(u64, i32)) -> u32 {
        let mut count = 0;
        for completion in self.ring.completion() {
            each(completion.user_data(), completion.result());
            count += 1;
        }
        count
    }
}

/// `io_uring_setup`, without those flags that this kernel doesn't know.
fn setup(entries: u32, way: u8) -> io::Result<IoUring> {
    // Newest first, as they are dropped: 6.6, 6.1, 6.0, 5.19, 5.18.
    // DEFER_TASKRUN needs SINGLE_ISSUER, so it goes before it.
    const OPTIONAL: [fn(&mut Builder) -> &mut Builder; 5] = [
        Builder::setup_no_sqarray,
        Builder::setup_defer_taskrun,
        Builder::setup_single_issuer,
        Builder::setup_coop_taskrun,
        Builder::setup_submit_all,
    ];
    let mut dropped = 0;
    loop {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(entries * 2);
        match way {
            IOPOLL => builder.setup_iopoll(),
            SQPOLL => builder.setup_sqpoll(SQ_IDLE_MS),
            _ => &mut builder,
        };
        for set in &OPTIONAL[dropped..] {
            set(&mut builder);
        }
        match builder.build(entries) {
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL) && dropped < OPTIONAL.len() =>
            {
                dropped += 1;
            }
            built => return built,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn ring() -> Option<Ring> {
        match Ring::new(8, INTERRUPT) {
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
                unsafe { ring.push(opcode::Nop::new().build(), i) };
            }
            ring.enter(8, None).expect("enter");
            assert_eq!(ring.reap(|name, _| seen[name as usize] += 1), 8);
        }
        assert_eq!(seen, [3; 8]);
        assert_eq!(ring.reap(|_, _| ()), 0);
    }

    #[test]
    fn a_kernel_thread_that_polls_takes_every_nop() {
        if ring().is_none() {
            return;
        }
        let mut ring = Ring::new(8, SQPOLL).expect("since 5.11 for every user");
        let mut seen = [0; 8];
        for round in 0..50 {
            for i in 0..8 {
                // SAFETY: names no buffer.
                unsafe { ring.push(opcode::Nop::new().build(), i) };
            }
            // Long enough for the thread to fall asleep, twice.
            if round % 25 == 24 {
                std::thread::sleep(Duration::from_millis(30));
            }
            let mut came = 0;
            while came < 8 {
                ring.enter(8 - came, None).expect("enter");
                came += ring.reap(|name, _| seen[name as usize] += 1);
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
        for i in 0..=8 {
            // SAFETY: names no buffer.
            unsafe { ring.push(opcode::Nop::new().build(), i) };
        }
    }

    #[test]
    fn reads_into_registered_memory_of_a_registered_file() {
        let Some(mut ring) = ring() else { return };
        let mut file = tempfile::tempfile().expect("temporary file");
        io::Write::write_all(&mut file, &[7; 4096]).expect("write");
        let area = Area::new(8192).expect("memory");
        ring.attach(file.as_raw_fd(), &area).expect("register");
        let entry = ring.read(area.at(4096), 4096, 0);
        // SAFETY: the area outlives the ring's only I/O, reaped below.
        unsafe { ring.push(entry, 99) };
        ring.enter(1, None).expect("enter");
        let mut got = None;
        ring.reap(|name, result| got = Some((name, result)));
        assert_eq!(got, Some((99, 4096)));
        // SAFETY: no I/O is in flight.
        assert_eq!(unsafe { area.bytes(4096, 4096) }, [7; 4096]);
    }
}
