//! The tables of the jobs of 2008 and 2009: engines, and writeback of mapped files.

use report::sheet::Table;

use super::{NONE, shown, table, told};
use crate::suite::measure::{EngineRun, Measure, Unit};
use crate::suite::results::{Results, Row};
use crate::suite::step::Step;

/// Rates and latencies of every engine: medians of the rounds.
pub(super) fn engines(results: &Results) -> Table {
    let rows = results.rows.iter().flat_map(|row| {
        let first = row.engines.first().map(|first| &first.runs);
        let runs = first.into_iter().flatten().enumerate();
        runs.map(move |(i, run)| engine(row, i, run))
    });
    let note = "4 KiB, 8 in flight; polled: iopoll polls the drive, sqpoll the submissions";
    let columns = [
        "file system/mkfs/mount: engine",
        "reads",
        "rate",
        "p50",
        "p99",
        "processor time",
        "note",
    ];
    table("Reads by engine", note, columns, rows)
}

fn engine(row: &Row, i: usize, first: &EngineRun) -> Vec<String> {
    let runs = || row.engines.iter().filter_map(|round| round.runs.get(i));
    let median = |of: fn(&EngineRun) -> Option<f64>| record::units::median(runs().filter_map(of));
    let us =
        |value: Option<f64>| value.map_or(NONE.to_owned(), |us| record::units::seconds(us / 1e6));
    let batch = match first.batch {
        1 => String::new(),
        batch => format!(", batches of {batch}"),
    };
    let why = runs().find_map(|run| run.why.clone());
    vec![
        format!("{}: {}{batch}", row.cell, first.engine),
        first.cache.words().to_owned(),
        median(|run| run.reads_per_s).map_or(NONE.to_owned(), |rate| shown(Unit::PerSecond, rate)),
        us(median(|run| run.p50_us)),
        us(median(|run| run.p99_us)),
        us(median(|run| run.cpu_us)),
        why.map_or(NONE.to_owned(), |why| format!("not measured: {why}")),
    ]
}

/// The cost that trimbench adds to each I/O on this machine.
pub(super) fn costs(results: &Results) -> Option<String> {
    let all = || {
        let rounds = results.rows.iter().flat_map(|row| &row.engines);
        rounds.map(|round| &round.costs)
    };
    let source = &all().next()?.source;
    let ns = |ns: Option<f64>| record::units::seconds(ns.unwrap_or_default() / 1e9);
    Some(format!(
        "On this machine a reading of trimbench's clock ({source}) takes {}, one of the kernel's {}, \
         and recording an I/O {}.",
        ns(record::units::median(all().map(|costs| costs.clock_ns))),
        ns(record::units::median(
            all().map(|costs| costs.kernel_clock_ns)
        )),
        ns(record::units::median(all().map(|costs| costs.record_ns))),
    ))
}

/// Throughput, utilisation and lumpiness of writeback, alone and beside a deletion.
pub(super) fn writeback(results: &Results) -> Table {
    let sides = [
        ("alone", Measure::ALONE),
        ("beside a deletion", Measure::BESIDE),
    ];
    let jobs = [
        (Step::MmapWriteback, "the kernel"),
        (Step::MsyncWriteback, "msync"),
    ];
    let jobs = jobs.map(|job| sides.map(|side| (job, side)));
    let rows = results.rows.iter().flat_map(|row| {
        let jobs = jobs.as_flattened().iter();
        jobs.map(move |((step, by), (when, measures))| {
            let name = format!("{}: by {by}, {when}", row.cell);
            let figures = measures.iter().map(|measure| told(row, *step, *measure));
            std::iter::once(name).chain(figures).collect()
        })
    });
    let note = "4 KiB at random by 4 threads; lumpiness: standard deviation over mean of the drive's \
                writes in each 100 ms";
    let columns = [
        "file system/mkfs/mount: written back",
        "dirtied",
        "written",
        "utilisation",
        "lumpiness",
    ];
    table("Writeback of a mapped file", note, columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::log::{Figures, Outcome, Side, Writeback};
    use crate::suite::measure::{Cache, Costs, Engines};
    use crate::suite::tests as made;

    fn results(figures: &[(Step, Figures)]) -> Results {
        let mut log = made::log(&["ext4/nodiscard/discard"], 3, 1.0);
        for round in 1..=3 {
            for (step, figures) in figures {
                let key = ("ext4/nodiscard/discard".to_owned(), round, *step);
                log.outcomes.insert(key, Outcome::Done(figures.clone()));
            }
        }
        Results::of(&log)
    }

    #[test]
    fn what_a_device_cannot_do_is_a_row_that_says_why() {
        let run = |engine: &str, rate: Option<f64>| EngineRun {
            engine: engine.to_owned(),
            cache: Cache::Direct,
            batch: 8,
            reads_per_s: rate,
            p50_us: rate.map(|_| 100.0),
            p99_us: rate.map(|_| 200.0),
            cpu_us: rate.map(|_| 3.0),
            why: rate.is_none().then(|| "no queues for polling".to_owned()),
        };
        let engines = Engines {
            runs: vec![run("io_uring", Some(1e4)), run("io_uring-iopoll", None)],
            costs: Costs {
                source: "tsc".to_owned(),
                clock_ns: 10.0,
                kernel_clock_ns: 30.0,
                record_ns: 4.0,
            },
        };
        let figures = Figures {
            engines: Some(Box::new(engines)),
            ..Figures::default()
        };
        let results = results(&[(Step::Engines, figures)]);
        let table = super::engines(&results);
        assert_eq!(
            table.rows[0],
            [
                "ext4/nodiscard/discard: io_uring, batches of 8",
                "direct",
                "10,000/s",
                "100 µs",
                "200 µs",
                "3.0 µs",
                NONE
            ]
        );
        assert_eq!(table.rows[1][2], NONE);
        assert_eq!(table.rows[1][6], "not measured: no queues for polling");
        let costs = costs(&results).unwrap();
        assert!(
            costs.contains("(tsc) takes 10") && costs.contains("4 ns"),
            "{costs}"
        );
    }

    #[test]
    fn writeback_has_a_row_alone_and_one_beside_a_deletion() {
        let side = |factor: f64| Side {
            dirtied_bytes_per_s: factor * 2e8,
            written_bytes_per_s: factor * 1e8,
            utilisation: 0.5 * factor,
            lumpiness: Some(1.0 / factor),
        };
        let job = Writeback {
            alone: side(1.0),
            beside: side(0.5),
        };
        let figures = Figures {
            writeback: Some(Box::new(job)),
            ..Figures::default()
        };
        let table = writeback(&results(&[(Step::MsyncWriteback, figures)]));
        let of = |words: &str| {
            table
                .rows
                .iter()
                .find(|row| row[0].ends_with(words))
                .unwrap()
        };
        let alone = of("by msync, alone");
        assert_eq!(alone[1..], ["200 MB/s", "100 MB/s", "50 %", "1.00"]);
        assert_eq!(of("by msync, beside a deletion")[3..], ["25 %", "2.00"]);
    }
}
