//! A small file that is replaced whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file aside, as `.new`, and renames it: there is always a whole one, and it is
/// on the disk when this returns. `mode`: who may do what with it, less the umask.
///
/// # Errors
/// The kernel's error; then the old one is there still.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let aside = path.with_extension("new");
    // What was left by one that was killed in the middle.
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&aside)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written?;
    File::open(directory_of(path))?.sync_all()
}

/// Returns the directory that holds a path's last name: the current one of a name alone.
pub fn directory_of(path: &Path) -> &Path {
    let named = |parent: &&Path| !parent.as_os_str().is_empty();
    path.parent().filter(named).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_alone_whatever_was_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("one.text");
        let names = || fs::read_dir(directory.path()).unwrap().count();
        fs::write(path.with_extension("new"), "half of").unwrap();
        for text in ["first", "second"] {
            replace(&path, text.as_bytes(), 0o600).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(), 1);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(replace(&path, b"third", 0o600).is_err());
        assert_eq!(names(), 1, "nothing is left of it");
    }
}
