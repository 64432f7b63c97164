//! Files that are mounted by themselves, here or in a container.
//!
//! A bind mount of a single file (`mount --bind FILE …`, `docker run -v FILE:…`) keeps it when its
//! last name is removed, as an open descriptor does. But no process needs to have it open for that,
//! so neither a link count nor a lease shows it. Mounts alone tell: those of all mount namespaces
//! that some process is in, for each process tells of its own.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Stat, StatxFlags};

use crate::mounts::{self, Mount, MountError};

/// Of each process at first so much of its mounts is read: the number of the first, which tells
/// whether they were read already. The kernel writes no more lines than it is asked for.
const FIRST: usize = 16;

/// The suffix of the path of a file that has no name any more.
const DELETED: &str = "//deleted";

/// The files of one file system that mounts show by themselves.
#[derive(Debug, Default)]
pub struct MountedFiles {
    /// By `st_dev` and inode number.
    files: HashSet<(u64, u64)>,
}

impl MountedFiles {
    /// As it is now, on the file system of an open directory or file.
    ///
    /// # Errors
    /// When the mounts of this process can't be read.
    pub fn now(on: BorrowedFd<'_>) -> Result<MountedFiles, MountError> {
        let device = Mount::of(format!("/proc/self/fd/{}", on.as_raw_fd()))?.device;
        let of_device = |text: &[u8]| -> Vec<Mount> {
            let all = mounts::parse(text).into_iter();
            all.filter(|mount| mount.device == device).collect()
        };
        let own = PathBuf::from("/proc/self");
        let (_, text) = read_new(&own, &HashSet::new())
            .map_err(|source| {
                let path = own.join("mountinfo");
                MountError::List { path, source }
            })?
            .unwrap_or_default();
        let here = of_device(&text);
        let mut seen: HashSet<u64> = first_id(&text).into_iter().collect();
        let mut files = HashSet::new();
        add(&mut files, &own, &here, &here);
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = process.file_name();
            let is_process = name.to_str().is_some_and(|n| n.parse::<u32>().is_ok());
            // One that has ended meanwhile keeps nothing.
            if is_process && let Ok(Some((id, text))) = read_new(&process.path(), &seen) {
                seen.insert(id);
                add(&mut files, &process.path(), &of_device(&text), &here);
            }
        }
        Ok(MountedFiles { files })
    }

    /// Whether a file is among them.
    pub fn has(&self, file: &Stat) -> bool {
        self.files.contains(&(file.st_dev, file.st_ino))
    }
}

/// The mounts that a process sees, with the number of the first, unless they were seen.
fn read_new(process: &Path, seen: &HashSet<u64>) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut file = File::open(process.join("mountinfo"))?;
    let mut text = vec![0; FIRST];
    let length = file.read(&mut text)?;
    text.truncate(length);
    let Some(id) = first_id(&text).filter(|id| !seen.contains(id)) else {
        return Ok(None);
    };
    file.read_to_end(&mut text)?;
    Ok(Some((id, text)))
}

/// Numbers of mounts are the whole machine's: two lists that begin with the same are the same.
fn first_id(text: &[u8]) -> Option<u64> {
    let word = text.split(|&byte| byte == b' ').next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Adds the files among what a process's mounts show; `here`: ours, of the same file system.
fn add(files: &mut HashSet<(u64, u64)>, process: &Path, mounts: &[Mount], here: &[Mount]) {
    for mount in mounts.iter().filter(|mount| mount.root != Path::new("/")) {
        let place = mount.mount_point.strip_prefix("/").unwrap_or(Path::new(""));
        // As the process sees it; where something else is mounted over it, or we may not look
        // there, by its own name here. Who can reach neither could not have named it to us.
        let shown = at(&process.join("root").join(place), mount.id);
        if let Some(file) = shown.or_else(|| by_name(mount, here)) {
            files.insert(file);
        }
    }
}

/// The file that a mount shows, by the name that it has on its file system.
fn by_name(mount: &Mount, here: &[Mount]) -> Option<(u64, u64)> {
    let root = mount
        .root
        .to_str()
        .filter(|root| !root.ends_with(DELETED))?;
    here.iter().find_map(|other| {
        let below = Path::new(root).strip_prefix(&other.root).ok()?;
        at(&other.mount_point.join(below), other.id)
    })
}

/// Device and inode of a file, if that is what a path leads to on this mount.
fn at(path: &Path, mount: u64) -> Option<(u64, u64)> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID;
    let found = rustix::fs::statx(CWD, path, flags, wanted).ok()?;
    let kind = FileType::from_raw_mode(u32::from(found.stx_mode));
    let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
    // Linux before 5.8 doesn't tell: then nothing is taken to be mounted over it.
    let told = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    let is_there = !told || found.stx_mnt_id == mount;
    (is_there && kind == FileType::RegularFile).then_some((device, found.stx_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_known_by_their_first_number() {
        assert_eq!(
            first_id(b"27 1 254:0 / / rw - ext4 /dev/vda rw\n"),
            Some(27)
        );
        assert_eq!(first_id(b""), None);
        assert_eq!(first_id(b"x 1"), None);
    }

    #[test]
    fn what_may_not_be_looked_at_in_its_place_is_found_by_its_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stat = rustix::fs::stat(file.path()).unwrap();
        let own = Mount::of(file.path()).unwrap();
        let wanted = Some((stat.st_dev, stat.st_ino));
        assert_eq!(at(file.path(), own.id), wanted);
        let below = file.path().strip_prefix(&own.mount_point).unwrap();
        let elsewhere = Mount {
            id: u64::MAX,
            root: own.root.join(below),
            mount_point: "/not/ours/to/see".into(),
            ..own.clone()
        };
        let here = [own.clone()];
        assert_eq!(by_name(&elsewhere, &here), wanted);
        let mut files = HashSet::new();
        add(
            &mut files,
            Path::new("/proc/self"),
            std::slice::from_ref(&elsewhere),
            &here,
        );
        assert_eq!(files.into_iter().next(), wanted);
        let gone = Mount {
            root: format!("{}{DELETED}", elsewhere.root.display()).into(),
            ..elsewhere
        };
        assert_eq!(by_name(&gone, &here), None);
    }

    #[test]
    fn a_file_that_nobody_mounts_is_not_among_them() {
        use std::os::fd::AsFd;

        let file = tempfile::tempfile().unwrap();
        let Ok(found) = MountedFiles::now(file.as_fd()) else {
            return; // where /proc isn't whole
        };
        assert!(!found.has(&rustix::fs::fstat(&file).unwrap()));
    }
}
