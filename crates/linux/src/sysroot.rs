//! Where `/proc`, `/sys` and `/dev` are, so that tests can show a tree that
//! another machine had.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::mounts::DeviceNumber;

/// The directory that holds `proc`, `sys` and `dev`: `/` on a real machine.
#[derive(Debug, Clone)]
pub struct SysRoot {
    root: PathBuf,
}

impl SysRoot {
    /// This machine.
    pub fn host() -> Self {
        SysRoot {
            root: PathBuf::from("/"),
        }
    }

    /// A recorded tree below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        SysRoot { root: root.into() }
    }

    /// Whether this is the running machine rather than a recorded tree.
    pub fn is_host(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The real place of an absolute path such as `/proc/swaps`.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.root
            .join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The text of a file given by its absolute path.
    pub fn text(&self, absolute: impl AsRef<Path>) -> io::Result<String> {
        text(&self.path(absolute))
    }

    /// The text of a file without the space around it; `None` if there is none.
    pub fn line(&self, absolute: impl AsRef<Path>) -> Option<String> {
        line(&self.path(absolute))
    }

    /// An attribute of a block device, e.g. `queue/iostats` of `sda`.
    pub fn attribute(&self, device: &str, file: &str) -> Option<String> {
        line(&self.class(device).join(file))
    }

    /// The kernel names of all block devices, in order.
    pub fn devices(&self) -> Vec<String> {
        devices_in(&self.path("/sys/class/block"))
    }

    /// Kernel name of the block device with this number, e.g. `nvme0n1p2`.
    pub fn device_name(&self, number: DeviceNumber) -> Option<String> {
        let link = self.path(format!("/sys/dev/block/{number}"));
        let target = fs::canonicalize(link).ok()?;
        Some(device_name(target.file_name()?))
    }

    /// Kernel name of the block device that a path such as `/dev/mapper/x`
    /// leads to; `None` when it leads to something else.
    pub fn device_at(&self, path: impl AsRef<Path>) -> Option<String> {
        let real = fs::canonicalize(self.path(path)).ok()?;
        let metadata = fs::metadata(&real).ok()?;
        if metadata.file_type().is_block_device() {
            return self.device_name(DeviceNumber::from_raw(metadata.rdev()));
        }
        if self.is_host() {
            return None;
        }
        // A recorded tree has plain files for devices.
        let dev = fs::canonicalize(self.path("/dev")).ok()?;
        let name = real.strip_prefix(dev).ok()?.to_str()?;
        self.class(name)
            .join("dev")
            .exists()
            .then(|| name.to_owned())
    }

    /// The directory of a block device by its kernel name.
    pub fn class(&self, name: &str) -> PathBuf {
        self.path("/sys/class/block").join(directory_name(name))
    }
}

/// The text of a file of `/proc` or `/sys`, up to its first NUL. `tar` pads copies of files of
/// `/sys` with NULs, because the kernel gives such files the size of a page.
///
/// # Errors
/// Those of reading the file.
pub fn text(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    let end = bytes.iter().position(|byte| *byte == 0);
    Ok(String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned())
}

/// The text of a file without the space around it; `None` if there is none.
pub fn line(path: &Path) -> Option<String> {
    let text = text(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The number in a file; `None` if there is none.
pub fn number<T: FromStr>(path: &Path) -> Option<T> {
    line(path)?.parse().ok()
}

/// The rest of the first line that begins with `key`, without the space around it.
pub fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key));
    rest.map(str::trim)
}

/// The names in a directory, in order; none if it can't be read.
pub fn entries(directory: &Path) -> Vec<String> {
    let all = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = all
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The kernel names of the devices that have an entry in a directory, in order.
pub fn devices_in(directory: &Path) -> Vec<String> {
    let names = entries(directory).into_iter();
    names.map(|name| name.replace('!', "/")).collect()
}

/// The name of a device's directory in `/sys`: that of `cciss/c0d0` is `cciss!c0d0`.
pub fn directory_name(device: &str) -> String {
    device.replace('/', "!")
}

/// A device's name from that of its directory, in which the kernel writes '/' as '!'.
pub fn device_name(directory: &std::ffi::OsStr) -> String {
    directory.to_string_lossy().replace('!', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_the_first_nul() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("padded"), b"4096\n\0\0\0\0").unwrap();
        let sys = SysRoot::at(root.path());
        assert_eq!(sys.text("/padded").unwrap(), "4096\n");
    }
}
