//! A device's own counters (`queue/iostats`), switched on for a while and off again whatever
//! happens.
//!
//! As with a limit, a child process waits for the end of this one, be it by `kill -9`, and
//! puts the old value back.

use std::io;
use std::path::PathBuf;

use record::units::names;

use crate::SysRoot;
use crate::limit::whole;
use crate::watcher::{Before, Setting};

/// Why counters were not switched on, or not off again.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CountersError {
    #[error("{device} has no queue that /sys/class/block shows")]
    NoQueue { device: String },
    #[error(
        "cannot switch on the counters of {device} ({}): {source}; it needs root",
        names::shown(file)
    )]
    Enable {
        device: String,
        file: PathBuf,
        source: io::Error,
    },
    #[error(
        "the counters of {device} are still on; switch them off with: echo 0 > {}",
        names::shown(file)
    )]
    NotRestored { device: String, file: PathBuf },
}

/// Counters that were off and are on. They are off again when this is dropped, and when this
/// process ends in any way.
#[derive(Debug)]
pub struct CountersGuard {
    device: String,
    path: PathBuf,
    setting: Setting,
}

impl CountersGuard {
    /// Switches on the counters of a device (a partition's are its drive's), which are off.
    ///
    /// # Errors
    /// When it has none, they aren't ours to switch, or another process has switched them on.
    pub fn enable(sys: &SysRoot, device: &str) -> Result<CountersGuard, CountersError> {
        let device = whole(sys, device).ok_or_else(|| CountersError::NoQueue {
            device: device.to_owned(),
        })?;
        let path = sys.class(&device).join("queue/iostats");
        let failed = |source| CountersError::Enable {
            device: device.clone(),
            file: path.clone(),
            source,
        };
        let before = Before {
            unchanged: "0".to_owned(),
            text: "0".to_owned(),
        };
        let file = Setting::lock(&path).map_err(failed)?;
        let setting = Setting::take(file, before).map_err(failed)?;
        setting.write("1").map_err(failed)?;
        Ok(CountersGuard {
            device,
            path,
            setting,
        })
    }

    /// Kernel name of the device whose counters they are.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Switches them off again.
    ///
    /// # Errors
    /// When that can't be done. The message says how.
    pub fn restore(mut self) -> Result<(), CountersError> {
        let restored = self.setting.restore(Setting::put_back);
        restored.map_err(|_| CountersError::NotRestored {
            device: self.device.clone(),
            file: self.path.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Machine;

    #[test]
    fn counters_are_on_while_the_guard_lives_and_off_after_it() {
        let machine = Machine::new("");
        machine.device("pci/sda", "8:0", Some(1 << 30));
        machine.device("pci/sda/sda1", "8:1", None);
        machine.write("sys/devices/pci/sda/queue/iostats", "0\n");
        let file = SysRoot::at(machine.root())
            .class("sda")
            .join("queue/iostats");
        let now = || std::fs::read_to_string(&file).unwrap().trim().to_owned();
        let guard = CountersGuard::enable(&SysRoot::at(machine.root()), "sda1").unwrap();
        assert_eq!((guard.device(), &*now()), ("sda", "1"));
        let second = CountersGuard::enable(&SysRoot::at(machine.root()), "sda").unwrap_err();
        assert!(matches!(second, CountersError::Enable { .. }), "{second}");
        guard.restore().unwrap();
        assert_eq!(now(), "0");
        drop(CountersGuard::enable(&SysRoot::at(machine.root()), "sda").unwrap());
        assert_eq!(now(), "0");
        let none = CountersGuard::enable(&SysRoot::at(machine.root()), "sdz").unwrap_err();
        assert!(matches!(none, CountersError::NoQueue { .. }), "{none}");
    }
}
