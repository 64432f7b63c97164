//! `trimbench lab stats`: what a drive has done.

use ::lab::{Info, Kind, KindStats, Lab, Stats};
use record::units::{bytes, count, latency_us, names, percent};
use serde_json::json;

use super::near::near;
use super::show;
use crate::commands::lab::args::StatsArgs;
use crate::console::Stream;
use crate::exit::Error;

/// Answers this late, or later than a read takes, aren't those of the drive.
const LATE_US: f64 = 100.0;
/// Fewer commands show nothing about the machine.
const ENOUGH: u64 = 1000;

/// Carries out the command.
pub(super) fn stats(lab: &Lab, args: &StatsArgs) -> Result<(), Error> {
    let name = &args.name;
    let (info, stats) = (lab.info(name)?, lab.stats(name)?);
    Stream::Out.print(&match args.json {
        true => show::pretty(&json!({ "drive": show::drive(&info), "stats": stats })),
        false => page(&info, &stats),
    });
    if args.reset {
        lab.reset_stats(name)?;
    }
    Ok(())
}

fn page(info: &Info, stats: &Stats) -> String {
    let mut text = show::line(info) + "\n\n";
    let names = "commands|failed|bytes|mean|p50|p99|p99.9|max";
    text += &cells("", names.split('|').map(str::to_owned));
    text += "\n";
    for kind in &stats.kinds {
        // Hardly anybody asks for zeros whose space is kept.
        if kind.kind != Kind::Zero || kind.commands > 0 {
            text += &row(kind);
            text += "\n";
        }
    }
    text += "\n";
    text += &facts(info, stats);
    text += &notes(info, stats);
    text
}

fn row(kind: &KindStats) -> String {
    let latency = |us: f64| match kind.commands {
        0 => "–".to_owned(),
        _ => latency_us(us),
    };
    let counts = [count(kind.commands), count(kind.failed), bytes(kind.bytes)];
    let percentiles = [kind.p50_us, kind.p99_us, kind.p999_us].map(latency);
    let times = [
        vec![latency(kind.mean_us)],
        percentiles.into(),
        vec![latency(kind.max_us)],
    ];
    cells(kind.kind.name(), counts.into_iter().chain(times.concat()))
}

fn cells(name: &str, cells: impl Iterator<Item = String>) -> String {
    let widths = [11, 8, 12].into_iter().chain(std::iter::repeat(10));
    let cells = cells.zip(widths);
    let cells: String = cells
        .map(|(cell, width)| format!("{cell:>width$}"))
        .collect();
    format!("{name:<9}{cells}")
}

fn facts(info: &Info, stats: &Stats) -> String {
    let mut place = match &info.spec.store {
        Some(file) => format!("in {}", names::shown(file)),
        None => "of memory".to_owned(),
    };
    if let Some(most) = info.spec.store_limit_bytes {
        place += &format!(", {} at most", bytes(most));
    }
    let share = percent(stats.mapped_bytes as f64 / info.spec.size_bytes as f64);
    let (mapped, all) = (bytes(stats.mapped_bytes), bytes(info.spec.size_bytes));
    let (stored, freed) = (bytes(stats.stored_bytes), bytes(stats.unmapped_bytes));
    let (rounded, short) = (
        bytes(stats.lost_to_rounding_bytes),
        bytes(stats.ignored_bytes),
    );
    let [median, p99, worst] = stats.late_us.map(latency_us);
    let on_the_way = info.trip.as_ref().map(|trip| latency_us(trip.added_us));
    let on_the_way = on_the_way.map_or(String::new(), |added| {
        format!(
            "latencies  the drive's part: it answers {added} sooner, for the way to it adds as much\n"
        )
    });
    let mut text = on_the_way
        + &format!(
            "mapped     {mapped} of {all} ({share}); the data take {stored} {place}\n\
         discards   freed {freed}; lost {rounded} by rounding, {short} too short to be taken\n\
         in flight  {}\n\
         answers    {median} late in the median, p99 {p99}, worst {worst}\n",
            stats.in_flight,
        );
    let mut line = |label: &str, line: String| text += &format!("{label:<11}{line}\n");
    if let Some([written, moved]) = stats.flash_pages {
        let amplified = (written + moved) as f64 / written.max(1) as f64;
        line(
            "flash",
            format!(
                "{} pages written and {} moved for them: write amplification {amplified:.1}",
                count(written),
                count(moved)
            ),
        );
    }
    for (number, near) in near(info).into_iter().enumerate() {
        line(if number == 0 { "near" } else { "" }, near);
    }
    if stats.no_room > 0 {
        let why = "writes failed, for the data took all they may";
        line("no room", format!("{} {why}", count(stats.no_room)));
    }
    for fault in show::faults(stats) {
        line("fault", fault);
    }
    text
}

/// Returns the notes that a reader needs to understand the figures.
fn notes(info: &Info, stats: &Stats) -> String {
    let mut text = String::new();
    let read = stats.kinds.iter().find(|kind| kind.kind == Kind::Read);
    let [_, late, _] = stats.late_us;
    if read.is_some_and(|r| r.commands >= ENOUGH && late > r.p50_us.max(LATE_US)) {
        text += "\nThis machine is too slow, or too busy, for this drive: `lab up --slower N` \
                 stretches its time.\n";
    }
    let discard = stats.kinds.iter().find(|kind| kind.kind == Kind::Discard);
    let wait = match discard.filter(|kind| kind.commands > 0) {
        None => "as long as that takes".to_owned(),
        Some(kind) => {
            let [median, worst] = [kind.p50_us, kind.max_us].map(latency_us);
            format!("{median} in the median, {worst} at worst")
        }
    };
    text += &format!(
        "\nReads from outside the foreground's cgroup wait for each whole discard\n({wait}), whatever the \
         drive says: the loop driver holds\nthem. `trimbench lab exec {} -- COMMAND` runs inside, \
         and so does `trimbench run`\nby itself. Writes wait for discards in any case.\n",
        info.spec.name
    );
    text
}
