//! Unmounting and mounting a file system, so that nothing of it is left in memory.

use std::path::PathBuf;
use std::process::Command;

use linux::mounts::Mount;
use record::units::names::shown;

use crate::verify::error::VerifyError;
use crate::verify::place::Surveyed;

/// A mount, and how to make it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    source: String,
    fs: String,
    options: String,
    mount_point: PathBuf,
}

/// The mount of a place, or why it can't be made anew.
pub(crate) fn target(surveyed: &Surveyed) -> Result<Target, String> {
    let Some(mount) = &surveyed.mount else {
        return Err("it is a raw device".to_owned());
    };
    if !rustix::process::geteuid().is_root() {
        return Err("that needs root".to_owned());
    }
    if !mount.source.starts_with("/dev/") {
        return Err(format!("{} is no device", mount.source));
    }
    Ok(of(mount))
}

fn of(mount: &Mount) -> Target {
    let mut options = mount.mount_options.clone();
    options.extend(mount.super_options.iter().cloned());
    options.dedup();
    Target {
        source: mount.source.clone(),
        fs: mount.fs.clone(),
        options: options.join(","),
        mount_point: mount.mount_point.clone(),
    }
}

/// Unmounts and mounts. Returns why not, where it is still mounted as it was.
///
/// # Errors
/// Where it is unmounted and can't be mounted again.
pub(crate) fn remount(target: &Target) -> Result<Result<(), String>, VerifyError> {
    let mut unmount = Command::new("umount");
    unmount.arg(&target.mount_point);
    if let Err(why) = run(unmount) {
        return Ok(Err(why));
    }
    let mut mount = Command::new("mount");
    mount
        .args(["-t", &target.fs, "-o", &target.options, &target.source])
        .arg(&target.mount_point);
    run(mount).map(Ok).map_err(|why| {
        VerifyError::Failed(format!(
            "{} is unmounted and can't be mounted again: {why}; mount it with: mount -t {} -o {} \
             {} {}",
            shown(&target.mount_point),
            target.fs,
            target.options,
            target.source,
            shown(&target.mount_point)
        ))
    })
}

fn run(mut command: Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
