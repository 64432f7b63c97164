//! One record of iostat and fio, which ran beside each other: the foreground is
//! fio's, whose logs know its latencies, and the devices are iostat's.
//!
//! fio's logs or its JSON have its clock, and `iostat -t` prints its own: a local time, often without
//! its zone. Zones differ by quarters of an hour, so the right one is where both ran at once. iostat
//! without `-t` has no clock. Then fio's operations are laid where they fit best to what the devices
//! did.
//!
//! Where fio's windows are shorter than iostat's intervals, the record has fio's
//! resolution, and the devices' figures are spread over it evenly.

use std::ops::RangeInclusive;

use record::{ActorInterval, Interval, Line, PushError, RunRecord};

use crate::finer;
use crate::fio::{FioSeries, Grid, UNTIMED};
use crate::iostat::{self, Log, Notes};
use crate::{Unfit, parts as record_parts};

/// Most intervals that fio's begin is looked for before and after iostat's.
const FARTHEST: usize = 3600;
/// Operations that agree less than this with the devices' may be others altogether.
const AGREED: f64 = 0.8;
/// The device whose operations are fio's but for this share is the one that fio used.
const FIOS: f64 = 0.1;
/// Zones are ahead of UTC by a multiple of this, in seconds, from so many of it to so many.
const ZONE_S: f64 = 900.0;
const ZONES: RangeInclusive<i32> = -48..=56;
/// Both ran at once if they did for this share of the shorter one.
const AT_ONCE: f64 = 0.5;
/// Parts of an interval to which the begin is found.
const PARTS: i32 = 10;

/// Makes one record of both. Without operations in fio's logs it is iostat's alone.
///
/// # Errors
/// As [`iostat::record`].
pub fn together(
    log: &Log,
    notes: Option<&Notes>,
    options: &iostat::Options,
    mut series: Vec<FioSeries>,
) -> Result<RunRecord, Unfit> {
    let base = iostat::record(log, notes, options)?;
    // iostat sees fio's trims as discards of the device.
    series.retain(|one| one.ran().is_some() && !one.is_trim());
    if series.is_empty() {
        return Ok(base);
    }
    let dated = series.iter().all(|one| one.started_unix_s.is_some());
    let unzoned = dated && log.dated == Some(false);
    let zone_s = unzoned.then(|| zone(&base, &mut series)).flatten();
    let base = match zone_s {
        Some(_) => iostat::in_zone(log, notes, options, zone_s)?,
        None => base,
    };
    let warning = match log.dated {
        Some(zoned) if dated && (zoned || zone_s.is_some()) => {
            within_the_second(&base, &mut series)
        }
        _ => align(&base, &mut series, dated && log.dated.is_some()),
    };
    let base = match fios_device(&base, &series) {
        Some(device) if options.devices.is_empty() => {
            let devices = vec![device];
            let options = iostat::Options {
                devices,
                ..options.clone()
            };
            iostat::in_zone(log, notes, &options, zone_s)?
        }
        _ => base,
    };
    Ok(joined(&base, &series, warning)?)
}

/// The device whose operations were fio's, where several were busy.
fn fios_device(base: &RunRecord, series: &[FioSeries]) -> Option<String> {
    let fio = summed(series, &Grid::of(base.head.started_unix_s, &base.intervals));
    let all: f64 = fio.iter().sum();
    let apart = |i: usize| -> f64 {
        let ops = base.intervals.actors[i].ops.iter();
        let both = ops.map(|&ops| f64::from(ops)).zip(&fio);
        both.map(|(device, fio)| (device - fio).abs()).sum()
    };
    let each = (0..base.head.actors.len()).map(|i| (i, apart(i)));
    let (i, apart) = each.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let name = &base.head.actors[i].name;
    let device = name.strip_suffix("-write").unwrap_or(name);
    (base.head.actors.len() > 1 && apart <= FIOS * all).then(|| device.to_owned())
}

