//! The time of some processes together, by cause.

use std::collections::HashMap;

use linux::mounts::DeviceNumber;
use storage::disks::Disks;

use super::super::frames::Place;
use super::super::observe::Observation;
use super::super::report::{Cause, Stretch, Victim, Wait};
use super::super::sampler::Sample;
use super::super::spans::Spans;
use super::super::timeline::{stretches, tally};
use super::Waiting;

/// A wait whose place isn't known may be at a device whose discards cover this share of it.
const SUSPECT: f64 = 0.1;

/// The time of some processes together: at each moment the thread counts whose wait matters most.
pub(super) fn gather(
    observation: &Observation,
    waiting: &Waiting,
    pid: u32,
    name: String,
    belongs: &dyn Fn(u32) -> bool,
) -> (Victim, Vec<Stretch>) {
    let sampled = &observation.sampled;
    let mine = |sample: &&Sample| belongs(sampled.threads[sample.thread].thread.pid);
    let all: Vec<&Sample> = sampled.samples.iter().filter(mine).collect();
    let calls = || waiting.own.iter().filter(|one| belongs(one.pid));
    let own = calls().fold(Spans::default(), |sum, one| sum.with(&one.spans));
    let traced_s = own.length_s();
    let mut sums = Sums {
        observation,
        waiting,
        waits: HashMap::new(),
        timeline: stretches(observation, &waiting.discards_at(&all)),
        in_discard: all.iter().find(|one| is_in_discard(one)).copied(),
        own,
    };
    let (mut looks, mut last_s) = (Looks::default(), None);
    for turn in all.chunk_by(|a, b| a.at_s == b.at_s) {
        let at_s = turn[0].at_s;
        let longest = turn.iter().map(|s| s.stands_for_s).fold(0.0, f64::max);
        let seconds = last_s.map_or(longest, |last| longest.min(at_s - last));
        // No look stands for the time in between.
        sums.add_own(last_s.unwrap_or(observation.from_s), at_s - seconds);
        sums.add_turn(turn, seconds);
        looks.add(seconds);
        last_s = Some(at_s);
    }
    sums.add_own(last_s.unwrap_or(observation.from_s), observation.to_s);
    let (waits, timeline) = sums.finish();
    let sum = |of: fn(Cause) -> bool| {
        let some = waits.iter().filter(|wait| of(wait.cause));
        // An empty sum is -0.0.
        some.map(|wait| wait.seconds).sum::<f64>() + 0.0
    };
    let looked = sampled.threads.iter().map(|one| one.thread);
    let looked = looked.filter(|one| belongs(one.pid));
    let looked = looked.flat_map(|one| [one.pid, one.tid]);
    let victim = Victim {
        threads: looked.chain(calls().map(|one| one.tid)).collect(),
        pid,
        name,
        seconds: sum(|_| true),
        blocked_s: sum(Cause::is_blocked),
        discards_s: sum(Cause::is_discards),
        waits,
        looks: looks.count(),
        traced_s,
    };
    (victim, timeline)
}

/// How many looks that stand for equal times would be as sure as these (Kish's effective number).
#[derive(Default)]
struct Looks {
    sum_s: f64,
    squares: f64,
}

impl Looks {
    fn add(&mut self, stands_for_s: f64) {
        self.sum_s += stands_for_s;
        self.squares += stands_for_s * stands_for_s;
    }

    fn count(&self) -> u64 {
        (self.sum_s * self.sum_s / self.squares.max(f64::MIN_POSITIVE)).round() as u64
    }
}

/// Whether a look shows in which call a thread is in a discard of its own.
fn is_in_discard(sample: &Sample) -> bool {
    sample.place == Place::OwnDiscard && sample.call.is_some()
}

/// Sums by the way that the time was spent, and by time.
struct Sums<'a> {
    observation: &'a Observation,
    waiting: &'a Waiting,
    waits: HashMap<Way, Spent>,
    timeline: Vec<Stretch>,
    /// When these were in discards of their own, by their events.
    own: Spans,
    /// The last look at one in a discard of its own; before that the next.
    in_discard: Option<&'a Sample>,
}

