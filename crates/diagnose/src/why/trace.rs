//! The kernel's events → discards with their senders, and the times at which they were in flight.

mod sender;

use std::collections::{BTreeMap, HashMap, HashSet};

use linux::mounts::DeviceNumber;
use linux::tracefs::{Entry, Line, parse};
use storage::FileSystem;
use storage::deletions::{DeletionEvent, Freed};
use storage::disks::Disks;

use super::frames::{Reason, reason};
use super::observe::Did;
use super::spans::Spans;
pub use sender::{Deleter, Pause, Sender};

/// The name of a thread in the text of an event, where the kernel keeps it no longer.
const FORGOTTEN: &str = "<...>";

/// The name of a thread that ended before its name was read.
fn by_number(pid: u32) -> String {
    format!("process {pid}")
}

/// A deletion is forgotten after so long by [`Trace::drain`], in seconds. btrfs' background
/// discards wait for two minutes (`BTRFS_DISCARD_DELAY`, fs/btrfs/discard.c).
const REMEMBERED_S: f64 = 150.0;

/// A device without a discard for so long pauses, in seconds: what was freed before the last one is
/// discarded.
const PAUSE_S: f64 = 0.3;

/// [`Trace::drain`] forgets idle senders when there are more than this.
const MOST_SENDERS: usize = 64;

/// A discard that is not complete.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// `None` where its sender was not seen.
    sender: Option<usize>,
    /// When it was queued, if that was seen, and by which thread.
    queued: Option<(u32, f64)>,
    issued_s: Option<f64>,
    bytes: u64,
}

/// A discard that waits for its stack; it counts when that has come, or does not come.
#[derive(Debug)]
struct Unexplained {
    place: (DeviceNumber, u64),
    /// As far as it is known without the stack.
    sender: Sender,
    bytes: u64,
}

/// A stack comes after so long at most, in seconds.
const STACK_S: f64 = 0.02;

/// A discard that is in flight for so long has perhaps lost its end, in seconds.
const LOST_S: f64 = 10.0;

/// All that was traced.
#[derive(Debug, Default)]
pub struct Trace {
    /// The senders of discards.
    pub senders: Vec<Sender>,
    /// The processes that freed space.
    pub deleters: Vec<Deleter>,
    /// When discards were in flight, by whole device.
    pub discards: HashMap<DeviceNumber, Spans>,
    /// How long each discard was in flight, in seconds, by whole device.
    pub took_s: HashMap<DeviceNumber, Vec<f32>>,
    /// When a thread's own discards were queued or in flight.
    pub own: HashMap<u32, Spans>,
    /// Whether it is made of the devices' statistics alone, without a trace.
    pub statistics_only: bool,
    /// Discards and their bytes that were in flight at the end, by whole device.
    pub in_flight: BTreeMap<DeviceNumber, (u64, u64)>,
    /// Events that the kernel dropped.
    pub lost: u64,
    /// Stacks that were read.
    pub stacks: u64,
    open: BTreeMap<(DeviceNumber, u64), Open>,
    /// By whole device its last pause.
    pauses: HashMap<DeviceNumber, Pause>,
    /// When the last discard completed, by device.
    completed_s: HashMap<DeviceNumber, f64>,
    stack: Option<(u32, Vec<String>)>,
    /// The last discard of each thread, which waits for its stack.
    unexplained: HashMap<u32, Unexplained>,
    /// The reason of the last stack of a thread on a device; of all workers together as thread 0.
    learnt: HashMap<(DeviceNumber, u32), Reason>,
}

/// Each device's discards by these. Ends are traced first: a discard whose end can't be seen would last.
pub const EVENTS: [&str; 3] = ["block_rq_complete", "block_rq_issue", "block_bio_queue"];

/// The kernel passes on discards alone. A glob that begins with `*` would also match what an earlier
/// event has left in the field.
pub const FILTER: &str = "rwbs ~ \"D*\"";

