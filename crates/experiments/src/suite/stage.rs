//! The device of a suite, and the place where its file systems are mounted.

use std::any::Any;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab::{Down, Lab, Launcher, Spec};
use linux::mount_point::MountPoint;
use linux::patience::while_is;
use linux::stats::{Counters, DeviceStats};
use linux::{SysRoot, block, loop_device};
use record::DeviceInfo;
use record::units::names::shown;
use record::units::{GIB, MIB, bytes};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use storage::making::Kind;
use storage::raw::RawDevice;

use crate::Error;
use crate::suite::plan::Plan;
use crate::suite::target::Target;

/// Where the file systems are mounted, and where the locks of arrays are kept.
pub(crate) const PLACES: &str = "/run/trimbench/suite";
/// How often counters are read.
const LOOK: Duration = Duration::from_millis(10);
/// For so long a device may be held after a file system was unmounted: another mount namespace or
/// the kernel may release it a moment later.
const BUSY_FOR: Duration = Duration::from_secs(10);
/// A device without a new operation for so long is quiet.
const QUIET: Duration = Duration::from_millis(500);

/// A simulated drive, which is taken down when this is dropped.
#[derive(Debug)]
struct LabDrive(Lab, String);

impl Drop for LabDrive {
    fn drop(&mut self) {
        // A drive that can't be taken down now is taken down by its guardian.
        let _ = self.0.down(&self.1, Down::ByForce);
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
    target: Target,
    /// Keeps the device: an array is stopped, a loop device detached, and a simulated drive taken
    /// down when it is dropped.
    _hold: Box<dyn Any>,
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
    pub fn set(target: &Target, launcher: &Launcher, plan: &Plan) -> Result<Stage, Error> {
        let failed = |what: &'static str| {
            move |error: io::Error| Error::Failed(format!("{what}: {error}; run it as root"))
        };
        let mount =
            MountPoint::make(Path::new(PLACES)).map_err(failed("can't make a mount point"))?;
        let mut drives = None;
        let (devices, hold): (_, Box<dyn Any>) = match target {
            Target::Device { path, force } => {
                drop(RawDevice::claim(path, *force)?);
                (vec![path.clone()], Box::new(()))
            }
            Target::Raid0(raid0) => {
                let array = raid0.build()?;
                drives = Some(raid0.paths().to_vec());
                let node = array.as_ref().map(|array| vec![array.node().to_path_buf()]);
                let devices = node.unwrap_or_else(|| raid0.paths().to_vec());
                (devices, Box::new(array))
            }
            Target::File {
                directory,
                size_bytes,
            } => {
                let made = loop_over_file(directory, *size_bytes);
                let (path, open) = made.map_err(failed("can't make a loop device"))?;
                (vec![path], Box::new(open))
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
                let (path, drive) = simulated(spec, lab, launcher, plan)?;
                (vec![path], Box::new(drive))
            }
        };
        let drives = drives.unwrap_or_else(|| devices.clone());
        let mut names = Vec::new();
        for drive in &drives {
            let name = described(drive)?.map(|own| own.statistics().to_owned());
            names.extend(name.filter(|name| !names.contains(name)));
        }
        let takes_discards = |device: &PathBuf| matches!(described(device), Ok(Some(own)) if own.discard.max_bytes > 0);
        let parts = |paths| Part::all(paths).map_err(failed("can't read the device"));
        Ok(Stage {
            mount,
            stats: DeviceStats::open_all(&SysRoot::host(), &names).map_err(Error::failed)?,
            discards: devices.iter().all(takes_discards),
            devices: parts(devices)?,
            drives: parts(drives)?,
            target: target.clone(),
            _hold: hold,
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

    /// Whether a file system has to stripe itself over several devices.
    pub(crate) fn stripes_itself(&self) -> bool {
        self.devices.len() > 1
    }

    /// Why this file system can't be made here; `None` if it can.
    pub(crate) fn why_not(&self, kind: Kind) -> Option<String> {
        match &self.target {
            Target::Raid0(raid0) => raid0.why_not(kind),
            _ => None,
        }
    }

    /// Where it is mounted, if it is.
    pub fn mount_point(&self) -> &Path {
        self.mount.path()
    }

    /// Mounts it, which must not be mounted.
    pub(crate) fn mount(&self, kind: &str, options: &str) -> Result<(), Error> {
        let mut options = options.to_owned();
        // The kernel may not know yet that they belong together.
        for further in &self.devices[1..] {
            let real = std::fs::canonicalize(&further.path);
            let path = real.unwrap_or_else(|_| further.path.clone());
            options += &format!(",device={}", path.to_string_lossy());
        }
        let mounted = self.mount.mount(self.device(), kind, &options);
        mounted.map_err(Error::of(format!("mount -t {kind} -o {options}")))
    }

    /// Unmounts it, if it is mounted.
    pub(crate) fn unmount(&self) -> Result<(), Error> {
        self.mount.unmount().map_err(Error::of("umount"))
    }

    /// Fails if the device, or a drive that it is made of, is no longer there.
    pub(crate) fn is_there(&self) -> Result<(), Error> {
        let mut parts = self.drives.iter().chain(&self.devices);
        let is_there = |part: &Part| size_of(&part.path).is_ok_and(|size| size == part.size_bytes);
        parts.find(|part| !is_there(part)).map_or(Ok(()), |gone| {
            Err(Error::Failed(format!(
                "{} is gone; what was measured is kept, and the same command goes on when it is back",
                shown(&gone.path)
            )))
        })
    }

    /// Empties the device, so that each file system begins on a blank device: discards all of it,
    /// or clears what is at its beginning where it takes no discards.
    pub(crate) fn empty(&self, stop: &AtomicBool) -> Result<(), Error> {
        let mut devices = self.devices.iter();
        devices.try_for_each(|device| self.empty_one(device, stop))
    }

    fn empty_one(&self, device: &Part, stop: &AtomicBool) -> Result<(), Error> {
        let failed = Error::of(format!("emptying {}", shown(&device.path)));
        let file = device.unheld(BUSY_FOR).map_err(&failed)?;
        // Pieces, so that Ctrl-C is heard; the kernel cuts them to what the device takes.
        let piece = (device.size_bytes / 64).next_multiple_of(MIB).max(GIB);
        let mut at = 0;
        while self.discards && at < device.size_bytes {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let end = (at + piece).min(device.size_bytes);
            block::discard(&file, &(at..end)).map_err(&failed)?;
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
        if matches!(self.target, Target::Device { .. } | Target::Raid0(_)) {
            for device in &self.devices {
                // A device that is gone carries nothing any more, and another's is left alone.
                let _ = device
                    .unheld(BUSY_FOR)
                    .and_then(|file| self.clear(device, &file));
            }
        }
    }

    /// The counters of the device; of several drives their sums.
    pub(crate) fn counters(&self) -> Result<Counters, Error> {
        self.stats.read().map_err(Error::failed)
    }

    /// Waits until the device is quiet, at most so long; calls `look` at each look.
    pub(crate) fn settle(
        &self,
        at_most: Duration,
        stop: &AtomicBool,
        mut look: impl FnMut(&Counters),
    ) -> Result<(), Error> {
        let began = Instant::now();
        let mut last = self.counters()?;
        let mut changed = Instant::now();
        while began.elapsed() < at_most && changed.elapsed() < QUIET {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
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

/// A device as it is described; `None` where nothing is known of it.
fn described(device: &Path) -> Result<Option<DeviceInfo>, Error> {
    let found = storage::describe_device(device).map_err(Error::failed)?;
    Ok(found.devices.into_iter().next())
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

/// A simulated drive that can keep what the plan writes.
fn simulated(
    spec: Spec,
    lab: &Lab,
    launcher: &Launcher,
    plan: &Plan,
) -> Result<(PathBuf, LabDrive), Error> {
    let info = lab.up(&spec, launcher)?;
    let stored = plan.stored_bytes().min(spec.size_bytes);
    let drive = LabDrive(lab.clone(), spec.name);
    if let Some(left) = lab.left(&info.spec) {
        // `trimbench run` leaves a part of the room free.
        let free = match plan.runs() {
            true => linux::space::reserve_bytes(left),
            false => 0,
        };
        if left < stored + free {
            return Err(Error::Usage(format!(
                "a simulated drive can keep {} in this machine's memory now, and up to {} would \
                 be on it, beside {} that stay free: give a smaller size (--set size=1G), or free memory",
                bytes(left),
                bytes(stored),
                bytes(free)
            )));
        }
    }
    let none = || format!("the drive {} of `trimbench lab` has no device", drive.1);
    let device = info.device.ok_or_else(|| Error::Failed(none()))?;
    Ok((device, drive))
}

fn size_of(device: &Path) -> io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(device, flags, Mode::empty())?);
    match file.seek(SeekFrom::End(0))? {
        0 => Err(io::Error::other("it has no size any more")),
        size => Ok(size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::loop_fs::{Fs, LoopFs};

    #[test]
    fn a_device_that_another_holds_is_waited_for_and_its_holder_is_named() {
        let Some(fs) = LoopFs::or_skip(Fs::Xfs, "nodiscard", 320) else {
            return;
        };
        let path = fs.device().path().to_path_buf();
        let part = Part {
            size_bytes: size_of(&path).unwrap(),
            path,
        };
        let held = part.unheld(Duration::from_millis(50)).unwrap_err();
        let at = fs.path().to_str().unwrap();
        assert!(held.to_string().contains(at), "{held}");
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| part.unheld(Duration::from_secs(60)));
            std::thread::sleep(Duration::from_millis(50));
            fs.while_unmounted(|_| drop(opened.join().unwrap().unwrap()));
        });
    }
}
