//! Tests faults that are set while the drive runs.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use crate::common::{Bench, NAME, cannot, must, run};

fn dd(bench: &Bench, arguments: &[&str]) -> bool {
    run("dd", &[&["bs=4k", "count=1"], arguments].concat())
        .status
        .success()
        && bench.lab.stats(NAME).is_ok()
}

fn set(bench: &Bench, fault: &str) {
    bench.lab.clear_faults(NAME).unwrap();
    bench.lab.add_fault(NAME, &fault.parse().unwrap()).unwrap();
    let faults = bench.lab.stats(NAME).unwrap().faults;
    assert_eq!(
        (faults.len(), &*faults[0].fault, faults[0].struck),
        (1, fault, 0)
    );
}

#[test]
fn errors_come_where_they_were_set() {
    if cannot(&["dd", "blkdiscard"]) {
        return;
    }
    let bench = Bench::new("ideal", &[], 64, |_| {});
    let device = bench.device().to_str().unwrap();
    let (from, to) = (format!("if={device}"), format!("of={device}"));
    set(&bench, "read error at 1M+4k");
    let read = |skip| dd(&bench, &[&from, "of=/dev/null", "iflag=direct", skip]);
    assert!(read("skip=255") && !read("skip=256") && read("skip=257"));

    set(&bench, "write error times 1");
    let write = || {
        dd(
            &bench,
            &["if=/dev/zero", &to, "oflag=direct", "conv=notrunc"],
        )
    };
    assert!(!write() && write());

    set(&bench, "flush error");
    let file = OpenOptions::new().write(true).open(device).unwrap();
    assert!(file.sync_all().is_err());
    set(&bench, "discard error after 1");
    let discard = || run("blkdiscard", &["-l", "1M", device]).status.success();
    assert!(discard() && !discard());
    bench.lab.clear_faults(NAME).unwrap();
    assert!(discard() && file.sync_all().is_ok());
}

#[test]
fn data_go_wrong_as_they_were_told_to() {
    if cannot(&["dd", "blkdiscard"]) {
        return;
    }
    let bench = Bench::new("ideal", &[], 64, |_| {});
    let device = bench.device().to_str().unwrap();
    let to = format!("of={device}");
    // Over the device's page cache, in both directions.
    let write = |byte: u8| {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        std::fs::write(&data, vec![byte; 64 << 10]).unwrap();
        must(
            "dd",
            &[
                &format!("if={}", data.display()),
                &to,
                "bs=64k",
                "oflag=direct",
            ],
        );
    };
    let read = || {
        must("blockdev", &["--flushbufs", device]);
        let file = std::fs::File::open(device).unwrap();
        let mut data = vec![0; 64 << 10];
        file.read_exact_at(&mut data, 0).unwrap();
        data
    };
    write(5);
    assert_eq!(read(), vec![5; 64 << 10]);
    set(&bench, "read holes at 16k+16k");
    let data = read();
    let odd = data.iter().enumerate().filter(|(_, b)| **b == 0xff);
    let odd: Vec<usize> = odd.map(|(i, _)| i).collect();
    assert_eq!(
        odd,
        (16 << 10..32 << 10).skip(1).step_by(2).collect::<Vec<_>>()
    );

    set(&bench, "read zeros at 4k+4k");
    let data = read();
    let zeros = data.iter().enumerate().filter(|(_, b)| **b == 0);
    assert!(zeros.map(|(i, _)| i).eq(4096..8192));
    // One bit of the place, and nothing beside it.
    set(&bench, "read flip at 12k+4k");
    let data = read();
    let wrong = data.iter().enumerate().filter(|(_, b)| **b != 5);
    assert!(wrong.map(|(i, b)| (i, *b)).eq([(12 << 10, 4)]));

    set(&bench, "write lost");
    write(6);
    bench.lab.clear_faults(NAME).unwrap();
    assert_eq!(read(), vec![5; 64 << 10], "stale data");

    set(&bench, "discard nothing");
    must("blkdiscard", &["-l", "8k", device]);
    assert_eq!(read(), vec![5; 64 << 10]);
    set(&bench, "discard neighbour 4k");
    must("blkdiscard", &["-l", "8k", device]);
    let data = read();
    let zeros = data.iter().take_while(|b| **b == 0).count();
    assert_eq!((zeros, data[zeros]), (12 << 10, 5));
}

