//! Sizes that are safe on the file system at hand.

use linux::space::Space;
use record::units::MIB;
use storage::FileSystem;
use thiserror::Error;

use crate::error::BenchError;
use crate::plan::{ActorSpec, Method, Place, Plan, Swap};
use crate::scenario::Scenario;
use crate::survey::Survey;

/// Neither file is picked smaller than this.
pub(crate) const LEAST: u64 = 16 * MIB;

/// Bytes of a file, or of several together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// Asked for.
    Exactly(u64),
    /// The choice is ours, up to so many.
    AtMost(u64),
}

impl Bytes {
    /// Those asked for, or a share of what is there.
    fn pick(self, share: u64) -> u64 {
        match self {
            Bytes::Exactly(bytes) => bytes,
            Bytes::AtMost(most) => (most.min(share) / MIB * MIB).max(LEAST),
        }
    }
}

/// Sizes asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Bytes to delete (all files together).
    pub deletion: Bytes,
    /// How often those may take space at once: [`copies`].
    pub deletion_copies: u64,
    /// Bytes of the foreground file still to be written (0 when one is reused,
    /// and where nobody needs it: [`crate::Plan::needs_file`]).
    pub foreground: Bytes,
    /// Bytes taken beside all these: of appenders' and tasks' files
    /// ([`load::ActorSpec::own_bytes`]), of what takes the place of swapped
    /// tables ([`crate::plan::Swap::REPLACEMENT_BYTES`] each).
    pub other_bytes: u64,
    /// How the files to delete are fragmented, if they are.
    pub fragments: Option<Fragments>,
    /// Whether a foreground file without a size of its own may take 16 MiB of the reserve. On a
    /// full disk an event frees space.
    pub into_reserve: bool,
}

/// Fragmenting files on purpose, and the space that takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragments {
    /// Files.
    pub files: u32,
    /// Bytes of each extent.
    pub extent_bytes: u64,
    /// Bytes that each extent takes beyond its data while files are made.
    pub overhead_bytes: u64,
}

impl Fragments {
    /// Files in extents of a size, on the file system of a survey.
    pub fn on(survey: &Survey, files: u32, extent_bytes: u64) -> Fragments {
        let fs = FileSystem::named(&survey.target);
        let block_bytes = survey.space.block_bytes;
        Fragments {
            files,
            extent_bytes,
            overhead_bytes: overhead_per_extent(fs, block_bytes, extent_bytes),
        }
    }

    /// At most so many bytes are taken beyond those of the data.
    pub fn overhead(&self, data_bytes: u64) -> u64 {
        // The last extent of each file may be a short one.
        let extents = data_bytes.div_ceil(self.extent_bytes.max(1)) + u64::from(self.files);
        extents.saturating_mul(self.overhead_bytes)
    }

    /// So many bytes of data that they and their overhead take about `bytes`.
    fn data_within(&self, bytes: u64) -> u64 {
        let share = self.extent_bytes as f64 / (self.extent_bytes + self.overhead_bytes) as f64;
        (bytes as f64 * share) as u64
    }
}

/// The sizes that a plan has yet to get: those that the scenario asks for, or else safe ones.
///
/// # Errors
/// When the files don't fit.
pub(crate) fn of(plan: &Plan, scenario: &Scenario, survey: &Survey) -> Result<Sizes, BenchError> {
    let asked = scenario.foreground.size_bytes;
    let foreground = match asked {
        _ if !plan.needs_file() => Bytes::Exactly(0),
        Some(bytes) => Bytes::Exactly(bytes),
        None => {
            let most = scenario.foreground.size_bytes();
            // Most of what may be written is for the measurement.
            Bytes::AtMost(
                plan.writes_at_most()
                    .map_or(most, |limit| most.min(limit / 8)),
            )
        }
    };
    let deletion = match (&plan.deletion, scenario.deletion.size_bytes) {
        (None, _) => Bytes::Exactly(0),
        _ if plan.event().is_some() => Bytes::Exactly(0),
        (Some(_), Some(bytes)) => Bytes::Exactly(bytes),
        (Some(_), None) => Bytes::AtMost(scenario.deletion.size_bytes()),
    };
    let chosen = match &survey.place {
        Place::Directory(path) => {
            let wanted = Wanted {
                deletion,
                deletion_copies: copies(plan),
                foreground,
                other_bytes: other_bytes(plan),
                fragments: fragments(plan, survey)?,
                into_reserve: plan.event().is_some() && plan.writes_at_most().is_none(),
            };
            choose(&survey.space, wanted).map_err(|source| {
                let path = path.clone();
                BenchError::Space { path, source }
            })
        }
        Place::Device { path, .. } => {
            let chosen = choose_on_device(survey.space.size_bytes, deletion, foreground);
            chosen.map_err(|source| {
                let (path, why) = (path.clone(), source.to_string());
                BenchError::Place { path, why }
            })
        }
    };
    chosen.map_err(|refused| match &survey.limited {
        Some(why) => BenchError::Plan(match refused {
            BenchError::Space { path, source } => {
                let path = record::units::names::shown(&path);
                format!(
                    "{path}: too little space: {}; {why}",
                    source.needed_at_least()
                )
            }
            other => format!("{other}; {why}"),
        }),
        None => refused,
    })
}

