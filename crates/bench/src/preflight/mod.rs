//! Refuses, before anything is written, what would otherwise be refused only
//! after minutes of writing.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use judge::counting;
use linux::SysRoot;
use load::Clock;
use record::units::names;
use record::{DeviceInfo, DiscardsAtMost, Head, RUN_SCHEMA, Target};
use rustix::fs::{Access, AtFlags, CWD};
use storage::raw::RawDevice;
use storage::{FileSystem, drive};

use crate::actors::{Actors, names_differ};
use crate::error::BenchError;
use crate::plan::{ActorSpec, Blocks, Deletion, Engine, Method, Place, Plan, Work};
use crate::survey::Survey;
use crate::workplace::allow_open_files;

mod deletion;
mod gain;

/// A run that nothing known speaks against.
#[derive(Debug)]
pub struct Checked<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) survey: &'a Survey,
    pub(crate) actors: Actors,
    /// The head of its record, but for the time when it starts.
    pub head: Head,
}

/// Checks whether a plan can be carried out, as far as that is known without changing anything.
///
/// It checks the devices' counters and guards, the actors and their engines, and the deletion's
/// figures and rights. It also checks the remount, outside programs, and the place of a file to be
/// kept.
///
/// # Errors
/// The error with which the run would be refused.
pub fn preflight<'a>(plan: &'a Plan, survey: &'a Survey) -> Result<Checked<'a>, BenchError> {
    let blind = counting::blind(&survey.devices);
    if !plan.blind && !blind.is_empty() {
        let names = blind.into_iter().map(str::to_owned);
        return Err(BenchError::CountersOff(names.collect()));
    }
    let actors = Actors::resolve(plan)?;
    actors.check()?;
    let head = head_of(plan, survey, &actors);
    names_differ(&head.actors)?;
    direct_fits(plan, survey)?;
    blocks_fit(plan)?;
    deletion::check(plan, survey)?;
    if let Some(limit) = plan.writes_at_most() {
        deletion::may_trim(survey)?;
        gain::check(plan, survey, &actors, limit)?;
    }
    match &plan.place {
        Place::Device { path, force } => {
            needs_no_files(plan)?;
            // Given back at once; the run claims it anew.
            RawDevice::claim(path, *force)?;
        }
        Place::Directory(_) => files_fit(plan)?,
    }
    Ok(Checked {
        plan,
        survey,
        actors,
        head,
    })
}

/// Whether a run in a directory may make its files and run its programs.
fn files_fit(plan: &Plan) -> Result<(), BenchError> {
    allow_open_files(plan)?;
    if let Some(program) = plan.program() {
        let asked_by = match plan.event() {
            Some(_) => "--event",
            None => "--delete",
        };
        has_program(&program, asked_by)?;
    }
    Ok(())
}

/// Refuses direct I/O that the file system doesn't do.
pub(crate) fn direct_fits(plan: &Plan, survey: &Survey) -> Result<(), BenchError> {
    let null = plan.engine == Engine::Null;
    let place = names::shown(survey.place.path());
    for actor in &plan.actors {
        let (name, block_bytes) = match &actor.work {
            Work::Blocks(blocks) if blocks.direct => (&actor.name, blocks.block_bytes),
            _ => continue,
        };
        let why = match &survey.direct {
            _ if null && plan.canary_per_s.is_none() => continue,
            Ok(unit) if null || u64::from(block_bytes).is_multiple_of(*unit) => continue,
            Ok(unit) => format!(
                "block-size {block_bytes} of {name}: direct I/O on {place} takes multiples of {unit} \
                 bytes; give one, or let it go through the page cache (buffered=true)",
            ),
            Err(why) => format!(
                "{place}: no direct I/O on this file system ({why}), and {name} asks for it; add \
                 --set buffered=true to go through the page cache, or give a directory on a drive",
            ),
        };
        return Err(BenchError::Plan(why));
    }
    Ok(())
}

/// Whether each actor's blocks fit into the file that it works on.
fn blocks_fit(plan: &Plan) -> Result<(), BenchError> {
    for actor in &plan.actors {
        let Work::Blocks(Blocks { block_bytes, .. }) = &actor.work else {
            continue;
        };
        let (file, size_bytes) = if actor.work.shares_file() {
            ("the foreground's file", plan.file.size_bytes)
        } else if let Some(size_bytes) = actor.work.append_bytes() {
            ("its file", size_bytes)
        } else {
            continue;
        };
        if u64::from(*block_bytes) > size_bytes {
            return Err(BenchError::Plan(format!(
                "{}: blocks of {} are larger than {file}, {}: give a smaller block size or a \
                 larger file",
                actor.name,
                record::units::bytes((*block_bytes).into()),
                record::units::bytes(size_bytes),
            )));
        }
    }
    Ok(())
}