impl Trace {
    /// A trace where no events are to be had: the share of each stretch that its discards took.
    pub(crate) fn by_statistics<'a>(
        all: impl IntoIterator<Item = (DeviceNumber, &'a [Did])>,
    ) -> Trace {
        let mut trace = Trace {
            statistics_only: true,
            ..Trace::default()
        };
        for (number, all) in all {
            let spans = trace.discards.entry(number).or_default();
            for did in all.iter().filter(|did| did.work.discards > 0) {
                let busy_s = (did.work.discard_ms as f64 / 1e3).min(did.seconds);
                spans.add(did.at_s - busy_s, did.at_s);
            }
            spans.join();
        }
        trace
    }

    /// Takes a line of the trace.
    pub fn add_line(&mut self, line: &str, disks: &Disks) {
        let line = parse(line);
        if let Line::Frame(frame) = line {
            if let Some((_, frames)) = &mut self.stack {
                frames.push(frame.to_owned());
            }
            return;
        }
        self.end_stack();
        match line {
            Line::Stack { pid } => self.stack = Some((pid, Vec::new())),
            Line::Event(entry) => self.event(&entry, disks),
            Line::Lost(count) => self.lost += count,
            Line::Frame(_) | Line::Other => {}
        }
    }

    /// Calls new senders and deleters by their processes' names. `of`: the name of a thread's
    /// process, where that is another.
    pub fn name(&mut self, of: &dyn Fn(u32) -> Option<String>) {
        let senders = self.senders.iter_mut();
        let senders = senders.map(|one| (one.pid, &mut one.comm, &mut one.named));
        let deleters = self.deleters.iter_mut();
        let deleters = deleters.map(|one| (one.pid, &mut one.comm, &mut one.named));
        for (tid, comm, named) in senders.chain(deleters).filter(|one| !*one.2) {
            *named = true;
            if let Some(name) = of(tid) {
                *comm = name;
            } else if comm == FORGOTTEN {
                *comm = by_number(tid);
            }
        }
    }

    /// Takes what is in flight at the end as if it ended then.
    pub fn finish(&mut self, now_s: f64) {
        self.end_stack();
        self.settle_all(f64::INFINITY);
        self.senders
            .retain(|one| one.discards > 0 || one.completed > 0);
        for ((device, _), open) in std::mem::take(&mut self.open) {
            let waiting = self.in_flight.entry(device).or_default();
            *waiting = (waiting.0 + 1, waiting.1 + open.bytes);
            if let Some(issued_s) = open.issued_s {
                self.discards
                    .entry(device)
                    .or_default()
                    .add(issued_s, now_s);
                if let Some((thread, queued_s)) = open.queued {
                    self.own.entry(thread).or_default().add(queued_s, now_s);
                }
            }
        }
        let all = self.discards.values_mut().chain(self.own.values_mut());
        all.for_each(Spans::join);
    }

    /// Takes out the senders' work and the times since the last call. Requests in flight count as
    /// if they ended now. A sender's reason is kept, because not every discard comes with a stack.
    /// Deletions come again in each call for some time.
    pub fn drain(&mut self, now_s: f64) -> Trace {
        // A stack may be half read: it ends with a later line.
        self.settle_all(now_s - STACK_S);
        let mut out = Trace {
            senders: self.senders.clone(),
            lost: std::mem::take(&mut self.lost),
            discards: std::mem::take(&mut self.discards),
            took_s: std::mem::take(&mut self.took_s),
            own: std::mem::take(&mut self.own),
            stacks: self.stacks,
            ..Trace::default()
        };
        out.senders
            .retain(|one| one.discards > 0 || one.completed > 0);
        self.deleters
            .retain(|one| now_s - one.last_s <= REMEMBERED_S);
        out.deleters.clone_from(&self.deleters);
        for sender in &mut self.senders {
            sender.empty(now_s);
        }
        for ((device, _), open) in &self.open {
            if let Some(issued_s) = open.issued_s {
                out.discards
                    .entry(*device)
                    .or_default()
                    .add(issued_s, now_s);
            }
            if let Some((thread, queued_s)) = open.queued {
                out.own.entry(thread).or_default().add(queued_s, now_s);
            }
        }
        let all = out.discards.values_mut().chain(out.own.values_mut());
        all.for_each(Spans::join);
        self.forget_idle();
        out
    }

