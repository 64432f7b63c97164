//! The child process that puts something back when its parent can't: a mount's
//! option, a device's limit. `Setting` is a value in a file of the kernel's, changed for a while.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use crate::patience;

/// For so long another process may hold a setting: one that was just killed is about to put it back.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// How often the child tries, and how long it waits in between, in nanoseconds.
const ATTEMPTS: u32 = 100;
const BETWEEN_NS: i64 = 100_000_000;

/// The word that all is restored. Without it, the end of the pipe means that
/// the parent is gone.
const DISMISSED: u8 = b'd';

/// The change to undo.
pub trait Undo {
    /// Puts it back through the open file that the watcher was given, and says
    /// whether that went well. A forked child calls it: it may make system calls,
    /// and neither allocate nor take a lock.
    fn undo(&self, on: BorrowedFd<'_>) -> bool;
}

/// A value in a file of the kernel's, ours to change. It is again what it was when this is dropped,
/// and when this process ends in any way.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Locked, by the watcher too, until the value is back.
    file: File,
    pub(crate) before: Before,
    /// `None` once it is back.
    watcher: Option<Watcher>,
}

/// How a setting gets its old value back.
#[derive(Debug, Clone)]
pub(crate) struct Before {
    /// With this value, nothing is written: not every value comes back so.
    pub(crate) unchanged: String,
    /// The text to write.
    pub(crate) text: String,
}

impl Before {
    fn put_back(&self, on: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut now = [0u8; 32];
        let length = rustix::io::pread(on, &mut now, 0).unwrap_or(0);
        if now[..length].trim_ascii_end() == self.unchanged.trim_ascii_end().as_bytes() {
            return Ok(());
        }
        match rustix::io::pwrite(on, self.text.as_bytes(), 0)? {
            written if written == self.text.len() => Ok(()),
            _ => Err(Errno::IO),
        }
    }
}

impl Undo for Before {
    fn undo(&self, on: BorrowedFd<'_>) -> bool {
        self.put_back(on).is_ok()
    }
}

impl Setting {
    /// The open file of a setting, locked. Its error is [`io::ErrorKind::ResourceBusy`] while
    /// another process has changed it.
    pub(crate) fn lock(path: &Path) -> io::Result<File> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let lock = || rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        match patience::while_is(Errno::WOULDBLOCK, BUSY_FOR, lock) {
            Ok(()) => Ok(file),
            Err(Errno::WOULDBLOCK) => Err(io::ErrorKind::ResourceBusy.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Starts the child that puts it back, and changes nothing yet.
    pub(crate) fn take(file: File, before: Before) -> io::Result<Setting> {
        let watcher = Some(Watcher::start(&file, None, &before)?);
        Ok(Setting {
            file,
            before,
            watcher,
        })
    }

    pub(crate) fn write(&self, text: &str) -> io::Result<()> {
        self.file.write_all_at(text.as_bytes(), 0)
    }

    /// The number that it is now.
    pub(crate) fn number(&self) -> io::Result<u64> {
        number(&self.file)
    }

    /// Puts it back; if that fails, the child tries.
    pub(crate) fn restore<E>(
        &mut self,
        put_back: impl FnOnce(&Setting) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(watcher) = self.watcher.take() else {
            return Ok(());
        };
        match put_back(self) {
            Ok(()) => watcher.dismiss(),
            Err(error) if !watcher.restore() => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }

    pub(crate) fn put_back(&self) -> io::Result<()> {
        Ok(self.before.put_back(self.file.as_fd())?)
    }

    /// Leaves it as it is now.
    pub(crate) fn keep(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.dismiss();
        }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure: who wants to know calls `restore`.
        let _ = self.restore(Setting::put_back);
    }
}

/// The number in a file of the kernel's.
pub(crate) fn number(file: &File) -> io::Result<u64> {
    let mut text = [0u8; 32];
    let length = file.read_at(&mut text, 0)?;
    let text = std::str::from_utf8(&text[..length]).map_err(io::Error::other)?;
    text.trim().parse().map_err(io::Error::other)
}

/// A running watcher. Dropped without [`Watcher::dismiss`], it restores.
#[derive(Debug)]
pub struct Watcher {
    to_child: Option<OwnedFd>,
    /// `None` once it has ended.
    child: Option<Pid>,
}

impl Watcher {
    /// Forks the child, which puts back through `on` and keeps that and `lock` open until it ends.
    /// Waits until signals to this process's group no longer reach the child: only then may
    /// anything be changed.
    pub fn start(
        on: impl AsFd,
        lock: Option<BorrowedFd<'_>>,
        undo: &impl Undo,
    ) -> io::Result<Watcher> {
        let (from_parent, to_child) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // Above the numbers that the child gives them, so that none is overwritten.
        let from_parent = rustix::io::fcntl_dupfd_cloexec(&from_parent, 3)?;
        let on = rustix::io::fcntl_dupfd_cloexec(on, 3)?;
        let lock = lock
            .map(|lock| rustix::io::fcntl_dupfd_cloexec(lock, 3))
            .transpose()?;
        let (apart, is_apart) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let before = block_signals()?;
        // SAFETY: the child of a process with threads may only make calls that
        // are async-signal-safe. What follows and `watch` make system calls on what
        // was prepared here, allocate nothing and take no lock; `watch` never returns.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            // A group of its own: what is sent to the parent's group or terminal passes by.
            let _ = rustix::process::setsid();
            let _ = rustix::io::write(&is_apart, &[0]);
            let lock = lock.as_ref().unwrap_or(&on).as_raw_fd();
            watch(from_parent.as_raw_fd(), on.as_raw_fd(), lock, undo);
        }
        let failure = io::Error::last_os_error();
        unblock_signals(&before);
        let child = Pid::from_raw(forked)
            .filter(|_| forked > 0)
            .ok_or(failure)?;
        drop(is_apart);
        // Its byte; or the pipe's end, should it have been killed before.
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(&apart, &mut [0u8; 1]));
        Ok(Watcher {
            to_child: Some(to_child),
            child: Some(child),
        })
    }

