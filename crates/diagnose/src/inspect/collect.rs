//! The files of a machine that an inspection reads, in one archive with their true contents.
//!
//! `tar` itself pads files of `/sys`, because the kernel gives them the size of a page, and finds
//! those of `/proc` empty.
//!
//! Values of options that look like secrets, tables of dm-crypt and lines of cron that trim nothing
//! are left out.

mod tar;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use linux::SysRoot;
use linux::sysroot::{entries, line};

pub use tar::{UnpackError, unpack};

/// Single files, and directories whose files matter.
const FILES: [&str; 14] = [
    "/proc/self/mountinfo",
    "/proc/sys/kernel/osrelease",
    "/proc/1/comm",
    "/run/mount/utab",
    "/run/systemd/container",
    "/etc/fstab",
    "/etc/crypttab",
    "/etc/lvm/lvm.conf",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/module/raid456/parameters/devices_handle_discard_safely",
    "/sys/class/ata_device",
    "/sys/fs/btrfs",
    "/sys/fs/ext4",
    "/sys/fs/f2fs",
];

/// Files and directories of cron, and of units.
const PROGRAMS: [&str; 13] = [
    "/etc/crontab",
    "/etc/cron.d",
    "/var/spool/cron",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/var/lib/systemd/timers",
];

/// Files of a directory on the way to a device.
const ABOVE: [&str; 10] = [
    "model",
    "vendor",
    "rev",
    "firmware_rev",
    "fwrev",
    "name",
    "idVendor",
    "idProduct",
    "vpd_pgb0",
    "vpd_pgb2",
];

/// Names of files and directories of `/sys` that say nothing about discards, or identify a machine.
const LEFT_OUT: [&str; 12] = [
    "power",
    "trace",
    "mq",
    "integrity",
    "serial",
    "wwid",
    "uevent",
    "subsystem",
    "bdi",
    "checksums",
    "commit_stats",
    "devinfo",
];

/// Longer files are left out, in bytes.
const LONGEST: usize = 256 << 10;

/// The archive under way.
struct Collection<'a> {
    sys: &'a SysRoot,
    to: tar::Writer<&'a mut dyn Write>,
    seen: BTreeSet<PathBuf>,
}

/// Writes the archive, with the tables of the device mapper, which have no file.
///
/// # Errors
/// Those of `to`. A file that can't be read is left out.
pub fn collect(sys: &SysRoot, to: &mut dyn Write) -> io::Result<()> {
    let mut collection = Collection {
        sys,
        to: tar::Writer::new(to),
        seen: BTreeSet::new(),
    };
    for path in FILES {
        collection.tree(Path::new(path), 4, &|path, text| {
            Some(without_secrets(path, text))
        })?;
    }
    for path in PROGRAMS {
        collection.tree(Path::new(path), 2, &programs)?;
    }
    collection.devices()?;
    let tables = linux::dm::tables(sys).unwrap_or_default();
    if !tables.is_empty() {
        let text = linux::dm::text(&tables);
        collection
            .to
            .file(Path::new("/dmsetup-table"), text.as_bytes())?;
    }
    collection.to.end()
}

impl Collection<'_> {
    /// Adds a file or a directory, at most so many levels deep, with what `keep` leaves of each text.
    fn tree(
        &mut self,
        path: &Path,
        depth: u32,
        keep: &dyn Fn(&Path, &str) -> Option<String>,
    ) -> io::Result<()> {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let real = self.sys.path(path);
        let Ok(found) = fs::symlink_metadata(&real) else {
            return Ok(());
        };
        if LEFT_OUT.contains(&name.as_str()) || !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        if found.is_symlink() {
            return match fs::read_link(&real) {
                Ok(target) => self.to.link(path, &target),
                Err(_) => Ok(()),
            };
        }
        if found.is_file() {
            // A file that fails or blocks says nothing.
            let Ok(bytes) = fs::read(&real) else {
                return Ok(());
            };
            if bytes.len() > LONGEST {
                return Ok(());
            }
            return match String::from_utf8(bytes) {
                Ok(text) => match keep(path, &text) {
                    Some(text) => self.to.file(path, text.as_bytes()),
                    None => Ok(()),
                },
                // A page of a drive.
                Err(bytes) => self.to.file(path, bytes.as_bytes()),
            };
        }
        if !found.is_dir() || depth == 0 {
            return Ok(());
        }
        self.to.directory(path)?;
        for name in entries(&real) {
            self.tree(&path.join(name), depth - 1, keep)?;
        }
        Ok(())
    }

    /// Adds each block device: its links, its directory, and what is known on the way to it.
    fn devices(&mut self) -> io::Result<()> {
        let keep = |path: &Path, text: &str| Some(without_secrets(path, text));
        for links in ["/sys/class/block", "/sys/dev/block"] {
            for name in entries(&self.sys.path(links)) {
                let link = Path::new(links).join(&name);
                self.tree(&link, 0, &keep)?;
                let Ok(place) = fs::canonicalize(self.sys.path(&link)) else {
                    continue;
                };
                let idle = name.starts_with("ram")
                    || name.starts_with("loop") && !place.join("loop").exists();
                if links == "/sys/class/block" && !idle {
                    self.device(&place, &name.replace('!', "/"))?;
                }
            }
        }
        Ok(())
    }

    fn device(&mut self, place: &Path, name: &str) -> io::Result<()> {
        let keep = |path: &Path, text: &str| Some(without_secrets(path, text));
        self.tree(place, 3, &keep)?;
        // Where inspections look for it.
        self.to.file(&Path::new("/dev").join(name), b"")?;
        let number = line(&place.join("dev")).unwrap_or_default();
        let udev = format!("/run/udev/data/b{number}");
        self.tree(Path::new(&udev), 0, &|_, text| Some(udev_types(text)))?;
        let sys = Path::new("/sys/devices");
        for above in place
            .ancestors()
            .skip(1)
            .take_while(|above| above.starts_with(sys) && *above != sys)
        {
            for file in ABOVE {
                self.tree(&above.join(file), 0, &keep)?;
            }
            let disks = above.join("scsi_disk");
            if disks.is_dir() {
                self.tree(&disks, 3, &keep)?;
            }
            if above.join("vpd_pgb1").exists() {
                self.tree(&above.join("vpd_pgb1"), 0, &keep)?;
            }
        }
        Ok(())
    }
}

