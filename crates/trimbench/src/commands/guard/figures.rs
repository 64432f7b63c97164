//! How a guard stands, as OpenMetrics.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use reclaim::guard::Status;

/// The figures of a guard, each with its directory as a label.
pub(super) fn registry(status: &Status) -> Registry {
    let mut all = Registry::with_prefix("trimbench_guard");
    let directory = status.directory.to_string_lossy().into_owned();
    let label = (Cow::Borrowed("directory"), Cow::Owned(directory));
    let registry = all.sub_registry_with_label(label);
    let mut gauge = |name: &str, help: &str, value: f64| {
        let gauge = Gauge::<f64, AtomicU64>::default();
        gauge.set(value);
        registry.register(name, help, gauge);
    };
    let names = &status.names;
    gauge(
        "up",
        "Whether the guard runs",
        f64::from(u8::from(status.pid.is_some())),
    );
    gauge(
        "guarded_files",
        "Files in use that are kept",
        names.guarded_files as f64,
    );
    gauge(
        "guarded_bytes",
        "Their allocated bytes",
        names.guarded_bytes as f64,
    );
    gauge(
        "waiting_files",
        "Deleted files that wait to be freed",
        names.waiting_files as f64,
    );
    gauge(
        "waiting_bytes",
        "Their allocated bytes",
        names.waiting_bytes as f64,
    );
    gauge(
        "waiting_oldest_seconds",
        "How long the oldest has waited",
        names.oldest_s as f64,
    );
    let Some(reported) = &status.reported else {
        return all;
    };
    gauge(
        "goal_slowdown_ratio",
        "The share that others may lose",
        reported.slowdown,
    );
    if let Some(trim) = &reported.trim {
        gauge(
            "debt_bytes",
            "Bytes freed and not trimmed",
            trim.debt_bytes as f64,
        );
        gauge(
            "unknown_bytes",
            "Free bytes that may never have been trimmed",
            trim.unknown_bytes as f64,
        );
        gauge(
            "unseen_bytes",
            "Bytes used and freed between two looks",
            trim.unseen_bytes as f64,
        );
        gauge(
            "min_run_bytes",
            "Shorter free runs wait for more",
            trim.min_run_bytes as f64,
        );
        gauge(
            "short_bytes",
            "Bytes of the debt in such short runs",
            trim.short_bytes as f64,
        );
        gauge(
            "debt_oldest_seconds",
            "How long the oldest debt has waited",
            trim.oldest_s.unwrap_or(0) as f64,
        );
        for (name, age) in [
            ("debt_age_p50_seconds", trim.age_p50_s),
            ("debt_age_p99_seconds", trim.age_p99_s),
        ] {
            if let Some(age) = age {
                gauge(name, "How long trimmed bytes had waited", age);
            }
        }
    }
    let mut counter = |name: &str, help: &str, value: u64| {
        let counter = Counter::<u64>::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    };
    counter("freed_files", "Files freed", reported.freed.files);
    counter("freed_bytes", "Bytes freed", reported.freed.bytes);
    counter(
        "goal_met",
        "Batches in which the goal was met",
        reported.freed.goal_met,
    );
    counter(
        "goal_missed",
        "Batches in which the goal was missed",
        reported.freed.goal_missed,
    );
    if let Some(trim) = &reported.trim {
        counter("trimmed_bytes", "Bytes trimmed", trim.trimmed_bytes);
    }
    all
}

#[cfg(test)]
mod tests {
    use reclaim::guard::SecondNames;

    use super::*;

    #[test]
    fn a_guard_that_does_not_run_is_down_and_its_files_still_count() {
        let status = Status {
            directory: "/da\"ta".into(),
            pid: None,
            names: SecondNames {
                waiting_files: 2,
                waiting_bytes: 4096,
                ..SecondNames::default()
            },
            reported: None,
        };
        let text = crate::metrics::text(&registry(&status));
        for line in [
            "trimbench_guard_up{directory=\"/da\\\"ta\"} 0.0",
            "trimbench_guard_waiting_files{directory=\"/da\\\"ta\"} 2.0",
            "trimbench_guard_waiting_bytes{directory=\"/da\\\"ta\"} 4096.0",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
