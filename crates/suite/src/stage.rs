//! The device of a suite, and the place where its file systems are mounted.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab::{Down, Lab, Spec};
use linux::md::ArrayGuard;
use linux::mount_point::MountPoint;
use linux::patience::while_is;
use linux::stats::{Counters, DeviceStats};
use linux::{SysRoot, block, loop_device};
use record::DeviceInterval;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use storage::making::Kind;
use storage::raw::RawDevice;
use units::names::shown;
use units::{GIB, MIB, bytes};

use crate::error::SuiteError;
use crate::plan::Plan;
use crate::programs::{Programs, Trouble};
use crate::raid0::Raid0;
use crate::target::Target;

/// Where the file systems are mounted, and where the locks of arrays are kept.
pub(crate) const PLACES: &str = "/run/trimbench/suite";
/// How often counters are read.
const LOOK: Duration = Duration::from_millis(10);
/// For so long a device may be held after a file system was unmounted: another mount namespace or
/// the kernel may release it a moment later.
const BUSY_FOR: Duration = Duration::from_secs(10);
/// A device without a new operation for so long is quiet.
const QUIET: Duration = Duration::from_millis(500);

/// Keeps the device.
#[derive(Debug)]
enum Hold {
    Device,
    /// An array is stopped when it is dropped.
    Raid0 {
        raid0: Raid0,
        _array: Option<ArrayGuard>,
    },
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

/// A device that is ours, or several over which a file system is striped.
#[derive(Debug)]
pub struct Stage {
    // Unmounted before the device goes.
    mount: MountPoint,
    stats: DeviceStats,
    /// A file system is made over all of these; never empty.
    devices: Vec<Part>,
    /// The drives whose data it is: those of an array, else the devices themselves.
    drives: Vec<Part>,
    discards: bool,
    hold: Hold,
}

/// A device with its size.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    size_bytes: u64,
}

impl Part {
    fn all(paths: Vec<PathBuf>) -> io::Result<Vec<Part>> {
        let part = |path: PathBuf| {
            let size_bytes = size_of(&path)?;
            Ok(Part { path, size_bytes })
        };
        paths.into_iter().map(part).collect()
    }

    fn is_there(&self) -> bool {
        size_of(&self.path).is_ok_and(|size| size == self.size_bytes)
    }

