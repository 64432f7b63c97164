//! Joins what threads waited for with the discards in flight at that moment.
//!
//! A wait in a discard of its own is discards' fault by its stack. A wait at a device (its own I/O,
//! a commit, a lock) is discards' fault for as long as a discard was in flight on that device. The
//! device's statistics must agree that its discards slow other I/O down.

use std::collections::HashSet;

use linux::mounts::DeviceNumber;
use storage::disks::Place as Below;

use super::devices::{hung, slows_others, work};
use super::frames::Place;
use super::observe::Observation;
use super::report::{Cause, Client, Sampling, SenderWork, Verdict, Victim, Wait, Why};
use super::sampler::{Sample, Sampled};
use super::spans::Spans;
use super::{SCHEMA, Subject, sentence};
use gather::gather;
use own::OwnCalls;

mod gather;
mod own;

/// So much of the blocked time makes it discards' fault.
const MOST: f64 = 0.5;
/// And so much in part.
pub(super) const PART: f64 = 0.1;
/// Of all time, a fault is at least this share, and so many seconds.
const LEAST: (f64, f64) = (0.02, 0.02);
/// So many seconds are a stall, however long the process slept before and after it.
const STALL_S: f64 = 0.2;
/// Fewer looks than this at a victim make rough figures.
pub(crate) const FEW_LOOKS: f64 = 9.5;

/// Draws the conclusions. `command`: the name to call a [`Subject::Family`] by.
pub fn explain(observation: &Observation, subject: &Subject, command: Option<&str>) -> Why {
    let waiting = Waiting::of(observation, subject);
    let (mut victims, client) = in_order(observation, &waiting, subject, command);
    let first = victims.first().map(|one| (one.pid, one.name.clone()));
    let mut timeline = first.map(|(pid, name)| {
        let whole = matches!(subject, Subject::Family(_)) && client.is_none();
        let belongs = |one| one == pid || whole && !is_server(observation, one);
        gather(observation, &waiting, pid, name, &belongs).1
    });
    let first = victims.first();
    let discarding_s = timeline.iter().flatten().map(|one| one.discarding_s).sum();
    let verdict = match first.map_or(Verdict::Nothing, verdict) {
        Verdict::NotTrim | Verdict::Nothing
            if is_blind(observation) && first.is_some_and(|one| may_be(one, discarding_s)) =>
        {
            Verdict::Unclear
        }
        verdict => verdict,
    };
    let senders = super::senders::senders(
        &observation.trace,
        &observation.disks,
        &observation.mounted,
        &observation.sampled.deleted,
        &observation.sampled.threads,
    );
    for (index, victim) in victims.iter_mut().enumerate() {
        let share = victim.share_behind_others(&senders);
        victim.count_behind(share);
        for one in timeline.iter_mut().flatten().filter(|_| index == 0) {
            let behind_s = one.in_discards_s * share;
            one.in_discards_s -= behind_s;
            one.behind_discards_s += behind_s;
        }
    }
    let mut why = Why {
        schema: SCHEMA,
        origin: observation.origin.clone(),
        verdict,
        main_cause: victims.first().and_then(main_cause),
        sentence: String::new(),
        seconds: observation.to_s - observation.from_s,
        without_trim_s: victims
            .first()
            .filter(|one| one.discards_s > 0.0 && *subject != Subject::All)
            .map(|one| {
                let whole_s = client.as_ref().map_or(one.seconds, |client| client.1);
                (whole_s - one.discards_s).max(0.0)
            }),
        client: client.map(|one| one.0),
        victims,
        senders,
        devices: work(observation),
        timeline: timeline.unwrap_or_default(),
        advice: Vec::new(),
        sampling: Sampling {
            samples: observation.sampled.samples.len() as u64,
            period_s: observation.period_s,
            spacing_s: spacing_s(&observation.sampled),
            turns: observation.sampled.turns,
            partial_turns: observation.sampled.partial_turns,
            lost_events: observation.trace.lost,
            cpu_share: observation.cpu_share,
        },
        missing: observation.missing.clone(),
    };
    if *subject == Subject::All {
        why.sentence = sentence::sentence(&why, None);
        return why;
    }
    let threads = observation.sampled.threads.iter();
    let pids: Vec<u32> = threads
        .flat_map(|one| [one.thread.pid, one.thread.tid])
        .collect();
    let drives = super::senders::drives(observation, subject, &pids);
    why.sentence = sentence::sentence(&why, Some(&drives));
    let late = super::senders::to_come(observation, subject, &pids);
    why.sentence += &late.unwrap_or_default();
    why
}

