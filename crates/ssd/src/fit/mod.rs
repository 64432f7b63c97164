//! From records to what the discards cost: S = a + b·L, φ, and the kind of queue.
//!
//! A stall that was measured once says what *that* deletion cost. The cost of another one follows
//! from the drive's own figures, and this module reads them from records:
//!
//! 1. `cells`: how long the device was busy with which discards, whatever they
//!    waited for each other;
//! 2. `points`: the service time at each size that occurred;
//! 3. `line`: a and b, where the sizes differ enough, by robust regression with
//!    the bootstrap's confidence;
//! 4. `reads`: what a read takes beside no discards;
//! 5. `costs`: which of all that is known, which only bounded, and why;
//! 6. `share`: φ and the barrier, from the judge's figure for the loss of the foreground;
//! 7. `card`: all that as a device card, to be tried out on a simulated drive.
//!
//! An unknown figure is a [`Figure`] with the reason, or a bound. It is pure, and the same records
//! give the same figures.

mod card;
mod cells;
mod costs;
mod figure;
mod line;
mod reads;
mod share;

pub use card::Made;
pub use cells::window;
pub use figure::{Estimate, Figure, Point};
pub use reads::Reads;
pub use share::{Barrier, Share};

use std::collections::BTreeSet;

use judge::{JudgeOptions, Verdict, judge, verdict};
use record::as_drive::{NotSlowed, slower};
use record::{AtaTrim, Head, RunRecord, Slower};

use cells::{All, Cell, Evidence};
use costs::{BENT, BESIDE, SAME_SIZE, SURE, all_cells, costs, service, sizes};
use line::Line;

/// The cost of the discards of some records.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The service time at each size that occurred, from the smallest to the largest.
    pub points: Vec<Point>,
    /// Mean service time of all discards, in microseconds.
    pub service_us: Figure,
    /// Their mean size, in MiB.
    pub at_mib: f64,
    /// How many discards it rests on.
    pub discards: u64,
    /// Time of each discard, in microseconds.
    pub a_us: Figure,
    /// Time of each MiB, in microseconds.
    pub b_us_per_mib: Figure,
    /// The line through all rungs, also where a or b isn't sure.
    line: Option<Line>,
    /// How far the rungs in between lie off the line, as a share; `None` without a
    /// line or rungs in between.
    pub bend: Option<f64>,
    /// How much the times of single discards differ, as a share of them; `None` where that is
    /// unknown.
    pub jitter: Option<f64>,
    /// The effect of discards on the foreground.
    pub share: Share,
    /// How the kernel sends TRIM to the drives, where they are ATA drives and it is
    /// the same for all.
    pub ata_trim: Option<AtaTrim>,
    /// The most bytes that the kernel sends to a drive in one discard, where that was recorded.
    pub max_bytes: Option<u64>,
    /// Reads beside no discards.
    pub reads: Reads,
    /// Whatever changes how far the figures can be trusted, in words.
    pub notes: Vec<String>,
}

/// Why nothing can be fitted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Simulated drives in times that differ.
    #[error("a card is in the drive's own time, but {0}")]
    NoOneTime(#[from] NotSlowed),
    /// Nothing was discarded.
    #[error(
        "no discards were recorded with their number and size, so there is nothing to fit; \
         `trimbench report` shows why"
    )]
    NoDiscards,
    /// Records of drives that differ, or differ in how much slower they are.
    #[error("a card is of one drive, but these are records of several: {0}; give those of one")]
    SeveralDrives(String),
}

/// Fits one or several records of the same drive, in that drive's own time: what
/// was measured on a simulation in stretched time is converted here. So the times
/// that the kernel tells in whole milliseconds are rounded no further.
///
/// # Errors
/// If there are no discards in them, or no one time, or they are of several drives.
pub fn fit(records: &[&RunRecord]) -> Result<Fit, FitError> {
    let mut drives: Vec<String> = records
        .iter()
        .map(|r| models(&r.head).join(" + "))
        .collect();
    drives.retain(|drive| !drive.is_empty());
    drives.sort_unstable();
    drives.dedup();
    if drives.len() > 1 {
        return Err(FitError::SeveralDrives(drives.join("; ")));
    }
    let seen: Result<Vec<Seen>, FitError> = records.iter().map(|r| Seen::in_own_time(r)).collect();
    fit_seen(&seen?)
}

