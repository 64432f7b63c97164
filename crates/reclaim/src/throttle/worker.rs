//! Makes calls that can block for long, while the caller reports progress.
//!
//! A truncation on a file system that discards within the call, or a commit, takes as long as the
//! device likes. It runs on a thread of its own, so that the caller can report progress and be
//! stopped meanwhile.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

type Job = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// A thread that makes one call after the other. If it is dropped while a call
/// is under way, that call ends by itself.
#[derive(Debug)]
pub(super) struct Worker {
    jobs: Sender<Job>,
    done: Receiver<io::Result<()>>,
}

impl Worker {
    pub(super) fn start() -> io::Result<Worker> {
        let (jobs, todo) = channel::<Job>();
        let (tell, done) = channel();
        thread::Builder::new()
            .name("reclaimer".to_owned())
            .spawn(move || {
                for job in todo {
                    if tell.send(job()).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Worker { jobs, done })
    }

    /// Makes a call and waits for it; `meanwhile` is called every so often, and
    /// its error ends the waiting, not the call. The inner result is the call's.
    pub(super) fn call<E>(
        &self,
        job: impl FnOnce() -> io::Result<()> + Send + 'static,
        every: Duration,
        mut meanwhile: impl FnMut() -> Result<(), E>,
    ) -> Result<io::Result<()>, E> {
        let gone = || Ok(Err(io::Error::other("the thread that frees has ended")));
        if self.jobs.send(Box::new(job)).is_err() {
            return gone();
        }
        loop {
            match self.done.recv_timeout(every) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => meanwhile()?,
                Err(RecvTimeoutError::Disconnected) => return gone(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_hears_of_it_and_can_stop() {
        let worker = Worker::start().unwrap();
        let mut heard = 0;
        let (end, ended) = channel::<()>();
        let slow = move || {
            let _ = ended.recv();
            Ok(())
        };
        let every = Duration::from_millis(1);
        let outcome = worker.call(slow, every, || {
            heard += 1;
            if heard == 3 {
                let _ = end.send(());
            }
            Ok::<(), ()>(())
        });
        assert!(outcome.unwrap().is_ok() && heard >= 3);
        let failed = worker.call(|| Err(io::Error::other("no")), every, || Ok::<(), ()>(()));
        assert_eq!(failed.unwrap().unwrap_err().to_string(), "no");
        let (_end, never) = channel::<()>();
        let forever = move || {
            let _ = never.recv();
            Ok(())
        };
        let stopped = worker.call(forever, every, || Err("stop"));
        assert_eq!(stopped.unwrap_err(), "stop");
    }
}
