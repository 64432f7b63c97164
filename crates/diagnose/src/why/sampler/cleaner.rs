//! btrfs' cleaner, which frees deleted subvolumes, and those who wait for it.
//!
//! A thread that waits for the cleaner has only btrfs' commit or a lock in its own stack. So the
//! cleaners are looked at beside it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use linux::SysRoot;
use linux::subvolume::{cleaners, pending};
use linux::tasks::Thread;
use serde::{Deserialize, Serialize};
use storage::FileSystem;
use storage::disks;

use super::{Sample, Sampler};
use crate::why::frames::{Place, cleans, may_wait_for_cleaner};
use crate::why::observe::monotonic_s;

/// The cleaners are listed again so often, in seconds.
const LISTED_S: f64 = 10.0;

/// Deleted subvolumes are read again so often, and too old to count after so long, in seconds.
const READ_S: (f64, f64) = (0.2, 1.0);

/// Where some are pending, they are read again after so long: the commit that discards what was freed may
/// follow soon.
const AGAIN: Duration = Duration::from_millis(20);

/// Where nothing waits for a cleaner they are forgotten after so long, in seconds.
const IDLE_S: f64 = 30.0;

/// An answer is waited for so long, and so long at the end.
const PATIENCE: Duration = Duration::from_millis(2);
const LAST: Duration = Duration::from_millis(100);

/// So many subvolumes are named, and kept.
const NAMED: usize = 3;
const MOST: usize = 1000;

/// The deleted subvolumes of a btrfs, by number: their names are gone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    /// Those that the cleaner has freed since the last report.
    pub freed: Vec<u64>,
    /// Those that it had still to free when they were last read.
    pub pending: Vec<u64>,
    /// When each of `freed` was gone, on the clock of the looks; NaN in a recording.
    #[serde(skip)]
    gone_s: Vec<f64>,
    /// When they were last read; `None` in a recording.
    #[serde(skip)]
    read_s: Option<f64>,
}

impl Deleted {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.freed.is_empty() && self.pending.is_empty()
    }

    /// Adds what was read later, at a moment on the clock of the looks.
    pub fn add(&mut self, later: &[u64], at_s: f64) {
        self.read(later, Some(at_s));
    }

    fn read(&mut self, later: &[u64], at_s: Option<f64>) {
        let gone = self.pending.iter().filter(|id| !later.contains(id));
        self.freed.extend(gone);
        self.gone_s
            .resize(self.freed.len(), at_s.unwrap_or(f64::NAN));
        self.bound();
        (self.pending, self.read_s) = (later.to_vec(), at_s);
    }

    /// Adds those of a later stretch of time.
    pub(crate) fn join(&mut self, later: &Deleted) {
        self.read(&[&later.freed[..], &later.pending].concat(), later.read_s);
        self.freed.extend(&later.freed);
        self.gone_s.extend(&later.gone_s);
        self.gone_s.resize(self.freed.len(), f64::NAN);
        self.bound();
        self.pending.clone_from(&later.pending);
    }

    fn bound(&mut self) {
        let old = self.freed.len().saturating_sub(MOST);
        self.freed.drain(..old);
        self.gone_s.drain(..old.min(self.gone_s.len()));
    }

    /// Those that were found gone after one moment and until another; `None` without any.
    pub(crate) fn gone_between(&self, from_s: f64, to_s: f64) -> Option<Deleted> {
        let within = |at_s: f64| at_s > from_s && at_s <= to_s;
        let all = self.freed.iter().zip(&self.gone_s);
        let (freed, gone_s): (Vec<u64>, Vec<f64>) = all.filter(|one| within(*one.1)).unzip();
        (!freed.is_empty()).then(|| Deleted {
            freed,
            gone_s,
            ..self.clone()
        })
    }

    /// Forgets that these were freed.
    pub(crate) fn forget(&mut self, freed: &[u64]) {
        let all = self.freed.iter().copied().zip(self.gone_s.iter().copied());
        (self.freed, self.gone_s) = all.filter(|one| !freed.contains(&one.0)).unzip();
    }

    /// `freed subvolume 257 (3 more pending)`, `frees subvolume 257`.
    pub fn words(&self) -> String {
        match (&self.freed[..], self.pending.len()) {
            ([], 0) => "frees a deleted subvolume".to_owned(),
            ([], 1) => format!("frees {}", named(&self.pending)),
            ([], _) => format!("frees {}, one after the other", named(&self.pending)),
            (freed, 0) => format!("freed {}", named(freed)),
            (freed, more) => format!("freed {} ({more} more pending)", named(freed)),
        }
    }
}

