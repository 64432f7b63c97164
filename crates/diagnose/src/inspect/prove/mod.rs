//! Proves whether TRIM arrives: writes a probe, frees it, and follows it down to the drive.
//!
//! Discards are counted at each layer, and as root the probe's blocks are read from the device
//! before and after. No other block of the device is read.

mod probe;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::files::FileError;
use linux::mounts::Mount;
use linux::owner::{OwnerError, WorkDir};
use linux::space::{Space, SpaceError};
use linux::trim::{Range, fitrim, placed_chunks};
use record::DiscardSetting;
use record::units::names::shown;
use rustix::process::geteuid;
use serde::Serialize;
use storage::stack::Stack;
use storage::{Description, FileSystem, TargetError};

pub(super) use probe::breaks_promise;
pub use probe::{Counted, Outcome, Raw};
use probe::{Counters, PROBE_BYTES, Probe};

/// So long discards may take to come, by when the file system sends them.
const SOON: Duration = Duration::from_secs(45);
const LATER: Duration = Duration::from_secs(180);

/// So long they may take where nothing lets them through.
const CLOSED: Duration = Duration::from_secs(3);

/// So long a layer below may take after the top: the file system under a loop device commits.
const BELOW: Duration = Duration::from_secs(12);

/// From this share of the probe on, no more need come once nothing came for so long.
const ENOUGH: f64 = 0.9;
const QUIET: Duration = Duration::from_millis(300);

/// The result of a proof, with all it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proof {
    /// The directory.
    pub path: String,
    /// Bytes of the probe.
    pub probe_bytes: u64,
    /// Whether the file system was asked to trim the freed range (`FITRIM`), because its mount
    /// sends no discards.
    pub fitrim: bool,
    /// The layers, those above before those below.
    pub layers: Vec<Counted>,
    /// The probe's blocks afterwards; `None` if they could not be read.
    pub raw: Option<Raw>,
    /// Why they could not be read.
    pub raw_missing: Option<String>,
    /// The result.
    pub result: Outcome,
    /// The layer at which discards stopped.
    pub stops_at: Option<String>,
    /// The result in a sentence.
    pub summary: String,
    /// From freeing to the last discard, in seconds.
    pub seconds: f64,
}

/// Why nothing was proven.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProveError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Space(#[from] SpaceError),
    #[error("{} has no room for a probe of {}: {} may be written (10 % or 1 GiB stays free); free space there", shown(path), record::units::bytes(*needed), record::units::bytes(*usable))]
    Full {
        path: PathBuf,
        needed: u64,
        usable: u64,
    },
    #[error("the file system of {} is too small: it has {}, and {} always stay free; use one of at least {}", shown(path), record::units::bytes(space.size_bytes), record::units::bytes(space.reserve_bytes()), record::units::bytes(2 * space.reserve_bytes()))]
    Small { path: PathBuf, space: Space },
    #[error("cannot examine {}: {source}; name a directory", shown(path))]
    Path { path: PathBuf, source: io::Error },
    #[error("{} is no directory; name a directory on a mounted file system", shown(.0))]
    NoDirectory(PathBuf),
    #[error(
        "{} is on {}, which no block device holds; name another directory",
        shown(path),
        fs
    )]
    NoDevice { path: PathBuf, fs: String },
    #[error("{} is mounted read-only; remount it read-write, or name another directory", shown(.0))]
    ReadOnly(PathBuf),
    #[error(transparent)]
    Owner(#[from] OwnerError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{0}; a proof would send some, so nothing was proven")]
    Harm(storage::Warning),
    #[error("the probe failed: {0}; nothing was proven")]
    Io(#[from] io::Error),
    #[error("interrupted; the probe is removed")]
    Interrupted,
}

impl ProveError {
    /// Whether the named path can't be probed at all.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Path { .. } | Self::NoDirectory(_))
    }
}

