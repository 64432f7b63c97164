//! `--status-interval`: fio prints its sums again and again, and their differences are a series.

use record::{ActorInfo, MAX_ACTORS};

use super::json::{DirectionOutput, JobOutput, Output};
use super::logs::Direction;
use super::series::FioSeries;
use super::windows::Window;

/// A series for each job and direction of documents that fio printed one after the other; none of
/// a single document.
pub fn progress(documents: &[Output]) -> Vec<FioSeries> {
    match documents {
        [_, _, ..] => of_documents(documents),
        _ => Vec::new(),
    }
}

/// The same, and of a single document one window for each. No more than a record can have, and one:
/// each name is compared with all others.
pub(super) fn of_documents(documents: &[Output]) -> Vec<FioSeries> {
    let mut all: Vec<FioSeries> = Vec::new();
    let Some(last) = documents.last() else {
        return all;
    };
    let jobs = last.jobs.iter().enumerate();
    let jobs = jobs.flat_map(|(place, job)| job.directions.iter().map(move |d| (place, job, d)));
    for (place, job, DirectionOutput { direction, .. }) in jobs.take(MAX_ACTORS + 1) {
        let of = |output: &Output| -> Option<DirectionOutput> {
            // A document lists its jobs as the others do, as long as all run.
            let same = |one: &&JobOutput| one.name == job.name;
            let found = output.jobs.get(place).filter(same);
            let found = found.or_else(|| output.jobs.iter().find(same))?;
            let mut directions = found.directions.iter();
            directions.find(|d| d.direction == *direction).cloned()
        };
        let sums: Vec<DirectionOutput> = documents.iter().filter_map(of).collect();
        let mut info = job
            .options
            .actor(&job.name, *direction, job.options.threads());
        let same = all
            .iter()
            .filter(|one| one.info.name.starts_with(&info.name));
        match same.count() {
            0 => {}
            n => info.name = format!("{}-{}", info.name, n + 1),
        }
        all.push(of_sums(info, *direction, &sums, last.at_unix_s));
    }
    all
}

fn of_sums(
    info: ActorInfo,
    direction: Direction,
    sums: &[DirectionOutput],
    printed_unix_s: Option<f64>,
) -> FioSeries {
    let mut one = FioSeries::new(info, direction);
    let (mut at_s, mut operations, mut bytes) = (0.0, 0, 0);
    for sum in sums {
        let end_s = sum.runtime_ms as f64 / 1e3;
        if end_s <= at_s {
            continue;
        }
        let window = |amount: u64| Window {
            begin_s: at_s,
            end_s,
            amount: amount as f64,
        };
        one.operations
            .push(window(sum.operations.saturating_sub(operations)));
        one.bytes.push(window(sum.bytes.saturating_sub(bytes)));
        (at_s, operations, bytes) = (end_s, sum.operations, sum.bytes);
    }
    one.ran_s = (at_s > 0.0).then_some((0.0, at_s));
    one.started_unix_s = printed_unix_s.map(|printed_s| (printed_s - at_s).max(0.0));
    if let [all] = sums {
        one.latencies.whole = Some(all.figures());
    }
    one.warnings.push(format!(
        "{}: its series are the differences of {} documents of fio's JSON, which have no latencies of \
         their own.",
        one.info.name,
        sums.len()
    ));
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_documents_are_a_series() {
        let document = |runtime: u32, reads: u32, writes: u32| {
            format!(
                "{{\"fio version\": \"fio-3.33\", \"timestamp_ms\": {}, \"jobs\": [{{\"jobname\": \"a\", \
                 \"job options\": {{\"rw\": \"randrw\"}}, \
                 \"read\": {{\"total_ios\": {reads}, \"io_bytes\": {}, \"runtime\": {runtime}}}, \
                 \"write\": {{\"total_ios\": {writes}, \"io_bytes\": {}, \"runtime\": {runtime}}}}}]}}\n",
                1_700_000_000_000_u64 + u64::from(runtime),
                reads * 4096,
                writes * 4096
            )
        };
        let text = document(1000, 500, 7)
            + "fio: a line\n"
            + &document(2000, 500, 9)
            + &document(3000, 900, 9)
            + "{\"fio version\": \"fio-3.33\", \"jobs\": [";
        let all = Output::parse_all(&text).unwrap();
        assert_eq!(all.len(), 3);
        let series = progress(&all);
        let amounts =
            |one: &FioSeries| -> Vec<f64> { one.operations.iter().map(|w| w.amount).collect() };
        assert_eq!(amounts(&series[0]), [500.0, 0.0, 400.0]);
        assert_eq!(amounts(&series[1]), [7.0, 2.0, 0.0]);
        assert_eq!(series[0].ran(), Some((1_700_000_000.0, 1_700_000_003.0)));
        assert!(progress(&all[..1]).is_empty());
    }
}
