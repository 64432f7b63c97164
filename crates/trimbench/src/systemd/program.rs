//! Whether a program is fit to be run by root.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use record::units::names::shown;

/// The mode bits that let the group or other users write.
const OTHERS_WRITE: u32 = 0o022;
/// The mode bit of a directory in which users rename and remove only their own files.
const STICKY: u32 = 0o1000;

/// Directories that the machine empties when it starts, or while it runs.
const EMPTIED: [&str; 4] = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

/// Why a program should not be run by a unit; `None` if nothing speaks against it.
pub(crate) fn unfit(program: &Path) -> Option<String> {
    untrusted(program).or_else(|| fleeting(program))
}

/// Why a program is likely to be gone one day.
fn fleeting(program: &Path) -> Option<String> {
    let emptied = EMPTIED.iter().find(|dir| program.starts_with(dir));
    if let Some(directory) = emptied {
        return Some(format!("the machine empties {directory} by itself"));
    }
    let mount = linux::mounts::Mount::of(program).ok()?;
    let in_memory = storage::FileSystem::mounted(&mount) == storage::FileSystem::Memory;
    in_memory.then(|| {
        let point = shown(&mount.mount_point);
        format!("{point} is kept in memory, and is empty after the next start")
    })
}

/// Why root should not run a program.
fn untrusted(program: &Path) -> Option<String> {
    if let Some(build) = program.ancestors().find(|dir| is_build_folder(dir)) {
        return Some(format!(
            "{} is a build folder, which the next build or `cargo clean` empties",
            shown(build)
        ));
    }
    let writable = program
        .ancestors()
        .filter_map(|path| Some((path, path.metadata().ok()?)))
        .find(|(_, found)| others_change(found));
    writable.map(|(path, _)| format!("others than root can write to {}", shown(path)))
}

/// Whether cargo has marked a directory as one it builds in. It marks the folder
/// itself only where it made it, and the one of a profile always.
fn is_build_folder(dir: &Path) -> bool {
    ["CACHEDIR.TAG", ".cargo-lock", ".fingerprint"]
        .iter()
        .any(|mark| dir.join(mark).exists())
}

/// Whether another user than root and this one can change or replace it.
fn others_change(found: &Metadata) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let shared = found.mode() & OTHERS_WRITE != 0;
    let sticky = found.is_dir() && found.mode() & STICKY != 0;
    shared && !sticky || found.uid() != 0 && found.uid() != user
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_where_the_machine_empties_is_unfit() {
        for place in ["/tmp/x/trimbench", "/var/tmp/trimbench", "/run/user/0/tb"] {
            let why = unfit(Path::new(place)).unwrap();
            assert!(why.contains("empties /"), "{place}: {why}");
        }
        assert_eq!(unfit(Path::new("/usr/bin/env")), None);
        assert_eq!(fleeting(Path::new("/tmpfs/trimbench")), None);
    }

    #[test]
    fn a_program_that_others_can_replace_is_unfit() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let program = bin.join("trimbench");
        fs::write(&program, "").unwrap();
        for (path, mode) in [(&bin, 0o755), (&program, 0o755)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(untrusted(&program), None);
        for path in [&bin, &program] {
            fs::set_permissions(path, Permissions::from_mode(0o775)).unwrap();
            let why = untrusted(&program).unwrap();
            assert!(why.ends_with(&shown(path)), "{why}");
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        for mark in ["CACHEDIR.TAG", ".cargo-lock"] {
            fs::write(directory.path().join(mark), "").unwrap();
            assert!(untrusted(&program).unwrap().contains("build folder"));
            fs::remove_file(directory.path().join(mark)).unwrap();
        }
    }
}
