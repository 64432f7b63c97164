//! `trimbench fit`: what a drive's discards cost, from records and from a ladder.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use testkit::recorded::{CONTROL, EVO, PRO, RAID, Recorded, T500};

use crate::common::gate::{LOOP_EXT4, Need, beside, few, lacks};
use crate::common::loop_fs::{Fs, LoopDevice, LoopFs, On};
use crate::common::recorded::recorded;
use crate::common::run::{Done, run, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};

const LOOP: &[Need] = &[Need::Root, Need::File("/dev/loop-control")];

fn fit(arguments: &[&str]) -> Done {
    let mut command = trimbench();
    command.arg("fit").args(arguments);
    run(command)
}

/// The figure of a row of the table: `a, each discard   2.05 ms  1.98 ms to …`, in microseconds.
#[track_caller]
fn row_us(text: &str, name: &str) -> f64 {
    let line = text
        .lines()
        .map(str::trim_start)
        .find(|l| l.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name:?} in:\n{text}"));
    let mut words = line[name.len()..].split_whitespace();
    let value: f64 = words
        .next()
        .unwrap()
        .parse()
        .unwrap_or_else(|_| panic!("{line}"));
    match words.next().unwrap() {
        "µs" => value,
        "ms" => value * 1e3,
        "s" => value * 1e6,
        unit => panic!("{unit} in {line}"),
    }
}

#[track_caller]
fn near(what: &str, got: f64, expected: f64, share: f64) {
    println!("{what}: {got}, expected {expected}");
    assert!(
        (got / expected - 1.0).abs() <= share,
        "{what}: {got}, not {expected}"
    );
}

/// Sizes in MiB and times in microseconds of the ladder's rungs.
fn rungs(text: &str) -> Vec<(f64, f64)> {
    let table = text
        .lines()
        .skip_while(|l| !l.contains("95 % confidence"))
        .skip(1);
    let rows = table.take_while(|line| !line.trim().is_empty());
    // Of a single discard nothing is known but that one.
    let rows = rows.filter(|line| !line.ends_with(" 1"));
    rows.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let unit = if words[1] == "KiB" { 1.0 / 1024.0 } else { 1.0 };
        let size = format!("{} {}", words[0], words[1]);
        (words[0].parse::<f64>().unwrap() * unit, row_us(line, &size))
    })
    .collect()
}

#[test]
fn the_drives_of_2024() {
    let dir = TempDir::new().unwrap();
    let fitted = |what: &Recorded| {
        let record = recorded(what, dir.path());
        let text = fit(&[record.to_str().unwrap()]).succeeds().stdout.clone();
        println!("{text}");
        text
    };
    let text = fitted(EVO);
    near("870 EVO at 125 MiB", row_us(&text, "125 MiB"), 1560.0, 0.04);
    near("870 EVO's b", row_us(&text, "b, each MiB"), 8.44, 0.15);
    assert!(text.contains("exclusive: a barrier"), "{text}");
    let text = fitted(T500);
    near("T500 at 128 MiB", row_us(&text, "128 MiB"), 1970.0, 0.03);
    assert!(text.contains("sizes that differ"), "{text}");
    // 71 ms were waited where four were in flight, and 18 ms where one was.
    let text = fitted(RAID);
    near("T500 at 2 GiB", row_us(&text, "2.0 GiB"), 17_800.0, 0.06);
    assert!(text.contains("Several drives"), "{text}");
    let text = fitted(PRO);
    assert!(
        text.contains("TRIM of 3.9 GiB costs the drive at most"),
        "{text}"
    );
    assert!(text.contains("only its product"), "{text}");
    let record = recorded(CONTROL, dir.path());
    fit(&[record.to_str().unwrap()]).fails_with(1, &["no discards were recorded"]);
}

#[test]
fn a_card_of_one_size_is_no_drive_of_every_size() {
    let dir = TempDir::new().unwrap();
    let written = |what: &Recorded| {
        let (record, card) = (recorded(what, dir.path()), dir.path().join("mine.toml"));
        let (record, path) = (record.to_str().unwrap(), card.to_str().unwrap());
        let text = fit(&[record, "--output", path]).succeeds().stdout.clone();
        (text, fs::read_to_string(card).unwrap())
    };
    let (text, card) = written(T500);
    let alone = "holds for discards of about 128 MiB alone";
    assert!(
        card.contains(alone) && text.contains(alone),
        "{card}\n{text}"
    );
    assert!(
        !text.contains("lab up") && text.contains("fit DIRECTORY"),
        "{text}"
    );
    let (text, card) = written(EVO);
    assert!(
        !card.contains("alone") && text.contains("lab up"),
        "{card}\n{text}"
    );
}

