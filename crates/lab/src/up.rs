//! Making a drive: its server, the loop device, the file system.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linux::loop_device::{self, Partitions};

use crate::control::{self, Order};
use crate::discards;
use crate::down::{self, Down};
use crate::error::LabError;
use crate::lab::{Info, Lab, Launcher};
use crate::mounts::{self, run};
use crate::place::Place;
use crate::queue;
use crate::spec::{Fs, Spec};
use crate::store;
use crate::trip;

/// A server mounts and answers within milliseconds, unless the machine is full.
const READY: Duration = Duration::from_secs(30);

/// The longest wait until a drive that died (of any laboratory) is taken down, by its guardian or
/// by the next command there.
const DEAD_DRIVES_GO: Duration = Duration::from_secs(30);

impl Lab {
    /// Makes a drive: starts its server and makes a loop device of it. It then makes and mounts the
    /// file system that `spec` asks for.
    ///
    /// mkfs sends no discards here: a drive that is premapped stays so.
    ///
    /// # Errors
    /// If a step fails. Then nothing is left.
    pub fn up(&self, spec: &Spec, launcher: &Launcher) -> Result<Info, LabError> {
        spec.check()?;
        check_store(spec)?;
        let place = self.new_place(&spec.name)?;
        let (hold, spec) = place.make(|| {
            Ok(Spec {
                store_limit_bytes: self.limit(spec)?,
                ..spec.clone()
            })
        })?;
        let made = start_and_make(&place, &spec, launcher)
            .and_then(|()| place.mark_made())
            .and_then(|()| self.info(&spec.name));
        if made.is_err() {
            // The first error is the one to tell; what can't be taken down is listed.
            let _ = down::take_down(&place, Down::ByForce, down::LATE);
        }
        drop(hold);
        made
    }
}

/// A file that holds something else isn't emptied, and one to be kept must be there.
fn check_store(spec: &Spec) -> Result<(), LabError> {
    let Some(file) = spec.store.as_ref() else {
        return Ok(());
    };
    let found = file.metadata().ok();
    let why = if found.as_ref().is_some_and(fs::Metadata::is_dir) {
        "is a directory: name a file in it"
    } else if found.as_ref().is_some_and(|found| !found.is_file()) {
        "isn't a file: choose another one"
    } else if !has_directory(file) {
        "can't be made: its directory isn't there"
    } else if spec.keep && found.is_none() {
        "can't be kept: there is no such file"
    } else if store::is_in_use(file) {
        "holds another drive's data and is in use: choose another file"
    } else if spec.force {
        return Ok(());
    } else if store::is_foreign(file) {
        "holds something that isn't a drive's data: choose another file, or add --force"
    } else if spec.keep && found.map_or(0, |found| found.len()) != spec.size_bytes {
        "can't be kept: it isn't as long as the drive, so give --size as it was"
    } else {
        return Ok(());
    };
    Err(bad("its store", file, why))
}

fn has_directory(file: &Path) -> bool {
    file.parent().is_none_or(Path::is_dir)
}

fn bad(what: &str, file: &Path, why: &str) -> LabError {
    LabError::BadSpec {
        why: format!(
            "{} as {what}, which {why}",
            record::units::names::shown(file)
        ),
    }
}

fn start_and_make(place: &Place, spec: &Spec, launcher: &Launcher) -> Result<(), LabError> {
    start(place, launcher)?;
    let partitions = match spec.partscan {
        true => Partitions::Scanned,
        false => Partitions::Ignored,
    };
    let device = loop_device::attach(&place.disk(), spec.sector_bytes, partitions)
        .map_err(LabError::io("cannot make a loop device of", place.disk()))?;
    queue::renew(&device)?;
    discards::limit(place, &device, spec.card()?.figures())?;
    // A drive that can't be measured is a drive all the same; `trip.json` is missing then.
    let _ = trip::measure(place, spec, &device);
    let Some(fs) = spec.fs else { return Ok(()) };
    let shown = device.to_string_lossy();
    match fs {
        Fs::Ext4 => run(
            "mkfs.ext4",
            &[
                "-q",
                "-F",
                "-E",
                "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
                &shown,
            ],
        ),
        Fs::Xfs => run("mkfs.xfs", &["-q", "-f", "-K", &shown]),
        Fs::Btrfs => mkfs_btrfs(&shown),
    }?;
    let Some(dir) = &spec.mount else {
        return Ok(());
    };
    if !dir.exists() {
        // The mark first: then a crash leaves no directory that nobody removes.
        let mark = place.made_mount();
        fs::write(&mark, "").map_err(LabError::io("cannot write", &mark))?;
        fs::create_dir(dir).map_err(LabError::io("cannot make directory", dir))?;
    }
    let options = if spec.options.is_empty() {
        "rw"
    } else {
        &spec.options
    };
    let dir = dir.to_string_lossy();
    run("mount", &["-t", fs.name(), "-o", options, &shown, &dir])
}

/// Makes a btrfs.
///
/// mkfs.btrfs stats the backing file of every mounted loop device of the machine. If one of them
/// lies on a drive whose server has died, mkfs.btrfs fails before it has written anything. So this
/// repeats it until such drives are taken down.
fn mkfs_btrfs(device: &str) -> Result<(), LabError> {
    let mut made = Ok(());
    mounts::wait_until(DEAD_DRIVES_GO, || {
        made = run("mkfs.btrfs", &["-q", "-f", "-K", device]);
        !matches!(&made, Err(LabError::Program { output, .. }) if output.contains("cannot check mount status"))
    });
    made
}

fn start(place: &Place, launcher: &Launcher) -> Result<(), LabError> {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(place.log())
        .and_then(|log| Ok((log.try_clone()?, log)))
        .map_err(LabError::io("cannot write", place.log()))?;
    linux::files::keep_from_children();
    let mut server = Command::new(&launcher.program)
        .args(&launcher.arguments)
        .arg(place.dir())
        .stdin(Stdio::null())
        .stdout(log.0)
        .stderr(log.1)
        .current_dir("/")
        .spawn()
        .map_err(LabError::io("cannot start", &launcher.program))?;
    let mut ended = false;
    let ready = mounts::wait_until(READY, || {
        ended = has_ended(&mut server);
        ended || control::ask(place, &Order::Ping).is_ok()
    });
    if ready && !ended {
        reap(server);
        return Ok(());
    }
    let _ = server.kill();
    let _ = server.wait();
    let log = fs::read_to_string(place.log()).unwrap_or_default();
    // Other lines are warnings.
    let error = log
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("trimbench: "));
    let output = match (error.or(log.lines().last()), ready) {
        (Some(line), _) => line.to_owned(),
        (None, true) => "it printed nothing".to_owned(),
        (None, false) => format!("no answer within {} s", READY.as_secs()),
    };
    Err(LabError::Failed {
        name: place.name(),
        output,
    })
}

fn has_ended(server: &mut Child) -> bool {
    !matches!(server.try_wait(), Ok(None))
}

/// Waits for the child in a thread, so that it doesn't stay as a zombie when it ends.
fn reap(mut server: Child) {
    let waiter = std::thread::Builder::new().name("lab-reap".to_owned());
    // Without the thread there is a zombie until this process ends: no harm.
    let _ = waiter.spawn(move || server.wait());
}
