//! The parts of every guard: state, orders and messages.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pace::Goal;
use record::units::names::quoted;

use super::orders::{self, Orders};
use super::start::canonical;
use super::state::State;
use super::status::{self, Goals, Status, TrimReport};
use super::{GuardError, GuardOptions};
use crate::ReclaimError;
use crate::event::{Event, Listener, Progress, Reply, report};
use crate::throttle::Stack;
use crate::trim::LastTrim;

/// The parts of a guard, however it works.
#[derive(Debug)]
pub(super) struct Common {
    path: PathBuf,
    /// Kernel names of the devices whose discards are counted.
    devices: Vec<String>,
    state: State,
    pub(super) orders: Orders,
    pub(super) goals: Goals,
    last: Option<LastTrim>,
    pub(super) began: Instant,
    /// Notes that were printed already.
    noted: RefCell<HashSet<String>>,
    hurried: bool,
}

impl Common {
    /// Takes the lock of a file system's state.
    pub(super) fn start(path: &Path, name: &str) -> Result<Common, GuardError> {
        let locked =
            State::lock(name).map_err(ReclaimError::io("keep the state of a guard of", path))?;
        let Some(state) = locked else {
            let found = State::find(name).ok().flatten();
            let status = found.and_then(|state| status::read(state.directory()));
            return Err(GuardError::Guarded {
                path: path.to_owned(),
                pid: status.map(|status| status.pid),
            });
        };
        // An order that no guard took is none for this one.
        orders::clear(state.directory());
        status::remove(state.directory());
        Ok(Common {
            path: canonical(path),
            devices: counted(path),
            state,
            orders: Orders::default(),
            goals: Goals::default(),
            last: None,
            began: Instant::now(),
            noted: RefCell::default(),
            hurried: false,
        })
    }

    /// Where the file system is mounted: the same in all figures, wherever the guard was started.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of the state.
    pub(super) fn state(&self) -> std::os::fd::BorrowedFd<'_> {
        self.state.directory()
    }

    /// Returns whether neither `listener` nor an order ends it.
    pub(super) fn goes_on(&self, listener: &mut Listener<'_>) -> bool {
        report(listener, Progress::default()).is_ok() && !self.orders.stop
    }

    /// Takes an order, if there is one. Returns whether there was: then it is to be answered with
    /// [`orders::accept`], when `status` shows it.
    pub(super) fn take_orders(&mut self, goal: &mut Goal, listener: &mut Listener<'_>) -> bool {
        let Some(request) = orders::read(self.state()) else {
            return false;
        };
        if let Some(slowdown) = request.slowdown {
            goal.slowdown = slowdown;
        }
        if let Some(ms) = request.max_latency_ms {
            goal.max_latency = Some(Duration::from_secs_f64(ms / 1e3));
        }
        self.orders.add(&request);
        listener(Event::Note(&self.sentence(&request.in_words())));
        true
    }

    /// Keeps what was trimmed last, and whether the goal was met; `None` if that is not known.
    pub(super) fn trimmed(&mut self, bytes: u64, took: Duration, met: Option<bool>) {
        self.last = Some(LastTrim::now(bytes, took, met, self.last));
    }

    /// Ends an order to drain, because nothing waits any more.
    pub(super) fn drained(&mut self) {
        self.orders.drain = false;
        orders::drained(self.state());
    }

    /// Writes how it stands, for `status`. Returns why the guard must end, if it must.
    pub(super) fn report(&self, options: &GuardOptions, trim: TrimReport) -> Option<String> {
        let latency = options.goal.max_latency;
        let status = Status {
            mount: self.path.clone(),
            devices: self.devices.clone(),
            pid: std::process::id(),
            running_s: self.began.elapsed().as_secs(),
            slowdown: options.goal.slowdown,
            max_latency_ms: latency.map(|max| max.as_secs_f64() * 1e3),
            most: options.most,
            max_age_s: options.max_age.as_secs_f64(),
            goals: self.goals,
            last: self.last,
            trim,
        };
        // It is only read by people: a full disk must not end a guard.
        let _ = status::write(self.state(), &status);
        let moved = !self.state.is_in_place();
        moved.then(|| "its state was renamed or removed, so a second guard could start".to_owned())
    }

    /// Reports a note that wasn't reported before.
    pub(super) fn note_once(&self, listener: &mut Listener<'_>, sentence: String) {
        if self.noted.borrow_mut().insert(sentence.clone()) {
            listener(Event::Note(&sentence));
        }
    }

    /// Passes on an event, but no note that was reported before.
    pub(super) fn hear_once(&self, event: Event<'_>, listener: &mut Listener<'_>) -> Reply {
        match event {
            Event::Note(sentence) => {
                self.note_once(listener, sentence.to_string());
                Reply::Yes
            }
            event => listener(event),
        }
    }

    /// Reports what can't be done, once.
    pub(super) fn note_failure(
        &self,
        listener: &mut Listener<'_>,
        what: &str,
        error: &std::io::Error,
    ) {
        let why = crate::error::words(error);
        self.note_once(listener, self.sentence(&format!("{what}: {why}")));
    }

    /// Reports once that debt is trimmed faster.
    pub(super) fn note_hurry(&mut self, options: &GuardOptions, listener: &mut Listener<'_>) {
        if !std::mem::replace(&mut self.hurried, true) {
            let text = format!(
                "more than {} of the file system, or debt older than {}, waits to be trimmed; others may \
                 lose half until less does",
                record::units::percent(options.most),
                record::units::duration_exact(options.max_age)
            );
            listener(Event::Note(&self.sentence(&text)));
        }
    }

    fn sentence(&self, text: &str) -> String {
        format!("{}: {text}", quoted(&self.path))
    }

    /// Removes the state but for the notes, and releases it.
    pub(super) fn close(self) {
        self.state.close();
    }
}

fn counted(path: &Path) -> Vec<String> {
    let stack = std::fs::File::open(path).ok();
    let stack = stack.and_then(|directory| Stack::at(directory.as_fd()).ok());
    let sources = stack.into_iter().flat_map(|stack| stack.sources);
    sources.map(|source| source.device).collect()
}

// How old debt was when it was trimmed.

/// Classes of ages for each doubling: each is wrong by at most 5 %.
const CLASSES: f64 = 8.0;

/// The ages of trimmed bytes: eight classes for each doubling of the milliseconds.
#[derive(Debug, Default)]
pub(super) struct Ages {
    bytes: BTreeMap<u32, u64>,
}

impl Ages {
    /// Learns that this many bytes were trimmed at this age, in milliseconds.
    pub(super) fn add(&mut self, bytes: u64, age_ms: u64) {
        let class = ((age_ms.max(1) as f64).log2() * CLASSES).round() as u32;
        *self.bytes.entry(class).or_default() += bytes;
    }

    /// The age that this share of the bytes had at most, in seconds.
    pub(super) fn at_most(&self, share: f64) -> Option<f64> {
        let all: u64 = self.bytes.values().sum();
        let mut sum = 0;
        self.bytes.iter().find_map(|(&class, bytes)| {
            sum += bytes;
            (sum as f64 >= all as f64 * share).then(|| (f64::from(class) / CLASSES).exp2() / 1e3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_count_by_bytes() {
        let mut ages = Ages::default();
        assert_eq!(ages.at_most(0.5), None);
        ages.add(90 << 20, 2_000);
        ages.add(10 << 20, 60_000);
        let of = |share| ages.at_most(share).unwrap();
        assert!((1.9..2.1).contains(&of(0.5)), "{}", of(0.5));
        assert!((57.0..63.0).contains(&of(0.99)), "{}", of(0.99));
    }
}
