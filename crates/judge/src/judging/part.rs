//! One part of a record (the deletion, or its control), judged by itself.

use std::ops::Range;

use super::JudgeOptions;
use super::actor::{self, Judged, Setting};
use super::barrier;
use super::counting::{self, LEAST_FREED, UNPAID};
use super::debt;
use super::discards::Discards;
use super::event::{self, Event as Trigger};
use super::others;
use super::reference::Reference;
use super::stats::total;
use super::window::Window;
use crate::verdict::{Deletion, DipDiscards, Discard, Finding, Fit, Reason};
use record::{DeletionLine, Event, EventKind, RunRecord, Target};

/// Discards of others, as a share of the deletion's own, that don't make its finding unsure.
const FEW_OTHERS: f64 = 0.1;

/// Of discards that did not all come, this share of what was freed shows that they do no harm.
const CAME: f64 = 0.5;

/// Discards that last this long, in seconds…
const LONG_S: f64 = 2.0;
/// …and so many intervals show whether they stall.
const LONG_INTERVALS: f64 = 5.0;

/// If trimbench was away while more than this share of the bytes was discarded, what they did
/// isn't known.
const AWAY: f64 = 0.5;

/// Why an actor may have seen nothing where another would have.
const BLIND: [Reason; 4] = [
    Reason::TooFewOperations,
    Reason::TooNoisy,
    Reason::TooLittleDeleted,
    Reason::ForegroundErrors,
];

/// The results of one part.
#[derive(Debug, Clone)]
pub(super) struct PartJudged {
    /// The finding.
    pub(super) finding: Finding,
    /// The reasons for it, without repeats.
    pub(super) reasons: Vec<Reason>,
    /// Its actors, fastest baseline first.
    pub(super) actors: Vec<Judged>,
    /// The reference of its delete phase.
    pub(super) reference: Reference,
    /// Whether far more was written beside its discards than without them.
    pub(super) more_writes: bool,
    /// Its discards.
    pub(super) discards: Discards,
    /// Figures of the discards.
    pub(super) discard: Discard,
    /// The deletion.
    pub(super) deletion: Option<Deletion>,
    /// The event that was watched in place of a deletion of the run's own.
    pub(super) event: Option<Trigger>,
    /// Where too little was deleted: how much to try, in bytes; `None`: so much does not fit.
    pub(super) try_bytes: Option<u64>,
    /// Whether it is known that so much does not fit.
    pub(super) is_full: bool,
    /// The cost of the discards.
    pub(super) fit: Option<Fit>,
    /// The time limit of the wait for discards after the last deletion call, in seconds. `None`
    /// where the scenario has none.
    pub(super) drain_limit_s: Option<f64>,
}

/// The data of the deletion's own part that its control uses.
#[derive(Debug, Clone)]
pub(super) struct FromControl {
    /// Its baseline phase, for want of an own one.
    pub(super) baseline: Option<Range<usize>>,
    /// The bytes against which the discards of a part that freed nothing are few or many.
    pub(super) bytes: Option<u64>,
    /// The reference of the deletion's delete phase.
    pub(super) reference: Reference,
}

