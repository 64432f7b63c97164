//! Where the reads go: a file on the disk, and a loop device in memory.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use load::actor::Op;
use load::{Fill, FillSpec};

use crate::case::{self, Case, Where};
use crate::options::Options;

/// One place.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// Opened with `O_DIRECT` and `O_NOATIME`; none for no-operations.
    pub(crate) file: Option<Arc<File>>,
    pub(crate) len: u64,
}

/// All that the wanted cases need; removed when dropped.
#[derive(Debug)]
pub(crate) struct Places {
    nowhere: Place,
    disk: Option<Place>,
    memory: Option<(Place, LoopDevice)>,
    /// Removed with their files when dropped.
    _files: Vec<tempfile::TempPath>,
}

impl Places {
    pub(crate) fn make(options: &Options) -> Result<Places, Box<dyn Error>> {
        let wants = |place| {
            let mut wanted = case::ALL.iter().filter(|case| options.wants(case));
            wanted.any(|case| case.place == place)
        };
        let mut places = Places {
            nowhere: Place {
                path: PathBuf::new(),
                file: None,
                len: 0,
            },
            disk: None,
            memory: None,
            _files: Vec::new(),
        };
        let len = options.size_bytes;
        if wants(Where::Disk) {
            let path = filled(&options.directory, len)?;
            places.disk = Some(open(&path, len)?);
            places._files.push(path);
        }
        if wants(Where::Loop) {
            let path = filled(Path::new("/dev/shm"), len)?;
            match LoopDevice::over(&path) {
                Ok(device) => {
                    let place = open(&device.path, len)?;
                    places.memory = Some((place, device));
                }
                Err(why) => println!("no loop cases: {why}"),
            }
            places._files.push(path);
        }
        Ok(places)
    }

    pub(crate) fn of(&self, case: &Case) -> Option<&Place> {
        match case.place {
            Where::Nowhere => Some(&self.nowhere),
            Where::Disk => self.disk.as_ref(),
            Where::Loop => self.memory.as_ref().map(|(place, _)| place),
        }
    }
}

fn open(path: &Path, len: u64) -> Result<Place, Box<dyn Error>> {
    Ok(Place {
        path: path.to_owned(),
        file: Some(Arc::new(load::target::open(path, Op::Read, true)?)),
        len,
    })
}

fn filled(directory: &Path, len: u64) -> Result<tempfile::TempPath, Box<dyn Error>> {
    let file = tempfile::Builder::new()
        .prefix(".trimbench-engine-")
        .tempfile_in(directory)?;
    let (file, path) = file.into_parts();
    let fill = Fill::start(FillSpec {
        file: Arc::new(file),
        path: path.to_path_buf(),
        len,
        direct: true,
        extent_bytes: None,
        seed: 1,
    })?;
    fill.wait()?;
    Ok(path)
}

/// A loop device, detached when dropped.
#[derive(Debug)]
struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    fn over(file: &Path) -> Result<LoopDevice, String> {
        let output = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output()
            .map_err(|error| format!("can't start losetup: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{} (run as root)", said.trim()));
        }
        let path = String::from_utf8_lossy(&output.stdout);
        Ok(LoopDevice {
            path: path.trim().into(),
        })
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup")
            .arg("--detach")
            .arg(&self.path)
            .status();
        if !detached.is_ok_and(|status| status.success()) {
            eprintln!("{} is still attached", self.path.display());
        }
    }
}
