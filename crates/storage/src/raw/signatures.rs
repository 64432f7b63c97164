//! Recognising what is on a device before it is destroyed.
//!
//! This is the one source of truth here, so that a missing outside program can
//! never mean "blank". The offsets are those that the formats' own definitions
//! give (and libblkid uses).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Something found on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Its name, e.g. `ext2/3/4`.
    pub name: &'static str,
    /// Where it was found, in bytes from the device's beginning.
    pub offset_bytes: u64,
}

#[derive(Clone, Copy)]
enum Place {
    /// From the beginning.
    Start(u64),
    /// Back from the end.
    End(u64),
    /// Back from the end, which is first rounded down to a multiple.
    RoundedEnd { multiple: u64, back: u64 },
}
use Place::{End, RoundedEnd, Start};

struct Magic {
    name: &'static str,
    place: Place,
    bytes: &'static [u8],
    /// The same may be found so many times, so many bytes apart.
    repeated: (u64, u64),
}

const fn at(name: &'static str, place: Place, bytes: &'static [u8]) -> Magic {
    Magic {
        name,
        place,
        bytes,
        repeated: (1, 0),
    }
}

const fn repeated(
    name: &'static str,
    place: Place,
    bytes: &'static [u8],
    times: u64,
    apart: u64,
) -> Magic {
    Magic {
        name,
        place,
        bytes,
        repeated: (times, apart),
    }
}

const KIB: u64 = 1024;
/// All places from the beginning lie in this many bytes, and those from the end as well.
const WINDOW: u64 = 2048 * KIB + 512;

const EXT: &str = "ext2/3/4";
const ZFS: &str = "ZFS member";
const ZFS_LITTLE: &[u8] = &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0];
const ZFS_BIG: &[u8] = &[0, 0, 0, 0, 0, 0xba, 0xb1, 0x0c];
const MD: &str = "md RAID member";
const MD_LITTLE: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
const MD_BIG: &[u8] = &[0xa9, 0x2b, 0x4e, 0xfc];
const BCACHE: &[u8] = &[
    0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81,
];
const BCACHEFS: &[u8] = &[
    0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef,
];
/// Pages of swap space may have these sizes; the mark ends the first.
const SWAP: &str = "swap space";