/// Proves whether TRIM arrives from a directory. Writes 66 MiB there and removes them. `tick` is
/// called with what is being done. Stops soon after `stop` is true.
///
/// # Errors
/// When the probe can't be written or read, or `stop` is set.
pub fn prove(
    path: &Path,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(&str),
) -> Result<Proof, ProveError> {
    let sys = SysRoot::host();
    let metadata = path.metadata().map_err(|source| ProveError::Path {
        path: path.to_owned(),
        source,
    })?;
    if !metadata.is_dir() {
        return Err(ProveError::NoDirectory(path.to_owned()));
    }
    let found = storage::describe(path)?;
    if let Some(fault) = found.fault() {
        return Err(ProveError::Harm(fault.clone()));
    }
    let tables = linux::dm::tables(&sys).unwrap_or_default();
    let stack = Stack::of(&sys, &found, &tables);
    let (Some(mount), false) = (found.mount.clone(), stack.layers.is_empty()) else {
        let fs = found.target.fs.clone().unwrap_or_default();
        return Err(ProveError::NoDevice {
            path: path.to_owned(),
            fs,
        });
    };
    if mount.read_only() {
        return Err(ProveError::ReadOnly(path.to_owned()));
    }
    room(path, Space::of(path)?)?;
    let home = WorkDir::create(path)?;
    tick("writing the probe");
    let probe = Probe::write(&home, fastrand::u64(..))?;
    check(stop)?;
    let place = place(path, &mount, &found, &stack);
    let before = readable(&probe, &place);
    let counters = Counters::open(&sys, &stack, &found);
    let started = Instant::now();
    let when = stack.file_system.as_ref().map_or("", |fs| fs.when);
    tick(&format!("freeing it, and counting discards (sent {when})"));
    let by_fitrim = !stack.file_system.as_ref().is_some_and(|fs| fs.is_online());
    probe.free()?;
    linux::files::syncfs(path)?;
    if FileSystem::mounted(&mount) == FileSystem::Btrfs {
        // What a commit frees can be trimmed after the next one.
        let _ = File::open(path).and_then(linux::btrfs::sync_and_clean);
    }
    if by_fitrim {
        trim(path, &probe)?;
    }
    let seconds = wait(&counters, &stack, &found, by_fitrim, stop)?.max(0.0);
    debug_assert!(seconds <= started.elapsed().as_secs_f64() + 1.0);
    tick("reading its blocks");
    let (raw, raw_missing) = match before {
        Ok(device) => match probe.raw(&device, &*place.address) {
            Ok(raw) => (Some(raw), None),
            Err(error) => (None, Some(unread(&device, &error, true))),
        },
        Err(why) => (None, Some(why)),
    };
    let intact = probe.fences_are_intact()?;
    let layers = counters.read();
    let (result, stops_at) = probe::conclude(&layers, raw.as_ref(), intact);
    let removed = home.remove();
    // A file system whose data were destroyed may not be able to.
    if result != Outcome::TooMuch {
        removed?;
    }
    let mut proof = Proof {
        path: path.to_string_lossy().into_owned(),
        probe_bytes: PROBE_BYTES,
        fitrim: by_fitrim,
        layers,
        raw,
        raw_missing,
        result,
        stops_at,
        summary: String::new(),
        seconds,
    };
    proof.summary = summary(&proof, &stack);
    Ok(proof)
}

/// Refuses a place without room for a probe.
fn room(path: &Path, space: Space) -> Result<(), ProveError> {
    let path = path.to_owned();
    let (needed, usable) = (PROBE_BYTES + (2 << 20), space.usable_bytes());
    match () {
        () if usable >= needed => Ok(()),
        // Even an empty one has none.
        () if space.size_bytes < space.reserve_bytes() + needed => {
            Err(ProveError::Small { path, space })
        }
        () => Err(ProveError::Full {
            path,
            needed,
            usable,
        }),
    }
}

fn check(stop: &AtomicBool) -> Result<(), ProveError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(ProveError::Interrupted),
        false => Ok(()),
    }
}

/// Where the addresses of a file system lie on its device.
struct Place {
    device: Result<PathBuf, String>,
    address: Box<dyn Fn(u64) -> Option<u64>>,
}

fn place(path: &Path, mount: &Mount, found: &Description, stack: &Stack) -> Place {
    let tops: Vec<&str> = found
        .devices
        .iter()
        .filter(|device| device.level == 0)
        .map(|device| device.name.as_str())
        .collect();
    let itself = stack.layers.iter().find(|layer| layer.answers_itself());
    let device = match (&tops[..], itself) {
        (_, Some(layer)) => Err(format!(
            "{} ({}) answers for what was discarded itself, whatever the drive below does; prove it in a \
             directory right on the drive",
            layer.name,
            layer.kind.words()
        )),
        ([one], None) => Ok(Path::new("/dev").join(one)),
        _ => Err("the file system is on several devices".to_owned()),
    };
    if !FileSystem::mounted(mount).maps_addresses() {
        return Place {
            device,
            address: Box::new(Some),
        };
    }
    let chunks = File::open(path).and_then(|directory| placed_chunks(&directory));
    let chunks = chunks.unwrap_or_default();
    let address = move |logical: u64| {
        let chunk = chunks
            .iter()
            .find(|chunk| chunk.logical.contains(&logical))?;
        Some(chunk.physical? + (logical - chunk.logical.start))
    };
    Place {
        device,
        address: Box::new(address),
    }
}

/// The device on which the probe's blocks are where the file system says, or why there is none.
fn readable(probe: &Probe, place: &Place) -> Result<PathBuf, String> {
    let device = place.device.clone()?;
    if probe.pieces().is_empty() {
        return Err("the file system doesn't report where a file lies".to_owned());
    }
    match probe.raw(&device, &*place.address) {
        Ok(raw) if raw.zero_bytes + raw.other_bytes == 0 => Ok(device),
        Ok(_) => Err("the probe was not found where the file system says it lies".to_owned()),
        Err(error) => Err(unread(&device, &error, geteuid().is_root())),
    }
}

/// Why the blocks of a device were not read, with the next step.
fn unread(device: &Path, error: &io::Error, is_root: bool) -> String {
    let device = shown(device);
    match error.kind() {
        io::ErrorKind::PermissionDenied if is_root => format!(
            "root may not open {device} here: a container's or a unit's device rules forbid it; \
             prove it on the host"
        ),
        io::ErrorKind::PermissionDenied => format!("opening {device} needs root"),
        io::ErrorKind::NotFound => format!("there is no {device} here; prove it on the host"),
        _ => format!("{device}: {error}"),
    }
}

