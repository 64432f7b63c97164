//! Percentile curves: latency over the share of operations that were faster.

use hdrhistogram::Histogram;
use record::RunRecord;
use record::{Latency, Part, PhaseName};

/// Points for each factor of ten in the share of slower operations.
const PER_DECADE: u32 = 8;

/// Decades: to one operation in ten million.
const DECADES: u32 = 7;

/// An actor's curves; all share `x`.
#[derive(Debug, Clone)]
pub(crate) struct Curves {
    pub(crate) actor: usize,
    pub(crate) name: String,
    /// −log10 of the share of slower operations: 1 is p90, 3 is p99.9.
    pub(crate) x: Vec<f64>,
    pub(crate) curves: Vec<Curve>,
}

/// The latencies of one phase.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    /// `before`, `while deleting` or `after`.
    pub(crate) name: &'static str,
    /// Its place among colours and dashes, whether or not those before it are there.
    pub(crate) style: usize,
    /// Microseconds, one per `x`; not a number beyond the last operation.
    pub(crate) us: Vec<f64>,
}

/// The curves of all actors of the main part that have some, of response times.
pub(crate) fn curves(record: &RunRecord) -> Vec<Curves> {
    let phases = [
        (PhaseName::Baseline, "before"),
        (PhaseName::Delete, "while deleting"),
        (PhaseName::Recovery, "after"),
    ];
    let mut all = Vec::new();
    for (actor, info) in record.head.actors.iter().enumerate() {
        let mut curves = Vec::new();
        for (style, (phase, name)) in phases.into_iter().enumerate() {
            let Some(histogram) = response(record, actor, phase) else {
                continue;
            };
            curves.push(Curve {
                name,
                style,
                us: points(histogram),
            });
        }
        if !curves.is_empty() {
            all.push(Curves {
                actor,
                name: info.name.clone(),
                x: shares(),
                curves,
            });
        }
    }
    all
}

/// An actor's response times in a phase of the main part, if it has some.
fn response(record: &RunRecord, actor: usize, phase: PhaseName) -> Option<&Histogram<u64>> {
    let found = record.histograms.iter().find(|line| {
        (line.actor, line.latency, line.phase, line.part)
            == (actor, Latency::Response, phase, Part::Main)
    });
    found
        .map(|line| &line.histogram)
        .filter(|histogram| !histogram.is_empty())
}

/// The shares at which all curves have a point, as [`Curves::x`] has them.
fn shares() -> Vec<f64> {
    (0..=PER_DECADE * DECADES)
        .map(|i| f64::from(i) / f64::from(PER_DECADE))
        .collect()
}

/// A curve's points, one for each of [`shares`].
fn points(histogram: &Histogram<u64>) -> Vec<f64> {
    let operations = histogram.len() as f64;
    let us = |nines: f64| {
        let slower = 10_f64.powf(-nines);
        // One point past the last operation: there the curve is at its maximum.
        if slower * operations < 10_f64.powf(-1.0 / f64::from(PER_DECADE)) {
            return f64::NAN;
        }
        histogram.value_at_quantile(1.0 - slower) as f64 / 1e3
    };
    shares().into_iter().map(us).collect()
}

#[cfg(test)]
mod tests {
    use record::{PhaseHistogram, latency_histogram};

    use super::*;
    use crate::common::SHORT;

    #[test]
    fn a_curve_goes_through_the_percentiles_and_ends_at_the_maximum() {
        let mut record = SHORT.record();
        let mut histogram = latency_histogram();
        for i in 1..=10_000_u64 {
            histogram.record(i * 1000).unwrap();
        }
        record.histograms.push(PhaseHistogram {
            actor: 0,
            latency: Latency::Response,
            phase: PhaseName::Delete,
            part: Part::Main,
            histogram,
        });
        let curves = curves(&record);
        let curve = &curves[0].curves[0];
        assert_eq!(curve.name, "while deleting");
        let at = |nines: f64| {
            let i = curves[0].x.iter().position(|&x| x == nines).unwrap();
            curve.us[i]
        };
        assert!((at(1.0) / 9000.0 - 1.0).abs() < 2e-3, "{}", at(1.0));
        assert!((at(3.0) / 9990.0 - 1.0).abs() < 2e-3, "{}", at(3.0));
        assert!(at(5.0).is_nan());
    }
}
