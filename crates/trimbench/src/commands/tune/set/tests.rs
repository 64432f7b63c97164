use clap::Parser;
use experiments::tune::Range;
use linux::mounts;
use record::DiscardSetting;
use record::units::settings::Section;

use super::*;
use crate::cli::{Cli, Command};
use crate::commands::tune::args::TuneArgs;
use crate::commands::tune::role;

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

fn args(more: &[&str]) -> Box<TuneArgs> {
    let words = ["trimbench", "tune", "/data"];
    let parsed = Cli::try_parse_from(words.iter().chain(more).copied());
    match parsed.unwrap().command {
        Command::Tune(args) => args,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_advice_is_printed_as_commands_a_rule_and_a_role() {
    let trial = Trial {
        policy: Policy::PacedFstrim,
        limit_bytes: 8 << 20,
    };
    let advice = Advice {
        finding: Finding::PacedFstrim,
        set: Some(trial),
        text: String::new(),
        costs: Vec::new(),
    };
    let mut target = target("nosuch0", 1 << 30, 1 << 30);
    target.setting = DiscardSetting::On;
    let text = commands_or_done(&target, &advice, None, false, &Details::default());
    let rule = "(--apply=persist writes it), /etc/udev/rules.d/61-trimbench-discard.rules:\n\
                # Written by trimbench tune: the largest discard that suits a drive, in bytes.\n\
                ACTION==\"add|change\", \
                SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", KERNEL==\"nosuch0\", \
                ATTR{queue/discard_max_bytes}=\"8388608\"\n";
    assert!(text.ends_with(rule), "{text}");
    let role = role::of(&target, &advice, Path::new("/etc"));
    for line in [
        "# udev knows no serial number of nosuch0: give its ID_SERIAL, or a pattern.",
        "trimbench_discard_max_bytes: 8388608",
        "trimbench_drives: []",
        "trimbench_nodiscard: [\"/data\"]",
        "trimbench_timer: true",
    ] {
        assert!(role.lines().any(|one| one == line), "{line}:\n{role}");
    }
    let nothing = Advice {
        set: None,
        ..advice
    };
    let role = role::of(&target, &nothing, Path::new("/etc"));
    assert!(role.contains("Nothing has to be set"), "{role}");
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
        let mut target = target("nosuch0", 1 << 30, 1 << 30);
        target.setting = setting;
        let args = args(more);
        let details = Details::of(&["slowdown=7%".to_owned()]).unwrap();
        commands_or_done(&target, &advice, kept, args.persists(), &details)
    };
    let timer = "  trimbench fstrim --all --install-timer --slowdown=7%\n  \
                 systemctl enable --now trimbench-fstrim.timer\n";
    let (on, off) = (DiscardSetting::On, DiscardSetting::Off);

    let to_set = said(on, None, &[]);
    let commands = format!("--apply=persist):\n  mount -o remount,nodiscard /data\n{timer}");
    assert!(to_set.ends_with(&commands), "{to_set}");
    let set = said(on, Some(trial), &["--apply"]);
    assert!(set.contains("Set:\n  mount -o"), "{set}");
    let needs = format!("It needs a timer, which --apply=persist installs, or:\n{timer}");
    assert!(set.ends_with(&needs), "{set}");
    let as_was = said(off, Some(trial), &["--apply"]);
    assert_eq!(as_was, format!("\nAll is as it was. {needs}"));

    let persist = ["--apply=persist"];
    let set = said(on, Some(trial), &persist);
    assert!(set.ends_with("remount,nodiscard /data\n"), "{set}");
    let as_was = said(off, Some(trial), &persist);
    assert!(as_was.contains("as it should be"), "{as_was}");
}
