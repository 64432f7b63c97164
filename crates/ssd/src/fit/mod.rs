//! From records to what the discards cost: S = a + b·L, φ, and the kind of queue.
//!
//! A stall that was measured once says what *that* deletion cost. What another
//! one will cost follows from the drive's own figures, and this module reads them
//! off records, as far as they can be told:
//!
//! 1. `cells`: how long the device was busy with which discards, whatever they
//!    waited for each other;
//! 2. `points`: the service time at each size that occurred;
//! 3. `line`: a and b, where the sizes differ enough, by robust regression with
//!    the bootstrap's confidence;
//! 4. `reads`: what a read takes beside no discards;
//! 5. `share`: φ and the barrier, from what the judge says that others lost;
//! 6. `card`: all that as a device card, to be tried out on a simulated drive.
//!
//! What can't be told is a [`Figure`] that says why, or a bound. It is pure, and
//! the same records give the same figures.

mod card;
mod cells;
mod figure;
mod line;
mod points;
mod reads;
mod share;

pub use card::Made;
pub use figure::{Estimate, Figure};
pub use points::Point;
pub use reads::Reads;
pub use share::{Barrier, Share};

use std::borrow::Cow;

use timeline::as_drive::{NotSlowed, slower};
use timeline::record::{AtaTrim, Slower};
use timeline::{JudgeOptions, RunRecord, Verdict, as_drive, judge, units, verdict};

use cells::{All, Cell, Evidence};
use line::{Line, bootstrap};

/// A figure is known from this relative half-width of its confidence on.
const SURE: f64 = 0.15;

/// It also is where it is off by at most this share of the whole service time:
/// a cost of nothing can't be known to a share of itself.
const NEGLIGIBLE: f64 = 0.05;

/// Cells of no more discards than this tell how single ones differ.
const A_FEW: f64 = 4.0;

/// Sizes must differ by this factor to tell a from b.
const APART: f64 = 1.5;

/// Sizes that differ by no more than this share are the same.
const SAME_SIZE: f64 = 0.05;

/// A discard that takes no longer than so many reads is no dearer than the work
/// of the machine around it: which of both it is can't be told.
const READS: f64 = 4.0;

/// And what each discard costs can't be told where the smallest takes no longer than
/// so many: what a busy machine adds to a command is a read's time and more.
const READS_EACH: f64 = 2.0;

/// Why only a bound is known where nothing can be computed with.
const AT_ONCE: &str = "several discards may have been in flight at once, or they were over too \
                       soon: only a bound is known";

/// And where what is computed isn't sure.
const TOO_SHORT: &str = "too few discards, too short ones for the kernel's whole milliseconds, or \
                         some that took far longer than others of their size: only a bound is known";

/// Sizes in between that are further off the line than this share of it don't lie on it.
const BENT: f64 = 0.2;

/// Why there isn't even a bound.
const BESIDE: &str = "free space was discarded beside what was deleted, and what the drive had \
                      there, if anything, can't be told";

/// What the discards of some records cost.
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
    /// What each discard costs, in microseconds.
    pub a_us: Figure,
    /// What each MiB costs, in microseconds.
    pub b_us_per_mib: Figure,
    /// The line through all rungs, also where a or b isn't sure.
    line: Option<Line>,
    /// How far the rungs in between lie off the line, as a share; `None` without a
    /// line or rungs in between.
    pub bend: Option<f64>,
    /// How much the times of single discards differ, as a share of them; `None` where that
    /// can't be told.
    pub jitter: Option<f64>,
    /// What discards do to others.
    pub share: Share,
    /// How the kernel sends TRIM to the drives, where they are ATA drives and it is
    /// the same for all.
    pub ata_trim: Option<AtaTrim>,
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
        "no discards were recorded, so there is nothing to fit; see what kept them away with \
         `trimbench report`"
    )]
    NoDiscards,
}