#[rustfmt::skip]
const MAGICS: &[Magic] = &[
    // Partition tables
    at("GPT partition table", Start(512), b"EFI PART"),
    at("GPT partition table", Start(4096), b"EFI PART"),
    at("GPT partition table", End(512), b"EFI PART"),
    at("GPT partition table", End(4096), b"EFI PART"),
    at("DOS partition table or boot sector", Start(510), &[0x55, 0xaa]),
    at("Apple partition map", Start(512), b"PM\0\0"),
    at("BSD disklabel", Start(512), &[0x57, 0x45, 0x56, 0x82]),
    at("Sun partition table", Start(508), &[0xda, 0xbe]),
    // File systems
    at(EXT, Start(0x438), &[0x53, 0xef]),
    at("XFS", Start(0), b"XFSB"),
    at("XFS log", Start(0), &[0xfe, 0xed, 0xba, 0xbe]),
    at("btrfs", Start(64 * KIB + 64), b"_BHRfS_M"),
    at("bcachefs", Start(4096 + 24), BCACHEFS),
    at("bcache", Start(4096 + 24), BCACHE),
    at("f2fs", Start(1024), &[0x10, 0x20, 0xf5, 0xf2]),
    repeated(ZFS, Start(128 * KIB), ZFS_LITTLE, 128, KIB),
    repeated(ZFS, Start(128 * KIB), ZFS_BIG, 128, KIB),
    repeated(ZFS, Start(384 * KIB), ZFS_LITTLE, 128, KIB),
    repeated(ZFS, RoundedEnd { multiple: 256 * KIB, back: 384 * KIB }, ZFS_LITTLE, 128, KIB),
    repeated(ZFS, RoundedEnd { multiple: 256 * KIB, back: 128 * KIB }, ZFS_LITTLE, 128, KIB),
    at("NTFS", Start(3), b"NTFS    "),
    at("exFAT", Start(3), b"EXFAT   "),
    at("FAT", Start(54), b"FAT1"),
    at("FAT", Start(82), b"FAT32   "),
    at("ReFS", Start(3), b"ReFS\0"),
    at("HFS+", Start(1024), b"H+"),
    at("HFSX", Start(1024), b"HX"),
    at("APFS", Start(32), b"NXSB"),
    at("ReiserFS", Start(64 * KIB + 52), b"ReIsEr"),
    at("Reiser4", Start(64 * KIB), b"ReIsEr4"),
    at("JFS", Start(32 * KIB), b"JFS1"),
    at("NILFS2", Start(1024 + 6), &[0x34, 0x34]),
    at("GFS2", Start(64 * KIB), &[0x01, 0x16, 0x19, 0x70]),
    at("OCFS2", Start(1024), b"OCFSV2"),
    at("OCFS2", Start(2048), b"OCFSV2"),
    at("OCFS2", Start(4096), b"OCFSV2"),
    at("OCFS2", Start(8192), b"OCFSV2"),
    at("UFS", Start(8 * KIB + 1372), &[0x54, 0x19, 0x01, 0x00]),
    at("UFS2", Start(64 * KIB + 1372), &[0x19, 0x01, 0x54, 0x19]),
    at("ISO 9660", Start(32 * KIB + 1), b"CD001"),
    at("UDF", Start(32 * KIB + 1), b"BEA01"),
    at("squashfs", Start(0), b"hsqs"),
    at("EROFS", Start(1024), &[0xe2, 0xe1, 0xf5, 0xe0]),
    at("romfs", Start(0), b"-rom1fs-"),
    at("cramfs", Start(0), &[0x45, 0x3d, 0xcd, 0x28]),
    at("MINIX", Start(1024 + 24), &[0x5a, 0x4d]),
    at("VMFS", Start(2048 * KIB), &[0x5e, 0xf1, 0xab, 0x2f]),
    // Members of something larger
    at("VMFS volume member", Start(1024 * KIB), &[0x0d, 0xd0, 0x01, 0xc0]),
    repeated("LVM physical volume", Start(0), b"LABELONE", 4, 512),
    at(MD, Start(0), MD_LITTLE),
    at(MD, Start(4096), MD_LITTLE),
    at(MD, RoundedEnd { multiple: 4096, back: 8192 }, MD_LITTLE),
    at(MD, RoundedEnd { multiple: 64 * KIB, back: 64 * KIB }, MD_LITTLE),
    at(MD, RoundedEnd { multiple: 64 * KIB, back: 64 * KIB }, MD_BIG),
    at("Intel RAID member", End(1024), b"Intel Raid ISM Cfg Sig."),
    at("DDF RAID member", End(512), &[0xde, 0x11, 0xde, 0x11]),
    at("DDF RAID member", End(512), &[0x11, 0xde, 0x11, 0xde]),
    at("LUKS", Start(0), b"LUKS\xba\xbe"),
    at("LUKS", Start(16 * KIB), b"SKUL\xba\xbe"),
    at("LUKS", Start(32 * KIB), b"SKUL\xba\xbe"),
    at("BitLocker", Start(3), b"-FVE-FS-"),
    at("dm-integrity", Start(0), b"integrt\0"),
    at("dm-verity", Start(0), b"verity\0\0"),
    at("VDO", Start(0), b"dmvdo001"),
    // Of 8, of 8.4 that was not shut down, and of 9.
    at("DRBD", End(4096 - 60), &[0x83, 0x74, 0x02, 0x6b]),
    at("DRBD", End(4096 - 60), &[0x83, 0x74, 0x02, 0x6c]),
    at("DRBD", End(4096 - 60), &[0x83, 0x74, 0x02, 0x6d]),
    at("Stratis", Start(512 + 4), b"!Stra0tis\x86\xff\x02^\x41rh"),
    at("Ceph BlueStore", Start(0), b"bluestore block device"),
    at("Oracle ASM", Start(32), b"ORCLDISK"),
    // Swap and hibernation, by page size
    at(SWAP, Start(4 * KIB - 10), b"SWAPSPACE2"),
    at(SWAP, Start(8 * KIB - 10), b"SWAPSPACE2"),
    at(SWAP, Start(16 * KIB - 10), b"SWAPSPACE2"),
    at(SWAP, Start(64 * KIB - 10), b"SWAPSPACE2"),
    at(SWAP, Start(4 * KIB - 10), b"SWAP-SPACE"),
    at("hibernation image", Start(4 * KIB - 10), b"S1SUSPEND"),
    at("hibernation image", Start(4 * KIB - 10), b"ULSUSPEND"),
    at("hibernation image", Start(4 * KIB - 10), b"LINHIB0001"),
];

