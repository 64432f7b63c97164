//! Where in the file the data goes. Pure.

/// Pieces of data with holes between them; a plain file is one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    data_bytes: u64,
    piece_bytes: u64,
    hole_bytes: u64,
}

/// A stretch of data that is contiguous in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Layout {
    pub(super) fn plain(data_bytes: u64) -> Layout {
        Layout {
            data_bytes,
            piece_bytes: data_bytes.max(1),
            hole_bytes: 0,
        }
    }

    /// Pieces of `piece_bytes` (not 0), each followed by a hole.
    pub(super) fn pieces(data_bytes: u64, piece_bytes: u64, hole_bytes: u64) -> Layout {
        Layout {
            data_bytes,
            piece_bytes,
            hole_bytes,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        self.piece_bytes >= self.data_bytes
    }

    /// How long the file is: no hole follows the last piece.
    pub(super) fn file_len(&self) -> u64 {
        let pieces = self.data_bytes.div_ceil(self.piece_bytes);
        self.data_bytes + pieces.saturating_sub(1) * self.hole_bytes
    }

    /// The pieces, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Stretch> + use<> {
        let layout = *self;
        let pieces = self.data_bytes.div_ceil(self.piece_bytes);
        (0..pieces).map(move |i| Stretch {
            offset: i * (layout.piece_bytes + layout.hole_bytes),
            len: layout
                .piece_bytes
                .min(layout.data_bytes - i * layout.piece_bytes),
        })
    }

    /// Where these bytes of data lie in the file.
    pub(super) fn stretches(&self, data: std::ops::Range<u64>) -> impl Iterator<Item = Stretch> {
        let layout = *self;
        let mut at = data.start;
        let end = data.end.min(self.data_bytes);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (piece, within) = (at / layout.piece_bytes, at % layout.piece_bytes);
            let len = (layout.piece_bytes - within).min(end - at);
            at += len;
            Some(Stretch {
                offset: piece * (layout.piece_bytes + layout.hole_bytes) + within,
                len,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_file_is_one_piece() {
        let layout = Layout::plain(10_000);
        let whole = Stretch {
            offset: 0,
            len: 10_000,
        };
        assert!(layout.is_plain());
        assert_eq!(layout.iter().collect::<Vec<_>>(), [whole]);
        assert_eq!(layout.file_len(), 10_000);
        assert_eq!(Layout::plain(0).iter().count(), 0);
    }

    proptest! {
        #[test]
        fn chunks_cover_exactly_the_pieces(
            data in 1..1_000u64, piece in 1..300u64, hole in 0..10u64, chunk in 1..400u64,
        ) {
            let layout = Layout::pieces(data, piece, hole);
            let mut covered = vec![0u8; layout.file_len() as usize];
            let mut at = 0;
            while at < data {
                for stretch in layout.stretches(at..at + chunk) {
                    for byte in stretch.offset..stretch.offset + stretch.len {
                        covered[byte as usize] += 1;
                    }
                }
                at += chunk;
            }
            let mut expected = vec![0u8; layout.file_len() as usize];
            for stretch in layout.iter() {
                for byte in stretch.offset..stretch.offset + stretch.len {
                    expected[byte as usize] = 1;
                }
            }
            prop_assert_eq!(&covered, &expected);
            prop_assert_eq!(covered.iter().map(|&n| u64::from(n)).sum::<u64>(), data);
        }
    }
}
