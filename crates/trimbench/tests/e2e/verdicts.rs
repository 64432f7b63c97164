//! Each finding is what was there: figures against what the fixtures did.

use std::time::{Duration, Instant};

use record::{Grain, Latency, Line, PhaseName, decode_histogram};

use crate::common::disturb::Freezer;
use crate::common::gate::{self, LOOP_EXT4, Need, alone, few, lacks, times};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::at_once;
use crate::quick::{Files, Measured, begin, measure, number};

const MIB: f64 = 1048576.0;

fn freezes() -> bool {
    !lacks(LOOP_EXT4) && !lacks(&[Need::Tool("fsfreeze")])
}

#[test]
fn without_discards_the_verdict_is_none() {
    let _turn = gate::beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    for _ in 0..times(1, 10) {
        let arguments = [
            "--size",
            "64M",
            "--settle",
            "1s",
            "--baseline",
            "2s",
            "--recovery",
            "1s",
        ];
        let measured = measure(fs.path(), &arguments).succeeds();
        assert_eq!(
            measured.verdict["verdict"],
            "none",
            "{}",
            measured.done.text()
        );
        assert!(
            measured.reasons().contains(&"no-discards"),
            "{:?}",
            measured.reasons()
        );
        assert_eq!(measured.head()["target"]["discard"], "off");
        assert!(measured.foreground()["stall"].is_null());
    }
}

#[test]
fn what_is_deleted_is_what_is_discarded() {
    let _turn = gate::beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.xfs"), Need::Tool("mkfs.btrfs")]) {
        return;
    }
    for (fs, options) in [
        (Fs::Ext4, "discard"),
        (Fs::Xfs, "discard"),
        // Only by the commit that the run forces, or space would be taken and freed beside it.
        (Fs::Btrfs, "discard=sync,commit=300"),
    ] {
        let fs = LoopFs::new(fs, options, SMALL, On::Tmpfs);
        let measured = measure(fs.path(), &["--size", "512M"]).succeeds();
        let discarded = number(&measured.verdict["discard"]["bytes"]);
        let deleted = number(&measured.verdict["deletion"]["bytes"]);
        // The blocks that map the file are freed with it.
        assert!(
            (512.0..514.0).contains(&(deleted / MIB)),
            "{options}: {deleted}"
        );
        // ext4 discards the free space that follows what was freed, too, up to the end of the
        // block group (ext4_try_to_trim_range in Linux's fs/ext4/mballoc.c).
        let beyond = if options == "discard" {
            128.0 * MIB
        } else {
            0.0
        };
        let fits = 0.98 * deleted..1.02 * deleted + beyond;
        assert!(
            fits.contains(&discarded),
            "{options}: {discarded} of {deleted}"
        );
        assert!(measured.happened("debt-paid"), "{options}");
    }
}

/// Each leg of a mirror discards every byte: together they count it once.
#[test]
fn what_is_deleted_on_a_mirror_is_discarded_once() {
    let _turn = gate::beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.btrfs")]) {
        return;
    }
    let fs = LoopFs::mirror("discard=sync,commit=300", SMALL);
    let measured = measure(fs.path(), &["--size", "512M"]).succeeds();
    let discarded = number(&measured.verdict["discard"]["bytes"]);
    let deleted = number(&measured.verdict["deletion"]["bytes"]);
    assert!(
        (0.98 * deleted..1.02 * deleted).contains(&discarded),
        "{discarded} of {deleted}"
    );
    assert!(measured.happened("debt-paid"));
    assert_eq!(fs.devices().count(), 2);
    for device in measured.head()["devices"].as_array().unwrap() {
        assert_eq!(number(&device["counting"]["copies"]), 2.0, "{device}");
    }
}

#[test]
fn a_record_has_latencies_of_each_interval_of_the_deletion() {
    let _turn = gate::beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let measured = measure(fs.path(), &["--size", "64M"]).succeeds();
    let stretches: Vec<(f64, f64)> = measured
        .record
        .iter()
        .filter(|line| line["line"] == "histogram" && line["actor"] == 0)
        .filter_map(|line| line["over"].get("stretch"))
        .map(|stretch| (number(&stretch["at_s"]), number(&stretch["seconds"])))
        .collect();
    assert!(stretches.len() >= 5, "{stretches:?}");
    let apart = stretches
        .windows(2)
        .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 + 1e-6);
    assert!(apart, "{stretches:?}");
}

