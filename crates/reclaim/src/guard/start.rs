//! Which file systems can be guarded, and the commands that make others fit.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linux::SysRoot;
use linux::mounts::Mount;
use record::DiscardSetting;
use record::units::names::{quoted, shown};
use storage::FileSystem;
use storage::layout::Trimmed;

use super::look::{Looker, Unlisted};
use super::state::State;
use super::{GuardError, GuardOptions};
use crate::ReclaimError;
use crate::trim::{Part, Survey, TrimError};

/// A file system that can be guarded.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) path: PathBuf,
    pub(super) mount: Mount,
    /// The name of its state's directory.
    pub(super) name: String,
    pub(super) uuid: Option<String>,
    /// The warning that discards may crash this kernel.
    pub(super) fault: Option<storage::Warning>,
}

/// The way in which a file system is guarded.
#[derive(Debug)]
pub(super) enum Way {
    /// Guard trims what was freed.
    Trims {
        looker: Looker,
        /// The mount must be switched to `nodiscard` first.
        remount: bool,
    },
    /// btrfs trims, and guard sets the rate.
    Limit,
}

impl Candidate {
    /// Examines the file system at a path, and changes nothing.
    ///
    /// # Errors
    /// [`GuardError::Refused`] if it can't be guarded.
    pub(super) fn examine(
        path: &Path,
        options: &GuardOptions,
    ) -> Result<(Candidate, Way), GuardError> {
        opened(path)?;
        let refuse = Refusing(path);
        refuse.unless_root("guard")?;
        let mount = Mount::of(path);
        let mount = mount.map_err(|error| refuse.see_inspect(error.to_string()))?;
        let fs = FileSystem::mounted(&mount);
        refuse.unless_whole(&mount, fs)?;
        refuse.unless_read_only(&mount)?;
        let survey = Survey::of(path, Part::default(), None);
        let survey = survey.map_err(|error| refuse.see_inspect(error.to_string()))?;
        if !survey.takes_discards {
            return Err(refuse.see_inspect("no device below it takes discards".to_owned()));
        }
        let way = match fs {
            FileSystem::Btrfs => refuse.unless_async(&mount, options)?,
            _ => {
                refuse.unless_trimmable(&survey)?;
                let remount = options.remount;
                refuse.looker(&survey, fs, &mount, remount)?
            }
        };
        let candidate = Candidate {
            path: path.to_owned(),
            name: name_of(path, fs, survey.fs.uuid.as_deref())?,
            mount,
            uuid: survey.fs.uuid,
            fault: survey.fault,
        };
        Ok((candidate, way))
    }
}

fn opened(path: &Path) -> Result<File, GuardError> {
    File::open(path).map_err(|source| GuardError::Path {
        path: path.to_owned(),
        source,
    })
}

/// The name of a file system's state: the same through each of its mount points.
fn name_of(path: &Path, fs: FileSystem, uuid: Option<&str>) -> Result<String, GuardError> {
    if let (FileSystem::Btrfs, Some(uuid)) = (fs, uuid) {
        return Ok(format!("btrfs-{uuid}"));
    }
    let found = path.metadata().map_err(ReclaimError::io("examine", path));
    let device = found?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    Ok(format!("{major}:{minor}"))
}

/// Returns the state of the guard that runs on the file system of a path.
///
/// # Errors
/// [`GuardError::NotGuarded`] where none runs.
pub(super) fn running(path: &Path) -> Result<State, GuardError> {
    let failed = || ReclaimError::io("read the state of the guard of", path);
    let directory = opened(path)?;
    Refusing(path).unless_root("guard status")?;
    let not = || GuardError::NotGuarded { path: path.into() };
    let described = storage::describe(path).map_err(|_| not())?;
    let trimmed = Trimmed::of(&SysRoot::host(), &directory, &described);
    let fs = FileSystem::named(&described.target);
    let name = name_of(path, fs, trimmed.uuid.as_deref())?;
    let state = State::find(&name).map_err(failed())?;
    state.filter(State::is_locked).ok_or_else(not)
}

pub(super) fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Refuses a file system, and prints the commands that make it fit.
struct Refusing<'a>(&'a Path);

