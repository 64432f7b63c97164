//! Faults that are set on purpose.
//!
//! A fault is written as words, so that it can be set over the control socket
//! while the drive runs:
//!
//! ```text
//! KIND EFFECT [at OFFSET+LEN] [rate PERCENT] [after N] [times N]
//!
//! read error rate 1%              every hundredth read fails
//! write error at 1M+4k            writes that touch these bytes fail
//! flush error after 10 times 1    the eleventh flush fails
//! flush lost                      flushes are acknowledged and not done
//! write power after 99            the power is cut when the hundredth write arrives
//! write lost                      writes are acknowledged and dropped: stale data
//! write misplaced 1M              data land this many bytes behind their place, which keeps
//!                                 its old data
//! read zeros | flip | holes       what reads return is wrong: zeros, one bit, or
//!                                 every other byte 0xff (over 16 KiB: at X+16k)
//! discard error | nothing         discards fail, or do nothing
//! discard neighbour 4k            discards also take this many bytes behind them
//! discard late 500ms              discards are answered at once and done this much later:
//!                                 newer writes there are lost as well
//! ```
//!
//! Rates are drawn from a generator with a fixed seed, so a run repeats.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use ssd::Rng;

use crate::stats::{FaultStats, Kind};

/// The longest delay of a late discard.
const LATEST: Duration = Duration::from_secs(86_400);

/// A fault, and when it strikes. See the module for its words.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    kind: Kind,
    effect: Effect,
    /// Only commands that touch these bytes.
    at: Option<Range<u64>>,
    /// The share of these commands that it strikes.
    rate: f64,
    /// The number of them that it lets pass first.
    after: u64,
    /// The most commands that it strikes.
    times: u64,
    /// How many it has struck.
    struck: u64,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Error,
    /// A write or a discard that is answered and not done.
    Nothing,
    Zeros,
    Flip,
    Holes,
    Neighbour(u64),
    /// A write whose data land this many bytes behind their place.
    Misplaced(u64),
    /// The power is cut before it is done.
    Power,
    /// A discard that is answered first and done after this much real time.
    Late(Duration),
}

/// Why a fault can't be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "fault `{text}`: {why}; it is KIND EFFECT [at OFFSET+LEN] [rate PERCENT] [after N] [times N], \
     e.g. `read error rate 1%` or `discard neighbour 4k times 1`"
)]
pub struct BadFault {
    text: String,
    why: String,
}

impl Fault {
    /// Whether it can strike on a drive of this size.
    ///
    /// # Errors
    /// If its place is behind the drive's end.
    pub(crate) fn fits(self, size: u64) -> Result<Fault, BadFault> {
        match &self.at {
            Some(at) if at.start >= size => Err(BadFault {
                text: self.text.clone(),
                why: format!("the drive ends at byte {size}, before that place"),
            }),
            _ => Ok(self),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Fault {
    type Err = BadFault;

    fn from_str(text: &str) -> Result<Fault, BadFault> {
        let bad = |why: &str| BadFault {
            text: text.to_owned(),
            why: why.to_owned(),
        };
        let mut words = text.split_whitespace();
        let mut next = |what: &str| {
            words
                .next()
                .ok_or_else(|| bad(&format!("{what} is missing")))
        };
        let kind = Kind::from_str(next("the kind")?).map_err(|why| bad(&why.to_string()))?;
        let effect = match (kind, next("the effect")?) {
            (_, "error") => Effect::Error,
            (Kind::Write | Kind::Flush, "lost") | (Kind::Discard, "nothing") => Effect::Nothing,
            (Kind::Write | Kind::Flush | Kind::Discard, "power") => Effect::Power,
            (Kind::Read, "zeros") => Effect::Zeros,
            (Kind::Read, "flip") => Effect::Flip,
            (Kind::Read, "holes") => Effect::Holes,
            (Kind::Discard, "neighbour") => {
                let size = size(next("its size")?).ok_or_else(|| bad("the size is like 4k"))?;
                Effect::Neighbour(size)
            }
            (Kind::Write, "misplaced") => {
                let size = size(next("how far")?).filter(|size| size % 512 == 0);
                Effect::Misplaced(size.ok_or_else(|| bad("how far is like 1M, whole sectors"))?)
            }
            (Kind::Discard, "late") => {
                let span = record::units::parse_duration(next("how late")?);
                let span = span.ok().filter(|span| *span <= LATEST);
                Effect::Late(span.ok_or_else(|| bad("how late is like 500ms, at most a day"))?)
            }
            (kind, _) => {
                return Err(bad(&format!(
                    "the effects of {} are {}",
                    kind.name(),
                    effects(kind)
                )));
            }
        };
        let mut fault = Fault {
            kind,
            effect,
            at: None,
            rate: 1.0,
            after: 0,
            // The power is cut once.
            times: if effect == Effect::Power { 1 } else { u64::MAX },
            struck: 0,
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        while let Some(word) = words.next() {
            let value = words
                .next()
                .ok_or_else(|| bad(&format!("`{word}` needs a value")))?;
            let number = || value.parse().map_err(|_| bad("a count is a whole number"));
            match word {
                "at" => fault.at = Some(place(value).ok_or_else(|| bad("a place is like 1M+16k"))?),
                "rate" => {
                    fault.rate = rate(value)
                        .ok_or_else(|| bad("a rate is above 0% and at most 100%, such as 5%"))?
                }
                "after" => fault.after = number()?,
                "times" => match number()? {
                    0 => return Err(bad("it strikes at least once: times is 1 or more")),
                    times => fault.times = times,
                },
                _ => return Err(bad(&format!("`{word}` means nothing here"))),
            }
        }
        Ok(fault)
    }
}

fn effects(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "error, zeros, flip and holes",
        Kind::Write => "error, lost, misplaced BYTES and power",
        Kind::Flush => "error, lost and power",
        Kind::Discard => "error, nothing, neighbour BYTES, late TIME and power",
        Kind::Zero => "error",
    }
}

fn place(text: &str) -> Option<Range<u64>> {
    let (start, len) = text.split_once('+')?;
    let (start, len) = (size(start)?, size(len)?);
    let place = start..start.checked_add(len)?;
    Some(place).filter(|place| !place.is_empty())
}

fn rate(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%')?.parse().ok()?;
    (percent > 0.0 && percent <= 100.0).then_some(percent / 100.0)
}

fn size(text: &str) -> Option<u64> {
    record::units::parse_size(text).ok()
}

/// The faults that are in force.
#[derive(Debug)]
pub(crate) struct Faults {
    list: Vec<Fault>,
    rng: Rng,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            list: Vec::new(),
            rng: Rng::new(1),
        }
    }
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.list.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
    }

