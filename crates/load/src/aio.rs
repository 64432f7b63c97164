//! The kernel's older asynchronous I/O: `io_submit` and `io_getevents`, which
//! containers allow that forbid io_uring.
//!
//! The system calls themselves rather than a library's wrapping of them: four
//! calls, and the ring of completions is read without any, as libaio's
//! `io_getevents` does it. Its name is libaio all the same, since everybody
//! calls the interface so.
//!
//! Submitting may block: on buffered files, on writes that make a file longer,
//! in a full queue, in a frozen file system.

use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

mod abi;

pub use abi::{IoEvent, Iocb};

/// A context of its own, used by the thread that made it.
#[derive(Debug)]
pub struct Aio {
    context: Context,
    /// `None`: the kernel shows none that we know, and is asked by system call.
    ring: Option<Completions>,
    /// Pushed and not yet taken by the kernel: the first `pushed` of these.
    iocbs: Box<[Iocb]>,
    pushed: usize,
    /// Room for the addresses that `io_submit` is called with.
    addresses: Box<[*mut Iocb]>,
    /// Taken by the kernel, and not in `events` or reaped yet.
    in_flight: u32,
    /// Completions that came by system call, and refusals; never more than `iocbs` has room for.
    events: Vec<IoEvent>,
}

/// Submissions that found no room are tried again after this at the latest.
const RETRY: Duration = Duration::from_millis(1);

impl Aio {
    /// A context for `depth` (at least 1) operations in flight.
    ///
    /// # Errors
    /// The error of `io_setup`: `EAGAIN` when all users together would have more than the sysctl
    /// `fs.aio-max-nr`.
    pub fn new(depth: u32) -> io::Result<Aio> {
        let context = Context::new(depth)?;
        Ok(Aio {
            ring: Completions::of(&context),
            context,
            iocbs: vec![Iocb::default(); depth as usize].into(),
            pushed: 0,
            addresses: vec![std::ptr::null_mut(); depth as usize].into(),
            in_flight: 0,
            events: Vec::with_capacity(depth as usize),
        })
    }

    /// Takes a submission; the kernel sees it at the next [`Aio::enter`].
    ///
    /// # Safety
    /// The memory it names lives until its completion has been reaped.
    ///
    /// # Panics
    /// When more are in flight than there is room for.
    #[inline]
    pub unsafe fn push(&mut self, iocb: Iocb) {
        self.iocbs[self.pushed] = iocb;
        self.pushed += 1;
    }

    /// Submits what was pushed, waits for `wait` completions (0: for none), at
    /// most `timeout`.
    ///
    /// # Errors
    /// `EINTR`; `EAGAIN` when nothing is in flight that could be waited for and
    /// the kernel takes no submission now: the next call tries again. A
    /// time-out is no error, nor is a submission that the kernel refuses: that
    /// is a completion with its `errno`.
    #[inline]
    pub fn enter(&mut self, wait: u32, timeout: Option<Duration>) -> io::Result<()> {
        if self.pushed > 0 {
            self.submit();
        }
        // A refusal is something to reap.
        if wait == 0 || !self.events.is_empty() {
            return Ok(());
        }
        let timeout = match timeout {
            Some(timeout) if self.pushed > 0 => Some(timeout.min(RETRY)),
            None if self.in_flight == 0 => return Err(io::Error::from_raw_os_error(libc::EAGAIN)),
            other => other,
        };
        let wait = wait.min(self.in_flight.max(1));
        if self.ring.as_ref().is_some_and(|ring| ring.len() >= wait) {
            return Ok(());
        }
        self.get_events(wait, timeout)
    }

