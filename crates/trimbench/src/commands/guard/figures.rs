//! How a guard stands, as OpenMetrics.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use reclaim::guard::Status;

/// The figures of a guard, each with its mount point as a label. `None`: no guard runs.
pub(super) fn registry(mount: &Path, status: Option<&Status>) -> Registry {
    let mut all = Registry::with_prefix("trimbench_guard");
    let mount = mount.to_string_lossy().into_owned();
    let label = (Cow::Borrowed("mount"), Cow::Owned(mount));
    let registry = all.sub_registry_with_label(label);
    let up = Gauge::<f64, AtomicU64>::default();
    up.set(f64::from(u8::from(status.is_some())));
    registry.register("up", "Whether the guard runs", up);
    let Some(status) = status else { return all };
    for (name, help, value) in gauges(status) {
        if let Some(value) = value {
            let gauge = Gauge::<f64, AtomicU64>::default();
            gauge.set(value);
            registry.register(name, help, gauge);
        }
    }
    let busy = Counter::<f64, AtomicU64>::default();
    busy.inc_by(status.trim.busy_s);
    registry.register(
        "busy_seconds",
        "Time that the drive was busy with trims",
        busy,
    );
    for (name, help, value) in [
        (
            "goal_met",
            "Series of trims in which the goal was met",
            status.goals.met,
        ),
        (
            "goal_missed",
            "Series in which the goal was missed",
            status.goals.missed,
        ),
        ("trimmed_bytes", "Bytes trimmed", status.trim.trimmed_bytes),
    ] {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
    all
}

/// The values that rise and fall: name, help, and value where there is one.
fn gauges(status: &Status) -> [(&'static str, &'static str, Option<f64>); 10] {
    let trim = &status.trim;
    let waits = trim.waits.unwrap_or_default();
    [
        (
            "goal_slowdown_ratio",
            "The share that others may lose",
            Some(status.slowdown),
        ),
        (
            "debt_bytes",
            "Bytes freed and not trimmed",
            Some(trim.debt_bytes as f64),
        ),
        (
            "unknown_bytes",
            "Free bytes that may never have been trimmed",
            Some(trim.unknown_bytes as f64),
        ),
        (
            "unseen_bytes",
            "Bytes used and freed between two looks",
            Some(trim.unseen_bytes as f64),
        ),
        (
            "due_bytes",
            "Bytes of the debt that are trimmed now",
            Some(waits.due_bytes as f64),
        ),
        (
            "min_run_bytes",
            "Shorter free runs wait for more",
            Some(trim.min_run_bytes as f64),
        ),
        (
            "short_bytes",
            "Bytes of the debt in such short runs",
            Some(waits.short_bytes as f64),
        ),
        (
            "debt_oldest_seconds",
            "How long the oldest debt has waited",
            Some(trim.oldest_s.unwrap_or(0.0)),
        ),
        (
            "debt_age_p50_seconds",
            "How long trimmed bytes had waited",
            trim.age_p50_s,
        ),
        (
            "debt_age_p99_seconds",
            "How long trimmed bytes had waited",
            trim.age_p99_s,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_does_not_run_is_down() {
        let text = crate::metrics::text(&registry(Path::new("/da\"ta"), None));
        let up = "trimbench_guard_up{mount=\"/da\\\"ta\"} 0.0";
        assert!(text.contains(up) && text.contains("# EOF"), "{text}");
    }
}