/// `subvolume 257`, `subvolumes 257, 258, 259 and 17 more`.
fn named(all: &[u64]) -> String {
    let some: Vec<String> = all.iter().take(NAMED).map(u64::to_string).collect();
    match (all.len(), all.len().saturating_sub(NAMED)) {
        (1, _) => format!("subvolume {}", some[0]),
        (_, 0) => format!("subvolumes {}", some.join(", ")),
        (_, more) => format!("subvolumes {} and {more} more", some.join(", ")),
    }
}

/// The deleted subvolumes of the btrfs at a mount point, with when they were read; `None` where they can't
/// be.
type Answer = (String, f64, Option<Vec<u64>>);

/// The cleaners of all file systems.
#[derive(Debug, Default)]
pub(super) struct Cleaners {
    threads: Vec<Thread>,
    listed_s: Option<f64>,
    /// Where the only btrfs is mounted, and the list that it is of.
    only: (Option<f64>, Option<PathBuf>),
    /// When they were looked at last, and what one of them did.
    looked: (f64, Option<Place>),
    /// A thread that reads: where a drive hangs, it waits, and not the sampler.
    reader: Option<(Sender<String>, Receiver<Answer>)>,
    /// When it was asked last, and whether it has not answered yet.
    asked: (f64, bool),
    /// Which mount point was asked for last, where they are read in turn.
    turn: usize,
    /// By mount point, with when they were read.
    deleted: BTreeMap<String, (f64, Deleted)>,
}

impl Cleaners {
    /// Returns the work of one of them on a deleted subvolume now.
    fn work(&mut self, now_s: f64) -> Option<Place> {
        if self.looked.0 == now_s {
            return self.looked.1;
        }
        if self.listed_s.is_none_or(|at_s| now_s - at_s >= LISTED_S) {
            (self.listed_s, self.threads) = (Some(now_s), cleaners());
        }
        let last = self.looked.1;
        let works = |one: &Thread| match &one.stack().ok()?[..] {
            // It runs, and goes on with what it did; its work is to free what was deleted.
            [] => last.or(Some(Place::Cleaner)),
            stack => cleans(stack.iter().map(String::as_str)),
        };
        self.looked = (now_s, self.threads.iter().find_map(works));
        self.looked.1
    }

    /// Returns where the only btrfs is mounted; each has one cleaner.
    fn only(&mut self, sys: &SysRoot) -> Option<PathBuf> {
        if self.only.0 != self.listed_s {
            let mounts = match self.threads[..] {
                [_] => linux::mounts::list(sys).unwrap_or_default(),
                _ => Vec::new(),
            };
            let mut all = mounts.into_iter();
            let found = all.find(|one| FileSystem::mounted(one) == FileSystem::Btrfs);
            self.only = (self.listed_s, found.map(|one| one.mount_point));
        }
        self.only.1.clone()
    }

    /// Whether the btrfs at a mount point has deleted subvolumes, as far as that is known by now.
    fn has_deleted(&mut self, at: &str, now_s: f64) -> bool {
        self.hear(Duration::ZERO);
        if !self.asked.1 && now_s - self.asked.0 >= READ_S.0 {
            self.ask(at, now_s);
            self.hear(PATIENCE);
        }
        // While the cleaner keeps a lock, the answer takes long.
        let oldest_s = now_s - if self.asked.1 { IDLE_S } else { READ_S.1 };
        let known = self.deleted.get(at);
        known.is_some_and(|(at_s, all)| *at_s > oldest_s && !all.is_empty())
    }

    fn ask(&mut self, at: &str, now_s: f64) {
        let (ask, _) = self.reader.get_or_insert_with(reader);
        self.asked = (now_s, ask.send(at.to_owned()).is_ok());
    }

