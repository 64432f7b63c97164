//! `trimbench sim sweep` and `merge`.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ::sim::sweep::{Grid, Merger, Shard, resume};
use record::units::names;
use rustix::fs::{FlockOperation, flock};

use super::args::{MergeArgs, SweepArgs};
use super::rows::Table;
use super::{setup, threads};
use crate::console::Stream;
use crate::exit::{Error, Exit, usage};
use crate::signals;

/// Runs a grid, or a shard of it.
pub(super) fn run(args: &SweepArgs) -> Result<Exit, Error> {
    let wrong = |why: String| usage(format!("{}: {why}", names::shown(&args.grid)));
    let text = std::fs::read_to_string(&args.grid)
        .map_err(|error| wrong(format!("can't be read: {error}; give a grid")))?;
    let drives = |name: &str| setup::drives(name).map_err(|error| error.to_string());
    let grid = Grid::parse(&text, drives).map_err(|error| wrong(error.to_string()))?;
    let shard = shard(args)?;
    let path = file_of(&args.output, shard);
    let cells = shard.cells(grid.len());
    if args.dry_run {
        let (all, own, path) = (grid.len(), cells.len(), names::shown(&path));
        Stream::Out.print(&format!(
            "{all} runs, of which shard {shard} has {own}; they would go to {path}\n"
        ));
        return Ok(Exit::Done);
    }
    let (mut file, done) = open(&path, &grid, shard)?;
    let stop = signals::stop_flag()?;
    let left = &cells[done..];
    let total = cells.len();
    let mut failed = None;
    ::sim::in_order(
        left,
        threads(),
        |&cell| grid.line(cell),
        |at, line| {
            // A line is written whole or cut off by the next start.
            if let Err(source) = file.write_all(line.as_bytes()).and_then(|()| file.flush()) {
                failed = Some(source);
                return false;
            }
            progress(done + at + 1, total);
            !stop.load(std::sync::atomic::Ordering::Relaxed)
        },
    );
    if let Some(source) = failed {
        return Err(Error::unwritten(&path)(source));
    }
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        Stream::Err.print("\nStopped; the same command goes on.\n");
        return Ok(Exit::Interrupted);
    }
    file.sync_all().map_err(Error::unwritten(&path))?;
    Stream::Out.print(&format!("{total} runs in {}\n", names::shown(&path)));
    Ok(Exit::Done)
}

fn progress(done: usize, total: usize) {
    let text = format!("{done} of {total} runs");
    if Stream::Err.is_terminal() {
        let end = if done == total { "\n" } else { "" };
        Stream::Err.print(&format!("\r{text}{end}"));
    } else if done.is_multiple_of((total / 10).max(1)) {
        Stream::Err.print(&format!("{text}\n"));
    }
}

/// The shard that the options or the environment name.
fn shard(args: &SweepArgs) -> Result<Shard, Error> {
    let wrong = |why: String| usage(format!("--shard: {why}"));
    let asked = match &args.shard {
        Some(text) if text.contains('/') => {
            return text.parse().map_err(|why: String| wrong(why));
        }
        Some(text) => {
            let count = text.parse().ok();
            let count = count.filter(|count| (1..=1_000_000).contains(count));
            let wrong = || wrong(format!("'{text}': give I/N, or a whole number from 1"));
            Some(count.ok_or_else(wrong)?)
        }
        None => None,
    };
    let number = |name: &str| -> Option<usize> { std::env::var(name).ok()?.trim().parse().ok() };
    let slurm = number("SLURM_ARRAY_TASK_ID").map(|id| {
        let first = number("SLURM_ARRAY_TASK_MIN").unwrap_or(0);
        let index = id.wrapping_sub(first).wrapping_add(1);
        (index, number("SLURM_ARRAY_TASK_COUNT"))
    });
    let job = number("JOB_COMPLETION_INDEX").map(|index| (index + 1, None));
    let Some((index, count)) = slurm.or(job) else {
        return match asked {
            None | Some(1) => Ok(Shard::WHOLE),
            Some(_) => Err(usage(
                "--shard: nothing says which one this is; give --shard I/N, or set \
                 SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX",
            )),
        };
    };
    let count = asked.or(count).ok_or_else(|| {
        usage("the environment names a shard, but not of how many: give --shard N")
    })?;
    Shard::new(index, count).ok_or_else(|| {
        usage(format!(
            "there is no shard {index} of {count}: let the array's tasks count without gaps"
        ))
    })
}

fn file_of(output: &Path, shard: Shard) -> PathBuf {
    match shard.is_whole() {
        true => output.to_path_buf(),
        false => {
            let mut name = output.as_os_str().to_owned();
            name.push(format!(".{}", shard.to_string().replace('/', "-of-")));
            PathBuf::from(name)
        }
    }
}

/// Opens a sweep's file behind its last whole line; returns how many there are. The lock keeps a
/// second process from the same shard, however this one ends.
fn open(path: &Path, grid: &Grid, shard: Shard) -> Result<(File, usize), Error> {
    let opened = Error::unopened(path);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(path).map_err(&opened)?;
    let shown = names::shown(path);
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        usage(format!(
            "{shown}: another process runs this shard; wait for it"
        ))
    })?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(&opened)?;
    let resumed = resume(&text, grid, shard).map_err(|why| {
        usage(format!(
            "{shown}: {why}; give another --output, or remove it"
        ))
    })?;
    file.set_len(resumed.bytes as u64).map_err(&opened)?;
    file.seek(SeekFrom::End(0)).map_err(&opened)?;
    Ok((file, resumed.lines))
}

/// Puts shards together.
pub(super) fn merge(args: &MergeArgs) -> Result<Exit, Error> {
    let is_table = args.output.extension().is_some_and(|it| it == "parquet");
    let table = is_table.then(|| Table::open(&args.output)).transpose()?;
    if let Some(table) = &table {
        args.shards.iter().try_for_each(|path| table.is_not(path))?;
    }
    let mut merger = Merger::new();
    for path in &args.shards {
        let wrong = |why: String| usage(format!("{}: {why}", names::shown(path)));
        let text = std::fs::read_to_string(path)
            .map_err(|error| wrong(format!("can't be read: {error}")))?;
        merger.add(&text).map_err(|why| wrong(why.to_string()))?;
    }
    let text = merger.finish().map_err(|why| usage(why.to_string()))?;
    match table {
        Some(table) => table.write(&text)?,
        None => std::fs::write(&args.output, &text).map_err(Error::unwritten(&args.output))?,
    }
    let runs = text.lines().count();
    let file = names::shown(&args.output);
    Stream::Out.print(&format!("{runs} runs in {file}\n"));
    Ok(Exit::Done)
}