#[test]
fn a_verdict_has_what_can_be_told_and_null_for_the_rest() {
    let dir = TempDir::new().unwrap();
    let of = |what: &Recorded| -> Value {
        let record = recorded(what, dir.path());
        let mut command = trimbench();
        command.args(["report", "--format", "json"]).arg(record);
        let text = run(command).succeeds().stdout.clone();
        let verdict: Value = serde_json::from_str(&text).unwrap();
        crate::quick::conforms(&verdict);
        verdict["fit"].clone()
    };
    let fit = of(EVO);
    near("a", fit["a_us"].as_f64().unwrap(), 540.0, 0.15);
    assert_eq!(
        (&fit["barrier"], &fit["phi"]),
        (&true.into(), &1.0.into()),
        "{fit}"
    );
    let fit = of(PRO);
    for field in [
        "a_us",
        "b_us_per_mib",
        "phi",
        "service_us",
        "at_mib",
        "barrier",
    ] {
        assert!(fit[field].is_null(), "{field}: {fit}");
    }
}

#[test]
fn a_ladder_finds_what_a_slow_drive_costs() {
    if lacks(NEEDS) || lacks(&[Need::Tool("blkdiscard")]) {
        return;
    }
    let _turn = few();
    let lab = OwnLab::new();
    let mount = lab.mount();
    let mount = mount.to_str().unwrap();
    // Slow enough that neither the machine nor its other work counts.
    let drive = "--profile 870-evo --size 2G --set a=20ms --set b=1ms/MiB \
                 --set discard.jitter=0% --set write.latency=0 \
                 --set write.per_mib=0ns/MiB --fs xfs -o discard --mount";
    let mut options: Vec<&str> = drive.split_whitespace().collect();
    options.push(mount);
    lab.up(&format!("fit-{}", std::process::id()), &options);
    let dir = TempDir::new().unwrap();
    let card = dir.path().join("mine.toml");
    let ladder = [
        "fit",
        mount,
        "--set",
        "sizes=1M,16M",
        "--set",
        "space=64M",
        "--set",
        "name=mine",
    ];
    let climb = |more: &[&str]| {
        let mut command = trimbench();
        command.args(ladder).args(more);
        run(lab.in_here(command))
    };
    let done = climb(&["--dry-run"]);
    let intended = &done.succeeds().stdout;
    assert!(intended.contains("3 runs"), "{intended}");
    assert!(!card.exists());

    let done = climb(&["--output", card.to_str().unwrap()]);
    let text = &done.succeeds().stdout;
    println!("{text}");
    let rungs = rungs(text);
    assert!(rungs.len() >= 2, "{text}");
    for &(mib, us) in [rungs.first(), rungs.last()].into_iter().flatten() {
        let expected = 20_000.0 + 1000.0 * mib;
        near(&format!("{mib} MiB"), us, expected, 0.1);
    }
    near("a", row_us(text, "a, each discard"), 20_000.0, 0.15);
    near("b", row_us(text, "b, each MiB"), 1000.0, 0.15);
    let toml = fs::read_to_string(&card).unwrap();
    assert!(
        toml.contains("name = \"mine\"") && toml.contains("measured 20"),
        "{toml}"
    );
    assert!(toml.contains("simulated samsung-870-evo-2tb"), "{toml}");
    // Nothing of it is left.
    let left: Vec<_> = fs::read_dir(mount)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(left.iter().all(|name| name == "lost+found"), "{left:?}");
    // A run beside which something else deletes is repeated.
    let deletes = "cd \"$0\"; end=$(($(date +%s) + 8)); while [ $(date +%s) -lt $end ]; do \
                   head -c 4M /dev/zero >other; sync other; rm other; sync -f .; sleep 0.2; done";
    let mut other = Command::new("sh");
    let mut other = other.args(["-c", deletes, mount]).spawn().unwrap();
    let mut beside = trimbench();
    beside.args(["fit", mount, "--set", "sizes=1M,2M", "--set", "space=16M"]);
    let done = run(lab.in_here(beside));
    other.wait().unwrap();
    let text = &done.succeeds().stdout;
    let mut lines = text.lines().filter(|line| line.starts_with("Once more"));
    let told = |line: &str| line.contains("more were discarded than deleted");
    assert!(lines.any(told), "{text}");

    // What deletes there goes by the card.
    let file = Path::new(mount).join("file");
    fs::write(&file, vec![7; 8 << 20]).unwrap();
    let mut remove = trimbench();
    remove.args(["rm", "--slowdown", "50%", "--profile"]);
    remove.arg(&card).arg(&file);
    run(lab.in_here(remove)).succeeds();
    assert!(!file.exists());
    // A drive made of the card takes as long as the one it was made from.
    let again = format!("fit2-{}", std::process::id());
    let profile = ["--profile", card.to_str().unwrap(), "--size", "256M"];
    let device = lab.up(
        &again,
        &[&profile[..], &["--set", "premapped=true"]].concat(),
    );
    for mib in [1, 16] {
        lab.lab(&["stats", &again, "--reset"]).succeeds();
        let mut discard = Command::new("blkdiscard");
        let bytes = (8 * mib) << 20;
        discard.args(["--step", &format!("{mib}MiB")]);
        discard.args(["--offset", &format!("{}MiB", 128 - 8 * mib)]);
        discard.args(["--length", &bytes.to_string()]);
        discard.arg(&device);
        run(discard).succeeds();
        let kinds = lab.stats(&again)["kinds"].clone();
        let discards = &kinds[3];
        assert_eq!(
            (&discards["kind"], &discards["commands"]),
            (&"discard".into(), &8.into())
        );
        let us = discards["p50_us"].as_f64().unwrap();
        near(
            &format!("again, {mib} MiB"),
            us,
            20_000.0 + 1000.0 * f64::from(mib),
            0.2,
        );
    }
}

