//! From arguments and what was found to a plan.

use std::time::Duration;

use bench::plan::{
    Arrival, Control, Deletion, Engine, Foreground, Method, Op, Pattern, Place, Plan, Timing,
};
use bench::sizes::{self, Fragments, Sizes, Wanted};
use bench::{BenchError, Survey};
use timeline::units::{self, GIB, MIB};

use crate::cli::{
    ArrivalKind, DeleteHow, DeletionArgs, EngineKind, ForegroundArgs, ForegroundOp,
    ForegroundPattern, RunArgs,
};
use crate::exit::Error;

/// Operations in flight of a closed loop, unless told otherwise.
const DEPTH: u32 = 8;
/// Most operations in flight of an open loop, unless told otherwise.
const OPEN_DEPTH: u32 = 64;
/// What slowrm cuts off at a time.
const TRUNCATE_CHUNK: u64 = 128 * MIB;
/// How long slowrm pauses then.
const TRUNCATE_PAUSE: Duration = Duration::from_millis(100);
/// What mkfs tools discard at a time.
const DISCARD_STEP: u64 = GIB;

/// Where the arguments point to.
pub(crate) fn place(args: &RunArgs) -> Place {
    match &args.device.device {
        Some(path) => Place::Device {
            path: path.clone(),
            overwrite: args.device.overwrite_signature.clone(),
        },
        None => Place::Directory(args.path.clone()),
    }
}

/// The plan, in full.
pub(crate) fn plan(args: &RunArgs, survey: &Survey) -> Result<Plan, Error> {
    refuse_ignored(&args.deletion, args.device.device.is_some())?;
    let deletion = deletion_method(&args.deletion, &survey.place)?;
    let control = control(&args.deletion, deletion.as_ref(), survey)?;
    check_direct(args, survey)?;
    let sizes = choose_sizes(args, survey, deletion.is_some(), control)?;
    let plan = Plan {
        place: survey.place.clone(),
        foreground: foreground(&args.foreground, sizes.foreground_bytes),
        canary_per_s: (args.foreground.canary > 0.0).then_some(args.foreground.canary),
        deletion: deletion.map(|method| Deletion {
            method,
            size_bytes: sizes.deletion_bytes,
            files: args.deletion.files.unwrap_or(1),
            extent_bytes: args.deletion.extent_size,
            commit: !args.deletion.no_sync,
        }),
        control,
        timing: Timing {
            interval: args.phases.interval,
            settle_limit: args.phases.settle,
            baseline: args.phases.baseline,
            recovery: args.phases.recovery,
            drain_limit: args.phases.drain_limit,
        },
    };
    check(&plan)?;
    Ok(plan)
}

/// Refuses options that this way to delete would take and do nothing with.
fn refuse_ignored(args: &DeletionArgs, device: bool) -> Result<(), Error> {
    let program = args.delete_with.is_some();
    let none = args.delete == DeleteHow::None;
    let truncate = args.delete == DeleteHow::Truncate && !program;
    let unlink = args.delete == DeleteHow::Unlink && !program;
    // A raw device is discarded in chunks, too; what it doesn't take clap refuses.
    for (option, given, used, with) in [
        ("--size", args.size.is_some(), !none, "a deletion"),
        ("--files", args.files.is_some(), !none, "a deletion"),
        (
            "--extent-size",
            args.extent_size.is_some(),
            !none,
            "a deletion",
        ),
        ("--no-sync", args.no_sync, !none, "a deletion"),
        (
            "--parallel",
            args.parallel.is_some(),
            unlink,
            "--delete unlink",
        ),
        (
            "--chunk",
            args.chunk.is_some(),
            truncate || (device && !none),
            "--delete truncate",
        ),
        (
            "--sleep",
            args.sleep.is_some(),
            truncate,
            "--delete truncate",
        ),
        ("--fsync", args.fsync, truncate, "--delete truncate"),
    ] {
        if given && !used {
            return Err(Error::Usage(format!(
                "{option} only does something with {with}: leave it out, or change the deletion"
            )));
        }
    }
    Ok(())
}

