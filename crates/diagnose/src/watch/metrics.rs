//! Updates → figures for Prometheus, by its conventions for names: counters in base units, labels
//! with few values, no process numbers.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};

use super::update::{Update, Work, name};
use crate::why::Cause;
use crate::why::frames::Place;

const DISCARDING: &str = "Time in which a discard at least was in flight";
const DISCARDING_SHARE: &str = "The same as a share of the last update's time";
const TOOK: &str = "How long each discard was in flight, as root sees them";
const SENT: &str = "Discards sent, by the reason for which the kernel sends them";
const SENT_BYTES: &str = "Bytes of discards sent, by reason";
const IN_DRIVE: &str = "Sum of the times of discards in the drive, by reason";
const DEBT: &str = "Bytes freed and not yet discarded, where the file system reports them";
const DEBT_COMMANDS: &str = "Discards not yet sent, where the file system reports them";
const BLOCKED: &str = "Time in which processes were blocked, by cause";
const BLOCKED_PROCESSES: &str = "Processes that were blocked during the last update, by cause";
const PRESSURE: &str = "Time in which some or all tasks waited for I/O (PSI)";

/// The classes of the times of discards, in seconds.
const TOOK_S: [f64; 10] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

/// Makes a figure and registers it.
pub(crate) fn figure<M: Metric + Clone + Default>(
    registry: &mut Registry,
    name: &str,
    help: &str,
) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Makes a figure with a unit and registers it.
pub(crate) fn in_unit<M>(registry: &mut Registry, name: &str, unit: Unit, help: &str) -> M
where
    M: Metric + Clone + Default,
{
    let metric = M::default();
    registry.register_with_unit(name, help, unit, metric.clone());
    metric
}

/// A counter of seconds.
type Seconds = Counter<f64, AtomicU64>;
/// A share of 1.
pub(crate) type Share = Gauge<f64, AtomicU64>;

