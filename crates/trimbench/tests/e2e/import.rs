//! `trimbench import`: what iostat and fio wrote, end to end.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use testkit::recorded::{CONTROL, EVO, PRO, RAID, T500};

use crate::common::run::{Done, record, run, trimbench};
use crate::quick::conforms;

/// When the deletion's discards come in [`iostat`], in seconds, and for how long.
const STALL: std::ops::Range<u32> = 20..35;

/// Reports of a drive on which `begin` to `end` seconds 10,000 reads are done each second, and 4 %
/// of that while it discards; `header` and `row` write them down.
pub fn iostat(begin: u32, end: u32) -> String {
    let mut text = String::from("Linux 6.8.0 (db7) \t06/19/2024 \t_x86_64_\t(8 CPU)\n\n");
    for second in 0..end + 3 {
        let stalled = STALL.contains(&second);
        let reads = match second {
            s if s < begin || s >= end => 0,
            _ if stalled => 400,
            s => 10_000 + s % 7,
        };
        let discards = if stalled { 50 } else { 0 };
        writeln!(
            text,
            "Device r/s rkB/s r_await w/s wkB/s w_await d/s dkB/s d_await aqu-sz"
        )
        .unwrap();
        let kb = (reads * 4, discards * 131_072);
        writeln!(
            text,
            "sda {reads}.00 {}.00 0.80 0.00 0.00 0.00 {discards}.00 {}.00 18.00 8.00\n\
             sdb 0.00 0.00 0.00 1.00 4.00 0.10 0.00 0.00 0.00 0.00\n",
            kb.0, kb.1
        )
        .unwrap();
    }
    text
}

/// A folder with these files.
pub fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

pub fn import(arguments: &[&str], paths: &[&Path]) -> Done {
    let mut command = trimbench();
    command.arg("import").args(arguments).args(paths);
    run(command)
}

/// The verdict that is printed as JSON.
#[track_caller]
pub fn verdict(arguments: &[&str], paths: &[&Path]) -> Value {
    let done = import(&[&["--format", "json"], arguments].concat(), paths);
    let verdict: Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    conforms(&verdict);
    verdict
}

