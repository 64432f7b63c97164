//! The last trim of each mount, as figures for Prometheus.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::metrics::{Labels, Share, figure, in_unit, label};

/// The figures of last trims.
#[derive(Debug, Clone)]
pub struct LastTrims {
    when: Family<Labels<2>, Gauge>,
    bytes: Family<Labels<2>, Gauge>,
    took: Family<Labels<2>, Share>,
    missed: Family<Labels<2>, Gauge>,
}

impl LastTrims {
    /// Figures without a trim, which the registry shows.
    pub fn new(all: &mut Registry) -> LastTrims {
        let when = "When the last trim ended, in seconds since 1970";
        let missed = "How many trims in a row missed their goal; 0: the last one met it";
        LastTrims {
            when: in_unit(all, "last_trim_timestamp", Unit::Seconds, when),
            bytes: in_unit(all, "last_trim", Unit::Bytes, "Bytes that it trimmed"),
            took: in_unit(all, "last_trim_duration", Unit::Seconds, "How long it took"),
            missed: figure(all, "trim_goals_missed_in_a_row", missed),
        }
    }

    /// Forgets all, before they are set again.
    pub fn clear(&self) {
        self.when.clear();
        self.bytes.clear();
        self.took.clear();
        self.missed.clear();
    }

    /// Sets the last trim of a mount `by` a command: when it ended, its bytes and its seconds. `missed`: how
    /// many in a row missed the goal; `None` if it was never tested.
    pub fn set(
        &self,
        (mount, by): (&str, &str),
        (unix_s, bytes, seconds): (u64, u64, f64),
        missed: Option<u64>,
    ) {
        let labels = [label("mount", mount), label("by", by)];
        let number = |figure: u64| i64::try_from(figure).unwrap_or(i64::MAX);
        self.when.get_or_create(&labels).set(number(unix_s));
        self.bytes.get_or_create(&labels).set(number(bytes));
        self.took.get_or_create(&labels).set(seconds);
        if let Some(missed) = missed {
            self.missed.get_or_create(&labels).set(number(missed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;

    #[test]
    fn a_goal_that_was_never_tested_has_no_figure() {
        let mut registry = Registry::with_prefix("trimbench");
        let trims = LastTrims::new(&mut registry);
        trims.set(("/old", "fstrim"), (1, 2, 3.0), None);
        trims.clear();
        trims.set(("/", "fstrim"), (1_795_521_787, 5 << 40, 2.5), None);
        trims.set(("/data", "guard"), (1_795_521_788, 0, 0.5), Some(2));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "trimbench_last_trim_timestamp_seconds{mount=\"/\",by=\"fstrim\"} 1795521787",
            "trimbench_last_trim_bytes{mount=\"/\",by=\"fstrim\"} 5497558138880",
            "trimbench_last_trim_duration_seconds{mount=\"/\",by=\"fstrim\"} 2.5",
            "trimbench_trim_goals_missed_in_a_row{mount=\"/data\",by=\"guard\"} 2",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line}\n{text}");
        }
        for none in ["/old", "in_a_row{mount=\"/\""] {
            assert!(!text.contains(none), "{none}\n{text}");
        }
    }
}
