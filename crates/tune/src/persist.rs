//! What makes a setting outlast a reboot: a udev rule, and the line of fstab that
//! somebody has to change.

use std::path::{Path, PathBuf};

/// The rule's file below the directory of settings: after udev's own rules (60), which tell what a
/// device is.
pub fn rule_path(etc: &Path) -> PathBuf {
    etc.join("udev/rules.d/61-trimbench-discard.rules")
}

/// How a drive is recognised at the next start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// By its model and serial number, as udev knows it (`ID_SERIAL`).
    Serial(String),
    /// By its kernel name alone, which another drive may get.
    Name(String),
}

/// A drive's identity, from udev's own notes of it (`/run/udev/data/bMAJOR:MINOR`).
pub fn identity(name: &str, udev_data: Option<&str>) -> Identity {
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

/// A file of rules: the one there is, without what it says of these drives, and with it
/// said anew. `None` where the one there is isn't ours.
pub fn rules(there_is: Option<&str>, drives: &[Identity], limit_bytes: u64) -> Option<String> {
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
pub fn without(there_is: &str, drives: &[Identity]) -> Option<String> {
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

/// A line of fstab, as it is and as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FstabLine {
    /// As it is.
    pub is: String,
    /// As it should be.
    pub should_be: String,
}

impl FstabLine {
    /// Whether it has an option now, whatever value that has.
    pub fn is_with(&self, option: &str) -> bool {
        let options = options_of(&self.is).unwrap_or_default();
        options.split(',').any(|one| name_of(one) == option)
    }
}

/// The line of a mount point with `discard`, `discard=sync` or `nodiscard`; `None` where fstab
/// has none, or where it says so already.
pub fn fstab_line(fstab: &str, mount_point: &Path, option: &str) -> Option<FstabLine> {
    let is = line_of(fstab, mount_point)?;
    let options = options_of(is)?;
    let mut wanted: Vec<&str> = options
        .split(',')
        .filter(|&one| !["nodiscard", "discard"].contains(&name_of(one)))
        .collect();
    wanted.push(option);
    let wanted = wanted.join(",");
    // The fourth field alone, and the line's own spaces.
    let offset = options.as_ptr() as usize - is.as_ptr() as usize;
    let should_be = format!("{}{wanted}{}", &is[..offset], &is[offset + options.len()..]);
    (should_be != is).then(|| FstabLine {
        is: is.to_owned(),
        should_be,
    })
}

/// Whether fstab shows there what is mounted elsewhere (a bind mount). Options of the file
/// system have no effect on such a line.
pub fn is_bind(fstab: &str, mount_point: &Path) -> bool {
    let options = line_of(fstab, mount_point).and_then(options_of);
    let mut options = options.unwrap_or_default().split(',');
    options.any(|option| option == "bind" || option == "rbind")
}

/// The line of a mount point: the last one, should there be several.
fn line_of<'a>(fstab: &'a str, mount_point: &Path) -> Option<&'a str> {
    fstab.lines().rfind(|line| {
        let entries = linux::fstab::parse(line.as_bytes());
        entries.iter().any(|entry| entry.target == mount_point)
    })
}

/// An option without its value.
fn name_of(option: &str) -> &str {
    option.split_once('=').map_or(option, |(name, _)| name)
}

/// The fourth field of a line.
fn options_of(line: &str) -> Option<&str> {
    line.split_whitespace().nth(3)
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

    #[test]
    fn one_field_of_fstab_changes() {
        let fstab = "# /dev/x /data ext4 discard 0 0\nUUID=1  /data\text4\tdefaults,discard,noatime 0 2\n/dev/y / ext4 defaults 0 1\n";
        let fstab_line = |fstab: &str, at: &str, online| {
            let option = if online { "discard" } else { "nodiscard" };
            fstab_line(fstab, Path::new(at), option)
        };
        let line = fstab_line(fstab, "/data", false).unwrap();
        assert_eq!(
            line.should_be,
            "UUID=1  /data\text4\tdefaults,noatime,nodiscard 0 2"
        );
        assert_eq!(
            fstab_line(fstab, "/data", true).unwrap().should_be,
            "UUID=1  /data\text4\tdefaults,noatime,discard 0 2"
        );
        let root = fstab_line(fstab, "/", true).unwrap();
        assert_eq!(root.should_be, "/dev/y / ext4 defaults,discard 0 1");
        assert_eq!(fstab_line(&root.should_be, "/", true), None);
        assert_eq!(fstab_line(fstab, "/home", true), None);
        assert_eq!(fstab_line("x", "/", true), None);
        let spaced =
            fstab_line("/dev/x /my\\040data xfs discard 0 0\n", "/my data", false).unwrap();
        assert_eq!(spaced.should_be, "/dev/x /my\\040data xfs nodiscard 0 0");
    }

    #[test]
    fn a_line_has_options_with_and_without_values() {
        let fstab = "/dev/x /data btrfs compress=zstd,discard=async 0 0\n";
        let line = fstab_line(fstab, Path::new("/data"), "discard=sync").unwrap();
        assert_eq!(
            line.should_be,
            "/dev/x /data btrfs compress=zstd,discard=sync 0 0"
        );
        assert!(line.is_with("discard") && line.is_with("compress"));
        assert!(!line.is_with("nodiscard"));
        assert_eq!(
            fstab_line(&line.should_be, Path::new("/data"), "discard=sync"),
            None
        );
    }

    #[test]
    fn a_bind_mount_is_told_by_its_line() {
        let fstab = "/dev/x /data ext4 defaults 0 2\n/data/a\\040b /srv none ro,bind 0 0\n\
                     /data /all none rbind\n#/data /data none bind 0 0\n/dev/y /half ext4\n";
        let is = |at: &str| is_bind(fstab, Path::new(at));
        assert!(is("/srv") && is("/all"));
        assert!(!is("/data") && !is("/half") && !is("/none"));
    }
}
