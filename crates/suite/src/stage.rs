//! The device of a suite, and the place where its file systems are mounted.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab::{Down, Lab, Spec};
use linux::mount_point::MountPoint;
use linux::space::Space;
use linux::stats::{Counters, DeviceStats};
use linux::{SysRoot, block, loop_device};
use record::DeviceInterval;
use rustix::fs::{Mode, OFlags};
use ssd::Card;
use storage::raw::RawDevice;
use units::names::shown;
use units::{GIB, MIB, bytes};

use crate::error::SuiteError;
use crate::log::Drive;
use crate::plan::Plan;
use crate::programs::{Programs, Trouble};

/// Where the file systems are mounted.
const MOUNTS: &str = "/run/trimbench/suite";
/// How often counters are read.
const LOOK: Duration = Duration::from_millis(10);
/// A device without a new operation for so long is quiet.
const QUIET: Duration = Duration::from_millis(500);

/// The drive to run on, before it is touched.
#[derive(Debug, Clone)]
pub enum Target {
    /// A block device whose data may be destroyed.
    Device {
        /// Its path.
        path: PathBuf,
        /// Names of what it may carry and lose.
        overwrite: Vec<String>,
    },
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

/// Keeps the device.
#[derive(Debug)]
enum Hold {
    Device,
    /// A loop device is detached when it is closed.
    File {
        _open: File,
    },
    Lab {
        lab: Lab,
        name: String,
    },
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Hold::Lab { lab, name } = self {
            // A drive that can't be taken down now is taken down by its guardian.
            let _ = lab.down(name, Down::ByForce);
        }
    }
}

/// A device that is ours.
#[derive(Debug)]
pub struct Stage {
    // Unmounted before the device goes.
    mount: MountPoint,
    stats: DeviceStats,
    device: PathBuf,
    size_bytes: u64,
    discards: bool,
    hold: Hold,
}

