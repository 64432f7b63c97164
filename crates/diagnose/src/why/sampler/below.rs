//! The file system or device that a thread waits for.

use std::path::PathBuf;

use linux::tasks::{self, Call, Thread};

use super::Sampler;

/// Of a process with more files open than this nobody asks on which devices they are.
const MOST_FILES: usize = 64;

/// The files that a process has open are asked for again after so long, in seconds.
const FILES_S: f64 = 1.0;

impl Sampler {
    /// The file system or device that a call works on.
    pub(super) fn below(
        &mut self,
        thread: Thread,
        call: Option<Call>,
        now_s: f64,
    ) -> Option<usize> {
        match call? {
            call if call.has_descriptor() => self.below_path(thread.descriptor(call.first)),
            call if call.is_of_queue() => self.below_queue(thread, now_s),
            // A path that it was given is most often below the working directory; not certain.
            _ => None,
        }
    }

    /// The place that a queue's operations go to, where all open files of the process are at one:
    /// the kernel does not show the files of a queue.
    fn below_queue(&mut self, thread: Thread, now_s: f64) -> Option<usize> {
        let known = self.open_at.get(&thread.pid);
        if let Some((_, place)) = known.filter(|one| now_s - one.0 < FILES_S) {
            return *place;
        }
        let all = thread.descriptors();
        let mut places: Vec<usize> = Vec::new();
        if all.len() <= MOST_FILES {
            let paths = all.into_iter().map(|number| thread.descriptor(number));
            places.extend(paths.filter_map(|path| self.below_path(path)));
        }
        places.dedup();
        let place = (places.len() == 1).then(|| places[0]);
        self.open_at.insert(thread.pid, (now_s, place));
        place
    }

    fn below_path(&mut self, path: PathBuf) -> Option<usize> {
        let number = tasks::device_of(&path)?;
        if let Some(known) = self.below.get(&number) {
            return *known;
        }
        let found = self.disks.place(&self.sys, &path, number);
        let index = found.map(|place| {
            let same = self.found.places.iter().position(|one| *one == place);
            same.unwrap_or_else(|| {
                self.found.places.push(place);
                self.found.places.len() - 1
            })
        });
        self.below.insert(number, index);
        index
    }
}
