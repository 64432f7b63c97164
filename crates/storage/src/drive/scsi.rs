//! The report of a SCSI drive about UNMAP (SBC-4).

use serde::Serialize;

use super::be32;

/// Logical block provisioning of a drive. A page that could not be read leaves its part `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Scsi {
    /// Whether blocks can be unmapped at all (READ CAPACITY(16), LBPME).
    pub lbpme: Option<bool>,
    /// Whether unmapped blocks read as zeros.
    pub lbprz: Option<bool>,
    /// Whether it takes UNMAP (page B2h, LBPU).
    pub unmap: Option<bool>,
    /// Whether it takes WRITE SAME(16) with UNMAP (LBPWS).
    pub write_same_16: Option<bool>,
    /// Whether it takes WRITE SAME(10) with UNMAP (LBPWS10).
    pub write_same_10: Option<bool>,
    /// Most blocks of an UNMAP (page B0h).
    pub max_unmap_blocks: Option<u32>,
    /// Most descriptors of an UNMAP. Linux sends one.
    pub max_unmap_descriptors: Option<u32>,
    /// The granularity of an UNMAP, in blocks.
    pub granularity_blocks: Option<u32>,
    /// Its alignment, in blocks; `None` where the drive doesn't say.
    pub alignment_blocks: Option<u32>,
    /// Turns a minute (page B1h): 1 of a drive that does not turn.
    #[serde(skip)]
    pub rotation_rate: Option<u16>,
}

impl Scsi {
    /// From READ CAPACITY(16) and the pages B0h and B2h, as far as they are there.
    pub fn parse(capacity: Option<&[u8]>, limits: Option<&[u8]>, lbp: Option<&[u8]>) -> Scsi {
        let mut found = Scsi::default();
        if let Some(page) = capacity.filter(|page| page.len() >= 16) {
            found.lbpme = Some(page[14] >> 7 & 1 == 1);
            found.lbprz = Some(page[14] >> 6 & 1 == 1);
        }
        if let Some(page) = limits.filter(|page| page.len() >= 36 && page[1] == 0xb0) {
            found.max_unmap_blocks = Some(be32(page, 20));
            found.max_unmap_descriptors = Some(be32(page, 24));
            found.granularity_blocks = Some(be32(page, 28));
            let alignment = be32(page, 32);
            found.alignment_blocks = (alignment >> 31 == 1).then_some(alignment & 0x7fff_ffff);
        }
        if let Some(page) = lbp.filter(|page| page.len() >= 6 && page[1] == 0xb2) {
            found.unmap = Some(page[5] >> 7 & 1 == 1);
            found.write_same_16 = Some(page[5] >> 6 & 1 == 1);
            found.write_same_10 = Some(page[5] >> 5 & 1 == 1);
            found.lbprz = found.lbprz.or(Some(page[5] >> 2 & 1 == 1));
        }
        found
    }

    /// Whether any page was there.
    pub fn is_known(&self) -> bool {
        *self != Scsi::default()
    }
}

/// The MEDIUM ROTATION RATE of page B1h; `None` where the drive does not report one.
pub(super) fn rotation_rate(page: &[u8]) -> Option<u16> {
    let bytes = page.get(4..6).filter(|_| page[1] == 0xb1)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]])).filter(|rate| *rate > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thin_drive() {
        let mut capacity = [0; 32];
        capacity[14] = 0xc0;
        let mut limits = [0; 64];
        limits[1] = 0xb0;
        limits[20..24].copy_from_slice(&0x0020_0000u32.to_be_bytes());
        limits[27] = 1;
        limits[30] = 8;
        limits[32..36].copy_from_slice(&0x8000_0010u32.to_be_bytes());
        let lbp = [0, 0xb2, 0, 4, 0, 0xe4, 0, 0];
        let found = Scsi::parse(Some(&capacity), Some(&limits), Some(&lbp));
        assert_eq!((found.lbpme, found.lbprz), (Some(true), Some(true)));
        assert_eq!((found.unmap, found.write_same_16), (Some(true), Some(true)));
        assert_eq!(found.max_unmap_blocks, Some(1 << 21));
        assert_eq!(
            (found.granularity_blocks, found.alignment_blocks),
            (Some(2048), Some(16))
        );
    }

    #[test]
    fn other_pages_and_short_ones_say_nothing() {
        let found = Scsi::parse(
            Some(&[0; 8]),
            Some(&[0; 64]),
            Some(&[0, 0xb0, 0, 4, 0, 0xff]),
        );
        assert!(!found.is_known());
    }
}
