//! Looks at threads whose list is known.

use std::collections::HashSet;

use linux::tasks::{Call, Thread};

use super::{Sample, Sampler};
use crate::why::frames::Place;

/// At most so many of them have a look in a turn; the others have the next.
const MOST: usize = 64;

impl Sampler {
    /// Looks at these threads and at no others, whatever the subject is. Of many, each turn looks
    /// at some. One that waits for its queue and is `idle` sleeps. Returns those that have ended.
    pub fn look_at(
        &mut self,
        threads: &[Thread],
        now_s: f64,
        idle: &dyn Fn(Thread) -> bool,
    ) -> Vec<Thread> {
        if self.order != threads {
            self.forget_others(threads);
            self.order = threads.to_vec();
            self.next = 0;
        }
        self.memory.begin_turn();
        self.found.turns += 1;
        let count = self.order.len();
        let mut ended = Vec::new();
        for step in 0..count.min(MOST) {
            let thread = self.order[(self.next + step) % count];
            if !self.known.contains_key(&thread) {
                self.add_thread(thread, now_s);
            }
            let before = self.found.samples.len();
            self.look(thread, now_s);
            let sample = self.found.samples[before..].first_mut();
            if let Some(sample) = sample.filter(|one| waits_for_queue(one) && idle(thread)) {
                sample.place = Place::Sleep;
                sample.call = None;
            }
            if !self.known.contains_key(&thread) {
                ended.push(thread);
            }
        }
        if count > MOST {
            self.next = (self.next + MOST) % count;
            self.found.partial_turns += 1;
        }
        ended
    }

    /// Forgets all threads but these.
    pub(super) fn forget_others(&mut self, threads: &[Thread]) {
        let there: HashSet<Thread> = threads.iter().copied().collect();
        self.asleep.retain(|thread| there.contains(thread));
        self.kernel.retain(|thread| there.contains(thread));
        self.known.retain(|thread, _| there.contains(thread));
        self.waiting.retain(|thread, _| there.contains(thread));
        self.named.retain(|thread, _| there.contains(thread));
        self.open = self.known.values().filter(|one| one.stat.is_some()).count();
    }
}

fn waits_for_queue(sample: &Sample) -> bool {
    let call = sample.call.and_then(Call::name);
    sample.place == Place::Io && matches!(call, Some("io_uring_enter" | "io_getevents"))
}

#[cfg(test)]
mod tests {
    use linux::SysRoot;
    use storage::disks::Disks;

    use super::*;
    use crate::why::Subject;

    #[test]
    fn threads_of_this_process_are_looked_at_until_they_end() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let own = std::process::id();
        let sleeper = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            let _ = ended.recv();
        });
        let thread = Thread {
            pid: own,
            tid: told.recv().unwrap().unsigned_abs(),
        };
        let subject = Subject::Process(own);
        let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
        for turn in 0..50 {
            // It takes a moment to fall asleep.
            std::thread::sleep(std::time::Duration::from_millis(1));
            let now_s = 1.0 + f64::from(turn) / 100.0;
            assert!(sampler.look_at(&[thread], now_s, &|_| true).is_empty());
        }
        end.send(()).unwrap();
        sleeper.join().unwrap();
        // The kernel may take a moment to bury it.
        while sampler.look_at(&[thread], 2.0, &|_| true).is_empty() {
            std::thread::yield_now();
        }
        let found = sampler.finish();
        let asleep = found.samples.iter().filter(|one| one.place == Place::Sleep);
        assert!(asleep.count() >= 40, "{found:?}");
        assert!(found.threads.iter().all(|one| one.thread == thread));
    }
}
