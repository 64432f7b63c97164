//! Where a drive's answer to a request goes.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use linux::fuse::Entry;
use rustix::io::Errno;

use super::message::{Out, out_header};
use crate::device::Answer;

thread_local! {
    /// Each answering thread's buffer, as large as the largest read so far.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The answer to one request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(super) unique: u64,
    /// Bytes of a write.
    pub(super) written: Option<u32>,
    pub(super) to: To,
}

#[derive(Debug)]
pub(super) enum To {
    /// A file of the connection.
    Connection(Arc<OwnedFd>),
    /// An entry of a queue, which takes a read's data.
    Entry(Entry, Arc<Mailbox>),
    /// An entry that the queue's thread keeps: this number.
    Kept(usize, Arc<Mailbox>),
}

/// An answer for a queue's thread, which alone may commit it.
#[derive(Debug)]
pub(super) enum Letter {
    /// The entry holds the answer.
    Filled(Entry),
    /// An answer for the entry with this number.
    Kept {
        index: usize,
        unique: u64,
        error: i32,
        out: Out,
    },
}

/// Answers on their way to a queue's thread.
#[derive(Debug)]
pub(super) struct Mailbox {
    owner: ThreadId,
    bell: OwnedFd,
    letters: Mutex<Vec<Letter>>,
    closed: AtomicBool,
}

impl Mailbox {
    /// A mailbox of this thread, which looks into it before it waits for the bell.
    pub(super) fn new(bell: OwnedFd) -> Mailbox {
        Mailbox {
            owner: thread::current().id(),
            bell,
            letters: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn take(&self) -> Vec<Letter> {
        std::mem::take(&mut *self.lock())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The connection has ended, and nobody needs the answers any more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.ring();
    }

    fn send(&self, letter: Letter) {
        let mut letters = self.lock();
        let first = letters.is_empty();
        letters.push(letter);
        drop(letters);
        // Behind another letter the bell has rung already, or the owner isn't waiting.
        if first && thread::current().id() != self.owner {
            self.ring();
        }
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Letter>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reply {
    fn send(self, error: i32, data: &[u8]) {
        match self.to {
            To::Connection(file) => answer(&file, self.unique, error, data),
            To::Entry(mut entry, mailbox) => {
                fill(&mut entry, self.unique, error, data);
                mailbox.send(Letter::Filled(entry));
            }
            To::Kept(index, mailbox) => {
                let written = self.written.filter(|_| error == 0);
                let out = written.map_or(Out::EMPTY, |bytes| Out::EMPTY.u32(bytes).u32(0));
                mailbox.send(Letter::Kept {
                    index,
                    unique: self.unique,
                    error,
                    out,
                });
            }
        }
    }
}

/// Writes an answer to a connection.
pub(super) fn answer(file: &OwnedFd, unique: u64, error: i32, data: &[u8]) {
    let header = out_header(unique, error, data.len());
    // A connection that has ended needs no answer.
    let _ = rustix::io::writev(file, &[IoSlice::new(&header), IoSlice::new(data)]);
}

/// Makes an entry an answer.
pub(super) fn fill(entry: &mut Entry, unique: u64, error: i32, data: &[u8]) {
    // The kernel asks for no more than there is room for.
    let (error, data) = match entry.payload_mut().get_mut(..data.len()) {
        Some(into) => {
            into.copy_from_slice(data);
            (error, data)
        }
        None => (Errno::IO.raw_os_error(), &[][..]),
    };
    let header = out_header(unique, error, data.len());
    entry.answer(&header, u32::try_from(data.len()).unwrap_or(0));
}

impl Answer for Reply {
    fn data(self, len: usize, read: impl FnOnce(&mut [u8]) -> io::Result<()>) {
        if let To::Entry(mut entry, mailbox) = self.to {
            // The kernel takes them from there. It asks for no more than there is room for.
            let into = entry.payload_mut().get_mut(..len);
            match into.map_or(Err(Errno::IO.into()), read) {
                Ok(()) => {
                    let header = out_header(self.unique, 0, len);
                    entry.answer(&header, u32::try_from(len).unwrap_or(0));
                }
                Err(_) => fill(&mut entry, self.unique, Errno::IO.raw_os_error(), &[]),
            }
            return mailbox.send(Letter::Filled(entry));
        }
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < len {
                buffer.resize(len, 0);
            }
            let into = &mut buffer[..len];
            match read(into) {
                Ok(()) => self.send(0, into),
                Err(_) => self.fail(Errno::IO),
            }
        });
    }

    fn done(self) {
        match (&self.to, self.written) {
            (To::Connection(_), Some(bytes)) => {
                let out = Out::EMPTY.u32(bytes).u32(0);
                self.send(0, out.bytes());
            }
            _ => self.send(0, &[]),
        }
    }

    fn fail(self, errno: Errno) {
        self.send(errno.raw_os_error(), &[]);
    }
}