/// The lines of udev's file that say what is on a device.
fn udev_types(text: &str) -> String {
    let types = text
        .lines()
        .filter(|line| line.starts_with("E:ID_FS_TYPE=") || line.starts_with("E:ID_FS_LABEL="));
    types.map(|line| format!("{line}\n")).collect()
}

/// A text without the values of options that are secrets, e.g. of `password=…` in fstab.
fn without_secrets(path: &Path, text: &str) -> String {
    if path == Path::new("/etc/lvm/lvm.conf") {
        let lines = text.lines().filter(|line| line.contains("issue_discards"));
        return lines.map(|line| format!("{line}\n")).collect();
    }
    if path == Path::new("/etc/crypttab") {
        return text.lines().map(crypttab_without_keys).collect();
    }
    text.split_inclusive([',', ' ', '\t', '\n'])
        .map(secret_free)
        .collect()
}

/// A line of crypttab without the place of its key.
fn crypttab_without_keys(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [name, device, _, options] if !name.starts_with('#') => {
            format!("{name} {device} none {options}\n")
        }
        [name, device, _] if !name.starts_with('#') => format!("{name} {device} none\n"),
        _ => "#\n".to_owned(),
    }
}

/// A word; of `key=value` with a telling key the key alone.
fn secret_free(word: &str) -> String {
    const SECRET: [&str; 6] = ["pass", "secret", "cred", "token", "user", "key"];
    let Some((key, value)) = word.split_once('=') else {
        return word.to_owned();
    };
    let lower = key.to_ascii_lowercase();
    if !SECRET.iter().any(|one| lower.contains(one)) {
        return word.to_owned();
    }
    let end: String = value
        .chars()
        .filter(|c| matches!(c, ',' | ' ' | '\t' | '\n'))
        .collect();
    format!("{key}={end}")
}

/// The lines of a program's file that trim or say when; `None` of a file without one.
fn programs(path: &Path, text: &str) -> Option<String> {
    let is_unit = path
        .extension()
        .is_some_and(|end| end == "timer" || end == "service" || end == "conf");
    let trims = |line: &str| line.contains("trim");
    if is_unit {
        let wanted = trims(text) || trims(&path.to_string_lossy());
        let keys = [
            "[",
            "OnCalendar",
            "RandomizedDelaySec",
            "FixedRandomDelay",
            "Unit",
            "Condition",
        ];
        let own = |line: &&str| trims(line) || keys.iter().any(|key| line.starts_with(key));
        return wanted.then(|| {
            text.lines()
                .filter(own)
                .map(|line| format!("{line}\n"))
                .collect()
        });
    }
    if path.starts_with("/var/lib/systemd/timers") {
        return trims(&path.to_string_lossy()).then(String::new);
    }
    // Loops and variables around the command belong to it.
    let around = ["for ", "do", "done", "#!"];
    let own = |line: &&str| {
        let bare = line.trim_start();
        trims(line) || around.iter().any(|word| bare.starts_with(word)) || is_plain(bare)
    };
    trims(text).then(|| {
        let lines = text.lines().filter(own);
        lines
            .map(|line| {
                format!(
                    "{}\n",
                    line.split_inclusive(' ')
                        .map(secret_free)
                        .collect::<String>()
                )
            })
            .collect()
    })
}

/// Whether a line gives a variable a list of paths.
fn is_plain(line: &str) -> bool {
    let value = line
        .split_once('=')
        .map(|one| one.1.trim_matches(['"', '\'']));
    value.is_some_and(|value| {
        !value.is_empty() && value.split(' ').all(|word| word.starts_with('/'))
    })
}

#[cfg(test)]
mod tests;
