//! Whether a mount sends discards when space is freed, by its options alone.

use record::DiscardSetting;

use crate::SysRoot;
use crate::devices::in_memory;
use crate::mounts::{DeviceNumber, Mount};

/// The setting that the mount's type and options give; whether a device below takes the discards is
/// another question.
pub(crate) fn setting(mount: &Mount) -> DiscardSetting {
    use DiscardSetting::{Async, Off, On, Unknown, Unsupported};
    let option = mount.super_option("discard");
    match mount.fs.as_str() {
        // A bare `discard` is `discard=sync`. The default of Linux ≥ 6.2,
        // `discard=async`, is listed when a device below takes discards.
        "btrfs" => match option {
            Some("async") => Async,
            Some(_) => On,
            None => Off,
        },
        // f2fs queues them and issues them when idle.
        "f2fs" if option.is_some() => Async,
        // ext2 takes the option where ext4's code mounts it.
        "ext2" | "ext3" | "ext4" | "xfs" | "f2fs" | "vfat" | "exfat" | "ntfs3" | "jfs"
        | "nilfs2" | "gfs2" | "ocfs2" => match option {
            Some(_) => On,
            None => Off,
        },
        fs if in_memory(fs) => Unsupported,
        _ if option.is_some() => On,
        _ => Unknown,
    }
}

/// Whether ext4 sends discards because of its superblock (`tune2fs -o discard`). Then `mountinfo`
/// lists no option, as it is the default there (Linux 6.12, `_ext4_show_options` in
/// fs/ext4/super.c). The list of all options of that device does.
pub(crate) fn is_ext4s_default(sys: &SysRoot, device: DeviceNumber) -> bool {
    let options = sys
        .device_name(device)
        .and_then(|name| sys.text(format!("/proc/fs/ext4/{name}/options")).ok());
    options.is_some_and(|text| text.lines().any(|option| option == "discard"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts;

    fn of(fs: &str, options: &str) -> DiscardSetting {
        let line = format!("1 1 8:1 / /mnt rw,relatime - {fs} /dev/sda1 {options}\n");
        setting(&mounts::parse(line.as_bytes())[0])
    }

    #[test]
    fn options_as_kernels_print_them() {
        use DiscardSetting::*;
        assert_eq!(of("ext4", "rw,discard,errors=remount-ro"), On);
        assert_eq!(of("ext4", "rw,nodiscard"), Off);
        assert_eq!(of("ext4", "rw"), Off);
        assert_eq!(of("ext2", "rw,discard"), On);
        assert_eq!(of("xfs", "rw,attr2,discard,inode64"), On);
        assert_eq!(of("btrfs", "rw,ssd,discard=async,subvol=/"), Async);
        assert_eq!(of("btrfs", "rw,ssd,discard"), On);
        assert_eq!(of("btrfs", "rw,ssd,discard=sync"), On);
        assert_eq!(of("btrfs", "rw,ssd"), Off);
        assert_eq!(of("f2fs", "rw,discard,discard_unit=block"), Async);
        assert_eq!(of("f2fs", "rw,nodiscard,discard_unit=block"), Off);
        assert_eq!(of("tmpfs", "rw,size=1k"), Unsupported);
        assert_eq!(of("nfs4", "rw"), Unknown);
        assert_eq!(of("zfs", "rw,xattr"), Unknown);
    }
}
