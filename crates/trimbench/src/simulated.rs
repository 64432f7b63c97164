//! A run on a drive of the laboratory: into its foreground's cgroup, and into
//! the record that it is one.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ::lab::{Info, Lab};
use bench::{Survey, Warning};
use record::{DeviceKind, Slower};

use crate::card;
use crate::commands::lab::near::near;
use crate::exit::{Error, usage};

/// The variable that names another laboratory than the machine's own: for tests, and for users who
/// want a separate one.
const ELSEWHERE: &str = "TRIMBENCH_LAB_DIR";

/// The laboratory.
pub(crate) fn here() -> Lab {
    std::env::var_os(ELSEWHERE)
        .filter(|dir| !dir.is_empty())
        .map_or_else(Lab::system, Lab::at)
}

/// Returns the survey, with a note where a device is a simulated drive. Unless nothing is to
/// be done (`dry`), the foreground will join the drive's cgroup.
///
/// The loop driver sends the requests of a blkio cgroup one after the other if one of them is a
/// discard. So reads in the discards' own cgroup wait for the whole discard, whatever the drive
/// does. In a cgroup of its own the foreground waits only for the drive.
///
/// With version 1 only the foreground's threads enter it. Discards of this process (a raw device,
/// fstrim, btrfs with discard=sync when we commit) stay outside. Version 2 knows only processes, so
/// this one enters as a whole. It does so before it starts a thread or opens a file, because the
/// page cache remembers which cgroup made it dirty.
pub(crate) fn enter_cgroup(mut survey: Survey, dry: bool) -> Survey {
    let lab = here();
    let devices = survey.devices.iter_mut();
    let loops = devices.filter(|device| device.leaf && device.kind == DeviceKind::Loop);
    let mut joined = false;
    let mut notes = Vec::new();
    let mut fullest: Option<(u64, String)> = None;
    for device in loops {
        match lab.of_device(&Path::new("/dev").join(&device.name)) {
            Ok(None) => {}
            Ok(Some(info)) => {
                device.model = Some(model(&info));
                device.slower = slower(&info);
                device.card = card::by_hand(&info).into_iter().collect();
                if let Some(left) = lab.left(&info.spec)
                    && fullest.as_ref().is_none_or(|(least, _)| left < *least)
                {
                    fullest = Some((left, full(&info, left)));
                }
                let info = measured(&lab, info, dry);
                let mut note = about(&device.name, &info);
                // Of several drives one's will do: what counts is not to be in the root's.
                if !dry && !joined {
                    joined = true;
                    let (cgroup, text) = join(&lab, &info);
                    survey.foreground_cgroup = cgroup;
                    note += &text;
                }
                notes.push(note);
            }
            Err(error) => notes.push(format!(
                "whether {} is a simulated drive (trimbench lab) is unknown: {error}; run as \
                 root. If it is one, reads waited for whole discards whatever the drive says",
                device.name
            )),
        }
    }
    if let Some((left, why)) = fullest {
        let (left, why) = spread(&survey, left, why);
        survey.limit_space(left, why);
    }
    let notes = notes.into_iter().map(Warning::Simulated);
    survey.warnings.extend(notes);
    survey
}

/// Returns the bytes that all drives of a stripe can store, if each can store `left` more.
fn spread(survey: &Survey, left: u64, why: String) -> (u64, String) {
    let here = linux::SysRoot::host();
    let Some(drives) = storage::counter::over(&here, &survey.target, &survey.devices) else {
        return (left, why);
    };
    let copies = storage::counter::mean_copies(&survey.devices);
    let all = (left as f64 * f64::from(drives) / copies) as u64;
    let leaves = record::units::bytes(all);
    let more = format!("; data are striped over {drives} drives, which leaves {leaves}");
    (all, why + &more)
}

/// A drive with less room than this, in bytes, gets no more work: a write that fails aborts the
/// journal of its file system.
const LEAST_LEFT: u64 = 4 << 20;

/// How much a drive can still store.
fn full(info: &Info, left: u64) -> String {
    let (name, left) = (&info.spec.name, record::units::bytes(left));
    format!(
        "the drive {name} of `trimbench lab` can store {left} more; `lab up --set store-limit=SIZE` sets \
         how much it can store"
    )
}

/// Refuses paths on drives of the laboratory that can store no more.
pub(crate) fn refuse_full(paths: &[PathBuf]) -> Result<(), Error> {
    let lab = here();
    let full = drives_of(&lab, paths).into_iter().find_map(|info| {
        let left = lab.left(&info.spec)?;
        (left < LEAST_LEFT).then(|| full(&info, left))
    });
    match full {
        Some(why) => Err(usage(format!(
            "{why}. Nothing was begun, for a write that fails aborts the file system's journal"
        ))),
        None => Ok(()),
    }
}

