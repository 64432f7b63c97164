//! What discards of which size cost: the points, and the line S = a + b·L of the verdict.

use serde::Serialize;
use timeline::{RunRecord, Verdict};

use super::short;
use crate::series::Discards;
use crate::thin;

/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

/// Mean size and mean wait of the discards of each interval, and the fit.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cost {
    /// Mean size of an interval's discards in MiB, rising.
    pub(crate) mib: Vec<f64>,
    /// Their mean wait, in microseconds: service and queueing, so above the line.
    pub(crate) us: Vec<f64>,
    /// The verdict's a, in microseconds, and b, in microseconds per MiB.
    pub(crate) line: Option<[f64; 2]>,
    /// The verdict's service time: its size in MiB, and microseconds.
    pub(crate) service: Option<[f64; 2]>,
}

impl Cost {
    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.mib.is_empty() && self.line.is_none() && self.service.is_none()
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
            points.push((short(mib), short(ms as f64 * 1e3 / count as f64)));
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let kept = thin::indices(points.len(), 0..0, &[&|i| points[i].1], thin::POINTS);
    let fit = verdict.fit.as_ref();
    let both = |a: Option<f64>, b: Option<f64>| {
        let (a, b) = (a?, b?);
        (a.is_finite() && b.is_finite()).then_some([short(a), short(b)])
    };
    Cost {
        mib: kept.iter().map(|&i| points[i].0).collect(),
        us: kept.iter().map(|&i| points[i].1).collect(),
        line: fit.and_then(|fit| both(fit.a_us, fit.b_us_per_mib)),
        service: fit.and_then(|fit| both(fit.at_mib, fit.service_us)),
    }
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
        assert_eq!(cost.line, None);
        assert_eq!(cost.service.map(|at| at[0]), Some(64.0));
    }
}
