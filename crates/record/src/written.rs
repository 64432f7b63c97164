//! The bytes that a drive counts as written over its life.

use serde::{Deserialize, Serialize};

/// Bytes written over a drive's life, as the drive itself counts them, or of two such counts the
/// difference. `None` is what it doesn't count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Bytes that hosts wrote; NVMe rounds up to units of 512,000.
    pub host_written_bytes: Option<u64>,
    /// Bytes written to flash, those of cleaning and of the drive's own among them.
    pub flash_written_bytes: Option<u64>,
}

impl Written {
    /// Bytes written to flash for each byte of the host; `None` where one isn't known or is 0.
    pub fn amplification(&self) -> Option<f64> {
        let some = |bytes: Option<u64>| bytes.filter(|&bytes| bytes > 0);
        let flash = some(self.flash_written_bytes)?;
        Some(flash as f64 / some(self.host_written_bytes)? as f64)
    }

    /// The bytes since an earlier count. A count that went back is unknown.
    pub fn since(&self, earlier: &Written) -> Written {
        let more = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Written {
            host_written_bytes: more(self.host_written_bytes, earlier.host_written_bytes),
            flash_written_bytes: more(self.flash_written_bytes, earlier.flash_written_bytes),
        }
    }
}
