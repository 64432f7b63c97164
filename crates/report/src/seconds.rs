//! Histograms of the response times of single seconds, and of shorter stretches while data was deleted.
//! A [`RunRecord`](record::RunRecord) leaves them in its file; the heat map needs them.
//!
//! They are kept as the text they were recorded as: decoded, an hour of four
//! actors would take gigabytes.

use record::as_drive::latencies_as_drive;
use record::{Grain, Latency, Line};

/// More actors no record has in a second.
const NEAR: usize = 256;

/// The response times of one actor in one second, or in one stretch.
#[derive(Debug, Clone, PartialEq)]
pub struct Second {
    /// Index into the head's actors.
    pub actor: usize,
    /// Its start, in seconds since the record's zero.
    pub at_s: f64,
    /// Its length, in seconds.
    pub seconds: f64,
    /// HdrHistogram V2 (deflate), base64; values in nanoseconds.
    pub v2: String,
}

/// All of a record's, in the order in which they were recorded.
#[derive(Debug, Clone, Default)]
pub struct Seconds {
    all: Vec<Second>,
    /// Of the deletion, parts of these seconds.
    stretches: Vec<Second>,
}

impl Seconds {
    /// None yet; a record without them (an imported one) gives the same.
    pub fn new() -> Seconds {
        Seconds::default()
    }

    /// Takes what there is to take from a line of a record.
    pub fn push(&mut self, line: Line) {
        let Line::Histogram(line) = line else { return };
        if line.latency != Latency::Response {
            return;
        }
        let (at_s, seconds, to) = match line.over {
            Grain::SecondAt(at_s) => (at_s, 1.0, &mut self.all),
            Grain::Stretch { at_s, seconds } => (at_s, seconds, &mut self.stretches),
            Grain::Phase(_) => return,
        };
        if at_s.is_finite() && seconds.is_finite() && seconds > 0.0 {
            to.push(Second {
                actor: line.actor,
                at_s,
                seconds,
                v2: line.v2,
            });
        }
    }

    /// The same in [the time of the drive](record::as_drive()), for a record of a drive that
    /// was `times` slower. Seconds that fall into the same second there are added up, and
    /// stretches that fall into the same tenth of one.
    pub fn as_drive(&self, times: f64) -> Seconds {
        Seconds {
            all: as_drive(&self.all, times, 1.0),
            stretches: as_drive(&self.stretches, times, 0.1),
        }
    }

    /// The seconds of one actor.
    pub(crate) fn of(&self, actor: usize) -> impl Iterator<Item = &Second> {
        self.all.iter().filter(move |second| second.actor == actor)
    }

    /// The stretches of one actor, each within one of its seconds.
    pub(crate) fn stretches(&self, actor: usize) -> impl Iterator<Item = &Second> {
        let all = self.stretches.iter();
        all.filter(move |second| second.actor == actor)
    }
}

/// Times of a drive `times` as fast, in pieces of `grid_s`.
fn as_drive(all: &[Second], times: f64, grid_s: f64) -> Vec<Second> {
    let mut places: Vec<(Second, Vec<&str>)> = Vec::new();
    for second in all {
        let at_s = (second.at_s / times / grid_s).floor() * grid_s;
        // Near the end: they come in order of time.
        let mut near = places.iter_mut().rev().take(NEAR);
        let same = near.find(|(place, _)| place.actor == second.actor && place.at_s == at_s);
        match same {
            Some((_, texts)) => texts.push(&second.v2),
            None => {
                let place = Second {
                    at_s,
                    seconds: grid_s,
                    ..second.clone()
                };
                places.push((place, vec![&second.v2]));
            }
        }
    }
    let all = places.into_iter().map(|(place, texts)| Second {
        v2: latencies_as_drive(&texts, times),
        ..place
    });
    all.collect()
}

impl FromIterator<Line> for Seconds {
    fn from_iter<I: IntoIterator<Item = Line>>(lines: I) -> Seconds {
        let mut seconds = Seconds::new();
        lines.into_iter().for_each(|line| seconds.push(line));
        seconds
    }
}

#[cfg(test)]
mod tests {
    use record::{
        HistogramLine, Part, PhaseName, decode_histogram, encode_histogram, second_histogram,
    };

    use super::*;

    fn line(over: Grain) -> Line {
        line_of(over, Latency::Response)
    }

    fn line_of(over: Grain, latency: Latency) -> Line {
        let mut histogram = second_histogram();
        histogram.record(73_000).unwrap();
        Line::Histogram(HistogramLine {
            actor: 1,
            latency,
            over,
            part: Part::Main,
            v2: encode_histogram(&histogram),
        })
    }

    #[test]
    fn only_response_times_of_seconds_are_taken() {
        let grains = [Grain::SecondAt(2.0), Grain::Phase(PhaseName::Delete)];
        let mut seconds: Seconds = grains.into_iter().map(line).collect();
        seconds.push(line_of(Grain::SecondAt(3.0), Latency::Service));
        assert_eq!(seconds.of(1).count(), 1);
        assert_eq!(seconds.of(0).count(), 0);
    }

    #[test]
    fn seconds_of_a_slowed_drive_are_added_up() {
        let slow: Seconds = (0..8)
            .map(|at| line(Grain::SecondAt(f64::from(at))))
            .collect();
        let fast = slow.as_drive(4.0);
        let at: Vec<f64> = fast.of(1).map(|second| second.at_s).collect();
        assert_eq!(at, [0.0, 1.0]);
        for second in fast.of(1) {
            let histogram = decode_histogram(&second.v2).unwrap();
            assert_eq!(histogram.len(), 4);
            let us = histogram.max() as f64 / 1e3;
            assert!((18.0..18.6).contains(&us), "73 us / 4 is {us} us");
        }
    }
}
