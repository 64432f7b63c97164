//! Finds the cost of each discard and each MiB, or the reason why it is unknown.

use super::cells::{All, Cell};
use super::figure::{self, Estimate, Figure, Point};
use super::line::{Line, bootstrap};
use super::reads::Reads;

/// A figure is known from this relative half-width of its confidence on.
pub(super) const SURE: f64 = 0.15;

/// It also is where it is off by at most this share of the whole service time:
/// a cost of nothing can't be known to a share of itself.
const NEGLIGIBLE: f64 = 0.05;

/// Cells of no more discards than this tell how single ones differ.
const A_FEW: f64 = 4.0;

/// Sizes must differ by this factor to tell a from b.
const APART: f64 = 1.5;

/// Sizes that differ by no more than this share are the same.
pub(super) const SAME_SIZE: f64 = 0.05;

/// A discard that takes no longer than so many reads costs no more than the work of the machine
/// around it, and the two can't be separated.
const READS: f64 = 4.0;

/// The cost of each discard is unknown where the smallest takes no longer than so many reads: a
/// busy machine adds a read's time and more to a command.
const READS_EACH: f64 = 2.0;

/// Why only a bound is known where nothing can be computed with.
const AT_ONCE: &str = "several discards may have been in flight at once, or they were over too \
                       soon: only a bound is known";

/// Fewer discards than this have no mean that is sure.
const FEW: f64 = 16.0;

/// Why the mean time of discards isn't sure.
fn unsure(records: &[Vec<Cell>]) -> &'static str {
    let sum = |of: fn(&Cell) -> f64| records.iter().flatten().map(of).sum::<f64>();
    match () {
        () if records.iter().all(Vec::is_empty) => AT_ONCE,
        () if sum(|cell| cell.discards) < FEW => "too few discards: only a bound is known",
        () if sum(|cell| cell.off_us) > SURE * sum(|cell| cell.us) => {
            "discards too short for the kernel's whole milliseconds: only a bound is known"
        }
        () => "some discards took far longer than others of their size: only a bound is known",
    }
}

/// Sizes in between that are further off the line than this share of it don't lie on it.
pub(super) const BENT: f64 = 0.2;

/// Why there isn't even a bound.
pub(super) const BESIDE: &str = "other discards came beside what was deleted, and what the drive had there, if \
                      anything, is unknown";

/// Sum of cells.
pub(super) fn all_cells(records: &[Vec<Cell>]) -> All {
    let mut all = All::default();
    for cell in records.iter().flatten() {
        all.discards += cell.discards;
        all.mib += cell.mib;
    }
    all
}

/// The cost of discards.
pub(super) struct Costs {
    /// The discards that tell it: those that can be computed with, or all.
    pub(super) of: All,
    pub(super) service_us: Figure,
    pub(super) a_us: Figure,
    pub(super) b_us_per_mib: Figure,
    pub(super) line: Option<Line>,
    pub(super) bend: Option<f64>,
    pub(super) jitter: Option<f64>,
}

/// The mean time of a discard, if it is sure. Where sizes differ, it is the
/// line's at their mean: how many of which size were drawn mustn't count.
pub(super) fn service(records: &[Vec<Cell>]) -> Option<Estimate> {
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
pub(super) fn sizes(records: &[Vec<Cell>]) -> (f64, f64) {
    let sizes = records.iter().flatten().map(figure::size);
    sizes.fold((f64::INFINITY, 0.0), |(low, high), s| {
        (low.min(s), high.max(s))
    })
}

/// The cost of discards, as far as the cells show it.
pub(super) fn costs(records: &[Vec<Cell>], points: &[Point], all: &All, reads: &Reads) -> Costs {
    let Some(service_us) = service(records) else {
        return Costs::bounded(all, unsure(records));
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
        let why = match last.service_us.high <= floor {
            true => format!(
                "a discard of {} takes no longer than {READS:.0} reads: its own time can't be separated \
                 from the machine's",
                last.size()
            ),
            false => unsure(records).to_owned(),
        };
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
                "all discards whose time is known had about {}: only sizes that differ show what each \
                 discard and each MiB costs",
                last.size()
            ),
        )
    };
    if !apart {
        return known;
    }
    let a_us = match first.service_us.low > read.map_or(0.0, |read| read.value) * READS_EACH {
        true => known_or_bound(
            a,
            line.at(first.mib),
            points.iter().map(|point| point.service_us.high),
            "the smallest discards were too large, or too few",
        ),
        false => Figure::at_most_for(
            a.high.min(first.service_us.high),
            format!("the smallest discards took no longer than {READS_EACH:.0} reads"),
        ),
    };
    Costs {
        a_us,
        b_us_per_mib: known_or_bound(
            b,
            line.at(last.mib) / last.mib,
            points.iter().map(|point| point.service_us.high / point.mib),
            "the largest discards were too small, or too few",
        ),
        line: Some(line),
        bend: bend(points, &line),
        ..known
    }
}

/// A cost that is known well enough, or what it is at most: no more than any of `wholes`, of which
/// it is a part.
fn known_or_bound(
    cost: Estimate,
    whole: f64,
    wholes: impl Iterator<Item = f64>,
    why: &str,
) -> Figure {
    let sure = cost.half_width() <= SURE * cost.value || cost.half_width() <= NEGLIGIBLE * whole;
    if sure {
        Figure::Known(cost)
    } else {
        Figure::at_most_for(wholes.fold(cost.high, f64::min), why)
    }
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
    let spread = 1.4826 * figure::median(cells.iter().map(off));
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

    /// Other space was discarded, too, so many times as much in all as was deleted. It may have
    /// cost less for what the drive had there, which was nothing perhaps: then what was deleted
    /// took all of the time. A line through all sizes is the best guess where they agree with it.
    pub(super) fn thin(&mut self, times: f64, points: &[Point]) {
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

impl All {
    pub(super) fn sum<'a>(parts: impl Iterator<Item = &'a All>) -> All {
        parts.fold(All::default(), |sum, part| All {
            discards: sum.discards + part.discards,
            mib: sum.mib + part.mib,
            wait_us: sum.wait_us + part.wait_us,
            span_us: sum.span_us + part.span_us,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_costs_no_more_than_a_whole_that_was_measured() {
        // Two records of two sizes close to each other, which scatter: the line can lie anywhere.
        let cell = |mib: f64, us: f64| Cell {
            discards: 1.0,
            mib,
            us,
            off_us: 0.0,
            queued: false,
        };
        let scattered = |mib: f64| -> Vec<Cell> {
            let off = [0.85, 1.1, 0.95, 1.15, 0.9, 1.05];
            off.iter().map(|off| cell(mib, 1000.0 * off)).collect()
        };
        let records = [scattered(20.0), scattered(32.0)];
        let points = figure::points(&records);
        let reads = super::super::reads::Quiet::default().reads();
        let costs = costs(&records, &points, &all_cells(&records), &reads);
        let least = |of: fn(&Point) -> f64| points.iter().map(of).fold(f64::INFINITY, f64::min);
        let [a, b] = [&costs.a_us, &costs.b_us_per_mib].map(|figure| match figure {
            Figure::AtMost { bound, .. } => *bound,
            other => panic!("{other:?}"),
        });
        assert!(a <= least(|point| point.service_us.high), "{a}");
        assert!(b <= least(|point| point.service_us.high / point.mib), "{b}");
    }
}
