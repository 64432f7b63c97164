//! The contents of space that was mapped beforehand.

/// Fills a range that begins at `at`. Every 8 bytes contain their own place, so that a test finds
/// data that moved.
pub(super) fn pattern(at: u64, into: &mut [u8]) {
    // Up to the first whole word: nothing, for sectors begin with one.
    let head = (at.next_multiple_of(8) - at).min(into.len() as u64) as usize;
    let (head, words) = into.split_at_mut(head);
    let skipped = (at % 8) as usize;
    head.copy_from_slice(&word(at)[skipped..skipped + head.len()]);
    let first = at + head.len() as u64;
    for (i, chunk) in words.chunks_mut(8).enumerate() {
        let word = word(first + i as u64 * 8);
        match <&mut [u8; 8]>::try_from(&mut *chunk) {
            Ok(whole) => *whole = word,
            Err(_) => chunk.copy_from_slice(&word[..chunk.len()]),
        }
    }
}

/// The word that a place lies in.
fn word(place: u64) -> [u8; 8] {
    ((place & !7) ^ 0x7472_696d_0000_0000).to_le_bytes() // "trim"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_depends_on_its_place_alone() {
        for at in 4096..4112 {
            for len in 0..40 {
                let mut bytes = vec![1; len];
                pattern(at, &mut bytes);
                for (place, byte) in (at..).zip(bytes) {
                    assert_eq!(byte, word(place)[(place % 8) as usize], "{at}+{len}");
                }
            }
        }
    }
}
