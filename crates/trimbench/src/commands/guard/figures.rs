//! How a guard stands, as OpenMetrics.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use reclaim::guard::Status;

/// Registers figures: name, help, value.
macro_rules! register {
    ($registry:ident, $metric:ty, $set:ident: $($name:literal, $help:literal, $value:expr;)*) => {
        $({
            let metric = <$metric>::default();
            metric.$set($value);
            $registry.register($name, $help, metric);
        })*
    };
}

type Value = Gauge<f64, AtomicU64>;
type Seconds = Counter<f64, AtomicU64>;

/// The figures of a guard, each with its mount point as a label. `None`: no guard runs.
pub(super) fn registry(mount: &Path, status: Option<&Status>) -> Registry {
    let mut all = Registry::with_prefix("trimbench_guard");
    let mount = mount.to_string_lossy().into_owned();
    let label = (Cow::Borrowed("mount"), Cow::Owned(mount));
    let registry = all.sub_registry_with_label(label);
    register! { registry, Value, set:
        "up", "Whether the guard runs", f64::from(u8::from(status.is_some()));
    }
    let Some(status) = status else { return all };
    let trim = &status.trim;
    let waits = trim.waits.unwrap_or_default();
    register! { registry, Value, set:
        "goal_slowdown_ratio", "The share that others may lose", status.slowdown;
        "debt_bytes", "Bytes freed and not trimmed", trim.debt_bytes as f64;
        "unknown_bytes", "Free bytes that may never have been trimmed", trim.unknown_bytes as f64;
        "unseen_bytes", "Bytes used and freed between two looks", trim.unseen_bytes as f64;
        "due_bytes", "Bytes of the debt that are trimmed now", waits.due_bytes as f64;
        "min_run_bytes", "Shorter free runs wait for more", trim.min_run_bytes as f64;
        "short_bytes", "Bytes of the debt in such short runs", waits.short_bytes as f64;
        "debt_oldest_seconds", "How long the oldest debt has waited", trim.oldest_s.unwrap_or(0.0);
    }
    let waited = "How long trimmed bytes had waited";
    let ages = [
        ("debt_age_p50_seconds", trim.age_p50_s),
        ("debt_age_p99_seconds", trim.age_p99_s),
    ];
    for (name, age_s) in ages {
        if let Some(age_s) = age_s {
            let age = Value::default();
            age.set(age_s);
            registry.register(name, waited, age);
        }
    }
    register! { registry, Seconds, inc_by:
        "busy_seconds", "Time that the drive was busy with trims", trim.busy_s;
    }
    register! { registry, Counter<u64>, inc_by:
        "goal_met", "Series of trims in which the goal was met", status.goals.met;
        "goal_missed", "Series in which the goal was missed", status.goals.missed;
        "trimmed_bytes", "Bytes for whose trim the kernel was asked", trim.trimmed_bytes;
        "discarded_bytes", "Bytes that the devices discarded meanwhile", trim.discarded_bytes;
    }
    all
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