/// Fits one or several records of the same drive, in that drive's own time: what
/// was measured on a simulation in stretched time is converted here. So the times
/// that the kernel tells in whole milliseconds are rounded no further.
///
/// # Errors
/// If there are no discards in them, or no one time.
pub fn fit(records: &[&RunRecord]) -> Result<Fit, FitError> {
    let seen: Result<Vec<Seen>, FitError> = records.iter().map(|r| Seen::in_own_time(r)).collect();
    fit_seen(&seen?)
}

/// A verdict whose `fit` holds what can be told of the record's discards, in the
/// record's time; what the judge says of the barrier stays.
pub fn joined(verdict: Verdict, record: &RunRecord) -> Verdict {
    let fit = fit_seen(&[Seen::as_it_is(record, verdict.clone())]);
    Verdict {
        fit: fit.map_or(verdict.fit, |fit| Some(fit.of_verdict())),
        ..verdict
    }
}

/// A record, what the judge says of it and what its counters tell, all in one time.
struct Seen<'r> {
    record: Cow<'r, RunRecord>,
    verdict: Verdict,
    evidence: Evidence,
    quiet: reads::Quiet,
}

impl<'r> Seen<'r> {
    fn in_own_time(record: &'r RunRecord) -> Result<Seen<'r>, FitError> {
        let options = JudgeOptions::default();
        let stretched = slower(&record.head.devices)?.filter(|slower| !slower.converted);
        let Some(stretched) = stretched else {
            return Ok(Seen::as_it_is(record, judge(record, &options)));
        };
        let told = as_drive(record.clone())?;
        Ok(Seen {
            verdict: judge(&told, &options),
            record: Cow::Owned(told),
            evidence: cells::of(record).in_time(stretched.times),
            quiet: reads::of(record).in_time(stretched.times),
        })
    }

    fn as_it_is(record: &'r RunRecord, verdict: Verdict) -> Seen<'r> {
        Seen {
            record: Cow::Borrowed(record),
            verdict,
            evidence: cells::of(record),
            quiet: reads::of(record),
        }
    }
}

fn fit_seen(seen: &[Seen<'_>]) -> Result<Fit, FitError> {
    let evidence: Vec<&Evidence> = seen.iter().map(|seen| &seen.evidence).collect();
    let all = All::sum(evidence.iter().map(|e| &e.all));
    if all.discards == 0.0 {
        return Err(FitError::NoDiscards);
    }
    let reads = reads::Quiet::sum(seen.iter().map(|seen| &seen.quiet)).reads();
    let (records, alone) = undisturbed(&evidence);
    let mut points = points::points(&records);
    let mut costs = costs(&records, &points, &all, &reads);
    if let Some(times) = cells::thinned(&evidence) {
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
    let shares = seen.iter().map(|seen| {
        let own = match &costs.service_us {
            Figure::Known(_) => beside_others(&seen.evidence, alone, &points, &reads),
            _ => None,
        };
        share::of(&seen.record, &seen.verdict, &seen.evidence, own)
    });
    let mut fit = Fit {
        at_mib: costs.of.mib / f64::max(costs.of.discards, 1.0),
        discards: costs.of.discards as u64,
        share: share::best(shares.collect()),
        ata_trim: ata_trim(seen),
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
    fit.notes = notes(seen, &fit, alone);
    Ok(fit)
}

/// The cells of each record; those beside which somebody read as fast as it
/// could are left out where the others cover the same sizes. Also says whether
/// nobody did so beside what is left.
fn undisturbed(evidence: &[&Evidence]) -> (Vec<Vec<Cell>>, bool) {
    let cells = |alone: bool| -> Vec<Vec<Cell>> {
        let wanted = evidence.iter().filter(|e| !(alone && e.disturbed));
        wanted.map(|e| e.cells.clone()).collect()
    };
    let (all, alone) = (cells(false), cells(true));
    let (every, some) = (sizes(&all), sizes(&alone));
    let covered = some.0 <= every.0 * points::ALIKE && some.1 * points::ALIKE >= every.1;
    match covered {
        true => (alone, true),
        false => (all, evidence.iter().all(|e| !e.disturbed)),
    }
}

/// What a record's discards took, whatever they waited for others. A drive that
/// drains its queue first lets a discard wait for the reads in flight: if nobody
/// disturbed discards of that size elsewhere, those tell; else it is that much less
/// at least.
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

/// Sum of cells.
fn all_cells(records: &[Vec<Cell>]) -> All {
    let mut all = All::default();
    for cell in records.iter().flatten() {
        all.discards += cell.discards;
        all.mib += cell.mib;
    }
    all
}

/// What discards cost.
struct Costs {
    /// The discards that tell it: those that can be computed with, or all.
    of: All,
    service_us: Figure,
    a_us: Figure,
    b_us_per_mib: Figure,
    line: Option<Line>,
    bend: Option<f64>,
    jitter: Option<f64>,
}

/// The mean time of a discard, if it is sure. Where sizes differ, it is the
/// line's at their mean: how many of which size were drawn mustn't count.
fn service(records: &[Vec<Cell>]) -> Option<Estimate> {
    let strata: Vec<&[Cell]> = records.iter().map(Vec::as_slice).collect();
    let sum = all_cells(records);
    if sum.discards < 1.0 {
        return None;
    }
    let (low, high) = sizes(records);
    let [service] = bootstrap(&strata, |cells| {
        [match high < low * APART {
            true => Line::level(cells),
            false => Line::through(cells).at(sum.mib / sum.discards),
        }]
    });
    (service.half_width() <= SURE * service.value).then_some(service)
}

/// The smallest and the largest mean size of a cell's discards, in MiB.
fn sizes(records: &[Vec<Cell>]) -> (f64, f64) {
    let sizes = records.iter().flatten().map(points::size);
    sizes.fold((f64::INFINITY, 0.0), |(low, high), s| {
        (low.min(s), high.max(s))
    })
}

fn costs(records: &[Vec<Cell>], points: &[Point], all: &All, reads: &Reads) -> Costs {
    let Some(service_us) = service(records) else {
        let cells = records.iter().any(|cells| !cells.is_empty());
        return Costs::bounded(all, if cells { TOO_SHORT } else { AT_ONCE });
    };
    let read = reads.service_us.estimate();
    let floor = read.map_or(0.0, |read| read.high) * READS;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Costs::bounded(all, AT_ONCE);
    };
    let strata: Vec<&[Cell]> = records.iter().map(Vec::as_slice).collect();
    let [a, b] = bootstrap(&strata, |cells| {
        let line = Line::through(cells);
        [line.a_us, line.b_us]
    });
    let line = Line {
        a_us: a.value,
        b_us: b.value,
    };
    let apart = last.mib >= first.mib * APART;
    if last.service_us.low <= floor {
        let why = format!(
            "a discard of {} takes no longer than {READS:.0} reads: its own time can't be told from \
             the machine's",
            last.size()
        );
        return Costs {
            service_us: Figure::at_most_for(service_us.high, why.clone()),
            line: apart.then_some(line),
            ..Costs::unknown(all_cells(records), &why)
        };
    }
    let known = Costs {
        service_us: Figure::Known(service_us),
        jitter: jitter(records),
        ..Costs::unknown(
            all_cells(records),
            &format!(
                "all discards had about {}: it takes sizes that differ to tell what each discard \
                 costs from what its size costs",
                last.size()
            ),
        )
    };
    if !apart {
        return known;
    }
    let a_us = match first.service_us.low > read.map_or(0.0, |read| read.value) * READS_EACH {
        true => told(
            a,
            line.at(first.mib),
            "the smallest discards were too large, or too few",
        ),
        false => Figure::at_most_for(
            a.high.min(first.service_us.high),
            format!("the smallest discards took no longer than {READS_EACH:.0} reads"),
        ),
    };
    Costs {
        a_us,
        b_us_per_mib: told_by(b, line.at(last.mib), last.mib),
        line: Some(line),
        bend: bend(points, &line),
        ..known
    }
}

/// A cost that is known well enough, or what it is at most.
fn told(cost: Estimate, whole: f64, why: &str) -> Figure {
    let sure = cost.half_width() <= SURE * cost.value || cost.half_width() <= NEGLIGIBLE * whole;
    if sure {
        Figure::Known(cost)
    } else {
        Figure::at_most_for(cost.high, why)
    }
}

/// The same of a cost per MiB.
fn told_by(cost: Estimate, whole: f64, mib: f64) -> Figure {
    told(
        cost,
        whole / mib,
        "the largest discards were too small, or too few",
    )
}

/// The largest distance of a rung from the line, as a share; one whose confidence
/// holds the line isn't off.
fn bend(points: &[Point], line: &Line) -> Option<f64> {
    let middle = points.get(1..points.len().saturating_sub(1))?;
    let off = |p: &Point| {
        let expected = f64::max(line.at(p.mib), f64::MIN_POSITIVE);
        let Estimate { low, high, .. } = p.service_us;
        (expected.clamp(low, high) / expected - 1.0).abs()
    };
    middle.iter().map(off).max_by(f64::total_cmp)
}

/// The spread of single discards about the line, as a share: that of cells of a few, of
/// which each is off by its own. In cells of many it is lost in the machine's own drift.
fn jitter(records: &[Vec<Cell>]) -> Option<f64> {
    let mut cells: Vec<Cell> = records.concat();
    cells.retain(|cell| cell.discards <= A_FEW);
    if cells.len() < 8 {
        return None;
    }
    let line = Line::through(&cells);
    let off = |c: &Cell| {
        let expected = line.a_us * c.discards + line.b_us * c.mib;
        let rounded = c.off_us / f64::max(expected, f64::MIN_POSITIVE);
        let off = (c.us / f64::max(expected, f64::MIN_POSITIVE) - 1.0).abs() - rounded;
        off.max(0.0) * c.discards.sqrt()
    };
    let spread = 1.4826 * figure::median(cells.iter().map(off).collect());
    Some(spread.min(0.33))
}

impl Costs {
    fn unknown(of: All, why: &str) -> Costs {
        Costs {
            of,
            service_us: Figure::unknown(why),
            a_us: Figure::unknown(why),
            b_us_per_mib: Figure::unknown(why),
            line: None,
            bend: None,
            jitter: None,
        }
    }

    /// Free space was discarded, too, so many times as much in all as was deleted. It may have
    /// cost less for what the drive had there, which was nothing perhaps: then what was deleted
    /// took all of the time. A line through all sizes is the best guess where they agree with it.
    fn thin(&mut self, times: f64, points: &[Point]) {
        // Two dozen of two prices scatter so.
        let scatters = |point: &Point| {
            let took = &point.service_us;
            took.half_width() > SURE / 2.0 * took.value
        };
        let is_uneven =
            self.bend.is_some_and(|bend| bend > BENT) || points.last().is_some_and(scatters);
        self.service_us = match &self.service_us {
            Figure::Known(known) if is_uneven => Figure::at_most_for(known.high * times, BESIDE),
            Figure::AtMost { bound, why } => Figure::at_most_for(bound * times, why.clone()),
            as_it_is => as_it_is.clone(),
        };
        for figure in [&mut self.a_us, &mut self.b_us_per_mib] {
            if is_uneven || matches!(figure, Figure::AtMost { .. }) {
                *figure = Figure::unknown(BESIDE);
            }
        }
    }

    fn bounded(all: &All, why: &str) -> Costs {
        Costs {
            service_us: match all.at_most_us() {
                Some(us) => Figure::at_most_for(us, why),
                None => Figure::unknown(why),
            },
            ..Costs::unknown(*all, why)
        }
    }
}

impl Fit {
    /// What a discard of so many bytes takes at most, in microseconds, as far as it
    /// is known: what was seen at about that size, else of all.
    pub fn service_at_most_us(&self, bytes: u64) -> Option<f64> {
        let mib = bytes as f64 / units::MIB as f64;
        let alike = |p: &&Point| (p.mib / mib).max(mib / p.mib) <= points::ALIKE;
        let is_known = self.service_us.value().is_some();
        let point = self.points.iter().find(alike).map(|p| match is_known {
            true => p.service_us.value,
            false => p.service_us.high,
        });
        point.or_else(|| self.service_us.at_most())
    }

    /// The end of a ladder that should be climbed again: its time is known no better
    /// than to `share` of it, and worse than the other end's. `times`: how many times slower
    /// than the drive's own the time was in which it was measured.
    pub fn unsure_end(&self, share: f64, times: f64) -> Option<&Point> {
        points::unsure_end(&self.points, share, 1e3 / times)
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
            service_us: known,
            at_mib: known.map(|_| self.at_mib),
            barrier: self.share.is_barrier(),
            ops_per_discard: self.share.ops_per_discard,
        }
    }
}

/// How TRIM is sent to all of the leaves; `None` where they differ or it isn't told.
fn ata_trim(seen: &[Seen<'_>]) -> Option<AtaTrim> {
    let devices = seen.iter().flat_map(|seen| &seen.record.head.devices);
    let mut leaves = devices.filter(|d| d.leaf).map(|d| d.discard.ata_trim);
    let first = leaves.next()??;
    leaves.all(|other| other == Some(first)).then_some(first)
}

fn notes(seen: &[Seen<'_>], fit: &Fit, alone: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let mut models: Vec<&str> = seen
        .iter()
        .flat_map(|seen| &seen.record.head.devices)
        .filter(|d| d.leaf)
        .filter_map(|d| d.model.as_deref())
        .collect();
    models.sort_unstable();
    models.dedup();
    if models.len() > 1 {
        notes.push(format!(
            "These are records of several kinds of drives ({}), fitted as if they were one.",
            models.join(", ")
        ));
    }
    if let Some(slower) = seen.iter().find_map(|seen| seen.verdict.slower) {
        notes.push(in_what_time(slower));
    }
    if seen.iter().any(|seen| seen.evidence.devices > 1) {
        notes.push("Several drives worked at once; the figures are those of one of them.".into());
    }
    let beside = seen.iter().filter_map(|seen| seen.evidence.beside_mib());
    let beside = beside.reduce(|sum, mib| sum + mib);
    if let Some(mib) = beside {
        notes.push(format!(
            "{} of free space were discarded beside what was deleted (ext4 does that). Where the \
             drive had nothing there they can cost it less, and then the rungs are too low: XFS on \
             it, or --device, tells.",
            units::bytes((mib * units::MIB as f64) as u64)
        ));
    }
    if fit.points.iter().any(|p| p.queued) {
        notes.push(
            "Several discards were in flight at once: the time is what one kept the drive busy for, \
             not what it waited."
                .into(),
        );
    }
    if let Some(bend) = fit.bend.filter(|&bend| bend > BENT)
        && (beside.is_none() || fit.service_us.value().is_some())
    {
        notes.push(format!(
            "Sizes in between are up to {} off the line, so it isn't one: trust the rungs.",
            units::percent(bend)
        ));
    }
    if let (false, Some(read)) = (alone, fit.reads.service_us.value())
        && fit.a_us.value().is_some_and(|a| read > SURE * a)
    {
        notes.push(format!(
            "Reads were in flight beside the discards; on a SATA drive each discard waits for them \
             first, which is up to {} of what it costs here.",
            units::latency_us(read)
        ));
    }
    notes
}

fn in_what_time(slower: Slower) -> String {
    let (times, how) = slower.in_words();
    match slower.converted {
        true => format!(
            "The simulated drive was {times} times {how} than the one it stands for. All times are \
             that one's: what was measured was converted."
        ),
        false => format!(
            "The simulated drive was {times} times {how} than the one it stands for, and all times \
             are as measured."
        ),
    }
}

impl All {
    fn sum<'a>(parts: impl Iterator<Item = &'a All>) -> All {
        parts.fold(All::default(), |sum, part| All {
            discards: sum.discards + part.discards,
            mib: sum.mib + part.mib,
            wait_us: sum.wait_us + part.wait_us,
            span_us: sum.span_us + part.span_us,
        })
    }
}
