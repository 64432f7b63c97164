//! A thread visits a cgroup.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use linux::cgroup::{has_threads, visit};

fn blkio() -> String {
    let text = fs::read_to_string("/proc/thread-self/cgroup").unwrap();
    let line = text.lines().find(|line| line.contains("blkio")).unwrap();
    line.to_owned()
}

#[test]
fn who_is_started_during_a_visit_stays() {
    let root = Path::new("/sys/fs/cgroup/blkio");
    let group = root.join(format!("tb-visit-{}", std::process::id()));
    if let Err(error) = fs::create_dir(&group) {
        // With version 2 there is nothing to visit: no failure where CI is set.
        return eprintln!("skipped: {}: {error}", group.display());
    }
    assert!(has_threads(&group) && !has_threads(Path::new("/")));
    let before = blkio();
    let inside = visit(&group).unwrap();
    let visiting = blkio();
    let started = std::thread::spawn(|| {
        std::thread::park();
        blkio()
    });
    drop(inside);
    let (after, elsewhere) = (blkio(), std::thread::spawn(blkio).join().unwrap());
    started.thread().unpark();
    let stayed = started.join().unwrap();
    // A thread that was waited for may still be on its way out of its cgroup.
    while let Err(error) = fs::remove_dir(&group) {
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(visiting.contains("tb-visit"), "{visiting}");
    assert!(stayed.contains("tb-visit"), "{stayed}");
    assert_eq!((&after, &elsewhere), (&before, &before));
    visit(Path::new("/proc")).unwrap_err();
}
