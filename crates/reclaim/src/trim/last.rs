//! The last trim of each file system, kept for figures and alerts.
//!
//! A file for each file system lies beside the note of an interrupted trim. It stays until the next
//! trim replaces it. A guard has the same in its status.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use linux::SysRoot;
use linux::sysroot::entries;
use pace::{GoalResult, Kept};
use serde::{Deserialize, Serialize};

use super::survey::identity;

const FORMAT: &str = "trimbench.last-trim/1";

/// The end of the files' names.
const ENDING: &str = ".last";

/// The last trim of a drive that is gone is forgotten after so long.
const FORGOTTEN: Duration = Duration::from_secs(90 * 86_400);

/// The longest file in bytes that is read.
const LONGEST: u64 = 16 << 10;

/// The last trim of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LastTrim {
    /// When it ended, in seconds since 1970.
    pub unix_s: u64,
    /// The bytes that it trimmed, those of an interrupted run included.
    pub bytes: u64,
    /// How long its last run took, in seconds.
    pub seconds: f64,
    /// How many trims in a row missed the goal: 0 if the last one met it. A trim in which the goal
    /// was not tested changes nothing. `None`: it was never tested.
    pub missed_in_a_row: Option<u64>,
}

impl LastTrim {
    /// How long ago it ended.
    fn age(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default()
            .saturating_sub(Duration::from_secs(self.unix_s))
    }

    /// A trim that ends now, after `earlier`. `met`: whether the goal was; `None` if that is not known.
    pub(crate) fn now(
        bytes: u64,
        took: Duration,
        met: Option<bool>,
        earlier: Option<LastTrim>,
    ) -> LastTrim {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let before = earlier.and_then(|last| last.missed_in_a_row);
        LastTrim {
            unix_s: now.map_or(0, |since| since.as_secs()),
            bytes,
            seconds: took.as_secs_f64(),
            missed_in_a_row: match met {
                Some(true) => Some(0),
                Some(false) => Some(before.unwrap_or(0) + 1),
                None => before,
            },
        }
    }
}

/// Whether all parts of a goal that were tested were met; `None` if none was.
pub(crate) fn is_met(goals: &[GoalResult]) -> Option<bool> {
    let has = |kept| goals.iter().any(|goal| goal.kept == kept);
    match has(Kept::Missed) {
        true => Some(false),
        false => has(Kept::Met).then_some(true),
    }
}

/// The content of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    format: String,
    version: String,
    /// The mount point.
    mount: String,
    /// The identity of the device.
    device: String,
    trim: LastTrim,
}

/// Where the last trim of one file system is kept.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    mount: String,
    device: String,
}

impl Place {
    /// Makes the path in `directory`, by the name of the file system's other files.
    pub(super) fn new(directory: &Path, name: &str, mount: &Path, device: &str) -> Place {
        Place {
            path: directory.join(format!("{name}{ENDING}")),
            mount: mount.to_string_lossy().into_owned(),
            device: device.to_owned(),
        }
    }