impl<'a> Sums<'a> {
    /// Adds what looks of one moment stand for. The events show exactly what of it was spent in own
    /// discards.
    fn add_turn(&mut self, turn: &[&'a Sample], seconds: f64) {
        let (waiting, stacks) = (self.waiting, &self.observation.sampled.stacks);
        let causes = |sample: &&Sample| waiting.causes(sample, &stacks[sample.stack], seconds);
        let rank = |sample: &&Sample| {
            let all = causes(sample);
            let most = all.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            most.map(|one| one.0)
        };
        let Some(sample) = turn.iter().min_by_key(|sample| rank(sample)).copied() else {
            return;
        };
        if is_in_discard(sample) {
            self.in_discard = Some(sample);
        }
        let at_s = sample.at_s;
        let own_s = self.add_own(at_s - seconds, at_s);
        let rest = (1.0 - own_s / seconds.max(1e-9)).max(0.0);
        let mut place = sample.place;
        for (mut cause, part) in causes(&sample) {
            if cause == Cause::InDiscards && own_s > 0.0 {
                (cause, place) = (Cause::Cpu, Place::Running);
            }
            let call = sample.call.and_then(|call| call.name());
            let call = call.filter(|_| place == sample.place);
            let below = sample.below.filter(|_| place == sample.place);
            let spent = self.waits.entry((cause, place, call, below));
            let spent = spent.or_default();
            spent.seconds += part * rest;
            if cause == Cause::BehindDiscards && sample.below.is_none() {
                let stack = &stacks[sample.stack];
                for (device, spans) in &waiting.candidates(stack).each {
                    let covered = waiting.covered(spans, at_s, seconds);
                    *spent.suspects.entry(*device).or_default() += covered * rest;
                }
            }
            let stack = if place == sample.place {
                sample.stack
            } else {
                0
            };
            *spent.stacks.entry(stack).or_default() += part * rest;
            let end_s = at_s - self.observation.from_s;
            tally(&mut self.timeline, end_s, cause, part * rest);
        }
    }

    /// Adds what lies within a stretch of the time in own discards, and returns its length in
    /// seconds.
    fn add_own(&mut self, from_s: f64, to_s: f64) -> f64 {
        let own = self.own.within(from_s, to_s);
        let own_s = own.length_s();
        if own_s <= 0.0 {
            return 0.0;
        }
        let like = self.in_discard;
        let call = like.and_then(|one| one.call).and_then(|call| call.name());
        let below = like.and_then(|one| one.below);
        let way = (Cause::InDiscards, Place::OwnDiscard, call, below);
        let spent = self.waits.entry(way).or_default();
        spent.seconds += own_s;
        let stack = like.map_or(0, |one| one.stack);
        *spent.stacks.entry(stack).or_default() += own_s;
        for (from_s, to_s) in own.iter() {
            let end_s = to_s - self.observation.from_s;
            tally(&mut self.timeline, end_s, Cause::InDiscards, to_s - from_s);
        }
        own_s
    }

    /// The waits, the longest first, and the timeline.
    fn finish(self) -> (Vec<Wait>, Vec<Stretch>) {
        let observation = self.observation;
        let sampled = &observation.sampled;
        let spent = self.waits.into_iter().filter(|one| one.1.seconds > 0.0);
        let waits = spent.map(|((cause, place, call, below), spent)| Wait {
            cause,
            place,
            call,
            at: below.map(|index| sampled.places[index].at.clone()),
            devices: below.map_or(Vec::new(), |index| {
                let devices = sampled.places[index].devices.iter();
                devices.map(|one| observation.disks.name(*one)).collect()
            }),
            suspects: spent.suspects(&observation.disks),
            deleted: below
                .filter(|_| matches!(place, Place::Cleaner | Place::Quotas))
                .and_then(|index| sampled.deleted.get(&sampled.places[index].at))
                .cloned(),
            seconds: spent.seconds,
            stack: sampled
                .stacks
                .get(spent.most())
                .cloned()
                .unwrap_or_default(),
        });
        let mut waits: Vec<Wait> = waits.collect();
        waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        (waits, self.timeline)
    }
}

/// A way to spend time: cause, place, call, and the file system or device.
type Way = (Cause, Place, Option<&'static str>, Option<usize>);

/// Time spent in one way, by stack.
#[derive(Default)]
struct Spent {
    seconds: f64,
    stacks: HashMap<usize, f64>,
    /// How long each device discarded meanwhile, where the place isn't known.
    suspects: HashMap<DeviceNumber, f64>,
}

impl Spent {
    fn suspects(&self, disks: &Disks) -> Vec<String> {
        let all = self.suspects.iter();
        let some = all.filter(|one| *one.1 > 0.0 && *one.1 >= SUSPECT * self.seconds);
        let mut names: Vec<String> = some.map(|one| disks.name(*one.0)).collect();
        names.sort();
        names
    }

    fn most(&self) -> usize {
        let most = self.stacks.iter().max_by(|a, b| a.1.total_cmp(b.1));
        most.map_or(0, |one| *one.0)
    }
}