    pub(crate) fn list(&self) -> Vec<FaultStats> {
        let stats = |fault: &Fault| FaultStats {
            fault: fault.to_string(),
            struck: fault.struck,
            over: fault.struck >= fault.times,
        };
        self.list.iter().map(stats).collect()
    }

    /// Returns the outcome of a command: the first fault that strikes it decides.
    pub(crate) fn judge(&mut self, kind: Kind, range: &Range<u64>) -> Outcome {
        if self.list.is_empty() {
            return Outcome::default();
        }
        for fault in &mut self.list {
            let touches = fault.at.as_ref().is_none_or(|at| {
                kind == Kind::Flush || at.start < range.end && range.start < at.end
            });
            if fault.kind != kind || !touches || fault.struck >= fault.times {
                continue;
            }
            if fault.after > 0 {
                fault.after -= 1;
                continue;
            }
            if fault.rate < 1.0 && self.rng.unit() >= fault.rate {
                continue;
            }
            fault.struck += 1;
            return Outcome(Some((fault.effect, fault.at.clone())));
        }
        Outcome::default()
    }
}

/// The outcome of one command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome(Option<(Effect, Option<Range<u64>>)>);

impl Outcome {
    fn effect(&self) -> Option<Effect> {
        self.0.as_ref().map(|(effect, _)| *effect)
    }

    pub(crate) fn fails(&self) -> bool {
        self.effect() == Some(Effect::Error)
    }

    /// Whether the power is cut when it arrives.
    pub(crate) fn cuts_power(&self) -> bool {
        self.effect() == Some(Effect::Power)
    }

    /// Whether a write's data are kept, and a flush or a discard is done.
    pub(crate) fn stores(&self) -> bool {
        !matches!(self.effect(), Some(Effect::Error | Effect::Nothing))
    }

    /// Returns the range that a discard of `range` really discards.
    pub(crate) fn trimmed(&self, range: Range<u64>) -> Range<u64> {
        match self.effect() {
            Some(Effect::Neighbour(more)) => range.start..range.end.saturating_add(more),
            _ => range,
        }
    }

    /// Where the data of a write land on a drive of `size` bytes: before their place where there
    /// is no room behind it.
    pub(crate) fn lands(&self, range: &Range<u64>, size: u64) -> u64 {
        match self.effect() {
            Some(Effect::Misplaced(by)) if range.end.saturating_add(by) <= size => range.start + by,
            Some(Effect::Misplaced(by)) => range.start.saturating_sub(by),
            _ => range.start,
        }
    }

    /// How long after its answer a discard is done.
    pub(crate) fn late(&self) -> Option<Duration> {
        match self.effect() {
            Some(Effect::Late(span)) => Some(span),
            _ => None,
        }
    }