    /// Replaces the last trim by one that ends now.
    pub(super) fn keep(&self, bytes: u64, took: Duration, met: Option<bool>) -> io::Result<()> {
        let earlier = read(&self.path).map(|kept| kept.trim);
        let text = serde_json::to_string(&Note {
            format: FORMAT.to_owned(),
            version: record::form::VERSION.to_owned(),
            mount: self.mount.clone(),
            device: self.device.clone(),
            trim: LastTrim::now(bytes, took, met, earlier),
        })?;
        linux::files::replace(&self.path, format!("{text}\n").as_bytes(), 0o600)?;
        // Images that were mounted once must not fill the directory.
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        for (path, note) in notes(directory, &SysRoot::host(), false) {
            if note.trim.age() > FORGOTTEN {
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> Option<Note> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    let kept: Note = serde_json::from_str(&text).ok()?;
    (kept.format == FORMAT).then_some(kept)
}

/// Returns the last trim by `fstrim` of each mount point, as far as this user can read them. Those of drives
/// that are gone are left out.
pub fn last_trims(directory: &Path, sys: &SysRoot) -> BTreeMap<String, LastTrim> {
    let mut all: BTreeMap<String, LastTrim> = BTreeMap::new();
    for (_, Note { mount, trim, .. }) in notes(directory, sys, true) {
        // Another file system may have been mounted there before.
        let known = all.entry(mount).or_insert(trim);
        if known.unix_s < trim.unix_s {
            *known = trim;
        }
    }
    all
}

/// The notes of drives that are here, or of those that are not.
fn notes(directory: &Path, sys: &SysRoot, are_here: bool) -> Vec<(PathBuf, Note)> {
    let devices = sys.devices();
    let here: HashSet<String> = devices.iter().map(|name| identity(sys, name)).collect();
    let names = entries(directory).into_iter();
    let paths = names.filter(|name| name.ends_with(ENDING));
    let paths = paths.map(|name| directory.join(name));
    let all = paths.filter_map(|path| Some((read(&path)?, path)));
    let some = all.filter(|(note, _)| here.contains(&note.device) == are_here);
    some.map(|(note, path)| (path, note)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pace::Limit;

    fn sys(devices: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for name in devices {
            let wwid = root.path().join(format!("sys/class/block/{name}/wwid"));
            fs::create_dir_all(wwid.parent().unwrap()).unwrap();
            fs::write(wwid, format!("eui.{name}")).unwrap();
        }
        root
    }

    #[test]
    fn the_last_trim_is_that_of_the_newest_file_system_of_a_mount_whose_drive_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let keep = |name: &str, mount: &str, bytes| {
            let device = format!("wwid eui.{name}");
            let place = Place::new(directory.path(), name, Path::new(mount), &device);
            place.keep(bytes, Duration::from_secs(2), None).unwrap();
            place.path
        };
        let old = keep("sda", "/data", 1);
        keep("sdb", "/data", 2);
        keep("sdc", "/", 3);
        // The clock has seconds, so the old one is made older by hand.
        let text = fs::read_to_string(&old).unwrap();
        let older = text.replace("\"unix_s\":1", "\"unix_s\":");
        fs::write(&old, older).unwrap();
        fs::write(directory.path().join("x.last"), "{}").unwrap();
        let of = |devices: &[&str]| {
            let root = sys(devices);
            let found = last_trims(directory.path(), &SysRoot::at(root.path()));
            let bytes = found.into_iter().map(|(mount, last)| (mount, last.bytes));
            bytes.collect::<Vec<_>>()
        };
        let (root, data) = (("/".to_owned(), 3), |bytes| ("/data".to_owned(), bytes));
        assert_eq!(of(&["sda", "sdb", "sdc"]), [root.clone(), data(2)]);
        assert_eq!(of(&["sda", "sdc"]), [root, data(1)]);
        assert_eq!(of(&["sda"]), [data(1)]);
        // None of these drives is in this machine. The next trim forgets the old one.
        keep("sdd", "/new", 4);
        assert_eq!(of(&["sda"]), []);
        assert_eq!(of(&["sdb", "sdd"]), [data(2), ("/new".to_owned(), 4)]);
    }

    #[test]
    fn missed_goals_count_until_one_is_met() {
        let mut last = None;
        let mut counts = Vec::new();
        for met in [None, Some(false), None, Some(false), Some(true), None] {
            last = Some(LastTrim::now(1, Duration::ZERO, met, last));
            counts.push(last.unwrap().missed_in_a_row);
        }
        let expected = [None, Some(1), Some(1), Some(2), Some(0), Some(0)];
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_goal_is_met_if_no_part_was_missed_and_one_was_tested() {
        let goals = |all: &[Kept]| {
            let result = |kept: &Kept| GoalResult {
                limit: Limit::Slowdown(0.1),
                kept: *kept,
                measured: None,
                witness: None,
                first_missed_s: None,
                worst: None,
            };
            is_met(&all.iter().map(result).collect::<Vec<_>>())
        };
        assert_eq!(goals(&[]), None);
        assert_eq!(goals(&[Kept::NobodyElse, Kept::Unsure]), None);
        assert_eq!(goals(&[Kept::NotMeasured, Kept::Met]), Some(true));
        assert_eq!(goals(&[Kept::Met, Kept::Missed]), Some(false));
    }
}