/// Judges one part. `from_control`: for a control, the data of its main part.
pub(super) fn judge(
    record: &RunRecord,
    window: &Window,
    from_control: Option<FromControl>,
    options: &JudgeOptions,
) -> PartJudged {
    let deletion = window.deletion(record);
    let event = Trigger::of(record);
    let freed = debt::freed(record, window, deletion.as_ref())
        .filter(|&bytes| event.is_none() || bytes >= LEAST_FREED);
    let continuous = window.work(record, deletion.as_ref()).is_some();
    let control = from_control.as_ref();
    let bytes = freed.or(control.and_then(|control| control.bytes));
    let discards = Discards::of(record, window, bytes, continuous || event.is_some());
    let reference = match control {
        Some(control) => (control.reference).of_control(record, window, deletion.as_ref()),
        None => Reference::of(record, window, deletion.as_ref(), &discards),
    };
    let setting = Setting {
        record,
        discards: &discards,
        window,
        reference: &reference,
        borrowed: control.and_then(|control| control.baseline.as_ref()),
        options,
    };
    let mut actors: Vec<Judged> = (0..record.head.actors.len())
        .map(|index| actor::judge(setting, index))
        .collect();
    actors.sort_by(|a, b| {
        let rate = |j: &Judged| j.foreground.baseline.ops_per_s.unwrap_or(-1.0);
        rate(b).total_cmp(&rate(a))
    });
    let case = Case {
        record,
        window,
        freed,
        deletion,
        event: event.as_ref(),
        discards: &discards,
        actors: &actors,
    };
    let (finding, reasons) = case.find();
    let too_little = reasons.contains(&Reason::TooLittleDeleted);
    let try_bytes = too_little.then(|| case.try_bytes()).flatten();
    let room = match others::is_simulated(record) {
        true => u64::MAX, // Its volume is a setting.
        false => room(&record.head.target),
    };
    // Half as much lasts for a second at least, and shows most stalls.
    let more = |&bytes: &u64| bytes > discards.total_bytes && bytes <= room;
    let fitting = try_bytes.and_then(|bytes| [bytes, bytes / 2].into_iter().find(more));
    let drain_limit_s = record.head.scenario.pointer("/timing/drain_limit_s");
    PartJudged {
        try_bytes: fitting,
        is_full: try_bytes.is_some() && fitting.is_none(),
        finding,
        reasons,
        discard: case.discard(),
        deletion: deletion.map(|d| Deletion {
            bytes: d.bytes,
            files: d.files,
            seconds: d.seconds,
            event: event.as_ref().map(|event| event.command.clone()),
            space_freed_bytes: d.space_freed_bytes,
            exit_code: d.exit_code,
            signal: d.signal,
        }),
        fit: case.fit(),
        drain_limit_s: drain_limit_s.and_then(serde_json::Value::as_f64),
        more_writes: reference.more_writes(record, &discards),
        reference,
        actors,
        discards,
        event,
    }
}

/// Returns the bytes that a deletion can have at most: of a file system what was available, without
/// the tenth, or 1 GiB, that stays free.
fn room(target: &Target) -> u64 {
    match target.size_bytes {
        // A log from elsewhere.
        0 => u64::MAX,
        size => {
            let reserve = match target.mount {
                Some(_) => record::units::GIB.max(size / 10),
                None => 0,
            };
            let available = target.available_bytes.unwrap_or(size);
            available.saturating_sub(reserve)
        }
    }
}

struct Case<'a> {
    record: &'a RunRecord,
    window: &'a Window,
    freed: Option<u64>,
    deletion: Option<DeletionLine>,
    event: Option<&'a Trigger>,
    discards: &'a Discards,
    actors: &'a [Judged],
}

