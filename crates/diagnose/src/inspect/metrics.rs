//! Findings, as figures for Prometheus.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Inspection;
use crate::watch::metrics::{Labels, figure, label};

/// Registers a figure of each finding: 1 for each mount that it concerns.
///
/// `mount` is empty if it concerns none, and `device` if the mount's is not known.
pub fn register(found: &Inspection, all: &mut Registry) {
    let findings: Family<Labels<4>, Gauge> = figure(all, "finding", "1: inspect found it");
    for finding in &found.findings {
        let subject = &finding.subject;
        let set = |mount: &str, device: &str| {
            let labels = [
                label("id", finding.id),
                label("severity", finding.severity.name()),
                label("mount", mount),
                label("device", device),
            ];
            findings.get_or_create(&labels).set(1);
        };
        let mut is_set = false;
        for stack in &found.stacks {
            let mount = stack.file_system.as_ref();
            let mount = mount.map_or("", |fs| &fs.mount_point);
            let first = stack.layers.first().map_or("", |layer| &layer.name);
            // The paths of one LUN are one subject, and in the same stacks.
            let one = subject.split(", ").next().unwrap_or_default();
            let device = match stack.layer(one) {
                Some(_) => subject,
                None if stack.subject() == subject => first,
                None => continue,
            };
            set(mount, device);
            is_set = true;
        }
        if !is_set {
            set("", found.drive(subject).map_or("", |drive| &drive.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::{Options, Scope, inspect};
    use linux::SysRoot;
    use prometheus_client::encoding::text::encode;
    use testkit::Machine;

    const NVME: &str = "pci/nvme/nvme0/nvme0n1";

    fn text(machine: &Machine) -> String {
        let options = Options {
            privileged: true,
            ..Options::default()
        };
        let found = inspect(&SysRoot::at(machine.root()), &Scope::All, &options).unwrap();
        let mut registry = Registry::with_prefix("trimbench");
        register(&found, &mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn a_finding_names_the_mount_and_the_device_until_it_is_mended() {
        for (options, most, id) in [
            ("rw", 1 << 30, Some("nothing-trims")),
            ("rw", 0, Some("disabled-at-runtime")),
            ("rw,discard", 1 << 30, None),
        ] {
            let mount = format!("1 0 259:0 / / rw - ext4 /dev/nvme0n1 {options}\n");
            let machine = Machine::new(&mount);
            machine.device(NVME, "259:0", Some(most));
            let limit = format!("sys/devices/{NVME}/queue/discard_max_hw_bytes");
            machine.write(&limit, "1073741824\n");
            let found = text(&machine);
            let samples = found.lines().filter(|line| !line.starts_with('#'));
            let expected = id.map(|id| {
                format!(
                    "trimbench_finding{{id=\"{id}\",severity=\"warning\",mount=\"/\",\
                     device=\"nvme0n1\"}} 1"
                )
            });
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            assert_eq!(samples.collect::<Vec<_>>(), expected, "{options} {most}");
        }
    }
}
