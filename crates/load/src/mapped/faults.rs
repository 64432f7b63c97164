//! `SIGBUS` of stores to mapped files, turned into a count.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Most files that are mapped at once.
const MOST: usize = 256;

/// The mappings whose faults are handled: begin and end of each, 0 and 0 for a free place. Each
/// thread that maps sets the end last, so the handler never sees a range half made.
static RANGES: [[AtomicUsize; 2]; MOST] =
    [const { [const { AtomicUsize::new(0) }, const { AtomicUsize::new(0) }] }; MOST];

thread_local! {
    /// It needs no destructor and no lazy start, so that a signal handler may use it.
    static FAULTS: Cell<u64> = const { Cell::new(0) };
}

/// How many stores of this thread went to a spare page instead of a file.
#[inline]
pub(crate) fn faults_of_this_thread() -> u64 {
    FAULTS.get()
}

/// The place of a mapping among those whose faults are handled, given up when dropped.
#[derive(Debug)]
pub(super) struct Watched(usize);

impl Watched {
    /// # Errors
    /// `EBUSY` without a free place; what the kernel says to a signal handler.
    pub(super) fn new(start: usize, len: usize) -> io::Result<Watched> {
        handle_faults()?;
        for (place, [begin, end]) in RANGES.iter().enumerate() {
            let free = begin.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed);
            if free.is_ok() {
                end.store(start + len, Ordering::Release);
                return Ok(Watched(place));
            }
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let [begin, end] = &RANGES[self.0];
        end.store(0, Ordering::Release);
        begin.store(0, Ordering::Release);
    }
}

fn is_watched(address: usize) -> bool {
    RANGES.iter().any(|[begin, end]| {
        let end = end.load(Ordering::Acquire);
        address < end && address >= begin.load(Ordering::Acquire)
    })
}

/// The handler that there was before ours.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Whether the handler is set.
static IS_SET: Mutex<bool> = Mutex::new(false);

/// Sets the handler, once in this process.
fn handle_faults() -> io::Result<()> {
    let mut is_set = IS_SET.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_set {
        return Ok(());
    }
    // SAFETY: both are plain structures for which zeros are valid, and the handler does only what
    // a handler may: atomics, a thread-local number, mmap and sigaction.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        // Known before ours can run.
        let _ = BEFORE.set(before);
        let mut ours: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
        ours.sa_sigaction = handler as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGBUS, &raw const ours, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    *is_set = true;
    Ok(())
}

/// Puts a spare page where a store failed. A fault elsewhere is the former handler's.
extern "C" fn on_fault(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure, whose address is that of the fault.
    let address = unsafe { (*info).si_addr() } as usize;
    // SAFETY: reads a constant of the process.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    // SAFETY: asks for the place of this thread's own errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the place just asked for. Whatever ran before must find it unchanged.
    let kept = unsafe { *errno };
    if is_watched(address) {
        // SAFETY: over a page of a mapping of ours, to which nobody has a reference.
        let spare = unsafe {
            libc::mmap(
                (address / page * page) as *mut libc::c_void,
                page,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if spare != libc::MAP_FAILED {
            FAULTS.set(FAULTS.get() + 1);
            // SAFETY: as above.
            unsafe { *errno = kept };
            return;
        }
    }
    // The store is tried again, and then meets the former handler.
    if let Some(before) = BEFORE.get() {
        // SAFETY: the structure that the kernel gave us.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
    // SAFETY: as above.
    unsafe { *errno = kept };
}