fn warnings(verdict: &Value) -> String {
    let all = verdict["warnings"].as_array().unwrap().iter();
    all.map(|w| w.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

pub fn near(value: &Value, expected: f64, slack: f64) {
    let value = value.as_f64().unwrap_or(f64::NAN);
    assert!(
        (value - expected).abs() <= slack,
        "{value} instead of {expected}"
    );
}

/// Base and stalled reads per second, stalled and lost seconds, and TRIM in GiB/s, as measured by
/// whoever recorded them.
#[test]
fn the_folders_recorded_in_2024_stall_as_they_did() {
    let folder = TempDir::new().unwrap();
    for (name, base, stalled, seconds, lost, trim) in [
        (EVO, 57_590.0, 4_832.0, 15.0, 13.7, 71.5),
        (T500, 92_080.0, 3_920.0, 16.9, 16.2, 61.1),
        (RAID, 151_700.0, 519.0, 4.75, 4.73, 220.0),
    ] {
        let path = name.write_folder(folder.path());
        let verdict = verdict(&[], &[&path]);
        println!("{name}: {}", verdict["summary"]);
        assert_eq!(verdict["verdict"], "stall");
        let seen = &verdict["foreground"][0];
        near(&seen["baseline"]["ops_per_s"], base, 0.03 * base);
        let rate = seen["baseline"]["ops_per_s"].as_f64().unwrap();
        near(
            &seen["stall"]["depth"],
            stalled / rate,
            0.03 * stalled / rate,
        );
        near(&seen["stall"]["seconds"], seconds, 1.0);
        near(&seen["stall"]["lost_s"], lost, 1.0);
        let bytes_per_s = trim * 1_073_741_824.0;
        near(
            &verdict["discard"]["bytes_per_s"],
            bytes_per_s,
            0.03 * bytes_per_s,
        );
        if name == RAID {
            assert!(warnings(&verdict).contains("md0 was taken to be made of nvme0n1 and nvme1n1"));
        }
    }
}

#[test]
fn the_folders_recorded_in_2024_without_a_stall_have_none() {
    let folder = TempDir::new().unwrap();
    let pro = PRO.write_folder(folder.path());
    let pro = verdict(&[], &[&pro]);
    println!("980 PRO: {}", pro["summary"]);
    assert_eq!(pro["verdict"], "none");
    assert_eq!(pro["discard"]["bytes_per_s_is_lower_bound"], true);
    near(
        &pro["foreground"][0]["baseline"]["ops_per_s"],
        102_091.0,
        3_000.0,
    );
    let control = CONTROL.write_folder(folder.path());
    let control = verdict(&[], &[&control]);
    println!("nodiscard: {}", control["summary"]);
    assert_eq!(control["verdict"], "none");
    assert_eq!(control["foreground"][0]["stall"], Value::Null);
    assert!(
        !control["foreground"][0]["dips"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn an_iostat_log_is_judged_and_becomes_a_record() {
    let folder = folder(&[("what.log", iostat(4, 90).as_bytes())]);
    let path = folder.path().join("what.log");
    let to = folder.path().join("run.jsonl.zst");
    let done = import(&["--output", to.to_str().unwrap()], &[&path]);
    let printed = &done.succeeds().stdout;
    for word in ["STALL", "stalled reads for 15.0 s", "10,000/s", "TRIM"] {
        assert!(printed.contains(word), "{word:?} missing in:\n{printed}");
    }
    assert!(
        done.stderr.contains("what.log: an iostat log"),
        "{}",
        done.text()
    );
    // The record says the same, in the same words.
    let mut report = trimbench();
    report.arg("report").arg(&to);
    assert_eq!(&run(report).succeeds().stdout, printed);
    assert_eq!(fs::read(&to).unwrap()[..4], [0x28, 0xb5, 0x2f, 0xfd]);
    // Again, from standard input and compressed.
    let packed = folder.path().join("packed");
    fs::write(&packed, zstd(iostat(4, 90).as_bytes())).unwrap();
    let mut command = trimbench();
    command.args(["import", "--quiet"]).arg(&packed);
    let done = run(command);
    assert!(
        done.succeeds().stdout.starts_with("Discarding "),
        "{}",
        done.text()
    );
    assert_eq!(done.stderr, "");
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

#[test]
fn what_a_log_cannot_tell_is_told_by_options() {
    let folder = folder(&[("iostat.txt", iostat(0, 90).as_bytes())]);
    let path: &Path = &folder.path().join("iostat.txt");
    // The time of the deletion: a baseline before it.
    let told = verdict(&["--at", "18s"], &[path]);
    assert_eq!(told["verdict"], "stall");
    assert_eq!(told["foreground"][0]["baseline_from"], "phase");
    let guessed = verdict(&[], &[path]);
    assert_eq!(
        guessed["foreground"][0]["baseline_from"],
        "before-first-discard"
    );
    // The length of an interval, which a log without times has not.
    let halves = verdict(&["--set", "interval=2s"], &[path]);
    let (once, twice) = (&guessed["discard"]["bytes"], &halves["discard"]["bytes"]);
    assert_eq!(once.as_u64().unwrap() * 2, twice.as_u64().unwrap());
    // The foreground.
    assert_eq!(
        verdict(&["--set", "device=/dev/sda"], &[path])["foreground"][0]["actor"],
        "sda"
    );
    // The parts of a device: the discards of both count once.
    let made = verdict(&["--members", "sda=sdb"], &[path]);
    assert_eq!(made["foreground"][0]["actor"], "sda");
    // The first report.
    for (what, seconds) in [("keep", 93), ("drop", 92)] {
        let first = format!("first-report={what}");
        let rows = import(&["--format", "csv", "--set", &first], &[path]);
        assert_eq!(
            rows.succeeds().stdout.lines().count(),
            seconds + 1,
            "{what}"
        );
    }
    for (arguments, words) in [
        (&["--at", "2h"][..], &["--at", "93"][..]),
        (&["--at", "1999-01-01T00:00:00Z"], &["--at"]),
        (&["--at", "then"], &["2024-06-19T05:02:34Z"]),
        (&["--set", "device=sdz"], &["no device sdz", "sda, sdb"]),
        (&["--members", "md0=sda"], &["no device md0"]),
        (&["--members", "sda"], &["md0=nvme0n1,nvme1n1"]),
        (&["--output", "-"], &["--output"]),
        (&["--output", path.to_str().unwrap()], &["at once"]),
    ] {
        import(arguments, &[path]).fails_with(2, words);
    }
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        iostat(0, 90),
        "it was written to"
    );
}

/// A fio log of windows of a second: 10,000 I/Os each, and none while the drive discards.
fn fio_log(begin: u32, end: u32, value: u32) -> String {
    let ends = (begin..end).filter(|s| !STALL.contains(s));
    ends.map(|s| format!("{}, {value}, 0, 0, 0\n", (s - begin + 1) * 1000))
        .collect()
}

#[test]
fn fio_beside_iostat_is_one_record_and_a_gap_is_a_stall() {
    let folder = folder(&[
        ("iostat.txt", iostat(7, 80).as_bytes()),
        ("r_iops.1.log", fio_log(7, 80, 10_000).as_bytes()),
        ("r_clat.1.log", fio_log(7, 80, 800_000).as_bytes()),
        ("README", b"how it was done\n"),
    ]);
    let out = folder.path().join("out.jsonl");
    let done = import(&["--output", out.to_str().unwrap()], &[folder.path()]);
    let words = done
        .succeeds()
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        words.contains("stalled reads for 15.0 s (to 0.0 % of 10,000/s)"),
        "{words}"
    );
    // fio began 7 s after iostat; nothing but what both saw tells so.
    assert!(
        words.contains("fio's begin was laid 7.0 s after iostat's"),
        "{words}"
    );
    assert!(
        words.contains("(clat)"),
        "only completion latencies are there, and that isn't said: {words}"
    );
    assert!(
        done.stderr
            .contains("README: left out: nothing that is known"),
        "{}",
        done.text()
    );
    assert!(!words.contains("log_unix_epoch"), "{words}");
    let lines = record(&out);
    assert_eq!(lines[0]["scenario"]["imported_from"], "iostat and fio");
    let intervals: Vec<&Value> = lines.iter().filter(|l| l["line"] == "interval").collect();
    assert_eq!(intervals[3]["actors"][0], Value::Null, "before fio began");
    assert_eq!(intervals[25]["actors"][0]["ops"], 0, "a gap is a stall");
    assert_eq!(intervals[25]["devices"][0]["discards"], 50);
    assert_eq!(intervals[50]["actors"][0]["ops"], 10_000);
}

/// iostat -t prints whole seconds. Its reports here end 0.8 s after the times that they bear.
/// So on fio's clock the stall of one second begins 0.8 s after the discards of iostat's log.
#[test]
fn a_stall_isn_t_missed_for_the_part_of_a_second_that_iostat_leaves_out() {
    let late_ms = 800;
    let slow = |ms: u32| (20_000 + late_ms..21_000 + late_ms).contains(&ms);
    let half = |ms: u32| if slow(ms) { 300 } else { 10_000 + ms % 7 };
    let begin_ms = 1_718_773_200_000_u64;
    let fio: String = (late_ms..45_000)
        .step_by(500)
        .map(|ms| {
            let end_ms = begin_ms + u64::from(ms) + 500;
            format!("{end_ms}, {}, 0, 0, 0\n", half(ms) / 2 * 2)
        })
        .collect();
    let mut iostat = String::from("Linux 6.8.0 (db7) \t2024-06-19 \t_x86_64_\t(8 CPU)\n\n");
    for second in 0..40 {
        let from_ms = second * 1000 + late_ms;
        let reads = (half(from_ms) + half(from_ms + 500)) / 2;
        let discards = if second == 20 { 50 } else { 0 };
        writeln!(
            iostat,
            "2024-06-19T05:{:02}:{:02}+0000\nDevice r/s rkB/s r_await w/s wkB/s w_await d/s dkB/s d_await aqu-sz\n\
             sda {reads}.00 {}.00 0.80 0.00 0.00 0.00 {discards}.00 {}.00 18.00 8.00\n",
            (second + 1) / 60,
            (second + 1) % 60,
            reads * 4,
            discards * 131_072,
        )
        .unwrap();
    }
    let folder = folder(&[
        ("iostat.txt", iostat.as_bytes()),
        ("r_iops.1.log", fio.as_bytes()),
    ]);
    let verdict = verdict(&[], &[folder.path()]);
    assert_eq!(verdict["verdict"], "stall", "{verdict:#}");
    near(&verdict["foreground"][0]["stall"]["seconds"], 1.0, 0.15);
    assert_eq!(verdict["foreground"][0]["dips"], serde_json::json!([]));
    assert!(
        warnings(&verdict)
            .contains("iostat's times are whole seconds, so fio's logs were laid 0.8 s"),
        "{verdict:#}"
    );
}

#[test]
fn fio_alone_tells_no_discards_and_its_json_no_time() {
    let log = folder(&[("r_iops.1.log", fio_log(0, 80, 10_000).as_bytes())]);
    let alone = verdict(&[], &[log.path()]);
    assert_eq!(alone["verdict"], "inconclusive");
    assert!(
        warnings(&alone).contains("could not be watched"),
        "{alone:#}"
    );
    let json = r#"{"fio version": "fio-3.33", "timestamp": 1718773354, "jobs": [{"jobname": "r",
        "job options": {"rw": "randread", "bs": "4k", "iodepth": "8"},
        "read": {"io_bytes": 4096000, "total_ios": 1000, "iops": 100.0, "runtime": 10000,
                 "clat_ns": {"N": 1000, "mean": 800000.0, "max": 9000000,
                             "percentile": {"50.000000": 700000, "99.000000": 1200000}}}}]}"#;
    let folder = folder(&[("out.txt", json.as_bytes())]);
    let totals = verdict(&[], &[folder.path()]);
    assert_eq!(totals["verdict"], "inconclusive");
    assert!(
        warnings(&totals).contains("one figure for the whole run"),
        "{totals:#}"
    );
    let csv = import(&["--format", "csv"], &[folder.path()]);
    let row = csv.succeeds().stdout.lines().nth(1).unwrap();
    assert!(
        row.contains(",1000,0,4096000,100.000,700.000,1200.000,9000.000,"),
        "{row}"
    );
    assert!(
        csv.stderr.contains("one figure for the whole run"),
        "{}",
        csv.text()
    );
    import(&["--members", "md0=sda"], &[folder.path()]).fails_with(2, &["--members", "iostat"]);
}

#[test]
fn what_was_dropped_is_said_with_its_line() {
    let mut text = iostat(0, 90).replacen("sda 10001.00", "sda 1zz01.00", 1);
    text.truncate(text.len() - 60);
    let folder = folder(&[("iostat.txt", text.as_bytes())]);
    let said = warnings(&verdict(&[], &[folder.path()]));
    for word in ["rows are damaged", "in line 8", "is cut off"] {
        assert!(said.contains(word), "{word:?} missing in: {said}");
    }
}

#[test]
fn what_is_none_of_it_is_refused() {
    let mut noise = vec![0_u8; 100_000];
    let mut seed = 1_u32;
    for byte in &mut noise {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (seed >> 24) as u8;
    }
    let absurd = "100, 5, 0, 0, 0\n200, 5, 0, 0, 0\n18446744073709551615, 5, 0, 0, 0\n";
    let folder = folder(&[
        ("empty", b""),
        ("noise", &noise),
        ("gz", &[0x1f, 0x8b, 8, 0, 0, 0]),
        ("far_iops.1.log", absurd.as_bytes()),
        ("basic", b"Device tps kB_read/s\nsda 1.0 2.0\n\n"),
        (
            "record",
            b"{\"line\":\"head\",\"schema\":\"trimbench.run/1\"}\n",
        ),
        (
            "notes",
            b"Remove /data/f at Wed Jun 19 05:02:34 AM UTC 2024\n",
        ),
        ("log", fio_log(0, 9, 1).as_bytes()),
    ]);
    let at = |name: &str| folder.path().join(name);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for (name, words) in [
        ("empty", &["is empty"][..]),
        ("noise", &["can't be imported"]),
        ("gz", &["can't be read"]),
        ("far_iops.1.log", &["more than 288000 intervals"]),
        ("basic", &["iostat -x"]),
        ("record", &["trimbench report"]),
        ("notes", &["notes alone"]),
        ("log", &["log", "_iops.N.log"]),
        ("pipe", &["a pipe without a writer"]),
        ("missing", &["No such file"]),
        ("empty/", &["Not a directory"]),
    ] {
        import(&[], &[&at(name)]).fails_with(2, words);
    }
    let nothing = TempDir::new().unwrap();
    import(&[], &[nothing.path()]).fails_with(2, &["has nothing that can be imported"]);
    let two = [("a", iostat(0, 30)), ("b", iostat(0, 30))];
    for (name, text) in &two {
        fs::write(nothing.path().join(name), text).unwrap();
    }
    import(&[], &[nothing.path()]).fails_with(2, &["both an iostat log", "one at a time"]);
    // Read by nobody but root, it is refused to others.
    if !rustix::process::geteuid().is_root() {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(at("basic"), fs::Permissions::from_mode(0o0)).unwrap();
        import(&[], &[&at("basic")]).fails_with(2, &["Permission denied"]);
    }
}

#[test]
fn a_long_log_is_judged_as_its_part_around_the_deletion() {
    let said = |text: String| {
        let folder = folder(&[("log", text.as_bytes())]);
        let done = import(&["-q"], &[&folder.path().join("log")]);
        done.succeeds().stdout.clone()
    };
    // A quarter of a megabyte, and five.
    let short = said(iostat(4, 1_000));
    assert!(short.contains("stalled reads for 15.0 s"), "{short}");
    assert_eq!(said(iostat(4, 20_000)), short);
}

#[test]
fn logs_that_others_laid_out_or_spoiled() {
    let plain = iostat(4, 90);
    let verdict_of = |text: &str| {
        let folder = folder(&[("log", text.as_bytes())]);
        let path = folder.path().join("log");
        let done = import(&["-q"], &[&path]);
        done.succeeds().stdout.clone()
    };
    let said = verdict_of(&plain);
    assert!(said.contains("stalled reads for 15.0 s"), "{said}");
    let total = |line: &str| match line.starts_with("sdb") {
        true => format!("{line}\n all{}\n", &line[3..]),
        false => format!("{line}\n"),
    };
    let device = |line: &str| {
        let mut tokens = line.split_whitespace();
        let names = "r/s rkB/s r_await w/s wkB/s w_await d/s dkB/s d_await aqu-sz".split(' ');
        let name = tokens.next().unwrap().to_owned();
        let figures = names
            .zip(tokens)
            .map(|(name, n)| (name.to_owned(), Value::from(n.parse::<f64>().unwrap())));
        let mut all: serde_json::Map<String, Value> = figures.collect();
        all.insert("disk_device".to_owned(), name.into());
        Value::Object(all)
    };
    let rows: Vec<&str> = plain
        .lines()
        .filter(|line| line.starts_with("sd"))
        .collect();
    let reports: Vec<Value> = (rows.chunks(2))
        .map(|two| serde_json::json!({"disk": [device(two[0]), device(two[1])]}))
        .collect();
    let json =
        serde_json::json!({"sysstat": {"hosts": [{"nodename": "db7", "statistics": reports}]}});
    for (what, text) in [
        ("CRLF", plain.replace('\n', "\r\n")),
        ("commas", plain.replace(".00", ",00").replace(".80", ",80")),
        (
            "a path's name",
            plain
                .replace("sda", "cciss/c0d0p1")
                .replace("sdb", "nvme-subsys0.n1"),
        ),
        ("a group", plain.lines().map(total).collect()),
        ("another text before it", format!("$ iostat -x 1\n{plain}")),
        ("JSON in a line", json.to_string()),
        (
            "JSON indented",
            serde_json::to_string_pretty(&json).unwrap(),
        ),
    ] {
        assert_eq!(verdict_of(&text), said, "{what}");
    }
    // Two runs, one after the other, the first cut off in a row.
    let two = format!("{}\n{plain}", &plain[..plain.len() - 40]);
    let said = verdict_of(&two);
    assert!(said.contains("stalled reads for 30.0 s"), "{said}");
    let basic =
        "Device tps kB/s rqm/s await areq-sz aqu-sz %util\nsda 1.0 2.0 0.0 1.0 4.0 0.1 9.0\n";
    let folder = folder(&[("short", basic.as_bytes())]);
    import(&[], &[folder.path()]).fails_with(2, &["without -s"]);
}
