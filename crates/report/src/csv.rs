//! Tidy tables (one observation per row, one variable per column) for R,
//! pandas, DuckDB and the like.
//!
//! There are two, since actors and devices are observed in different variables:
//! [`actors`] has one row per interval and running actor, [`devices`] one per
//! interval and device. `at_s` and `seconds` join them. An unknown value is
//! an empty field, never 0. Quoting follows RFC 4180; lines end with LF. Names can neither break a
//! row, nor be a formula, nor act on a terminal.

use std::io::{self, Write};

use record::RunRecord;
use record::units::names::is_harmful;
use record::{Part, PhaseName};

use crate::words;

/// Whether a table is of one run or of several, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run<'a> {
    /// Of one.
    Only,
    /// Of several, the first: with a column `run` before the others that has this name.
    First(&'a str),
    /// Of several, another: its rows without the head, which the first has written.
    Next(&'a str),
}

impl Run<'_> {
    fn head(self, columns: &str, mut to: impl Write) -> io::Result<()> {
        match self {
            Run::Only => writeln!(to, "{columns}"),
            Run::First(_) => writeln!(to, "run,{columns}"),
            Run::Next(_) => Ok(()),
        }
    }

    fn column(self) -> String {
        match self {
            Run::Only => String::new(),
            Run::First(name) | Run::Next(name) => field(name) + ",",
        }
    }
}

/// Writes one row per interval and actor that was running in it:
/// `at_s,seconds,part,phase,actor,op,ops,errors,bytes,ops_per_s,p50_us,p99_us,max_us,oldest_us`.
///
/// Latencies are response times in microseconds; `oldest_us` is the age of the
/// oldest operation in flight at the interval's end.
///
/// # Errors
/// Those of the sink.
pub fn actors(record: &RunRecord, run: Run<'_>, mut to: impl Write) -> io::Result<()> {
    run.head(
        "at_s,seconds,part,phase,actor,op,ops,errors,bytes,ops_per_s,p50_us,p99_us,max_us,oldest_us",
        &mut to,
    )?;
    let run = run.column();
    let actors = record.head.actors.iter();
    let names = actors.map(|actor| [field(&actor.name), field(&actor.op)]);
    let names: Vec<[String; 2]> = names.collect();
    let mut when = When::new(record);
    for i in 0..record.intervals.len() {
        let start = when.columns(i);
        for (columns, [name, op]) in record.intervals.actors.iter().zip(&names) {
            if !columns.running[i] {
                continue;
            }
            let seconds = f64::from(record.intervals.seconds[i]);
            let rate = (seconds > 0.0).then(|| f64::from(columns.ops[i]) / seconds);
            writeln!(
                to,
                "{run}{start},{name},{op},{},{},{},{},{},{},{},{}",
                columns.ops[i],
                columns.errors[i],
                columns.bytes[i],
                rate.map_or(String::new(), |rate| format!("{rate:.3}")),
                latency(columns.p50_us[i]),
                latency(columns.p99_us[i]),
                latency(columns.max_us[i]),
                latency(columns.oldest_us[i]),
            )?;
        }
    }
    Ok(())
}

/// Writes one row per interval and device:
/// `at_s,seconds,part,phase,device,leaf,reads,read_bytes,read_ms,writes,write_bytes,write_ms,discards,discard_bytes,discard_ms,in_flight,freed_bytes`.
///
/// Sums over devices count an operation once for each level of the tree that
/// it passed; `leaf` tells the drives. `freed_bytes` is what the deletion freed
/// in the interval, the same in the row of each device.
///
/// # Errors
/// Those of the sink.
pub fn devices(record: &RunRecord, run: Run<'_>, mut to: impl Write) -> io::Result<()> {
    run.head(
        "at_s,seconds,part,phase,device,leaf,reads,read_bytes,read_ms,writes,write_bytes,write_ms,\
         discards,discard_bytes,discard_ms,in_flight,freed_bytes",
        &mut to,
    )?;
    let run = run.column();
    let mut when = When::new(record);
    for i in 0..record.intervals.len() {
        let start = when.columns(i);
        for (d, info) in record.intervals.devices.iter().zip(&record.head.devices) {
            writeln!(
                to,
                "{run}{start},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                field(&info.name),
                info.leaf,
                d.reads[i],
                d.read_bytes[i],
                d.read_ms[i],
                d.writes[i],
                d.write_bytes[i],
                d.write_ms[i],
                d.discards[i],
                d.discard_bytes[i],
                d.discard_ms[i],
                d.in_flight[i],
                record.intervals.freed_bytes[i],
            )?;
        }
    }
    Ok(())
}

/// The columns that both tables begin with.
struct When<'a> {
    record: &'a RunRecord,
    next_phase: usize,
    phase: Option<(Part, PhaseName)>,
}

