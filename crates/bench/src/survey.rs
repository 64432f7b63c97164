//! The survey before a run begins: mount, devices, discards, space.

use std::path::{Path, PathBuf};

use judge::counting;
use linux::counters::CountersGuard;
use linux::files::{DirectIo, probe_direct};
use linux::limit::whole;
use linux::mounts::Mount;
use linux::owner::Other;
use linux::space::Space;
use linux::{SysRoot, mounts, owner};
use record::{DeviceInfo, DiscardSetting, Target};
use storage::devices::under_mount;
use storage::{Description, FileSystem, counter};

use crate::error::BenchError;
use crate::plan::Place;
use crate::warning::Warning;

pub use linux::owner::Swept;

/// Nothing smaller is read from a block device past the page cache.
const SECTOR: u64 = 512;

/// The findings at a place. The survey only made a file of one block, if possible without a
/// name, and has removed it.
#[derive(Debug, Clone)]
pub struct Survey {
    /// The place that the user named.
    pub place: Place,
    /// The target, for the record's head.
    pub target: Target,
    /// The devices under it, for the record's head.
    pub devices: Vec<DeviceInfo>,
    /// The mount; `None` for a raw device.
    pub mount: Option<Mount>,
    /// Size and free space. A raw device is all free.
    pub space: Space,
    /// The alignment of direct I/O's offsets and lengths here, in bytes; or why I/O can't go
    /// past the page cache.
    pub direct: Result<u64, String>,
    /// A blkio cgroup of version 1 that the foreground's threads are to run in,
    /// and no others: where whatever deletes and commits must not share one with
    /// whatever reads. `None`: they run where this process does.
    pub foreground_cgroup: Option<PathBuf>,
    /// Why there is less space than the file system reports, with the next step.
    pub limited: Option<String>,
    /// Reasons why the figures are less sure.
    pub warnings: Vec<Warning>,
}

impl Survey {
    /// Looks at a place.
    ///
    /// # Errors
    /// [`BenchError::Place`] when it isn't there or isn't what it should be.
    pub fn of(place: &Place) -> Result<Survey, BenchError> {
        match place {
            Place::Directory(path) => Survey::of_directory(path),
            Place::Device { path, .. } => Survey::of_device(place, path),
        }
    }

    fn of_directory(path: &Path) -> Result<Survey, BenchError> {
        let refuse = |why: String| BenchError::Place {
            path: path.to_path_buf(),
            why,
        };
        let metadata = std::fs::metadata(path).map_err(|e| {
            refuse(format!(
                "{e}; give an existing directory on the file system to test"
            ))
        })?;
        if !metadata.is_dir() {
            return Err(refuse(
                "not a directory; give a directory on the file system to test".into(),
            ));
        }
        let path = std::fs::canonicalize(path).map_err(|e| refuse(e.to_string()))?;
        let found = storage::describe(&path).map_err(|e| refuse(e.to_string()))?;
        if found.mount.as_ref().is_some_and(Mount::read_only) {
            return Err(refuse(
                "mounted read-only; remount it read-write, or give another directory".into(),
            ));
        }
        let mut warnings = warnings(&found);
        warnings.extend(others(&found.devices));
        if FileSystem::named(&found.target).discards_twice()
            && found.target.discard == DiscardSetting::On
        {
            warnings.push(Warning::DiscardedAgain);
        }
        Ok(Survey {
            space: Space::of(&path).map_err(|e| refuse(e.to_string()))?,
            direct: direct(&path)?,
            place: Place::Directory(path),
            target: found.target,
            devices: found.devices,
            mount: found.mount,
            foreground_cgroup: None,
            limited: None,
            warnings,
        })
    }

    fn of_device(place: &Place, path: &Path) -> Result<Survey, BenchError> {
        let found = storage::describe_device(path).map_err(|e| BenchError::Place {
            path: path.to_path_buf(),
            why: e.to_string(),
        })?;
        let size_bytes = found.target.size_bytes;
        Ok(Survey {
            place: place.clone(),
            warnings: warnings(&found),
            space: Space {
                size_bytes,
                available_bytes: size_bytes,
                block_bytes: 4096,
            },
            direct: Ok(SECTOR),
            target: found.target,
            devices: found.devices,
            mount: None,
            foreground_cgroup: None,
            limited: None,
        })
    }

    /// Leaves the run only so many bytes to write, whatever the file system says; `why` says
    /// what sets the limit.
    pub fn limit_space(&mut self, bytes: u64, why: String) {
        if bytes >= self.space.available_bytes {
            return;
        }
        self.space.size_bytes = bytes;
        self.space.available_bytes = bytes;
        if let Some(available) = &mut self.target.available_bytes {
            *available = bytes;
        }
        self.limited = Some(why);
    }