    /// Tells the child that there is nothing left to do, and waits for its end.
    pub fn dismiss(self) {
        if let Some(pipe) = &self.to_child {
            let _ = rustix::io::write(pipe, &[DISMISSED]);
        }
    }

    /// Has the child restore, waits for its end (some ten seconds, should it
    /// fail again and again), and says whether it succeeded.
    pub fn restore(mut self) -> bool {
        self.end()
            .is_some_and(|status| status.exit_status() == Some(0))
    }

    /// Closes the pipe and waits. `None` when there is nobody to wait for.
    fn end(&mut self) -> Option<WaitStatus> {
        self.to_child = None;
        let child = self.child.take()?;
        loop {
            match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
                Ok(ended) => return ended.map(|(_, status)| status),
                Err(Errno::INTR) => {}
                // Somebody else has reaped it.
                Err(_) => return None,
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end();
    }
}

/// The child: waits for the pipe's end, restores, and ends.
fn watch(from_parent: RawFd, on: RawFd, lock: RawFd, undo: &impl Undo) -> ! {
    let _ = rustix::process::chdir(c"/");
    // SAFETY: dup2, close_range and close are async-signal-safe and take
    // numbers; nothing of the parent's is used through them afterwards.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"trimbench-guard".as_ptr());
        libc::dup2(from_parent, 0);
        libc::dup2(on, 1);
        libc::dup2(lock, 2);
        // Above all the parent's end of this pipe, and its other locks.
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) == -1 {
            for number in 3..65536 {
                libc::close(number);
            }
        }
    }
    // SAFETY: both were just made by dup2 and stay open to the process's end.
    let (pipe, on) = unsafe { (BorrowedFd::borrow_raw(0), BorrowedFd::borrow_raw(1)) };
    let mut word = [0u8; 1];
    let dismissed = loop {
        match rustix::io::read(pipe, &mut word) {
            Ok(length) => break length == 1 && word[0] == DISMISSED,
            Err(Errno::INTR) => {}
            Err(_) => break false,
        }
    };
    let mut status = 0;
    if !dismissed {
        for _ in 0..ATTEMPTS {
            status = i32::from(!undo.undo(on));
            if status == 0 {
                break;
            }
            let pause = libc::timespec {
                tv_sec: 0,
                tv_nsec: BETWEEN_NS,
            };
            // SAFETY: nanosleep is async-signal-safe and reads a local.
            unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
        }
    }
    // SAFETY: ends the process without running anything of the parent's.
    unsafe { libc::_exit(status) }
}

/// Blocks all signals of this thread, so that the child is born with them
/// blocked and none of the parent's handlers runs in it.
fn block_signals() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: sigfillset fills the one set, pthread_sigmask the other when it returns 0.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        match libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) {
            0 => Ok(before.assume_init()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

fn unblock_signals(before: &libc::sigset_t) {
    // SAFETY: the set comes from pthread_sigmask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}
