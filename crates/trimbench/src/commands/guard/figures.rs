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
    }
    let waited = "How long trimmed bytes had waited";
    let oldest = "How long the oldest debt has waited";
    let ages = [
        ("debt_oldest_seconds", oldest, trim.oldest_s),
        ("debt_age_p50_seconds", waited, trim.age_p50_s),
        ("debt_age_p99_seconds", waited, trim.age_p99_s),
    ];
    for (name, help, age_s) in ages {
        if let Some(age_s) = age_s {
            let age = Value::default();
            age.set(age_s);
            registry.register(name, help, age);
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
    use std::collections::BTreeSet;

    use reclaim::guard::TrimReport;

    use super::super::messages::tests::standing;
    use super::*;

    #[test]
    fn a_guard_that_does_not_run_is_down() {
        let text = crate::metrics::text(&registry(Path::new("/da\"ta"), None));
        let up = "trimbench_guard_up{mount=\"/da\\\"ta\"} 0.0";
        assert!(text.contains(up) && text.contains("# EOF"), "{text}");
    }

    #[test]
    fn the_rules_ask_for_figures_that_exist() {
        let of = |oldest_s: Option<f64>| {
            let status = standing(TrimReport {
                oldest_s,
                ..TrimReport::default()
            });
            crate::metrics::text(&registry(Path::new("/"), Some(&status)))
        };
        let found = of(Some(90_000.0));
        let rules = include_str!("../../../../../deploy/prometheus/trimbench.rules.yml");
        let words = rules.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
        let names: BTreeSet<&str> = words
            .filter(|w| w.starts_with("trimbench_guard_"))
            .collect();
        assert!(!names.is_empty());
        for name in names {
            assert!(
                found.contains(&format!("\n{name}{{")),
                "nothing gives {name}"
            );
            // Without a debt it has no age, and no alert.
            assert!(!of(None).contains(&format!("\n{name}{{")));
        }
    }
}
