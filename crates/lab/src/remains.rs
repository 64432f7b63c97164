//! Finds all that the kernel still has of a laboratory's drives.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use linux::SysRoot;

use record::units::names;

use crate::group;
use crate::lab::Lab;
use crate::place::devices_of;

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