fn deletion_method(args: &DeletionArgs, place: &Place) -> Result<Option<Method>, Error> {
    if let Place::Device { .. } = place {
        return match (args.delete, &args.delete_with) {
            (DeleteHow::None, _) => Ok(None),
            (DeleteHow::Unlink, None) => Ok(Some(Method::Discard {
                step_bytes: args.chunk.unwrap_or(DISCARD_STEP),
            })),
            _ => Err(Error::Usage(
                "a raw device has no files: --delete and --delete-with don't go with --device \
                 (it is discarded in steps of --chunk)"
                    .into(),
            )),
        };
    }
    if let Some(command) = &args.delete_with {
        return command_line(command).map(|argv| Some(Method::Command { argv }));
    }
    Ok(match args.delete {
        DeleteHow::None => None,
        DeleteHow::Unlink => Some(Method::Unlink {
            parallel: args.parallel.unwrap_or(1),
        }),
        DeleteHow::Truncate => Some(Method::Truncate {
            chunk_bytes: args.chunk.unwrap_or(TRUNCATE_CHUNK),
            sleep: args.sleep.unwrap_or(TRUNCATE_PAUSE),
            fsync: args.fsync,
        }),
    })
}

fn command_line(command: &str) -> Result<Vec<String>, Error> {
    match shlex::split(command) {
        Some(argv) if !argv.is_empty() => Ok(argv),
        Some(_) => Err(Error::Usage(
            "--delete-with: empty; give a program, e.g. 'rm {}'".into(),
        )),
        None => Err(Error::Usage(format!(
            "--delete-with: a quote is not closed in: {command}"
        ))),
    }
}

fn control(
    args: &DeletionArgs,
    method: Option<&Method>,
    survey: &Survey,
) -> Result<Option<Control>, Error> {
    if !args.control {
        return Ok(None);
    }
    // A remount with nodiscard succeeds there and changes nothing (seen on Linux 6.18).
    let keeps_discard = survey.target.fs.as_deref() == Some("xfs");
    match method {
        None => Err(Error::Usage(
            "--control compares deletions, and --delete none asks for none".into(),
        )),
        Some(_) if args.remount && !keeps_discard => Ok(Some(Control::Nodiscard)),
        Some(Method::Unlink { .. }) => Ok(Some(Control::SecondName)),
        Some(_) if args.remount => Err(Error::Usage(
            "XFS keeps discard when it is remounted, so --control --remount can't be had here: \
             use --delete unlink, or make a run of its own on the file system mounted nodiscard"
                .into(),
        )),
        Some(_) => Err(Error::Usage(
            "--control without --remount unlinks second names of the files, and this deletion \
             might cut the files themselves: add --remount, or use --delete unlink"
                .into(),
        )),
    }
}

fn choose_sizes(
    args: &RunArgs,
    survey: &Survey,
    deletes: bool,
    control: Option<Control>,
) -> Result<Sizes, Error> {
    let reused = if args.foreground.reuse {
        survey.kept_foreground
    } else {
        None
    };
    let wanted = args.foreground.foreground_size;
    let reused = reused.filter(|&kept| wanted.is_none_or(|wanted| kept >= wanted));
    let copies = match control {
        Some(Control::Nodiscard) => 2,
        _ => 1,
    };
    let wanted_deletion = if deletes { args.deletion.size } else { Some(0) };
    let chosen = match &survey.place {
        Place::Directory(path) => sizes::choose(
            &survey.space,
            Wanted {
                deletion_bytes: wanted_deletion,
                deletion_copies: copies,
                foreground_bytes: if reused.is_some() { Some(0) } else { wanted },
                fragments: fragments(&args.deletion, survey)?,
            },
        )
        .map_err(|source| BenchError::Space {
            path: path.clone(),
            source,
        })?,
        Place::Device { path, .. } => {
            sizes::choose_on_device(survey.space.size_bytes, wanted_deletion, wanted).map_err(
                |source| BenchError::Place {
                    path: path.clone(),
                    why: source.to_string(),
                },
            )?
        }
    };
    Ok(match reused {
        Some(kept) => Sizes {
            foreground_bytes: wanted.unwrap_or(kept),
            ..chosen
        },
        None => chosen,
    })
}

