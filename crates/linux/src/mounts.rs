//! The mount a path is on.
//!
//! A path is matched to its mount by the mount's identifier and not by `st_dev`. btrfs gives every
//! subvolume a device number of its own that `mountinfo` doesn't show, and a bind mount shares its
//! number with others.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::SysRoot;
use record::units::names;

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// A device number as the kernel prints it, `major:minor`.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct DeviceNumber {
    /// The driver.
    pub major: u32,
    /// The device of that driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// From the `dev_t` that `stat` returns.
    pub fn from_raw(dev: u64) -> Self {
        DeviceNumber {
            major: rustix::fs::major(dev),
            minor: rustix::fs::minor(dev),
        }
    }

    /// From text such as `254:0`.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }

    /// Whether no block device stands behind it (tmpfs, btrfs, overlay, network).
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// One mount: a line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's identifier, unique while the mount lives.
    pub id: u64,
    /// Number of the device; anonymous (major 0) where no single device is mounted.
    pub device: DeviceNumber,
    /// The directory of the file system that is visible here; not `/` for bind mounts and subvolumes.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// The mounted device or name, e.g. `/dev/sda2`.
    pub source: String,
    /// File-system type, e.g. `ext4`.
    pub fs: String,
    /// Options of this mount alone, e.g. `noatime`.
    pub mount_options: Vec<String>,
    /// Options of the file system, the same for all its mounts, e.g. `discard`, which is
    /// here also where ext4 has it by default.
    pub super_options: Vec<String>,
}

/// Why the mount of a path is unknown.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum MountError {
    #[error("cannot open {path}: {source}", path = names::shown(path))]
    Path { path: PathBuf, source: io::Error },
    #[error("cannot read the list of mounts {path}: {source}; is /proc mounted?", path = names::shown(path))]
    List { path: PathBuf, source: io::Error },
    #[error(
        "the mount that holds {path} is not listed in /proc/self/mountinfo; it may lie outside this container", path = names::shown(path))]
    NotListed { path: PathBuf },
}

impl Mount {
    /// The mount that holds `path` on this machine.
    pub fn of(path: impl AsRef<Path>) -> Result<Mount, MountError> {
        Mount::of_in(&SysRoot::host(), path)
    }

    /// The mount that holds `path`. In a recorded tree the path isn't opened:
    /// the mount with the longest fitting mount point is taken.
    pub fn of_in(sys: &SysRoot, path: impl AsRef<Path>) -> Result<Mount, MountError> {
        let path = path.as_ref();
        let not_listed = || MountError::NotListed {
            path: path.to_path_buf(),
        };
        let id = if sys.is_host() {
            Some(id_at(path)?)
        } else {
            None
        };
        let mounts = list(sys)?;
        match id {
            Some(id) => mounts.into_iter().find(|mount| mount.id == id),
            None => longest_prefix(mounts, path),
        }
        .ok_or_else(not_listed)
    }

    /// All options, the mount's before the file system's, without repetitions.
    pub fn options(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for option in self.mount_options.iter().chain(&self.super_options) {
            if !all.contains(option) {
                all.push(option.clone());
            }
        }
        all
    }

    /// Whether nothing can be written, be it for the mount's or the file system's sake.
    pub fn read_only(&self) -> bool {
        self.mount_options
            .iter()
            .chain(&self.super_options)
            .any(|option| option == "ro")
    }

    /// The value of a file-system option: `Some("")` for one without a value.
    pub fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options.iter().rev().find_map(|option| {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            (key == name).then_some(value)
        })
    }
}

/// All mounts that this process sees.
pub fn list(sys: &SysRoot) -> Result<Vec<Mount>, MountError> {
    let path = sys.path(MOUNTINFO);
    let text = std::fs::read(&path).map_err(|source| MountError::List { path, source })?;
    let mut mounts = parse(&text);
    let mut defaults = HashMap::new();
    for mount in &mut mounts {
        let says = ["discard", "nodiscard"]
            .iter()
            .any(|option| mount.super_option(option).is_some());
        if !says {
            let device = mount.device;
            let by_default = defaults
                .entry(device)
                .or_insert_with(|| discards_by_superblock(sys, device));
            if *by_default {
                mount.super_options.push("discard".to_owned());
            }
        }
    }
    Ok(mounts)
}

/// Whether ext4 sends discards because of its superblock (`tune2fs -o discard`). Then `mountinfo`
/// lists no option, as it is the default there (Linux 6.12, `_ext4_show_options` in
/// fs/ext4/super.c). The list of all options of that device does.
fn discards_by_superblock(sys: &SysRoot, device: DeviceNumber) -> bool {
    let options = sys
        .device_name(device)
        .and_then(|name| sys.text(format!("/proc/fs/ext4/{name}/options")).ok());
    options.is_some_and(|text| text.lines().any(|option| option == "discard"))
}

/// Parses the text of `mountinfo`. Lines that don't have its form are left out.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&byte| byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

