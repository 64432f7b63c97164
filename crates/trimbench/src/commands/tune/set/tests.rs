use ::tune::Range;
use clap::Parser;
use record::DiscardSetting;

use super::*;
use crate::cli::{Cli, Command};

/// A file system without discard, on a drive that this machine hasn't.
fn ground(drive: &str, now_bytes: u64, hw_bytes: u64) -> Ground {
    let line = b"1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n";
    Ground {
        directory: "/data".into(),
        mount: mounts::parse(line).remove(0),
        drives: vec![drive.to_owned()],
        limits_bytes: vec![now_bytes],
        alike: true,
        irreversible: Vec::new(),
        range: Range {
            now_bytes,
            hw_bytes,
            granularity_bytes: 512,
        },
        setting: DiscardSetting::Off,
    }
}

fn args(more: &[&str]) -> Box<TuneArgs> {
    let words = ["trimbench", "tune", "/data"];
    let parsed = Cli::try_parse_from(words.iter().chain(more).copied());
    match parsed.unwrap().command {
        Command::Tune(args) => args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_limit_that_a_drive_starts_with_has_no_rule() {
    let etc = tempfile::tempdir().unwrap();
    let keep = |drive: &str, bytes: u64| {
        let ground = ground(drive, bytes, 2 << 40);
        keep_limit(&ground, None, etc.path()).unwrap()
    };
    assert_eq!(keep("nosuch0", 2 << 40), None);
    assert!(fs::read_dir(etc.path()).unwrap().next().is_none());

    assert!(keep("nosuch0", 8 << 20).unwrap().starts_with("Written"));
    keep("nosuch1", 4 << 20).unwrap();
    // Another drive's rule is no reason to cut this one to what a rule can say.
    assert_eq!(keep("nosuch2", 2 << 40), None);
    // Its own is, to take that one away.
    let told = keep("nosuch0", 2 << 40).unwrap();
    assert!(told.contains("what it said of nosuch0"), "{told}");
    let rules = fs::read_to_string(persist::rule_path(etc.path())).unwrap();
    assert!(
        rules.contains("nosuch1") && !rules.contains("nosuch0") && !rules.contains("nosuch2"),
        "{rules}"
    );
    assert_eq!(keep("nosuch0", 2 << 40), None);
}

#[test]
fn rules_that_are_written_at_once_are_all_there() {
    let etc = tempfile::tempdir().unwrap();
    let path = persist::rule_path(etc.path());
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
fn what_is_trimmed_later_needs_a_timer_that_persist_installs() {
    let trial = Trial {
        policy: Policy::PacedFstrim,
        limit_bytes: 1 << 30,
    };
    let advice = Advice {
        finding: Finding::PacedFstrim,
        set: Some(trial),
        text: String::new(),
        costs: Vec::new(),
    };
    let said = |setting: DiscardSetting, kept: Option<Trial>, more: &[&str]| {
        let mut ground = ground("nosuch0", 1 << 30, 1 << 30);
        ground.setting = setting;
        let args = args(&[&["--slowdown", "7%"][..], more].concat());
        told(&ground, &advice, kept, &args)
    };
    let timer = "  trimbench fstrim --all --install-timer --slowdown=7%\n  \
                 systemctl enable --now trimbench-fstrim.timer\n";
    let (on, off) = (DiscardSetting::On, DiscardSetting::Off);

    let to_set = said(on, None, &[]);
    let commands = format!("--apply --persist):\n  mount -o remount,nodiscard /data\n{timer}");
    assert!(to_set.ends_with(&commands), "{to_set}");
    let set = said(on, Some(trial), &["--apply"]);
    assert!(set.contains("Set:\n  mount -o"), "{set}");
    let needs = format!("It needs a timer, which --persist installs, or:\n{timer}");
    assert!(set.ends_with(&needs), "{set}");
    let as_was = said(off, Some(trial), &["--apply"]);
    assert_eq!(as_was, format!("\nAll is as it was. {needs}"));

    let persist = ["--apply", "--persist"];
    let set = said(on, Some(trial), &persist);
    assert!(set.ends_with("remount,nodiscard /data\n"), "{set}");
    let as_was = said(off, Some(trial), &persist);
    assert!(as_was.contains("as it should be"), "{as_was}");
}
