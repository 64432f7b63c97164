//! Numbers in pages of bytes; 0 beyond their end.

/// Two bytes, the lower first.
pub(super) fn le16(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(page, at))
}

/// Four bytes, the lowest first.
pub(super) fn le32(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(page, at))
}

/// Eight bytes, the lowest first.
pub(super) fn le64(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(page, at))
}

/// Four bytes, the highest first.
pub(super) fn be32(page: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(page, at))
}

fn array<const N: usize>(page: &[u8], at: usize) -> [u8; N] {
    let bytes = at.checked_add(N).and_then(|end| page.get(at..end));
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .unwrap_or([0; N])
}
