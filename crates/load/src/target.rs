//! Opening what an actor works on.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::actor::Op;
use crate::error::LoadError;

/// Opens an existing file or device for an actor. It uses `O_DIRECT` when `direct`, and `O_NOATIME`
/// where the kernel allows it to this user (it saves a read some 0.2 µs).
///
/// # Errors
/// [`LoadError::NoDirect`] where the file system has no direct I/O,
/// [`LoadError::File`] otherwise.
pub fn open(path: &Path, op: Op, direct: bool) -> Result<File, LoadError> {
    let direct_flag = if direct { libc::O_DIRECT } else { 0 };
    let with = |flags: i32| {
        OpenOptions::new()
            .read(true)
            .write(op.writes())
            .custom_flags(flags)
            .open(path)
    };
    // Only the owner of a file, or root, may leave its access time alone.
    let opened = match with(direct_flag | libc::O_NOATIME) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => with(direct_flag),
        other => other,
    };
    opened.map_err(|source: io::Error| match source.raw_os_error() {
        Some(libc::EINVAL) if direct => LoadError::NoDirect {
            path: path.to_owned(),
            source,
        },
        _ => LoadError::file(path, "open it")(source),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named() {
        let error = open(Path::new("/nonexistent/file"), Op::Read, false).expect_err("missing");
        assert!(error.to_string().contains("/nonexistent/file"), "{error}");
    }

    #[test]
    fn a_file_system_without_direct_io_is_told_from_other_failures() {
        // proc has no direct I/O.
        let error = open(Path::new("/proc/version"), Op::Read, true).expect_err("no direct I/O");
        assert!(matches!(error, LoadError::NoDirect { .. }), "{error:?}");
        open(Path::new("/proc/version"), Op::Read, false).expect("readable");
    }
}
