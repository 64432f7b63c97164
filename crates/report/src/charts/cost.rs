//! The cost of discards by size: the points, and the line S = a + b·L of the verdict.

use judge::Verdict;
use record::RunRecord;

use super::far_below_the_most;
use crate::series::Discards;
use crate::thin;

/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

/// Mean size and mean wait of the discards of each interval, and the fit.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    /// Mean size of an interval's discards in MiB, rising.
    pub(crate) mib: Vec<f64>,
    /// Their mean wait, in microseconds: service and queueing, so above the line.
    pub(crate) us: Vec<f64>,
    /// The verdict's a, in microseconds, and b, in microseconds per MiB.
    pub(crate) line: Option<[f64; 2]>,
    /// The verdict's service time: its size in MiB, and microseconds.
    pub(crate) service: Option<[f64; 2]>,
    /// Where the axes end, in MiB and microseconds, if a few points lie far outside.
    pub(crate) top: [Option<f64>; 2],
    /// The points beyond these ends: how many, their largest size in MiB and their
    /// longest wait in microseconds.
    pub(crate) beyond: Option<(usize, f64, f64)>,
}

impl Cost {
    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.mib.is_empty() && self.line.is_none() && self.service.is_none()
    }

    /// Names what the axes leave out; `None` where they show all.
    pub(crate) fn beyond_in_words(&self) -> Option<String> {
        let (count, mib, us) = self.beyond?;
        let points = if count == 1 { "point is" } else { "points are" };
        Some(format!(
            "{count} {points} outside of the picture, up to {} and {}",
            record::units::bytes((mib * MIB) as u64),
            record::units::latency_us(us)
        ))
    }
}

/// The points of all intervals with discards that took measurable time.
pub(crate) fn cost(record: &RunRecord, verdict: &Verdict) -> Cost {
    let devices = Discards::of(record).devices;
    let mut points = Vec::new();
    for i in 0..record.intervals.len() {
        let (mut count, mut bytes, mut ms) = (0_u64, 0_u64, 0_u64);
        for device in devices.iter().map(|&d| &record.intervals.devices[d]) {
            count += u64::from(device.discards[i]);
            bytes = bytes.saturating_add(device.discard_bytes[i]);
            ms += u64::from(device.discard_ms[i]);
        }
        if count > 0 && bytes > 0 && ms > 0 {
            let mib = bytes as f64 / count as f64 / MIB;
            points.push((mib, ms as f64 * 1e3 / count as f64));
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let kept = thin::indices(points.len(), 0..0, &[&|i| points[i].1], thin::POINTS);
    let fit = verdict.fit.as_ref();
    let both = |a: Option<f64>, b: Option<f64>| {
        let (a, b) = (a?, b?);
        (a.is_finite() && b.is_finite()).then_some([a, b])
    };
    let service = fit.and_then(|fit| both(fit.at_mib, fit.service_us));
    let mib: Vec<f64> = kept.iter().map(|&i| points[i].0).collect();
    let us: Vec<f64> = kept.iter().map(|&i| points[i].1).collect();
    // The fitted service time is always in sight.
    let least = service.unwrap_or([0.0, 0.0]).map(|value| 1.2 * value);
    let top = [
        far_below_the_most(&mib).map(|top| top.max(least[0])),
        far_below_the_most(&us).map(|top| top.max(least[1])),
    ];
    let beyond = beyond(&points, top);
    Cost {
        line: fit.and_then(|fit| both(fit.a_us, fit.b_us_per_mib)),
        service,
        mib,
        us,
        top,
        beyond,
    }
}

fn beyond(points: &[(f64, f64)], [mib, us]: [Option<f64>; 2]) -> Option<(usize, f64, f64)> {
    let outside =
        |&&(m, u): &&(f64, f64)| mib.is_some_and(|top| m > top) || us.is_some_and(|top| u > top);
    let those = || points.iter().filter(outside);
    let largest = those().map(|p| p.0).fold(0.0, f64::max);
    let longest = those().map(|p| p.1).fold(0.0, f64::max);
    let count = those().count();
    (count > 0).then_some((count, largest, longest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::SHORT;

    #[test]
    fn points_are_means_of_intervals() {
        let mut record = SHORT.record();
        let device = &mut record.intervals.devices[1];
        let i = device.discards.iter().position(|&n| n > 0).unwrap();
        device.discards[i] = 10;
        device.discard_bytes[i] = 20 << 20;
        device.discard_ms[i] = 30;
        let cost = cost(&record, &SHORT.verdict());
        assert_eq!((cost.mib, cost.us), (vec![2.0], vec![3000.0]));
        assert_eq!((cost.line, cost.beyond), (None, None));
        assert_eq!(cost.service.map(|at| at[0]), Some(64.0));
    }

    #[test]
    fn two_far_points_are_clipped_and_counted() {
        let mut record = SHORT.record();
        let device = &mut record.intervals.devices[1];
        for i in 0..60 {
            let far = i == 20 || i == 40;
            device.discards[i] = 10;
            device.discard_bytes[i] = 640 << 20;
            device.discard_ms[i] = if far { 9000 } else { 100 };
        }
        let cost = cost(&record, &SHORT.verdict());
        let [mib, us] = cost.top;
        assert_eq!(mib, None);
        assert!(
            us.is_some_and(|us| (12_000.0..200_000.0).contains(&us)),
            "{us:?}"
        );
        assert_eq!(cost.beyond.map(|(n, _, us)| (n, us)), Some((2, 900_000.0)));
    }
}
