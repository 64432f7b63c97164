//! Whose waits are asked about.

use std::path::{Path, PathBuf};

use diagnose::why::Subject;
use linux::tasks;

use crate::commands::why::args::WhyArgs;
use crate::exit::{Error, usage};

/// The subject; `None` for a command that is to be started.
pub(super) fn of(args: &WhyArgs) -> Result<Option<Subject>, Error> {
    if args.all {
        return Ok(Some(Subject::All));
    }
    if let Some(name) = &args.service {
        return group(name).map(|directory| Some(Subject::Group(directory)));
    }
    let Some(pid) = args.pid else {
        return Ok(None);
    };
    match tasks::threads(pid).is_empty() {
        true => Err(usage(format!(
            "there is no process {pid}; `ps` lists those that there are"
        ))),
        false => Ok(Some(Subject::Process(pid))),
    }
}

/// Whether the subject ends by itself.
pub(super) fn ends(subject: &Subject) -> bool {
    !matches!(subject, Subject::All | Subject::Group(_))
}

/// Whether it is still there.
pub(super) fn is_there(subject: &Subject) -> bool {
    match subject {
        Subject::Process(pid) | Subject::Family(pid) => !tasks::threads(*pid).is_empty(),
        Subject::All | Subject::Group(_) => true,
    }
}

/// The directory of a control group.
fn group(name: &str) -> Result<PathBuf, Error> {
    let mut all = linux::cgroup::named(name).into_iter();
    all.next().ok_or_else(|| {
        let help = match Path::new("/run/systemd/system").is_dir() {
            true => "`systemctl list-units` lists the names",
            false => {
                "systemd does not run here, so units have no groups; name a group's path, or use \
                 --pid"
            }
        };
        usage(format!(
            "there is no control group {name:?} below /sys/fs/cgroup; {help}"
        ))
    })
}
