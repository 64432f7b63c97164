//! Looks at threads and events of discards → sums for each actor and phase, and a timeline. Pure.
//!
//! A run may last for hours, so looks are not kept. A wait at a device goes into the sums, and the
//! part of it that a discard in flight covers stays apart. At the end the statistics decide whether
//! that part was the discards' fault ([`super::conclude`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use linux::mounts::DeviceNumber;
use linux::tasks::Call;
use load::workers::Began;
use record::waits::Cause;
use record::{Part, PhaseName};

use crate::why::frames::{Place, Reason};
use crate::why::sampler::{Sample, Sampled};
use crate::why::spans::Spans;

/// The length of the timeline's stretches at first, in seconds. It doubles when there are
/// [`STRETCHES`].
const STRETCH_S: f64 = 0.1;

/// Most stretches of the timeline.
const STRETCHES: usize = 1024;

/// More spans of one device than this become coarser.
const SPANS: usize = 100_000;

/// All looks and events since the last time.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Looks at threads.
    pub(super) sampled: Sampled,
    /// When each thread's own discards were queued or in flight.
    pub(super) own: HashMap<u32, Spans>,
    /// How many it sent, and why.
    pub(super) sent: Vec<Sent>,
    /// When discards were in flight on the target's devices.
    pub(super) discards: Vec<(DeviceNumber, Spans)>,
    /// When the window ends, on the monotonic clock in seconds.
    pub(super) to_s: f64,
}

/// Discards of one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) thread: u32,
    pub(super) reason: Reason,
    pub(super) discards: u64,
    /// When it sent the first.
    pub(super) at_s: f64,
}

/// A phase of the run, an actor in it.
pub(super) type PhaseActor = (usize, usize);

/// A cause, and the system call.
pub(super) type WaitKind = (Cause, Option<&'static str>);

/// Time that was spent in one way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    /// The part that no discard in flight covers.
    pub(super) seconds: f64,
    pub(super) looks: u64,
    /// The part that they cover.
    pub(super) behind_s: f64,
    pub(super) behind_looks: u64,
}

/// A stretch of one actor's time, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stretch {
    pub(super) all_s: f64,
    pub(super) own_s: f64,
    pub(super) behind_s: f64,
    pub(super) otherwise_s: f64,
}

impl Stretch {
    fn add(&mut self, other: Stretch) {
        self.all_s += other.all_s;
        self.own_s += other.own_s;
        self.behind_s += other.behind_s;
        self.otherwise_s += other.otherwise_s;
    }
}

/// The state of a thread.
#[derive(Debug, Default)]
struct Track {
    /// Until when it was looked at.
    looked_s: Option<f64>,
    /// Its own discards that no look has covered yet.
    own: Spans,
    reason: Option<Reason>,
}

/// The sums.
#[derive(Debug)]
pub(super) struct Ledger {
    /// When it began, on the monotonic clock in seconds.
    pub(super) from_s: f64,
    pub(super) actors: Vec<String>,
    of_thread: HashMap<u32, usize>,
    tracks: HashMap<u32, Track>,
    /// The first begins before any other.
    pub(super) phases: Vec<Began>,
    pub(super) sums: BTreeMap<PhaseActor, HashMap<WaitKind, Sum>>,
    pub(super) discards: HashMap<PhaseActor, u64>,
    pub(super) threads: HashMap<PhaseActor, HashSet<u32>>,
    pub(super) stretch_s: f64,
    /// By actor.
    pub(super) stretches: Vec<Vec<Stretch>>,
    pub(super) in_flight: HashMap<DeviceNumber, Spans>,
    to_s: f64,
}

impl Ledger {
    /// An empty one that begins at a moment of the monotonic clock, in seconds.
    pub(super) fn new(from_s: f64) -> Ledger {
        Ledger {
            from_s,
            actors: Vec::new(),
            of_thread: HashMap::new(),
            tracks: HashMap::new(),
            phases: vec![Began {
                monotonic_s: 0.0,
                name: PhaseName::Prepare,
                part: Part::Main,
            }],
            sums: BTreeMap::new(),
            discards: HashMap::new(),
            threads: HashMap::new(),
            stretch_s: STRETCH_S,
            stretches: Vec::new(),
            in_flight: HashMap::new(),
            to_s: from_s,
        }
    }