/// How often the bytes of a deletion may take space at once. A control that
/// deletes as well has files of its own. A continuous deletion's dropped files keep their
/// space until the file system commits, while it writes anew.
fn copies(plan: &Plan) -> u64 {
    match &plan.deletion {
        Some(deletion) if deletion.method.is_continuous() => 2,
        _ => plan.control.deletions().into(),
    }
}

/// The bytes of the files of actors, and of the replacements of swapped tables.
fn other_bytes(plan: &Plan) -> u64 {
    let own = plan.actors.iter().map(ActorSpec::own_bytes);
    let own = own.fold(0, u64::saturating_add);
    match &plan.deletion {
        Some(deletion) if matches!(deletion.method, Method::Swap(_)) => {
            own.saturating_add(u64::from(deletion.files) * Swap::REPLACEMENT_BYTES)
        }
        _ => own,
    }
}

fn fragments(plan: &Plan, survey: &Survey) -> Result<Option<Fragments>, BenchError> {
    let Some(deletion) = &plan.deletion else {
        return Ok(None);
    };
    let unit = survey.space.block_bytes.max(4096);
    match deletion.extent_bytes {
        None => Ok(None),
        Some(extent) if extent.is_multiple_of(unit) => {
            Ok(Some(Fragments::on(survey, deletion.files, extent)))
        }
        Some(extent) => Err(BenchError::Plan(format!(
            "deletion.extent-size {extent}: extents are whole blocks, so give a multiple of {unit} \
             bytes"
        ))),
    }
}

/// Sizes chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes to delete.
    pub deletion_bytes: u64,
    /// Bytes of the foreground file.
    pub foreground_bytes: u64,
}

/// The files don't fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{}", self.words())]
pub struct TooLittleSpace {
    /// Size of the file system.
    pub size: u64,
    /// Bytes the run would take while it prepares.
    pub needed: u64,
    /// The least that a run with other sizes would take.
    pub least: u64,
    /// Bytes that are free.
    pub available: u64,
    /// Bytes that stay free.
    pub reserve: u64,
}

impl TooLittleSpace {
    /// The space that a run needs, where something else than the file system limits it.
    fn needed_at_least(&self) -> String {
        let fits = self.available >= self.reserve.saturating_add(self.least);
        let needed = if fits { self.needed } else { self.least };
        let [all, reserve] =
            [self.reserve.saturating_add(needed), self.reserve].map(record::units::bytes);
        format!("the run needs {all}, of which {reserve} stay free")
    }

    fn words(&self) -> String {
        let usable = self.available.saturating_sub(self.reserve);
        let beside = |bytes: u64| self.reserve.saturating_add(bytes);
        let would_fit = beside(self.needed) <= self.size;
        let goal = if would_fit { self.needed } else { self.least };
        let short = beside(goal).saturating_sub(self.available);
        // Rounding takes less than a twentieth.
        let short = record::units::bytes(short.saturating_add(short / 20));
        let [needed, available, reserve, size] =
            [self.needed, self.available, self.reserve, self.size].map(record::units::bytes);
        // Neither another size nor free space would help.
        if self.size <= self.reserve.saturating_add(2 * LEAST) {
            return format!(
                "too little space: the file system is too small: it has {size}, and {reserve} \
                 always stay free; use one of at least {}",
                record::units::bytes(2 * self.reserve)
            );
        }
        if usable < self.least {
            return format!(
                "too little space: {available} of {size} are free, and {reserve} always stay \
                 free, so no size fits; free about {short}, or give a PATH on another file system"
            );
        }
        let or_free = match would_fit {
            true => format!(", or free about {short}"),
            false => String::new(),
        };
        format!(
            "too little space: the run needs {needed}, and only {} are available beyond the \
             {reserve} that stay free; choose a smaller --size or foreground.size, fewer or \
             smaller files of actors{or_free}",
            record::units::bytes(usable)
        )
    }
}