impl Target {
    /// The drive as the log has it, without touching it.
    ///
    /// # Errors
    /// When a device may not be touched, or a file doesn't fit.
    pub fn drive(&self) -> Result<Drive, SuiteError> {
        match self {
            Target::Device { path, overwrite } => {
                let claimed = RawDevice::claim(path, overwrite)?;
                let model = storage::describe_device(path).ok().and_then(|found| {
                    let named = found.devices.into_iter().find(|d| d.model.is_some());
                    named.and_then(|device| device.model)
                });
                Ok(Drive::Device {
                    path: path.to_string_lossy().into_owned(),
                    model,
                    size_bytes: claimed.size_bytes(),
                })
            }
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
}

/// Whether a file that may fill up leaves the reserve free.
fn fits(directory: &Path, size_bytes: u64) -> Result<(), SuiteError> {
    let space = Space::of(directory).map_err(|error| SuiteError::Usage(error.to_string()))?;
    if size_bytes <= space.usable_bytes() {
        return Ok(());
    }
    Err(SuiteError::Usage(format!(
        "{}: a file of {} may fill up, and {} may be written there ({} stay free); give less, or \
         another directory with --dir",
        shown(directory),
        bytes(size_bytes),
        bytes(space.usable_bytes()),
        bytes(space.reserve_bytes())
    )))
}

impl Stage {
    /// Makes or claims the device, and a place to mount on. Both go with this value, and also if
    /// this process is killed.
    ///
    /// # Errors
    /// When that can't be done; nothing is left then.
    pub fn set(target: &Target, programs: &Programs, plan: &Plan) -> Result<Stage, SuiteError> {
        let failed = |what: &'static str| {
            move |error: io::Error| SuiteError::Failed(format!("{what}: {error}; run it as root"))
        };
        let mount =
            MountPoint::make(Path::new(MOUNTS)).map_err(failed("can't make a mount point"))?;
        let (device, hold) = match target {
            Target::Device { path, overwrite } => {
                drop(RawDevice::claim(path, overwrite)?);
                (path.clone(), Hold::Device)
            }
            Target::File {
                directory,
                size_bytes,
            } => {
                let made = loop_over_file(directory, *size_bytes);
                let (path, open) = made.map_err(failed("can't make a loop device"))?;
                (path, Hold::File { _open: open })
            }
            Target::Lab {
                card,
                size_bytes,
                slower,
                lab,
            } => {
                let name = format!("suite-{}", std::process::id());
                let mut spec = Spec::new(&name, card, *size_bytes);
                spec.slower = *slower;
                simulated(&spec, lab, programs, plan)?
            }
        };
        let sys = SysRoot::host();
        let name = sys.device_at(&device).ok_or_else(|| {
            SuiteError::Failed(format!("{} is not listed in /sys", shown(&device)))
        })?;
        let stats = DeviceStats::open(&sys, &name)
            .map_err(|error| SuiteError::Failed(error.to_string()))?;
        let described = storage::describe_device(&device);
        let first = described
            .ok()
            .and_then(|found| found.devices.into_iter().next());
        Ok(Stage {
            mount,
            stats,
            size_bytes: size_of(&device).map_err(failed("can't read the device"))?,
            device,
            discards: first.is_some_and(|device| device.discard.max_bytes > 0),
            hold,
        })
    }

    /// The device.
    pub fn device(&self) -> &Path {
        &self.device
    }

    /// Where it is mounted, if it is.
    pub fn mount_point(&self) -> &Path {
        self.mount.path()
    }

    /// Mounts it, which must not be mounted.
    pub(crate) fn mount(&self, kind: &str, options: &str) -> Result<(), Trouble> {
        let what = format!("mount -t {kind} -o {options}");
        self.mount
            .mount(&self.device, kind, options)
            .map_err(Trouble::of(&what))
    }

    /// Unmounts it, if it is mounted.
    pub(crate) fn unmount(&self) -> Result<(), Trouble> {
        self.mount.unmount().map_err(Trouble::of("umount"))
    }

    /// Whether the device is still there.
    pub(crate) fn is_there(&self) -> bool {
        size_of(&self.device).is_ok_and(|size| size == self.size_bytes)
    }

    /// Empties the device, so that each file system begins on a blank device: discards all of it,
    /// or clears what is at its beginning where it takes no discards.
    pub(crate) fn empty(&self, stop: &AtomicBool) -> Result<(), Trouble> {
        let what = format!("emptying {}", shown(&self.device));
        let failed = |error: io::Error| Trouble::Failed(format!("{what}: {error}"));
        let file = self.unheld().map_err(failed)?;
        // Pieces, so that Ctrl-C is heard; the kernel cuts them to what the device takes.
        let piece = (self.size_bytes / 64).next_multiple_of(MIB).max(GIB);
        let mut at = 0;
        while self.discards && at < self.size_bytes {
            if stop.load(Ordering::Relaxed) {
                return Err(Trouble::Stopped);
            }
            let end = (at + piece).min(self.size_bytes);
            block::discard(&file, &(at..end)).map_err(failed)?;
            at = end;
        }
        // What a drive returns for discarded space is its own affair.
        self.clear(&file).map_err(failed)
    }

    /// Opens the device to be written. The kernel refuses that (`EBUSY`) where it is mounted or held:
    /// between two cells another user may have taken it.
    fn unheld(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .custom_flags(OFlags::EXCL.bits().cast_signed());
        options.open(&self.device)
    }

    /// Clears the beginning of the device, where every file system is recognised.
    fn clear(&self, file: &File) -> io::Result<()> {
        block::zero_out(file, &(0..MIB.min(self.size_bytes)))
    }

    /// Leaves a device of the user's without a file system.
    pub(crate) fn leave(&self) {
        if matches!(self.hold, Hold::Device) {
            // A device that is gone carries nothing any more, and another's is left alone.
            let _ = self.unheld().and_then(|file| self.clear(&file));
        }
    }

    /// The counters of the device.
    pub(crate) fn counters(&self) -> Result<Counters, Trouble> {
        self.stats
            .read()
            .map_err(|error| Trouble::Failed(error.to_string()))
    }

    /// Operations since an earlier look.
    pub(crate) fn since(&self, earlier: &Counters) -> Result<DeviceInterval, Trouble> {
        Ok(self.counters()?.since(earlier))
    }

    /// Waits until the device is quiet, at most so long; calls `look` at each look.
    pub(crate) fn settle(
        &self,
        at_most: Duration,
        stop: &AtomicBool,
        mut look: impl FnMut(&Counters),
    ) -> Result<(), Trouble> {
        let began = Instant::now();
        let mut last = self.counters()?;
        let mut changed = Instant::now();
        while began.elapsed() < at_most && changed.elapsed() < QUIET {
            if stop.load(Ordering::Relaxed) {
                return Err(Trouble::Stopped);
            }
            std::thread::sleep(LOOK);
            let now = self.counters()?;
            if now != last || now.in_flight > 0 {
                changed = Instant::now();
            }
            last = now;
            look(&now);
        }
        Ok(())
    }
}

/// A loop device over a new file without a name; it is detached when the returned file is closed
/// and it isn't mounted any more.
fn loop_over_file(directory: &Path, size_bytes: u64) -> io::Result<(PathBuf, File)> {
    let open = |more: OFlags| -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC | more;
        let file = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(file))
    };
    // Past the page cache: else every byte would be in memory twice.
    let (file, direct) = match open(OFlags::DIRECT) {
        Ok(file) => (file, true),
        Err(_) => (open(OFlags::empty())?, false),
    };
    file.set_len(size_bytes)?;
    match loop_device::attach_while_open(&file, 0, direct) {
        Err(_) if direct => loop_device::attach_while_open(&file, 0, false),
        made => made,
    }
}

fn simulated(
    spec: &Spec,
    lab: &Lab,
    programs: &Programs,
    plan: &Plan,
) -> Result<(PathBuf, Hold), SuiteError> {
    let name = spec.name.clone();
    let info = lab.up(spec, &programs.launcher)?;
    let hold = Hold::Lab {
        lab: lab.clone(),
        name: name.clone(),
    };
    let needed = plan.stored_bytes().min(spec.size_bytes);
    if let Some(left) = lab.left(&info.spec).filter(|left| *left < needed) {
        return Err(SuiteError::Usage(format!(
            "a simulated drive can keep {} in this machine's memory now, and up to {} would be on \
             it: give a smaller --size, or free memory",
            bytes(left),
            bytes(needed)
        )));
    }
    let device = info.device.ok_or_else(|| {
        SuiteError::Failed(format!("the drive {name} of `trimbench lab` has no device"))
    })?;
    Ok((device, hold))
}

fn size_of(device: &Path) -> io::Result<u64> {
    use std::io::{Seek, SeekFrom};
    let mut options = OpenOptions::new();
    let mut file = options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(device)?;
    match file.seek(SeekFrom::End(0))? {
        0 => Err(io::Error::other("it has no size any more")),
        size => Ok(size),
    }
}