    /// Whether a discard is in flight. One that takes very long may have lost its end.
    pub fn is_discarding(&self, now_s: f64) -> bool {
        let mut issued = self.open.values().filter_map(|open| open.issued_s);
        issued.any(|issued_s| now_s - issued_s < LOST_S)
    }

    /// Adds what was drained later.
    pub fn add(&mut self, later: &Trace) {
        for sender in &later.senders {
            let mut all = self.senders.iter_mut();
            match all.find(|one| one.is_same(sender)) {
                Some(known) => known.add(sender),
                None => self.senders.push(sender.clone()),
            }
        }
        for deleter in &later.deleters {
            let mut all = self.deleters.iter_mut();
            let same = |one: &&mut Deleter| {
                (&one.on, one.pid, one.system) == (&deleter.on, deleter.pid, deleter.system)
            };
            match all.find(same) {
                // Each piece repeats it with all that it has freed.
                Some(known) => known.clone_from(deleter),
                None => self.deleters.push(deleter.clone()),
            }
        }
        for (device, spans) in &later.discards {
            let known = self.discards.entry(*device).or_default();
            *known = std::mem::take(known).with(spans);
        }
        self.lost += later.lost;
    }

    /// Forgets senders without work that nothing in flight refers to.
    fn forget_idle(&mut self) {
        if self.senders.len() <= MOST_SENDERS {
            return;
        }
        let used: HashSet<usize> = self.open.values().filter_map(|open| open.sender).collect();
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut kept = Vec::new();
        for (index, sender) in std::mem::take(&mut self.senders).into_iter().enumerate() {
            if used.contains(&index) {
                places.insert(index, kept.len());
                kept.push(sender);
            }
        }
        self.senders = kept;
        for open in self.open.values_mut() {
            open.sender = open.sender.and_then(|index| places.get(&index).copied());
        }
        let senders = &self.senders;
        self.learnt.retain(|(on, pid), _| {
            *pid == 0 || senders.iter().any(|one| one.on == *on && one.pid == *pid)
        });
    }

    fn event(&mut self, entry: &Entry<'_>, disks: &Disks) {
        if let Some(deletion) = DeletionEvent::named(entry.event) {
            if let Some(freed) = deletion.freed(entry.fields) {
                self.freed(entry, deletion.file_system(), freed);
            }
            return;
        }
        let Some(request) = Request::parse(entry.fields, disks) else {
            return;
        };
        match entry.event {
            "block_bio_queue" => self.queued(entry, request),
            "block_rq_issue" => {
                let place = (request.device, request.sector);
                if !self.open.contains_key(&place) {
                    self.settle_all(entry.at_s);
                }
                // The rest of one that was split was not queued: its sender is that of the last.
                let mut senders = self.senders.iter().enumerate();
                let last = senders.rfind(|(_, one)| one.device == request.device);
                let rest = Open {
                    sender: last.map(|(index, _)| index),
                    queued: last.map(|(_, one)| (one.pid, entry.at_s)),
                    issued_s: None,
                    bytes: 0,
                };
                let open = self.open.entry(place).or_insert(rest);
                // A request that the driver gave back is issued again.
                open.issued_s.get_or_insert(entry.at_s);
            }
            "block_rq_complete" => self.completed(entry.at_s, request),
            _ => {}
        }
    }

