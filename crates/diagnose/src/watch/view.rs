//! The state of the live view: what is kept, what the keys change, and which rows are shown.

use std::collections::{BTreeMap, VecDeque};

use super::update::{Blocked, DeviceUpdate, Update};
use crate::why::SenderWork;
use crate::why::frames::Reason;
use crate::why::senders::{WORKERS, is_programs};
use crate::why::trace::is_worker;

/// So many updates are kept for the timeline: more than a terminal has columns.
const KEPT: usize = 600;

/// Senders and blocked processes are those of at least so many seconds, so that rows can be read.
const RECENT_S: f64 = 1.0;

/// The longest filter, in characters.
const LONGEST_FILTER: usize = 40;

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
}

/// The order of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// By the share of time in discards, the largest first.
    Discarding,
    /// By reads per second.
    Reads,
    /// By writes per second.
    Writes,
    /// By name.
    Name,
}

impl Sort {
    /// The order in a word or two.
    pub fn words(self) -> &'static str {
        match self {
            Sort::Discarding => "time in TRIM",
            Sort::Reads => "reads",
            Sort::Writes => "writes",
            Sort::Name => "name",
        }
    }

    fn next(self) -> Sort {
        match self {
            Sort::Discarding => Sort::Reads,
            Sort::Reads => Sort::Writes,
            Sort::Writes => Sort::Name,
            Sort::Name => Sort::Discarding,
        }
    }
}

/// One device at one moment, for the timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moment {
    /// The share of time in discards, 0 to 1.
    pub discarding: f64,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
}

/// The parts of updates that are kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    /// The last ones, at least [`RECENT_S`] seconds of them.
    recent: VecDeque<Update>,
    /// Each device's moments; a device that was missing has empty ones.
    moments: BTreeMap<String, VecDeque<Moment>>,
    /// The length of each update, in seconds.
    lengths_s: VecDeque<f64>,
}

/// The live view.
#[derive(Debug, Clone)]
pub struct View {
    live: Kept,
    /// The state that is shown while the view is frozen.
    pub(super) frozen: Option<Kept>,
    pub(super) sort: Sort,
    pub(super) filter: String,
    pub(super) typing: bool,
    pub(super) help: bool,
    selected: Option<String>,
}

impl Default for View {
    fn default() -> Self {
        View {
            live: Kept::default(),
            frozen: None,
            sort: Sort::Discarding,
            filter: String::new(),
            typing: false,
            help: false,
            selected: None,
        }
    }
}

impl View {
    /// Adds an update. A frozen view does not show it before it is live again.
    pub fn push(&mut self, update: Update) {
        self.live.push(update);
    }

    /// Takes a key; `false` if the view is to end.
    pub fn key(&mut self, key: Key) -> bool {
        if self.typing {
            match key {
                Key::Enter => self.typing = false,
                Key::Escape => {
                    self.typing = false;
                    self.filter.clear();
                }
                Key::Backspace => drop(self.filter.pop()),
                Key::Char(sign) if self.filter.chars().count() < LONGEST_FILTER => {
                    self.filter.push(sign);
                }
                Key::Char(_) | Key::Up | Key::Down => {}
            }
            return true;
        }
        if self.help {
            self.help = false;
            return key != Key::Char('q');
        }
        match key {
            Key::Char('q') => return false,
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('/') => self.typing = true,
            Key::Char(' ' | 'f') => {
                self.frozen = match self.frozen.take() {
                    Some(_) => None,
                    None => Some(self.live.clone()),
                };
            }
            Key::Char('?' | 'h') => self.help = true,
            Key::Escape => self.filter.clear(),
            Key::Up | Key::Char('k') => self.select(-1),
            Key::Down | Key::Char('j') => self.select(1),
            Key::Char(_) | Key::Enter | Key::Backspace => {}
        }
        true
    }

    /// The update that is shown; `None` before the first.
    pub fn update(&self) -> Option<&Update> {
        self.shown().recent.back()
    }

    /// The devices in their order. Those that the filter names, or all where it names none.
    pub fn devices(&self) -> Vec<&DeviceUpdate> {
        let Some(update) = self.update() else {
            return Vec::new();
        };
        let named = |one: &&DeviceUpdate| one.device.contains(&self.filter);
        let mut all: Vec<&DeviceUpdate> = update.devices.iter().filter(named).collect();
        if all.is_empty() {
            all = update.devices.iter().collect();
        }
        // By the last second or more, so that short updates do not shuffle them.
        let recent = |one: &DeviceUpdate, of: fn(&Moment) -> f64| -> f64 {
            let shown = self.shown();
            let moments = shown.moments.get(&one.device).into_iter().flatten();
            moments.rev().take(shown.recent.len()).map(of).sum()
        };
        all.sort_by(|a, b| {
            let by = |of: fn(&Moment) -> f64| recent(b, of).total_cmp(&recent(a, of));
            let order = match self.sort {
                Sort::Discarding => by(|one| one.discarding),
                Sort::Reads => by(|one| one.reads_per_s),
                Sort::Writes => by(|one| one.writes_per_s),
                Sort::Name => std::cmp::Ordering::Equal,
            };
            order.then_with(|| a.device.cmp(&b.device))
        });
        all
    }

