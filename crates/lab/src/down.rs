//! Takes a drive down, in whatever state it is.
//!
//! This starts at the top: mounts, loop device, FUSE mount, server. A drive whose server has died
//! gives nothing but errors. Then its users aren't waited for. Mounts still in use are taken out of
//! sight, and end with their last user.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use record::units::names;

use crate::control::{self, Order};
use crate::discards;
use crate::error::LabError;
use crate::group;
use crate::lab::Lab;
use crate::lock;
use crate::mounts;
use crate::place::Place;

/// How long who uses a mount may take to leave it, and a server to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait until a device that gives errors is free: for the command that asked for it,
/// and for a process that tries again anyway.
pub(crate) const LATE: Duration = Duration::from_secs(20);
pub(crate) const SOON: Duration = Duration::from_secs(2);
/// How long to wait for the process that makes a drive or takes it down. It may be running mkfs.
const HOLD: Duration = Duration::from_secs(30);

/// The way to treat a drive that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Down {
    /// Leave it, and report its users.
    UnlessUsed,
    /// Kill its server first: its users get errors.
    ByForce,
}

impl Lab {
    /// Takes a drive down. Its data are lost, except those of a store in a file.
    ///
    /// A drive whose server has died is taken down by force in any case.
    ///
    /// # Errors
    /// If there is none, it is in use, or something is left: what, and who holds it.
    pub fn down(&self, name: &str, how: Down) -> Result<(), LabError> {
        let place = self.place(name)?;
        if how == Down::ByForce {
            // Who is still making it gives up.
            kill_server(&place);
        }
        let mut hold = None;
        let came = mounts::wait_until(HOLD, || {
            hold = lock::lock_if_free(&place.hold()).ok().flatten();
            hold.is_some() || !place.hold().exists()
        });
        if !came {
            let by = lock::holder(&place.hold()).and_then(number);
            return Err(LabError::Busy {
                name: place.name(),
                by: by.and_then(mounts::user).unwrap_or_default(),
            });
        }
        if !place.dir().exists() {
            return Ok(()); // somebody else took it down
        }
        take_down(&place, how, LATE)
    }

