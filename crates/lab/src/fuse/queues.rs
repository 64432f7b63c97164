//! The transport over io_uring: a queue and a thread for each processor.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::{fs, io};

use linux::fuse::{Entry, Queue};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::message::{IN_HEADER, Out, Request};
use super::reply::{Action, Files, Letter, Mailbox, Reply, To, fill};
use super::{PAGES, is_the_end};
use crate::device::{Device, Op};

/// Requests of a processor that reach the drive at once; the loop driver has no more by default.
const ENTRIES: u16 = 128;

/// Bytes of memory that the queues of a drive take at most: those of entries that were in use at once.
pub(super) fn memory() -> u64 {
    let of_each = u64::from(ENTRIES) * u64::from(PAGES) * 4096;
    processors().map_or(0, |processors| u64::from(processors) * of_each)
}

/// The threads of a connection's queues.
#[derive(Debug)]
pub(super) struct Queues {
    threads: Vec<JoinHandle<io::Result<()>>>,
    mailboxes: Vec<Arc<Mailbox>>,
}

impl Queues {
    /// Starts a queue for each processor that the machine may have: the kernel waits for all.
    ///
    /// # Errors
    /// If one can't be made. Then the connection is of no use.
    pub(super) fn start(
        connection: &OwnedFd,
        device: &Arc<Device<Reply>>,
        files: Files,
    ) -> io::Result<Queues> {
        let mut queues = Queues {
            threads: Vec::new(),
            mailboxes: Vec::new(),
        };
        for number in 0..processors()? {
            let (ready, made) = sync_channel(1);
            let connection = connection.try_clone()?;
            let device = Arc::clone(device);
            let thread = thread::Builder::new()
                .name(format!("lab-queue-{number}"))
                .spawn(move || Served::new(connection, number, device, files, &ready)?.serve())?;
            queues.threads.push(thread);
            let made = made.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            queues.mailboxes.push(made?);
        }
        Ok(queues)
    }

    /// Whether a thread has ended: with the connection, or by an error.
    pub(super) fn is_finished(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends them, once the connection has ended.
    pub(super) fn join(self) -> io::Result<()> {
        self.mailboxes.iter().for_each(|mailbox| mailbox.close());
        let ended = self.threads.into_iter().map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(_) => Err(io::Error::other("a queue's thread panicked")),
        });
        ended.collect()
    }
}

/// How many processors the machine may have, from `0-1`.
fn processors() -> io::Result<u16> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit(['-', ',']).next();
    let last = last.and_then(|last| last.parse::<u16>().ok());
    Ok(last.ok_or(io::ErrorKind::InvalidData)?.saturating_add(1))
}

/// A queue and its thread's state.
struct Served {
    queue: Queue,
    mailbox: Arc<Mailbox>,
    device: Arc<Device<Reply>>,
    files: Files,
    /// Entries whose requests the drive works on and whose answers come as letters.
    kept: Vec<Option<Entry>>,
}

impl Served {
    fn new(
        connection: OwnedFd,
        number: u16,
        device: Arc<Device<Reply>>,
        files: Files,
        ready: &SyncSender<io::Result<Arc<Mailbox>>>,
    ) -> io::Result<Served> {
        // Where the requests are made, so that no other processor has to be woken for them.
        if usize::from(number) < CpuSet::MAX_CPU {
            let mut here = CpuSet::new();
            here.set(number.into());
            // One that is not there has no requests.
            let _ = sched_setaffinity(None, &here);
        }
        // By default the kernel may end a wait 50 µs late, to save power.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let made = Queue::new(connection, number, ENTRIES, usize::from(PAGES) * 4096)
            .and_then(|queue| Ok((Arc::new(Mailbox::new(queue.bell()?)), queue)));
        let (mailbox, queue) = match made {
            Ok(made) => made,
            Err(error) => {
                let _ = ready.send(Err(error));
                return Err(io::ErrorKind::Unsupported.into());
            }
        };
        let _ = ready.send(Ok(Arc::clone(&mailbox)));
        Ok(Served {
            queue,
            mailbox,
            device,
            files,
            kept: (0..ENTRIES).map(|_| None).collect(),
        })
    }

    fn serve(mut self) -> io::Result<()> {
        let mut came = Vec::new();
        self.device.leave_to_front_end();
        loop {
            let span = self.device.answer_due();
            for letter in self.mailbox.take() {
                self.commit(letter);
            }
            match self.queue.wait(span, &mut came) {
                Err(error) if !is_the_end(&error) => return Err(error),
                Err(_) => return Ok(()),
                Ok(()) if self.mailbox.is_closed() => return Ok(()),
                Ok(()) => {}
            }
            for entry in came.drain(..) {
                self.carry_out(entry);
            }
        }
    }

    fn carry_out(&mut self, mut entry: Entry) {
        let header = entry.header();
        let request = Request::parts(&header[..IN_HEADER], &header[128..256], entry.payload());
        let Some(request) = request else { return };
        let (unique, index) = (request.unique, entry.index());
        let mailbox = Arc::clone(&self.mailbox);
        let (error, out) = match self.files.act(&request) {
            Action::Submit(Op::Read(range)) => {
                let reply = Reply {
                    unique,
                    written: None,
                    to: To::Entry(entry, mailbox),
                };
                return self.device.submit(Op::Read(range), reply);
            }
            Action::Submit(op) => {
                let reply = Reply {
                    unique,
                    written: written(&op),
                    to: To::Kept(index, mailbox),
                };
                self.device.submit(op, reply);
                self.kept[index] = Some(entry);
                return;
            }
            Action::Answer(Ok(out)) => (0, out),
            Action::Answer(Err(errno)) => (errno.raw_os_error(), Out::EMPTY),
            Action::Ignore => (0, Out::EMPTY),
        };
        fill(&mut entry, unique, error, out.bytes());
        self.queue.commit(entry);
    }

    fn commit(&mut self, letter: Letter) {
        let entry = match letter {
            Letter::Filled(entry) => entry,
            Letter::Kept {
                index,
                unique,
                error,
                out,
            } => {
                let Some(mut entry) = self.kept[index].take() else {
                    return;
                };
                fill(&mut entry, unique, error, out.bytes());
                entry
            }
        };
        self.queue.commit(entry);
    }
}

/// Bytes of a write, which its answer repeats.
pub(super) fn written(op: &Op<'_>) -> Option<u32> {
    match op {
        // A request is no longer than a few MiB.
        Op::Write(_, data) => u32::try_from(data.len()).ok(),
        _ => None,
    }
}