/// iostat's record with other actors.
fn joined(
    base: &RunRecord,
    series: &[FioSeries],
    warning: Option<String>,
) -> Result<RunRecord, PushError> {
    let parts = finer::parts(base, series);
    let intervals: Vec<Interval> = finer::intervals(base, parts).collect();
    let at_s: Vec<f64> = intervals.iter().map(|interval| interval.at_s).collect();
    let seconds: Vec<f32> = intervals.iter().map(|i| i.seconds as f32).collect();
    let grid = Grid {
        started_unix_s: base.head.started_unix_s,
        at_s: &at_s,
        seconds: &seconds,
    };
    let columns: Vec<Vec<Option<ActorInterval>>> =
        series.iter().map(|one| one.intervals(&grid)).collect();
    let mut head = base.head.clone();
    head.actors = series.iter().map(|one| one.info.clone()).collect();
    head.scenario["imported_from"] = "iostat and fio".into();
    if parts > 1 {
        head.interval_ms /= f64::from(parts);
        head.spread_devices_over(parts);
    }
    let mut record = RunRecord::new(head)?;
    let warnings = series.iter().flat_map(|one| one.warnings.clone());
    record_parts::warn(&mut record, warnings.chain(warning))?;
    let others = |line: &Line| !matches!(line, Line::Interval(_) | Line::End(_));
    for line in base.lines().skip(1).filter(others) {
        record.push(&line)?;
    }
    for (i, interval) in intervals.into_iter().enumerate() {
        record.push(&Line::Interval(Interval {
            actors: columns.iter().map(|column| column[i]).collect(),
            ..interval
        }))?;
    }
    for line in base.lines().filter(|line| matches!(line, Line::End(_))) {
        record.push(&line)?;
    }
    Ok(record)
}

/// Moves fio's logs to where they agree best with the devices, and says how sure that is.
fn align(base: &RunRecord, series: &mut [FioSeries], dated: bool) -> Option<String> {
    let ran = series.iter().filter_map(FioSeries::ran);
    let zero_s = ran.map(|(begin, _)| begin).fold(f64::INFINITY, f64::min);
    let own = clocks(series);
    // From here on their clock is the record's, and they begin with it.
    let started = base.head.started_unix_s;
    let laid: Vec<Option<f64>> = (own.iter())
        .map(|clock| Some(clock.unwrap_or(0.0) - zero_s + started))
        .collect();
    put(series, &laid, 0.0);
    let interval_s = base.head.interval_ms / 1e3;
    let fio = operations(series, started, interval_s, base.intervals.len());
    let devices = even(base, interval_s, fio.len() + FARTHEST);
    let best = lags(devices.len(), fio.len())
        .map(|lag| (lag, agreement(&devices, |j| at(&fio, j as i64 - lag))))
        .fold((0, f64::NEG_INFINITY), |best, next| {
            if next.1 > best.1 { next } else { best }
        });
    if best.1 < AGREED {
        if dated {
            put(series, &own, 0.0);
            return None;
        }
        return Some(
            "What iostat and fio saw can't be brought together by its times, so they are taken to have \
             begun at once; record with iostat -t in UTC (S_TIME_FORMAT=ISO) and log_unix_epoch=1."
                .to_owned(),
        );
    }
    let coarse_s = best.0 as f64 * interval_s;
    let parts = (-PARTS + 1..PARTS).map(|part| f64::from(part) * interval_s / f64::from(PARTS));
    let (shift_s, _) = best_shift(base, series, &laid, parts.map(|part_s| coarse_s + part_s));
    for one in series.iter_mut() {
        one.warnings.retain(|warning| !warning.contains(UNTIMED));
    }
    put(series, &laid, shift_s);
    Some(format!(
        "iostat's clock isn't known, so fio's begin was laid {} iostat's, where its operations fit \
         to the devices'.",
        match shift_s {
            s if s < 0.0 => format!("{:.1} s before", -s),
            s => format!("{s:.1} s after"),
        }
    ))
}