/// The mean time between two looks at a thread of a program, in seconds.
fn spacing_s(sampled: &Sampled) -> Option<f64> {
    let mut last_s = vec![None; sampled.threads.len()];
    let (mut sum_s, mut count) = (0.0, 0_u32);
    for sample in &sampled.samples {
        // Sleeping threads of the kernel leave no look.
        if sampled.threads[sample.thread].kernel {
            continue;
        }
        if let Some(last_s) = last_s[sample.thread].replace(sample.at_s) {
            sum_s += sample.at_s - last_s;
            count += 1;
        }
    }
    (count > 0).then(|| sum_s / f64::from(count))
}

/// Whether a process was watched for the subject's sake alone.
fn is_server(observation: &Observation, pid: u32) -> bool {
    observation.servers.iter().any(|one| one.pid == pid)
}

/// The victims, the one that the answer is about first; and where that is a server, its client with
/// the client's time in seconds.
fn in_order(
    observation: &Observation,
    waiting: &Waiting,
    subject: &Subject,
    command: Option<&str>,
) -> (Vec<Victim>, Option<(Client, f64)>) {
    let mut all = victims(observation, waiting, subject);
    all.sort_by(|a, b| {
        // Next to nothing in discards doesn't make one the first.
        let long_s = |one: &Victim| Some(one.discards_s).filter(|one| *one >= LEAST.1);
        // Of a whole machine, who waits for its own discards is not the question.
        let is_other = |one: &Victim| {
            let own_s = one.seconds_of(Cause::InDiscards);
            *subject != Subject::All || one.name != "trimbench" && own_s <= MOST * one.discards_s
        };
        let waits = |one: &Victim| long_s(one).is_some() && is_other(one);
        (waits(b), long_s(b), is_other(b), b.blocked_s, b.seconds)
            .partial_cmp(&(waits(a), long_s(a), is_other(a), a.blocked_s, a.seconds))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let (mut servers, mut own): (Vec<Victim>, Vec<Victim>) = all
        .into_iter()
        .partition(|one| is_server(observation, one.pid));
    if let Subject::Family(pid) = subject {
        let name = command.unwrap_or("the command").to_owned();
        let belongs = |one| !is_server(observation, one);
        let whole = gather(observation, waiting, *pid, name, &belongs).0;
        // One process is the command.
        if own.len() <= 1 {
            own.clear();
        }
        own.insert(0, whole);
    }
    let lead = own.first().and_then(|client| {
        let waits = |one: &Victim| {
            one.blocked_s >= PART * client.seconds
                && one.blocked_s >= LEAST.1
                && one.blocked_s > client.blocked_s
        };
        let computes = |one: &Victim| {
            let most_s = MOST * client.seconds;
            client.seconds_of(Cause::Sleep) >= most_s && one.seconds_of(Cause::Cpu) >= most_s
        };
        // One with a client of its own comes first.
        let helps = |one: &Victim| {
            let mut all = observation.servers.iter();
            all.any(|server| server.pid == one.pid && server.helper)
        };
        let direct = servers.iter().position(|one| waits(one) && !helps(one));
        let any = direct.or_else(|| servers.iter().position(waits));
        any.or_else(|| servers.iter().position(|one| computes(one) && !helps(one)))
    });
    let lead = lead.map(|index| servers.remove(index));
    let client = own.first().filter(|_| lead.is_some()).map(|one| {
        let client = Client {
            pid: one.pid,
            name: one.name.clone(),
        };
        (client, one.seconds)
    });
    let mut all: Vec<Victim> = lead.into_iter().chain(own).chain(servers).collect();
    all.truncate(if matches!(subject, Subject::Family(_)) {
        12
    } else {
        20
    });
    (all, client)
}

/// The processes that waited, each with its waits by cause.
pub fn waits(observation: &Observation, subject: &Subject) -> Vec<Victim> {
    victims(observation, &Waiting::of(observation, subject), subject)
}

/// The causes of waits, look by look.
pub(super) struct Causes<'a> {
    observation: &'a Observation,
    waiting: Waiting,
}

impl<'a> Causes<'a> {
    pub(super) fn of(observation: &'a Observation, subject: &Subject) -> Causes<'a> {
        Causes {
            observation,
            waiting: Waiting::of(observation, subject),
        }
    }

    /// The causes of what one look at a thread stands for, in seconds.
    pub(super) fn of_sample(&self, sample: &Sample) -> Vec<(Cause, f64)> {
        let stack = &self.observation.sampled.stacks[sample.stack];
        self.waiting.causes(sample, stack, sample.stands_for_s)
    }
}

/// The cause that took the most of what was blocked; of the rest if nothing was.
fn main_cause(victim: &Victim) -> Option<Cause> {
    let blocked = victim.longest_cause(Cause::is_blocked);
    let blocked = blocked.filter(|_| victim.blocked_s >= PART * victim.seconds);
    blocked.or_else(|| victim.longest_cause(|cause| !cause.is_blocked()))
}

fn verdict(victim: &Victim) -> Verdict {
    let (least_share, least_s) = LEAST;
    let counts = |seconds: f64| {
        seconds >= STALL_S || seconds >= least_share * victim.seconds && seconds >= least_s
    };
    // What was traced is no slip of a few looks.
    let traced = victim.traced_s > 0.0 && victim.traced_s >= least_share * victim.seconds;
    let some = traced || counts(victim.discards_s);
    if some && victim.discards_s >= MOST * victim.blocked_s {
        Verdict::Trim
    } else if traced || some && victim.discards_s >= PART * victim.blocked_s {
        Verdict::PartlyTrim
    } else if counts(victim.blocked_s) || main_cause(victim) == Some(Cause::Cpu) {
        Verdict::NotTrim
    } else {
        Verdict::Nothing
    }
}

/// Whether neither stacks nor senders were to be seen.
fn is_blind(observation: &Observation) -> bool {
    let sampled = &observation.sampled;
    let no_stacks = sampled.without_stacks || sampled.stacks.iter().all(Vec::is_empty);
    observation.trace.statistics_only && no_stacks
}

/// Whether the discards that were in flight for so long may explain a good part of a victim's wait.
/// A few looks may have missed one.
fn may_be(victim: &Victim, discarding_s: f64) -> bool {
    let waited_s = match (victim.looks as f64) < FEW_LOOKS {
        true => victim.seconds,
        false => victim.blocked_s,
    };
    waited_s >= LEAST.0 * victim.seconds && discarding_s > LEAST.0 * waited_s
}

/// The stretches of time in which devices keep threads waiting.
struct Waiting {
    /// When the observation began.
    from_s: f64,
    /// For each known place, when discards and hangs keep its devices.
    places: Vec<(Spans, Spans)>,
    /// For each known place, when discards were in flight on its devices.
    in_flight: Vec<Spans>,
    /// All devices, for waits whose place isn't known.
    all: Candidates,
    /// The same of each file system's devices, by what its functions begin with.
    by_function: Vec<(&'static str, Candidates)>,
    /// When any discard was in flight.
    discards: Spans,
    /// Whether it is of a whole machine. Then programs that wait for each other by design, or at a
    /// queue that may be empty, are none that wait for storage.
    of_machine: bool,
    /// The calls of programs that sent discards.
    own: Vec<OwnCalls>,
}

/// Devices that a wait may be at.
struct Candidates {
    /// When discards and hangs keep any of them.
    spans: (Spans, Spans),
    /// When discards keep each.
    each: Vec<(DeviceNumber, Spans)>,
}

impl Waiting {
    fn of(observation: &Observation, subject: &Subject) -> Waiting {
        let trace = &observation.trace;
        let none = Spans::default();
        let device = |number: &DeviceNumber| -> (Spans, Spans) {
            let discards = trace.discards.get(number).unwrap_or(&none);
            let did = observation.devices.get(number).map_or(&[][..], |did| did);
            let hung = hung(did, discards);
            match slows_others(did, discards) {
                Some(false) => (Spans::default(), hung),
                _ => (discards.clone(), hung),
            }
        };
        let of = |numbers: &mut dyn Iterator<Item = &DeviceNumber>| {
            let start = (Spans::default(), Spans::default());
            numbers
                .map(device)
                .fold(start, |sum, one| (sum.0.with(&one.0), sum.1.with(&one.1)))
        };
        let candidates = |numbers: &[DeviceNumber]| Candidates {
            spans: of(&mut numbers.iter()),
            each: numbers.iter().map(|one| (*one, device(one).0)).collect(),
        };
        let all: Vec<DeviceNumber> = observation.devices.keys().copied().collect();
        let places: &[Below] = &observation.sampled.places;
        let mounted = &observation.mounted;
        let mut prefixes: Vec<&'static str> = mounted
            .iter()
            .filter_map(|one| one.file_system?.function_prefix())
            .collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        let by_function = prefixes.into_iter().map(|prefix| {
            let has =
                |one: &&Below| one.file_system.and_then(|fs| fs.function_prefix()) == Some(prefix);
            // Of a whole machine those alone that are watched.
            let watched = |one: &DeviceNumber| {
                *subject != Subject::All || observation.devices.contains_key(one)
            };
            let mut numbers: Vec<DeviceNumber> = mounted
                .iter()
                .filter(has)
                .flat_map(|one| one.devices.clone())
                .filter(watched)
                .collect();
            numbers.sort();
            numbers.dedup();
            (prefix, candidates(&numbers))
        });
        let any = trace.discards.values();
        Waiting {
            from_s: observation.from_s,
            places: places
                .iter()
                .map(|place| of(&mut place.devices.iter()))
                .collect(),
            in_flight: places
                .iter()
                .map(|place| {
                    let all = place.devices.iter();
                    all.filter_map(|device| trace.discards.get(device))
                        .fold(Spans::default(), |sum, one| sum.with(one))
                })
                .collect(),
            all: candidates(&all),
            by_function: by_function.collect(),
            of_machine: *subject == Subject::All,
            discards: any.fold(Spans::default(), |sum, one| sum.with(one)),
            own: own::calls(observation, subject),
        }
    }

    /// When discards were in flight on the devices that these waits are at; on any device if one of
    /// their places isn't known.
    fn discards_at(&self, all: &[&Sample]) -> Spans {
        let waits = all.iter().filter(|sample| sample.waits());
        let places: HashSet<Option<usize>> = waits.map(|sample| sample.below).collect();
        let known: Option<Vec<usize>> = places.into_iter().collect();
        match known.filter(|known| !known.is_empty()) {
            Some(known) => known
                .iter()
                .filter_map(|index| self.in_flight.get(*index))
                .fold(Spans::default(), |sum, one| sum.with(one)),
            None => self.discards.clone(),
        }
    }

    /// The spans that matter to a wait.
    fn at(&self, sample: &Sample, stack: &[String]) -> &(Spans, Spans) {
        if let Some(place) = sample.below.and_then(|index| self.places.get(index)) {
            return place;
        }
        &self.candidates(stack).spans
    }

    /// The devices that a wait with this stack may be at.
    fn candidates(&self, stack: &[String]) -> &Candidates {
        let mut all = self.by_function.iter();
        let found = all.find(|(prefix, _)| stack.iter().any(|frame| frame.starts_with(prefix)));
        found.map_or(&self.all, |(_, candidates)| candidates)
    }

    /// How much of the time for which a look stands these cover, in seconds. Of a time that began
    /// before the observation, what ended before it covers nothing.
    fn covered(&self, spans: &Spans, at_s: f64, seconds: f64) -> f64 {
        let from_s = at_s - seconds;
        match spans.covered(from_s.max(self.from_s), at_s) > 0.0 {
            true => spans.covered(from_s, at_s),
            false => 0.0,
        }
    }

    /// The causes of a wait by one look at a thread, with seconds that add up to `seconds`.
    fn causes(&self, sample: &Sample, stack: &[String], seconds: f64) -> Vec<(Cause, f64)> {
        let is_by_design = sample.waits_for_program();
        let own = match sample.place.cause() {
            _ if self.of_machine && (is_by_design || sample.place == Place::Completions) => {
                Cause::Sleep
            }
            cause => cause,
        };
        if is_by_design {
            return vec![(own, seconds)];
        }
        if !sample.place.is_behind_a_device() || sample.nowhere || seconds <= 0.0 {
            return vec![(own, seconds)];
        }
        let (discards, hung) = self.at(sample, stack);
        let covered = |spans| self.covered(spans, sample.at_s, seconds);
        let hangs = covered(hung).min(seconds);
        let behind = covered(discards).min(seconds - hangs).max(0.0);
        let rest = (seconds - hangs - behind).max(0.0);
        [
            (Cause::Hung, hangs),
            (Cause::BehindDiscards, behind),
            (own, rest),
        ]
        .into_iter()
        .filter(|one| one.1 > 0.0)
        .collect()
    }
}

/// The processes that waited.
fn victims(observation: &Observation, waiting: &Waiting, subject: &Subject) -> Vec<Victim> {
    let sampled = &observation.sampled;
    // Only those that were seen to wait: of a whole machine most sleep.
    let mut waits: HashSet<u32> = HashSet::new();
    for sample in &sampled.samples {
        if sample.waits() || *subject != Subject::All {
            waits.insert(sampled.threads[sample.thread].thread.pid);
        }
    }
    let mut pids: Vec<(u32, String)> = Vec::new();
    for looked in &sampled.threads {
        let skipped = looked.kernel && *subject == Subject::All;
        if !skipped && waits.remove(&looked.thread.pid) {
            pids.push((looked.thread.pid, looked.comm.clone()));
        }
    }
    // No look met these, and the events of their discards show that they waited.
    for one in &waiting.own {
        if pids.iter().all(|(pid, _)| *pid != one.pid) {
            pids.push((one.pid, one.name.clone()));
        }
    }
    pids.into_iter()
        .map(|(pid, name)| gather(observation, waiting, pid, name, &|one| one == pid).0)
        .filter(|victim| victim.seconds > 0.0)
        .filter(|victim| *subject != Subject::All || victim.blocked_s > 0.0)
        .collect()
}

impl Victim {
    /// The share of its waits in discards of its own in which the drive was busy with those of other
    /// programs, as far as the events show it.
    fn share_behind_others(&self, senders: &[SenderWork]) -> f64 {
        let own = || senders.iter().filter(|one| self.sent(one));
        let there = |one: &&SenderWork| own().any(|own| own.device == one.device);
        let others = senders.iter().filter(|one| !self.sent(one)).filter(there);
        let others_s = others.map(|one| one.in_drive_s).sum::<f64>();
        let waited_s = self.seconds_of(Cause::InDiscards);
        if waited_s <= 0.0 {
            return 0.0;
        }
        let rest_s = waited_s - own().map(|one| one.in_drive_s).sum::<f64>();
        let share = rest_s.min(others_s) / waited_s;
        // Looks are not exact, and without own discards seen nothing is known.
        if share >= PART { share } else { 0.0 }
    }

    /// Counts this share of its waits in discards of its own as behind discards.
    fn count_behind(&mut self, share: f64) {
        let own = |wait: &Wait| share > 0.0 && wait.cause == Cause::InDiscards;
        let behind: Vec<Wait> = (self.waits.iter_mut().filter(|one| own(one)))
            .map(|wait| {
                let seconds = wait.seconds * share;
                wait.seconds -= seconds;
                Wait {
                    cause: Cause::BehindDiscards,
                    place: Place::Queue,
                    seconds,
                    ..wait.clone()
                }
            })
            .collect();
        self.waits.extend(behind);
        self.waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    }
}

#[cfg(test)]
mod tests;
