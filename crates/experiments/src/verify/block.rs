//! A sector that says what it is: whose, where, and which writing of it.
//!
//! Every 512-byte sector describes itself, because drives go wrong in units of that size. Its
//! content follows from its identity alone, so that damaged sectors can be compared bit by bit with
//! what they ought to hold. The content is incompressible: no drive and no file system stores it in
//! less space.
//!
//! | bytes | content, little-endian |
//! |---|---|
//! | 0–7 | `tbverify` |
//! | 8–15 | volume: a random number of this test |
//! | 16–19 | file: the number of a file or region |
//! | 20–23 | generation: which writing of the file it is, from 1 |
//! | 24–31 | offset of the sector in its file, in bytes |
//! | 32–35 | CRC-32C of the other 508 bytes |
//! | 36–511 | pseudo-random bytes that follow from the identity |

/// Bytes of a sector, the smallest unit that is compared.
pub const SECTOR: usize = 512;

/// Bytes of a block, the smallest unit that is written.
pub const BLOCK: usize = 4096;

const MAGIC: [u8; 8] = *b"tbverify";

const CHECKSUM: usize = 32;

const PAYLOAD: usize = 36;

/// A sector's own description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Of which test.
    pub volume: u64,
    /// In which file or region.
    pub file: u32,
    /// Which writing of the file.
    pub generation: u32,
    /// Where in the file, in bytes.
    pub offset: u64,
}

impl Identity {
    /// The identity of the sector that follows `bytes` later.
    #[must_use]
    pub fn after(self, bytes: u64) -> Identity {
        Identity {
            offset: self.offset + bytes,
            ..self
        }
    }

    fn head(&self) -> [u8; CHECKSUM] {
        let mut head = [0; CHECKSUM];
        head[..8].copy_from_slice(&MAGIC);
        head[8..16].copy_from_slice(&self.volume.to_le_bytes());
        head[16..20].copy_from_slice(&self.file.to_le_bytes());
        head[20..24].copy_from_slice(&self.generation.to_le_bytes());
        head[24..].copy_from_slice(&self.offset.to_le_bytes());
        head
    }

    /// The first number of the pseudo-random bytes.
    fn seed(&self) -> u64 {
        let place = u64::from(self.file) << 32 | u64::from(self.generation);
        mix(self.volume ^ mix(place) ^ mix(self.offset.rotate_left(17)))
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Fills consecutive sectors. `first` is the identity of the first one.
pub fn fill(bytes: &mut [u8], first: Identity) {
    let mut identity = first;
    for sector in bytes.chunks_exact_mut(SECTOR) {
        fill_sector(sector, &identity);
        identity = identity.after(SECTOR as u64);
    }
}

fn fill_sector(sector: &mut [u8], identity: &Identity) {
    sector[..CHECKSUM].copy_from_slice(&identity.head());
    // xorshift64*: three shifts and a product for eight bytes.
    let mut state = identity.seed() | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    sector[PAYLOAD..PAYLOAD + 4].copy_from_slice(&(next() as u32).to_le_bytes());
    for piece in sector[PAYLOAD + 4..].chunks_exact_mut(8) {
        piece.copy_from_slice(&next().to_le_bytes());
    }
    let checksum = checksum(sector);
    sector[CHECKSUM..PAYLOAD].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum(sector: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&sector[..CHECKSUM]), &sector[PAYLOAD..])
}

fn number<const N: usize>(sector: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&sector[at..at + N]);
    bytes
}

/// Returns a sector's own description, if its checksum is right.
pub fn identify(sector: &[u8]) -> Option<Identity> {
    if sector.len() != SECTOR || sector[..8] != MAGIC {
        return None;
    }
    let stored = u32::from_le_bytes(number(sector, CHECKSUM));
    (stored == checksum(sector)).then(|| Identity {
        volume: u64::from_le_bytes(number(sector, 8)),
        file: u32::from_le_bytes(number(sector, 16)),
        generation: u32::from_le_bytes(number(sector, 20)),
        offset: u64::from_le_bytes(number(sector, 24)),
    })
}

/// Whether a sector is the one with this identity, and undamaged.
pub fn is(sector: &[u8], identity: &Identity) -> bool {
    sector[..CHECKSUM] == identity.head()
        && u32::from_le_bytes(number(sector, CHECKSUM)) == checksum(sector)
}

/// Whether all bytes are zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    let words = bytes.chunks_exact(16);
    words.remainder().iter().all(|byte| *byte == 0) && words.into_iter().all(|word| word == [0; 16])
}

/// The first place in `bytes` at which a sector of this volume begins, aligned or not.
pub fn find(bytes: &[u8], volume: u64) -> Option<usize> {
    let mut wanted = [0; 16];
    wanted[..8].copy_from_slice(&MAGIC);
    wanted[8..].copy_from_slice(&volume.to_le_bytes());
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identity(file: u32, generation: u32, offset: u64) -> Identity {
        Identity {
            volume: 7,
            file,
            generation,
            offset,
        }
    }

    #[test]
    fn every_sector_of_a_block_has_its_own_offset() {
        let mut block = [0; BLOCK];
        fill(&mut block, identity(3, 9, 8192));
        for (index, sector) in block.chunks_exact(SECTOR).enumerate() {
            let own = identity(3, 9, 8192 + (index * SECTOR) as u64);
            assert_eq!(identify(sector), Some(own));
            assert!(is(sector, &own) && !is(sector, &identity(3, 8, own.offset)));
        }
        assert_eq!(find(&block[100..], 7), Some(412));
        assert_eq!(find(&block, 8), None);
        assert!(!is_zero(&block) && is_zero(&[0; 4099]) && !is_zero(&[0, 0, 1]));
    }

    proptest! {
        #[test]
        fn one_wrong_bit_anywhere_is_found(
            file in any::<u32>(), generation in any::<u32>(), offset in 0..1u64 << 50,
            bit in 0..SECTOR * 8,
        ) {
            let own = identity(file, generation, offset);
            let mut sector = [0; SECTOR];
            fill(&mut sector, own);
            prop_assert_eq!(identify(&sector), Some(own));
            sector[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(identify(&sector), None);
            prop_assert!(!is(&sector, &own));
        }
    }
}