/// The seconds by which iostat's clock is ahead of UTC: those by which both ran at once. Of several,
/// the one where fio's operations agree best with the devices'. `None` where none fits.
fn zone(base: &RunRecord, series: &mut [FioSeries]) -> Option<f64> {
    let ran = || series.iter().filter_map(FioSeries::ran);
    let begin_s = ran().map(|ran| ran.0).fold(f64::INFINITY, f64::min);
    let end_s = ran().map(|ran| ran.1).fold(f64::NEG_INFINITY, f64::max);
    let (started_s, length_s) = (base.head.started_unix_s, base.intervals.end_s());
    let least_s = AT_ONCE * (end_s - begin_s).min(length_s);
    let zones = ZONES.map(|zone| f64::from(zone) * ZONE_S);
    let fits = zones.filter(|zone_s| {
        let from_s = started_s - zone_s;
        end_s.min(from_s + length_s) - begin_s.max(from_s) >= least_s.max(1e-3)
    });
    let fits: Vec<f64> = fits.collect();
    if let [zone_s] = fits[..] {
        return Some(zone_s);
    }
    let own = clocks(series);
    let near = |zone_s: &f64| {
        let zone_s = *zone_s;
        seconds_off(&own).map(move |off_s| zone_s + off_s)
    };
    let each = fits.iter().map(|zone_s| {
        let (_, agrees) = best_shift(base, series, &own, near(zone_s));
        (*zone_s, agrees)
    });
    let best = each.max_by(|a, b| a.1.total_cmp(&b.1));
    put(series, &own, 0.0);
    best.filter(|best| best.1 >= AGREED).map(|best| best.0)
}

/// The seconds by which fio's logs may be off on iostat's clock, the least first. iostat's times leave
/// out the part of a second, and so does fio's JSON, which also has its end only.
fn seconds_off(clocks: &[Option<f64>]) -> impl Iterator<Item = f64> + use<> {
    let exact = clocks.iter().all(|clock| *clock == Some(0.0));
    let latest = if exact { 0 } else { PARTS };
    let earliest = if exact { PARTS - 1 } else { 2 * PARTS };
    let both = (0..=earliest).flat_map(|part| [-part, part]);
    let parts = both.filter(move |&part| part <= latest);
    parts.map(|part| f64::from(part) / f64::from(PARTS))
}

/// Moves fio's logs by the part of a second that iostat's times leave out, for `-t` prints whole
/// seconds; and says so. Without agreement nothing is moved.
fn within_the_second(base: &RunRecord, series: &mut [FioSeries]) -> Option<String> {
    let own = clocks(series);
    let (shift_s, agrees) = best_shift(base, series, &own, seconds_off(&own));
    let shift_s = if agrees < AGREED { 0.0 } else { shift_s };
    put(series, &own, shift_s);
    let way = if shift_s < 0.0 { "earlier" } else { "later" };
    (shift_s != 0.0).then(|| {
        format!(
            "iostat's times are whole seconds, so fio's logs were laid {:.1} s {way}, where their \
             operations fit to the devices'.",
            shift_s.abs()
        )
    })
}

/// When each log's clock began, in seconds since 1970.
fn clocks(series: &[FioSeries]) -> Vec<Option<f64>> {
    series.iter().map(|one| one.started_unix_s).collect()
}

/// Lays the logs so many seconds after these begins of their clocks.
fn put(series: &mut [FioSeries], clocks: &[Option<f64>], shift_s: f64) {
    for (one, clock) in series.iter_mut().zip(clocks) {
        one.started_unix_s = clock.map(|clock| clock + shift_s);
    }
}

/// The shift in seconds at which fio's operations agree best with the devices', and how well: the
/// first of those that agree alike.
fn best_shift(
    base: &RunRecord,
    series: &mut [FioSeries],
    clocks: &[Option<f64>],
    shifts_s: impl Iterator<Item = f64>,
) -> (f64, f64) {
    let grid = Grid::of(base.head.started_unix_s, &base.intervals);
    // Intervals after a pause would outweigh all others, and tell less.
    let longest_s = 1.5 * base.head.interval_ms / 1e3;
    let short = |i: &usize| f64::from(base.intervals.seconds[*i]) < longest_s;
    let short: Vec<usize> = (0..base.intervals.len()).filter(short).collect();
    let all = short.iter().map(|&i| done(base, i)).collect();
    // Another device may have been busier than fio's.
    let each = base.intervals.actors.iter();
    let each = each.map(|a| short.iter().map(|&i| f64::from(a.ops[i])).collect());
    let devices: Vec<Vec<f64>> = std::iter::once(all).chain(each).collect();
    let mut found = (0.0, f64::NEG_INFINITY);
    for shift_s in shifts_s {
        put(series, clocks, shift_s);
        let sums = summed(series, &grid);
        let agrees = devices.iter().map(|row| agreement(row, |j| sums[short[j]]));
        let agrees = agrees.fold(f64::NEG_INFINITY, f64::max);
        if agrees > found.1 + 1e-9 {
            found = (shift_s, agrees);
        }
    }
    found
}

