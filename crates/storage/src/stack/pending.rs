//! Discards that a file system has queued and not sent yet.

use linux::SysRoot;
use serde::Serialize;

use crate::FileSystem;
use crate::devices::btrfs_uuid;

/// Pending discards, as the file system reports them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pending {
    /// Bytes; `None` where only commands are counted.
    pub bytes: Option<u64>,
    /// Commands; `None` where only bytes are counted.
    pub commands: Option<u64>,
    /// The file that has the figure.
    pub file: String,
    /// The most discards that it sends in a second; `None` where it has no such limit.
    pub per_s: Option<u64>,
    /// The time that sending them takes at this limit, in seconds; `None` where it isn't known. The
    /// file system may wait for some minutes before it begins.
    pub takes_s: Option<f64>,
}

/// btrfs spreads what waits over six hours where there is no limit, and sends at least one discard
/// a second (`BTRFS_DISCARD_TARGET_MSEC` and `BTRFS_DISCARD_MAX_DELAY_MSEC`, fs/btrfs/discard.c).
const SPREAD_S: f64 = 6.0 * 3600.0;

/// The largest discard that btrfs sends in the background, in bytes.
const LARGEST_BYTES: u64 = 64 << 20;

impl FileSystem {
    /// Whether it reports discards that it has not sent yet.
    pub fn queues_discards(self) -> bool {
        matches!(self, FileSystem::Btrfs | FileSystem::F2fs)
    }
}

impl Pending {
    /// Those of a mounted file system whose first device has this kernel name; `None` where the
    /// file system doesn't report them.
    pub fn of(sys: &SysRoot, rules: FileSystem, device: &str) -> Option<Pending> {
        match rules {
            FileSystem::Btrfs => btrfs(sys, device),
            FileSystem::F2fs => {
                let file = format!("/sys/fs/f2fs/{device}/pending_discard");
                let commands = Some(number(sys, &file)?);
                Some(Pending {
                    bytes: None,
                    commands,
                    file,
                    per_s: None,
                    takes_s: None,
                })
            }
            _ => None,
        }
    }

    /// The same figure now; `None` if the file system is gone.
    pub fn now(&self, sys: &SysRoot) -> Option<Pending> {
        match self.file.strip_suffix("/discardable_bytes") {
            Some(directory) => in_directory(sys, directory),
            None => Some(Pending {
                commands: Some(number(sys, &self.file)?),
                ..self.clone()
            }),
        }
    }
}

fn btrfs(sys: &SysRoot, device: &str) -> Option<Pending> {
    let uuid = btrfs_uuid(sys, device)?;
    in_directory(sys, &format!("/sys/fs/btrfs/{uuid}/discard"))
}

fn in_directory(sys: &SysRoot, directory: &str) -> Option<Pending> {
    let file = format!("{directory}/discardable_bytes");
    let figure = |name: &str| number(sys, &format!("{directory}/{name}"));
    let bytes = number(sys, &file)?;
    let per_s = figure("iops_limit").filter(|limit| *limit > 0);
    let extents = figure("discardable_extents");
    let takes_s = extents.map(|extents| {
        let discards = extents.max(bytes.div_ceil(LARGEST_BYTES)) as f64;
        let by_count = match per_s {
            Some(limit) => discards / limit as f64,
            None => SPREAD_S.min(discards),
        };
        let kbps = figure("kbps_limit").filter(|limit| *limit > 0);
        let by_bytes = kbps.map_or(0.0, |kbps| bytes as f64 / (kbps as f64 * 1024.0));
        by_count.max(by_bytes)
    });
    Some(Pending {
        bytes: Some(bytes),
        commands: None,
        file,
        per_s,
        takes_s,
    })
}

fn number(sys: &SysRoot, file: &str) -> Option<u64> {
    linux::sysroot::number(&sys.path(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Machine;

    #[test]
    fn what_is_pending_takes_as_long_as_the_limit_of_btrfs_has_it() {
        let machine = Machine::new("");
        let own = "sys/fs/btrfs/077e-22";
        machine.write(&format!("{own}/devices/sda"), "");
        let set = |file: &str, value: &str| machine.write(&format!("{own}/discard/{file}"), value);
        set("discardable_bytes", "1073741824\n");
        set("discardable_extents", "300\n");
        set("iops_limit", "20\n");
        set("kbps_limit", "0\n");
        let sys = SysRoot::at(machine.root());
        let found = || Pending::of(&sys, FileSystem::Btrfs, "sda").unwrap();
        assert_eq!((found().per_s, found().takes_s), (Some(20), Some(15.0)));
        // Few extents, of which each is many discards; then a limit of bytes.
        set("discardable_extents", "1\n");
        assert_eq!(found().takes_s, Some(0.8));
        set("kbps_limit", "10240\n");
        assert_eq!(found().takes_s, Some(102.4));
        // No limit: it is spread.
        set("kbps_limit", "0\n");
        set("iops_limit", "0\n");
        set("discardable_extents", "90000\n");
        let now = found().now(&sys).unwrap();
        assert_eq!((now.per_s, now.takes_s), (None, Some(SPREAD_S)));
    }
}
