//! `trimbench import` of what people attach: other tools' output, compressed logs, fio's documents.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use crate::import::{folder, import, iostat, near, verdict};

#[test]
fn import_names_another_tool_and_what_to_record_instead() {
    let folder = folder(&[
        ("a", b"smartctl 7.4 2023-08-01 r5530\n\nDevice Model:  X\n"),
        (
            "b",
            b"procs ---memory--- ---swap--\n r  b   swpd   free\n 1  0 0 1\n",
        ),
        (
            "c",
            b"Jun 19 05:02:00 box sar[7]: 10:00:01  DEV  tps  rkB/s\n",
        ),
        (
            "d",
            b"rr: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=3003\n",
        ),
        ("e", b"4;fio-3.36;rr;0;0;72000;11998\n"),
        ("f", b"PK\x03\x04 and more"),
    ]);
    let iostat = "record `iostat -x -y -t 1`";
    for (name, words) in [
        ("a", ["output of smartctl", iostat]),
        ("b", ["output of vmstat", iostat]),
        ("c", ["output of sar", iostat]),
        ("d", ["fio's normal output", "--write_iops_log"]),
        ("e", ["fio's terse output", "--write_iops_log"]),
        ("f", ["an archive", "Unpack it"]),
    ] {
        import(&[], &[&folder.path().join(name)]).fails_with(2, &words);
    }
}

/// `sadf` counts reads, writes and discards in one figure: of a short log, with writes beside the
/// discards, nothing tells how many were discards.
#[test]
fn import_reads_discards_whose_number_sadf_does_not_tell() {
    let second = |at: u32, tps: u32, read: u32, written: u32, discarded: u32| {
        format!(
            r#"{{"timestamp": {{"date": "2024-06-19", "time": "05:02:0{at}", "utc": 1}}, "disk": [
{{"disk-device": "sdb", "tps": {tps}.00, "rkB": {read}.00, "wkB": {written}.00, "dkB": {discarded}.00, "areq-sz": 4.00, "aqu-sz": 0.50, "await": 0.10}}]}}"#
        )
    };
    let seconds = [
        second(1, 6000, 24_000, 0, 0),
        second(2, 40_000, 159_900, 2048, 4_194_304),
        second(3, 900, 2000, 150_000, 2_097_152),
    ]
    .join(",\n");
    let text =
        format!(r#"{{"sysstat": {{"hosts": [{{"nodename": "b", "statistics": [{seconds}]}}]}}}}"#);
    let folder = folder(&[("sadf.json", text.as_bytes())]);
    let path = folder.path().join("sadf.json");
    let discard = &verdict(&[], &[&path])["discard"];
    assert_eq!(discard["bytes"], (4_194_304_u64 + 2_097_152) << 10);
    assert!(
        discard["commands"].is_null() && discard["mean_bytes"].is_null(),
        "{discard}"
    );
    let shown = import(&[], &[&path]).succeeds().text();
    assert!(shown.contains("6.0 GiB in all"), "{shown}");
    for wrong in [
        "no discards",
        "Nothing was read",
        "nothing was read",
        "nothing could stall",
    ] {
        assert!(!shown.contains(wrong), "{wrong:?} in:\n{shown}");
    }
}

#[test]
fn import_of_an_old_sysstat_advises_a_newer_one_first() {
    let row = |reads: u32| {
        format!(
            "Device:  rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await svctm %util\n\
             sdc 0.00 0.00 {reads}.00 5.00 {}.00 40.00 8.00 8.00 0.40 0.40 0.30 0.05 100.00\n\n",
            reads * 4
        )
    };
    let reads = |second| {
        if (20..24).contains(&second) {
            300
        } else {
            9000
        }
    };
    let text: String = (0..50).map(|second| row(reads(second))).collect();
    let folder = folder(&[("old", text.as_bytes())]);
    let shown = import(&[], &[&folder.path().join("old")]).succeeds().text();
    let advice = shown.lines().find(|line| line.starts_with("- ")).unwrap();
    let words = "- The log has no columns of discards";
    assert!(advice.starts_with(words), "{shown}");
    for words in ["sysstat 12.1", "Linux 4.18", "devices    sdc"] {
        assert!(shown.contains(words), "{words:?} missing in:\n{shown}");
    }
    for wrong in [
        "none known",
        "No block device",
        "switched off",
        "Record `iostat",
    ] {
        assert!(!shown.contains(wrong), "{wrong:?} in:\n{shown}");
    }
}

#[test]
fn import_takes_conditions_as_run_does() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(iostat(0, 60).as_bytes()).unwrap();
    let folder = folder(&[
        ("stall.txt.gz", &gzip.finish().unwrap()),
        ("none.txt", iostat(0, 15).as_bytes()),
    ]);
    let (stall, none) = (
        folder.path().join("stall.txt.gz"),
        folder.path().join("none.txt"),
    );
    let code = |condition: &str, path: &Path| import(&["--fail-on", condition], &[path]).code();
    assert_eq!(code("stall>1s", &stall), Some(3));
    assert_eq!(code("stall(sda)>20s", &stall), Some(0));
    assert_eq!(code("stall>1s", &none), Some(1));
    let asked = |condition: &str| import(&["--fail-on", condition], &[&stall]);
    asked("stall(sdx)>1s").fails_with(2, &["no actor 'sdx'", "sda"]);
    asked("p99<5").fails_with(2, &["has no unit", "5ms"]);
    let held = import(&["-q", "--fail-on", "depth<10%"], &[&stall]);
    assert!(held.stdout.contains("depth<10%"), "{}", held.stdout);
}

#[test]
fn documents_of_status_interval_are_a_series_and_a_clients_host_is_named() {
    let mut text = String::new();
    for at in 1..=40_u64 {
        let reads =
            1000 * at.min(20) + 40 * at.saturating_sub(20).min(5) + 1000 * at.saturating_sub(25);
        writeln!(
            text,
            "{{\"fio version\": \"fio-3.36\", \"timestamp_ms\": {}, \"client_stats\": [{{\"jobname\": \"rr\", \
             \"hostname\": \"db7\", \"job options\": {{\"rw\": \"randread\", \"iodepth\": \"8\"}}, \"read\": \
             {{\"total_ios\": {reads}, \"io_bytes\": {}, \"runtime\": {}}}}}, {{\"jobname\": \"All clients\"}}]}}",
            1_718_773_354_000 + at * 1000,
            reads * 4096,
            at * 1000
        )
        .unwrap();
    }
    let folder = folder(&[("status.json", text.as_bytes())]);
    let verdict = verdict(&[], &[&folder.path().join("status.json")]);
    let seen = &verdict["foreground"][0];
    assert_eq!(seen["actor"], "fio-rr-db7-read");
    near(&seen["dips"][0]["seconds"], 5.0, 0.1);
}