    /// The device of the timeline: the one that was selected, or the first.
    pub fn selected(&self) -> Option<&str> {
        let devices = self.devices();
        let there = |name: &str| devices.iter().any(|one| one.device == name);
        let chosen = self.selected.as_deref().filter(|name| there(name));
        chosen.or_else(|| devices.first().map(|one| one.device.as_str()))
    }

    /// The last moments of the selected device, at most so many, the newest last, with the time
    /// that they cover in seconds.
    pub fn timeline(&self, most: usize) -> (Vec<Moment>, f64) {
        let shown = self.shown();
        let moments = self.selected().and_then(|name| shown.moments.get(name));
        let moments: Vec<Moment> = moments.into_iter().flatten().copied().collect();
        let from = moments.len().saturating_sub(most);
        let lengths = shown.lengths_s.iter().rev().take(moments.len() - from);
        (moments[from..].to_vec(), lengths.sum())
    }

    /// How long the senders' and the blocked processes' figures were collected, in seconds.
    pub fn recent_s(&self) -> f64 {
        self.shown()
            .recent
            .iter()
            .map(|update| update.seconds)
            .sum()
    }

    /// The senders of discards of the last second or more, those that kept devices longest first.
    pub fn senders(&self) -> Vec<SenderWork> {
        let mut all: Vec<SenderWork> = Vec::new();
        let recent = self.shown().recent.iter();
        for one in recent.flat_map(|update| &update.senders) {
            let same = all.iter_mut().find(|known| key(known) == key(one));
            match same {
                Some(known) => {
                    known.add(one);
                    known.deletion = one.deletion.clone().or(known.deletion.take());
                    known.deleted = one.deleted.clone().or(known.deleted.take());
                }
                None => all.push(one.clone()),
            }
        }
        all.retain(|one| {
            let deleter = one
                .deletion
                .as_ref()
                .map_or("", |deletion| &deletion.program);
            self.passes(&[&one.device, &one.program, one.reason.word(), deleter])
        });
        all.sort_by(|a, b| {
            (b.in_drive_s, b.discards)
                .partial_cmp(&(a.in_drive_s, a.discards))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        all
    }

    /// The processes that were blocked in the last second or more, those of TRIM first, own I/O last.
    pub fn blocked(&self) -> Vec<Blocked> {
        let mut all: BTreeMap<u32, Blocked> = BTreeMap::new();
        let recent = self.shown().recent.iter();
        for one in recent.flat_map(|update| &update.blocked) {
            // The latest reason counts.
            let known = all.insert(one.pid, one.clone());
            if let (Some(known), Some(sum)) = (known, all.get_mut(&one.pid)) {
                sum.seconds += known.seconds;
                sum.discards_s += known.discards_s;
            }
        }
        let mut all: Vec<Blocked> = all.into_values().collect();
        all.retain(|one| {
            let pid = one.pid.to_string();
            let (call, at) = (one.call.unwrap_or(""), one.at.as_deref().unwrap_or(""));
            self.passes(&[&one.program, one.word(), call, at, &pid])
        });
        all.sort_by(Blocked::order);
        all
    }

    fn passes(&self, texts: &[&str]) -> bool {
        // A filter that names devices says nothing about others' names.
        self.filter.is_empty() || texts.iter().any(|text| text.contains(&self.filter))
    }

    fn shown(&self) -> &Kept {
        self.frozen.as_ref().unwrap_or(&self.live)
    }

    fn select(&mut self, step: isize) {
        let devices: Vec<String> = self
            .devices()
            .iter()
            .map(|one| one.device.clone())
            .collect();
        let now = devices
            .iter()
            .position(|name| Some(name.as_str()) == self.selected());
        let next = now.map_or(0, |now| now.saturating_add_signed(step));
        self.selected = devices
            .get(next.min(devices.len().saturating_sub(1)))
            .cloned();
    }
}

impl Kept {
    fn push(&mut self, update: Update) {
        for device in &update.devices {
            let moments = self.moments.entry(device.device.clone()).or_default();
            // One that has just appeared was idle before.
            moments.resize(self.lengths_s.len(), Moment::default());
            moments.push_back(Moment {
                discarding: device.discarding,
                reads_per_s: device.reads.per_s,
                writes_per_s: device.writes.per_s,
            });
        }
        self.lengths_s.push_back(update.seconds);
        let there = |name: &String| update.devices.iter().any(|one| one.device == *name);
        self.moments.retain(|name, _| there(name));
        if self.lengths_s.len() > KEPT {
            self.lengths_s.pop_front();
            for moments in self.moments.values_mut() {
                moments.pop_front();
            }
        }
        self.recent.push_back(update);
        let mut sum: f64 = self.recent.iter().map(|one| one.seconds).sum();
        while let Some(first) = self.recent.front()
            && self.recent.len() > 1
            && sum - first.seconds >= 0.95 * RECENT_S
        {
            sum -= first.seconds;
            self.recent.pop_front();
        }
    }
}

/// Senders with one key are one line: the kernel's workers that send for one reason are.
fn key(one: &SenderWork) -> (&str, Reason, Option<(Option<u32>, &str)>) {
    let workers = one.program == WORKERS || is_worker(&one.program);
    let is_own = is_programs(one.reason) && !workers;
    let own = is_own.then_some((one.pid, one.program.as_str()));
    (&one.device, one.reason, own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::{device, stall};
    use proptest::prelude::*;

    fn names(view: &View) -> Vec<&str> {
        view.devices()
            .iter()
            .map(|one| one.device.as_str())
            .collect()
    }

    fn keys(view: &mut View, text: &str) {
        for sign in text.chars() {
            view.key(Key::Char(sign));
        }
    }

    #[test]
    fn devices_are_sorted_filtered_and_selected_by_keys() {
        let mut view = View::default();
        view.push(Update::of(
            1.0,
            1.0,
            vec![device("sda", 10, 5, 0.9), device("sdb", 900, 50, 0.0)],
        ));
        assert_eq!(names(&view), ["sda", "sdb"]);
        assert_eq!(view.selected(), Some("sda"));
        keys(&mut view, "s");
        assert_eq!(names(&view), ["sdb", "sda"], "by reads");
        view.key(Key::Down);
        assert_eq!(view.selected(), Some("sda"));
        view.key(Key::Down);
        view.key(Key::Up);
        assert_eq!(view.selected(), Some("sdb"));
        keys(&mut view, "/sda");
        assert!(view.typing);
        view.key(Key::Enter);
        assert_eq!(names(&view), ["sda"]);
        // A filter that no device has is about processes.
        keys(&mut view, "/x");
        assert_eq!((&*view.filter, names(&view).len()), ("sdax", 2));
        view.key(Key::Backspace);
        view.key(Key::Escape);
        assert_eq!((&*view.filter, view.typing), ("", false));
        assert!(!view.key(Key::Char('q')));
    }

    #[test]
    fn a_frozen_view_stands_still_until_it_is_live_again() {
        let mut view = View::default();
        view.push(stall(1.0));
        keys(&mut view, " ");
        view.push(stall(2.0));
        assert!(view.frozen.is_some());
        assert_eq!(view.update().unwrap().at_s, 1.0);
        keys(&mut view, "f");
        assert_eq!(view.update().unwrap().at_s, 2.0);
        keys(&mut view, "?");
        assert!(view.help);
        // Any key closes it.
        assert!(view.key(Key::Char('x')) && !view.help);
    }

    #[test]
    fn short_updates_are_added_up_to_a_second() {
        let mut view = View::default();
        for at in 1..=30 {
            let mut update = stall(f64::from(at) / 10.0);
            update.seconds = 0.1;
            update.blocked[0].seconds = 0.09;
            view.push(update);
        }
        assert!((view.recent_s() - 1.0).abs() < 1e-9);
        let blocked = view.blocked();
        assert!((blocked[0].seconds - 0.9).abs() < 1e-9, "{blocked:?}");
        assert_eq!(
            view.senders()[0].discards,
            10 * stall(1.0).senders[0].discards
        );
        let (moments, seconds) = view.timeline(20);
        assert_eq!(moments.len(), 20);
        assert!((seconds - 2.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn no_keys_panic(pressed in proptest::collection::vec(0..40_u8, 0..60)) {
            let mut view = View::default();
            for (at, key) in pressed.into_iter().enumerate() {
                if key % 5 == 0 {
                    view.push(stall(at as f64 + 1.0));
                }
                let key = match key {
                    0 => Key::Up,
                    1 => Key::Down,
                    2 => Key::Escape,
                    3 => Key::Enter,
                    4 => Key::Backspace,
                    other => Key::Char(b"qsf /?hjkabcdefgxyz0123456789:;-_.,#+<>"[usize::from(other - 5)] as char),
                };
                view.key(key);
                view.timeline(72);
                view.senders();
                view.blocked();
            }
        }
    }
}