    /// Opens the device to be written. The kernel refuses that (`EBUSY`) where it is mounted or held:
    /// between two cells another user may have taken it. The error names the user.
    fn unheld(&self, at_most: Duration) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::EXCL | OFlags::CLOEXEC;
        let open = || rustix::fs::open(&self.path, flags, Mode::empty());
        match while_is(Errno::BUSY, at_most, open) {
            Err(Errno::BUSY) => {
                let user = storage::raw::user(&self.path);
                Err(io::Error::other(user.unwrap_or_else(|| {
                    "the kernel says that it is held, and no user of it was found".to_owned()
                })))
            }
            opened => Ok(File::from(opened?)),
        }
    }
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
            MountPoint::make(Path::new(PLACES)).map_err(failed("can't make a mount point"))?;
        let mut drives = None;
        let (devices, hold) = match target {
            Target::Device { path, force } => {
                drop(RawDevice::claim(path, *force)?);
                (vec![path.clone()], Hold::Device)
            }
            Target::Raid0(raid0) => {
                let array = raid0.build()?;
                drives = Some(raid0.paths().to_vec());
                let devices = match &array {
                    Some(array) => vec![array.node().to_path_buf()],
                    None => raid0.paths().to_vec(),
                };
                let hold = Hold::Raid0 {
                    raid0: raid0.clone(),
                    _array: array,
                };
                (devices, hold)
            }
            Target::File {
                directory,
                size_bytes,
            } => {
                let made = loop_over_file(directory, *size_bytes);
                let (path, open) = made.map_err(failed("can't make a loop device"))?;
                (vec![path], Hold::File { _open: open })
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
                let (path, hold) = simulated(&spec, lab, programs, plan)?;
                (vec![path], hold)
            }
        };
        let drives = drives.unwrap_or_else(|| devices.clone());
        let stats = DeviceStats::open_all(&SysRoot::host(), &counting(&drives)?)
            .map_err(|error| SuiteError::Failed(error.to_string()))?;
        let parts = |paths| Part::all(paths).map_err(failed("can't read the device"));
        Ok(Stage {
            mount,
            stats,
            discards: devices.iter().all(|device| discards(device)),
            devices: parts(devices)?,
            drives: parts(drives)?,
            hold,
        })
    }

    /// The device, the first one if there are several.
    pub fn device(&self) -> &Path {
        &self.devices[0].path
    }

    /// The devices that a file system is made over.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &Path> {
        self.devices.iter().map(|device| device.path.as_path())
    }

    /// How many drives' counters are summed.
    pub(crate) fn drives(&self) -> usize {
        self.drives.len()
    }

    /// Whether a file system has to stripe itself over several devices.
    pub(crate) fn stripes_itself(&self) -> bool {
        self.devices.len() > 1
    }

    /// Why this file system can't be made here; `None` if it can.
    pub(crate) fn why_not(&self, kind: Kind) -> Option<String> {
        match &self.hold {
            Hold::Raid0 { raid0, .. } => raid0.why_not(kind),
            _ => None,
        }
    }

    /// Where it is mounted, if it is.
    pub fn mount_point(&self) -> &Path {
        self.mount.path()
    }

    /// Mounts it, which must not be mounted.
    pub(crate) fn mount(&self, kind: &str, options: &str) -> Result<(), Trouble> {
        let mut options = options.to_owned();
        // The kernel may not know yet that they belong together.
        for further in &self.devices[1..] {
            let real = std::fs::canonicalize(&further.path);
            let path = real.unwrap_or_else(|_| further.path.clone());
            options += &format!(",device={}", path.to_string_lossy());
        }
        let what = format!("mount -t {kind} -o {options}");
        self.mount
            .mount(self.device(), kind, &options)
            .map_err(Trouble::of(&what))
    }

    /// Unmounts it, if it is mounted.
    pub(crate) fn unmount(&self) -> Result<(), Trouble> {
        self.mount.unmount().map_err(Trouble::of("umount"))
    }

    /// The device, or the drive that it is made of, that is no longer there.
    pub(crate) fn gone(&self) -> Option<&Path> {
        let mut parts = self.drives.iter().chain(&self.devices);
        let gone = parts.find(|part| !part.is_there())?;
        Some(&gone.path)
    }

    /// Empties the device, so that each file system begins on a blank device: discards all of it,
    /// or clears what is at its beginning where it takes no discards.
    pub(crate) fn empty(&self, stop: &AtomicBool) -> Result<(), Trouble> {
        self.devices
            .iter()
            .try_for_each(|device| self.empty_one(device, stop))
    }

    fn empty_one(&self, device: &Part, stop: &AtomicBool) -> Result<(), Trouble> {
        let what = format!("emptying {}", shown(&device.path));
        let failed = |error: io::Error| Trouble::Failed(format!("{what}: {error}"));
        let file = device.unheld(BUSY_FOR).map_err(failed)?;
        // Pieces, so that Ctrl-C is heard; the kernel cuts them to what the device takes.
        let piece = (device.size_bytes / 64).next_multiple_of(MIB).max(GIB);
        let mut at = 0;
        while self.discards && at < device.size_bytes {
            if stop.load(Ordering::Relaxed) {
                return Err(Trouble::Stopped);
            }
            let end = (at + piece).min(device.size_bytes);
            block::discard(&file, &(at..end)).map_err(failed)?;
            at = end;
        }
        // What a drive returns for discarded space is its own affair.
        self.clear(device, &file).map_err(failed)
    }

    /// Clears the beginning of each drive, where every file system is recognised.
    fn clear(&self, device: &Part, file: &File) -> io::Result<()> {
        // An array begins with the beginnings of its drives, a chunk of each in turn.
        let drives = (self.drives.len() / self.devices.len()) as u64;
        block::zero_out(file, &(0..(drives * MIB).min(device.size_bytes)))
    }

    /// Leaves a device of the user's without a file system.
    pub(crate) fn leave(&self) {
        if matches!(self.hold, Hold::Device | Hold::Raid0 { .. }) {
            for device in &self.devices {
                // A device that is gone carries nothing any more, and another's is left alone.
                let _ = device
                    .unheld(BUSY_FOR)
                    .and_then(|file| self.clear(device, &file));
            }
        }
    }

    /// The counters of the device; of several drives their sums.
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

/// Kernel names of the devices whose statistics count for these, each once.
fn counting(drives: &[PathBuf]) -> Result<Vec<String>, SuiteError> {
    let mut names = Vec::new();
    for drive in drives {
        let found = storage::describe_device(drive)
            .map_err(|error| SuiteError::Failed(error.to_string()))?;
        let name = found.devices.first().map(|own| own.statistics().to_owned());
        names.extend(name.filter(|name| !names.contains(name)));
    }
    Ok(names)
}

/// Whether a device takes discards.
fn discards(device: &Path) -> bool {
    let found = storage::describe_device(device).ok();
    let own = found.and_then(|found| found.devices.into_iter().next());
    own.is_some_and(|own| own.discard.max_bytes > 0)
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
    let stored = plan.stored_bytes().min(spec.size_bytes);
    if let Some(left) = lab.left(&info.spec) {
        // `trimbench run` leaves a part of the room free.
        let free = match plan.runs() {
            true => linux::space::reserve_bytes(left),
            false => 0,
        };
        if left < stored + free {
            return Err(SuiteError::Usage(format!(
                "a simulated drive can keep {} in this machine's memory now, and up to {} would \
                 be on it, beside {} that stay free: give a smaller size (--set size=1G), or free memory",
                bytes(left),
                bytes(stored),
                bytes(free)
            )));
        }
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