/// The drives of the laboratory that paths are on. Only root sees drives.
pub(crate) fn drives_of(lab: &Lab, paths: &[PathBuf]) -> Vec<Info> {
    let device = |path: &Path| path.symlink_metadata().map(|found| found.dev()).ok();
    let theirs: Vec<u64> = paths.iter().filter_map(|path| device(path)).collect();
    let mut drives = lab.list().unwrap_or_default();
    drives.retain(|info| {
        let own = info.mounts.iter().filter_map(|mount| device(mount));
        own.into_iter().any(|device| theirs.contains(&device))
    });
    drives
}

/// Returns the cgroup of a drive's foreground, if one of these paths is on a drive of the
/// laboratory and this process may move threads there. A deletion reads from that cgroup to measure
/// the wait of the foreground.
pub(crate) fn group_beside(paths: &[PathBuf]) -> Option<PathBuf> {
    let lab = here();
    // Only root can put threads there.
    group_of(&lab, drives_of(&lab, paths).first()?)
}

/// As [`group_beside`], for a drive of the laboratory itself.
pub(crate) fn group_of_device(device: &Path) -> Option<PathBuf> {
    let lab = here();
    group_of(&lab, &lab.of_device(device).ok().flatten()?)
}

fn group_of(lab: &Lab, info: &Info) -> Option<PathBuf> {
    let group = lab.foreground_cgroup(&info.spec.name).ok()?;
    group.takes_threads().then(|| group.dir().to_owned())
}

/// The drive with how near it comes to its card now: that depends on what else the machine does.
fn measured(lab: &Lab, mut info: Info, dry: bool) -> Info {
    if !dry && let Ok(Some(trip)) = lab.measure_trip(&info.spec.name) {
        info.trip = Some(trip);
    }
    info
}

/// The text in the place of a maker's name of the drive.
fn model(info: &Info) -> String {
    format!("simulated {}", profile(info))
}

/// How much slower it is than the drive it stands for.
fn slower(info: &Info) -> Option<Slower> {
    let times = info.spec.slower;
    (times != 1.0).then_some(Slower {
        times,
        converted: false,
    })
}

/// The name of the drive that it behaves like.
pub(crate) fn profile(info: &Info) -> String {
    let card = info.spec.card();
    let mut text = card.map_or_else(|_| "?".to_owned(), |card| card.name().to_owned());
    let slower = info.spec.slower;
    if slower < 1.0 {
        // 1/3 isn't exact, and nobody asks for 3.0000000000000004.
        let faster = (1e6 / slower).round() / 1e6;
        text += &format!(", {faster} times faster");
    } else if slower != 1.0 {
        text += &format!(", {slower} times slower");
    }
    text
}

fn about(device: &str, info: &Info) -> String {
    let (name, profile) = (&info.spec.name, profile(info));
    let mut text = format!(
        "{device} is no drive but a simulation of one, {name} of `trimbench lab`: {profile}"
    );
    let changed = card::changed(info);
    if !changed.is_empty() {
        text += &format!(". Figures set by hand: {}", changed.join(", "));
    }
    let near = near(info);
    if !near.is_empty() {
        text += &format!(". Its {}", near.join("; "));
    }
    text
}

/// Puts this process into a drive's cgroup, or returns the cgroup if the foreground's threads can
/// enter it by themselves. The text describes the result.
fn join(lab: &Lab, info: &Info) -> (Option<PathBuf>, String) {
    let joined = lab.foreground_cgroup(&info.spec.name).and_then(|group| {
        if group.takes_threads() {
            return Ok(Some(group.dir().to_owned()));
        }
        group.enter().map(|()| None)
    });
    let cgroup = match joined {
        Ok(cgroup) => cgroup,
        Err(error) => {
            let text = format!(
                ". The foreground is in no cgroup of its own ({error}), so its reads wait for \
                 whole discards whatever the drive says"
            );
            return (None, text);
        }
    };
    let mut text = ". The foreground ran in the drive's cgroup".to_owned();
    let card = info.spec.card().ok();
    let shares = card.is_some_and(|card| {
        let discard = card.figures().discard.as_ref();
        discard.is_some_and(|discard| discard.phi() < 1.0)
    });
    if cgroup.is_none() && shares {
        text += ", and with cgroups of version 2 so did the deletion: for discards that this \
                 process sent itself (a raw device, fstrim, btrfs with discard=sync) reads wait \
                 whatever φ is";
    }
    (cgroup, text)
}