    /// Spoils what a read returns that begins at `start`.
    pub(crate) fn spoil(&self, start: u64, data: &mut [u8]) {
        let Some((effect, at)) = &self.0 else { return };
        let whole = start..start + data.len() as u64;
        let at = at.clone().unwrap_or(whole.clone());
        let from = at.start.clamp(whole.start, whole.end) - start;
        let to = at.end.clamp(whole.start, whole.end) - start;
        let part = &mut data[from as usize..to as usize];
        match effect {
            Effect::Zeros => part.fill(0),
            Effect::Flip => {
                if let Some(byte) = part.first_mut() {
                    *byte ^= 1;
                }
            }
            Effect::Holes => {
                // Every other byte of the place, wherever this read begins in it.
                let first = 1 - (start + from - at.start) % 2;
                let holes = part.iter_mut().skip(first as usize).step_by(2);
                holes.for_each(|byte| *byte = 0xff);
            }
            Effect::Error
            | Effect::Nothing
            | Effect::Neighbour(_)
            | Effect::Misplaced(_)
            | Effect::Power
            | Effect::Late(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(faults: &mut Faults, kind: Kind, range: Range<u64>) -> Outcome {
        faults.judge(kind, &range)
    }

    fn with(text: &str) -> Faults {
        let mut faults = Faults::default();
        faults.add(text.parse().unwrap());
        faults
    }

    #[test]
    fn strikes_where_when_and_as_often_as_told() {
        let mut faults = with("write error at 1M+4k after 1 times 2");
        let inside = (1 << 20) + 512..(1 << 20) + 1024;
        assert!(!judge(&mut faults, Kind::Write, 0..1 << 20).fails());
        assert!(!judge(&mut faults, Kind::Read, inside.clone()).fails());
        let struck: Vec<bool> = (0..4)
            .map(|_| judge(&mut faults, Kind::Write, inside.clone()).fails())
            .collect();
        assert_eq!(struck, [false, true, true, false]);

        let mut faults = with("read error rate 10%");
        let struck = (0..10_000).filter(|_| judge(&mut faults, Kind::Read, 0..1).fails());
        assert!((900..1100).contains(&struck.count()));
    }

    #[test]
    fn spoils_only_the_place() {
        let mut faults = with("read holes at 4+4");
        let mut data = [0; 12];
        judge(&mut faults, Kind::Read, 2..14).spoil(2, &mut data);
        assert_eq!(data, [0, 0, 0, 0xff, 0, 0xff, 0, 0, 0, 0, 0, 0]);
        let mut data = [7; 3];
        judge(&mut with("read flip"), Kind::Read, 0..3).spoil(0, &mut data);
        assert_eq!(data, [6, 7, 7]);
    }

    #[test]
    fn says_what_it_does_not_understand() {
        for bad in [
            "",
            "read",
            "read lost",
            "flush error rate 1",
            "write error at 5",
            "x y",
            "read error often",
            "discard late",
            "discard late soon",
            "discard late 2000h",
            "read power",
            "read error rate 0%",
            "read error rate 101%",
            "read error times 0",
            "read error at 1M+0",
            "read late 1s",
        ] {
            let error = bad.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains("KIND EFFECT"), "{error}");
        }
        let fault: Fault = " discard  neighbour 4k ".parse().unwrap();
        assert_eq!(fault.to_string(), "discard neighbour 4k");
        let outcome = judge(&mut with("discard neighbour 4k"), Kind::Discard, 0..10);
        assert_eq!(outcome.trimmed(0..10), 0..4106);
        assert_eq!(outcome.late(), None);
        let outcome = judge(&mut with("discard late 500ms"), Kind::Discard, 0..10);
        assert!(outcome.stores());
        assert_eq!(outcome.late(), Some(Duration::from_millis(500)));
    }

    #[test]
    fn a_misplaced_write_lands_on_the_drive() {
        let outcome = judge(&mut with("write misplaced 1M"), Kind::Write, 0..4096);
        assert_eq!(outcome.lands(&(0..4096), 2 << 20), 1 << 20);
        assert_eq!(
            outcome.lands(&(3 << 19..(3 << 19) + 4096), 2 << 20),
            1 << 19
        );
        assert_eq!(outcome.lands(&(0..4096), 4096), 0);
        assert!(outcome.stores());
        assert_eq!(Outcome::default().lands(&(512..1024), 4096), 512);
        assert!("write misplaced 100".parse::<Fault>().is_err());
    }

    #[test]
    fn what_each_fault_has_struck_is_counted() {
        let mut faults = with("read error times 2");
        faults.add("flush error".parse().unwrap());
        let mut listed = || {
            judge(&mut faults, Kind::Read, 0..1);
            let listed = faults.list().into_iter();
            listed
                .map(|fault| (fault.struck, fault.over))
                .collect::<Vec<_>>()
        };
        assert_eq!(listed(), [(1, false), (0, false)]);
        assert_eq!(listed(), [(2, true), (0, false)]);
        assert_eq!(listed(), [(2, true), (0, false)]);
    }

    #[test]
    fn holes_are_at_the_same_places_however_it_is_read() {
        let mut whole = [0; 8];
        judge(&mut with("read holes at 1+6"), Kind::Read, 0..8).spoil(0, &mut whole);
        let mut half = [0; 4];
        judge(&mut with("read holes at 1+6"), Kind::Read, 4..8).spoil(4, &mut half);
        assert_eq!(whole[4..], half);
    }
}