/// Response times of the foreground in a phase, in nanoseconds.
fn response_times(files: &Files, phase: PhaseName) -> hdrhistogram::Histogram<u64> {
    histogram(files, phase, Latency::Response)
}

fn histogram(files: &Files, phase: PhaseName, wanted: Latency) -> hdrhistogram::Histogram<u64> {
    std::fs::read_to_string(files.record())
        .unwrap()
        .lines()
        .find_map(|line| match serde_json::from_str(line).unwrap() {
            Line::Histogram(line)
                if line.actor == 0
                    && line.latency == wanted
                    && line.over == Grain::Phase(phase) =>
            {
                Some(decode_histogram(&line.v2).unwrap())
            }
            _ => None,
        })
        .expect("no histogram of that phase")
}

#[test]
fn a_frozen_second_is_every_request_of_that_second() {
    let _turn = few();
    if !freezes() {
        return;
    }
    let with = |engine| move || frozen_for_a_second(engine);
    at_once([&with("io_uring"), &with("sync")]);
}

fn frozen_for_a_second(engine: &str) {
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let files = Files::new();
    let arguments = [
        "--op",
        "write",
        "--rate",
        "1000",
        "--engine",
        engine,
        "--set",
        "canary=0",
        "--delete",
        "none",
        "--baseline",
        "6s",
    ];
    let mut running = begin(fs.path(), &files, &arguments);
    running.until("the baseline", || files.in_phase("baseline"));
    let baseline = Instant::now();
    std::thread::sleep(Duration::from_secs(1));
    let freezer = Freezer::freeze(&fs);
    std::thread::sleep(Duration::from_secs(1));
    let frozen = freezer.thaw();
    let (least, most) = (frozen.start.as_secs_f64(), frozen.end.as_secs_f64());
    let thawed_after = baseline.elapsed().as_secs_f64();
    let measured = files.read(running.wait()).succeeds();
    assert!(
        thawed_after < 5.0,
        "{engine}: thawed only {thawed_after} s after the baseline began"
    );
    // While trimbench itself does not run, it measures nothing, and leaves that time out.
    let absences = &measured.verdict["absences"];
    assert!(
        absences.as_array().is_none_or(Vec::is_empty),
        "{engine}: trimbench did not run: {absences}"
    );

    let response = response_times(&files, PhaseName::Baseline);
    let slow = response.len() - response.count_between(0, 20_000_000);
    assert!(
        slow as f64 >= 0.9 * 1000.0 * least,
        "{engine}: {slow} slow in {least} s"
    );
    let p99_s = response.value_at_quantile(0.99) as f64 / 1e9;
    assert!(
        p99_s >= 0.85 * least,
        "{engine}: p99 {p99_s} s of {least} s"
    );
    // Beside it the service time, which is recorded apart.
    let service = histogram(&files, PhaseName::Baseline, Latency::Service);
    assert_eq!(service.len(), response.len());

    // While nothing completed there were intervals all the same, and the oldest grew older.
    let oldest = measured
        .lines("interval")
        .filter(|interval| interval["actors"][0]["ops"] == 0)
        .filter_map(|interval| interval["actors"][0]["oldest_us"].as_f64())
        .fold(0.0, f64::max);
    assert!(oldest >= 0.7e6 * least, "{engine}: oldest {oldest} us");
    assert_ne!(measured.verdict["verdict"], "stall");
    assert!(
        slow as f64 <= 1.5 * 1000.0 * most,
        "{engine}: {slow} slow in {most} s"
    );
}

/// A run on a file system that discards, with a second of freeze once the debt is paid.
fn frozen_after_the_discards() -> Measured {
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let files = Files::new();
    let arguments = [
        "--op",
        "write",
        "--size",
        "64M",
        "--baseline",
        "2s",
        "--recovery",
        "4s",
    ];
    let mut running = begin(fs.path(), &files, &arguments);
    running.until("the recovery", || files.in_phase("recovery"));
    let freezer = Freezer::freeze(&fs);
    std::thread::sleep(Duration::from_secs(1));
    freezer.thaw();
    files.read(running.wait())
}