    fn queued(&mut self, entry: &Entry<'_>, request: Request) {
        self.settle(entry.pid);
        self.ends_pause(entry.at_s, request.device);
        let place = (request.device, request.sector);
        let known = self
            .learnt
            .get(&(request.on, learns(entry.pid, entry.comm)));
        let known = known.copied();
        let inferred = known.is_some() && is_worker(entry.comm);
        let mut sender = Sender::new(entry, request, known.unwrap_or(Reason::Unknown), inferred);
        if let Some(pause) = self.pauses.get(&request.device) {
            sender.pause = *pause;
        }
        let waits = Unexplained {
            place,
            sender,
            bytes: request.bytes,
        };
        self.unexplained.insert(entry.pid, waits);
        let open = Open {
            sender: None,
            queued: Some((entry.pid, entry.at_s)),
            issued_s: None,
            bytes: request.bytes,
        };
        self.open.insert(place, open);
    }

    /// Notes a device's pause, if this discard ends one.
    fn ends_pause(&mut self, at_s: f64, device: DeviceNumber) {
        let last_s = self.completed_s.get(&device).copied();
        let idle = || {
            self.open
                .range((device, 0)..=(device, u64::MAX))
                .next()
                .is_none()
        };
        let last = self.pauses.get(&device).map(|pause| pause.ended_s);
        if last.is_none() || last_s.is_some_and(|last_s| at_s - last_s >= PAUSE_S && idle()) {
            let pause = Pause {
                began_s: last_s,
                ended_s: at_s,
                last_ended_s: last,
            };
            self.pauses.insert(device, pause);
        }
    }

    /// Counts a thread's last discard, if it still waits for its stack.
    fn settle(&mut self, pid: u32) {
        if let Some(waits) = self.unexplained.remove(&pid) {
            let index = self.count(waits.sender, waits.bytes);
            if let Some(open) = self.open.get_mut(&waits.place) {
                open.sender = Some(index);
            }
        }
    }

    /// Counts all discards whose stacks won't come, which those are that were sent until `until_s`.
    fn settle_all(&mut self, until_s: f64) {
        let under_way = self.stack.as_ref().map(|one| one.0);
        let late = self
            .unexplained
            .iter()
            .filter(|(pid, waits)| waits.sender.last_s <= until_s && Some(**pid) != under_way);
        let late: Vec<u32> = late.map(|one| *one.0).collect();
        late.into_iter().for_each(|pid| self.settle(pid));
    }

    /// Counts a discard of a sender, and returns the sender's place.
    fn count(&mut self, sender: Sender, bytes: u64) -> usize {
        // That of the present burst is among the last.
        let mut senders = self.senders.iter();
        let known = senders.rposition(|one| one.is_same(&sender));
        let last_s = sender.last_s;
        let index = known.unwrap_or_else(|| {
            self.senders.push(sender);
            self.senders.len() - 1
        });
        let known = &mut self.senders[index];
        known.discards += 1;
        known.bytes += bytes;
        known.last_s = known.last_s.max(last_s);
        index
    }

    fn completed(&mut self, at_s: f64, request: Request) {
        let place = (request.device, request.sector);
        let queued = self.open.get(&place).and_then(|open| open.queued);
        if let Some((pid, _)) = queued
            && self
                .unexplained
                .get(&pid)
                .is_some_and(|one| one.place == place)
        {
            self.settle(pid);
        }
        let open = self.open.remove(&place);
        self.end_merged(request);
        let Some(Open {
            sender,
            queued,
            issued_s: Some(issued_s),
            ..
        }) = open
        else {
            return;
        };
        // While others were in the drive before it, it waited.
        let last_s = self.completed_s.insert(request.device, at_s);
        let took = (at_s - last_s.map_or(issued_s, |last| last.max(issued_s))).max(0.0);
        if let Some(sender) = sender.and_then(|index| self.senders.get_mut(index)) {
            sender.completed += 1;
            sender.in_drive_s += took;
            sender.longest_s = sender.longest_s.max(took);
        }
        self.discards
            .entry(request.device)
            .or_default()
            .add(issued_s, at_s);
        let took_s = self.took_s.entry(request.device).or_default();
        took_s.push((at_s - issued_s) as f32);
        if let Some((thread, queued_s)) = queued {
            self.own.entry(thread).or_default().add(queued_s, at_s);
        }
    }

