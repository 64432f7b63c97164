//! Finds an identity of a device that is the same after a reboot.

use std::fs;
use std::path::{Path, PathBuf};

use linux::SysRoot;

/// The files in which the kernel shows an identity, the most certain first.
const PLACES: [&str; 8] = [
    "dm/uuid",
    "md/uuid",
    "loop/backing_file",
    "wwid",
    "device/wwid",
    "device/serial",
    "serial",
    "device/cid",
];

/// Returns the identity of a device by its kernel name. One without any is identified by that name.
pub(super) fn identity(sys: &SysRoot, device: &str) -> String {
    let own = sys.path("/sys/class/block").join(device.replace('/', "!"));
    let own = fs::canonicalize(&own).unwrap_or(own);
    if let Some(known) = kept_identity(&own) {
        return known;
    }
    let number = text(own.join("partition"));
    let drive = own.parent().and_then(kept_identity);
    match (drive, number) {
        (Some(drive), Some(number)) => format!("{drive} partition {number}"),
        _ => format!("name {device}"),
    }
}

fn kept_identity(device: &Path) -> Option<String> {
    PLACES.iter().find_map(|place| {
        let text = text(device.join(place))?;
        Some(format!("{place} {text}"))
    })
}

fn text(path: PathBuf) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_partitions_and_what_tells_nothing() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join("sys/class/block").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sda/device/wwid", "naa.5002\n");
        put("sda/sda2/partition", "2\n");
        put("vda/serial", "\n");
        put("dm-0/dm/uuid", "LVM-x\n");
        let link = root.path().join("sys/class/block/sda2");
        std::os::unix::fs::symlink("sda/sda2", link).unwrap();
        let sys = SysRoot::at(root.path());
        assert_eq!(identity(&sys, "sda"), "device/wwid naa.5002");
        assert_eq!(identity(&sys, "sda2"), "device/wwid naa.5002 partition 2");
        assert_eq!(identity(&sys, "vda"), "name vda");
        assert_eq!(identity(&sys, "dm-0"), "dm/uuid LVM-x");
        assert_eq!(identity(&sys, "none"), "name none");
    }
}
