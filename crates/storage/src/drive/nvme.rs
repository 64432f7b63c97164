//! The report of an NVMe drive about discards (NVM Express Base and NVM Command Set 2.1).

use serde::Serialize;

use super::{le16, le32, le64};

/// The report of a namespace and its controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Nvme {
    /// Whether the controller has Dataset Management, and so Deallocate (ONCS bit 2).
    pub deallocate: bool,
    /// Whether it has Write Zeroes (ONCS bit 3).
    pub write_zeroes: bool,
    /// The content of deallocated blocks (DLFEAT bits 0 to 2).
    pub reads_as: ReadsAs,
    /// Whether Write Zeroes can deallocate (DLFEAT bit 3).
    pub zeroes_deallocate: bool,
    /// Bytes of a logical block.
    pub lba_bytes: u64,
    /// The granularity that the drive prefers for Deallocate (NPDG), in bytes; `None` where it
    /// doesn't say.
    pub preferred_granularity_bytes: Option<u64>,
    /// The alignment that it prefers (NPDA), in bytes.
    pub preferred_alignment_bytes: Option<u64>,
    /// Bytes in use, where the namespace is thin (NSFEAT bit 0).
    pub used_bytes: Option<u64>,
    /// Most ranges of a command (DMRL); 0: not limited, or not reported.
    pub max_ranges: u8,
    /// Most blocks of a range (DMRSL); 0: not limited, or not reported.
    pub max_range_blocks: u32,
    /// Most blocks of a command (DMSL); 0: not limited, or not reported. Linux ignores it.
    pub max_blocks: u64,
    /// The limit that Linux makes of this, in bytes; 0: it sends none.
    pub linux_max_bytes: u64,
}

/// The content of a trimmed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadsAs {
    /// The drive promises zeros.
    Zeros,
    /// It promises bytes of 0xff.
    Ones,
    /// It promises that reads return the same each time.
    Deterministic,
    /// It promises nothing.
    Anything,
}

/// The limit that Linux uses where the drive has none.
const LINUX_MOST: u64 = 2_199_023_255_040;

impl Nvme {
    /// From the pages of the controller, the namespace and, if there is one, the NVM command set.
    /// `None` where a page is too short.
    pub fn parse(controller: &[u8], namespace: &[u8], set: Option<&[u8]>) -> Option<Nvme> {
        if controller.len() < 4096 || namespace.len() < 384 {
            return None;
        }
        let oncs = le16(controller, 520);
        let (features, dlfeat) = (namespace[24], namespace[33]);
        // Bits 5 and 6 hold the upper part of the format's number where there are more than 16.
        let format = usize::from(namespace[26] & 0xf | (namespace[26] >> 1 & 0x30));
        let shift = namespace.get(128 + 4 * format + 2).copied().unwrap_or(9);
        let lba_bytes = 1u64
            .checked_shl(u32::from(shift))
            .filter(|&n| n >= 512)
            .unwrap_or(512);
        let preferred = |at: usize| {
            (features >> 4 & 1 == 1)
                .then(|| (u64::from(le16(namespace, at)) + 1).saturating_mul(lba_bytes))
        };
        let set = set.filter(|set| set.len() >= 16);
        let deallocate = oncs >> 2 & 1 == 1;
        let max_range_blocks = set.map_or(0, |set| le32(set, 4));
        Some(Nvme {
            deallocate,
            write_zeroes: oncs >> 3 & 1 == 1,
            reads_as: match dlfeat & 0x7 {
                1 => ReadsAs::Zeros,
                2 => ReadsAs::Ones,
                _ => ReadsAs::Anything,
            },
            zeroes_deallocate: dlfeat >> 3 & 1 == 1,
            lba_bytes,
            preferred_granularity_bytes: preferred(68),
            preferred_alignment_bytes: preferred(70),
            used_bytes: (features & 1 == 1).then(|| le64(namespace, 16).saturating_mul(lba_bytes)),
            max_ranges: set.map_or(0, |set| set[3]),
            max_range_blocks,
            max_blocks: set.map_or(0, |set| le64(set, 8)),
            // drivers/nvme/host/core.c, nvme_config_discard (Linux 6.12).
            linux_max_bytes: match (max_range_blocks, deallocate) {
                (0, false) => 0,
                (0, true) => LINUX_MOST,
                (blocks, _) => u64::from(blocks).saturating_mul(lba_bytes),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(edit: impl Fn(&mut [u8], &mut [u8], &mut [u8])) -> Option<Nvme> {
        let (mut controller, mut namespace, mut set) =
            (vec![0; 4096], vec![0; 4096], vec![0; 4096]);
        controller[520] = 0b1100;
        namespace[130] = 12;
        edit(&mut controller, &mut namespace, &mut set);
        Nvme::parse(&controller, &namespace, Some(&set))
    }

    #[test]
    fn an_ordinary_drive() {
        let found = pages(|_, _, _| {}).unwrap();
        assert!(found.deallocate && found.write_zeroes);
        assert_eq!((found.lba_bytes, found.linux_max_bytes), (4096, LINUX_MOST));
        assert_eq!(found.reads_as, ReadsAs::Anything);
        assert_eq!(
            (found.preferred_granularity_bytes, found.used_bytes),
            (None, None)
        );
    }

    #[test]
    fn preferences_and_limits_are_in_bytes() {
        let found = pages(|_, namespace, set| {
            (namespace[24], namespace[33]) = (0b1_0001, 0b1001);
            (namespace[68], namespace[70], namespace[16]) = (255, 15, 2);
            (set[3], set[4], set[8]) = (8, 0, 9);
            set[6] = 1;
        })
        .unwrap();
        assert_eq!(found.preferred_granularity_bytes, Some(1 << 20));
        assert_eq!(found.preferred_alignment_bytes, Some(64 << 10));
        assert_eq!(found.used_bytes, Some(8192));
        assert_eq!(
            (found.reads_as, found.zeroes_deallocate),
            (ReadsAs::Zeros, true)
        );
        assert_eq!((found.max_ranges, found.max_blocks), (8, 9));
        assert_eq!(found.linux_max_bytes, 65536 * 4096);
    }

    #[test]
    fn a_drive_without_deallocate_and_short_pages() {
        let none = pages(|controller, _, _| controller[520] = 0).unwrap();
        assert_eq!((none.deallocate, none.linux_max_bytes), (false, 0));
        assert_eq!(Nvme::parse(&[0; 100], &[0; 4096], None), None);
        let odd = pages(|_, namespace, _| namespace[130] = 255).unwrap();
        assert_eq!(odd.lba_bytes, 512);
    }
}
