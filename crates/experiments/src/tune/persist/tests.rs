use linux::mounts;
use record::DiscardSetting;

use super::*;
use crate::tune::candidates::Range;

/// A file system without discard, on a drive that this machine hasn't.
fn target(drive: &str, now_bytes: u64, hw_bytes: u64) -> Target {
    let line = b"1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n";
    Target {
        directory: "/data".into(),
        mount: mounts::parse(line).remove(0),
        drives: vec![drive.to_owned()],
        limits_bytes: vec![now_bytes],
        irreversible: Vec::new(),
        range: Range {
            now_bytes,
            hw_bytes,
            granularity_bytes: 512,
        },
        setting: DiscardSetting::Off,
    }
}

#[test]
fn a_limit_that_a_drive_starts_with_has_no_rule() {
    let etc = tempfile::tempdir().unwrap();
    let keep = |drive: &str, bytes: u64| {
        let target = target(drive, bytes, 2 << 40);
        keep_limit(&target, None, etc.path()).unwrap()
    };
    assert_eq!(keep("nosuch0", 2 << 40), None);
    assert!(fs::read_dir(etc.path()).unwrap().next().is_none());

    let written = keep("nosuch0", 8 << 20).unwrap();
    assert!(matches!(written, Rule::Written { by_name, .. } if by_name == ["nosuch0"]));
    keep("nosuch1", 4 << 20).unwrap();
    // Another drive's rule is no reason to cut this one to what a rule can say.
    assert_eq!(keep("nosuch2", 2 << 40), None);
    // Its own is, to take that one away.
    let removed = Rule::Removed(rule_path(etc.path()));
    assert_eq!(keep("nosuch0", 2 << 40), Some(removed));
    let rules = fs::read_to_string(rule_path(etc.path())).unwrap();
    assert!(
        rules.contains("nosuch1") && !rules.contains("nosuch0") && !rules.contains("nosuch2"),
        "{rules}"
    );
    assert_eq!(keep("nosuch0", 2 << 40), None);
}

#[test]
fn rules_that_are_written_at_once_are_all_there() {
    let etc = tempfile::tempdir().unwrap();
    let path = rule_path(etc.path());
    let drives: Vec<Identity> = (0..8).map(|i| Identity::Name(format!("sd{i}"))).collect();
    std::thread::scope(|scope| {
        let path = &path;
        for drive in drives.chunks(1) {
            scope.spawn(move || write_rule(drive, 1 << 20, path).unwrap());
        }
    });
    let rules = fs::read_to_string(&path).unwrap();
    for i in 0..8 {
        assert!(rules.contains(&format!("KERNEL==\"sd{i}\"")), "{rules}");
    }
}

#[test]
fn rules_that_cannot_be_read_are_reported_as_such() {
    let etc = tempfile::tempdir().unwrap();
    let path = rule_path(etc.path());
    fs::create_dir_all(&path).unwrap();
    let target = target("nosuch0", 8 << 20, 2 << 40);
    let error = keep_limit(&target, None, etc.path()).unwrap_err();
    let begins = format!("{}: can't be read: ", shown(&path));
    assert!(
        error.is_usage() && error.to_string().starts_with(&begins),
        "{error}"
    );
}

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