    fn submit(&mut self) {
        for (address, iocb) in self
            .addresses
            .iter_mut()
            .zip(&mut self.iocbs[..self.pushed])
        {
            *address = iocb;
        }
        let mut done = 0;
        while done < self.pushed {
            let left = &mut self.addresses[done..self.pushed];
            // SAFETY: as many addresses of valid submissions as it is told,
            // copied by the kernel before it returns; their memory lives, as
            // the caller of `push` promised.
            let n = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.context.0,
                    left.len(),
                    left.as_mut_ptr(),
                )
            };
            if n > 0 {
                done += n as usize;
                self.in_flight += n as u32;
                continue;
            }
            match io::Error::last_os_error().raw_os_error() {
                // No room now.
                Some(libc::EAGAIN) | None => break,
                // The first of those left can't be done.
                Some(errno) => {
                    self.events.push(self.iocbs[done].refused(errno));
                    done += 1;
                }
            }
        }
        self.iocbs.copy_within(done..self.pushed, 0);
        self.pushed -= done;
    }

    fn get_events(&mut self, wait: u32, timeout: Option<Duration>) -> io::Result<()> {
        let mut time = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().min(i32::MAX as u64) as _,
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        });
        let time = time
            .as_mut()
            .map_or(std::ptr::null_mut(), |time| &raw mut *time);
        let room: &mut [MaybeUninit<IoEvent>] = self.events.spare_capacity_mut();
        // SAFETY: room for as many events as it is told, and a time, or none,
        // that lives until the call returns.
        let n = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context.0,
                libc::c_long::from(wait),
                room.len() as libc::c_long,
                room.as_mut_ptr(),
                time,
            )
        };
        if n < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel filled in the first `n` of the room; none were there before.
        unsafe { self.events.set_len(self.events.len() + n as usize) };
        self.in_flight -= n as u32;
        Ok(())
    }

    /// Hands every completion that is there to `each`; without a system call
    /// where the kernel shows its ring. Returns how many.
    #[inline]
    pub fn reap(&mut self, mut each: impl FnMut(IoEvent)) -> u32 {
        let mut n = 0;
        for event in self.events.drain(..) {
            each(event);
            n += 1;
        }
        if let Some(ring) = &mut self.ring {
            let of_ring = ring.reap(each);
            self.in_flight -= of_ring;
            n += of_ring;
        }
        n
    }
}

/// The kernel's handle; destroyed when dropped, which waits for what is in flight.
#[derive(Debug)]
struct Context(libc::c_ulong);

impl Context {
    fn new(depth: u32) -> io::Result<Context> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: the kernel writes the handle to a zeroed word, as it asks for.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut id) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Context(id))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: our own handle, not used afterwards: fields that point into
        // its ring aren't read when dropped.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

/// The kernel's ring of completions, mapped at the address that is the handle.
#[derive(Debug)]
struct Completions {
    head: NonNull<AtomicU32>,
    tail: NonNull<AtomicU32>,
    events: NonNull<IoEvent>,
    nr: u32,
}

impl Completions {
    /// `None` where it isn't of the form known here.
    fn of(context: &Context) -> Option<Completions> {
        let start: *mut AtomicU32 = std::ptr::with_exposed_provenance_mut(context.0 as usize);
        let start = NonNull::new(start).filter(|start| start.is_aligned())?;
        // SAFETY: every Linux maps a ring, of at least one page, at the handle;
        // these words lie in its first 32 bytes.
        let word = |i: usize| unsafe { start.add(i) };
        let read = |i: usize| {
            // SAFETY: as above.
            unsafe { word(i).as_ref() }.load(Ordering::Relaxed)
        };
        let nr = read(abi::RING_NR);
        let known = read(abi::RING_MAGIC_AT) == abi::RING_MAGIC
            && read(abi::RING_INCOMPAT_FEATURES) == 0
            && read(abi::RING_HEADER_LENGTH) == abi::RING_HEADER
            && nr > 0;
        known.then(|| Completions {
            head: word(abi::RING_HEAD),
            tail: word(abi::RING_TAIL),
            events: word(abi::RING_HEADER as usize / size_of::<AtomicU32>()).cast(),
            nr,
        })
    }