#[test]
fn a_hang_without_discards_is_a_dip_and_no_stall() {
    let _turn = alone();
    if !freezes() {
        return;
    }
    let measured = frozen_after_the_discards().succeeds();
    let dips = measured.foreground()["dips"].as_array().unwrap();
    let longest = dips
        .iter()
        .map(|dip| number(&dip["seconds"]))
        .fold(0.0, f64::max);
    assert!(longest > 0.7, "{dips:?}");
    let stalled = measured.foreground()["stall"]["seconds"]
        .as_f64()
        .unwrap_or(0.0);
    assert!(stalled < 0.7, "the hang was blamed on TRIM: {stalled} s");
}

/// Memory for the image's 6 GiB and what runs beside it.
const MEMORY_GIB: u64 = 10;

/// Waits a while for what others are about to give back.
fn lacks_memory() -> bool {
    let enough = |name: &str| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        kib.parse::<u64>().unwrap() >= MEMORY_GIB << 20
    };
    let began = Instant::now();
    while enough("MemTotal:") && !enough("MemAvailable:") && began.elapsed().as_secs() < 60 {
        std::thread::sleep(Duration::from_secs(1));
    }
    let lacks = !enough("MemAvailable:");
    if lacks {
        gate::skip(&format!("need {MEMORY_GIB} GiB of memory"));
    }
    lacks
}

#[test]
fn a_real_stall_is_found() {
    let _turn = alone();
    if lacks(LOOP_EXT4) || lacks_memory() {
        return;
    }
    // The loop driver punches holes into the image in the worker that serves
    // the reads, too: while it frees 128 MiB of memory, they wait.
    let fs = LoopFs::new(Fs::Ext4, "discard", 7 * 1024, On::Tmpfs);
    for _ in 0..times(1, 10) {
        let arguments = [
            "--size",
            "4G",
            "--set",
            "foreground.size=256M",
            "--settle",
            "2s",
            "--baseline",
            "3s",
            "--recovery",
            "1s",
        ];
        let measured = measure(fs.path(), &arguments).succeeds();
        let text = measured.done.text();
        assert_eq!(measured.verdict["verdict"], "stall", "{text}");
        let stall = &measured.foreground()["stall"];
        assert!(number(&stall["seconds"]) > 0.0, "{stall}");
        assert!(number(&stall["depth"]) < 0.5, "{stall}");
        let shares =
            number(&measured.verdict["discard"]["bytes"]) / number(&measured.deletion()["bytes"]);
        assert!((0.98..1.1).contains(&shares), "{shares}");
    }
}

/// A small deletion, and then something else that slows all down: no stall of TRIM's.
fn beside(trouble: &str) {
    let fs = LoopFs::new(Fs::Ext4, "discard", 2 * SMALL, On::Tmpfs);
    let place = fs.path().display();
    let script = format!("rm \"$0\"; sync -f {place}; sleep 1; {trouble}");
    let program = format!("sh -c '{script}' {{}}");
    for _ in 0..times(1, 10) {
        let arguments = [
            "--size",
            "64M",
            "--delete",
            &program,
            "--settle",
            "1s",
            "--baseline",
            "2s",
            "--recovery",
            "1s",
        ];
        let measured = measure(fs.path(), &arguments).succeeds();
        let text = measured.done.text();
        assert!(measured.phase_s("delete") > 2.0, "no trouble was made");
        assert_ne!(measured.verdict["verdict"], "stall", "{text}");
    }
}

#[test]
fn a_processor_hog_is_no_stall() {
    let _turn = alone();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("timeout")]) {
        return;
    }
    let hog = "timeout 2 sh -c \"while :; do :; done\" &";
    beside(&format!(
        "{hog} {hog} {hog} {hog} {hog} {hog} {hog} {hog} wait"
    ));
}

#[test]
fn a_big_writer_is_no_stall() {
    let _turn = alone();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("timeout")]) {
        return;
    }
    // It ends by its time, or because the file system is full. What it wrote stays: to remove it
    // were another deletion, larger than the first, whose discards may well stall.
    beside(
        "cd \"${0%/*}\"; timeout 3 dd if=/dev/zero of=../writer bs=1M count=800 \
         oflag=direct conv=notrunc; true",
    );
}