/// Why the probe was not trimmed, with the next step.
fn untrimmable(error: &io::Error, is_root: bool) -> String {
    let step = match (error.kind(), is_root) {
        (io::ErrorKind::PermissionDenied, false) => "; run as root",
        (io::ErrorKind::PermissionDenied, true) => "; root lacks CAP_SYS_ADMIN: use the host",
        _ => "",
    };
    format!("cannot trim it (FITRIM): {error}{step}")
}

/// Trims what the probe took.
fn trim(path: &Path, probe: &Probe) -> Result<(), ProveError> {
    let directory = File::open(path)?;
    for piece in probe.pieces() {
        let range = Range {
            start: piece.address,
            length: piece.length,
            minimum: 0,
        };
        if let Err(error) = fitrim(&directory, range) {
            // Where nothing can be trimmed, nothing will be counted.
            if !linux::trim::is_unsupported(&error) {
                let why = untrimmable(&error, geteuid().is_root());
                return Err(ProveError::Io(io::Error::new(error.kind(), why)));
            }
        }
    }
    Ok(())
}

/// Waits until the discards have come, or can't any more; the seconds until the last came.
fn wait(
    counters: &Counters,
    stack: &Stack,
    found: &Description,
    by_fitrim: bool,
    stop: &AtomicBool,
) -> Result<f64, ProveError> {
    let longest = match found.target.discard {
        _ if !stack.open
            && stack
                .layers
                .iter()
                .all(|layer| layer.level > 0 || !layer.takes()) =>
        {
            CLOSED
        }
        _ if by_fitrim => BELOW,
        DiscardSetting::Async => LATER,
        _ => SOON,
    };
    let started = Instant::now();
    let (mut last, mut seen, mut at_top) = (0.0, Vec::new(), None);
    loop {
        check(stop)?;
        let now = counters.read();
        let bytes: Vec<Option<u64>> = now.iter().map(|one| one.bytes).collect();
        if bytes != seen {
            (last, seen) = (started.elapsed().as_secs_f64(), bytes);
        }
        let enough = |one: &Counted| one.bytes.is_none() || one.share >= ENOUGH;
        let sum: f64 = now.iter().filter(|one| one.top).map(|one| one.share).sum();
        let top = now.iter().any(|one| one.top && one.bytes.is_none()) || sum >= ENOUGH;
        if top {
            at_top.get_or_insert_with(Instant::now);
        }
        let below = now.iter().all(enough) && now.iter().any(|one| one.bytes.is_some());
        let waited = at_top.is_some_and(|at: Instant| at.elapsed() > BELOW);
        let quiet = started.elapsed().as_secs_f64() - last > QUIET.as_secs_f64();
        if top && quiet && (below || waited) || started.elapsed() > longest {
            return Ok(last);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn summary(proof: &Proof, stack: &Stack) -> String {
    let size = record::units::bytes(proof.probe_bytes);
    let drives: Vec<&str> = stack.drives().map(|layer| layer.name.as_str()).collect();
    let drives = drives.join(", ");
    let mut layers = proof.layers.iter();
    match proof.result {
        Outcome::Arrives => format!("TRIM arrives at {drives}: the probe's blocks changed"),
        Outcome::Unknown => match layers.find(|layer| layer.is_others()) {
            Some(layer) => format!(
                "{} discarded {} meanwhile, many times the probe: unknown whether the probe's \
                 discards are among them; repeat when nothing else discards there",
                layer.name,
                record::units::bytes(layer.bytes.unwrap_or_default())
            ),
            None => format!(
                "unknown: the counters of {drives} are off; switch them on with: echo 1 > \
                 /sys/block/DEVICE/queue/iostats"
            ),
        },
        Outcome::Counted => format!(
            "{drives} got discards of the probe; whether it acts on them is not proven: {}",
            match proof.raw {
                Some(_) => "only some blocks changed",
                None => "its blocks were not read",
            }
        ),
        Outcome::Ignored => format!(
            "{drives} got the discards of {size}, and its blocks still hold the deleted data"
        ),
        Outcome::Stops => {
            let stop = proof.stops_at.as_deref().unwrap_or_default();
            let why = stack
                .layer(stop)
                .map(|layer| layer.why.as_str())
                .unwrap_or_default();
            match why.is_empty() {
                true => format!("discards stop at {stop}"),
                false => format!("discards stop at {stop}: {why}"),
            }
        }
        Outcome::NotSent => match stack.stops_at.as_deref().and_then(|stop| stack.layer(stop)) {
            Some(stop) => format!(
                "nothing was sent: discards stop at {}: {}",
                stop.name, stop.why
            ),
            None => "nothing was sent: the file system issued no discards for the probe".to_owned(),
        },
        Outcome::TooMuch => {
            format!("data beside the probe changed: {drives} discards more than it is asked to")
        }
    }
}

#[cfg(test)]
mod tests;
