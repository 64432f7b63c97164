//! The last minutes, in pieces, in a bounded amount of memory.

use std::collections::{HashMap, VecDeque};

use linux::mounts::DeviceNumber;
use serde::{Deserialize, Serialize};

use super::super::observe::Did;
use super::super::sampler::{Sample, Sampled};
use super::super::spans::Spans;
use super::super::trace::{Deleter, Sender, Trace};

/// Discards of one device in one piece are kept singly up to this number.
const MOST_SPANS: usize = 200;

/// More than that are kept in grains of this length, in seconds.
const GRAIN_S: f64 = 0.005;

/// At most so much is kept, in units of about 20 bytes: some 10 MiB.
const MOST_WEIGHT: usize = 500_000;

/// A stretch of time of the recorder.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// The devices' work.
    Work(Work),
    /// Where threads waited.
    Looks(Looks),
}

/// The work of the devices in a stretch of time.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Work {
    /// The stretch, on the monotonic clock in seconds.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    senders: Vec<Sender>,
    deleters: Vec<Deleter>,
    discards: Vec<(DeviceNumber, Spans)>,
    lost: u64,
    devices: Vec<(DeviceNumber, Vec<Did>)>,
}

/// Looks at threads in a stretch of time: those of threads that waited for something.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Looks {
    /// The stretch, on the monotonic clock in seconds.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// The looks.
    pub sampled: Sampled,
}

impl Work {
    /// A drained trace, with the devices' statistics.
    pub fn new(
        (from_s, to_s): (f64, f64),
        trace: Trace,
        devices: Vec<(DeviceNumber, Vec<Did>)>,
    ) -> Work {
        let discards = trace.discards.into_iter();
        let discards = discards.filter(|one| one.1.count() > 0);
        let discards = discards.map(|(device, spans)| match spans.count() > MOST_SPANS {
            true => (device, spans.coarse(GRAIN_S)),
            false => (device, spans),
        });
        let did = |one: &Did| {
            let work = &one.work;
            work.reads + work.writes + work.discards + work.in_flight + one.flushes.0 > 0
        };
        let devices = devices.into_iter().map(|(number, mut all)| {
            all.retain(did);
            (number, all)
        });
        Work {
            from_s,
            to_s,
            senders: trace.senders,
            deleters: trace.deleters,
            discards: discards.collect(),
            lost: trace.lost,
            devices: devices.filter(|one| !one.1.is_empty()).collect(),
        }
    }

    /// Adds it to what was observed.
    pub fn add_to(self, trace: &mut Trace, devices: &mut HashMap<DeviceNumber, Vec<Did>>) {
        let mut later = Trace::default();
        later.senders = self.senders;
        later.deleters = self.deleters;
        later.discards = self.discards.into_iter().collect();
        later.lost = self.lost;
        trace.add(&later);
        for (number, did) in self.devices {
            devices.entry(number).or_default().extend(did);
        }
    }

    fn weight(&self) -> usize {
        let spans: usize = self.discards.iter().map(|one| one.1.count()).sum();
        let did: usize = self.devices.iter().map(|one| one.1.len()).sum();
        10 + spans + 7 * did + 10 * (self.senders.len() + self.deleters.len())
    }
}

impl Looks {
    /// Keeps of what was seen the threads that waited, and of their other looks the time alone.
    pub fn new((from_s, to_s): (f64, f64), seen: Sampled) -> Looks {
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut sampled = Sampled {
            stacks: seen.stacks,
            places: seen.places,
            deleted: seen.deleted,
            without_stacks: seen.without_stacks,
            turns: seen.turns,
            partial_turns: seen.partial_turns,
            ..Sampled::default()
        };
        for sample in seen.samples.iter().filter(|sample| sample.waits()) {
            places.entry(sample.thread).or_insert_with(|| {
                sampled.threads.push(seen.threads[sample.thread].clone());
                sampled.threads.len() - 1
            });
        }
        let mut last: HashMap<usize, usize> = HashMap::new();
        for sample in seen.samples {
            let Some(thread) = places.get(&sample.thread).copied() else {
                continue;
            };
            let known = last.get(&thread).copied();
            let known = known.and_then(|index| sampled.samples.get_mut(index));
            match known {
                Some(known) if joins(known, &sample) => {
                    known.stands_for_s += sample.stands_for_s;
                    known.at_s = sample.at_s;
                }
                _ => {
                    last.insert(thread, sampled.samples.len());
                    sampled.samples.push(Sample { thread, ..sample });
                }
            }
        }
        let mut all = std::mem::take(&mut sampled.samples);
        all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        sampled.samples = all;
        Looks {
            from_s,
            to_s,
            sampled,
        }
    }