    /// Reads those of the next btrfs of these, if that is due, and waits for no answer.
    fn read_in_turn(&mut self, mounted: &[disks::Place], now_s: f64) {
        self.hear(Duration::ZERO);
        let is_btrfs =
            |one: &&disks::Place| one.discards_later && one.file_system == Some(FileSystem::Btrfs);
        let all: Vec<&disks::Place> = mounted.iter().filter(is_btrfs).collect();
        let each_s = READ_S.0 / all.len().max(1) as f64;
        if self.asked.1 || now_s - self.asked.0 < each_s {
            return;
        }
        self.turn += 1;
        if let Some(next) = all.get(self.turn % all.len().max(1)) {
            self.ask(&next.at, now_s);
        }
    }

    /// Takes the answers that have come. Waits for one that is outstanding, if it comes soon enough.
    fn hear(&mut self, patience: Duration) {
        let Some((_, answers)) = &self.reader else {
            return;
        };
        loop {
            let next = match self.asked.1 {
                true => answers.recv_timeout(patience).ok(),
                false => answers.try_recv().ok(),
            };
            let Some((at, at_s, pending)) = next else {
                return;
            };
            self.asked.1 = false;
            let Some(pending) = pending else { continue };
            let known = self.deleted.entry(at).or_default();
            known.0 = at_s;
            known.1.add(&pending, at_s);
        }
    }

    /// Reads them once more at the end.
    pub(super) fn finish(&mut self) {
        self.hear(LAST);
        let all: Vec<String> = self.deleted.keys().cloned().collect();
        for at in all {
            // Where one does not come, the drive hangs.
            if !self.asked.1 {
                self.ask(&at, self.looked.0);
                self.hear(LAST);
            }
        }
    }

    /// Returns the deleted subvolumes by mount point, and forgets what was freed, and all that was read
    /// long before the last look at a thread.
    pub(super) fn drain(&mut self, looked_s: Option<f64>) -> BTreeMap<String, Deleted> {
        let oldest_s = looked_s.unwrap_or(self.looked.0) - IDLE_S;
        let all = self.deleted.iter();
        let found = all.map(|(at, (_, all))| (at.clone(), all.clone()));
        let found = found.collect();
        self.deleted.retain(|_, (at_s, _)| *at_s >= oldest_s);
        for (_, all) in self.deleted.values_mut() {
            all.freed.clear();
            all.gone_s.clear();
        }
        found
    }
}

