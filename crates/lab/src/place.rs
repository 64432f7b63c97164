//! A drive's directory, `/run/trimbench/lab/NAME`, and the process that serves it.
//!
//! The kernel alone shows what exists, never a note. The loop device is the one whose backing file
//! lies here, its mounts are those that the kernel lists, and its server is the process that holds
//! the lock. So after a crash at any moment, everything can be found.
//!
//! | file | says |
//! |---|---|
//! | `hold` | locked by the process that makes the drive or takes it down: one at a time |
//! | `made` | exists when the drive was made to its end |
//! | `server`, `guardian` | locked by these two processes while they live |
//! | `held` | the processes that still used it when its mounts were taken out of sight |
//!
//! A drive is *dead* when no process has its hold, and its server has ended or it was never made to
//! its end. Any process may take down dead drives, and only these. A directory is made, and its hold
//! taken, with the laboratory's own directory locked, so no process sees one that has no hold yet.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use linux::files::make_own_directory;
use rustix::process::Pid;

use crate::error::LabError;
use crate::fuse;
use crate::lock;
use crate::spec::Spec;

/// The directory of one drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    dir: PathBuf,
}

impl Place {
    pub(crate) fn new(dir: PathBuf) -> Place {
        Place { dir }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether it is there, and no link to another directory.
    pub(crate) fn is_there(&self) -> bool {
        let found = self.dir.symlink_metadata();
        found.is_ok_and(|found| found.is_dir())
    }

    pub(crate) fn name(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Where the FUSE file system is mounted.
    pub(crate) fn fuse(&self) -> PathBuf {
        self.dir.join("fuse")
    }

    /// The drive's file.
    pub(crate) fn disk(&self) -> PathBuf {
        self.fuse().join(fuse::FILE)
    }

    /// The control socket.
    pub(crate) fn control(&self) -> PathBuf {
        self.dir.join("control")
    }

    /// The file with the server's output.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    fn spec(&self) -> PathBuf {
        self.dir.join("spec.json")
    }

    /// Locked by the server.
    pub(crate) fn server(&self) -> PathBuf {
        self.dir.join("server")
    }

    /// Locked by the guardian.
    pub(crate) fn guardian(&self) -> PathBuf {
        self.dir.join("guardian")
    }

    /// Locked by the process that makes the drive or takes it down.
    pub(crate) fn hold(&self) -> PathBuf {
        self.dir.join("hold")
    }

    /// The file with the processes that used the drive when its mounts were taken out of sight, one
    /// in a line.
    pub(crate) fn held(&self) -> PathBuf {
        self.dir.join("held")
    }

    /// How near the drive comes to its card, as it was measured last.
    pub(crate) fn trip(&self) -> PathBuf {
        self.dir.join("trip.json")
    }

    fn made(&self) -> PathBuf {
        self.dir.join("made")
    }

    /// Is there if the mount point was made for the drive.
    pub(crate) fn made_mount(&self) -> PathBuf {
        self.dir.join("made-mount")
    }

    /// Makes it, for the owner alone; it is this process's to make the drive
    /// for as long as what is returned lives.
    ///
    /// `complete` may still change what is asked for; no other drive is made
    /// meanwhile.
    pub(crate) fn make(
        &self,
        complete: impl FnOnce() -> Result<Spec, LabError>,
    ) -> Result<(File, Spec), LabError> {
        let private = |dir: &Path| DirBuilder::new().mode(0o700).create(dir);
        let root = self.dir.parent().unwrap_or(Path::new("/"));
        make_own_directory(root).map_err(LabError::io("cannot use", root))?;
        let _root = lock::directory(root).map_err(LabError::io("cannot lock", root))?;
        if self.dir.exists() {
            return Err(LabError::Exists { name: self.name() });
        }
        let spec = complete()?;
        private(&self.dir).map_err(LabError::io("cannot make directory", &self.dir))?;
        let made = || {
            let hold = lock::claim(&self.hold());
            let hold = hold.map_err(LabError::io("cannot lock", self.hold()))?;
            private(&self.fuse()).map_err(LabError::io("cannot make directory", self.fuse()))?;
            self.write_spec(&spec)?;
            Ok(hold)
        };
        match made() {
            Ok(hold) => Ok((hold, spec)),
            Err(error) => {
                let _ = self.remove();
                Err(error)
            }
        }
    }

    /// The drive was made to its end.
    pub(crate) fn mark_made(&self) -> Result<(), LabError> {
        fs::write(self.made(), "").map_err(LabError::io("cannot write", self.made()))
    }

    /// Whether the drive was made to its end.
    pub(crate) fn is_made(&self) -> bool {
        self.made().exists()
    }

    /// Returns whether the drive is dead. The process that has its hold asks this.
    pub(crate) fn is_dead(&self) -> bool {
        self.server_pid().is_none() || !self.is_made()
    }

    /// Replaces the drive's specification, so that no reader gets half of it.
    pub(crate) fn write_spec(&self, spec: &Spec) -> Result<(), LabError> {
        let text = serde_json::to_vec_pretty(spec).map_err(io::Error::from);
        text.and_then(|text| linux::files::replace(&self.spec(), &text, 0o600))
            .map_err(LabError::io("cannot write", self.spec()))
    }

    pub(crate) fn read_spec(&self) -> Result<Spec, LabError> {
        let text = fs::read(self.spec());
        text.and_then(|text| Ok(serde_json::from_slice(&text)?))
            .map_err(LabError::io("cannot read", self.spec()))
    }

    /// Marks this process as the drive's server, for as long as the file lives.
    pub(crate) fn claim(&self) -> io::Result<File> {
        lock::claim(&self.server())
    }

    /// Returns the server's process; `None` if it has ended, in whatever way.
    pub(crate) fn server_pid(&self) -> Option<Pid> {
        lock::holder(&self.server())
    }

    /// Returns the loop devices over the drive's file: one, unless another process made more.
    pub(crate) fn devices(&self) -> Vec<PathBuf> {
        let disk = self.disk();
        let text = disk.as_os_str().as_encoded_bytes();
        // The kernel keeps 63 bytes of a name.
        let cut = text.get(..63).unwrap_or(text);
        devices_of(|file| file == disk || file.as_os_str().as_encoded_bytes() == cut)
    }

    /// Removes it. Nothing is mounted here any more.
    pub(crate) fn remove(&self) -> io::Result<()> {
        // Not everything below: should a mount be left after all, it stays.
        let _ = fs::remove_dir(self.fuse());
        for file in [
            self.control(),
            self.log(),
            self.spec(),
            self.server(),
            self.guardian(),
            self.made_mount(),
            self.made(),
            self.held(),
            self.trip(),
            self.hold(),
        ] {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        linux::files::remove_unfinished(&self.dir)?;
        match fs::remove_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Returns the loop devices over a drive's file for which `wanted` returns true. A device in use
/// stays when the file's mount is taken out of sight; then it only has the name that it was given.
pub(crate) fn devices_of(wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    // What the kernel shows of a path whose mount is detached.
    let hidden = Path::new("/").join(fuse::FILE);
    let attached = linux::loop_device::attached().into_iter();
    attached
        .filter(|(device, file)| {
            wanted(file)
                || *file == hidden
                    && linux::loop_device::name(device).is_some_and(|name| wanted(&name))
        })
        .map(|(device, _)| device)
        .collect()
}
