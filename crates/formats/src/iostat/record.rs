//! An iostat log as a record that can be judged.

use record::{Interval, Line, MAX_ACTORS, RunRecord};

use super::actors::{self, Look};
use super::devices;
use super::grid;
use super::log::Log;
use super::own::Own;
use super::topology::{self, Made};
use super::{Notes, Options};
use crate::lines::Left;
use crate::{Unfit, parts};

/// Makes a record of a log. `notes` are what the script that ran iostat wrote down.
///
/// Devices that read (or write) all the time are the foreground, one actor each. If a device is
/// made of others, the whole device is the actor, and the discards are those of its members.
/// Guesses and gaps become warnings in the record.
///
/// # Errors
/// If `options` name a device that isn't in the log, or the log is larger than
/// a record can be.
pub fn record(log: &Log, notes: Option<&Notes>, options: &Options) -> Result<RunRecord, Unfit> {
    in_zone(log, notes, options, None)
}

/// The same. `zone_s`: the seconds by which the clock of times without a zone is ahead of UTC, where
/// that is known.
pub(crate) fn in_zone(
    log: &Log,
    notes: Option<&Notes>,
    options: &Options,
    zone_s: Option<f64>,
) -> Result<RunRecord, Unfit> {
    let mut warnings = about_the_text(log);
    let interval_s = grid::interval_s(log, notes, options, &mut warnings);
    let kept = grid::kept(log, options, interval_s, &mut warnings);
    let look = Look {
        log,
        rows: &kept,
        interval_s,
    };
    let made = match options.members.is_empty() {
        true => topology::infer(&look),
        false => named(log, options)?,
    };
    if options.members.is_empty() {
        warnings.extend(made.iter().map(|made| made.sentence(log)));
    }
    let steps = grid::steps(log, interval_s, &kept);
    let part = |i: usize| made.iter().any(|m| m.members.contains(&i));
    let tops: Vec<usize> = match options.devices.is_empty() {
        true => (0..log.columns.len()).filter(|&i| !part(i)).collect(),
        false => (options.devices.iter())
            .map(|name| place(log, name))
            .collect::<Result<_, _>>()?,
    };
    let named = !options.devices.is_empty();
    let mut actors = actors::actors(&look, &tops, named, notes);
    match actors::keep_busiest(&mut actors, &look, MAX_ACTORS) {
        0 => {}
        n => warnings.push(format!(
            "Reads or writes of {n} devices were left out beside {MAX_ACTORS} busier ones; name those \
             that matter (--set device=NAME)."
        )),
    }
    let mut devices = devices::devices(&look, &made);
    if actors.is_empty() {
        let text = "No device read or wrote for long enough to count as a foreground.";
        warnings.push(text.to_owned());
    } else {
        let own = Own::of(&look, &made, &actors);
        devices.retain(|d| own.has(d.0));
        warnings.extend(own.others());
        warnings.extend(own.unknown_copies(&made));
    }
    let first = steps.first().and_then(|step| log.rows[step.row].printed_s);
    let first = first.map(|printed_s| printed_s - interval_s);
    let started_unix_s = started(log, notes, first, zone_s, &mut warnings);
    let mut head = parts::head("iostat", started_unix_s, interval_s * 1e3);
    head.host.name.clone_from(&log.banner.host);
    head.host.kernel.clone_from(&log.banner.kernel);
    head.host.cpus = log.banner.cpus;
    if let Some(actor) = actors.first() {
        head.target.path.clone_from(&log.columns[actor.column].name);
    }
    if let Some(notes) = notes {
        head.scenario["removed_bytes"] = notes.removed_bytes.into();
        head.scenario["fio_job"] = notes.job.as_ref().map(|job| job.0.clone()).into();
        head.target = notes.target.clone().unwrap_or(head.target);
    }
    head.actors = actors.iter().map(|a| a.info.clone()).collect();
    head.devices = devices.iter().map(|d| d.1.clone()).collect();
    let mut record = RunRecord::new(head)?;
    parts::warn(&mut record, warnings)?;
    for step in &steps {
        let row = |i: usize| log.columns[i].at(step.row);
        let seconds = step.seconds;
        let actors = actors
            .iter()
            .map(|a| Some(a.interval(&row(a.column), seconds)));
        let devices = devices
            .iter()
            .map(|d| devices::interval(&row(d.0), seconds));
        record.push(&Line::Interval(Interval {
            at_s: step.at_s,
            seconds,
            actors: actors.collect(),
            devices: devices.collect(),
            ..Interval::default()
        }))?;
    }
    parts::finish(&mut record, options.deletion)?;
    Ok(record)
}

