//! Paths in the memory of other processes, without waiting for those who change its map.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use linux::tasks::Thread;

/// So many paths are asked for in a turn at most.
const MOST: usize = 8;

/// An answer that takes longer comes too late.
const PATIENCE: Duration = Duration::from_millis(5);

/// A question is not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late;

/// A thread's address, asked for.
type Question = (Thread, u64);

/// A thread that reads memory. A process that waits for storage while it changes its memory's map
/// keeps that thread waiting, and not the sampler.
#[derive(Debug, Default)]
pub(super) struct Memory {
    reader: Option<(Sender<Question>, Receiver<Option<PathBuf>>)>,
    /// Whether an answer is outstanding that came too late.
    late: bool,
    asked: usize,
}

impl Memory {
    /// Allows a new turn's questions.
    pub(super) fn begin_turn(&mut self) {
        self.asked = 0;
    }

    /// The path at an address of a thread's memory.
    pub(super) fn path(&mut self, thread: Thread, address: u64) -> Result<Option<PathBuf>, Late> {
        if self.asked == MOST {
            return Err(Late);
        }
        self.asked += 1;
        let (ask, answers) = self.reader.get_or_insert_with(reader);
        if self.late {
            answers.try_recv().map_err(|_| Late)?;
            self.late = false;
        }
        ask.send((thread, address)).map_err(|_| Late)?;
        answers.recv_timeout(PATIENCE).map_err(|error| {
            self.late = error == RecvTimeoutError::Timeout;
            Late
        })
    }
}

/// A thread that answers until nobody asks any more.
fn reader() -> (Sender<Question>, Receiver<Option<PathBuf>>) {
    let (ask, asked) = channel::<Question>();
    let (tell, answers) = channel();
    let answer = move || {
        for (thread, address) in asked {
            if tell.send(thread.path_at(address)).is_err() {
                return;
            }
        }
    };
    // Without it every question fails.
    let _ = std::thread::Builder::new()
        .name("paths".to_owned())
        .spawn(answer);
    (ask, answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_asks_for_a_few_paths() {
        let pid = std::process::id();
        let own = Thread { pid, tid: pid };
        let address = c"/data/old".as_ptr() as u64;
        let mut memory = Memory::default();
        // A busy machine may be late.
        let found = loop {
            memory.begin_turn();
            if let Ok(found) = memory.path(own, address) {
                break found;
            }
        };
        assert_eq!(found, Some(PathBuf::from("/data/old")));
        for _ in 1..MOST {
            let _ = memory.path(own, address);
        }
        assert_eq!(memory.path(own, address), Err(Late));
    }
}
