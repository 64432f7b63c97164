//! Finding dead drives and taking them down.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use linux::SysRoot;
use record::units::names;

use crate::down::{self, Down};
use crate::error::LabError;
use crate::lab::Lab;
use crate::place::{Place, devices_of};
use crate::{group, lock};

/// A dead drive that was found.
#[derive(Debug)]
pub struct Swept {
    /// Its name.
    pub name: String,
    /// Whether it was ready once. If so, its server was killed; otherwise the process that made it.
    pub was_made: bool,
    /// Whether it is down now.
    pub outcome: Result<(), LabError>,
}

impl Lab {
    /// Takes down every drive that is dead: its server has died, or it was never made to its end. A
    /// drive that works, that hangs, or that a process is making or taking down isn't touched.
    ///
    /// The guardians do that at once. This is for the case that they were killed as well.
    ///
    /// # Errors
    /// If the drives can't be listed.
    pub fn sweep(&self) -> Result<Vec<Swept>, LabError> {
        let names = self.names()?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let root = lock::directory(self.root());
        // Nobody makes a directory now, so one without a hold isn't a new one.
        let root = root.map_err(LabError::io("cannot lock", self.root()))?;
        let mut swept = Vec::new();
        let mut held = Vec::new();
        for name in names {
            let place = self.new_place(&name)?;
            match lock::lock_if_free(&place.hold()) {
                Ok(Some(hold)) if place.is_dead() => held.push((place, hold)),
                Err(error)
                    if error.kind() == ErrorKind::NotFound
                        && place.is_there()
                        && place.server_pid().is_none() =>
                {
                    swept.push(take_down(&place));
                }
                _ => {}
            }
        }
        drop(root);
        swept.extend(held.iter().map(|(place, _hold)| take_down(place)));
        Ok(swept)
    }
}

fn take_down(place: &Place) -> Swept {
    Swept {
        name: place.name(),
        was_made: place.is_made(),
        outcome: down::take_down(place, Down::ByForce, down::SOON),
    }
}

// Finds all that the kernel still has of a laboratory's drives.

impl Lab {
    /// Returns the mounts, loop devices, processes, cgroups, sockets and directories of drives,
    /// each with its place. There are none when everything is down. Memory needs no look of its
    /// own: a drive's data are its server's, and end with it.
    pub fn remains(&self) -> Vec<String> {
        let root = self.root();
        let devices = devices_of(|file| file.starts_with(root));
        let mut all = mounts(root, &devices);
        let device = |d: &PathBuf| format!("the loop device {}", names::shown(d));
        all.extend(devices.iter().map(device));
        all.extend(processes(root));
        let cgroup = |d: PathBuf| format!("the cgroup {}", names::shown(&d));
        all.extend(group::remaining(root).into_iter().map(cgroup));
        all.extend(sockets(root));
        let names = self.names().unwrap_or_default().into_iter();
        all.extend(names.map(|name| format!("the directory {}", names::shown(root.join(name)))));
        all
    }
}

fn mounts(root: &Path, devices: &[PathBuf]) -> Vec<String> {
    let mounts = linux::mounts::list(&SysRoot::host()).unwrap_or_default();
    let ours = mounts.into_iter().filter(|mount| {
        let of_device = |d: &PathBuf| d.as_path() == Path::new(&mount.source);
        // The laboratory itself may be a mount.
        mount.mount_point.starts_with(root) && mount.mount_point != root
            || devices.iter().any(of_device)
    });
    ours.map(|mount| format!("a mount on {}", names::shown(&mount.mount_point)))
        .collect()
}

/// Servers and guardians: their last argument is a directory in the laboratory.
fn processes(root: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let last = line.strip_suffix(b"\0")?.rsplit(|&b| b == 0).next()?;
            let last = Path::new(std::ffi::OsStr::from_bytes(last));
            let ours = last.parent() == Some(root) && pid != std::process::id();
            ours.then(|| format!("process {pid} of {}", names::shown(last)))
        })
        .collect()
}

fn sockets(root: &Path) -> Vec<String> {
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let paths = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7));
    paths
        .filter(|path| Path::new(path).starts_with(root))
        .map(|path| format!("the socket {path}"))
        .collect()
}
