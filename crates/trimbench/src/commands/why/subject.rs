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
    const ROOTS: [&str; 3] = [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/systemd",
    ];
    let unit = match name.contains('.') || name.contains('/') {
        true => name.to_owned(),
        false => format!("{name}.service"),
    };
    let inside = name
        .trim_start_matches("/sys/fs/cgroup")
        .trim_start_matches('/');
    let direct = ROOTS.iter().map(|root| Path::new(root).join(inside));
    let units = ROOTS
        .iter()
        .filter_map(|root| find(Path::new(root), &unit, 4));
    let has = |directory: &PathBuf| directory.join("cgroup.procs").is_file();
    let mut all = direct
        .filter(|_| !inside.is_empty())
        .chain(units)
        .filter(has);
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

/// A directory of this name, at most so deep.
fn find(directory: &Path, name: &str, depth: u32) -> Option<PathBuf> {
    let direct = directory.join(name);
    if direct.is_dir() {
        return Some(direct);
    }
    let deeper = depth.checked_sub(1)?;
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .find_map(|entry| find(&entry.path(), name, deeper))
}
