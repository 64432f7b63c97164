//! Making the files: incompressible data at full device speed.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linux::files::{FileError, FileExtent, extents_within};

use crate::error::LoadError;

mod data;
mod fragment;
mod layout;
mod write;

pub(crate) use data::incompressible;
pub use fragment::TURN;
use layout::Layout;

/// The file to make.
#[derive(Debug, Clone)]
pub struct FillSpec {
    /// The file, opened for reading and writing, usually new and empty; or a
    /// block device, whose first `len` bytes are overwritten.
    pub file: Arc<File>,
    /// Its path, for messages.
    pub path: PathBuf,
    /// Bytes of data it holds afterwards. A file fragmented on purpose is
    /// longer by the holes between its extents.
    pub len: u64,
    /// Whether to write past the page cache. Where that isn't possible the
    /// page cache is used, and a note says so.
    pub direct: bool,
    /// Fragments the file on purpose: extents of this many bytes (a multiple
    /// of 4 KiB), none of which touches the next, so that freeing them gives
    /// discards of that size. Works on ext4, XFS and btrfs; elsewhere a note
    /// says that it doesn't.
    pub extent_bytes: Option<u64>,
    /// Seed of the data.
    pub seed: u64,
}

/// The result of a fill.
#[derive(Debug, Default)]
pub struct FillReport {
    /// Bytes written.
    pub written_bytes: u64,
    /// Whether it was asked to stop; the file is unfinished then.
    pub stopped: bool,
    /// Physically separate extents of the file, where the file system tells.
    pub extents: Option<u64>,
    /// The file without a name that keeps the extents apart. Hold it until the filled file is
    /// deleted; its space is freed when it is dropped.
    pub spacer: Option<File>,
    /// Deviations from the request, in words that follow the file's name.
    pub notes: Vec<String>,
}

/// A fill under way, in threads of its own. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Fill {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<FillReport, LoadError>>>,
}

#[derive(Debug)]
struct Shared {
    written_bytes: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn written(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }
}

impl Fill {
    /// Begins.
    ///
    /// # Errors
    /// [`LoadError::Spec`] and [`LoadError::System`]; the rest comes from [`Fill::wait`].
    pub fn start(spec: FillSpec) -> Result<Fill, LoadError> {
        if let Some(extent) = spec.extent_bytes
            && (extent == 0 || !extent.is_multiple_of(4096))
        {
            return Err(LoadError::Spec {
                actor: "prepare".into(),
                what: format!("extent size {extent} isn't a multiple of 4096"),
            });
        }
        let shared = Arc::new(Shared {
            written_bytes: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let ours = shared.clone();
        let thread = std::thread::Builder::new()
            .name("fill".into())
            .spawn(move || make(&spec, &ours))
            .map_err(LoadError::system("start a thread"))?;
        Ok(Fill {
            shared,
            thread: Some(thread),
        })
    }

    /// Bytes written so far.
    pub fn written_bytes(&self) -> u64 {
        self.shared.written()
    }

    /// Tells it to stop after what is in flight. Returns at once.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Waits at most `timeout` for the end; true when it has ended.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let ended = || self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        while !ended() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
        true
    }

    /// Waits for the end. Data and sizes are on the device then (fsync), unless it was stopped.
    ///
    /// # Errors
    /// [`LoadError::NoSpace`] when the disk is full, [`LoadError::File`] otherwise.
    pub fn wait(mut self) -> Result<FillReport, LoadError> {
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(result)) => result,
            Some(Err(_)) | None => {
                let panicked = io::Error::other("its thread ended by a panic");
                Err(LoadError::system("fill a file")(panicked))
            }
        }
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        self.stop();
    }
}

fn make(spec: &FillSpec, shared: &Shared) -> Result<FillReport, LoadError> {
    let mut report = FillReport::default();
    let is_file = {
        let stat = spec.file.metadata();
        stat.map_err(LoadError::file(&spec.path, "look at it"))?
            .is_file()
    };
    let plain = Layout::plain(spec.len);
    let layout = match spec.extent_bytes {
        Some(extent) if is_file && extent < spec.len => {
            match fragment::prepare(spec, extent, shared) {
                Ok((layout, spacer)) => {
                    report.spacer = spacer;
                    layout
                }
                Err(fragment::Failure::NoSpace) => return Err(no_space(spec, 0)),
                Err(fragment::Failure::Other(why)) => {
                    report
                        .notes
                        .push(format!("can't be fragmented on purpose here: {why}"));
                    clear(spec)?;
                    plain
                }
            }
        }
        _ => plain,
    };
    if is_file && layout.is_plain() {
        preallocate(spec)?;
    }
    report.notes.extend(write::all(spec, &layout, shared)?);
    report.written_bytes = shared.written();
    report.stopped = shared.stopping();
    if report.stopped {
        // It is about to be removed: writing it back would only hold up the end.
        return Ok(report);
    }
    if is_file {
        // Direct writes are whole blocks; the last may reach beyond the end.
        spec.file
            .set_len(layout.file_len())
            .map_err(LoadError::file(&spec.path, "set its length"))?;
    }
    spec.file
        .sync_all()
        .map_err(LoadError::file(&spec.path, "sync it"))?;
    if is_file {
        // Not every file system tells; that is no failure.
        report.extents = separate_extents(&spec.file).ok();
    }
    if let (Some(extent), Some(found), true) =
        (spec.extent_bytes, report.extents, report.notes.is_empty())
    {
        let wanted = spec.len.div_ceil(extent);
        if found * 10 < wanted * 9 {
            report.notes.push(format!(
                "{found} separate extents were made of the {wanted} asked for"
            ));
        }
    }
    Ok(report)
}

/// Reserves the space, so that a full disk is known before the work and the
/// file isn't more fragmented than it need be. Not every file system can.
fn preallocate(spec: &FillSpec) -> Result<(), LoadError> {
    if spec.len == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(&spec.file, rustix::fs::FallocateFlags::empty(), 0, spec.len) {
        Err(rustix::io::Errno::NOSPC) => Err(no_space(spec, 0)),
        _ => Ok(()),
    }
}

/// Undoes a layout that didn't succeed.
fn clear(spec: &FillSpec) -> Result<(), LoadError> {
    spec.file
        .set_len(0)
        .map_err(LoadError::file(&spec.path, "empty it"))
}

fn no_space(spec: &FillSpec, written_bytes: u64) -> LoadError {
    LoadError::NoSpace {
        path: spec.path.clone(),
        written_bytes,
        len_bytes: spec.len,
    }
}

/// Physically separate extents of a file: neighbours on the device count as one.
fn separate_extents(file: &File) -> Result<u64, FileError> {
    let mut all = extents_within(file, 0, i64::MAX as u64)?;
    all.sort_unstable_by_key(|extent| extent.physical);
    let ends = |pair: &[FileExtent]| pair[0].physical + pair[0].length != pair[1].physical;
    let gaps = all.windows(2).filter(|&pair| ends(pair)).count();
    Ok((gaps + usize::from(!all.is_empty())) as u64)
}

#[cfg(test)]
mod tests;
