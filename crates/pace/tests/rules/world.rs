//! The simplest device: it discards what was freed after a while, or doesn't.

use std::time::Duration;

use pace::{Advice, Discards, Feedback, Pacer, Space, Why};
use ssd::Time;

/// A device, and what was done on it.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// Seconds from freeing to having discarded it; `None`: never.
    pub(crate) after: Option<f64>,
    /// The share of what was freed that is discarded.
    pub(crate) share: f64,
    /// Other people's discards, in bytes for each second.
    pub(crate) others: f64,
    /// In discards of so many bytes, a millisecond each; 0: as parts of larger ones.
    pub(crate) others_size: u64,
    pub(crate) space: Option<Space>,
    pub(crate) now: f64,
    pub(crate) freed: u64,
    pub(crate) left: u64,
    pub(crate) commits: u64,
    pub(crate) largest: u64,
    pub(crate) said: Vec<(f64, Advice)>,
    pub(crate) most_in_flight: u64,
    due: Vec<(f64, u64)>,
    bytes: u64,
    commands: u64,
    pub(crate) busy: f64,
}

impl World {
    pub(crate) fn new(bytes: u64, after: Option<f64>) -> World {
        World {
            after,
            share: 1.0,
            others: 0.0,
            others_size: 0,
            space: None,
            now: 0.0,
            freed: 0,
            left: bytes,
            commits: 0,
            largest: 128 << 20,
            said: Vec::new(),
            most_in_flight: 0,
            due: Vec::new(),
            bytes: 0,
            commands: 0,
            busy: 0.0,
        }
    }

    pub(crate) fn pass(&mut self, seconds: f64) {
        self.now += seconds;
        let now = self.now;
        let (done, due) = self.due.iter().partition(|(at, _)| *at <= now);
        self.due = due;
        let done: Vec<(f64, u64)> = done;
        for (_, bytes) in done {
            self.bytes += bytes;
            self.commands += bytes.div_ceil(self.largest);
            self.busy += self.takes(bytes);
        }
        self.bytes += (self.others * seconds) as u64;
        if self.others_size > 0 {
            let commands = self.others * seconds / self.others_size as f64;
            self.commands += commands.round() as u64;
            self.busy += commands * 0.001;
        }
    }

    /// Seconds that the discards of so many bytes take.
    fn takes(&self, bytes: u64) -> f64 {
        bytes.div_ceil(self.largest) as f64 * 0.001 + bytes as f64 * 1e-11
    }

    pub(crate) fn feedback(&self) -> Feedback<'static> {
        Feedback {
            now: Time::from_secs_f64(self.now),
            freed: self.freed,
            left: Some(self.left),
            commits: self.commits,
            discards: Discards {
                commands: self.commands,
                bytes: self.bytes,
                busy: Some(Duration::from_millis((self.busy * 1e3) as u64)),
            },
            space: self.space,
            ..Feedback::default()
        }
    }

    /// One question and what follows; false when it is over.
    pub(crate) fn step(&mut self, pacer: &mut Pacer) -> bool {
        let advice = pacer.advise(&self.feedback());
        self.said.push((self.now, advice));
        if matches!(advice.why, Why::Done | Why::Refused) {
            return false;
        }
        if advice.commit {
            self.commits += 1;
            self.pass(0.005);
        }
        let freed = advice.allow.min(self.left);
        if freed > 0 {
            self.freed += freed;
            self.left -= freed;
            if let Some(after) = self.after {
                let comes = (freed as f64 * self.share) as u64;
                let done = self.now + after.max(self.takes(comes));
                self.due.push((done, comes));
            }
            self.pass(0.001);
            let in_flight: u64 = self.due.iter().map(|d| d.1).sum();
            self.most_in_flight = self.most_in_flight.max(in_flight);
        } else {
            self.pass(advice.ask_again.as_secs_f64().max(1e-6));
        }
        true
    }

    /// To the end, or so many questions; whether it came to its end.
    pub(crate) fn run(&mut self, pacer: &mut Pacer, questions: usize) -> bool {
        (0..questions).any(|_| !self.step(pacer))
    }
}
