//! The drives' own words, as figures for Prometheus: who they are, and their record of their life.

use linux::SysRoot;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use storage::disks::Disks;
use storage::drive::Drive;

use super::metrics::{Labels, Share, figure, in_unit, label};
use super::target::{Targets, present};

/// The figures of drives.
#[derive(Debug, Clone)]
pub struct Drives {
    info: Family<Labels<4>, Gauge>,
    used: Family<Labels<1>, Share>,
    written: Family<Labels<1>, Gauge>,
    flash_written: Family<Labels<1>, Gauge>,
    errors: Family<Labels<1>, Gauge>,
    hot: Family<Labels<1>, Gauge>,
    throttled: Family<Labels<1>, Gauge>,
    slow_trims: Family<Labels<2>, Gauge>,
}

impl Drives {
    /// Figures without a drive, which the registry shows.
    pub fn new(all: &mut Registry) -> Drives {
        let ratio = Unit::Other("ratio".to_owned());
        let used = "Share of the drive's life that is used, as it says itself";
        let written = "Bytes that hosts wrote over the drive's life";
        let flash = "Bytes written to flash over the drive's life, cleaning among them";
        let hot = "Time above the temperature of which the drive warns";
        let throttled = "Time in which the drive was slowed down because it was hot";
        let slow =
            "TRIM commands above a threshold of the drive's latency monitor, and below the next";
        Drives {
            info: figure(all, "device_info", "The drives"),
            used: in_unit(all, "device_life_used", ratio, used),
            written: in_unit(all, "device_life_written", Unit::Bytes, written),
            flash_written: in_unit(all, "device_life_flash_written", Unit::Bytes, flash),
            errors: figure(all, "device_media_errors", "Errors of media and data"),
            hot: in_unit(all, "device_hot", Unit::Seconds, hot),
            throttled: in_unit(all, "device_throttled", Unit::Seconds, throttled),
            slow_trims: figure(all, "device_slow_trims", slow),
        }
    }

    /// Asks the drives among the devices that are watched. Those with a motor are left alone: a
    /// request may start it.
    pub fn ask(&self, sys: &SysRoot, watched: &Targets) {
        let names: Vec<String> = match watched.named {
            true => watched.devices.iter().map(|one| one.name.clone()).collect(),
            false => present(sys, &Disks::now(sys))
                .into_iter()
                .map(|one| one.1)
                .collect(),
        };
        let found: Vec<Drive> = names.iter().filter_map(|name| asked(sys, name)).collect();
        self.show(&found);
    }

    /// Shows these drives alone. One that is no drive with a model is left out.
    pub fn show(&self, found: &[Drive]) {
        // One that is gone tells nothing any more.
        self.info.clear();
        self.used.clear();
        self.slow_trims.clear();
        for family in [
            &self.written,
            &self.flash_written,
            &self.errors,
            &self.hot,
            &self.throttled,
        ] {
            family.clear();
        }
        for drive in found.iter().filter(|drive| drive.model.is_some()) {
            self.set(drive);
        }
    }

    fn set(&self, drive: &Drive) {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().to_owned();
        let device = label("device", &drive.name);
        let info = [
            device.clone(),
            label("model", &text(&drive.model)),
            label("firmware", &text(&drive.firmware)),
            label("serial", &text(&drive.serial)),
        ];
        self.info.get_or_create(&info).set(1);
        let Some(health) = &drive.health else { return };
        let device = [device];
        if let Some(used) = health.percentage_used {
            let used = f64::from(used) / 100.0;
            self.used.get_or_create(&device).set(used);
        }
        let seconds = |minutes: u64| minutes.saturating_mul(60);
        for (family, figure) in [
            (&self.written, health.written.host_written_bytes),
            (&self.flash_written, health.written.flash_written_bytes),
            (&self.errors, health.media_errors),
            (&self.hot, health.hot_minutes.map(seconds)),
            (&self.throttled, health.throttled_s),
        ] {
            if let Some(figure) = figure {
                let figure = i64::try_from(figure).unwrap_or(i64::MAX);
                family.get_or_create(&device).set(figure);
            }
        }
        for slow in &health.slow_trims {
            let [device] = device.clone();
            let above = label("above_ms", &slow.above_ms.to_string());
            let commands = i64::try_from(slow.commands).unwrap_or(i64::MAX);
            let figure = self.slow_trims.get_or_create(&[device, above]);
            figure.set(commands);
        }
    }
}

/// A drive with its record; `None` of a device that is no drive with a model.
fn asked(sys: &SysRoot, name: &str) -> Option<Drive> {
    let known = Drive::of(sys, name, false).filter(|drive| drive.model.is_some())?;
    match known.turns() {
        true => Some(known),
        false => Drive::of(sys, name, true),
    }
}

#[cfg(test)]
pub(in crate::watch) mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use record::{DeviceInfo, Target};
    use testkit::Machine;

    /// A machine with an NVMe drive that has a record of its life.
    fn machine() -> Machine {
        let machine = Machine::new("");
        let place = "pci/nvme/nvme0/nvme0n1";
        machine.device(place, "259:0", Some(1 << 30));
        for (file, text) in [
            ("device/model", "Samsung SSD 980 PRO 2TB   "),
            ("device/firmware_rev", "5B2QGXA7"),
            ("device/serial", " S6B0NU0W900512 "),
        ] {
            machine.write(&format!("sys/devices/{place}/{file}"), text);
        }
        machine.device("virtual/block/loop3", "7:3", Some(1 << 20));
        let health = "identify/nvme0n1/nvme-health";
        machine.write(health, "");
        let mut page = vec![0; 512];
        // Units of 512,000 bytes written, percent of its life, minutes above the limits.
        (page[5], page[48], page[192]) = (7, 2, 3);
        std::fs::write(machine.root().join(health), page).unwrap();
        machine
    }

    /// Its drive.
    pub(in crate::watch) fn drive() -> Drive {
        Drive::of(&SysRoot::at(machine().root()), "nvme0n1", true).unwrap()
    }

    #[test]
    fn drives_tell_who_they_are_and_their_life() {
        let machine = machine();
        let mut registry = Registry::with_prefix("trimbench");
        let drives = Drives::new(&mut registry);
        let names = ["nvme0n1", "loop3", "sdq"];
        let watched = Targets {
            target: Target::default(),
            devices: names.map(DeviceInfo::disk).to_vec(),
            named: true,
        };
        drives.ask(&SysRoot::at(machine.root()), &watched);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "trimbench_device_info{device=\"nvme0n1\",model=\"Samsung SSD 980 PRO 2TB\",\
             firmware=\"5B2QGXA7\",serial=\"S6B0NU0W900512\"} 1",
            "trimbench_device_life_used_ratio{device=\"nvme0n1\"} 0.07",
            "trimbench_device_life_written_bytes{device=\"nvme0n1\"} 1024000",
            "trimbench_device_hot_seconds{device=\"nvme0n1\"} 180",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line}\n{text}");
        }
        // Gone, it has none.
        let none = Targets {
            devices: vec![],
            ..watched
        };
        drives.ask(&SysRoot::at(machine.root()), &none);
        let mut later = String::new();
        encode(&mut later, &registry).unwrap();
        assert!(!later.contains("nvme0n1"), "{later}");
        // What it doesn't tell is no 0, and a loop device is no drive.
        for gone in ["flash_written_bytes{", "slow_trims{", "loop3"] {
            assert!(!text.contains(gone), "{gone}\n{text}");
        }
    }
}
