//! Tracepoints: an instance of our own under tracefs, and its text.
//!
//! An instance has its own buffer and its own events, so it disturbs no other user of tracing. It
//! can't outlive its user for long: [`Instance::create`] removes every instance of ours that no
//! process reads from. The kernel refuses to remove one whose pipe is open.

mod instance;
mod line;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

pub use instance::{Instance, PREFIX};
pub use line::{Entry, Line, parse};

/// Places where tracefs is mounted, the usual one first.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The kernel's tracefs, where it is mounted, or in a mount of our own that nobody else sees.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// Our own mount, which ends with this descriptor.
    _mount: Option<OwnedFd>,
}

/// Why the kernel's events can't be traced.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TraceError {
    #[error("tracefs is not mounted and can't be mounted: {0}; run it as root on the host")]
    Unavailable(io::Error),
    #[error("tracefs can't be used: {what}: {source}; run it as root on the host")]
    Use { what: String, source: io::Error },
}

impl Tracefs {
    /// Finds tracefs, or mounts it where no other process sees the mount.
    ///
    /// # Errors
    /// Without root, or in a container or a kernel that has no tracefs to offer.
    pub fn find() -> Result<Tracefs, TraceError> {
        let mounted = PLACES.iter().map(Path::new);
        let mut usable = mounted.filter(|place| place.join("instances").is_dir());
        if let Some(place) = usable.next() {
            return Ok(Tracefs {
                root: place.to_path_buf(),
                _mount: None,
            });
        }
        let mount = detached().map_err(|error| TraceError::Unavailable(error.into()))?;
        Ok(Tracefs {
            root: PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())),
            _mount: Some(mount),
        })
    }

    /// Whether the kernel has an event.
    pub fn has(&self, system: &str, event: &str) -> bool {
        self.root.join("events").join(system).join(event).is_dir()
    }

    /// The directory that holds the instances.
    fn instances(&self) -> PathBuf {
        self.root.join("instances")
    }
}

/// A mount of tracefs that is attached nowhere.
fn detached() -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    rustix::mount::fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}

/// Writes a word into one of tracefs' files.
fn write(file: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    // No O_TRUNC: opening a trigger file so would remove all triggers.
    let mut file = File::options().write(true).open(file)?;
    file.write_all(text.as_bytes())
}