/// The work of all devices that are actors in an interval.
fn done(base: &RunRecord, i: usize) -> f64 {
    let actors = base.intervals.actors.iter();
    actors.map(|actor| f64::from(actor.ops[i])).sum()
}

/// The same in intervals of one length from the record's begin on, at most so many: those
/// of a long log aren't.
fn even(base: &RunRecord, interval_s: f64, most: usize) -> Vec<f64> {
    let mut devices: Vec<f64> = Vec::new();
    for i in 0..base.intervals.len() {
        let reports = (f64::from(base.intervals.seconds[i]) / interval_s).round();
        let each = done(base, i) / reports.max(1.0);
        let at = (base.intervals.at_s[i] / interval_s).round() as usize;
        if at >= most {
            break;
        }
        let end = (at.max(devices.len()) + reports.max(1.0) as usize).min(most);
        devices.resize(at.max(devices.len()), 0.0);
        devices.resize(end, each);
    }
    devices
}

fn lags(devices: usize, fio: usize) -> impl Iterator<Item = i64> {
    let before = fio.min(FARTHEST) as i64;
    let after = devices.min(FARTHEST) as i64;
    // The nearest first, so that it is taken where several agree alike.
    (0..=before.max(after)).flat_map(move |lag| {
        let negative = (lag > 0 && lag <= before).then_some(-lag);
        let positive = (lag <= after).then_some(lag);
        [positive, negative].into_iter().flatten()
    })
}

fn at(all: &[f64], i: i64) -> f64 {
    let place = usize::try_from(i).ok();
    place.and_then(|i| all.get(i)).copied().unwrap_or(0.0)
}

/// fio's operations in intervals of its own, from its begin on.
fn operations(series: &[FioSeries], started: f64, interval_s: f64, most: usize) -> Vec<f64> {
    let ends = series.iter().filter_map(FioSeries::ran).map(|ran| ran.1);
    let end_s = ends.fold(f64::NEG_INFINITY, f64::max) - started;
    let n = (end_s / interval_s)
        .ceil()
        .clamp(0.0, (most + FARTHEST) as f64) as usize;
    let at_s: Vec<f64> = (0..n).map(|i| i as f64 * interval_s).collect();
    let seconds = vec![interval_s as f32; n];
    let grid = Grid {
        started_unix_s: started,
        at_s: &at_s,
        seconds: &seconds,
    };
    summed(series, &grid)
}

fn summed(series: &[FioSeries], grid: &Grid<'_>) -> Vec<f64> {
    let mut sums = vec![0.0; grid.at_s.len()];
    for one in series {
        for (sum, interval) in sums.iter_mut().zip(one.intervals(grid)) {
            *sum += interval.map_or(0.0, |interval| interval.ops as f64);
        }
    }
    sums
}

/// Pearson's correlation of two rows; 0 where one never changes.
fn agreement(a: &[f64], b: impl Fn(usize) -> f64) -> f64 {
    let n = a.len() as f64;
    let mean_a = a.iter().sum::<f64>() / n;
    let mean_b = (0..a.len()).map(&b).sum::<f64>() / n;
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (j, &value) in a.iter().enumerate() {
        let (x, y) = (value - mean_a, b(j) - mean_b);
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    if aa > 0.0 && bb > 0.0 {
        ab / (aa * bb).sqrt()
    } else {
        0.0
    }
}
