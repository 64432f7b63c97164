//! The throttle of `reclaim` for C and whatever calls C.
//!
//! `include/trimbench_throttle.h` says what each function does; this file only brings arguments and
//! results across. `session` has what they do, in safe Rust.

mod goal;
mod session;

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use session::Session;

/// The version of the interface, as in the header.
const ABI: u32 = 1;

/// A throttle as C sees it.
#[allow(non_camel_case_types, reason = "its name in C")]
#[derive(Debug)]
pub struct trimbench_throttle {
    session: Mutex<Session>,
    /// [`Session::backlog`], to be read while another thread waits.
    backlog: AtomicU64,
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Keeps a message for [`trimbench_error`].
fn complain(why: &str) {
    let text = CString::new(why.replace('\0', "?")).unwrap_or_default();
    ERROR.set(text);
}

/// Runs a call. Where it fails or panics, the message is kept and `failure` returned.
fn caught<T>(failure: T, body: impl FnOnce() -> Result<T, String>) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let why = match outcome {
        Ok(Ok(value)) => return value,
        Ok(Err(why)) => why,
        Err(_) => "trimbench has a bug: it panicked".to_owned(),
    };
    complain(&why);
    failure
}

impl trimbench_throttle {
    fn locked(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, session: &Session) {
        self.backlog.store(session.backlog(), Ordering::Relaxed);
    }
}

/// A string of C's.
///
/// # Safety
/// `text` is NULL or points to a string that ends with a zero byte and stays for `'a`.
unsafe fn string<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: it isn't NULL, so the caller vouches for it.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// A goal of C's.
///
/// # Safety
/// As of [`string`].
unsafe fn goal_of(text: *const c_char) -> Result<pace::Goal, String> {
    // SAFETY: passed on.
    let text = unsafe { string(text) }.map(CStr::to_string_lossy);
    goal::parse(text.as_deref())
}

/// The handle.
///
/// # Safety
/// `throttle` is NULL or comes from [`trimbench_throttle_open`], and isn't closed for `'a`.
unsafe fn handle<'a>(
    throttle: *const trimbench_throttle,
) -> Result<&'a trimbench_throttle, String> {
    // SAFETY: the caller vouches for it where it isn't NULL.
    unsafe { throttle.as_ref() }.ok_or_else(|| "the throttle is NULL".to_owned())
}

/// Returns the version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn trimbench_abi() -> u32 {
    ABI
}

/// Returns what went wrong in this thread's last call that failed.
#[unsafe(no_mangle)]
pub extern "C" fn trimbench_error() -> *const c_char {
    ERROR.with_borrow(|text| text.as_ptr())
}

/// Opens a throttle for the file system of a directory. NULL on failure.
///
/// # Safety
/// Both are NULL or strings that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimbench_throttle_open(
    path: *const c_char,
    goal: *const c_char,
) -> *mut trimbench_throttle {
    caught(ptr::null_mut(), || {
        // SAFETY: the caller's strings.
        let (path, goal) = unsafe { (string(path), goal_of(goal)?) };
        let path = Path::new(OsStr::from_bytes(
            path.ok_or("the path is NULL")?.to_bytes(),
        ));
        let session = Session::open(path.to_owned(), goal).map_err(|error| error.to_string())?;
        Ok(Box::into_raw(Box::new(trimbench_throttle {
            session: Mutex::new(session),
            backlog: AtomicU64::new(0),
        })))
    })
}

/// Waits until something may be freed. Returns how many bytes, or -1.
///
/// # Safety
/// `throttle` is NULL or an open handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimbench_throttle_wait(
    throttle: *mut trimbench_throttle,
    bytes: u64,
) -> i64 {
    caught(-1, || {
        // SAFETY: the caller's handle.
        let throttle = unsafe { handle(throttle) }?;
        let mut session = throttle.locked();
        let may = session.wait(bytes).map_err(|error| error.to_string())?;
        throttle.note(&session);
        Ok(i64::try_from(may).unwrap_or(i64::MAX))
    })
}

/// The same without waiting; 0 where nothing may be freed now.
///
/// # Safety
/// `throttle` is NULL or an open handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimbench_throttle_try(
    throttle: *mut trimbench_throttle,
    bytes: u64,
) -> i64 {
    caught(-1, || {
        // SAFETY: the caller's handle.
        let throttle = unsafe { handle(throttle) }?;
        let mut session = match throttle.session.try_lock() {
            Ok(session) => session,
            Err(TryLockError::Poisoned(session)) => session.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(0),
        };
        let may = session.try_now(bytes).map_err(|error| error.to_string())?;
        throttle.note(&session);
        Ok(i64::try_from(may).unwrap_or(i64::MAX))
    })
}

/// Reports that so many bytes were freed. 0, or -1 on failure.
///
/// # Safety
/// `throttle` is NULL or an open handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimbench_throttle_done(
    throttle: *mut trimbench_throttle,
    bytes: u64,
) -> c_int {
    caught(-1, || {
        // SAFETY: the caller's handle.
        let throttle = unsafe { handle(throttle) }?;
        let mut session = throttle.locked();
        session.done(bytes).map_err(|error| error.to_string())?;
        throttle.note(&session);
        Ok(0)
    })
}

/// Changes the goal. 0, or -1 on failure.
///
/// # Safety
/// `throttle` is NULL or an open handle, `goal` NULL or a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimbench_throttle_set_goal(
    throttle: *mut trimbench_throttle,
    goal: *const c_char,
) -> c_int {
    caught(-1, || {
        // SAFETY: the caller's handle and string.
        let (throttle, goal) = unsafe { (handle(throttle)?, goal_of(goal)?) };
        throttle.locked().set_goal(goal);
        Ok(0)
    })
}

/// Returns the bytes that were freed and aren't discarded yet, as of the last call.
///
/// # Safety
/// `throttle` is NULL or an open handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimbench_throttle_backlog(throttle: *const trimbench_throttle) -> u64 {
    caught(0, || {
        // SAFETY: the caller's handle.
        Ok(unsafe { handle(throttle) }?.backlog.load(Ordering::Relaxed))
    })
}

/// Frees the handle; NULL is allowed.
///
/// # Safety
/// `throttle` is NULL or an open handle that no thread uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trimbench_throttle_close(throttle: *mut trimbench_throttle) {
    if !throttle.is_null() {
        // SAFETY: it comes from `Box::into_raw`, and nobody uses it any more.
        drop(unsafe { Box::from_raw(throttle) });
    }
}