    /// The number of an actor.
    pub(super) fn actor(&mut self, name: &str) -> usize {
        let known = self.actors.iter().position(|one| one == name);
        known.unwrap_or_else(|| {
            self.actors.push(name.to_owned());
            self.stretches.push(Vec::new());
            self.actors.len() - 1
        })
    }

    /// A thread works for an actor.
    pub(super) fn assign(&mut self, thread: u32, actor: usize) {
        // The number of one that has ended may be used again.
        if self.of_thread.insert(thread, actor) != Some(actor) {
            self.tracks.insert(thread, Track::default());
        }
    }

    /// Phases have begun.
    pub(super) fn begin(&mut self, phases: Vec<Began>) {
        self.phases.extend(phases);
    }

    /// Adds a window.
    pub(super) fn fold(&mut self, window: Window) {
        let Window {
            sampled,
            own,
            sent,
            discards,
            to_s,
        } = window;
        self.to_s = to_s;
        self.make_room(to_s);
        self.add_sent(&sent);
        for (thread, spans) in own {
            if let Some(track) = self.tracks.get_mut(&thread)
                && track.reason.is_none_or(waits_itself)
            {
                track.own = std::mem::take(&mut track.own).with(&spans);
            }
        }
        let none = Spans::default();
        let any = discards.iter().fold(none, |sum, one| sum.with(&one.1));
        for sample in &sampled.samples {
            let thread = sampled.threads[sample.thread].thread.tid;
            self.add_sample(sample, thread, &any);
        }
        for (number, spans) in discards {
            let known = self.in_flight.entry(number).or_default();
            *known = std::mem::take(known).with(&spans);
            if known.count() > SPANS {
                *known = known.coarse(self.stretch_s);
            }
        }
    }

    fn add_sent(&mut self, sent: &[Sent]) {
        for one in sent {
            let Some(&actor) = self.of_thread.get(&one.thread) else {
                continue;
            };
            let track = self.tracks.entry(one.thread).or_default();
            if one.reason != Reason::Unknown {
                track.reason = Some(one.reason);
            }
            if track.reason.is_none_or(waits_itself) {
                let scene = (self.phase_at(one.at_s), actor);
                *self.discards.entry(scene).or_default() += one.discards;
            }
        }
    }

    fn add_sample(&mut self, sample: &Sample, thread: u32, discards: &Spans) {
        let Some(&actor) = self.of_thread.get(&thread) else {
            return;
        };
        let to_s = sample.at_s;
        let from_s = to_s - sample.stands_for_s;
        let track = self.tracks.entry(thread).or_default();
        let spans = std::mem::take(&mut track.own);
        let first = track.looked_s.is_none();
        track.looked_s = Some(to_s);
        track.own = spans.within(to_s, f64::INFINITY);
        if first {
            // It began to discard before anybody looked.
            self.add_own(actor, thread, &spans.within(0.0, from_s));
        }
        let scene = (self.phase_at((from_s + to_s) / 2.0), actor);
        self.threads.entry(scene).or_default().insert(thread);
        let own_s = spans.covered(from_s, to_s);
        let rest_s = (sample.stands_for_s - own_s).max(0.0);
        let call = sample.call.and_then(Call::name);
        let cause = match sample.place {
            // Its events tell exactly how long it was in it.
            Place::OwnDiscard if own_s > 0.0 => Cause::Cpu,
            place => place.cause(),
        };
        let behind_s = match sample.place.is_behind_a_device() {
            true => (discards.covered(from_s, to_s) - own_s).clamp(0.0, rest_s),
            false => 0.0,
        };
        let is_own = cause == Cause::InDiscards || own_s > 0.0 && own_s >= rest_s;
        let call_of = |cause: Cause| call.filter(|_| cause.is_blocked());
        let sums = self.sums.entry(scene).or_default();
        if own_s > 0.0 {
            let call = call.filter(|_| sample.place == Place::OwnDiscard);
            let sum = sums.entry((Cause::InDiscards, call)).or_default();
            sum.seconds += own_s;
            sum.looks += u64::from(is_own);
        }
        let sum = sums.entry((cause, call_of(cause))).or_default();
        sum.seconds += rest_s - behind_s;
        sum.behind_s += behind_s;
        if cause == Cause::InDiscards || !is_own {
            match behind_s > rest_s / 2.0 {
                true => sum.behind_looks += 1,
                false => sum.looks += 1,
            }
        }
        let mut stretch = Stretch {
            all_s: sample.stands_for_s,
            own_s,
            behind_s,
            otherwise_s: 0.0,
        };
        match cause {
            Cause::InDiscards => stretch.own_s += rest_s,
            cause if cause.is_blocked() => stretch.otherwise_s = rest_s - behind_s,
            _ => {}
        }
        self.add_stretch(actor, (from_s + to_s) / 2.0, stretch);
    }