    /// Switches on the counters without which nobody would know of discards. They are off again
    /// when what this returns is dropped, and when this process ends in any way.
    ///
    /// # Errors
    /// When they can't be switched on: only root may.
    pub fn enable_counters(&mut self) -> Result<Vec<CountersGuard>, BenchError> {
        let names: Vec<String> = counting::blind(&self.devices)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let mut guards: Vec<CountersGuard> = Vec::new();
        for name in &names {
            let whole = whole(&SysRoot::host(), name).unwrap_or_else(|| name.clone());
            // Partitions of one drive share its counters.
            if guards.iter().all(|guard| guard.device() != whole) {
                guards.push(CountersGuard::enable(&SysRoot::host(), &whole)?);
            }
        }
        for device in &mut self.devices {
            device.counting.off &= !names.iter().any(|name| name == device.statistics());
        }
        let left = counter::uncounted(&self.devices);
        self.warnings.retain(|warning| match warning {
            Warning::Storage(off @ storage::Warning::CountersOff(_)) => left.contains(off),
            _ => true,
        });
        Ok(guards)
    }

    /// An error about this place.
    pub(crate) fn refuse(&self, why: impl ToString) -> BenchError {
        BenchError::Place {
            path: self.place.path().to_path_buf(),
            why: why.to_string(),
        }
    }
}

/// All warnings about a target and its statistics.
fn warnings(found: &Description) -> Vec<Warning> {
    let odd = found.warnings.iter().chain(&found.counting_warnings);
    let odd = odd.cloned().map(Warning::Storage);
    odd.chain(cached(&SysRoot::host(), &found.devices))
        .collect()
}

/// A warning for each loop device above others whose file isn't read with direct I/O.
fn cached(sys: &SysRoot, devices: &[DeviceInfo]) -> Vec<Warning> {
    let is_cached = |device: &&DeviceInfo| {
        !device.below.is_empty() && sys.attribute(&device.name, "loop/dio").as_deref() == Some("0")
    };
    let warning = |device: &DeviceInfo| Warning::CachedLoop {
        device: device.name.clone(),
        below: device.below.join(", "),
    };
    devices.iter().filter(is_cached).map(warning).collect()
}

fn direct(directory: &Path) -> Result<Result<u64, String>, BenchError> {
    let probed = probe_direct(directory).map_err(|error| BenchError::Place {
        path: directory.to_path_buf(),
        why: error.to_string(),
    })?;
    Ok(match probed {
        DirectIo::Works(alignment) => Ok(SECTOR.max(alignment.offset_bytes.into())),
        DirectIo::Memory => Err("its files are in memory".to_owned()),
        DirectIo::Refused(error) => Err(error.to_string()),
    })
}

/// Removes what killed runs have left in a directory; says what was removed,
/// and what looks like ours and was left because it isn't surely.
///
/// # Errors
/// When the directory can't be read.
pub fn sweep(directory: &Path) -> Result<Vec<Swept>, BenchError> {
    Ok(linux::owner::sweep(directory)?)
}

/// A warning for each other trimbench that works on one of these devices.
pub(crate) fn others(devices: &[DeviceInfo]) -> Vec<Warning> {
    let sys = SysRoot::host();
    let others = owner::others(&sys);
    if others.is_empty() {
        return Vec::new();
    }
    let mounts = mounts::list(&sys).unwrap_or_default();
    let leaves = |devices: &[DeviceInfo]| -> Vec<String> {
        let leaves = devices.iter().filter(|device| device.leaf);
        leaves.map(|leaf| leaf.statistics().to_owned()).collect()
    };
    let own = leaves(devices);
    let warning = |other: Other| {
        let is_its = |mount: &&Mount| mount.device == other.device;
        let theirs = leaves(&under_mount(&sys, mounts.iter().find(is_its)?).devices);
        let device = own.iter().find(|leaf| theirs.contains(leaf))?.clone();
        let Other { pid, path, .. } = other;
        Some(Warning::Beside { pid, path, device })
    };
    others.into_iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_device_in_front_of_the_page_cache_is_named_with_what_it_hides() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("sys/class/block/loop3/loop");
        std::fs::create_dir_all(&directory).unwrap();
        let said = |dio: &str, below: &[&str]| {
            std::fs::write(directory.join("dio"), dio).unwrap();
            let device = DeviceInfo {
                name: "loop3".to_owned(),
                below: below.iter().map(|one| (*one).to_owned()).collect(),
                ..DeviceInfo::default()
            };
            let all = cached(&SysRoot::at(root.path()), &[device]);
            all.first().map(ToString::to_string)
        };
        let warning = said("0\n", &["vda"]).unwrap();
        for part in ["loop3 reads", "nothing of vda", "--direct-io=on /dev/loop3"] {
            assert!(warning.contains(part), "{warning}");
        }
        assert_eq!(said("1\n", &["vda"]), None);
        // A simulated drive, or a file in memory.
        assert_eq!(said("0\n", &[]), None);
    }
}