    /// Ends the discards that the block layer made part of a request that completed.
    fn end_merged(&mut self, request: Request) {
        let sectors = request.sector..request.sector + request.bytes / 512;
        let range = (request.device, sectors.start)..(request.device, sectors.end);
        let is_part = |open: &Open| open.issued_s.is_none();
        let merged = self.open.range(range).filter(|(_, open)| is_part(open));
        let merged: Vec<_> = merged.map(|(place, _)| *place).collect();
        for place in merged {
            self.open.remove(&place);
        }
    }

    fn freed(&mut self, entry: &Entry<'_>, system: FileSystem, freed: Freed) {
        // Inodes that memory pressure takes away are no deletions.
        if entry.comm.starts_with("kswapd") || entry.comm.starts_with("umount") {
            return;
        }
        let mut all = self.deleters.iter_mut();
        let known = all.find(|one| {
            one.pid == entry.pid && one.on == freed.file_system && one.system == system
        });
        if let Some(one) = known {
            if one.comm == by_number(one.pid) && entry.comm != FORGOTTEN {
                one.comm = entry.comm.to_owned();
            }
            one.files += freed.files;
            one.bytes += freed.bytes;
            one.last_s = entry.at_s;
            return;
        }
        self.deleters.push(Deleter {
            on: freed.file_system,
            system,
            pid: entry.pid,
            comm: entry.comm.to_owned(),
            files: freed.files,
            bytes: freed.bytes,
            first_s: entry.at_s,
            last_s: entry.at_s,
            named: false,
        });
    }

    /// A stack is complete: it belongs to the discard that its thread sent last.
    fn end_stack(&mut self) {
        let Some((pid, frames)) = self.stack.take() else {
            return;
        };
        self.stacks += 1;
        let Some(waits) = self.unexplained.get_mut(&pid) else {
            return;
        };
        let reason = reason(frames.iter().map(String::as_str));
        if reason != Reason::Unknown || waits.sender.inferred {
            waits.sender.reason = reason;
            waits.sender.inferred = false;
        }
        if reason != Reason::Unknown {
            let learns = learns(pid, &waits.sender.comm);
            self.learnt.insert((waits.sender.on, learns), reason);
        }
        self.settle(pid);
    }
}

/// Whether a thread is one of those that the kernel's parts share, or its name is not known.
pub(crate) fn is_worker(comm: &str) -> bool {
    comm.starts_with("kworker") || comm == FORGOTTEN
}

/// The thread whose stacks explain a thread's discards.
fn learns(pid: u32, comm: &str) -> u32 {
    if is_worker(comm) { 0 } else { pid }
}

/// A discard.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Request {
    /// The whole device.
    device: DeviceNumber,
    /// The device as the event names it.
    on: DeviceNumber,
    sector: u64,
    bytes: u64,
}

impl Request {
    /// `7,0 DS 16384 () 43040 + 32 be,0,4 [kworker]`, in which the part from the bytes to the
    /// command is missing in some events.
    fn parse(fields: &str, disks: &Disks) -> Option<Request> {
        let mut words = fields.split_whitespace();
        let (major, minor) = words.next()?.split_once(',')?;
        let device = DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        };
        if !words.next()?.starts_with('D') {
            return None;
        }
        let words: Vec<&str> = words.collect();
        let plus = words.iter().position(|word| *word == "+")?;
        let sectors: u64 = words.get(plus + 1)?.parse().ok()?;
        Some(Request {
            device: disks.whole(device),
            on: device,
            sector: words.get(plus.checked_sub(1)?)?.parse().ok()?,
            bytes: sectors * 512,
        })
    }
}

#[cfg(test)]
mod tests;