impl Refusing<'_> {
    fn because(
        &self,
        why: impl Into<String>,
        hint: &'static str,
        commands: impl IntoIterator<Item = String>,
    ) -> GuardError {
        GuardError::Refused {
            path: self.0.to_owned(),
            why: why.into(),
            hint,
            commands: commands.into_iter().collect(),
        }
    }

    /// The path for a command that is run anywhere.
    fn shown(&self) -> String {
        shown(canonical(self.0))
    }

    fn see_inspect(&self, why: String) -> GuardError {
        let inspect = format!("trimbench inspect {}", self.shown());
        self.because(why, "this shows its storage stack", [inspect])
    }

    fn unless_root(&self, command: &str) -> Result<(), GuardError> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let again = format!("sudo trimbench {command} {}", self.shown());
        Err(self.because("it takes root", "run it as root", [again]))
    }

    fn unless_whole(&self, mount: &Mount, fs: FileSystem) -> Result<(), GuardError> {
        let here = mount.mount_point == canonical(self.0);
        // All subvolumes of a btrfs are trimmed together.
        let is_whole = |mount: &Mount| fs == FileSystem::Btrfs || mount.root == Path::new("/");
        if here && is_whole(mount) {
            return Ok(());
        }
        let why = format!(
            "it is a part of the file system on {}, and trims are for all of it",
            quoted(Path::new(&mount.source))
        );
        let all = linux::mounts::list(&SysRoot::host()).unwrap_or_default();
        let same = |other: &&Mount| other.device == mount.device && is_whole(other);
        let whole = std::iter::once(mount).chain(&all).find(same);
        Err(match whole {
            Some(whole) => {
                let guard = format!("trimbench guard {}", shown(&whole.mount_point));
                self.because(why, "guard the whole file system", [guard])
            }
            None => {
                let mount = format!("mount {} /mnt", shown(Path::new(&mount.source)));
                let guard = "trimbench guard /mnt".to_owned();
                self.because(why, "mount it whole, and guard it there", [mount, guard])
            }
        })
    }

    fn unless_read_only(&self, mount: &Mount) -> Result<(), GuardError> {
        if !mount.read_only() {
            return Ok(());
        }
        let remount = format!("mount -o remount,rw {}", self.shown());
        let why = "it is mounted read-only, so nothing is freed there";
        Err(self.because(why, "make it writable", [remount]))
    }

    fn unless_async(&self, mount: &Mount, options: &GuardOptions) -> Result<Way, GuardError> {
        let given = [
            (options.between.is_some(), "--set between"),
            (options.min_run.is_some(), "--set min-run"),
            (options.goal.max_latency.is_some(), "--max-latency"),
        ];
        if let Some((_, option)) = given.iter().find(|(given, _)| *given) {
            let why = format!(
                "btrfs trims by itself, guard only sets its rate, and {option} is no part of that"
            );
            let without = format!("trimbench guard {}", self.shown());
            return Err(self.because(why, "leave it out", [without]));
        }
        if FileSystem::mounted(mount).discard_setting(mount) == DiscardSetting::Async {
            return Ok(Way::Limit);
        }
        let at = self.shown();
        let why = "on btrfs, guard sets the rate of the kernel's own trims, which run only with \
                   discard=async";
        let remount = format!("mount -o remount,discard=async {at}");
        Err(self.because(why, "switch it on", [remount]))
    }

    /// Asks the kernel.
    fn unless_trimmable(&self, survey: &Survey) -> Result<(), GuardError> {
        survey.probe().map_err(|error| match error {
            TrimError::Unsupported { .. } => {
                self.see_inspect("the kernel can't trim it".to_owned())
            }
            TrimError::NotPermitted { .. } => {
                let again = format!("sudo trimbench guard {}", self.shown());
                self.because("trimming takes CAP_SYS_ADMIN", "run it as root", [again])
            }
            other => self.see_inspect(other.to_string()),
        })
    }

    fn looker(
        &self,
        survey: &Survey,
        fs: FileSystem,
        mount: &Mount,
        remount: bool,
    ) -> Result<Way, GuardError> {
        let looker = Looker::of(survey, fs);
        let looker = looker.map_err(|unlisted| {
            let kind = &mount.fs;
            let why = match unlisted {
                Unlisted::Kind => format!("the free extents of {kind} can't be listed"),
                Unlisted::Kernel => {
                    "the kernel doesn't list its free extents (FS_IOC_GETFSMAP)".to_owned()
                }
            };
            let timer = format!("trimbench fstrim --install-timer {}", self.shown());
            self.because(why, "trim it every week instead", [timer])
        })?;
        let remount = self.unless_switched_off(mount, fs, remount)?;
        Ok(Way::Trims { looker, remount })
    }

    /// Returns whether the mount is to be switched to `nodiscard`.
    fn unless_switched_off(
        &self,
        mount: &Mount,
        fs: FileSystem,
        remount: bool,
    ) -> Result<bool, GuardError> {
        // A guard that was just killed may be about to switch it back.
        let settled = storage::remount::settled(mount);
        let now = settled.as_ref().unwrap_or(mount);
        let setting = FileSystem::mounted(now).discard_setting(now);
        if !matches!(setting, DiscardSetting::On | DiscardSetting::Async) {
            return Ok(false);
        }
        let (at, kind) = (self.shown(), &mount.fs);
        let switches = fs.remount_switches_discard();
        if switches && remount {
            return Ok(true);
        }
        let why = format!("{kind} is mounted with discard, so it discards space when it frees it");
        if switches {
            let temporary = format!("trimbench guard --remount {at}");
            let once = format!("mount -o remount,nodiscard {at}");
            return Err(self.because(
                why,
                "switch that off while guard runs, or until the next mount",
                [temporary, once],
            ));
        }
        let why = format!("{why}, and it takes another option only when it is mounted");
        if mount.mount_point == Path::new("/") {
            let line = "rootflags=nodiscard".to_owned();
            return Err(self.because(why, "add this to the kernel's command line", [line]));
        }
        let source = shown(Path::new(&mount.source));
        let commands = [
            format!("umount {at}"),
            format!("mount -t {kind} -o nodiscard {source} {at}"),
        ];
        Err(self.because(
            why,
            "mount it anew, and put nodiscard into its line of /etc/fstab",
            commands,
        ))
    }
}
