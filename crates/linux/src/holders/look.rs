//! A look at the mounts of all mount namespaces, for one file.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::inside::{FileId, Inside, MountId};
use super::kernel::{Described, Direction, FROM_ROOT, Namespace};
use super::{Unknown, older};
use crate::mounts::{self, DeviceNumber};

/// The suffix of the path of a file that has no name any more.
const DELETED: &[u8] = b"//deleted";

/// Numbers of mounts that one call brings.
const BATCH: usize = 4096;

/// The processor time that all looks of a run may take, and the share of the run's time beyond it.
const AT_MOST: Duration = Duration::from_secs(1);
const SHARE: u32 = 20;

/// A file whose mounts are looked for.
pub(super) struct WantedFile<'a> {
    pub(super) id: FileId,
    /// The device of its file system, as lists of mounts show it.
    pub(super) device: DeviceNumber,
    /// Its last name: the root of a mount of it ends in this name, or has none any more.
    pub(super) name: &'a OsStr,
}

/// The mounts that concern one file.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Where the file is mounted by itself.
    pub(super) mounted: Option<PathBuf>,
    /// A mount that may show the file and can't be looked at.
    pub(super) hidden: Option<PathBuf>,
    /// The upper directories of overlays, by the overlay's device.
    pub(super) uppers: HashMap<DeviceNumber, Upper>,
}

/// The upper directory of an overlay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Upper {
    /// Where the overlay is mounted.
    pub(super) point: PathBuf,
    /// The directories to which its path leads, in the namespaces where it leads to any.
    pub(super) directories: Vec<FileId>,
}

/// A mount, as far as it never changes.
enum Known {
    /// It shows a whole file system.
    Whole,
    /// It shows a part of a file system, perhaps a file.
    Part(DeviceNumber),
    /// Its root is this file.
    Root(FileId, PathBuf),
    /// It is an overlay that can be written to.
    Overlay(DeviceNumber, Upper),
}

/// A mount, as a list shows it.
pub(super) struct Entry {
    pub(super) id: MountId,
    pub(super) device: DeviceNumber,
    pub(super) root: PathBuf,
    pub(super) point: PathBuf,
}

/// The memory between looks, and the time that they took.
pub(super) struct Looks {
    began: Instant,
    pub(super) used: Duration,
    /// How many mounts were examined, rather than known from an earlier look.
    pub(super) examined: u64,
    known: HashMap<u64, Known>,
    /// The mount from which each namespace is listed.
    tops: HashMap<u64, u64>,
    /// The processor time that looks may take, whatever time the run takes.
    pub(super) at_most: Duration,
    /// Whether the kernel lists namespaces.
    pub(super) lists: bool,
}

impl Looks {
    pub(super) fn new() -> Looks {
        Looks {
            began: Instant::now(),
            used: Duration::ZERO,
            examined: 0,
            known: HashMap::new(),
            tops: HashMap::new(),
            at_most: AT_MOST,
            lists: true,
        }
    }

    /// Looks at all mounts.
    ///
    /// # Errors
    /// Why they aren't known.
    pub(super) fn look(&mut self, wanted: &WantedFile<'_>) -> Result<Found, Unknown> {
        Inside::run(|inside| {
            let mut look = Look {
                at_most: (self.at_most + self.began.elapsed() / SHARE).saturating_sub(self.used),
                inside,
                wanted,
                found: Found::default(),
            };
            let found = match self.lists {
                true => self.listed(&mut look),
                false => Err(Errno::NOTTY.into()),
            };
            // Linux before 6.12.
            let found = match found {
                Err(Unknown::Namespace(Errno::NOTTY | Errno::NOSYS)) => {
                    self.lists = false;
                    older::look(&mut look).map(|count| self.examined += count)
                }
                found => found,
            };
            self.used += spent();
            found.map(|()| look.found)
        })
        .map_err(|error| Unknown::Namespace(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?
    }

    fn listed(&mut self, look: &mut Look<'_>) -> Result<(), Unknown> {
        let own = rustix::io::fcntl_dupfd_cloexec(look.inside.own(), 0)?;
        let mut next = Some(first(Namespace::of(own)?)?);
        let mut known = std::mem::take(&mut self.known);
        while let Some(namespace) = next {
            // One that ends meanwhile has nothing mounted any more.
            match self.namespace(&namespace, &mut known, look) {
                Ok(()) | Err(Unknown::Namespace(Errno::NOENT)) => {}
                Err(unknown) => {
                    self.known.extend(known);
                    return Err(unknown);
                }
            }
            next = namespace.neighbour(Direction::Next)?;
        }
        Ok(())
    }

    /// Looks at the mounts of a namespace. Those that are `known` are remembered on.
    fn namespace(
        &mut self,
        namespace: &Namespace,
        known: &mut HashMap<u64, Known>,
        look: &mut Look<'_>,
    ) -> Result<(), Unknown> {
        let top = match self.tops.get(&namespace.id) {
            Some(&top) => top,
            None => top(namespace)?,
        };
        self.tops.insert(namespace.id, top);
        let (mut ids, mut after) = (vec![0; BATCH], 0);
        loop {
            look.spend()?;
            let count = namespace.list(top, after, &mut ids)?;
            for (number, &id) in ids[..count].iter().enumerate() {
                if number % 64 == 0 {
                    look.spend()?;
                }
                let mount = match known.remove(&id) {
                    Some(mount) => mount,
                    None => match self.examine(namespace, id, look) {
                        Err(Unknown::Namespace(Errno::NOENT)) => continue,
                        examined => examined?,
                    },
                };
                if let Some(mount) = look.consider(namespace, id, mount)? {
                    self.known.insert(id, mount);
                }
                after = id;
            }
            if count < BATCH {
                return Ok(());
            }
        }
    }

    fn examine(
        &mut self,
        namespace: &Namespace,
        id: u64,
        look: &Look<'_>,
    ) -> Result<Known, Unknown> {
        self.examined += 1;
        let mount = namespace.describe(id)?;
        Ok(match mount.is_overlay {
            true => {
                look.inside.enter(&namespace.file)?;
                match look.upper(&mount.options, &mount.point) {
                    Some(upper) => Known::Overlay(mount.device, upper),
                    None => Known::Whole,
                }
            }
            false if mount.root == Path::new("/") => Known::Whole,
            false => Known::Part(mount.device),
        })
    }
}

/// The first of all namespaces.
fn first(mut namespace: Namespace) -> Result<Namespace, Errno> {
    while let Some(before) = namespace.neighbour(Direction::Previous)? {
        namespace = before;
    }
    Ok(namespace)
}

/// The mount below which all mounts of a namespace are: also those that no path leads to, because
/// something is mounted over the root.
fn top(namespace: &Namespace) -> Result<u64, Errno> {
    let mut first = [0];
    if namespace.list(FROM_ROOT, 0, &mut first)? == 0 {
        return Ok(FROM_ROOT);
    }
    let mut top = first[0];
    loop {
        let parent = namespace.describe(top)?.parent;
        if parent == top {
            return Ok(top);
        }
        // The parent of the topmost is no mount of the namespace.
        match namespace.describe(parent) {
            Ok(_) => top = parent,
            Err(_) => return Ok(FROM_ROOT),
        }
    }
}

/// One look.
pub(super) struct Look<'a> {
    pub(super) inside: &'a Inside,
    pub(super) wanted: &'a WantedFile<'a>,
    pub(super) found: Found,
    at_most: Duration,
}

impl Look<'_> {
    /// Checks that the look may take more time.
    ///
    /// # Errors
    /// [`Unknown::TooMany`] if it may not.
    pub(super) fn spend(&self) -> Result<(), Unknown> {
        match spent() <= self.at_most {
            true => Ok(()),
            false => Err(Unknown::TooMany),
        }
    }