/// A thread that reads until nobody asks any more.
fn reader() -> (Sender<String>, Receiver<Answer>) {
    let (ask, asked) = channel::<String>();
    let (tell, answers) = channel();
    let answer = move || {
        // Where some are pending, and which.
        let mut last: Option<(String, Vec<u64>)> = None;
        loop {
            let question = match &last {
                Some(_) => asked.recv_timeout(AGAIN),
                None => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let (at, is_asked) = match (question, &last) {
                (Ok(at), _) => (at, true),
                (Err(RecvTimeoutError::Timeout), Some((at, _))) => (at.clone(), false),
                _ => return,
            };
            // It takes CAP_SYS_ADMIN, and fails once the file system is unmounted: then nothing was freed.
            let all = File::open(&at).and_then(pending).ok();
            let is_new = |last: &(String, Vec<u64>)| all.as_ref() != Some(&last.1);
            let tells = is_asked || last.as_ref().is_some_and(is_new);
            let some = all.clone().filter(|all| !all.is_empty());
            last = some.map(|all| (at.clone(), all));
            if tells && tell.send((at, monotonic_s(), all)).is_err() {
                return;
            }
        }
    };
    // Without it every question fails.
    let _ = std::thread::Builder::new()
        .name("subvolumes".to_owned())
        .spawn(answer);
    (ask, answers)
}

impl Sampler {
    /// Reads the deleted subvolumes of each btrfs here that discards, one after the other, though nobody
    /// waits for a cleaner: their discards come with a later commit.
    pub(crate) fn read_deleted(&mut self, mounted: &[disks::Place], now_s: f64) {
        self.cleaners.read_in_turn(mounted, now_s);
    }

    /// Lets a wait at a btrfs be one for its cleaner, if that works meanwhile on what it waits for.
    pub(super) fn look_at_cleaner(&mut self, sample: &mut Sample) {
        let stack = self.found.stacks[sample.stack].iter().map(String::as_str);
        let may_be =
            matches!(sample.place, Place::Commit | Place::Lock) && may_wait_for_cleaner(stack);
        let is_btrfs = |index: usize| {
            let below = self.found.places.get(index);
            below.is_some_and(|one| one.file_system == Some(FileSystem::Btrfs))
        };
        if !sample.below.map_or(may_be && !sample.nowhere, is_btrfs) {
            return;
        }
        let Some(work) = self.cleaners.work(sample.at_s) else {
            return;
        };
        if sample.below.is_none() {
            let only = self.cleaners.only(&self.sys);
            sample.below = only.and_then(|at| self.below_path(at));
        }
        let below = sample.below.and_then(|index| self.found.places.get(index));
        let Some(below) = below else { return };
        let has_deleted = self.cleaners.has_deleted(&below.at, sample.at_s);
        if has_deleted && may_be {
            sample.place = work;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subvolumes_that_are_gone_were_freed() {
        let mut deleted = Deleted::default();
        assert_eq!(deleted.words(), "frees a deleted subvolume");
        deleted.add(&[257], 1.0);
        assert_eq!(deleted.words(), "frees subvolume 257");
        deleted.add(&[257, 258, 259, 260, 300], 1.0);
        assert_eq!(
            deleted.words(),
            "frees subvolumes 257, 258, 259 and 2 more, one after the other"
        );
        deleted.add(&[259, 260, 300], 1.0);
        assert_eq!(
            deleted.words(),
            "freed subvolumes 257, 258 (3 more pending)"
        );
        deleted.add(&[], 2.0);
        assert_eq!(deleted.words(), "freed subvolumes 257, 258, 259 and 2 more");
    }

    #[test]
    fn a_commit_has_those_that_were_freed_for_it() {
        let mut deleted = Deleted::default();
        for (at_s, pending) in [
            (1.0, &[257, 258][..]),
            (2.0, &[258]),
            (3.0, &[258]),
            (4.0, &[]),
        ] {
            deleted.add(pending, at_s);
        }
        let freed = |from_s, to_s| deleted.gone_between(from_s, to_s).map(|found| found.freed);
        assert_eq!(freed(f64::NEG_INFINITY, 2.0), Some(vec![257]));
        // The cleaner begins when a commit has ended, so what was still there when it began waits for the next.
        assert_eq!(freed(2.0, 3.5), None);
        assert_eq!(freed(3.5, 5.0), Some(vec![258]));
        let mut left = deleted.clone();
        left.forget(&[258]);
        assert_eq!(left.freed, [257]);
        // A recording has no times: they are of no commit for sure.
        let text = serde_json::to_string(&deleted).unwrap();
        let mut recorded = Deleted::default();
        recorded.join(&serde_json::from_str(&text).unwrap());
        assert_eq!(recorded.freed, [257, 258]);
        assert_eq!(recorded.gone_between(f64::NEG_INFINITY, 5.0), None);
    }

    #[test]
    fn the_only_btrfs_is_known_by_its_only_cleaner() {
        let machine = testkit::Machine::new(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:40 / /data rw - btrfs /dev/sda2 rw\n",
        );
        let sys = SysRoot::at(machine.root());
        let mut cleaners = Cleaners::default();
        for (count, at) in [(1, Some(PathBuf::from("/data"))), (2, None), (0, None)] {
            cleaners.threads = vec![Thread { pid: 9, tid: 9 }; count];
            cleaners.listed_s = Some(count as f64);
            assert_eq!(cleaners.only(&sys), at);
        }
    }

    /// Cleaners whose questions are seen, and answered by hand.
    fn asking() -> (Cleaners, Receiver<String>, Sender<Answer>) {
        let (ask, asked) = channel();
        let (tell, answers) = channel();
        let cleaners = Cleaners {
            reader: Some((ask, answers)),
            ..Cleaners::default()
        };
        (cleaners, asked, tell)
    }

    #[test]
    fn where_they_cannot_be_read_none_was_freed() {
        let (mut cleaners, _asked, tell) = asking();
        for read in [Some(vec![257, 258]), None, Some(vec![258])] {
            cleaners.asked.1 = true;
            tell.send(("/data".to_owned(), 1.0, read.clone())).unwrap();
            cleaners.hear(Duration::ZERO);
            let freed: &[u64] = if read == Some(vec![258]) { &[257] } else { &[] };
            assert_eq!(cleaners.deleted["/data"].1.freed, freed, "{read:?}");
            assert!(!cleaners.asked.1);
        }
        // Of itself it tells what has changed.
        tell.send(("/data".to_owned(), 2.0, Some(vec![]))).unwrap();
        cleaners.hear(Duration::ZERO);
        assert_eq!(cleaners.deleted["/data"].1.freed, [257, 258]);
    }

    #[test]
    fn an_answer_counts_while_the_next_takes_long() {
        let (mut cleaners, _asked, _tell) = asking();
        let mut deleted = Deleted::default();
        deleted.add(&[257], 10.0);
        cleaners.deleted.insert("/data".to_owned(), (10.0, deleted));
        cleaners.asked = (10.2, true);
        assert!(cleaners.has_deleted("/data", 12.0));
        assert!(!cleaners.has_deleted("/data", 41.0), "too old");
        assert!(!cleaners.has_deleted("/other", 12.0));
    }

    #[test]
    fn those_that_discard_are_read_in_turn_and_without_waiting() {
        let (mut cleaners, asked, tell) = asking();
        let mounted = [
            ("/a", FileSystem::Btrfs, true),
            ("/ext4", FileSystem::Ext, true),
            ("/nodiscard", FileSystem::Btrfs, false),
            ("/b", FileSystem::Btrfs, true),
        ];
        let mounted = mounted.map(|(at, file_system, discards_later)| disks::Place {
            at: at.to_owned(),
            file_system: Some(file_system),
            tops: Vec::new(),
            devices: Vec::new(),
            exact: Vec::new(),
            identity: None,
            discards_later,
        });
        for (now_s, at) in [
            (5.0, Some("/b")),
            (5.05, None),
            (6.5, None),
            (6.6, Some("/a")),
        ] {
            // The answer takes until 6.6 s.
            if now_s == 6.6 {
                tell.send(("/b".to_owned(), 6.6, Some(vec![257]))).unwrap();
            }
            cleaners.read_in_turn(&mounted, now_s);
            assert_eq!(asked.try_recv().ok().as_deref(), at, "{now_s}");
        }
        assert_eq!(cleaners.deleted["/b"].1.pending, [257]);
    }

    #[test]
    fn a_later_stretch_goes_on_where_the_earlier_ended() {
        let of = |freed: &[u64], pending: &[u64]| Deleted {
            freed: freed.to_vec(),
            pending: pending.to_vec(),
            gone_s: vec![5.0; freed.len()],
            read_s: Some(5.0),
        };
        let mut all = of(&[257], &[258, 259, 260]);
        // 258 went between the two.
        all.join(&of(&[259, 261], &[260, 262]));
        let mut freed = all.freed.clone();
        freed.sort_unstable();
        assert_eq!(
            (freed, all.pending),
            (vec![257, 258, 259, 261], vec![260, 262])
        );
    }

    #[test]
    fn what_was_freed_is_reported_once() {
        let mut cleaners = Cleaners {
            looked: (10.0, None),
            ..Cleaners::default()
        };
        let mut deleted = Deleted::default();
        deleted.add(&[257, 258], 1.0);
        deleted.add(&[258], 2.0);
        cleaners.deleted.insert("/data".to_owned(), (9.9, deleted));
        let freed = |found: BTreeMap<String, Deleted>| found["/data"].freed.clone();
        assert_eq!(freed(cleaners.drain(None)), [257]);
        // Threads are looked at, and the cleaner no longer.
        let found = cleaners.drain(Some(41.0));
        assert_eq!(found["/data"].pending, [258]);
        assert!(freed(found).is_empty());
        assert!(cleaners.drain(Some(42.0)).is_empty(), "too old");
    }
}