#[test]
fn a_hanging_drive_does_nothing_and_then_goes_on() {
    if cannot(&["dd"]) {
        return;
    }
    let bench = Bench::new("ideal", &[], 64, |_| {});
    let from = format!("if={}", bench.device().display());
    let hang = Duration::from_millis(700);
    let began = Instant::now();
    bench.lab.hang(NAME, hang).unwrap();
    assert!(dd(&bench, &[&from, "of=/dev/null", "iflag=direct"]));
    assert!(began.elapsed() >= hang);
}

#[test]
fn figures_change_while_it_runs() {
    if cannot(&["blkdiscard"]) {
        return;
    }
    let bench = Bench::new("ideal", &[], 64, |_| {});
    let discard = || {
        let began = Instant::now();
        must(
            "blkdiscard",
            &["-l", "1M", bench.device().to_str().unwrap()],
        );
        began.elapsed()
    };
    discard();
    bench.lab.set(NAME, &["a=400ms".to_owned()]).unwrap();
    assert!(discard() >= Duration::from_millis(400));
    let bad = ["a=1ms".to_owned(), "aa=1".to_owned()];
    let error = bench.lab.set(NAME, &bad).unwrap_err().to_string();
    assert!(error.contains("aa"), "{error}");
    assert!(discard() >= Duration::from_millis(400), "all or none");
}

#[test]
fn a_power_cut_loses_what_was_not_flushed() {
    if cannot(&["dd"]) {
        return;
    }
    let bench = Bench::new("ideal", &[], 64, |spec| spec.volatile_cache = true);
    let device = bench.device().to_str().unwrap();
    let (from, to) = (format!("if={device}"), format!("of={device}"));
    let dir = tempfile::tempdir().unwrap();
    let write = |byte: u8, flush: &str| {
        let data = dir.path().join("data");
        std::fs::write(&data, [byte; 4096]).unwrap();
        let data = format!("if={}", data.display());
        dd(&bench, &[&data, &to, "oflag=direct", flush])
    };
    let read = || {
        let data = dir.path().join("read");
        let into = format!("of={}", data.display());
        let done = dd(&bench, &[&from, &into, "iflag=direct"]);
        done.then(|| std::fs::read(&data).unwrap()[0])
    };
    assert!(write(1, "conv=fsync") && write(2, "conv=notrunc"));
    assert_eq!(read(), Some(2));
    bench.lab.cut_power(NAME).unwrap();
    assert!(read().is_none() && !write(3, "conv=notrunc"), "no power");
    bench.lab.restore_power(NAME).unwrap();
    assert_eq!(read(), Some(1));
}

#[test]
fn a_late_discard_takes_what_was_written_since() {
    if cannot(&["blkdiscard"]) {
        return;
    }
    let bench = Bench::new("ideal", &[], 64, |_| {});
    let device = bench.device();
    let block = |byte: u8| {
        let file = OpenOptions::new().write(true).open(device).unwrap();
        file.write_all_at(&[byte; 4096], 0).unwrap();
        file.sync_all().unwrap();
    };
    let read = || {
        must("blockdev", &["--flushbufs", device.to_str().unwrap()]);
        let mut data = [0; 8192];
        let file = std::fs::File::open(device).unwrap();
        file.read_exact_at(&mut data, 0).unwrap();
        data[0]
    };
    block(5);
    // Without a fault they are gone at once.
    must("blkdiscard", &["-l", "8k", device.to_str().unwrap()]);
    assert_eq!(read(), 0);
    block(5);
    set(&bench, "discard late 3s times 1");
    must("blkdiscard", &["-l", "8k", device.to_str().unwrap()]);
    assert_eq!(read(), 5, "not yet");
    block(6);
    assert_eq!(read(), 6);
    let began = Instant::now();
    while read() == 6 && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(read(), 0, "it came, and took the newer data");
}
