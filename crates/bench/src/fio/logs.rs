//! The series that fio's logs add to a record.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use formats::fio::{About, FioSeries, Grid, Input, Output, series};
use record::RunRecord;
use record::units::names;
use record::{
    Grain, HistogramLine, Latency, Line, Phase, SeriesLine, encode_histogram, latency_histogram,
};

use super::{Job, OUTPUT};

use crate::warning::Warning;

/// Series and warnings to be added to the record.
#[derive(Debug, Default)]
pub(crate) struct Logged {
    /// Lines, in order.
    pub(crate) lines: Vec<Line>,
    /// Warnings about missing or misleading figures.
    pub(crate) warnings: Vec<Warning>,
}

/// Reads what fio has left in its folder. `first` is the place of its first
/// series in the record's head, `end_s` when the record's last phase ended.
pub(crate) fn read(
    folder: &Path,
    job: &Job,
    record: &RunRecord,
    first: usize,
    end_s: f64,
) -> Logged {
    let mut logged = Logged::default();
    let output = fs::read_to_string(folder.join(OUTPUT)).ok();
    let output = output.and_then(|text| Output::parse(&text).ok());
    if output.is_none() {
        logged.warnings.push(Warning::FioLeftNothing);
    }
    let inputs = match logs(folder) {
        Ok(inputs) => inputs,
        Err(error) => {
            let warning = Warning::FioLogsUnread(error.to_string());
            logged.warnings.push(warning);
            return logged;
        }
    };
    let about = About {
        jobs: Some(&job.file),
        output: output.as_ref(),
    };
    let all = match series(inputs, &about) {
        Ok(all) => all,
        Err(error) => {
            let warning = Warning::FioLogsRefused(error.to_string());
            logged.warnings.push(warning);
            return logged;
        }
    };
    let grid = Grid::of(record.head.started_unix_s, &record.intervals);
    for (actor, one) in (first..).zip(all) {
        let mut column = one.intervals(&grid);
        // fio was ended within its last window, which it leaves out: that isn't a dip.
        if let Some(last) = column.iter_mut().rfind(|interval| interval.is_some()) {
            *last = None;
        }
        logged
            .lines
            .extend(SeriesLine::split(actor, &column).map(Line::Series));
        logged
            .lines
            .extend(histograms(&one, &grid, actor, &record.phases, end_s));
        for odd in one.warnings {
            let warning = Warning::FioLogsOdd(odd);
            if !logged.warnings.contains(&warning) {
                logged.warnings.push(warning);
            }
        }
    }
    logged
}

fn logs(folder: &Path) -> std::io::Result<Vec<Input<BufReader<File>>>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "log") {
            paths.push(path);
        }
    }
    paths.sort();
    let open = |path: &std::path::PathBuf| {
        Ok(Input {
            name: names::shown(path),
            text: BufReader::new(File::open(path)?),
        })
    };
    paths.iter().map(open).collect()
}

/// Latencies of each phase.
fn histograms(
    series: &FioSeries,
    grid: &Grid<'_>,
    actor: usize,
    phases: &[Phase],
    end_s: f64,
) -> Vec<Line> {
    let ends = phases.iter().skip(1).map(|next| next.at_s).chain([end_s]);
    let line = |(phase, end_s): (&Phase, f64)| {
        let found = series.histogram(grid, phase.at_s, end_s)?;
        let mut histogram = latency_histogram();
        histogram.add(&found).ok()?;
        Some(Line::Histogram(HistogramLine {
            actor,
            latency: Latency::Response,
            over: Grain::Phase(phase.name),
            part: phase.part,
            v2: encode_histogram(&histogram),
        }))
    };
    phases.iter().zip(ends).filter_map(line).collect()
}