    /// Considers whether a mount concerns the file. Returns what is known of it then; `None` if it
    /// is mounted no more.
    fn consider(
        &mut self,
        namespace: &Namespace,
        id: u64,
        mount: Known,
    ) -> Result<Option<Known>, Unknown> {
        match &mount {
            Known::Part(device) if *device == self.wanted.device => {
                // Its name may have changed since.
                let Described {
                    device,
                    root,
                    point,
                    ..
                } = match namespace.describe(id) {
                    Err(Errno::NOENT) => return Ok(None),
                    described => described?,
                };
                let entry = Entry {
                    id: MountId::Unique(id),
                    device,
                    root,
                    point,
                };
                if self.may_be_it(&entry) {
                    self.inside.enter(&namespace.file)?;
                    if let Some(root) = self.part(&entry) {
                        return Ok(Some(Known::Root(root, entry.point)));
                    }
                }
            }
            Known::Root(root, point) => self.root(*root, point),
            Known::Overlay(device, upper) => self.overlay(*device, upper.clone()),
            Known::Whole | Known::Part(_) => {}
        }
        Ok(Some(mount))
    }

    /// Whether a mount may show the file: it shows a part of the same file system, and that has the
    /// file's name or none.
    pub(super) fn may_be_it(&self, mount: &Entry) -> bool {
        if mount.device != self.wanted.device || mount.root == Path::new("/") {
            return false;
        }
        let root = mount.root.as_os_str().as_bytes();
        let name = root.rsplit(|&byte| byte == b'/').next();
        root.ends_with(DELETED) || name == Some(self.wanted.name.as_bytes())
    }

    /// Looks what a mount shows, from within its namespace. Returns it if that is known.
    pub(super) fn part(&mut self, mount: &Entry) -> Option<FileId> {
        match self.inside.root_of(&mount.point, mount.id) {
            Some(root) => {
                self.root(root, &mount.point);
                Some(root)
            }
            None => {
                self.found.hidden = Some(mount.point.clone());
                None
            }
        }
    }

    fn root(&mut self, root: FileId, point: &Path) {
        if root == self.wanted.id {
            self.found.mounted = Some(point.to_owned());
        }
    }

    /// Returns the upper directory of an overlay that is mounted in the namespace that was entered;
    /// `None` if it has none.
    fn upper(&self, options: &[u8], point: &Path) -> Option<Upper> {
        let mut options = options.split(|&byte| byte == b',');
        let path = options.find_map(|option| option.strip_prefix(b"upperdir="))?;
        Some(self.upper_at(&mounts::path_from(path), point))
    }

    /// Returns the upper directory at a path, as the namespace shows it that was entered. Then the
    /// thread is in its own again.
    pub(super) fn upper_at(&self, path: &Path, point: &Path) -> Upper {
        let mut directories = Vec::new();
        // One that isn't absolute began where its mounter was.
        if path.is_absolute() {
            directories.extend(self.inside.directory(path));
            if self.inside.enter(self.inside.own()).is_ok() {
                directories.extend(self.inside.directory(path));
            }
        }
        Upper {
            point: point.to_owned(),
            directories,
        }
    }

    /// Adds an overlay.
    pub(super) fn overlay(&mut self, device: DeviceNumber, upper: Upper) {
        let known = self.found.uppers.entry(device).or_default();
        known.point = upper.point;
        known.directories.extend(upper.directories);
    }
}

/// The processor time of this thread.
fn spent() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or(Duration::MAX)
}
