//! Tables of file systems: `/etc/fstab`, `/proc/self/mountinfo` and what
//! libmount notes of mounts (`/run/mount/utab`).

use std::path::{Path, PathBuf};

use crate::mounts::{self, Mount};

/// A line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is, or would be, mounted: an absolute path, or a word such as `none`
    /// for what is mounted nowhere, as swap space.
    pub target: PathBuf,
    /// Its type; `auto` where that is found out when it is mounted.
    pub fs: String,
    /// Options, those for user space (`X-…`, `x-…`) among them.
    pub options: Vec<String>,
    /// The mount itself, in a table of what is mounted.
    pub mount: Option<Mount>,
}

/// Entries of a table in either form, with those that are mounted nowhere: a table
/// that lists only such isn't empty.
pub fn parse(text: &[u8]) -> Vec<Entry> {
    let mounted = mounts::parse(text);
    if !mounted.is_empty() {
        return mounted.into_iter().map(Entry::from).collect();
    }
    text.split(|&byte| byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

impl From<Mount> for Entry {
    fn from(mount: Mount) -> Entry {
        Entry {
            target: mount.mount_point.clone(),
            fs: mount.fs.clone(),
            options: mount.options(),
            mount: Some(mount),
        }
    }
}

/// `UUID=… /data ext4 noatime,X-fstrim.notrim 0 2` (fstab(5)).
fn parse_line(line: &[u8]) -> Option<Entry> {
    let mut fields = line
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty());
    let spec = fields.next()?;
    if spec.starts_with(b"#") {
        return None;
    }
    let target = mounts::path_from(fields.next()?);
    let fs = String::from_utf8_lossy(fields.next()?).into_owned();
    let options = fields.next().unwrap_or(b"defaults");
    Some(Entry {
        target,
        fs,
        options: String::from_utf8_lossy(options)
            .split(',')
            .map(str::to_owned)
            .collect(),
        mount: None,
    })
}

/// Options for user space that libmount noted for a mount point.
pub fn noted_options(utab: &[u8], target: &Path) -> Vec<String> {
    let line = utab.split(|&byte| byte == b'\n').rev().find(|line| {
        line.split(|&byte| byte == b' ')
            .find_map(|field| field.strip_prefix(b"TARGET="))
            .is_some_and(|found| mounts::path_from(found) == target)
    });
    line.and_then(|line| {
        line.split(|&byte| byte == b' ')
            .find_map(|field| field.strip_prefix(b"OPTS="))
    })
    .map(|options| {
        String::from_utf8_lossy(options)
            .split(',')
            .map(str::to_owned)
            .collect()
    })
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let fstab = b"# comment\n\nUUID=1 / ext4 errors=remount-ro 0 1\n\
            /dev/sdb1\t/with\\040space xfs rw,X-fstrim.notrim\nnone none swap sw 0 0\nhalf\n";
        let entries = parse(fstab);
        let targets: Vec<&Path> = entries.iter().map(|entry| entry.target.as_path()).collect();
        assert_eq!(targets, ["/", "/with space", "none"].map(Path::new));
        assert_eq!(entries[1].options, ["rw", "X-fstrim.notrim"]);
        let mounted = parse(b"27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n");
        assert_eq!(mounted[0].mount.as_ref().map(|mount| mount.id), Some(27));
        assert!(mounted[0].options.contains(&"discard".to_owned()));
        assert_eq!(parse(b""), []);
        assert_eq!(parse(b"# none none swap sw 0 0\n\n"), []);
    }

    #[test]
    fn what_libmount_noted() {
        let utab = b"SRC=/dev/sdb1 TARGET=/a ROOT=/ OPTS=uhelper=x\n\
            ID=3 SRC=/dev/sdc1 TARGET=/b\\040c ROOT=/ OPTS=X-fstrim.notrim,x-y\n";
        assert_eq!(
            noted_options(utab, Path::new("/b c")),
            ["X-fstrim.notrim", "x-y"]
        );
        assert_eq!(noted_options(utab, Path::new("/c")), [""; 0]);
    }
}