impl When<'_> {
    fn new(record: &RunRecord) -> When<'_> {
        When {
            record,
            next_phase: 0,
            phase: None,
        }
    }

    /// Of this interval; to be asked in order. An interval belongs to the phase
    /// that its middle is in.
    fn columns(&mut self, i: usize) -> String {
        let intervals = &self.record.intervals;
        let (at_s, seconds) = (intervals.at_s[i], intervals.seconds[i]);
        while let Some(phase) = self.record.phases.get(self.next_phase)
            && phase.at_s <= at_s + f64::from(seconds) / 2.0
        {
            self.phase = Some((phase.part, phase.name));
            self.next_phase += 1;
        }
        let (part, phase) = match self.phase {
            Some((part, phase)) => (words::part(part), words::phase(phase)),
            None => ("", ""),
        };
        format!("{at_s:.6},{seconds:.6},{part},{phase}")
    }
}

fn latency(us: f32) -> String {
    match us.is_finite() {
        true => format!("{us:.3}"),
        false => String::new(),
    }
}

/// A field as RFC 4180 has it: quoted where it must be. Characters on which a terminal acts are
/// written as in Rust: `\n`, `\u{1b}`. A spreadsheet would compute a text that begins as a formula
/// does, so an apostrophe comes before it, unless it is a number.
fn field(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 2);
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err() {
        safe.push('\'');
    }
    for c in text.chars() {
        match c {
            c if is_harmful(c) => safe.extend(c.escape_default()),
            c => safe.push(c),
        }
    }
    match safe.contains([',', '"']) {
        true => format!("\"{}\"", safe.replace('"', "\"\"")),
        false => safe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{SHORT, T500};

    fn text(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut text = Vec::new();
        write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_row_for_each_interval_and_actor() {
        let record = T500.record();
        let csv = text(|to| actors(&record, Run::Only, to));
        let rows: Vec<&str> = csv.lines().collect();
        assert_eq!(rows.len(), 1 + 2 * record.intervals.len());
        let wide = rows[0].split(',').count();
        assert!(rows.iter().all(|row| row.split(',').count() == wide));
        assert!(rows[1].starts_with("40.000000,0.100000,main,settle,reader,read,"));
        let during = rows.iter().filter(|row| row.contains(",delete,canary,"));
        assert_eq!(during.count(), 371);
    }

    #[test]
    fn what_is_not_known_is_empty_and_who_does_not_run_has_no_row() {
        let mut record = SHORT.record();
        record.intervals.actors[0].p99_us[0] = f32::NAN;
        record.intervals.actors[0].running[1] = false;
        record.phases.clear();
        let csv = text(|to| actors(&record, Run::Only, to));
        assert_eq!(csv.lines().count(), record.intervals.len());
        let fields: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
        assert_eq!((fields[2], fields[3], fields[11]), ("", "", ""));
    }

    #[test]
    fn names_cannot_break_a_row() {
        let mut record = SHORT.record();
        record.head.actors[0].name = "a,\"b\"\nc".into();
        let csv = text(|to| actors(&record, Run::Only, to));
        assert!(csv.contains(",\"a,\"\"b\"\"\\nc\",read,"), "{csv}");
    }

    #[test]
    fn a_name_is_no_formula_and_does_not_act_on_a_terminal() {
        for (name, cell) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("+1+1", "'+1+1"),
            ("-2+3", "'-2+3"),
            ("@SUM(1,2)", "\"'@SUM(1,2)\""),
            ("\t=1", "'\\t=1"),
            ("\r=1", "'\\r=1"),
            ("-5", "-5"),
            ("+1.5e3", "+1.5e3"),
            ("a\u{1b}[2Jb\u{9b}1m", "a\\u{1b}[2Jb\\u{9b}1m"),
            ("a\u{202e}b\u{2066}", "a\\u{202e}b\\u{2066}"),
            ("größe", "größe"),
        ] {
            assert_eq!(field(name), cell);
        }
        let mut record = SHORT.record();
        record.head.devices[0].name = "=1\u{1b}[m".into();
        record.head.actors[0].op = "@x\u{202e}".into();
        for csv in [
            text(|to| actors(&record, Run::First("+a"), to)),
            text(|to| devices(&record, Run::First("+a"), to)),
        ] {
            let cells = csv.lines().flat_map(|row| row.split(','));
            let formula = |cell: &&str| cell.starts_with(['=', '+', '@']);
            assert_eq!(cells.filter(formula).count(), 0);
            assert!(!csv.contains(|c| c != '\n' && is_harmful(c)));
        }
    }

    #[test]
    fn the_devices_bytes_are_all_there() {
        let record = SHORT.record();
        let csv = text(|to| devices(&record, Run::Only, to));
        let of = |name: &str| -> u64 {
            csv.lines()
                .map(|row| row.split(',').collect::<Vec<_>>())
                .filter(|row| row[4] == name)
                .map(|row| row[13].parse::<u64>().unwrap())
                .sum()
        };
        assert_eq!(
            of("nvme0n1"),
            record.intervals.devices[1]
                .discard_bytes
                .iter()
                .sum::<u64>()
        );
        assert_eq!(csv.lines().count(), 1 + 2 * record.intervals.len());
    }
}