#[test]
fn what_can_not_be_fitted_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("text"), "not a record\n").unwrap();
    fs::write(path("empty"), "").unwrap();
    let here = dir.path().to_str().unwrap();
    fit(&[&path("text")]).fails_with(2, &["text", "not a record"]);
    fit(&[&path("empty")]).fails_with(2, &["empty"]);
    fit(&[&path("missing")]).fails_with(2, &["missing"]);
    fit(&[&path("text"), here]).fails_with(2, &["is a directory", "alone"]);
    fit(&[&path("text"), "--dry-run"]).fails_with(2, &["--dry-run"]);
    fit(&[&path("text"), "--output", &path("text")]).fails_with(2, &["one of the records"]);
    assert_eq!(fs::read_to_string(path("text")).unwrap(), "not a record\n");
    fit(&[here, "--set", "sizes=1000"]).fails_with(2, &["sizes 1000", "multiples"]);
    fit(&[here, "--set", "sizes=8M", "--set", "space=16M"])
        .fails_with(2, &["no size of the ladder"]);
    fit(&[here, "--set", "sizes=cake"]).fails_with(2, &["--set sizes=cake"]);
    fit(&[]).fails_with(2, &["Usage"]);
}

/// It would write gigabytes, and then have nothing to fit.
#[test]
fn where_nothing_is_discarded_no_ladder_is_climbed() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", 512, On::Tmpfs);
    let place = fs.path().to_string_lossy();
    for more in [&[][..], &["--dry-run"]] {
        let done = fit(&[&[&*place], more].concat());
        done.fails_with(2, &["nothing to fit", "discard"]);
        assert_eq!(fs.names(), [""; 0]);
    }
}

#[test]
fn a_raw_device_takes_more_than_its_name() {
    let _turn = beside();
    if lacks(LOOP) {
        return;
    }
    let device = LoopDevice::new(512, On::Tmpfs);
    let path = device.path().to_str().unwrap().to_owned();
    fit(&[&path]).fails_with(2, &["--destroy-data"]);
    let named = [&path, "--destroy-data", "--dry-run"];
    let done = fit(&[&named[..], &["--force"]].concat());
    assert!(
        done.succeeds().stdout.contains("discards data on"),
        "{}",
        done.text()
    );
    assert_eq!(device.allocated(), 0);
}