fn fragments(args: &DeletionArgs, survey: &Survey) -> Result<Option<Fragments>, Error> {
    let Some(extent) = args.extent_size else {
        return Ok(None);
    };
    let unit = survey.space.block_bytes.max(4096);
    if extent == 0 || !extent.is_multiple_of(unit) {
        return Err(Error::Usage(format!(
            "--extent-size {extent}: extents are whole blocks, so give a multiple of {unit} bytes"
        )));
    }
    Ok(Some(Fragments::on(survey, args.files.unwrap_or(1), extent)))
}

fn check_direct(args: &RunArgs, survey: &Survey) -> Result<(), Error> {
    let null = args.foreground.engine == EngineKind::Null;
    if args.foreground.buffered || (null && args.foreground.canary == 0.0) {
        return Ok(());
    }
    let place = survey.place.path().display();
    match &survey.direct {
        Ok(unit) if null || u64::from(args.foreground.block_size).is_multiple_of(*unit) => Ok(()),
        Ok(unit) => Err(Error::Usage(format!(
            "--block-size {}: direct I/O on {place} takes multiples of {unit} bytes; give one, or \
             add --buffered",
            args.foreground.block_size,
        ))),
        Err(why) => Err(Error::Usage(format!(
            "{place}: no direct I/O on this file system ({why}); add --buffered to go through the \
             page cache, or give a directory on a drive"
        ))),
    }
}

fn foreground(args: &ForegroundArgs, size_bytes: u64) -> Foreground {
    Foreground {
        op: match args.op {
            ForegroundOp::Read => Op::Read,
            ForegroundOp::Write => Op::Write,
        },
        pattern: match args.pattern {
            ForegroundPattern::Random => Pattern::Random,
            ForegroundPattern::Sequential => Pattern::Sequential,
        },
        block_bytes: args.block_size,
        arrival: match args.rate {
            Some(rate_per_s) => Arrival::Open {
                rate_per_s,
                poisson: args.arrival == ArrivalKind::Poisson,
                depth: args.depth.unwrap_or(OPEN_DEPTH),
            },
            None => Arrival::Closed {
                depth: args.depth.unwrap_or(DEPTH),
                batch: args.batch,
            },
        },
        engine: match args.engine {
            EngineKind::Auto => Engine::Auto,
            EngineKind::IoUring => Engine::IoUring,
            EngineKind::Sync => Engine::Sync,
            EngineKind::Null => Engine::Null,
        },
        direct: !args.buffered,
        size_bytes,
        keep: args.keep,
        reuse: args.reuse,
        seed: args.seed,
    }
}

/// What no single option is to blame for.
fn check(plan: &Plan) -> Result<(), Error> {
    let foreground = &plan.foreground;
    if let Arrival::Closed { depth, batch } = foreground.arrival
        && batch > depth
    {
        return Err(Error::Usage(format!(
            "--batch {batch} is more than --depth {depth}: raise the depth or lower the batch"
        )));
    }
    if u64::from(foreground.block_bytes) > foreground.size_bytes {
        return Err(Error::Usage(format!(
            "--block-size {} is more than the foreground's {}: raise --foreground-size",
            units::bytes(foreground.block_bytes.into()),
            units::bytes(foreground.size_bytes),
        )));
    }
    if let Some(deletion) = &plan.deletion
        && deletion.file_bytes() == 0
    {
        return Err(Error::Usage(format!(
            "{} in {} files leaves less than a block for each: raise --size or lower --files",
            units::bytes(deletion.size_bytes),
            deletion.files,
        )));
    }
    Ok(())
}
