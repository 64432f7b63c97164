//! The devices that are watched.

use std::path::{Path, PathBuf};

use linux::SysRoot;
use linux::mounts::DeviceNumber;
use record::units::names;
use record::{DeviceInfo, Target};
use storage::disks::Disks;
use storage::{TargetError, devices};

/// The devices that are watched, whole ones, and what they are below.
#[derive(Debug, Clone, PartialEq)]
pub struct Targets {
    /// The target of a record.
    pub target: Target,
    /// The devices, those on top first. Partitions stand for their drives.
    pub devices: Vec<DeviceInfo>,
    /// Whether they were named; else devices that appear later are watched, too.
    pub named: bool,
}

/// Why nothing can be watched.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TargetsError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(
        "no block device is below {}; name a path on one, or a device",
        names::shown(_0)
    )]
    NoDevice(PathBuf),
}

impl Targets {
    /// The devices below some paths, which may be devices themselves; of none all devices of the
    /// machine that take discards.
    ///
    /// # Errors
    /// When a path can't be examined, or no block device is below it.
    pub fn of(sys: &SysRoot, disks: &Disks, paths: &[PathBuf]) -> Result<Targets, TargetsError> {
        let mut found = Targets {
            target: Target::default(),
            devices: Vec::new(),
            named: !paths.is_empty(),
        };
        for path in paths {
            let described = describe(path)?;
            let before = found.devices.len();
            for device in &described.devices {
                let drive = device
                    .drive
                    .as_ref()
                    .map_or(&device.name, |drive| &drive.name);
                found.add(sys, drive, device.level, device.leaf);
            }
            if described.devices.is_empty() {
                return Err(TargetsError::NoDevice(path.clone()));
            }
            if before == 0 {
                found.target = described.target;
            }
        }
        if paths.is_empty() {
            for (_, name) in present(sys, disks) {
                let leaf =
                    devices::under_device(sys, &name).is_ok_and(|tree| tree.devices.len() == 1);
                found.add(sys, &name, 0, leaf);
            }
        }
        Ok(found)
    }

    fn add(&mut self, sys: &SysRoot, name: &str, level: u32, leaf: bool) {
        if let Some(known) = self.devices.iter_mut().find(|one| one.name == name) {
            known.level = known.level.min(level);
            known.leaf |= leaf;
            return;
        }
        let tree = devices::under_device(sys, name).ok();
        let own = tree.and_then(|tree| tree.devices.into_iter().next());
        self.devices
            .extend(own.map(|own| DeviceInfo { level, leaf, ..own }));
    }
}

/// The whole devices that take discards and hold something: not loop devices without a file.
pub(super) fn present(sys: &SysRoot, disks: &Disks) -> Vec<(DeviceNumber, String)> {
    let is_empty = |name: &str| sys.attribute(name, "size").as_deref() == Some("0");
    let mut all = disks.with_discard(sys);
    all.retain(|(_, name)| !is_empty(name));
    all
}

fn describe(path: &Path) -> Result<storage::Description, TargetError> {
    use std::os::unix::fs::FileTypeExt;
    let path = by_name(path);
    let device = std::fs::metadata(&path).is_ok_and(|found| found.file_type().is_block_device());
    match device {
        true => storage::describe_device(path),
        false => storage::describe(path),
    }
}

/// The path: a plain name such as `sda` is a device, unless there is such a file.
pub(crate) fn by_name(path: &Path) -> PathBuf {
    let named = Path::new("/dev").join(path);
    match !path.exists() && named.exists() {
        true => named,
        false => path.to_owned(),
    }
}
