//! The drive that a suite is to run on, before it is touched.

use std::path::{Path, PathBuf};

use lab::Lab;
use linux::SysRoot;
use linux::space::Space;
use record::units::bytes;
use record::units::names::shown;
use ssd::Card;
use storage::raw::RawDevice;

use crate::Error;
use crate::suite::drive::{Drive, Member};
use crate::suite::raid0::Raid0;
use crate::suite::stage::PLACES;

/// The drive to run on, before it is touched.
#[derive(Debug, Clone)]
pub enum Target {
    /// A block device whose data may be destroyed.
    Device {
        /// Its path.
        path: PathBuf,
        /// Whether known data, such as a file system, may be destroyed.
        force: bool,
    },
    /// Two block devices as RAID 0.
    Raid0(Raid0),
    /// A file, which has no name and goes with the suite.
    File {
        /// The directory that it takes its space from.
        directory: PathBuf,
        /// Its size in bytes.
        size_bytes: u64,
    },
    /// A simulated drive, which goes with the suite.
    Lab {
        /// Its card.
        card: Box<Card>,
        /// Its size in bytes.
        size_bytes: u64,
        /// How many times slower than its card it is, 0.001 to 1000.
        slower: f64,
        /// The laboratory.
        lab: Lab,
    },
}

impl Target {
    /// The drive as the log has it, without touching it. Takes away what a suite left on devices
    /// that was killed together with its watchers.
    ///
    /// # Errors
    /// When a device may not be touched, or a file doesn't fit.
    pub fn drive(&self) -> Result<Drive, Error> {
        if let Target::Device { .. } | Target::Raid0(_) = self {
            linux::mount_point::sweep(Path::new(PLACES));
            linux::md::sweep(&SysRoot::host(), Path::new(PLACES));
        }
        match self {
            Target::Device { path, force } => {
                Ok(Drive::Device(Member::of(&RawDevice::claim(path, *force)?)))
            }
            Target::Raid0(raid0) => raid0.drive(),
            Target::File {
                directory,
                size_bytes,
            } => {
                fits(directory, *size_bytes)?;
                let directory = std::fs::canonicalize(directory);
                Ok(Drive::File {
                    directory: directory.unwrap_or_default().to_string_lossy().into_owned(),
                    size_bytes: *size_bytes,
                })
            }
            Target::Lab {
                card,
                size_bytes,
                slower,
                ..
            } => Ok(Drive::Lab {
                slower: *slower,
                profile: card.name().to_owned(),
                size_bytes: *size_bytes,
            }),
        }
    }

    /// Bytes that the drive discards per second, as its card has it; `None` of a real drive.
    pub fn discards_per_s(&self) -> Option<f64> {
        let Target::Lab { card, slower, .. } = self else {
            return None;
        };
        let discard = card.figures().discard.as_ref()?;
        let piece = PIECE.min(discard.max_bytes);
        let seconds = discard.service(piece, 0, 1).as_secs_f64() * slower;
        Some(piece as f64 / seconds)
    }
}

/// A drive's speed is that of discards of this size: the most that ext4 sends.
const PIECE: u64 = 128 << 20;

/// Whether a file that may fill up leaves the reserve free.
fn fits(directory: &Path, size_bytes: u64) -> Result<(), Error> {
    let space = Space::of(directory).map_err(|error| Error::Usage(error.to_string()))?;
    if size_bytes <= space.usable_bytes() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{}: a file of {} may fill up, and {} may be written there ({} stay free); give less, or \
         another directory with --dir",
        shown(directory),
        bytes(size_bytes),
        bytes(space.usable_bytes()),
        bytes(space.reserve_bytes())
    )))
}