    /// Completions that are there.
    #[inline]
    fn len(&self) -> u32 {
        // SAFETY: both point into the mapping, which the context keeps.
        let (head, tail) = unsafe { (self.head.as_ref(), self.tail.as_ref()) };
        let (head, tail) = (head.load(Ordering::Relaxed), tail.load(Ordering::Relaxed));
        if tail >= head {
            tail - head
        } else {
            self.nr - head + tail
        }
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(IoEvent)) -> u32 {
        // SAFETY: as in `len`.
        let (head_word, tail_word) = unsafe { (self.head.as_ref(), self.tail.as_ref()) };
        // Only this thread moves the head, here or inside of `io_getevents`.
        let mut at = head_word.load(Ordering::Relaxed);
        let tail = tail_word.load(Ordering::Acquire);
        let mut n = 0;
        while at != tail && at < self.nr {
            // SAFETY: below `nr`, so inside the mapping; the kernel wrote it before it moved the tail.
            each(unsafe { self.events.add(at as usize).read() });
            at = if at + 1 == self.nr { 0 } else { at + 1 };
            n += 1;
        }
        if n > 0 {
            head_word.store(at, Ordering::Release);
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::ring::Area;

    fn aio(depth: u32) -> Option<Aio> {
        match Aio::new(depth) {
            Ok(aio) => Some(aio),
            Err(_) => {
                testkit::gate::skip("need libaio");
                None
            }
        }
    }

    fn file() -> File {
        let mut file = tempfile::tempfile().expect("temporary file");
        let bytes: Vec<u8> = (0..16u8).flat_map(|block| [block; 512]).collect();
        io::Write::write_all(&mut file, &bytes).expect("write");
        file
    }

    /// Reads each block of the file, around and around, and checks what comes back.
    fn read_around(aio: &mut Aio, depth: u32) {
        let (file, area) = (file(), Area::new(depth as usize * 512).expect("memory"));
        let mut free: Vec<u64> = (0..u64::from(depth)).collect();
        let mut block_of = vec![0; depth as usize];
        let (mut next, mut done) = (0u64, 0);
        while done < 5_000 {
            while let Some(slot) = free.pop() {
                block_of[slot as usize] = next % 16;
                let address = area.at(slot as usize * 512);
                let iocb = Iocb::read(file.as_raw_fd(), address, 512, next % 16 * 512, slot);
                // SAFETY: the area outlives the context's last read, reaped below.
                unsafe { aio.push(iocb) };
                next += 1;
            }
            aio.enter(1, None).expect("enter");
            done += aio.reap(|event| {
                assert_eq!(event.res, 512);
                let slot = event.data as usize;
                // SAFETY: this slot's read has ended.
                let bytes = unsafe { area.bytes(slot * 512, 512) };
                assert!(bytes.iter().all(|b| u64::from(*b) == block_of[slot]));
                free.push(event.data);
            });
        }
        while free.len() < depth as usize {
            aio.enter(1, None).expect("enter");
            aio.reap(|event| free.push(event.data));
        }
        assert_eq!((aio.in_flight, aio.pushed), (0, 0));
    }

    #[test]
    fn every_read_comes_back_once_with_its_data() {
        for depth in [1, 3, 8] {
            let Some(mut aio) = aio(depth) else { return };
            assert!(aio.ring.is_some(), "Linux shows its ring");
            read_around(&mut aio, depth);
        }
    }

    #[test]
    fn without_a_ring_that_can_be_read_completions_come_by_system_call() {
        let Some(mut aio) = aio(8) else { return };
        aio.ring = None;
        read_around(&mut aio, 8);
    }

    #[test]
    fn a_wait_for_nothing_ends_at_its_time_out() {
        let Some(mut aio) = aio(8) else { return };
        let before = std::time::Instant::now();
        aio.enter(1, Some(Duration::from_millis(20)))
            .expect("enter");
        assert!(before.elapsed() >= Duration::from_millis(20));
        let error = aio.enter(1, None).expect_err("it would wait for ever");
        assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
    }

    #[test]
    fn what_is_refused_comes_back_as_a_failure_and_the_rest_is_done() {
        let Some(mut aio) = aio(4) else { return };
        let (file, area) = (file(), Area::new(4 * 512).expect("memory"));
        let read_only = File::open("/proc/self/exe").expect("open");
        for slot in 0..4 {
            let address = area.at(slot as usize * 512);
            let iocb = match slot {
                1 => Iocb::write(read_only.as_raw_fd(), address, 512, 0, slot),
                _ => Iocb::read(file.as_raw_fd(), address, 512, slot * 512, slot),
            };
            // SAFETY: the area outlives the loop below, which reaps all.
            unsafe { aio.push(iocb) };
        }
        let mut results = [None; 4];
        while results.contains(&None) {
            aio.enter(1, None).expect("enter");
            aio.reap(|event| results[event.data as usize] = Some(event.res));
        }
        let bad = -i64::from(libc::EBADF);
        assert_eq!(results, [Some(512), Some(bad), Some(512), Some(512)]);
    }
}
