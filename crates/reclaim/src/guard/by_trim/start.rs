//! Which file systems can be guarded by trims, and the start of such a guard.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use linux::SysRoot;
use linux::mounts::Mount;
use pace::Worth;
use record::DiscardSetting;
use ssd::Card;
use storage::FileSystem;
use storage::layout::{Layout, Trimmed};
use storage::remount::DiscardGuard;

use super::ages::Ages;
use super::debt::Debt;
use super::look::{Hidden, Looker, Unseen};
use super::note::Notes;
use super::{Clocks, Told, TrimGuard, TrimOptions};
use crate::guard::error::GuardError;
use crate::guard::place::Place;
use crate::throttle::{CanaryFile, ThrottleOptions, nameless_filled};

/// The way in which a guard works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Second names of large files.
    Link,
    /// Trims of what was freed.
    Trim,
}

/// The facts about a mount before it is guarded.
struct Candidate {
    mount: Mount,
    setting: DiscardSetting,
    fs: FileSystem,
    layout: Layout,
    device: Option<String>,
    kind: String,
    uuid: Option<String>,
}

fn candidate(path: &Path) -> Result<Candidate, GuardError> {
    let failed = |source: std::io::Error| GuardError::Io {
        action: "examine",
        path: path.to_owned(),
        source,
    };
    let found = storage::describe(path).map_err(|error| GuardError::NotTrimmed {
        path: path.into(),
        why: error.to_string(),
    })?;
    let directory = File::open(path).map_err(failed)?;
    let trimmed = Trimmed::of(&SysRoot::host(), &directory, &found);
    let mount = Mount::of(path).map_err(|error| GuardError::NotTrimmed {
        path: path.into(),
        why: error.to_string(),
    })?;
    let tops = || found.devices.iter().filter(|device| device.level == 0);
    if !tops().any(|top| top.discard.max_bytes > 0) {
        return Err(GuardError::NotTrimmed {
            path: path.into(),
            why: "no device below it takes discards".to_owned(),
        });
    }
    Ok(Candidate {
        setting: FileSystem::mounted(&mount).discard_setting(&mount),
        fs: FileSystem::named(&found.target),
        layout: trimmed.layout,
        device: tops().next().map(|top| top.name.clone()),
        kind: found.target.fs.clone().unwrap_or_default(),
        uuid: trimmed.uuid,
        mount,
    })
}

/// Why guard doesn't trim a btrfs that is mounted otherwise.
const BTRFS_OTHERWISE: &str = "on btrfs, guard sets the rate of the kernel's own trimmer, which runs only \
                               with discard=async";

