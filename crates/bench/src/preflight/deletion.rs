//! Whether a deletion can be had as it is asked for.

use load::deleter::{BLOCK, Files};
use rustix::thread::CapabilitySet;
use storage::FileSystem;
use storage::remount::DiscardGuard;

use crate::error::BenchError;
use crate::plan::{Control, Deletion, Fstrim, Method, Place, Plan};
use crate::survey::Survey;

pub(super) fn check(plan: &Plan, survey: &Survey) -> Result<(), BenchError> {
    let Some(deletion) = &plan.deletion else {
        return match plan.control {
            Control::Off => Ok(()),
            _ => refuse("--control compares deletions, and none is asked for"),
        };
    };
    let on_device = matches!(plan.place, Place::Device { .. });
    let discards_device = matches!(deletion.method, Method::Discard(_));
    if on_device != discards_device {
        return refuse(if on_device {
            "a raw device has no files to delete: it can only be discarded"
        } else {
            "only a raw device can be discarded: choose another way to delete"
        });
    }
    figures(deletion)?;
    if deletion.method == Fstrim.into() {
        may_trim(survey)?;
    }
    check_control(&deletion.method, plan.control, survey)
}

fn refuse(why: impl Into<String>) -> Result<(), BenchError> {
    Err(BenchError::Plan(why.into()))
}

/// Whether all figures are in range.
fn figures(deletion: &Deletion) -> Result<(), BenchError> {
    let (method, file_bytes) = (&deletion.method, deletion.file_bytes());
    if method.how().has_files && deletion.files == 0 {
        return refuse("the deletion has 0 files: give at least 1");
    }
    if method.event().is_none() && file_bytes == 0 {
        let files = match method {
            Method::Spill(spill) => spill.parallel,
            _ => deletion.files,
        };
        return refuse(format!(
            "{} in {} leaves less than a block of {} for each: raise the size or \
             lower the number of files",
            record::units::bytes(deletion.size_bytes),
            record::units::counted(u64::from(files), "file"),
            record::units::bytes(BLOCK),
        ));
    }
    Ok(method.check(&Files {
        size_bytes: deletion.size_bytes,
        file_bytes,
        ..Files::default()
    })?)
}

/// FITRIM is for root, and needs a device that takes discards.
pub(super) fn may_trim(survey: &Survey) -> Result<(), BenchError> {
    let may = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
    if !may {
        return refuse(
            "trimming a file system (FITRIM) needs the capability CAP_SYS_ADMIN: run as root, or \
             choose another way to delete",
        );
    }
    let top = survey.devices.iter().find(|device| device.level == 0);
    match top {
        Some(device) if device.discard.max_bytes == 0 => Err(survey.refuse(format!(
            "there is nothing to trim with, because {} takes no discards: choose another device \
             or way to delete",
            device.name
        ))),
        _ => Ok(()),
    }
}

fn check_control(method: &Method, control: Control, survey: &Survey) -> Result<(), BenchError> {
    let how = method.how();
    let remounts = FileSystem::named(&survey.target).remount_switches_discard();
    refuse(match control {
        Control::Off => return Ok(()),
        _ if method.event().is_some() => {
            "--control repeats a deletion, and an event happens only once: leave out --control"
        }
        Control::SecondName if how.spares_names => return Ok(()),
        Control::SecondName if how.discards || !how.has_files => {
            "--control unlinks second names of the files, and this deletion has no files that could \
             get one: use --control=remount, or leave it out"
        }
        Control::SecondName => {
            "--control unlinks second names of the files, and this deletion \
             might cut the files themselves: use --control=remount, or --delete unlink"
        }
        Control::Nodiscard if !remounts => {
            "XFS keeps discard when it is remounted, so --control=remount can't be had here: \
             use --delete unlink, or make a run of its own on the file system mounted nodiscard"
        }
        Control::Nodiscard if how.discards => {
            "--control=remount keeps a file system from discarding what is deleted, and this \
             deletion would discard all the same: leave out --control"
        }
        Control::Nodiscard => {
            let off = survey.mount.as_ref().map(DiscardGuard::check_off);
            return off.unwrap_or(Ok(())).map_err(|e| {
                let instead = match how.spares_names {
                    true => "give --control alone: a second name is unlinked instead",
                    false => "leave out --control",
                };
                survey.refuse(format!("{e}; {instead}"))
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::plan::{Lsm, Program, Punch, Purge, Spill, Swap, Unlink, example_deletion};

    fn said(method: impl Into<Method>, size_bytes: u64, files: u32) -> Option<String> {
        let deletion = Deletion {
            size_bytes,
            files,
            ..example_deletion(method)
        };
        figures(&deletion).err().map(|error| {
            assert!(error.is_usage());
            error.to_string()
        })
    }

    #[test]
    fn figures_of_nothing_are_refused() {
        let (second, zero) = (Duration::from_secs(1), Duration::ZERO);
        let lsm = |levels, file_bytes, run_for| Lsm {
            levels,
            file_bytes,
            rate_bytes_per_s: 1 << 20,
            run_for,
        };
        let methods: [Method; 9] = [
            Unlink { parallel: 0 }.into(),
            lsm(4, 1 << 20, zero).into(),
            lsm(4, 0, second).into(),
            lsm(1, 1 << 20, second).into(),
            lsm(4, 1 << 30, second).into(),
            Purge {
                at_once: 0,
                every: zero,
            }
            .into(),
            Spill {
                parallel: 0,
                pause: zero,
                run_for: second,
            }
            .into(),
            Punch {
                from: load::deleter::End::Head,
                chunk_bytes: 1000,
                sleep: zero,
            }
            .into(),
            Program { argv: Vec::new() }.into(),
        ];
        for method in methods {
            assert!(said(method.clone(), 1 << 30, 1).is_some(), "{method:?}");
        }
        assert_eq!(said(lsm(4, 1 << 20, second), 1 << 30, 1), None);
        assert_eq!(said(Swap, 1 << 30, 8), None);
        assert!(said(Swap, 1 << 30, 0).is_some());
        let tiny = said(Unlink { parallel: 1 }, 1000, 1);
        assert!(tiny.is_some_and(|text| text.contains("less than a block")));
    }
}
