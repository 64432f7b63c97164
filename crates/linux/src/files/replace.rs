//! A small file that is replaced whole.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// How the random name of a new file begins.
const BEGIN: &str = ".replacing-";
/// Names that are tried for a new file: each is random.
const TRIES: usize = 16;

/// Replaces a file by a new one with these bytes. A reader sees the old one or the new one, and the
/// new one is on the disk when this returns. `mode` is that of the new file, less the umask.
///
/// # Errors
/// The kernel's error. Then the old file is still there.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    replace_with(path, mode, |file| {
        file.write_all(bytes)?;
        file.sync_all()
    })?;
    File::open(directory_of(path))?.sync_all()
}

/// Returns what a user can do about a file that could not be written.
pub fn after_failed_write(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space there or give another file"
        }
        io::ErrorKind::NotFound => "make its directory or give another file",
        _ => "give another file",
    }
}

/// Replaces a file by a new one that `write` fills, and waits for no disk.
///
/// The new file has no name while `write` runs. Where a file system can't do that, it has a random
/// name beside the old one. A link that another user planted there is never followed.
///
/// # Errors
/// The kernel's error, or that of `write`. Then the old file is still there.
pub fn replace_with(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let name = path.file_name().ok_or(Errno::ISDIR)?;
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory_of(path), flags, Mode::empty())?;
    let mode = Mode::from_raw_mode(mode);
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let (mut file, named) = match openat(&directory, ".", flags, mode) {
        Ok(file) if std::fs::metadata(own_path(&file)).is_ok() => (File::from(file), None),
        Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
            let (file, name) = under_a_random_name(|name| create(&directory, name, mode))?;
            (File::from(file), Some(name))
        }
        Err(errno) => return Err(errno.into()),
    };
    let written = write(&mut file);
    let beside = match (&written, named) {
        (_, Some(name)) => name,
        (Ok(()), None) => under_a_random_name(|name| link(&file, &directory, name))?.1,
        (Err(_), None) => return written,
    };
    let placed = written.and_then(|()| Ok(renameat(&directory, &*beside, &directory, name)?));
    if placed.is_err() {
        let _ = unlinkat(&directory, &*beside, AtFlags::empty());
    }
    placed
}

fn create(directory: &OwnedFd, name: &str, mode: Mode) -> rustix::io::Result<OwnedFd> {
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    openat(
        directory,
        name,
        new | OFlags::WRONLY | OFlags::CLOEXEC,
        mode,
    )
}

/// Gives a file that has no name one.
fn link(file: &File, directory: &OwnedFd, name: &str) -> rustix::io::Result<()> {
    linkat(
        CWD,
        own_path(file),
        directory,
        name,
        AtFlags::SYMLINK_FOLLOW,
    )
}

/// The path in `/proc` of a file that this process has open.
fn own_path(file: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Does something with a random name that nothing has yet.
fn under_a_random_name<T>(
    make: impl Fn(&str) -> rustix::io::Result<T>,
) -> rustix::io::Result<(T, String)> {
    for _ in 0..TRIES {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = format!("{BEGIN}{:016x}", u64::from_ne_bytes(random));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return Ok((made?, name)),
        }
    }
    Err(Errno::EXIST)
}

/// Removes the new files that killed processes left in a directory in which nobody replaces a file.
///
/// # Errors
/// The kernel's error. A directory that is missing is none.
pub fn remove_unfinished(directory: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(BEGIN.as_bytes())
        {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Returns the directory that holds a path's last name: the current one of a name alone.
pub fn directory_of(path: &Path) -> &Path {
    let named = |parent: &&Path| !parent.as_os_str().is_empty();
    path.parent().filter(named).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("one.text");
        let names = || fs::read_dir(directory.path()).unwrap().count();
        for text in ["first", "second"] {
            replace(&path, text.as_bytes(), 0o600).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(
                fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
            assert_eq!(names(), 1);
        }
        let failed = replace_with(&path, 0o600, |file| {
            file.write_all(b"half of")?;
            Err(Errno::NOSPC.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), names()),
            ("second".to_owned(), 1)
        );
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"third", 0o600).is_err());
        assert_eq!(names(), 1, "nothing is left of it");
    }

    #[test]
    fn a_planted_link_is_replaced_and_never_written_through() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("precious"), "precious").unwrap();
        let path = at("one.prom");
        let pid = std::process::id();
        let planted = [
            "one.prom".to_owned(),
            "one.new".to_owned(),
            format!("one.prom.{pid}.tmp"),
        ];
        for name in &planted {
            symlink(at("precious"), at(name)).unwrap();
        }
        replace(&path, b"figures", 0o644).unwrap();
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "precious");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read_to_string(&path).unwrap(), "figures");
        for name in &planted[1..] {
            assert!(
                fs::symlink_metadata(at(name)).unwrap().is_symlink(),
                "{name}"
            );
        }
    }

    #[test]
    fn a_name_that_exists_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory.path(), flags, Mode::empty()).unwrap();
        let precious = directory.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        symlink(&precious, directory.path().join("planted")).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        assert_eq!(create(&opened, "planted", mode).unwrap_err(), Errno::EXIST);
        let file = File::open(&precious).unwrap();
        assert_eq!(link(&file, &opened, "planted").unwrap_err(), Errno::EXIST);
    }

    #[test]
    fn only_a_full_disk_is_answered_with_free_space() {
        let after = |errno: Errno| after_failed_write(&errno.into());
        assert!(after(Errno::DQUOT).starts_with("free space"));
        assert!(after(Errno::NOENT).starts_with("make its directory"));
        assert_eq!(after(Errno::ACCESS), "give another file");
    }
}
