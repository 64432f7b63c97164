//! Directories whose content this user alone decides.

use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::{getegid, geteuid};

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// Only the owner of an entry may rename or remove it.
const STICKY: u32 = 0o1000;

/// Opens a directory in which no other user may write, and which no other user may replace.
///
/// # Errors
/// `PermissionDenied`, with the reason, if another user may; otherwise the kernel's error. A symbolic
/// link is no directory.
pub fn own_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = directory.metadata()?;
    let own = geteuid().as_raw();
    let denied = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if found.uid() != own {
        return denied(format!(
            "it belongs to user {}, who could put anything in it; remove it, or give it to user {own}",
            found.uid()
        ));
    }
    if found.mode() & (GROUP_WRITES | OTHERS_WRITE) != 0 {
        return denied(format!(
            "other users may write in it (mode {:03o}); remove it, or run: chmod go-w {}",
            found.mode() & 0o777,
            record::units::names::shown(path)
        ));
    }
    let real = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))?;
    for above in real.ancestors().skip(1) {
        if others_may_rename_in(&std::fs::symlink_metadata(above)?, own) {
            return denied(format!(
                "another user could replace it, because {} isn't this user's alone",
                record::units::names::shown(above)
            ));
        }
    }
    Ok(directory)
}

fn others_may_rename_in(found: &Metadata, own: u32) -> bool {
    let trusted_group = [0, getegid().as_raw()].contains(&found.gid());
    let group = found.mode() & GROUP_WRITES != 0 && !trusted_group;
    let all = group || found.mode() & OTHERS_WRITE != 0;
    ![0, own].contains(&found.uid()) || all && found.mode() & STICKY == 0
}

/// Makes a directory for this user alone, unless it is there, and opens it. Those above it that are
/// missing are made as well; others may pass through them.
///
/// # Errors
/// As [`own_directory`].
pub fn make_own_directory(path: &Path) -> io::Result<File> {
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o711)
        .create(super::directory_of(path))?;
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    own_directory(path)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn refused(path: &Path) -> String {
        own_directory(path).unwrap_err().to_string()
    }

    #[test]
    fn a_directory_of_this_user_alone_is_opened() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a/b/c");
        make_own_directory(&path).unwrap();
        make_own_directory(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        set(&path, 0o755);
        own_directory(&path).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_change_or_replace_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a/b");
        make_own_directory(&path).unwrap();
        for mode in [0o720, 0o702, 0o777, 0o1777] {
            set(&path, mode);
            assert!(refused(&path).contains("may write in it"), "{mode:o}");
            assert!(make_own_directory(&path).is_err());
        }
        set(&path, 0o700);
        let above = base.path().join("a");
        set(&above, 0o777);
        assert!(
            refused(&path).contains("could replace it"),
            "{}",
            refused(&path)
        );
        set(&above, 0o1777);
        own_directory(&path).unwrap();
        set(&above, 0o755);
        let link = base.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(own_directory(&link).is_err() && make_own_directory(&link).is_err());
        fs::write(base.path().join("file"), "").unwrap();
        assert!(own_directory(&base.path().join("file")).is_err());
        if testkit::gate::lacks(&[testkit::gate::Need::Root]) {
            return;
        }
        chown(&path, Some(65534), None).unwrap();
        assert!(refused(&path).contains("belongs to user 65534"));
        chown(&path, Some(0), None).unwrap();
        chown(&above, Some(65534), None).unwrap();
        assert!(refused(&path).contains("could replace it"));
    }
}
