//! A loop device over a sparse image. Both are removed when the test is over.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::loop_fs::must;
use crate::sweep;

/// Where the image lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// In memory: fast, and a discard frees memory for real.
    Tmpfs,
    /// On whatever disk holds the temporary directory.
    Disk,
}

/// Enough for mkfs.xfs, and for a run, which keeps 1 GiB free. In MiB; sparse.
pub const SMALL: u64 = 2048;

/// A sparse image and the loop device over it.
#[derive(Debug)]
pub struct LoopDevice {
    image: PathBuf,
    device: PathBuf,
    /// Discards of those who had the device's number before, and their bytes.
    earlier: (u64, u64),
}

impl LoopDevice {
    /// Makes a device of `mib` MiB that reads as zeroes.
    pub fn new(mib: u64, on: On) -> Self {
        Self::with(mib, on, &[], &["-f"])
    }

    /// Makes one in memory whose first bytes are these, with these options of `losetup`.
    pub fn starting_with(bytes: &[u8], mib: u64, options: &[&str]) -> Self {
        Self::with(mib, On::Tmpfs, bytes, &[&["-f"], options].concat())
    }

    /// Makes one in memory at this device node, as `/dev/loop7`.
    pub fn at(device: &Path, mib: u64) -> Self {
        Self::with(mib, On::Tmpfs, &[], &[&device.to_string_lossy()])
    }

    fn with(mib: u64, on: On, first: &[u8], arguments: &[&str]) -> Self {
        sweep::sweep();
        let place = match on {
            On::Tmpfs => PathBuf::from("/dev/shm"),
            On::Disk => sweep::disk_dir(),
        };
        let image = place.join(format!("{}.img", sweep::own_name()));
        let mut file = File::create(&image).unwrap();
        // From here on Drop removes the image, even if losetup fails.
        let mut new = Self {
            image,
            device: PathBuf::new(),
            earlier: (0, 0),
        };
        file.write_all(first).unwrap();
        file.set_len(mib << 20).unwrap();
        let image = new.image.to_string_lossy().into_owned();
        let device = must("losetup", &[&["--show"], arguments, &[&image]].concat());
        new.device = device.trim().into();
        new.reset_queue();
        new.earlier = new.discards();
        new
    }

    /// Puts back the queue's settings. A limit of discards, and counters that are off, stay with
    /// the device's number after a drive of the lab that a test killed.
    fn reset_queue(&self) {
        fs::write(self.queue("iostats"), "1").unwrap();
        let number = |file| {
            let text = fs::read_to_string(self.queue(file)).unwrap();
            text.trim().parse::<u64>().unwrap()
        };
        let most = number("discard_max_hw_bytes") / 4096 * 4096;
        if number("discard_max_bytes") < most {
            fs::write(self.queue("discard_max_bytes"), most.to_string()).unwrap();
        }
    }

    /// Makes a second loop device over this one, which keeps it in use.
    pub fn over(&self) -> Upper<'_> {
        let device = must("losetup", &["-f", "--show", &self.device.to_string_lossy()]);
        Upper {
            device: device.trim().to_owned(),
            _lower: self,
        }
    }

    /// The block device, as `/dev/loop3`.
    pub fn path(&self) -> &Path {
        &self.device
    }

    /// The same as text.
    pub fn node(&self) -> &str {
        self.device.to_str().unwrap()
    }

    /// The device's name, as `loop3`.
    pub fn name(&self) -> &str {
        self.device.file_name().unwrap().to_str().unwrap()
    }

    /// The file below it.
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// Discards that it completed since it was made, and the bytes they covered: fields 12 and 14 of
    /// its statistics (Documentation/block/stat.rst), which go on with the device's number.
    pub fn discards(&self) -> (u64, u64) {
        let stat = Path::new("/sys/block").join(self.name()).join("stat");
        let text = fs::read_to_string(stat).unwrap();
        let field = |n: usize| -> u64 {
            let field = text.split_whitespace().nth(n - 1);
            field.unwrap().parse().unwrap()
        };
        let (commands, bytes) = self.earlier;
        (field(12) - commands, field(14) * 512 - bytes)
    }

    /// Makes it `mib` MiB large, as a volume that grows.
    pub fn resize(&self, mib: u64) {
        let image = fs::OpenOptions::new().write(true).open(&self.image);
        image.unwrap().set_len(mib << 20).unwrap();
        must("losetup", &["-c", &self.device.to_string_lossy()]);
    }

    /// Memory or disk space the image takes now, in bytes: less after a discard.
    pub fn allocated(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(&self.image).unwrap().blocks() * 512
    }

    /// A file of the device's queue, as `discard_max_bytes`.
    pub fn queue(&self, file: &str) -> PathBuf {
        let queue = Path::new("/sys/block").join(self.name()).join("queue");
        queue.join(file)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        sweep::clear(&self.image);
    }
}

/// A loop device over a loop device.
#[derive(Debug)]
pub struct Upper<'a> {
    device: String,
    _lower: &'a LoopDevice,
}

impl Drop for Upper<'_> {
    fn drop(&mut self) {
        sweep::quietly("losetup", &["-d", &self.device]);
    }
}
