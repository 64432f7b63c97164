use std::os::unix::fs::FileExt;

use std::fs::File;

use linux::SysRoot;
use pace::{Policy, Work};
use storage::counter::Source;

use super::counters::DeviceCounters;
use super::ending::SETTLE;
use super::*;
use crate::event::silent;

/// A throttle without devices, on the directory for temporary files.
fn throttle(purpose: Purpose) -> Throttle {
    let on = File::open(std::env::temp_dir()).unwrap();
    let stack = Stack {
        mode: pace::DebtMode::Never,
        sources: Vec::new(),
        ..Stack::at(on.as_fd()).unwrap()
    };
    let setup = Setup {
        on: on.as_fd(),
        stack: &stack,
        purpose,
        work: &Work::new(1 << 30, 8),
        pacing: &Pacing::new(Policy::Adaptive(Goal::default())),
    };
    Throttle::start(&setup, &mut silent).unwrap()
}

#[test]
fn a_full_file_system_hurries_only_what_gives_it_space() {
    assert!(throttle(Purpose::Delete).space.last.is_some());
    assert_eq!(throttle(Purpose::Trim).space.last, None);
}

/// Those of others come faster than it looks, and never end.
#[test]
fn settling_ends_beside_somebody_who_always_discards() {
    let root = tempfile::tempdir().unwrap();
    let place = root.path().join("sys/class/block/never-quiet");
    std::fs::create_dir_all(&place).unwrap();
    let stat = File::create(place.join("stat")).unwrap();
    let put = move |discards: u64| {
        let text = format!("0 0 0 0 0 0 0 0 0 0 0 {discards:020} 0 8 1 0 0\n");
        stat.write_all_at(text.as_bytes(), 0).unwrap();
    };
    put(0);
    let sys = SysRoot::at(root.path());
    let mut throttle = throttle(Purpose::Trim);
    throttle.monitor.counters =
        DeviceCounters::open(&sys, &[Source::single("never-quiet")]).unwrap();
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        throttle.settle(&mut silent).unwrap();
        let _ = done.send(());
    });
    let mut discards = 0;
    while ended.recv_timeout(SETTLE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        discards += 1;
        put(discards);
        assert!(discards < 40_000, "it never ends");
    }
    assert!(discards > 0);
}
