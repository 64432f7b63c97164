//! The laboratory: which drives there are, and how to make and use them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::control::{self, Order, Reply};
use crate::error::LabError;
use crate::faults::Fault;
use crate::mounts;
use crate::place::Place;
use crate::spec::{Spec, check_name};
use crate::stats::Stats;
use crate::trip::{self, Trip};

/// A directory with drives in it. Everything needs root.
#[derive(Debug, Clone)]
pub struct Lab {
    root: PathBuf,
}

/// The program that serves a drive: its last argument will be the drive's
/// directory, and all it does is [`serve`](crate::serve) that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// The arguments before the directory.
    pub arguments: Vec<OsString>,
}

/// A drive as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// The specification, with the figures that were [set](Lab::set) since.
    pub spec: Spec,
    /// The loop device, e.g. `/dev/loop3`; `None`: it has none (any more).
    pub device: Option<PathBuf>,
    /// Where it is mounted.
    pub mounts: Vec<PathBuf>,
    /// The process that serves it; `None` if that has died, and the drive only gives errors. Then
    /// take it down.
    pub server: Option<i32>,
    /// How near it comes to its card, as it was measured last with these figures for reads.
    pub trip: Option<Trip>,
}

impl Lab {
    /// The machine's: `/run/trimbench/lab`.
    pub fn system() -> Lab {
        Lab::at("/run/trimbench/lab")
    }

    /// One of its own, for tests. Its path should be short: sockets lie below it.
    pub fn at(root: impl Into<PathBuf>) -> Lab {
        Lab { root: root.into() }
    }

    /// Every drive, by name.
    ///
    /// # Errors
    /// If the directory can't be read.
    pub fn list(&self) -> Result<Vec<Info>, LabError> {
        let infos = self.names()?.into_iter().map(|name| self.info(&name));
        // One that is just being made or taken down has no description.
        Ok(infos.filter_map(Result::ok).collect())
    }

    /// Returns one drive.
    ///
    /// # Errors
    /// If there is none, or its specification can't be read.
    pub fn info(&self, name: &str) -> Result<Info, LabError> {
        let place = self.place(name)?;
        let spec = place.read_spec()?;
        let devices = place.devices();
        Ok(Info {
            spec,
            mounts: devices.iter().flat_map(|d| mounts::of(d)).collect(),
            device: devices.into_iter().next(),
            server: place.server_pid().map(|pid| pid.as_raw_nonzero().get()),
            trip: trip::last(&place),
        })
    }

    /// Returns the drive that is this loop device, if one is. A record made on it should note that,
    /// with the factor by which it is slower than the real one.
    ///
    /// # Errors
    /// If the drives can't be listed.
    pub fn of_device(&self, device: &Path) -> Result<Option<Info>, LabError> {
        let infos = self.list()?;
        Ok(infos
            .into_iter()
            .find(|info| info.device.as_deref() == Some(device)))
    }

    /// Returns the counts of a drive.
    ///
    /// # Errors
    /// If there is no such drive, or it doesn't answer.
    pub fn stats(&self, name: &str) -> Result<Stats, LabError> {
        match control::ask(&self.place(name)?, &Order::Stats)? {
            Reply::Stats(stats) => Ok(*stats),
            Reply::Done | Reply::Refused(_) => Err(LabError::Refused {
                name: name.to_owned(),
                why: "its server is of another version".to_owned(),
            }),
        }
    }

    /// Returns the notes of a drive's server and guardian, a line each: failures, and protections
    /// that they couldn't get. On most machines there are none.
    ///
    /// # Errors
    /// If there is no such drive.
    pub fn notes(&self, name: &str) -> Result<Vec<String>, LabError> {
        let log = fs::read_to_string(self.place(name)?.log()).unwrap_or_default();
        Ok(log.lines().map(str::to_owned).collect())
    }

    /// Sets the counts of a drive to 0.
    ///
    /// # Errors
    /// If there is none or it doesn't answer.
    pub fn reset_stats(&self, name: &str) -> Result<(), LabError> {
        self.order(name, &Order::ResetStats)
    }

    /// Changes figures of a drive's card, e.g. `["a=2ms", "phi=0"]`, for the
    /// commands that start from now on: all, or none if one is wrong.
    ///
    /// The largest discard that the loop device lets through stays what it was.
    ///
    /// # Errors
    /// If there is no such figure or value, with the nearest that there is.
    pub fn set(&self, name: &str, changes: &[String]) -> Result<(), LabError> {
        self.order(name, &Order::Set(changes.to_vec()))
    }

