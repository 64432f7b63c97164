//! A control that can't put the file system back as it was.

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL, must};
use crate::common::run::record;
use crate::quick::{Files, begin};

#[test]
fn it_is_told_with_what_to_do() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let mount = fs.path().display().to_string();
    let files = Files::new();
    let arguments = ["--control=remount", "--baseline", "1h"];
    let mut running = begin(fs.path(), &files, &arguments);
    running.until("the control", || files.in_phase("baseline"));
    assert!(!fs.options().split(',').any(|option| option == "discard"));
    // No frozen file system can be remounted.
    must("fsfreeze", &["-f", &mount]);
    running.signal(Signal::INT);
    let remedy = format!("mount -o remount,discard {mount}");
    let told = || {
        let lines = record(&files.record());
        lines.iter().any(|line| {
            line["detail"]
                .as_str()
                .is_some_and(|text| text.contains(&remedy))
        })
    };
    let told_by = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !told() && std::time::Instant::now() < told_by {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // Nothing can be removed from it either until then.
    must("fsfreeze", &["-u", &mount]);
    let measured = files.read(running.wait());
    measured.done.fails_with(130, &[&remedy, "interrupted"]);
    assert!(
        !measured.done.text().contains("is removed"),
        "{}",
        measured.done.text()
    );
    assert_eq!(measured.end()["reason"], "interrupted");
    assert_eq!(fs.names(), [""; 0]);
}
