//! The drive that a suite is to run on, before it is touched.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lab::Lab;
use linux::SysRoot;
use linux::md::{self, ArrayGuard};
use linux::space::Space;
use record::units::bytes;
use record::units::names::shown;
use ssd::Card;
use storage::making::{Kind, program_path};
use storage::raw::{RawDevice, shared_medium};

use crate::Error;
use crate::suite::drive::{Drive, Member, Striping};
use crate::suite::programs;
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
         another directory with --set dir=PATH",
        shown(directory),
        bytes(size_bytes),
        bytes(space.usable_bytes()),
        bytes(space.reserve_bytes())
    )))
}

// Two devices as RAID 0: by md, or by a file system itself where there is no md.

/// Two block devices whose data may be destroyed.
#[derive(Debug, Clone)]
pub struct Raid0 {
    /// Their paths.
    paths: [PathBuf; 2],
    /// Whether known data, such as a file system, may be destroyed.
    force: bool,
    /// Why md can't stripe here; `None`: it can.
    without_md: Option<String>,
}

impl Raid0 {
    /// The RAID 0 of two devices; loads md's module where the kernel has one.
    pub fn new(paths: [PathBuf; 2], force: bool) -> Raid0 {
        Raid0 {
            paths,
            force,
            without_md: without_md(),
        }
    }

    /// A sentence about the layer that stripes, and about what becomes of it or of other file systems.
    pub fn note(&self) -> String {
        let Some(why) = &self.without_md else {
            return "mdadm builds the array without a superblock, and it is stopped at the end"
                .to_owned();
        };
        let striped = Kind::ALL
            .into_iter()
            .filter(|kind| kind.striped().is_some());
        let names: Vec<&str> = striped.map(Kind::name).collect();
        format!(
            "{why}, so {} alone can stripe here, by itself; cells of other file systems will fail",
            names.join(", ")
        )
    }

    /// Why a file system can't be striped over both; `None` if it can.
    pub(crate) fn why_not(&self, kind: Kind) -> Option<String> {
        let why = self.without_md.as_ref()?;
        let name = kind.name();
        let alone = kind.striped().is_none();
        alone.then(|| format!("{why}, and {name} cannot be striped over two devices by itself"))
    }

    /// The paths of both.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Claims both, so that neither is the other or a part of it.
    fn claim(&self) -> Result<[RawDevice; 2], Error> {
        let [first, second] = &self.paths;
        if let Some(why) = shared_medium(&SysRoot::host(), [first, second]) {
            return Err(Error::Usage(format!(
                "--raid0: {} and {} {why}; give two drives",
                shown(first),
                shown(second)
            )));
        }
        let claim = |path| RawDevice::claim(path, self.force);
        Ok([claim(first)?, claim(second)?])
    }

    pub(crate) fn drive(&self) -> Result<Drive, Error> {
        let claimed = self.claim()?;
        let members = claimed.each_ref().map(Member::of);
        let least = members.iter().map(|member| member.size_bytes).min();
        Ok(Drive::Raid0 {
            size_bytes: 2 * least.unwrap_or(0),
            members: members.to_vec(),
            striping: match self.without_md {
                None => Striping::Md,
                Some(_) => Striping::FileSystem,
            },
        })
    }

    /// Builds md's array, or nothing if a file system does it itself. The array is stopped when
    /// the guard is dropped, and if this process is killed.
    pub(crate) fn build(&self) -> Result<Option<ArrayGuard>, Error> {
        let claimed = self.claim()?;
        if self.without_md.is_some() {
            return Ok(None);
        }
        let names = claimed.each_ref().map(|one| one.name().to_owned());
        let array = ArrayGuard::take(&SysRoot::host(), Path::new(PLACES), &names)
            .map_err(Error::of("can't make an array"))?;
        // md claims them itself.
        drop(claimed);
        let mut words: Vec<OsString> = vec!["mdadm".into(), "--build".into(), array.node().into()];
        let options = "--quiet --run --level=0 --chunk=512 --raid-devices=2";
        words.extend(options.split(' ').map(OsString::from));
        words.extend(self.paths.each_ref().map(OsString::from));
        programs::run(&words, &AtomicBool::new(false), &mut || {})?;
        Ok(Some(array))
    }
}

/// Why md can't stripe on this machine.
fn without_md() -> Option<String> {
    if program_path("mdadm").is_none() {
        return Some("there is no mdadm".to_owned());
    }
    let sys = SysRoot::host();
    if !md::has_raid0(&sys) {
        let load = ["modprobe", "-q", "raid0"].map(OsString::from);
        // Whether that helped is seen at once.
        let _ = programs::run(&load, &AtomicBool::new(false), &mut || {});
    }
    (!md::has_raid0(&sys)).then(|| "this kernel has no RAID 0 of md".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raid0(without_md: Option<&str>) -> Raid0 {
        Raid0 {
            paths: ["/dev/null", "/dev/zero"].map(PathBuf::from),
            force: false,
            without_md: without_md.map(str::to_owned),
        }
    }

    #[test]
    fn without_md_only_a_file_system_that_stripes_itself_is_made() {
        let none = raid0(Some("there is no mdadm"));
        for kind in Kind::ALL {
            assert_eq!(
                none.why_not(kind).is_none(),
                kind == Kind::Btrfs,
                "{kind:?}"
            );
            assert_eq!(raid0(None).why_not(kind), None);
        }
        assert!(none.note().starts_with("there is no mdadm, so btrfs alone"));
        assert!(raid0(None).note().starts_with("mdadm builds"));
    }
}