/// Chooses what wasn't asked for and checks that all fits.
///
/// # Errors
/// [`TooLittleSpace`] when it doesn't.
fn choose(space: &Space, wanted: Wanted) -> Result<Sizes, TooLittleSpace> {
    let usable = space.usable_bytes();
    let others = usable.saturating_sub(wanted.other_bytes);
    let foreground_bytes = wanted.foreground.pick(others / 8);
    let share = others.saturating_sub(foreground_bytes) / 4;
    let share = wanted.fragments.map_or(share, |f| f.data_within(share));
    let deletion_bytes = wanted.deletion.pick(share);
    let overhead = wanted.fragments.map_or(0, |f| f.overhead(deletion_bytes));
    let needed = deletion_bytes
        .saturating_add(overhead)
        .saturating_mul(wanted.deletion_copies)
        .saturating_add(foreground_bytes)
        .saturating_add(wanted.other_bytes);
    let small = needed == LEAST && matches!(wanted.foreground, Bytes::AtMost(_));
    let into_reserve = wanted.into_reserve && small && needed <= space.available_bytes / 4;
    if needed > usable && !into_reserve {
        return Err(TooLittleSpace {
            size: space.size_bytes,
            needed,
            least: wanted.other_bytes.saturating_add(2 * LEAST),
            available: space.available_bytes,
            reserve: space.reserve_bytes(),
        });
    }
    Ok(Sizes {
        deletion_bytes,
        foreground_bytes,
    })
}

/// The regions don't fit on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "too small: the run needs {} and the device has {}; \
     choose a smaller --size or foreground.size",
    record::units::bytes(*needed), record::units::bytes(*size)
)]
pub struct DeviceTooSmall {
    /// Bytes the run would write.
    pub needed: u64,
    /// Size of the device.
    pub size: u64,
}

/// The same on a raw device, all of which may be used.
///
/// # Errors
/// [`DeviceTooSmall`] when the regions don't fit.
fn choose_on_device(
    size: u64,
    deletion: Bytes,
    foreground: Bytes,
) -> Result<Sizes, DeviceTooSmall> {
    let foreground_bytes = foreground.pick(size / 8);
    let left = size.saturating_sub(foreground_bytes.next_multiple_of(MIB));
    let deletion_bytes = deletion.pick(left);
    if deletion_bytes > left {
        return Err(DeviceTooSmall {
            needed: foreground_bytes.saturating_add(deletion_bytes),
            size,
        });
    }
    Ok(Sizes {
        deletion_bytes,
        foreground_bytes,
    })
}

/// Bytes that a file fragmented on purpose takes beyond its data while it is
/// made, for each extent: the gaps, and what indexes it all.
fn overhead_per_extent(fs: FileSystem, block_bytes: u64, extent_bytes: u64) -> u64 {
    let gap = block_bytes.max(4096);
    match fs {
        // The gap in the file, and the block of the spacer that it is exchanged
        // for; each has an entry of 12 bytes for every extent.
        FileSystem::Ext => 2 * gap + 64,
        // Items of some 130 bytes for each turn, kept twice.
        FileSystem::Btrfs => gap + extent_bytes.div_ceil(load::fill::TURN) * 512,
        // Only holes, and a few entries of 16 bytes.
        FileSystem::Xfs => 64,
        // Files are not fragmented on purpose on these, or nobody has measured what that takes.
        FileSystem::Ext3
        | FileSystem::F2fs
        | FileSystem::Fat
        | FileSystem::Ntfs
        | FileSystem::Plain
        | FileSystem::Memory
        | FileSystem::Overlay
        | FileSystem::Other => 0,
    }
}

#[cfg(test)]
mod tests {
    use record::units::GIB;

    use super::*;
    use proptest::prelude::*;

    fn space(size_bytes: u64, available_bytes: u64) -> Space {
        Space {
            size_bytes,
            available_bytes,
            block_bytes: 4096,
        }
    }

    const MOST_DELETED: u64 = 32 * GIB;

    fn wanted(deletion_bytes: Option<u64>, foreground_bytes: Option<u64>) -> Wanted {
        let bytes = |asked: Option<u64>, most| asked.map_or(Bytes::AtMost(most), Bytes::Exactly);
        Wanted {
            deletion: bytes(deletion_bytes, MOST_DELETED),
            deletion_copies: 1,
            foreground: bytes(foreground_bytes, GIB),
            other_bytes: 0,
            fragments: None,
            into_reserve: false,
        }
    }