fn about_the_text(log: &Log) -> Vec<String> {
    let mut all = Vec::new();
    if log.headerless {
        let text = "The log has no header, so the number of its columns decided which they are.";
        all.push(text.to_owned());
    }
    if log.together {
        let text = "sadf counts reads, writes and discards in one figure; their bytes decided how many \
            were which. Record with iostat -x for counts and waits of each.";
        all.push(text.to_owned());
    }
    let foreign = "lines are none of iostat's and were left out; the first is line";
    let damaged = "rows are damaged, and their intervals were left out; the first is in line";
    for (left, what) in [(log.foreign, foreign), (log.damaged_lines, damaged)] {
        if left.lines > 0 {
            all.push(format!("{} {what} {}.", left.lines, left.first));
        }
    }
    let Left { lines, first } = log.beyond;
    if lines > 0 {
        all.push(format!(
            "There are more than 4096 devices; {lines} rows of others were left out, the first in line \
             {first}."
        ));
    }
    if log.columns.iter().any(|column| column.group) {
        let text = "Only totals of groups are in this log (iostat -H): what a device and those it is made \
            of did counts twice in them, and members are unknown.";
        all.push(text.to_owned());
    }
    if let Some(line) = log.cut_off {
        all.push(format!(
            "The report that begins in line {line} is cut off and was left out; all before it were kept."
        ));
    }
    all
}

/// The record's zero, in seconds since 1970; 0 where nothing tells.
fn started(
    log: &Log,
    notes: Option<&Notes>,
    first: Option<f64>,
    zone_s: Option<f64>,
    warnings: &mut Vec<String>,
) -> f64 {
    if let (Some(zoned), Some(began_s)) = (log.dated, first) {
        if !zoned {
            warnings.push(match zone_s {
                Some(zone_s) => format!(
                    "iostat's times don't tell their zone; fio's clock shows that it is {}.",
                    zone_name(zone_s)
                ),
                None => "iostat's times are local times without their zone; UTC was taken (record \
                         with S_TIME_FORMAT=ISO)."
                    .to_owned(),
            });
        }
        return (began_s - zone_s.unwrap_or(0.0)).max(0.0);
    }
    // Such scripts start all of their programs together.
    let day_s = log.banner.day.map(|day| day as f64 * 86_400.0);
    let removed_s = notes.and_then(|notes| notes.removed_unix_s);
    removed_s.or(day_s).unwrap_or(0.0)
}

/// Such as `UTC+5:30`.
fn zone_name(zone_s: f64) -> String {
    let sign = if zone_s < 0.0 { '-' } else { '+' };
    let minutes = (zone_s.abs() / 60.0).round() as u32;
    match (minutes / 60, minutes % 60) {
        (0, 0) => "UTC".to_owned(),
        (hours, 0) => format!("UTC{sign}{hours}"),
        (hours, minutes) => format!("UTC{sign}{hours}:{minutes:02}"),
    }
}

/// Which device is made of which, as the user says.
fn named(log: &Log, options: &Options) -> Result<Vec<Made>, Unfit> {
    let one = |(whole, members): &(String, Vec<String>)| {
        let members = members.iter().map(|name| place(log, name));
        Ok(Made {
            whole: place(log, whole)?,
            members: members.collect::<Result<_, _>>()?,
        })
    };
    options.members.iter().map(one).collect()
}

/// The column of a device that was named.
fn place(log: &Log, name: &str) -> Result<usize, Unfit> {
    let found = log.columns.iter().position(|c| c.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = log.columns.iter().map(|c| c.name.as_str()).collect();
        let known = known.join(", ");
        Unfit::Broken(format!("no device {name} in this log; it has {known}"))
    })
}
