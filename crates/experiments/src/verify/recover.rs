//! Going on after a crash: checks what had been forced to the medium.

use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;

use linux::mounts::Mount;
use record::units::names::shown;

use crate::verify::VerifyError;
use crate::verify::block::{self, BLOCK, SECTOR};
use crate::verify::check::{Checker, MOST, read_past_cache};
use crate::verify::place::{Place, Surveyed};
use crate::verify::shared::Shared;
use crate::verify::slot::{Content, Slot};
use crate::verify::state::SlotState;
use linux::files::Aligned;

/// Generations that a crash may have used up since the last checkpoint.
const SPARE: u32 = 1 << 20;

/// Checks a slot against its state, and expects from now on what it holds. A frozen slot must be
/// as it was. Of another one each sector must be one of ours of this place, or empty.
pub(crate) fn recover(shared: &Shared<'_>, slot: &mut Slot, state: &SlotState) {
    let mut checker = Checker::new(shared);
    let files = matches!(shared.place, Place::Directory { .. });
    let blocks = state.blocks();
    let on_disk = match slot.file.metadata() {
        Ok(metadata) if files => metadata.len(),
        _ => Slot::offset(blocks),
    };
    slot.go_on(state.next);
    slot.frozen = true;
    if state.frozen {
        slot.map = state.map();
        slot.length = state.length;
        if on_disk < Slot::offset(slot.length) {
            checker.short(slot, on_disk);
            slot.length = (on_disk / BLOCK as u64) as usize;
        }
    } else {
        slot.map = vec![Content::Unknown.into(); blocks];
        slot.length = blocks.min((on_disk / BLOCK as u64) as usize);
    }
    for start in (0..slot.length).step_by(MOST) {
        if shared.is_over() {
            return;
        }
        checker.check(slot, start..slot.length.min(start + MOST));
    }
    if !state.frozen {
        let highest = adopt(slot, files);
        slot.go_on(state.next.max(highest) + SPARE);
    }
    slot.frozen = false;
}

/// Expects what the slot holds. Returns the highest generation in it.
fn adopt(slot: &mut Slot, files: bool) -> u32 {
    let mut buffer = Aligned::new(MOST * BLOCK);
    let mut highest = 0;
    for start in (0..slot.length).step_by(MOST) {
        let part: Range<usize> = start..slot.length.min(start + MOST);
        let bytes = buffer.get(part.len() * BLOCK);
        if read_past_cache(&slot.file, bytes, slot.base + Slot::offset(start)).is_err() {
            continue;
        }
        for (block, data) in part.zip(bytes.chunks_exact(BLOCK)) {
            let content = content(data, slot.number, Slot::offset(block), files);
            if let Content::Data(generation) = content {
                highest = highest.max(generation);
            }
            slot.set(block..block + 1, content);
        }
    }
    let end = slot.map.len();
    let rest = if files {
        Content::Zeros
    } else {
        Content::Unknown
    };
    slot.set(slot.length..end, rest);
    highest
}

/// The content of a block, if all of it was written at once.
fn content(data: &[u8], file: u32, offset: u64, files: bool) -> Content {
    if files && block::is_zero(data) {
        return Content::Zeros;
    }
    let Some(first) = block::identify(&data[..SECTOR]) else {
        return Content::Unknown;
    };
    let mut sectors = data.chunks_exact(SECTOR).enumerate();
    let whole = (first.file, first.offset) == (file, offset)
        && sectors.all(|(index, sector)| block::is(sector, &first.after((index * SECTOR) as u64)));
    match whole {
        true => Content::Data(first.generation),
        false => Content::Unknown,
    }
}

// Unmounting and mounting a file system, so that nothing of it is left in memory.

/// A mount, and how to make it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    source: String,
    fs: String,
    options: String,
    mount_point: PathBuf,
}

/// The mount of a place, or why it can't be made anew.
pub(crate) fn target(surveyed: &Surveyed) -> Result<Target, String> {
    let Some(mount) = &surveyed.mount else {
        return Err("it is a raw device".to_owned());
    };
    if !rustix::process::geteuid().is_root() {
        return Err("that needs root".to_owned());
    }
    if !mount.source.starts_with("/dev/") {
        return Err(format!("{} is no device", mount.source));
    }
    Ok(of(mount))
}

fn of(mount: &Mount) -> Target {
    let mut options = mount.mount_options.clone();
    options.extend(mount.super_options.iter().cloned());
    options.dedup();
    Target {
        source: mount.source.clone(),
        fs: mount.fs.clone(),
        options: options.join(","),
        mount_point: mount.mount_point.clone(),
    }
}

/// Unmounts and mounts. Returns why not, where it is still mounted as it was.
///
/// # Errors
/// Where it is unmounted and can't be mounted again.
pub(crate) fn remount(target: &Target) -> Result<Result<(), String>, VerifyError> {
    let mut unmount = Command::new("umount");
    unmount.arg(&target.mount_point);
    if let Err(why) = run(unmount) {
        return Ok(Err(why));
    }
    let mut mount = Command::new("mount");
    mount
        .args(["-t", &target.fs, "-o", &target.options, &target.source])
        .arg(&target.mount_point);
    run(mount).map(Ok).map_err(|why| {
        VerifyError::Failed(format!(
            "{} is unmounted and can't be mounted again: {why}; mount it with: mount -t {} -o {} \
             {} {}",
            shown(&target.mount_point),
            target.fs,
            target.options,
            target.source,
            shown(&target.mount_point)
        ))
    })
}

fn run(mut command: Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::block::Identity;

    #[test]
    fn only_a_block_written_at_once_is_expected_again() {
        let own = Identity {
            volume: 1,
            file: 4,
            generation: 6,
            offset: 8192,
        };
        let mut data = [0; BLOCK];
        assert_eq!(content(&data, 4, 8192, true), Content::Zeros);
        assert_eq!(content(&data, 4, 8192, false), Content::Unknown);
        block::fill(&mut data, own);
        assert_eq!(content(&data, 4, 8192, true), Content::Data(6));
        assert_eq!(content(&data, 4, 4096, true), Content::Unknown);
        let torn = Identity {
            generation: 7,
            ..own.after(2048)
        };
        block::fill(&mut data[2048..], torn);
        assert_eq!(content(&data, 4, 8192, true), Content::Unknown);
    }
}