/// Everything recognised on an open device or image of that size, each name
/// once, at its first place.
///
/// # Errors
/// When the device can't be read; then nothing may be concluded.
pub fn signatures(device: &File, size_bytes: u64) -> io::Result<Vec<Signature>> {
    let head = Window::read(device, 0, WINDOW.min(size_bytes))?;
    let tail_at = size_bytes.saturating_sub(WINDOW);
    let tail = Window::read(device, tail_at, size_bytes - tail_at)?;
    let mut found: Vec<Signature> = Vec::new();
    for magic in MAGICS {
        let (times, apart) = magic.repeated;
        let hit = (0..times)
            .filter_map(|turn| Some(offset(magic.place, size_bytes)? + turn * apart))
            .find(|&offset| head.has(offset, magic.bytes) || tail.has(offset, magic.bytes));
        if let Some(offset_bytes) = hit
            && !found.iter().any(|known| known.name == magic.name)
        {
            found.push(Signature {
                name: magic.name,
                offset_bytes,
            });
        }
    }
    Ok(found)
}

fn offset(place: Place, size_bytes: u64) -> Option<u64> {
    match place {
        Start(offset) => Some(offset),
        End(back) => size_bytes.checked_sub(back),
        RoundedEnd { multiple, back } => (size_bytes / multiple * multiple).checked_sub(back),
    }
}

/// Some bytes of a device, and where they are.
struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn read(device: &File, at: u64, length: u64) -> io::Result<Window> {
        // At most WINDOW, which fits any usize.
        let mut bytes = vec![0; length as usize];
        device.read_exact_at(&mut bytes, at)?;
        Ok(Window { at, bytes })
    }

    fn has(&self, offset: u64, magic: &[u8]) -> bool {
        offset
            .checked_sub(self.at)
            .and_then(|start| usize::try_from(start).ok())
            .and_then(|start| self.bytes.get(start..start.checked_add(magic.len())?))
            .is_some_and(|bytes| bytes == magic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn image(size: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        file
    }

    #[test]
    fn a_blank_device_has_none_whatever_its_size() {
        for size in [
            0,
            1,
            511,
            512,
            4096,
            65536,
            1 << 20,
            (1 << 20) + 512,
            64 << 20,
        ] {
            assert_eq!(signatures(&image(size), size).unwrap(), [], "{size}");
        }
    }

    #[test]
    fn every_magic_is_found_where_it_belongs() {
        // An odd size tells the end from the rounded end.
        let size = (64 << 20) + 3 * 512;
        for magic in MAGICS {
            let (times, apart) = magic.repeated;
            for turn in [0, times - 1] {
                let file = image(size);
                let offset = offset(magic.place, size).unwrap() + turn * apart;
                file.write_all_at(magic.bytes, offset).unwrap();
                let found = signatures(&file, size).unwrap();
                assert!(
                    found
                        .iter()
                        .any(|one| one.name == magic.name && one.offset_bytes == offset),
                    "{} at {offset}: {found:?}",
                    magic.name
                );
            }
        }
    }

    /// The table can't be wrong about these alone: where `dd bs=1M seek=1` puts it.
    #[test]
    fn an_esxi_datastore_is_found() {
        let file = image(64 << 20);
        file.write_all_at(&[0x0d, 0xd0, 0x01, 0xc0], 0x10_0000)
            .unwrap();
        let found = signatures(&file, 64 << 20).unwrap();
        assert_eq!(found[0].name, "VMFS volume member");
    }

    proptest! {
        #[test]
        fn no_size_panics(size in 0u64..5 << 20) {
            prop_assert_eq!(signatures(&image(size), size).unwrap(), []);
        }
    }
}