/// `36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/x rw,discard`
/// (Linux, Documentation/filesystems/proc.rst, section 3.5).
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ').filter(|f| !f.is_empty());
    let mut text = || Some(String::from_utf8_lossy(&unescape(fields.next()?)).into_owned());
    let id = text()?.parse().ok()?;
    let _parent = text()?;
    let device = DeviceNumber::parse(&text()?)?;
    let root = path_from(fields.next()?);
    let mount_point = path_from(fields.next()?);
    let mount_options = options_from(fields.next()?);
    fields.find(|&field| field == b"-")?; // the optional fields end with a lone dash
    let fs = String::from_utf8_lossy(fields.next()?).into_owned();
    // The source may be empty, and then the field is missing altogether.
    let rest: Vec<&[u8]> = fields.collect();
    let (source, super_options) = match rest[..] {
        [source, options, ..] => (
            String::from_utf8_lossy(&unescape(source)).into_owned(),
            options,
        ),
        [options] => (String::new(), options),
        [] => return None,
    };
    Some(Mount {
        id,
        device,
        root,
        mount_point,
        source,
        fs,
        mount_options,
        super_options: options_from(super_options),
    })
}

/// A path as `/proc` writes it: a space, a tab, a line feed and a backslash are octal there.
pub fn path_from(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

fn options_from(field: &[u8]) -> Vec<String> {
    // Split first: an escaped comma belongs to its option.
    field
        .split(|&byte| byte == b',')
        .map(|option| String::from_utf8_lossy(&unescape(option)).into_owned())
        .collect()
}

/// Turns the kernel's octal escapes (`\040` for a space) back into bytes.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        match rest {
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                tail @ ..,
            ] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

/// The later of two equally long mount points is the one on top.
fn longest_prefix(mounts: Vec<Mount>, path: &Path) -> Option<Mount> {
    mounts
        .into_iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.components().count())
}

/// The mount's identifier, as `/proc/self/fdinfo` tells it for an open path (Linux ≥ 3.15).
///
/// # Errors
/// When the path or its identifier cannot be read.
pub fn id_at(path: &Path) -> Result<u64, MountError> {
    let failed = |source: io::Error| MountError::Path {
        path: path.to_path_buf(),
        source,
    };
    let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| failed(errno.into()))?;
    let info = PathBuf::from(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
    let text =
        std::fs::read_to_string(&info).map_err(|source| MountError::List { path: info, source })?;
    text.lines()
        .find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
        .ok_or_else(|| MountError::NotListed {
            path: path.to_path_buf(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resv_strict
30 25 0:27 / /dev/shm rw,relatime shared:4 - tmpfs tmpfs rw,size=24684092k
42 30 7:0 / /mnt/a\\040b\\134c rw,noatime shared:9 master:2 - xfs /dev/loop0 rw,discard,inode64
43 30 0:39 /@home/user /home rw,relatime - btrfs /dev/mapper/vg-x rw,ssd,discard=async,subvolid=5,subvol=/@home
44 27 254:0 /srv/data /bind ro,nosuid - ext4 /dev/vda rw,discard
45 27 0:44 / /empty rw - tmpfs  rw
nonsense
";

    #[test]
    fn reads_every_form_of_line() {
        let mounts = parse(TEXT.as_bytes());
        assert_eq!(mounts.len(), 6);
        assert_eq!(mounts[0].mount_point, Path::new("/"));
        assert_eq!(
            mounts[0].options(),
            ["rw", "relatime", "discard", "resv_strict"]
        );
        assert_eq!(mounts[1].source, "tmpfs");
        assert!(mounts[1].device.is_anonymous());
        assert_eq!(mounts[2].mount_point, Path::new("/mnt/a b\\c"));
        assert_eq!(mounts[2].device, DeviceNumber { major: 7, minor: 0 });
        assert_eq!(mounts[3].root, Path::new("/@home/user"));
        assert_eq!(mounts[3].super_option("discard"), Some("async"));
        assert!(mounts[4].read_only() && !mounts[0].read_only());
        assert_eq!(
            (mounts[5].source.as_str(), mounts[5].fs.as_str()),
            ("", "tmpfs")
        );
    }

    #[test]
    fn the_longest_mount_point_wins() {
        let of = |path: &str| {
            longest_prefix(parse(TEXT.as_bytes()), Path::new(path))
                .unwrap()
                .id
        };
        assert_eq!(of("/bind/x"), 44);
        assert_eq!(of("/bindings"), 27);
        assert_eq!(of("/dev/shm/x"), 30);
    }

    #[test]
    fn finds_the_mounts_of_this_machine() {
        assert_eq!(Mount::of("/proc/self").unwrap().fs, "proc");
        let missing = Mount::of("/no/such/path").unwrap_err();
        assert!(missing.to_string().contains("/no/such/path"), "{missing}");
    }

    proptest! {
        #[test]
        fn any_path_survives_the_kernels_escapes(path in proptest::collection::vec(1u8.., 0..40)) {
            let escaped: Vec<u8> = path.iter().flat_map(|&b| match b {
                b' ' | b'\t' | b'\n' | b'\\' | b'#' => format!("\\{b:03o}").into_bytes(),
                _ => vec![b],
            }).collect();
            prop_assert_eq!(unescape(&escaped), path);
        }

        #[test]
        fn no_text_panics(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            parse(&text);
        }
    }
}