fn canonical(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether a path is where a whole file system is mounted.
fn is_mount(path: &Path, mount: &Mount) -> bool {
    mount.mount_point == canonical(path) && mount.root == Path::new("/")
}

/// For a btrfs whose kernel trims by itself, its UUID as far as it can be read; `None` for another
/// file system.
///
/// # Errors
/// If it is a btrfs that can't be guarded so.
pub(in crate::guard) fn kernels_own(path: &Path) -> Result<Option<Option<String>>, GuardError> {
    let found = candidate(path)?;
    if found.fs != FileSystem::Btrfs {
        return Ok(None);
    }
    let refuse = |why: String| GuardError::NotTrimmed {
        path: path.to_owned(),
        why,
    };
    let at = &found.mount.mount_point;
    if *at != canonical(path) {
        let at = units::names::quoted(at);
        return Err(refuse(format!(
            "it isn't where a btrfs is mounted; name {at}"
        )));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(refuse("changing the limits of btrfs takes root".to_owned()));
    }
    if found.setting != DiscardSetting::Async {
        let how = "mount -o remount,discard=async";
        let at = units::names::quoted(at);
        return Err(refuse(format!("{BTRFS_OTHERWISE}: {how} {at}")));
    }
    Ok(Some(found.uuid))
}

/// Chooses a way for a directory, and says why, to be read after "because".
pub fn choose(path: &Path) -> (Way, String) {
    if !rustix::process::geteuid().is_root() {
        return (Way::Link, "trimming needs root".to_owned());
    }
    let found = match candidate(path) {
        Ok(found) => found,
        Err(GuardError::NotTrimmed { why, .. }) => return (Way::Link, why),
        Err(error) => return (Way::Link, error.to_string()),
    };
    let (kind, setting) = (&found.kind, found.setting);
    if found.fs == FileSystem::Btrfs && found.mount.mount_point == canonical(path) {
        return match setting {
            DiscardSetting::Async => (
                Way::Trim,
                "btrfs trims by itself (discard=async), at a rate that guard sets".to_owned(),
            ),
            _ => (Way::Link, BTRFS_OTHERWISE.to_owned()),
        };
    }
    if !is_mount(path, &found.mount) {
        let at = units::names::quoted(&found.mount.mount_point);
        return (
            Way::Link,
            format!("it is a part of what is mounted at {at}"),
        );
    }
    if !matches!(
        found.layout,
        Layout::Groups { .. } | Layout::Allocation { .. }
    ) {
        return (
            Way::Link,
            format!("the free extents of {kind} can't be listed"),
        );
    }
    match setting {
        DiscardSetting::Off => (
            Way::Trim,
            format!("{kind} is mounted without discard, so nothing is discarded when it is freed"),
        ),
        _ => (
            Way::Link,
            format!("{kind} is mounted with discard, so that space is discarded when it is freed"),
        ),
    }
}

impl<'a> TrimGuard<'a> {
    /// Takes charge of a mounted file system. Returns notes for the user.
    ///
    /// # Errors
    /// If it can't be guarded: it is no mount point, it can't be trimmed or its free extents can't
    /// be listed, it discards by itself, or another guard works there.
    pub fn start(
        path: &Path,
        mut options: TrimOptions,
        card: Option<&'a Card>,
    ) -> Result<(TrimGuard<'a>, Vec<String>), GuardError> {
        let mut notes = Vec::new();
        let found = candidate(path)?;
        let refuse = |why: String| GuardError::NotTrimmed {
            path: path.to_owned(),
            why,
        };
        if !is_mount(path, &found.mount) {
            let at = units::names::quoted(&found.mount.mount_point);
            return Err(refuse(format!(
                "it isn't where a whole file system is mounted; name {at}"
            )));
        }
        if !rustix::process::geteuid().is_root() {
            return Err(refuse(
                "trimming takes CAP_SYS_ADMIN; run as root".to_owned(),
            ));
        }
        let directory = File::open(path).map_err(|source| GuardError::Io {
            action: "open the directory",
            path: path.to_owned(),
            source,
        })?;
        let (fs, device) = (found.fs, found.device.as_deref());
        let looker = Looker::of(directory, &fs, &found.layout, device, &found.kind);
        let looker = looker.map_err(|unseen| refuse(unlisted(unseen)))?;
        let mut place = Place::open(path, &mut notes)?;
        let remounted = match switched_off(&found, &options) {
            Ok(remounted) => remounted,
            Err(error) => {
                place.close();
                return Err(error);
            }
        };
        if remounted.is_some() {
            notes.push(format!(
                "{}: remounted with nodiscard until the guard ends",
                units::names::quoted(path)
            ));
        }
        if options.hand_over
            && let Err(error) = place.open_inbox(options.goal, &options.throttle)
        {
            place.close();
            return Err(error);
        }
        // Freeing costs nothing here.
        place.forget_live();
        place.forget_orphans();
        let canary = keep_canary(&place, &mut options.throttle);
        let mut guard = TrimGuard {
            place,
            options,
            card,
            looker,
            debt: Debt::default(),
            hidden: Hidden::default(),
            ages: Ages::default(),
            worth: Worth::default(),
            notes: Notes::default(),
            _canary: canary,
            remounted,
            drained_up_to: 0,
            trimmed: 0,
            windows: 0,
            clock: Clocks {
                look_at: Instant::now(),
                renewed: Instant::now(),
                noted: Instant::now(),
                reported: None,
            },
            unnoted: true,
            told: Told::default(),
        };
        match guard.begin() {
            Ok(note) => notes.extend(note),
            Err(source) => {
                let path = path.to_owned();
                guard.place.close();
                return Err(GuardError::Io {
                    action: "list the free extents of",
                    path,
                    source,
                });
            }
        }
        Ok((guard, notes))
    }

    /// The first look, joined with what an earlier guard noted on this mount.
    fn begin(&mut self) -> std::io::Result<Option<String>> {
        let look = self.looker.look()?;
        let mount = self.looker.mount();
        let noted = mount.and_then(|mount| self.notes.read(self.place.hidden(), &mount));
        let path = units::names::quoted(self.place.path());
        let Some((debt, hidden)) = noted.filter(|_| look.freed_blocks.is_some()) else {
            self.hidden.saw(0, look.freed_blocks, self.looker.block);
            self.debt = Debt::all(look.free);
            let bytes = units::bytes(self.debt.bytes());
            let remembered = match self.looker.is_remembered() {
                true => ", but for the block groups that the kernel knows to be trimmed",
                false => "",
            };
            return Ok(Some(format!(
                "{path}: {bytes} are free and may never have been trimmed: they are trimmed \
                 now{remembered}"
            )));
        };
        (self.debt, self.hidden) = (debt, hidden);
        let seen = self.debt.look(look.free, super::now());
        let block = self.looker.block;
        self.hidden.saw(seen.freed, look.freed_blocks, block);
        if self.hidden.bytes() == 0 {
            return Ok(None);
        }
        let unseen = units::bytes(self.hidden.bytes());
        self.renew();
        Ok(Some(format!(
            "{path}: up to {unseen} were used and freed unseen while no guard ran: all that is free \
             is trimmed again"
        )))
    }
}

fn unlisted(unseen: Unseen) -> String {
    match unseen {
        Unseen::Kind(kind) => format!(
            "the free extents of {kind} can't be listed; use trimbench fstrim, or --by link"
        ),
        Unseen::NotListed => {
            "the kernel doesn't list its free extents (FS_IOC_GETFSMAP); use trimbench fstrim"
                .to_owned()
        }
    }
}

/// Switches a mount to `nodiscard` where that is asked for and needed.
fn switched_off(
    found: &Candidate,
    options: &TrimOptions,
) -> Result<Option<DiscardGuard>, GuardError> {
    // One that was just killed may be about to switch it back.
    let settled = storage::remount::settled(&found.mount);
    let setting = match &settled {
        Ok(mount) => FileSystem::mounted(mount).discard_setting(mount),
        Err(_) => found.setting,
    };
    if !matches!(setting, DiscardSetting::On | DiscardSetting::Async) {
        return Ok(None);
    }
    let path: PathBuf = found.mount.mount_point.clone();
    let switches = found.fs.remount_switches_discard();
    match (options.remount, switches) {
        (true, true) => DiscardGuard::off(&found.mount)
            .map(Some)
            .map_err(|error| GuardError::Remount(Box::new(error))),
        (_, false) => Err(GuardError::NotTrimmed {
            path,
            why: format!(
                "it is mounted with discard, and {} takes another option only when it is mounted; \
                 unmount it, and mount it with nodiscard",
                found.kind
            ),
        }),
        (false, true) => Err(GuardError::NotTrimmed {
            path,
            why: "it is mounted with discard; mount it with nodiscard, or add --remount".to_owned(),
        }),
    }
}

/// One file for all canaries of this guard.
fn keep_canary(place: &Place, options: &mut ThrottleOptions) -> Option<Arc<File>> {
    if !matches!(options.canary, CanaryFile::Made) {
        return None;
    }
    let file = Arc::new(nameless_filled(place.hidden()).ok()?);
    options.canary = CanaryFile::Given(Arc::clone(&file));
    Some(file)
}
