//! Whether the gain of a trim of all free space can be measured.

use std::path::Path;

use linux::SysRoot;
use linux::dm::Tables;
use load::{Engine, LoopKind, Work};
use record::Transport;
use record::units::{MIB, bytes};
use storage::FileSystem;
use storage::drive::Drive;
use storage::stack::{LayerKind, Stack};

use crate::actors::Actors;
use crate::error::BenchError;
use crate::plan::Plan;
use crate::survey::Survey;

/// Fewer bytes to write, beside the foreground's file, show nothing.
const LEAST: u64 = 256 * MIB;

/// Refuses what shows no gain: nobody who writes, writes that can't be limited, a storage stack
/// under which another drive counts.
pub(super) fn check(
    plan: &Plan,
    survey: &Survey,
    actors: &Actors,
    limit: u64,
) -> Result<(), BenchError> {
    let refuse = |why: String| Err(BenchError::Plan(why));
    writers(actors)?;
    let file = match plan.needs_file() {
        true => plan.file.size_bytes,
        false => 0,
    };
    if limit < file.saturating_add(LEAST) {
        return refuse(format!(
            "deletion.writes-at-most {} leaves less than {} beside the foreground's file of {}: \
             raise it, or give a smaller foreground.size",
            bytes(limit),
            bytes(LEAST),
            bytes(file)
        ));
    }
    if !FileSystem::named(&survey.target).can_trim() {
        return Err(survey.refuse(
            "this kind of file system can't be trimmed; give a directory on ext4, XFS or btrfs",
        ));
    }
    match elsewhere(survey) {
        Some(why) => Err(survey.refuse(why)),
        None => Ok(()),
    }
}

/// Refuses a foreground without closed-loop writers, and one whose bytes can't be limited.
fn writers(actors: &Actors) -> Result<(), BenchError> {
    let refuse = |why: String| Err(BenchError::Plan(why));
    let mut any = false;
    for spec in &actors.specs {
        let (writes, limited) = match &spec.work {
            Work::Task(_) => (true, false),
            Work::Blocks(blocks) => (
                blocks.op.writes(),
                matches!(spec.arrival, LoopKind::Closed { .. })
                    && !matches!(blocks.engine, Engine::Sync)
                    && !blocks.engine.maps(),
            ),
        };
        any |= writes;
        if writes && !limited {
            return refuse(format!(
                "{}: the bytes that it writes can't be limited, as --delete trim needs it: take \
                 op=write in a closed loop, with the engine io_uring or libaio",
                spec.name
            ));
        }
    }
    match any {
        true => Ok(()),
        false => refuse(
            "--delete trim compares writes before and after it, and no actor writes: add --op write, \
             or take --scenario never-trimmed"
                .to_owned(),
        ),
    }
}

/// Why another drive than that of this machine counts; `None` if this one does.
fn elsewhere(survey: &Survey) -> Option<String> {
    let sys = SysRoot::host();
    let found = storage::describe(Path::new(&survey.target.path)).ok()?;
    let stack = Stack::of(&sys, &found, &Tables::new());
    for layer in &stack.layers {
        let why = match layer.kind {
            LayerKind::Thin | LayerKind::ThinPool | LayerKind::Vdo | LayerKind::Cache => {
                "which puts data where it likes: a trim gives it space back, and shows nothing of \
                 a drive; give a directory on a file system right on the drive"
            }
            LayerKind::Loop => {
                "and the drive below its file is the one that counts; give a directory there"
            }
            _ => continue,
        };
        return Some(format!("{} is a {}, {why}", layer.name, layer.kind.words()));
    }
    let mut leaves = survey.devices.iter().filter(|device| device.leaf);
    leaves.find_map(|device| {
        let whole = device.drive.as_ref().map(|drive| &*drive.name);
        let name = whole.unwrap_or(&device.name);
        let drive = Drive::of(&sys, name, false)?;
        let why = match drive.transport {
            _ if drive.is_virtual() => {
                "a virtual disk, and the host's drive is the one that counts: run this on the host"
            }
            Transport::Memory => "compressed memory, not flash: give a directory on a drive",
            _ if drive.turns() => {
                "a disk that turns, and a trim makes none faster: give a directory on an SSD"
            }
            _ => return None,
        };
        Some(format!("{name} is {why}"))
    })
}
