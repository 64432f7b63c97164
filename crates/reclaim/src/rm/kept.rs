//! Which subvolumes of btrfs are not deleted.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use linux::mounts::Mount;
use linux::subvolume::{Kept, Subvolume};
use record::units::names::quoted;

use crate::directory;

/// Returns why a subvolume is not deleted, if `btrfs subvolume delete` would refuse it, or would leave
/// a mount without its files. `parent`: the open directory that it is in. `has_mounts`: something is
/// mounted in it.
pub(super) fn kept(
    subvolume: &Subvolume,
    parent: BorrowedFd<'_>,
    has_mounts: bool,
) -> Option<String> {
    if let Some(mount) = mounted(subvolume, parent) {
        let mount = quoted(mount);
        return Some(format!(
            "the subvolume is mounted at {mount}: unmount it first"
        ));
    }
    if has_mounts {
        return Some("something is mounted in the subvolume: unmount that first".to_owned());
    }
    let on = directory::reopen(parent).ok()?;
    match subvolume.kept(on).ok()?? {
        Kept::Contains(name) => {
            let name = quoted(name);
            Some(format!(
                "it contains the subvolume {name}: remove that first"
            ))
        }
        Kept::Default => Some(
            "it is the default subvolume: choose another first (btrfs subvolume set-default)"
                .to_owned(),
        ),
    }
}

/// Returns where a subvolume of the file system of an open directory is mounted, or a part of it.
fn mounted(subvolume: &Subvolume, on: BorrowedFd<'_>) -> Option<PathBuf> {
    let own = Mount::of(format!("/proc/self/fd/{}", on.as_raw_fd())).ok()?;
    let option = format!("subvolid={}", subvolume.id);
    let mounts = linux::mounts::list(&linux::SysRoot::host()).ok()?;
    let mut mounts = mounts.into_iter();
    mounts
        .find(|mount| mount.device == own.device && mount.super_options.contains(&option))
        .map(|mount| mount.mount_point)
}