impl Case<'_> {
    fn find(&self) -> (Finding, Vec<Reason>) {
        let mut reasons = Vec::new();
        let mut finding = if self.freed_nothing() {
            reasons.push(Reason::NothingDeleted);
            Finding::Inconclusive
        } else if self.discards.any() {
            self.with_discards(&mut reasons)
        } else {
            self.without_discards(&mut reasons)
        };
        if self.idle() {
            reasons.push(Reason::TooFewOperations);
            if self.discards.any() || self.window.has_phases {
                finding = Finding::Inconclusive;
            }
        }
        for reason in self.actors.iter().flat_map(|a| &a.reasons) {
            // Why an actor couldn't tell matters only if nobody else could.
            let unknown = self.discards.any() && finding == Finding::Inconclusive;
            if unknown || *reason == Reason::ForegroundErrors {
                reasons.push(*reason);
            }
        }
        let mut dips = self.actors.iter().flat_map(|a| &a.foreground.dips);
        // A stall that is found needs no other cause.
        let apart = dips.any(|dip| matches!(dip.discards, None | Some(DipDiscards::Partly)));
        if apart && finding != Finding::Stall {
            reasons.push(Reason::DipsWithoutDiscards);
        }
        if self.disturbed_by_others(finding) {
            reasons.push(Reason::ForeignDiscards);
            finding = Finding::Inconclusive;
        }
        let away = self.discards.away_bytes(self.record) as f64;
        if finding != Finding::Stall && away > AWAY * self.discards.total_bytes as f64 {
            reasons.push(Reason::Absent);
            finding = Finding::Inconclusive;
        }
        if let Some(why) = self.window.cut_short
            && finding != Finding::Stall
        {
            reasons.push(why);
            finding = Finding::Inconclusive;
        }
        let mut once = Vec::new();
        for reason in reasons {
            if !once.contains(&reason) {
                once.push(reason);
            }
        }
        (finding, once)
    }

    /// Whether discards that can't be the deletion's make its finding unsure.
    fn disturbed_by_others(&self, finding: Finding) -> bool {
        let others = &self.discards.others;
        let baseline = self.window.baseline.as_ref();
        let spoilt = baseline.is_some_and(|phase| others.spare(phase, self.record).is_none());
        let disturbed = match finding {
            Finding::Stall | Finding::Slowdown => {
                others.during_bytes as f64 > FEW_OTHERS * self.discards.total_bytes as f64
            }
            Finding::None | Finding::Inconclusive => self.actors.iter().any(|actor| {
                let mut dips = actor.foreground.dips.iter();
                actor.foreground.stall_by_others.is_some()
                    || dips.any(|dip| dip.discards == Some(DipDiscards::Others))
            }),
        };
        others.any() && (spoilt || disturbed)
    }

    fn with_discards(&self, reasons: &mut Vec<Reason>) -> Finding {
        let mut finding = self.worst();
        if finding == Finding::None && !counting::blind(&self.record.head.devices).is_empty() {
            reasons.push(Reason::CountersOff);
            finding = Finding::Inconclusive;
        }
        let came = self
            .freed
            .map(|freed| self.discards.total_bytes as f64 / freed as f64);
        let late = self.event(EventKind::DiscardsDidNotCome).is_some();
        let all = match self.deletion.is_some_and(|deletion| deletion.continuous) {
            true => CAME, // The rest may be in use again.
            false => 1.0 - UNPAID,
        };
        match came.filter(|&came| late && came < all) {
            None => {}
            Some(came) if finding == Finding::None && came >= CAME => {}
            Some(_) => {
                reasons.push(Reason::DiscardsDidNotCome);
                // What the others would have done later isn't known.
                if finding == Finding::None {
                    finding = Finding::Inconclusive;
                }
            }
        }
        finding
    }

    fn without_discards(&self, reasons: &mut Vec<Reason>) -> Finding {
        if self.window.has_phases && self.freed.is_none() && !self.unknown_deletion() {
            reasons.push(Reason::NoDeletion);
            return Finding::Inconclusive;
        }
        let head = &self.record.head;
        if counting::nobody_counts(head) {
            reasons.push(match head.devices.is_empty() {
                true => Reason::DevicesUnknown,
                false => Reason::CountersOff,
            });
            return Finding::Inconclusive;
        }
        reasons.push(match self.discards.others.any() {
            true => Reason::ForeignDiscards,
            false => Reason::NoDiscards,
        });
        if self.event(EventKind::DiscardsDidNotCome).is_some() {
            reasons.push(Reason::DiscardsDidNotCome);
        }
        Finding::None
    }

    /// The worst of the actors. One that could not see anything, and was no slower
    /// either, doesn't take back what another would have seen.
    fn worst(&self) -> Finding {
        let found = |finding| self.actors.iter().any(|a| a.finding == finding);
        let cleared = self.actors.iter().all(|a| {
            a.finding != Finding::Inconclusive
                || !a.suffered && a.reasons.iter().all(|r| BLIND.contains(r))
        });
        match () {
            () if found(Finding::Stall) => Finding::Stall,
            () if found(Finding::Slowdown) => Finding::Slowdown,
            () if found(Finding::None) && cleared => Finding::None,
            () => Finding::Inconclusive,
        }
    }

    /// Whether a deletion took place of which it isn't known what it freed.
    fn unknown_deletion(&self) -> bool {
        self.deletion.is_some_and(|d| d.files > 0) || self.event(EventKind::DeletionBegan).is_some()
    }

    /// Whether an outside program or an event freed nothing.
    fn freed_nothing(&self) -> bool {
        self.deletion
            .is_some_and(|d| event::freed_nothing(&d, self.event, self.discards.any()))
    }

    /// Whether nobody did anything.
    fn idle(&self) -> bool {
        let mut actors = self.record.intervals.actors.iter();
        actors.all(|actor| self.window.all.clone().all(|i| actor.ops[i] == 0))
    }

    /// An event within the delete phase.
    fn event(&self, kind: EventKind) -> Option<&Event> {
        let range = self.window.delete.clone().filter(|r| !r.is_empty())?;
        let intervals = &self.record.intervals;
        let last = range.end - 1;
        // Events and ticks come from different threads.
        let slack_s = 2.0 * self.record.head.interval_ms / 1e3;
        let begin = intervals.at_s[range.start] - slack_s;
        let end = intervals.at_s[last] + f64::from(intervals.seconds[last]) + slack_s;
        let mut events = self.record.events.iter();
        events.find(|e| e.kind == kind && (begin..=end).contains(&e.at_s))
    }

    fn discard(&self) -> Discard {
        if counting::nobody_counts(&self.record.head) || self.window.delete.is_none() {
            return Discard::default();
        }
        let discards = self.discards;
        let debt = debt::debt(self.record, self.window, self.deletion.as_ref(), discards);
        let rate = discards.rate(self.record);
        let commands = discards.count();
        let per_command = |sum: f64| Some(sum / commands.filter(|&n| n > 0)? as f64);
        let wait_ms: u64 = discards.wait_ms.iter().sum();
        let of_any_size = Discard {
            commands,
            active_s: Some(discards.active_s(self.record)),
            // No wait at all is one that nobody measured.
            await_us: per_command(wait_ms as f64 * 1e3).filter(|&us| us > 0.0),
            first_discard_lag_s: debt.first_discard_lag_s,
            ..Discard::default()
        };
        if counting::without_sizes(&self.record.head) {
            return of_any_size;
        }
        Discard {
            bytes: Some(discards.total_bytes),
            bytes_per_s: rate.map(|(rate, _)| rate),
            bytes_per_s_is_lower_bound: rate.is_some_and(|(_, bound)| bound),
            mean_bytes: per_command(discards.total_bytes as f64),
            debt_max_bytes: debt.max_bytes,
            drain_s: debt.drain_s,
            ..of_any_size
        }
    }

    /// So much that its discards take long enough: as fast as these were, for [`LONG_S`] and
    /// [`LONG_INTERVALS`]. Rounded up to a power of two.
    fn try_bytes(&self) -> Option<u64> {
        if counting::without_sizes(&self.record.head) {
            return None;
        }
        let active_s = self.discards.active_s(self.record);
        let waits_s = self.discards.waits_s();
        let took_s = match waits_s > 0.0 {
            true => active_s.min(waits_s),
            false => active_s,
        };
        let long_s = LONG_S.max(LONG_INTERVALS * self.record.head.interval_ms / 1e3);
        let bytes = self.discards.total_bytes as f64 * long_s / took_s;
        (took_s > 0.0).then(|| (bytes as u64).checked_next_power_of_two())?
    }

    /// Returns the cost of a discard: over the stall of the fastest stalled closed loop, else over
    /// all.
    fn fit(&self) -> Option<Fit> {
        if !self.discards.any() || counting::without_sizes(&self.record.head) {
            return None;
        }
        self.discards.count()?;
        let mut actors = self
            .actors
            .iter()
            .filter(|a| !a.foreground.loop_kind.is_open());
        let stalled = actors.find(|a| a.finding == Finding::Stall);
        let ranges: Vec<Range<usize>> = match stalled {
            Some(actor) => actor.stalled.clone(),
            None => std::iter::once(0..self.record.intervals.len()).collect(),
        };
        let cells = || ranges.iter().cloned().flatten();
        let commands: u64 = cells().map(|i| u64::from(self.discards.commands[i])).sum();
        if commands == 0 {
            return None;
        }
        let per_command = |sum: u64| sum as f64 / commands as f64;
        let wait_ms: u64 = cells().map(|i| self.discards.wait_ms[i]).sum();
        let bytes = total(cells().map(|i| self.discards.bytes[i]));
        let mut fit = Fit {
            service_us: Some(per_command(wait_ms) * 1e3).filter(|&us| us > 0.0),
            at_mib: Some(per_command(bytes) / (1 << 20) as f64),
            ..Fit::default()
        };
        if let Some(actor) = stalled {
            barrier::add_to(&mut fit, self.record, self.discards, actor);
        }
        Some(fit)
    }
}
