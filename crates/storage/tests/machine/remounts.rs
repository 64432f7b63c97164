//! Discards off, and on again with everything else as it was.

use linux::SysRoot;
use linux::files;
use linux::mounts::Mount;
use linux::stats::DeviceStats;
use record::DiscardSetting;
use storage::remount::{self, DiscardGuard, RemountError};

use crate::loops::{can, made, run};
use crate::targets::write_file;

const TOOLS: &[&str] = &["losetup", "mount", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];

pub(crate) const CASES: [(&str, &str); 5] = [
    ("ext4", "discard"),
    (
        "ext4",
        "discard,noatime,nosuid,errors=remount-ro,data=journal,commit=17,sync",
    ),
    ("btrfs", "discard,noatime"),
    ("btrfs", "discard=async,compress=zstd:3,commit=17"),
    ("btrfs", "discard=sync,nodev,flushoncommit"),
];

#[test]
fn everything_but_discard_stays_and_all_comes_back() {
    if !can(TOOLS) {
        return;
    }
    for (fs, options) in CASES {
        let mounted = made(fs, options);
        let before = Mount::of(mounted.path()).unwrap();
        let guard = DiscardGuard::off(&before).unwrap();
        let during = Mount::of(mounted.path()).unwrap();
        assert_eq!(during.super_option("discard"), None, "{fs} {options}");
        let without = |mount: &Mount| -> Vec<String> {
            let mut all = mount.options();
            all.retain(|option| !option.starts_with("discard"));
            all
        };
        assert_eq!(without(&during), without(&before));
        guard.restore().unwrap();
        assert_eq!(Mount::of(mounted.path()).unwrap(), before);
        let lock = format!("/run/trimbench/remount-{}", before.device);
        let guard = DiscardGuard::off(&before).unwrap();
        assert!(std::fs::exists(&lock).unwrap(), "{lock}");
        drop(guard);
        assert_eq!(Mount::of(mounted.path()).unwrap(), before);
        assert!(!std::fs::exists(&lock).unwrap(), "{lock} is left");
    }
}

#[test]
fn they_can_be_switched_on_as_well() {
    if !can(TOOLS) {
        return;
    }
    let after = |fs, options, setting| {
        let mounted = made(fs, options);
        let before = Mount::of(mounted.path()).unwrap();
        let guard = DiscardGuard::on(&before).unwrap();
        let during = Mount::of(mounted.path()).unwrap();
        assert_eq!(during.super_option("discard"), setting, "{fs} {options}");
        let error = DiscardGuard::off(&before).unwrap_err();
        assert!(matches!(error, RemountError::Busy { .. }), "{error}");
        guard.restore().unwrap();
        assert_eq!(Mount::of(mounted.path()).unwrap(), before);
        DiscardGuard::on(&before).unwrap().keep();
        let kept = Mount::of(mounted.path()).unwrap();
        assert_eq!(kept.super_option("discard"), setting, "{fs} {options}");
        let error = DiscardGuard::on(&kept).unwrap_err();
        assert!(matches!(error, RemountError::AlreadyOn { .. }), "{error}");
    };
    after("ext4", "nodiscard,noatime", Some(""));
    after("btrfs", "nodiscard", Some("async"));
}

#[test]
fn what_the_superblock_says_counts() {
    if !can(TOOLS) {
        return;
    }
    let mounted = made("ext4", "nodiscard");
    mounted.while_unmounted(|device| _ = run("tune2fs", &["-o", "discard", device]));
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let at = mounted.path().to_str().unwrap();
    let line = text.lines().find(|line| line.contains(at)).unwrap();
    assert!(!line.contains("discard"), "{line}");
    let found = storage::describe(mounted.path()).unwrap();
    assert_eq!(found.target.discard, DiscardSetting::On);
    let before = Mount::of(mounted.path()).unwrap();
    let error = DiscardGuard::on(&before).unwrap_err();
    assert!(matches!(error, RemountError::AlreadyOn { .. }), "{error}");
    let guard = DiscardGuard::off(&before).unwrap();
    let during = storage::describe(mounted.path()).unwrap();
    assert_eq!(during.target.discard, DiscardSetting::Off);
    guard.restore().unwrap();
    assert_eq!(Mount::of(mounted.path()).unwrap(), before);
}