    #[test]
    fn a_file_system_below_the_reserve_is_called_too_small() {
        let refused = |size_mib: u64, available_mib: u64| {
            let space = space(size_mib * MIB, available_mib * MIB);
            let why = choose(&space, wanted(None, None)).unwrap_err();
            why.to_string()
        };
        let small = refused(512, 480);
        assert!(small.contains("the file system is too small: it has 512 MiB"));
        assert!(small.contains("at least 2.0 GiB") && !small.contains("only 0"));
        // A larger one is full, and space can be freed.
        let full = refused(8192, 900);
        assert!(full.contains("900 MiB of 8.0 GiB are free") && full.contains("no size fits"));
        // 32 MiB and the 124 MiB below the reserve.
        assert!(full.contains("free about 164 MiB"), "{full}");
        assert!(!full.contains("smaller"), "{full}");
    }

    #[test]
    fn a_limit_below_the_file_system_is_not_called_its_size() {
        let source = choose(&space(100 << 20, 100 << 20), wanted(None, None)).unwrap_err();
        let needed = source.needed_at_least();
        assert!(needed.starts_with("the run needs 1.0"), "{needed}");
        assert!(!needed.contains("file system"), "{needed}");
        let source = choose(&space(8 * GIB, 6 * GIB), wanted(Some(7 * GIB), None)).unwrap_err();
        assert!(source.needed_at_least().contains("needs 8."), "{source:?}");
    }

    #[test]
    fn a_large_disk_gets_the_largest_unasked_deletion() {
        let space = space(2000 * GIB, 1000 * GIB);
        let sizes = choose(&space, wanted(None, None)).unwrap();
        assert_eq!(sizes.deletion_bytes, MOST_DELETED);
        assert_eq!(sizes.foreground_bytes, GIB);
    }

    #[test]
    fn a_full_disk_is_refused_with_what_there_is() {
        let space = space(100 * GIB, 11 * GIB);
        let error = choose(&space, wanted(Some(8 * GIB), Some(GIB))).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("needs 9.0 GiB, and only 1.0 GiB"), "{error}");
        assert!(error.contains("smaller --size") && error.contains("free about 8.4 GiB"));
        // The disk could not have so much even if it were empty.
        let error = choose(&space, wanted(Some(200 * GIB), None)).unwrap_err();
        assert!(!error.to_string().contains("or free"), "{error}");
    }

    #[test]
    fn an_event_on_a_full_disk_has_a_small_foreground_file() {
        let event = |into_reserve| Wanted {
            into_reserve,
            ..wanted(Some(0), None)
        };
        let full = space(100 * GIB, GIB);
        assert_eq!(choose(&full, event(true)).unwrap().foreground_bytes, LEAST);
        choose(&full, event(false)).unwrap_err();
        choose(&space(100 * GIB, 2 * LEAST), event(true)).unwrap_err();
    }

    #[test]
    fn gaps_between_small_extents_count() {
        let space = space(100 * GIB, 16 * GIB);
        let fragments = |extent_bytes| Wanted {
            fragments: Some(Fragments {
                files: 1,
                extent_bytes,
                overhead_bytes: 8192,
            }),
            ..wanted(Some(2 * GIB), Some(GIB))
        };
        choose(&space, fragments(MIB)).unwrap();
        // Three times as much as without; 6 GiB are to be had.
        let error = choose(&space, fragments(4096)).unwrap_err();
        assert_eq!(error.needed / MIB, 7 * 1024);
    }

    proptest! {
        #[test]
        fn what_is_chosen_always_leaves_the_reserve(
            size in 0u64..1 << 50, share in 0.0f64..1.0,
            deletion in proptest::option::of(0u64..1 << 45),
            foreground in proptest::option::of(0u64..1 << 45),
            extent_blocks in proptest::option::of(1u64..1000),
            other_bytes in 0u64..1 << 40,
        ) {
            let space = space(size, (size as f64 * share) as u64);
            let fragments = extent_blocks.map(|blocks| Fragments {
                files: 3,
                extent_bytes: blocks * 4096,
                overhead_bytes: 8192,
            });
            let wanted = Wanted { fragments, other_bytes, ..wanted(deletion, foreground) };
            if let Ok(sizes) = choose(&space, wanted) {
                let overhead = fragments.map_or(0, |f| f.overhead(sizes.deletion_bytes));
                let taken =
                    sizes.deletion_bytes + overhead + sizes.foreground_bytes + other_bytes;
                prop_assert!(space.available_bytes - taken >= space.reserve_bytes());
            }
        }
    }
}