    /// Takes every drive down, and continues if one can't be. Then looks whether anything is left
    /// of this laboratory: a mount, a loop device, a process, a cgroup, a socket.
    ///
    /// # Errors
    /// The error of each drive, and an error with all that is left.
    pub fn down_all(&self, how: Down) -> Result<(), Vec<LabError>> {
        let names = self.names().map_err(|error| vec![error])?;
        let downs = names.iter().map(|name| self.down(name, how));
        let mut errors: Vec<LabError> = downs
            .filter_map(Result::err)
            .filter(|error| !matches!(error, LabError::NoSuch { .. }))
            .collect();
        if errors.is_empty() {
            // A guardian that was just started ends by itself.
            mounts::wait_until(SOON, || self.remains().is_empty());
            let what = self.remains();
            if !what.is_empty() {
                let root = self.root().to_owned();
                errors.push(LabError::Remains { root, what });
            }
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }
}

/// Takes down a drive whose hold this process has.
///
/// `at_most`: how long to wait by force until its loop device is free.
pub(crate) fn take_down(place: &Place, how: Down, at_most: Duration) -> Result<(), LabError> {
    let alive = || place.server_pid().is_some();
    if how == Down::ByForce {
        kill_server(place);
        // One that waits for itself can't even be killed, until what it waits
        // for fails.
        mounts::abort_fuse(&place.fuse());
        mounts::wait_until(PATIENCE, || !alive());
    }
    match alive().then(|| gently(place)) {
        Some(Ok(())) => {}
        // In use, and it works.
        Some(Err(error)) if alive() => return Err(error),
        // Gone, or it was about to go: one that is killed under load takes a while to.
        _ => by_force(place, at_most)?,
    }
    let made_mount = place.made_mount().exists();
    if let (true, Ok(spec)) = (made_mount, place.read_spec())
        && let Some(dir) = &spec.mount
    {
        // Not empty: then it isn't ours alone.
        let _ = fs::remove_dir(dir);
    }
    group::remove(place);
    kill_guardian(place);
    place
        .remove()
        .map_err(LabError::io("cannot remove", place.dir()))
}

fn gently(place: &Place) -> Result<(), LabError> {
    for device in place.devices() {
        for mount in mounts::of(&device) {
            mounts::unmount_patiently(&mount, PATIENCE).map_err(|error| {
                let who = mounts::users(&mount).join(", ");
                left(
                    place,
                    format!(
                        "{} can't be unmounted ({error}); it is used by {who}",
                        names::shown(&mount)
                    ),
                )
            })?;
        }
        let_go(&device)?;
        is_gone(place, PATIENCE)?;
    }
    let stopped = control::ask(place, &Order::Stop).is_ok()
        && mounts::wait_until(PATIENCE, || place.server_pid().is_none());
    if !stopped {
        kill_server(place);
    }
    by_force(place, LATE)
}

/// Takes down a drive whose server has died; there may be nothing left to do.
fn by_force(place: &Place, at_most: Duration) -> Result<(), LabError> {
    // Should somebody else still hold the server's file open: this ends it too.
    mounts::abort_fuse(&place.fuse());
    for device in place.devices() {
        unmount_all(place, &device);
        let_go(&device)?;
    }
    // Whatever still holds the device: no path leads to a file that gives only
    // errors, for others look at the files of all loop devices.
    mounts::wait_until(PATIENCE, || {
        if mounts::unmount_patiently(&place.fuse(), Duration::ZERO).is_err() {
            mounts::unmount_lazily(&place.fuse());
        }
        !mounts::is_mounted(&place.fuse())
    });
    is_gone(place, at_most)
}

/// Unmounts a device everywhere; where it is in use, out of sight.
fn unmount_all(place: &Place, device: &Path) {
    for mount in mounts::of(device) {
        if mounts::unmount_patiently(&mount, Duration::ZERO).is_err() {
            // Out of sight nobody can tell any more.
            let mut held = fs::read_to_string(place.held()).unwrap_or_default();
            for user in mounts::users(&mount) {
                held += &format!("{user}\n");
            }
            let _ = fs::write(place.held(), held);
            mounts::unmount_lazily(&mount);
        }
    }
}

/// Detaches a device: at once, or when its last user closes it.
fn let_go(device: &Path) -> Result<(), LabError> {
    discards::lift(device);
    match linux::loop_device::detach(device) {
        // The node went with it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(LabError::io("cannot detach", device)),
    }
}

/// Waits until the drive has no device any more; otherwise an error names its users.
fn is_gone(place: &Place, at_most: Duration) -> Result<(), LabError> {
    let gone = || {
        let devices = place.devices();
        // A mount that was under way may have come through meanwhile.
        if place.server_pid().is_none() {
            devices.iter().for_each(|device| unmount_all(place, device));
        }
        devices.is_empty()
    };
    // Who is known to use it has no reason to stop soon.
    if mounts::wait_until(at_most.min(SOON), gone)
        || holders(place).is_empty() && mounts::wait_until(at_most, gone)
    {
        return Ok(());
    }
    let Some(device) = place.devices().into_iter().next() else {
        return Ok(());
    };
    let mut who = holders(place);
    if who.is_empty() {
        who.push("a file system that is still in use, or mounted elsewhere".to_owned());
    }
    let mut why = format!("{} is used by {}", names::shown(&device), who.join(", "));
    if place.server_pid().is_none() {
        why += "; it gives nothing but I/O errors now, and can be taken down after its last user";
    }
    Err(left(place, why))
}

/// Returns the users of a drive's devices, as far as they can be found.
fn holders(place: &Place) -> Vec<String> {
    let held = fs::read_to_string(place.held()).unwrap_or_default();
    let held = held.lines().filter(|user| lives(user));
    let mut who: Vec<String> = held.map(str::to_owned).collect();
    for device in place.devices() {
        who.extend(mounts::users(&device));
        let above = Path::new("/sys/block")
            .join(device.file_name().unwrap_or_default())
            .join("holders");
        let entries = fs::read_dir(above).into_iter().flatten().flatten();
        who.extend(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    }
    who.sort();
    who.dedup();
    who
}

/// Whether a process is still the one that was noted as `name (number)`.
fn lives(user: &str) -> bool {
    let number = user.rsplit_once('(').map(|(_, rest)| rest);
    let number = number.and_then(|rest| rest.strip_suffix(')')?.parse().ok());
    number.and_then(mounts::user).is_some_and(|now| now == user)
}

fn left(place: &Place, left: String) -> LabError {
    LabError::Left {
        name: place.name(),
        left,
    }
}

fn kill_server(place: &Place) {
    kill_holder(&place.server());
}

/// Ends the guardian, which has nothing left to do, unless it is this process.
fn kill_guardian(place: &Place) {
    let guardian = place.guardian();
    if lock::holder(&guardian).and_then(number) != Some(std::process::id()) {
        kill_holder(&guardian);
    }
}

/// Ends the process that has a lock, and waits until it has it no more.
fn kill_holder(path: &Path) {
    let Some(pid) = lock::holder(path) else {
        return;
    };
    // A descriptor of the process, and the lock asked once more: so it can't be
    // another process that got the same number.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if lock::holder(path) == Some(pid) {
        let _ = pidfd_send_signal(&process, Signal::KILL);
        mounts::wait_until(PATIENCE, || lock::holder(path).is_none());
    }
}

fn number(pid: Pid) -> Option<u32> {
    u32::try_from(pid.as_raw_nonzero().get()).ok()
}
