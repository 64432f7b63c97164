//! The text of a udev rule that sets a drive's limit at every start.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use record::units::names::shown;
use record::units::percent_exact;

use crate::Error;

/// How a drive is recognised at the next start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// By its model and serial number, as udev knows it (`ID_SERIAL`).
    Serial(String),
    /// By its kernel name alone, which another drive may get.
    Name(String),
}

/// A drive's identity, from udev's own notes of it (`/run/udev/data/bMAJOR:MINOR`).
pub(super) fn identity(name: &str, udev_data: Option<&str>) -> Identity {
    let serial = udev_data.and_then(|text| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix("E:ID_SERIAL="))
    });
    match serial.filter(|serial| !serial.is_empty() && is_plain(serial)) {
        Some(serial) => Identity::Serial(serial.to_owned()),
        None => Identity::Name(name.to_owned()),
    }
}

/// Whether a text means itself in a udev rule: no quotes, no pattern, no substitution.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:,+/ ".contains(c);
    text.chars().all(plain)
}

/// The first line of a file of ours.
const MARK: &str = "# Written by trimbench tune";

/// Returns the text of the file of rules with those of these drives replaced. `None` if the
/// present file isn't ours.
pub(super) fn rules(
    there_is: Option<&str>,
    drives: &[Identity],
    limit_bytes: u64,
) -> Option<String> {
    let keys: Vec<String> = drives.iter().map(key).collect();
    let mut text = of_others(there_is.unwrap_or_default(), &keys)?;
    for key in &keys {
        text += &format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {key}, \
             ATTR{{queue/discard_max_bytes}}=\"{limit_bytes}\"\n"
        );
    }
    Some(text)
}

/// The file of rules there is, without what it says of these drives: they start as they should
/// by themselves. `None` where it says nothing of them, or isn't ours.
pub(super) fn without(there_is: &str, drives: &[Identity]) -> Option<String> {
    let keys: Vec<String> = drives.iter().map(key).collect();
    let has = rule_lines(there_is).any(|line| is_of(line, &keys));
    has.then(|| of_others(there_is, &keys)).flatten()
}

/// A file of ours with the rules that are there for other drives; `None` where the one there
/// isn't ours.
fn of_others(there_is: &str, keys: &[String]) -> Option<String> {
    if !there_is.is_empty() && !there_is.starts_with(MARK) {
        return None;
    }
    let mut text = format!("{MARK}: the largest discard that suits a drive, in bytes.\n");
    for line in rule_lines(there_is).filter(|line| !is_of(line, keys)) {
        text += line;
        text.push('\n');
    }
    Some(text)
}

/// Its lines but for the comments.
fn rule_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

/// Whether a rule is one of these drives'.
fn is_of(line: &str, keys: &[String]) -> bool {
    keys.iter().any(|key| line.contains(key.as_str()))
}

fn key(drive: &Identity) -> String {
    match drive {
        Identity::Serial(serial) => format!("ENV{{ID_SERIAL}}==\"{serial}\""),
        Identity::Name(name) => format!("KERNEL==\"{name}\""),
    }
}

// The timer that trims what is mounted with nodiscard.

/// The name of the timer's unit.
pub const TIMER: &str = "trimbench-fstrim.timer";

/// The timer that `trimbench fstrim --install-timer` makes. It takes the place of the
/// distribution's timer, so it trims all that is mounted.
#[derive(Debug, Clone)]
pub struct Timer {
    /// The directory of systemd's units.
    units: PathBuf,
    /// The arguments of `trimbench` that install it.
    pub words: [String; 4],
}

impl Timer {
    /// The timer below `etc`, with the goal of a slowdown of so much (0 to 1).
    pub fn new(etc: &std::path::Path, slowdown: f64) -> Timer {
        let slowdown = format!("--slowdown={}", percent_exact(slowdown));
        Timer {
            units: etc.join("systemd/system"),
            words: ["fstrim", "--all", "--install-timer", &slowdown].map(str::to_owned),
        }
    }

    /// Whether its unit is there.
    pub fn is_installed(&self) -> bool {
        self.units.join(TIMER).exists()
    }

    /// Whether systemd starts it.
    pub fn is_enabled(&self) -> bool {
        self.units.join("timers.target.wants").join(TIMER).exists()
    }

    /// Installs it with this program; returns what that printed.
    ///
    /// # Errors
    /// When it could not be installed.
    pub fn install(&self) -> Result<String, Error> {
        let failed = |why: String| Error::Failed(format!("the timer was not installed: {why}"));
        let units = &self.units;
        fs::create_dir_all(units).map_err(|e| failed(format!("{}: {e}", shown(units))))?;
        let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
        let mut command = Command::new(program);
        let mut place = OsString::from("unit-dir=");
        place.push(units);
        command.args(&self.words).arg("--set").arg(place);
        let done = command.output().map_err(|e| failed(e.to_string()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        match done.status.success() {
            true => Ok(text(&done.stdout) + "\n"),
            false => Err(failed(text(&done.stderr))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_other_drives_stay() {
        let sda = identity(
            "sda",
            Some("S:disk/by-id/x\nE:ID_SERIAL=Samsung_SSD_870_EVO_S6\n"),
        );
        assert_eq!(sda, Identity::Serial("Samsung_SSD_870_EVO_S6".into()));
        let one = rules(None, std::slice::from_ref(&sda), 8 << 20).unwrap();
        assert!(one.contains(
            "ENV{ID_SERIAL}==\"Samsung_SSD_870_EVO_S6\", ATTR{queue/discard_max_bytes}=\"8388608\""
        ));
        let sdb = identity("sdb", None);
        assert_eq!(sdb, Identity::Name("sdb".into()));
        let two = rules(Some(&one), &[sdb], 1 << 20).unwrap();
        assert!(
            two.contains("S6") && two.contains("KERNEL==\"sdb\""),
            "{two}"
        );
        let again = rules(Some(&two), &[sda], 2 << 20).unwrap();
        assert!(
            again.contains("2097152") && !again.contains("8388608"),
            "{again}"
        );
        assert_eq!(again.lines().count(), 3);
        assert_eq!(rules(Some("# mine\n"), &[], 1), None);
        // What could break out of its quotes isn't taken.
        let odd = identity("sda", Some("E:ID_SERIAL=a\",RUN+=\"rm"));
        assert_eq!(odd, Identity::Name("sda".into()));
    }

    #[test]
    fn a_drive_is_taken_out_of_the_rules() {
        let [sda, sdb, sdc] = ["sda", "sdb", "sdc"].map(|name| identity(name, None));
        let one = rules(None, std::slice::from_ref(&sda), 8 << 20).unwrap();
        let two = rules(Some(&one), std::slice::from_ref(&sdb), 1 << 20).unwrap();
        let left = without(&two, std::slice::from_ref(&sda)).unwrap();
        assert_eq!(left, rules(None, &[sdb], 1 << 20).unwrap());
        // Nothing is written where nothing has to go.
        assert_eq!(without(&two, &[sdc]), None);
        assert_eq!(without("", std::slice::from_ref(&sda)), None);
        let theirs = "KERNEL==\"sda\", ATTR{queue/discard_max_bytes}=\"1\"\n";
        assert_eq!(without(theirs, &[sda]), None);
    }
}
