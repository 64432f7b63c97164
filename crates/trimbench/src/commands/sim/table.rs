//! The figures of runs, as tables.

use std::collections::BTreeMap;

use ::sim::{Figures, Outcome, PolicyKind, Setup};
use record::units::{bytes, count, percent, seconds};

use super::guess;

fn time(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), seconds)
}

fn ms(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |ms| record::units::latency_us(ms * 1e3))
}

fn rate(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |per_s| format!("{:.1}", per_s / 1e6))
}

fn ratio(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// The setup in a line.
fn title(setup: &Setup) -> String {
    let (workload, size) = (setup.workload.name(), bytes(setup.size));
    let (drives, volume) = (&setup.drives.name, bytes(setup.volume_bytes()));
    let (readers, seed) = (setup.readers, setup.seed);
    format!(
        "{workload} of {size} on {drives}, volume of {volume}, {readers} reads in flight, seed {seed}: \
         virtual time, no drive was touched"
    )
}

/// One run's figures, a line each.
pub(super) fn single(setup: &Setup, outcome: &Outcome) -> String {
    let f = &outcome.figures;
    let mut text = format!("{} ({})\n", title(setup), f.policy);
    let mut line = |name: &str, value: String| text += &format!("  {name:<37}{value}\n");
    let (removed, took) = (bytes(f.removed_bytes), time(f.deletion_s));
    line("removed", format!("{removed} in {took}"));
    let drained = match f.gave_up {
        true => format!("not within {}", seconds(setup.limit.as_secs_f64())),
        false => time(f.drained_s),
    };
    line("all discarded after", drained);
    let latencies = [f.p99_ms, f.p999_ms, f.max_ms].map(ms).join(", ");
    line("p99, p99.9, longest until then", latencies);
    line("freed, MB/s", rate(f.freed_bytes_per_s));
    let worst = f.worst_second.map(percent);
    let worst = worst.map_or(String::new(), |share| {
        format!(", in the worst second {share}")
    });
    line("foreground lost", time(f.lost_s) + &worst);
    let sent = [f.commands, f.ranges].map(count).join(", ");
    line("commands, ranges", sent);
    line("discarded", bytes(f.discarded_bytes));
    line("cancelled by reuse", bytes(f.cancelled_bytes));
    line("never discarded", bytes(f.untold_bytes));
    // What ends is followed by a time without any.
    if setup.workload.is_continuous() {
        let (debt, age) = (bytes(f.debt_mean_bytes), time(f.debt_age_s));
        let name = "free and kept as data, on average";
        line(name, format!("{debt}, for {age}"));
    }
    let name = "free but held for discards, at most";
    line(name, bytes(f.held_max_bytes));
    if f.allocations_held > 0 {
        let (held, waited) = (f.allocations_held, seconds(f.allocations_waited_s));
        line("allocations that waited", format!("{held} for {waited}"));
    }
    if let Some(amplification) = f.write_amplification {
        line("write amplification", format!("{amplification:.2}"));
        let most = f.most_erasures.unwrap_or(0);
        let mean = f.mean_erasures.unwrap_or(0.0);
        let wear = format!("{mean:.1} on average, {most} at most");
        line("erasures of a block", wear);
    }
    line("free space that the drive knows of", known(outcome));
    text + &trouble(f, setup.workload.is_continuous())
}

/// The drive's knowledge at the start, halfway and at the end.
fn known(outcome: &Outcome) -> String {
    let rows = &outcome.free;
    let at = |part: f64| rows.get(((rows.len().max(1) - 1) as f64 * part) as usize);
    let of = |part| at(part).map_or("–".to_owned(), |row| bytes(row.known_bytes));
    format!("{}, halfway {}, at the end {}", of(0.0), of(0.5), of(1.0))
}

/// `goes_on`: the workload has no end of its own.
fn trouble(f: &Figures, goes_on: bool) -> String {
    let (mut text, policy) = (String::new(), &f.policy);
    let is_f2fs = policy == PolicyKind::F2fs.name();
    if f.commands == 0 && !f.gave_up && policy != PolicyKind::None.name() {
        let length = match goes_on {
            true => ": give a larger `length`, as `--set length=6m`",
            false => "",
        };
        text +=
            &format!("! {policy}: it sent no discards in the time that was simulated{length}\n");
    }
    if policy == PolicyKind::Fstrim.name() && f.discarded_bytes > f.removed_bytes {
        text += &format!(
            "! {policy}: it trims what was free before, too, as the first one after a mount does: {} for \
             {} deleted\n",
            bytes(f.discarded_bytes),
            bytes(f.removed_bytes)
        );
    }
    if f.is_full {
        text += &format!("! {policy}: the volume ran full, and the run ended there\n");
    }
    if f.gave_up && f.commands == 0 && is_f2fs {
        text += &format!(
            "! {policy}: it sent no discards, because the drive was never idle; that takes \
             `readers=0`, or a `fill` above 80%\n"
        );
    } else if f.gave_up {
        text += &format!(
            "! {policy}: discards were still outstanding at `limit`, so their time and rate are \
             unknown: give a larger `limit`\n"
        );
    }
    text
}

/// All policies beside each other.
pub(super) fn all(setups: &[Setup], figures: &[Figures], front: &[bool]) -> String {
    let with_flash = figures.iter().any(|f| f.write_amplification.is_some());
    let names = "|policy|rm|discarded|MB/s|lost|waited|worst s|longest|commands|ranges|untold|held";
    let mut rows = vec![names.split('|').map(str::to_owned).collect::<Vec<_>>()];
    let goes_on = setups.iter().any(|setup| setup.workload.is_continuous());
    if goes_on {
        rows[0].extend(["debt", "age"].map(str::to_owned));
    }
    if with_flash {
        rows[0].extend(["WA".to_owned(), "wear".to_owned()]);
    }
    for (f, &front) in figures.iter().zip(front) {
        let mut row = vec![
            if front { "*" } else { "" }.to_owned(),
            f.policy.clone(),
            time(f.deletion_s),
            time(f.drained_s),
            rate(f.freed_bytes_per_s),
            time(f.lost_s),
            time(f.waited_s),
            f.worst_second.map_or("–".to_owned(), percent),
            ms(f.max_ms),
            count(f.commands),
            count(f.ranges),
            bytes(f.untold_bytes),
            bytes(f.held_max_bytes),
        ];
        if goes_on {
            let debt = bytes(f.debt_mean_bytes);
            row.extend([debt, time(f.debt_age_s)]);
        }
        if with_flash {
            row.push(ratio(f.write_amplification));
            row.push(f.most_erasures.map_or("–".to_owned(), |n| n.to_string()));
        }
        rows.push(row);
    }
    let mut text = setups.first().map_or(String::new(), |s| title(s) + "\n");
    let mut guesses: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (setup, f) in setups.iter().zip(figures) {
        if let Some((why, _)) = guess(setup, f) {
            guesses.entry(why).or_default().push(&f.policy);
        }
    }
    for (why, policies) in guesses {
        text += &format!("A guess for {}: {why}.\n", policies.join(", "));
    }
    text += "\n";
    text += &aligned(&rows);
    text += "\n* No other policy is at least as good in time, waiting, the worst second, what\n  \
             the drive never learns and what gets done, and better in one (Pareto front).\n";
    text += &figures
        .iter()
        .map(|f| trouble(f, goes_on))
        .collect::<String>();
    text
}

/// Columns that line up: the second to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let longest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(longest).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (cell, &width))| match at {
            0 | 1 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}
