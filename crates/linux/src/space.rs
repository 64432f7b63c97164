//! How much may be written to a file system without getting near its end.

use record::units::names;
use std::io;
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;

/// The space of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Its size.
    pub size_bytes: u64,
    /// Bytes that this user may still write, without the part reserved for root.
    pub available_bytes: u64,
    /// Its block size.
    pub block_bytes: u64,
}

/// Why the space is unknown.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell the free space of {path}: {source}", path = names::shown(path))]
pub struct SpaceError {
    /// Where.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl Space {
    /// The space of the file system that holds `path`.
    pub fn of(path: impl AsRef<Path>) -> Result<Space, SpaceError> {
        let path = path.as_ref();
        let stat = rustix::fs::statvfs(path).map_err(|errno| SpaceError {
            path: path.to_path_buf(),
            source: errno.into(),
        })?;
        let unit = if stat.f_frsize == 0 {
            stat.f_bsize
        } else {
            stat.f_frsize
        };
        Ok(Space {
            size_bytes: stat.f_blocks.saturating_mul(unit),
            available_bytes: stat.f_bavail.saturating_mul(unit),
            block_bytes: unit,
        })
    }

    /// Bytes that must be kept free; see [`reserve_bytes`].
    pub fn reserve_bytes(&self) -> u64 {
        reserve_bytes(self.size_bytes)
    }

    /// Bytes that may be written and leave the reserve free; 0 when that is touched already.
    pub fn usable_bytes(&self) -> u64 {
        self.available_bytes.saturating_sub(self.reserve_bytes())
    }
}

/// Bytes to keep free on a file system of that size: 10 % or 1 GiB, whichever is more.
pub fn reserve_bytes(size_bytes: u64) -> u64 {
    (size_bytes / 10).max(GIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_or_a_gibibyte_stays_free() {
        assert_eq!(reserve_bytes(4 * GIB), GIB);
        assert_eq!(reserve_bytes(100 * GIB), 10 * GIB);
        let nearly_full = Space {
            size_bytes: 100 * GIB,
            available_bytes: 11 * GIB,
            block_bytes: 4096,
        };
        assert_eq!(nearly_full.usable_bytes(), GIB);
        let full = Space {
            available_bytes: GIB,
            ..nearly_full
        };
        assert_eq!(full.usable_bytes(), 0);
    }

    #[test]
    fn tells_the_space_of_this_directory() {
        let space = Space::of(".").unwrap();
        assert!(space.size_bytes >= space.available_bytes && space.block_bytes >= 512);
        assert!(
            Space::of("/no/such")
                .unwrap_err()
                .to_string()
                .contains("/no/such")
        );
    }
}