    /// Adds them to those that were seen before.
    pub fn add_to(self, all: &mut Sampled) {
        let sampled = self.sampled;
        let (threads, stacks) = (all.threads.len(), all.stacks.len());
        let place = |place| {
            let known = all.places.iter().position(|one| *one == place);
            known.unwrap_or_else(|| {
                all.places.push(place);
                all.places.len() - 1
            })
        };
        let places: Vec<usize> = sampled.places.into_iter().map(place).collect();
        all.threads.extend(sampled.threads);
        all.stacks.extend(sampled.stacks);
        all.samples
            .extend(sampled.samples.into_iter().map(|sample| Sample {
                thread: sample.thread + threads,
                stack: sample.stack + stacks,
                below: sample.below.and_then(|below| places.get(below).copied()),
                ..sample
            }));
        for (at, deleted) in &sampled.deleted {
            all.deleted.entry(at.clone()).or_default().join(deleted);
        }
        all.without_stacks |= sampled.without_stacks;
        all.turns += sampled.turns;
        all.partial_turns += sampled.partial_turns;
    }

    fn weight(&self) -> usize {
        let frames: usize = self.sampled.stacks.iter().map(Vec::len).sum();
        10 + 5 * self.sampled.samples.len() + 4 * self.sampled.threads.len() + 3 * frames
    }
}

/// Whether a look says only that the thread still runs or sleeps.
fn joins(known: &Sample, next: &Sample) -> bool {
    !known.waits() && !next.waits() && known.place == next.place
}

/// The last pieces.
#[derive(Debug)]
pub struct Ring {
    pieces: VecDeque<(usize, Piece)>,
    weight: usize,
    keep_s: f64,
    /// Everything since then is kept, on the monotonic clock in seconds.
    complete_s: f64,
}

impl Ring {
    /// An empty one that keeps `keep_s` seconds, from now on.
    pub fn new(keep_s: f64, now_s: f64) -> Ring {
        Ring {
            pieces: VecDeque::new(),
            weight: 0,
            keep_s,
            complete_s: now_s,
        }
    }

    /// Adds a piece, and drops what is too old or too much.
    pub fn push(&mut self, piece: Piece) {
        let (weight, to_s) = match &piece {
            Piece::Work(work) => (work.weight(), work.to_s),
            Piece::Looks(looks) => (looks.weight(), looks.to_s),
        };
        self.pieces.push_back((weight, piece));
        self.weight += weight;
        while let Some((weight, first)) = self.pieces.front() {
            let end_s = first.to_s();
            let old = end_s <= to_s - self.keep_s;
            if !old && self.weight <= MOST_WEIGHT {
                break;
            }
            self.complete_s = self.complete_s.max(end_s);
            self.weight -= weight;
            self.pieces.pop_front();
        }
    }

    /// Everything since this moment is kept, on the monotonic clock in seconds.
    pub fn complete_s(&self) -> f64 {
        self.complete_s
    }

    /// The pieces that end after a moment.
    pub fn since(&self, from_s: f64) -> impl Iterator<Item = &Piece> {
        let all = self.pieces.iter().map(|one| &one.1);
        all.filter(move |piece| piece.to_s() > from_s)
    }
}

impl Piece {
    fn to_s(&self) -> f64 {
        match self {
            Piece::Work(work) => work.to_s,
            Piece::Looks(looks) => looks.to_s,
        }
    }
}