/// Labels, each a name and a value.
pub(crate) type Labels<const N: usize> = [(&'static str, String); N];

pub(crate) fn label(name: &'static str, value: &str) -> (&'static str, String) {
    (name, value.to_owned())
}

/// Operations of one kind, their bytes and their waits, by device.
#[derive(Debug, Default)]
struct Kind {
    operations: Family<Labels<1>, Counter>,
    bytes: Family<Labels<1>, Counter>,
    waits: Family<Labels<1>, Seconds>,
}

impl Kind {
    /// Figures of one kind, by its name in the plural and in the singular.
    fn new(registry: &mut Registry, names: &str, name: &str, words: &str) -> Kind {
        let lower = words.to_lowercase();
        let completed = format!("{words} that completed");
        let bytes = format!("Bytes of {lower}");
        let waits = format!("Sum of the waits of {lower}");
        Kind {
            operations: figure(registry, &format!("device_{names}"), &completed),
            // A flush has no bytes.
            bytes: match name {
                "flush" => Family::default(),
                _ => in_unit(registry, &format!("device_{name}"), Unit::Bytes, &bytes),
            },
            waits: in_unit(
                registry,
                &format!("device_{name}_wait"),
                Unit::Seconds,
                &waits,
            ),
        }
    }

    fn add(&self, device: &Labels<1>, work: &Work) {
        self.operations
            .get_or_create(device)
            .inc_by(work.operations);
        self.bytes.get_or_create(device).inc_by(work.bytes);
        self.waits
            .get_or_create(device)
            .inc_by(work.wait_ms as f64 / 1e3);
    }
}

/// A registry that shows the program's version.
pub fn registry() -> Registry {
    let mut all = Registry::with_prefix("trimbench");
    let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    all.register("build", "The program that gives these figures", version);
    all
}

/// The figures of all updates so far.
#[derive(Debug)]
pub struct Metrics {
    reads: Kind,
    writes: Kind,
    discards: Kind,
    flushes: Kind,
    in_flight: Family<Labels<1>, Gauge>,
    discarding: Family<Labels<1>, Seconds>,
    discarding_share: Family<Labels<1>, Share>,
    took: Family<Labels<1>, Histogram, fn() -> Histogram>,
    sent: Family<Labels<2>, Counter>,
    sent_bytes: Family<Labels<2>, Counter>,
    sent_seconds: Family<Labels<2>, Seconds>,
    debt_bytes: Family<Labels<1>, Gauge>,
    debt_commands: Family<Labels<1>, Gauge>,
    blocked: Family<Labels<1>, Seconds>,
    blocked_processes: Family<Labels<1>, Gauge>,
    pressure: Family<Labels<1>, Seconds>,
    lost: Counter,
    cpu: Seconds,
    known: BTreeSet<String>,
}

impl Metrics {
    /// Figures that are all 0, and the registry that shows them.
    pub fn new() -> (Metrics, Registry) {
        let mut registry = registry();
        let all = &mut registry;
        let share = Unit::Other("ratio".to_owned());
        let took = Family::new_with_constructor((|| Histogram::new(TOOK_S)) as fn() -> Histogram);
        all.register_with_unit("device_discard_latency", TOOK, Unit::Seconds, took.clone());
        let metrics = Metrics {
            reads: Kind::new(all, "reads", "read", "Reads"),
            writes: Kind::new(all, "writes", "write", "Writes"),
            discards: Kind::new(all, "discards", "discard", "Discards"),
            flushes: Kind::new(all, "flushes", "flush", "Flushes of the cache"),
            in_flight: figure(
                all,
                "device_in_flight",
                "Operations in flight at the last update",
            ),
            discarding: in_unit(all, "device_discarding", Unit::Seconds, DISCARDING),
            discarding_share: in_unit(all, "device_discarding", share, DISCARDING_SHARE),
            took,
            sent: figure(all, "discards_sent", SENT),
            sent_bytes: in_unit(all, "discards_sent", Unit::Bytes, SENT_BYTES),
            sent_seconds: in_unit(all, "discards_in_drive", Unit::Seconds, IN_DRIVE),
            debt_bytes: in_unit(all, "discard_debt", Unit::Bytes, DEBT),
            debt_commands: figure(all, "discard_debt_commands", DEBT_COMMANDS),
            blocked: in_unit(all, "blocked", Unit::Seconds, BLOCKED),
            blocked_processes: figure(all, "blocked_processes", BLOCKED_PROCESSES),
            pressure: in_unit(all, "io_pressure_waiting", Unit::Seconds, PRESSURE),
            lost: figure(all, "lost_events", "Events that the kernel dropped"),
            cpu: in_unit(
                all,
                "cpu",
                Unit::Seconds,
                "Time on a processor that watching took",
            ),
            known: BTreeSet::new(),
        };
        // Each cause is there from the start: a rate lacks the first burst of a new series.
        for cause in Cause::ALL.iter().filter(|cause| cause.is_blocked()) {
            for place in [Place::Io, Place::Cleaner, Place::Quotas] {
                let cause = [label("cause", name(*cause, place))];
                let _ = metrics.blocked.get_or_create(&cause);
            }
        }
        (metrics, registry)
    }

    /// Adds an update.
    pub fn add(&mut self, update: &Update) {
        let mut there = BTreeSet::new();
        for one in &update.devices {
            let device = [label("device", &one.device)];
            self.reads.add(&device, &one.reads);
            self.writes.add(&device, &one.writes);
            self.discards.add(&device, &one.discards);
            self.flushes.add(&device, &one.flushes);
            self.in_flight
                .get_or_create(&device)
                .set(i64::try_from(one.in_flight).unwrap_or(i64::MAX));
            self.discarding
                .get_or_create(&device)
                .inc_by(one.discarding * update.seconds);
            self.discarding_share
                .get_or_create(&device)
                .set(one.discarding);
            if let Some(took_s) = &one.discards_took_s {
                let took = self.took.get_or_create(&device);
                took_s.iter().for_each(|one| took.observe(f64::from(*one)));
            }
            there.insert(one.device.clone());
        }
        // A device that is gone has nothing in flight. Its counters stay, as counters do.
        for gone in self.known.difference(&there) {
            let device = [label("device", gone)];
            self.in_flight.remove(&device);
            self.discarding_share.remove(&device);
        }
        self.known = there;
        self.add_senders(update);
        self.add_blocked(update);
        self.debt_bytes.clear();
        self.debt_commands.clear();
        for debt in &update.debts {
            let mount = [label("mount", &debt.mount)];
            let set = |family: &Family<Labels<1>, Gauge>, figure: Option<u64>| {
                if let Some(figure) = figure {
                    let figure = i64::try_from(figure).unwrap_or(i64::MAX);
                    family.get_or_create(&mount).set(figure);
                }
            };
            set(&self.debt_bytes, debt.bytes);
            set(&self.debt_commands, debt.commands);
        }
        self.lost.inc_by(update.lost_events);
        self.cpu.inc_by(update.cpu_s.max(0.0));
    }

    fn add_senders(&self, update: &Update) {
        for one in &update.senders {
            let sender = [
                label("device", &one.device),
                label("reason", one.reason.name()),
            ];
            self.sent.get_or_create(&sender).inc_by(one.discards);
            self.sent_bytes.get_or_create(&sender).inc_by(one.bytes);
            self.sent_seconds
                .get_or_create(&sender)
                .inc_by(one.in_drive_s);
        }
    }

    fn add_blocked(&self, update: &Update) {
        self.blocked_processes.clear();
        for one in &update.blocked {
            for (cause, seconds) in &one.causes {
                let cause = [label("cause", cause)];
                self.blocked.get_or_create(&cause).inc_by(*seconds);
            }
            let cause = [label("cause", one.name())];
            self.blocked_processes.get_or_create(&cause).inc();
        }
        if let Some(pressure) = update.pressure {
            for (who, share) in [("some", pressure.some), ("full", pressure.full)] {
                let seconds = share * update.seconds;
                self.pressure
                    .get_or_create(&[label("who", who)])
                    .inc_by(seconds);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::drives::{Drives, tests::drive};
    use super::super::trims::LastTrims;
    use super::*;
    use crate::inspect::findings::RULES;
    use crate::watch::tests::{device, stall};
    use prometheus_client::encoding::text::encode;

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    }

    #[test]
    fn figures_add_up_and_those_of_a_gone_device_end() {
        let (mut metrics, registry) = Metrics::new();
        metrics.add(&stall(1.0));
        metrics.add(&stall(2.0));
        let found = text(&registry);
        for line in [
            "trimbench_build_info{version=\"0.1.0\"} 1",
            "trimbench_device_reads_total{device=\"vda\"} 2468",
            "trimbench_device_discard_bytes_total{device=\"loop8\"} 12058624",
            "trimbench_device_discarding_seconds_total{device=\"loop8\"} 1.96",
            "trimbench_device_discarding_ratio{device=\"loop8\"} 0.98",
            "trimbench_device_discard_latency_seconds_bucket{le=\"0.03\",device=\"loop8\"} 0",
            "trimbench_device_discard_latency_seconds_bucket{le=\"0.1\",device=\"loop8\"} 46",
            "trimbench_discards_sent_total{device=\"loop8\",reason=\"ext-commit\"} 46",
            "trimbench_discard_debt_bytes{mount=\"/mnt/lab\"} 1073741824",
            "trimbench_blocked_seconds_total{cause=\"behind-discards\"} 1.9",
            "trimbench_blocked_seconds_total{cause=\"commit\"} 0.04",
            "trimbench_blocked_seconds_total{cause=\"btrfs-cleaner\"} 0.0",
            "trimbench_blocked_processes{cause=\"behind-discards\"} 1",
            "trimbench_io_pressure_waiting_seconds_total{who=\"some\"} 0.86",
        ] {
            assert!(
                found.contains(&format!("\n{line}\n")),
                "{line} missing in\n{found}"
            );
        }
        metrics.add(&Update::of(3.0, 1.0, vec![device("vda", 1, 1, 0.0)]));
        let found = text(&registry);
        assert!(
            !found.contains("device_in_flight{device=\"loop8\"}"),
            "{found}"
        );
        assert!(
            found.contains("device_in_flight{device=\"vda\"} 3"),
            "{found}"
        );
        assert!(!found.contains("blocked_processes{"), "{found}");
        assert!(
            found.contains("device_reads_total{device=\"loop8\"} 24"),
            "{found}"
        );
    }

    /// Guard's figures have a test of the same kind.
    #[test]
    fn the_dashboards_and_the_rules_ask_for_figures_that_exist() {
        let (mut metrics, mut registry) = Metrics::new();
        let mut update = stall(1.0);
        update.debts[0].commands = Some(3);
        metrics.add(&update);
        Drives::new(&mut registry).show(&[drive()]);
        LastTrims::new(&mut registry).set(("/", "fstrim"), (1, 2, 3.0), Some(0));
        let finding: Family<Labels<1>, Gauge> = figure(&mut registry, "finding", "As inspect's");
        finding
            .get_or_create(&[label("id", "nothing-trims")])
            .set(1);
        let found = text(&registry);
        let rules = include_str!("../../../../deploy/prometheus/trimbench.rules.yml");
        for asked in [
            include_str!("../../../../deploy/grafana/trimbench.json"),
            include_str!("../../../../deploy/grafana/fleet.json"),
            rules,
        ] {
            let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == ':';
            let words = asked.split(|sign: char| !is_name(sign));
            let names = words.filter(|word| word.starts_with("trimbench_"));
            let names: BTreeSet<&str> = names
                .filter(|word| !word.starts_with("trimbench_guard_"))
                .collect();
            assert!(names.len() > 5, "{names:?}");
            for name in names {
                let sample = ["{", " "].map(|end| format!("\n{name}{end}"));
                assert!(
                    sample.iter().any(|start| found.contains(start)),
                    "nothing gives {name}"
                );
            }
        }
        let ids = rules.split_once("id=~\"").unwrap().1.split('"').next();
        for id in ids.unwrap().split('|') {
            assert!(RULES.iter().any(|(rule, _)| *rule == id), "no finding {id}");
        }
    }
}