    /// Adds discards of a thread's own that no look stands for.
    fn add_own(&mut self, actor: usize, thread: u32, spans: &Spans) {
        for (from_s, to_s) in spans.iter() {
            let scene = (self.phase_at((from_s + to_s) / 2.0), actor);
            self.threads.entry(scene).or_default().insert(thread);
            let sums = self.sums.entry(scene).or_default();
            let sum = sums.entry((Cause::InDiscards, None)).or_default();
            sum.seconds += to_s - from_s;
            let mut at_s = from_s;
            while at_s < to_s {
                let seconds = (to_s - at_s).min(self.stretch_s);
                let stretch = Stretch {
                    all_s: seconds,
                    own_s: seconds,
                    ..Stretch::default()
                };
                self.add_stretch(actor, at_s + seconds / 2.0, stretch);
                at_s += seconds;
            }
        }
    }

    /// Nothing comes any more: adds what no look has covered.
    pub(super) fn end(&mut self) {
        let tracks = std::mem::take(&mut self.tracks);
        for (thread, track) in tracks {
            if let Some(&actor) = self.of_thread.get(&thread) {
                let from_s = track.looked_s.unwrap_or(0.0);
                self.add_own(actor, thread, &track.own.within(from_s, self.to_s));
            }
        }
    }

    /// How many stretches the timeline has.
    pub(super) fn length(&self) -> usize {
        ((self.to_s - self.from_s) / self.stretch_s).ceil().max(0.0) as usize
    }

    fn phase_at(&self, at_s: f64) -> usize {
        let after = self.phases.partition_point(|one| one.monotonic_s <= at_s);
        after.saturating_sub(1)
    }

    /// Makes the stretches longer until a moment lies in one.
    fn make_room(&mut self, at_s: f64) {
        while at_s - self.from_s >= self.stretch_s * STRETCHES as f64 {
            self.stretch_s *= 2.0;
            for all in &mut self.stretches {
                *all = all.chunks(2).map(joined).collect();
            }
        }
    }

    fn add_stretch(&mut self, actor: usize, at_s: f64, stretch: Stretch) {
        self.make_room(at_s);
        let index = ((at_s - self.from_s).max(0.0) / self.stretch_s) as usize;
        let all = &mut self.stretches[actor];
        if all.len() <= index {
            all.resize(index + 1, Stretch::default());
        }
        all[index].add(stretch);
    }
}

fn joined(some: &[Stretch]) -> Stretch {
    let mut sum = Stretch::default();
    some.iter().for_each(|one| sum.add(*one));
    sum
}

/// Whether the thread that sends such discards also waits for them.
fn waits_itself(reason: Reason) -> bool {
    match reason {
        Reason::Trim
        | Reason::Device
        | Reason::Swap
        | Reason::ExtCall
        | Reason::Fat
        | Reason::BtrfsCommit
        | Reason::Unknown => true,
        Reason::BtrfsAsync
        | Reason::ExtCommit
        | Reason::XfsLog
        | Reason::F2fs
        | Reason::Loop
        | Reason::Layer => false,
    }
}