    /// Adds a fault, e.g. `read error rate 1%`; see [`Fault`].
    ///
    /// # Errors
    /// If it can't be understood.
    pub fn add_fault(&self, name: &str, fault: &Fault) -> Result<(), LabError> {
        self.order(name, &Order::Fault(fault.to_string()))
    }

    /// Takes back every fault, ends a hang and switches the power on. Damaged data stay so.
    ///
    /// # Errors
    /// If there is no such drive or it doesn't answer.
    pub fn clear_faults(&self, name: &str) -> Result<(), LabError> {
        self.order(name, &Order::ClearFaults)
    }

    /// Makes a drive do nothing for `span` from now, at most a day. This also ends an earlier hang.
    ///
    /// # Errors
    /// If there is no such drive or it doesn't answer.
    pub fn hang(&self, name: &str, span: Duration) -> Result<(), LabError> {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        self.order(name, &Order::HangMs(ms))
    }

    /// Cuts a drive's power: everything in flight and from now on fails, until
    /// [`Lab::restore_power`]. With a volatile cache, all that wasn't flushed is lost.
    ///
    /// # Errors
    /// If there is no such drive or it doesn't answer.
    pub fn cut_power(&self, name: &str) -> Result<(), LabError> {
        self.order(name, &Order::CutPower)
    }

    /// Gives a drive power again.
    ///
    /// # Errors
    /// If there is no such drive or it doesn't answer.
    pub fn restore_power(&self, name: &str) -> Result<(), LabError> {
        self.order(name, &Order::RestorePower)
    }

    fn order(&self, name: &str, order: &Order) -> Result<(), LabError> {
        control::ask(&self.place(name)?, order).map(|_| ())
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the names of all drives, in order.
    ///
    /// # Errors
    /// If its directory can't be read.
    pub fn names(&self) -> Result<Vec<String>, LabError> {
        let Some(directory) = self.open()? else {
            return Ok(Vec::new());
        };
        // Through the open directory: its path could lead to another one by now.
        let opened = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let entries = fs::read_dir(opened).map_err(LabError::io("cannot read", &self.root))?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| check_name(name).is_ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Opens the laboratory's directory, which must be this user's alone: `None` if it is missing.
    fn open(&self) -> Result<Option<File>, LabError> {
        match linux::files::own_directory(&self.root) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            opened => opened
                .map(Some)
                .map_err(LabError::io("cannot use", &self.root)),
        }
    }

    /// The directory of a drive that there is.
    pub(crate) fn place(&self, name: &str) -> Result<Place, LabError> {
        let place = self.new_place(name)?;
        if self.open()?.is_some() && place.is_there() {
            return Ok(place);
        }
        Err(LabError::NoSuch {
            name: name.to_owned(),
            others: self.names()?,
        })
    }

    /// The directory of a drive that there may be.
    pub(crate) fn new_place(&self, name: &str) -> Result<Place, LabError> {
        check_name(name)?;
        Ok(Place::new(self.root.join(name)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;
    use crate::down::Down;

    /// A laboratory with a dead drive that leads to a directory of this user.
    fn planted() -> (tempfile::TempDir, Lab, PathBuf) {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("lab");
        let precious = base.path().join("precious");
        fs::create_dir(&root).unwrap();
        fs::create_dir_all(precious.join("fuse")).unwrap();
        symlink(&precious, root.join("drive")).unwrap();
        (base, Lab::at(root), precious)
    }

    fn refuses_everything(lab: &Lab, why: &str) {
        let errors = [
            lab.list().map(drop).unwrap_err(),
            lab.sweep().map(drop).unwrap_err(),
            lab.info("drive").map(drop).unwrap_err(),
            lab.notes("drive").map(drop).unwrap_err(),
            lab.down("drive", Down::ByForce).unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn a_laboratory_in_which_others_write_is_not_believed() {
        let (_base, lab, precious) = planted();
        fs::set_permissions(lab.root(), Permissions::from_mode(0o777)).unwrap();
        refuses_everything(&lab, "other users may write in it");
        if rustix::process::geteuid().is_root() {
            fs::set_permissions(lab.root(), Permissions::from_mode(0o755)).unwrap();
            chown(lab.root(), Some(65534), None).unwrap();
            refuses_everything(&lab, "belongs to user 65534");
        }
        assert!(precious.join("fuse").is_dir());
    }

    #[test]
    fn a_link_is_no_drive() {
        let (_base, lab, precious) = planted();
        assert!(lab.sweep().unwrap().is_empty());
        assert!(matches!(lab.info("drive"), Err(LabError::NoSuch { .. })));
        assert!(precious.join("fuse").is_dir());
    }
}