/// A verdict whose `fit` holds the known figures of the record's discards, in the record's time.
/// The judge's figures for the barrier stay.
pub fn joined(verdict: Verdict, record: &RunRecord) -> Verdict {
    let fit = fit_seen(&[Seen::as_it_is(record, verdict.clone())]);
    Verdict {
        fit: fit.map_or(verdict.fit, |fit| Some(fit.of_verdict())),
        ..verdict
    }
}

/// A record, what the judge says of it and what its counters tell. The latter two are in one time.
struct Seen<'r> {
    record: &'r RunRecord,
    verdict: Verdict,
    evidence: Evidence,
    quiet: reads::Quiet,
}

impl<'r> Seen<'r> {
    /// All in the drive's own time. The verdict is the run's own: a stall of a slowed drive is one
    /// here, too, also if it were too short for one in the other time.
    fn in_own_time(record: &'r RunRecord) -> Result<Seen<'r>, FitError> {
        let seen = Seen::as_it_is(record, judge(record, &JudgeOptions::of(record)));
        let stretched = slower(&record.head.devices)?.filter(|slower| !slower.converted);
        let Some(stretched) = stretched else {
            return Ok(seen);
        };
        let (mut verdict, times) = (seen.verdict, stretched.times);
        verdict.slower = Some(Slower {
            times,
            converted: true,
        });
        let lost = verdict.foreground.iter_mut().map(|f| &mut f.lost_s);
        for seconds in lost.chain([&mut verdict.discard.active_s]).flatten() {
            *seconds /= times;
        }
        Ok(Seen {
            verdict,
            evidence: seen.evidence.in_time(times),
            quiet: seen.quiet.in_time(times),
            record,
        })
    }

    fn as_it_is(record: &'r RunRecord, verdict: Verdict) -> Seen<'r> {
        Seen {
            record,
            verdict,
            evidence: cells::of(record),
            quiet: reads::of(record),
        }
    }
}

fn fit_seen(seen: &[Seen<'_>]) -> Result<Fit, FitError> {
    let evidence = without_others(seen.iter().map(|seen| &seen.evidence).collect());
    let all = All::sum(evidence.iter().map(|e| &e.all));
    if all.discards == 0.0 {
        return Err(FitError::NoDiscards);
    }
    let reads = reads::Quiet::sum(seen.iter().map(|seen| &seen.quiet)).reads();
    let (records, alone) = undisturbed(&evidence);
    let mut points = figure::points(&records);
    let mut costs = costs(&records, &points, &all, &reads);
    let thinned = cells::thinned(&evidence);
    if let Some(times) = thinned {
        costs.thin(times, &points);
        if costs.service_us.value().is_none() {
            // A size of which more was free space than of others costs no less than a smaller one.
            let mut most = 0.0;
            for point in &mut points {
                most = f64::max(most, point.service_us.high * times);
                point.service_us.high = most;
            }
        }
    }
    let at_mib = costs.of.mib / f64::max(costs.of.discards, 1.0);
    // The mean of all discards is a bound too, where the rows' next larger size scatters.
    if let Figure::AtMost { bound, .. } = &mut costs.service_us {
        *bound = bound.min(figure::at_most_us(&points, at_mib).unwrap_or(*bound));
    }
    let shares = seen.iter().map(|seen| {
        let own = match &costs.service_us {
            Figure::Known(_) => beside_others(&seen.evidence, alone, &points, &reads),
            _ => None,
        };
        share::of(seen.record, &seen.verdict, &seen.evidence, own)
    });
    let mut fit = Fit {
        at_mib,
        discards: costs.of.discards as u64,
        share: share::best(shares.collect()),
        ata_trim: ata_trim(seen),
        max_bytes: max_bytes(seen),
        service_us: costs.service_us,
        a_us: costs.a_us,
        b_us_per_mib: costs.b_us_per_mib,
        line: costs.line,
        bend: costs.bend,
        jitter: costs.jitter,
        points,
        reads,
        notes: Vec::new(),
    };
    fit.notes = notes(seen, &fit, alone, thinned);
    Ok(fit)
}

/// Those beside which nothing else was discarded, where they deleted files of the same sizes as all.
fn without_others(all: Vec<&Evidence>) -> Vec<&Evidence> {
    let own: Vec<&Evidence> = (all.iter().copied())
        .filter(|e| e.beside_bytes().is_none())
        .collect();
    let is_alike = |a: f64, b: f64| a.max(b) <= a.min(b) * figure::ALIKE;
    let covered = |e: &&Evidence| own.iter().any(|one| is_alike(one.file_mib, e.file_mib));
    match all.iter().all(covered) {
        true => own,
        false => all,
    }
}

/// The cells of each record, and whether none of them is disturbed. Cells beside which readers read
/// as fast as they could are left out where the others cover the same sizes. Also says whether
/// nobody did so beside what is left.
fn undisturbed(evidence: &[&Evidence]) -> (Vec<Vec<Cell>>, bool) {
    let cells = |alone: bool| -> Vec<Vec<Cell>> {
        let wanted = evidence.iter().filter(|e| !(alone && e.disturbed));
        wanted.map(|e| e.cells.clone()).collect()
    };
    let (all, alone) = (cells(false), cells(true));
    let (every, some) = (sizes(&all), sizes(&alone));
    let covered = some.0 <= every.0 * figure::ALIKE && some.1 * figure::ALIKE >= every.1;
    match covered {
        true => (alone, true),
        false => (all, evidence.iter().all(|e| !e.disturbed)),
    }
}

/// The time of a record's discards, without their waits for other I/O. A drive that drains its
/// queue first lets a discard wait for the reads in flight. Undisturbed discards of that size then
/// give the time; without them it is that much less at least.
fn beside_others(
    evidence: &Evidence,
    alone: bool,
    points: &[Point],
    reads: &Reads,
) -> Option<Estimate> {
    let cells = std::slice::from_ref(&evidence.cells);
    let own = service(cells)?;
    if !evidence.disturbed {
        return Some(own);
    }
    let sum = all_cells(cells);
    let mib = sum.mib / sum.discards;
    let same = |p: &&Point| (p.mib / mib - 1.0).abs() <= SAME_SIZE;
    if let Some(point) = points.iter().find(same).filter(|_| alone) {
        return Some(point.service_us);
    }
    let drained = reads.service_us.value().unwrap_or(0.0);
    let low = (own.low - drained).max(own.low / 2.0);
    Some(Estimate { low, ..own })
}

/// How many bytes were discarded beside what a run deleted; `None`: next to none, or it is unknown.
pub fn beside_bytes(record: &RunRecord) -> Option<u64> {
    cells::of(record).beside_bytes()
}

impl Fit {
    /// The most that a discard of so many bytes takes, in microseconds, as far as it is known: as
    /// observed at about that size, or its bound by other sizes.
    pub fn service_at_most_us(&self, bytes: u64) -> Option<f64> {
        let mib = bytes as f64 / record::units::MIB as f64;
        let alike = |p: &&Point| (p.mib / mib).max(mib / p.mib) <= figure::ALIKE;
        let found = match self.service_us.value() {
            Some(_) => self
                .points
                .iter()
                .find(alike)
                .map(|point| point.service_us.value),
            None => figure::at_most_us(&self.points, mib),
        };
        found.or_else(|| self.service_us.at_most())
    }

    /// The end of a ladder that should be climbed again: its time is known no better
    /// than to `share` of it, and worse than the other end's. `times`: how many times slower
    /// than the drive's own the time was in which it was measured. `None` also where a repeat tells no
    /// more, because other discards came beside what was deleted.
    pub fn unsure_end(&self, share: f64, times: f64) -> Option<&Point> {
        if self.b_us_per_mib.why() == Some(BESIDE) {
            return None;
        }
        figure::unsure_end(&self.points, share, 1e3 / times)
    }

    /// The size, in bytes, that all discards had; `None` if a line through several sizes is known.
    /// A card of a fit with one size holds for that size alone.
    pub fn only_bytes(&self) -> Option<u64> {
        let bytes = (self.at_mib * record::units::MIB as f64).round() as u64;
        self.line.is_none().then_some(bytes)
    }

    /// Whether each discard waits until the drive is empty and runs alone, as the
    /// kernel sends it.
    pub fn drains(&self) -> bool {
        self.ata_trim.is_some_and(AtaTrim::runs_alone)
    }

    /// The figures as a verdict has them: what isn't known is `None`.
    pub fn of_verdict(&self) -> verdict::Fit {
        let known = self.service_us.value();
        verdict::Fit {
            a_us: self.a_us.value(),
            b_us_per_mib: self.b_us_per_mib.value(),
            phi: self.share.phi.value(),
            phi_95: self.share.phi.estimate().map(|phi| [phi.low, phi.high]),
            service_us: known,
            at_mib: known.map(|_| self.at_mib),
            // The time lost alone shows no barrier where the operations between discards don't.
            barrier: match self.share.barrier {
                Some(Barrier::TimeLost) => None,
                _ => self.share.is_barrier(),
            },
            ops_per_discard: self.share.ops_per_discard,
            ..self.share.judged
        }
    }
}

/// How TRIM is sent to all of the leaves; `None` where they differ or it is unknown.
fn ata_trim(seen: &[Seen<'_>]) -> Option<AtaTrim> {
    let devices = seen.iter().flat_map(|seen| &seen.record.head.devices);
    let mut leaves = devices.filter(|d| d.leaf).map(|d| d.discard.ata_trim);
    let first = leaves.next()??;
    leaves.all(|other| other == Some(first)).then_some(first)
}

/// The least of the drives' limits; of a log none is known.
fn max_bytes(seen: &[Seen<'_>]) -> Option<u64> {
    let devices = seen.iter().flat_map(|seen| &seen.record.head.devices);
    let limits = devices.filter(|d| d.leaf).map(|d| d.discard.max_bytes);
    limits.filter(|&bytes| bytes > 0).min()
}

/// The models of a record's drives, each once.
fn models(head: &Head) -> Vec<&str> {
    let leaves = head.devices.iter().filter(|d| d.leaf);
    let models: BTreeSet<&str> = leaves.filter_map(|d| d.model.as_deref()).collect();
    models.into_iter().collect()
}

fn notes(seen: &[Seen<'_>], fit: &Fit, alone: bool, thinned: Option<f64>) -> Vec<String> {
    let mut notes = Vec::new();
    let models = seen.first().map(|seen| models(&seen.record.head));
    if let Some(models) = models.filter(|models| models.len() > 1) {
        notes.push(format!(
            "The records are of several kinds of drives ({}), fitted as if they were one.",
            models.join(", ")
        ));
    }
    if let Some(slower) = seen.iter().find_map(|seen| seen.verdict.slower) {
        notes.push(in_what_time(slower));
    }
    if seen.iter().any(|seen| seen.evidence.devices > 1) {
        notes.push("Several drives worked at once; the figures are those of one of them.".into());
    }
    let beside = seen.iter().filter_map(|seen| seen.evidence.beside_bytes());
    if let Some(more) = beside.reduce(u64::saturating_add) {
        let more = record::units::bytes(more);
        let left_out = thinned.is_none();
        notes.push(match left_out {
            true => format!(
                "In a part of the runs {more} more were discarded than were deleted, by another program \
                 perhaps: those runs are left out."
            ),
            false => format!(
                "{more} more were discarded than were deleted: by another program, or free space beside it \
                 (ext4 does that, also below a loop device). It may cost the drive more or less than what was \
                 deleted. Repeat this while nothing else deletes; if it comes again, XFS on the drive \
                 itself, or a raw device, tells."
            ),
        });
    }
    let all = seen
        .iter()
        .map(|seen| seen.evidence.all.discards)
        .sum::<f64>() as u64;
    let left_out = all.saturating_sub(fit.discards);
    if left_out > all / 10 {
        notes.push(format!(
            "{} of {} are left out: reads ran beside them, or several were in flight, so only a bound \
             of their time is known.",
            record::units::count(left_out),
            record::units::counted(all, "discard")
        ));
    }
    notes.extend((fit.of_one_size()).map(|holds| format!("A card of these figures {holds}")));
    if fit.points.iter().any(|p| p.queued) {
        notes.push(
            "Several discards were in flight at once: the time is what one kept the drive busy for, \
             not what it waited."
                .into(),
        );
    }
    if let Some(bend) = fit.bend.filter(|&bend| bend > BENT)
        && (thinned.is_none() || fit.service_us.value().is_some())
    {
        notes.push(format!(
            "The times don't lie on a line (up to {} off): use those measured at each size.",
            record::units::percent(bend)
        ));
    }
    if let (false, Some(read)) = (alone, fit.reads.service_us.value())
        && fit.a_us.value().is_some_and(|a| read > SURE * a)
    {
        notes.push(format!(
            "Reads were in flight beside the discards; on a SATA drive each discard waits for them \
             first, which is up to {} of what it costs here.",
            record::units::latency_us(read)
        ));
    }
    notes
}

fn in_what_time(slower: Slower) -> String {
    let (times, how) = slower.in_words();
    match slower.converted {
        true => format!(
            "The simulated drive was {times} times {how} than the one it stands for. All times are \
             those of that one; the measured ones were converted."
        ),
        false => format!(
            "The simulated drive was {times} times {how} than the one it stands for, and all times \
             are as measured."
        ),
    }
}