/// A raw device has no files, so nothing that makes some runs on it.
fn needs_no_files(plan: &Plan) -> Result<(), BenchError> {
    let of_files = |actor: &&ActorSpec| {
        actor.work.append_bytes().is_some() || matches!(actor.work, Work::Task(_))
    };
    if let Some(actor) = plan.actors.iter().find(of_files) {
        return Err(BenchError::Plan(format!(
            "{}: it makes files, and a raw device has none: leave it out, or give a directory",
            actor.name
        )));
    }
    Ok(())
}

/// Finds a program as execvp(3) does. `asked_by` is the option that needs it.
fn has_program(program: &str, asked_by: &str) -> Result<(), BenchError> {
    let runs = |path: &Path| {
        path.is_file() && rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
    };
    let found = if program.contains('/') {
        runs(Path::new(program))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        std::env::split_paths(&path).any(|directory| runs(&directory.join(program)))
    };
    if found {
        return Ok(());
    }
    Err(BenchError::Plan(format!(
        "{asked_by}: there is no program `{program}` that may be run; install it, or give its \
         full path"
    )))
}

/// The head of a run's record, but for the time when it starts.
fn head_of(plan: &Plan, survey: &Survey, actors: &Actors) -> Head {
    let own = actors.specs.iter().flat_map(ActorSpec::series);
    Head {
        schema: RUN_SCHEMA.into(),
        run: plan.run.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: 0.0,
        host: linux::host::describe(),
        target: Target {
            discards_at_most: at_most(&survey.target, plan.deletion.as_ref()),
            ..survey.target.clone()
        },
        scenario: serde_json::to_value(plan).unwrap_or_default(),
        interval_ms: plan.phases.interval().as_secs_f64() * 1e3,
        actors: own.collect(),
        devices: survey.devices.iter().map(counted).collect(),
    }
}

/// A device with what its drive counts now.
fn counted(device: &DeviceInfo) -> DeviceInfo {
    DeviceInfo {
        life: drive::life(&SysRoot::host(), device),
        ..device.clone()
    }
}

/// Returns the most that the file system discards for what the run frees; `None`: not known.
///
/// With each extent that a commit frees, ext4 discards once more what is free behind it. So a
/// deletion by pieces has no such bound.
fn at_most(target: &Target, deletion: Option<&Deletion>) -> Option<DiscardsAtMost> {
    let most = target.discards_at_most?;
    let Some(deletion) = deletion.filter(|_| FileSystem::named(target).is_ext()) else {
        return Some(most);
    };
    let is_whole = matches!(deletion.method, Method::Unlink(_)) && deletion.extent_bytes.is_none();
    is_whole.then(|| DiscardsAtMost {
        more_bytes: most.more_bytes.saturating_mul(deletion.files.into()),
        ..most
    })
}

/// The time at which a clock was at 0, in seconds since 1970.
pub(crate) fn started_unix_s(clock: Clock) -> f64 {
    let since_zero = Duration::from_nanos(clock.now().0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.saturating_sub(since_zero).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use record::units::{GIB, MIB};

    use super::*;
    use crate::plan::{Truncate, Unlink};

    #[test]
    fn ext4_has_no_bound_for_what_is_freed_by_pieces() {
        let on = |fs: &str| Target {
            fs: Some(fs.to_owned()),
            discards_at_most: FileSystem::of(fs).discards_at_most(),
            ..Target::default()
        };
        let of = |method: Method, files: u32| Deletion {
            method,
            size_bytes: GIB,
            files,
            extent_bytes: None,
            commit: true,
        };
        let pieces = || -> Method {
            Truncate {
                chunk_bytes: 16 * MIB,
                sleep: Duration::ZERO,
                fsync: true,
            }
            .into()
        };
        let more = |fs: &str, deletion: &Deletion| {
            let most = at_most(&on(fs), Some(deletion));
            most.map(|most| most.more_bytes / MIB)
        };
        let whole = |files: u32| of(Unlink { parallel: 1 }.into(), files);
        assert_eq!(more("ext4", &whole(1)), Some(128));
        assert_eq!(more("ext4", &whole(64)), Some(64 * 128));
        assert_eq!(more("ext4", &of(pieces(), 1)), None);
        let fragmented = Deletion {
            extent_bytes: Some(MIB),
            ..whole(1)
        };
        assert_eq!(more("ext4", &fragmented), None);
        // XFS discards what is freed alone.
        assert_eq!(more("xfs", &of(pieces(), 1)), Some(64));
        assert!(at_most(&on("ext4"), None).is_some());
    }
}
