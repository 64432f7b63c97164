//! Refuses, before anything is written, what would otherwise be refused only
//! after minutes of writing.

use std::path::Path;

use linux::raw::RawDevice;
use linux::remount::NodiscardGuard;
use load::Clock;
use rustix::fs::{Access, AtFlags, CWD};

use crate::actors;
use crate::error::BenchError;
use crate::kept;
use crate::plan::{Control, Method, Place, Plan};
use crate::survey::Survey;
use crate::workplace::allow_open_files;

/// Checks whether a plan can be carried out as far as that can be told without
/// changing anything: the device's guards, the engine, the remount, the program
/// that deletes, and the place of a file to be kept.
///
/// # Errors
/// What the run would be refused with.
pub fn preflight(plan: &Plan, survey: &Survey) -> Result<(), BenchError> {
    let (engine, _) = actors::resolve_engine(plan.foreground.engine, Clock::start())?;
    for (actor, _) in actors::of(plan, engine) {
        actor.check()?;
    }
    let directory = match &plan.place {
        Place::Device { path, overwrite } => {
            // Given back at once; the run claims it anew.
            RawDevice::claim(path, overwrite)?;
            return Ok(());
        }
        Place::Directory(directory) => directory,
    };
    allow_open_files(plan)?;
    if plan.foreground.keep && !survey.reuses(plan) {
        may_keep(directory)?;
    }
    if let Some(program) = plan.program() {
        has_program(&program)?;
    }
    match (plan.control, &survey.mount) {
        (Some(Control::Nodiscard), Some(mount)) => NodiscardGuard::check(mount).map_err(|e| {
            let instead = match plan.deletion.as_ref().map(|d| &d.method) {
                Some(Method::Unlink { .. }) => {
                    "leave out --remount: a second name is unlinked instead"
                }
                _ => "leave out --control",
            };
            survey.refuse(format!("{e}; {instead}"))
        }),
        _ => Ok(()),
    }
}

fn may_keep(directory: &Path) -> Result<(), BenchError> {
    let path = kept::path(directory);
    if path.symlink_metadata().is_ok() && kept::size(directory).is_none() {
        return Err(BenchError::Place {
            path,
            why: "it isn't a foreground file of yours, so --keep doesn't replace it; move it \
                  away, or leave out --keep"
                .into(),
        });
    }
    Ok(())
}

/// Finds a program as execvp(3) does.
fn has_program(program: &str) -> Result<(), BenchError> {
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
        "--delete-with: there is no program `{program}` that may be run; install it, or give its \
         full path"
    )))
}