#[test]
fn what_cannot_be_restored_is_told_with_what_to_do() {
    if !can(TOOLS) || !can(&["fsfreeze"]) {
        return;
    }
    let mounted = made("ext4", "discard");
    let path = mounted.path().display().to_string();
    let guard = DiscardGuard::off(&Mount::of(&path).unwrap()).unwrap();
    // The kernel remounts no frozen file system, whoever asks.
    run("fsfreeze", &["-f", &path]);
    let refused = guard.restore();
    run("fsfreeze", &["-u", &path]);
    let text = refused.expect_err("frozen").to_string();
    let remedy = format!("mount -o remount,discard {path}");
    assert!(
        text.contains("still without discard") && text.contains(&remedy),
        "{text}"
    );
    // What is told to help does.
    run("mount", &["-o", "remount,discard", &path]);
    assert_eq!(Mount::of(&path).unwrap().super_option("discard"), Some(""));
}

#[test]
fn no_discards_are_sent_meanwhile() {
    if !can(TOOLS) {
        return;
    }
    let mounted = made("ext4", "discard");
    let path = mounted.path().join("victim");
    write_file(&path, 32 << 20);
    let stats = DeviceStats::open(&SysRoot::host(), mounted.device().name()).unwrap();
    let guard = DiscardGuard::off(&Mount::of(mounted.path()).unwrap()).unwrap();
    let found = storage::describe(mounted.path()).unwrap();
    assert_eq!(found.target.discard, DiscardSetting::Off);
    let earlier = stats.read().unwrap();
    std::fs::remove_file(&path).unwrap();
    files::syncfs(mounted.path()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(stats.read().unwrap().since(&earlier).discard_bytes, 0);
    guard.restore().unwrap();
}

#[test]
fn a_second_one_is_refused() {
    if !can(TOOLS) {
        return;
    }
    let mounted = made("btrfs", "discard=async");
    let before = Mount::of(mounted.path()).unwrap();
    let first = DiscardGuard::off(&before).unwrap();
    let second = DiscardGuard::off(&before).unwrap_err();
    assert!(matches!(second, RemountError::Busy { .. }), "{second}");
    assert_eq!(
        Mount::of(mounted.path()).unwrap().super_option("discard"),
        None
    );
    first.restore().unwrap();
    assert_eq!(Mount::of(mounted.path()).unwrap(), before);
}

#[test]
fn the_option_belongs_to_all_mounts_of_a_file_system() {
    if !can(TOOLS) {
        return;
    }
    let mounted = made("ext4", "discard");
    let part = mounted.path().join("part");
    std::fs::create_dir(&part).unwrap();
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = other.path().to_str().unwrap();
    run("mount", &["--bind", part.to_str().unwrap(), at]);
    let guard = DiscardGuard::off(&Mount::of(mounted.path()).unwrap());
    let second = Mount::of(other.path()).map(|mount| remount::settled(&mount));
    drop(guard.unwrap());
    run("umount", &[at]);
    let refused = second.unwrap().unwrap_err();
    assert!(matches!(refused, RemountError::Busy { .. }), "{refused}");
}

#[test]
fn what_cannot_be_switched_off_is_said() {
    if !can(TOOLS) {
        return;
    }
    let refused = |fs, options| {
        let mounted = made(fs, options);
        let before = Mount::of(mounted.path()).unwrap();
        let refused = DiscardGuard::off(&before);
        assert_eq!(Mount::of(mounted.path()).unwrap(), before);
        refused.unwrap_err()
    };
    // XFS takes the option when it is mounted and ignores it in a remount (so far).
    let error = refused("xfs", "discard");
    assert!(matches!(error, RemountError::Kept { .. }), "{error}");
    assert!(error.to_string().contains("nodiscard"), "{error}");
    let error = refused("ext4", "nodiscard");
    assert!(matches!(error, RemountError::AlreadyOff { .. }), "{error}");
    let error = refused("ext4", "ro,discard");
    assert!(matches!(error, RemountError::ReadOnly { .. }), "{error}");
}

#[test]
fn without_privilege_nothing_changes_and_it_is_said_at_once() {
    if !can(TOOLS) {
        return;
    }
    let mounted = made("ext4", "discard");
    let before = Mount::of(mounted.path()).unwrap();
    let (refused, took) = std::thread::scope(|threads| {
        threads
            .spawn(|| {
                let nobody = rustix::process::Uid::from_raw(65534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
                let began = std::time::Instant::now();
                (DiscardGuard::off(&before).map(drop), began.elapsed())
            })
            .join()
            .unwrap()
    });
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, RemountError::NotPermitted { .. }),
        "{refused}"
    );
    // The watcher would have tried for ten seconds.
    assert!(took.as_secs() < 5, "{took:?}");
    assert_eq!(Mount::of(mounted.path()).unwrap(), before);
}
