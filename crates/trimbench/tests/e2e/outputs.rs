//! Options that say what is printed and written.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::{run, trimbench};
use crate::quick::{Files, command_on, conforms, measure};

fn quiet_fs() -> Option<LoopFs> {
    (!lacks(LOOP_EXT4)).then(|| LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs))
}

/// `trimbench run` that is soon done, and nothing else.
fn short_run() -> Command {
    let mut command = trimbench();
    command.args([
        "run",
        "--delete",
        "none",
        "--set",
        "foreground.size=16M",
        "--settle",
        "0s",
    ]);
    command.args(["--baseline", "500ms", "--recovery", "200ms"]);
    command
}

#[test]
fn the_verdict_is_printed_for_people() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let measured = measure(fs.path(), &[]).succeeds();
    let printed = &measured.done.stdout;
    let sentence = measured.verdict["summary"].as_str().unwrap();
    // It may be broken over lines.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words(printed).contains(&words(sentence)),
        "{sentence:?} missing in:\n{printed}"
    );
    for word in ["ext4", "p50", "p99.9", "before", "while deleting", "after"] {
        assert!(printed.contains(word), "{word:?} missing in:\n{printed}");
    }
    assert!(
        !printed.contains('\x1b'),
        "colours, but not on a terminal:\n{printed}"
    );
    assert!(!measured.done.stderr.contains('\x1b'));
    let told = measured.done.stderr.matches("writing back").count();
    assert_eq!(told, 1, "{}", measured.done.stderr);
}

#[test]
fn the_verdict_file_has_the_documented_form() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let verdict = measure(fs.path(), &[]).succeeds().verdict;
    conforms(&verdict);
    // The schema lets fields be added; that none is missing it must notice.
    let missing = |field: &str| {
        let mut less = verdict.clone();
        less.as_object_mut().unwrap().remove(field);
        std::panic::catch_unwind(|| conforms(&less)).is_err()
    };
    for field in [
        "schema",
        "verdict",
        "summary",
        "foreground",
        "discard",
        "deletion",
        "fit",
    ] {
        assert!(missing(field), "{field} may be missing");
    }
}

#[test]
fn json_to_standard_output_leaves_nothing_else_there() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let mut command = short_run();
    command.args(["--json", "-"]).arg(fs.path());
    let done = run(command);
    done.succeeds();
    let verdict: Value = serde_json::from_str(&done.stdout).unwrap();
    conforms(&verdict);
}

#[test]
fn output_ending_in_zst_is_compressed() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl.zst");
    let mut command = short_run();
    command.arg("--output").arg(&path).arg(fs.path());
    run(command).succeeds();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[..4], [0x28, 0xb5, 0x2f, 0xfd], "no zstd frame");
    let record = record::RecordReader::read(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(record.head.schema, "trimbench.run/1");
    assert!(record.end.is_some());
}

#[test]
fn quiet_prints_the_sentence_alone() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    for flag in ["--quiet", "-q"] {
        let measured = measure(fs.path(), &["--delete", "none", flag]).succeeds();
        let sentence = measured.verdict["summary"].as_str().unwrap();
        assert_eq!(measured.done.stdout.trim(), sentence);
        assert_eq!(measured.done.stderr, "");
    }
}

#[test]
fn fail_on_gives_exit_code_3_when_it_holds() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let conditions = ["--fail-on", "p99>24h", "--fail-on", "p99>1ns"];
    let both = measure(fs.path(), &conditions);
    // Every run has a p99 above no time at all, and none is a day long.
    assert_eq!(both.done.code(), Some(3), "{}", both.done.text());
    let text = both.done.text();
    let line = |start: &str| text.lines().any(|line| line.contains(start));
    assert!(line("--fail-on  p99>1ns failed: "), "{text}");
    assert!(line(", limit 1 ns"), "{text}");
    let conditions = both.verdict["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 2);
    assert_eq!(conditions[1]["condition"], "p99>1ns");
    assert_eq!(conditions[1]["result"], "held");
    assert_eq!(conditions[1]["unit"], "s");
    assert!(conditions[1]["value"].as_f64().unwrap() > 1e-9);
    // The work was done all the same.
    assert_eq!(both.end()["reason"], "completed");
    measure(fs.path(), &["--fail-on", "nonsense>1"])
        .done
        .fails_with(2, &["--fail-on"]);
}

#[test]
fn fail_on_does_not_pass_what_was_not_tested() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    // Without discards, and without a deletion: no stall, and no proof of anything.
    for more in [&[][..], &["--delete", "none"]] {
        let arguments = [&["--fail-on", "stall>1s"], more].concat();
        let measured = measure(fs.path(), &arguments);
        measured.done.fails_with(1, &["nothing was qualified"]);
        assert_eq!(measured.end()["reason"], "completed");
    }
}

#[test]
fn fail_on_passes_what_was_tested() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let condition = "p99(canary)>24h";
    let arguments = ["--fail-on", condition, "--size", "512M", "--baseline", "2s"];
    let measured = measure(fs.path(), &arguments);
    let told = measured.verdict["verdict"] != "inconclusive";
    let (code, result) = if told { (0, "passed") } else { (1, "unknown") };
    let text = measured.done.text();
    assert_eq!(measured.done.code(), Some(code), "{text}");
    let line = format!("--fail-on  {condition} {result}: canary ");
    assert!(text.contains(&line), "{line:?} missing in:\n{text}");
    assert_eq!(measured.verdict["conditions"][0]["actor"], "canary");
    assert_eq!(measured.verdict["conditions"][0]["result"], result);
}

#[test]
fn fail_on_refuses_an_actor_that_the_run_does_not_have() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let mut command = short_run();
    command.args(["--fail-on", "stall(wal)>1s"]).arg(fs.path());
    run(command).fails_with(2, &["stall(wal)>1s", "no actor 'wal'", "reader, canary"]);
    assert_eq!(fs.names(), [""; 0]);
}

#[test]
fn the_verdict_file_says_which_run_it_is_of_and_on_what() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let measured = measure(fs.path(), &["--fail-on", "stall>1h"]);
    let run = &measured.verdict["origin"];
    let target = &run["targets"][0];
    assert_eq!(run["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["arguments"][0], "run");
    let arguments = run["arguments"].as_array().unwrap();
    assert!(arguments.iter().any(|argument| argument == "stall>1h"));
    let time = run["time"].as_str().unwrap();
    assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
    assert_eq!(target["path"], fs.path().display().to_string());
    assert_eq!(target["device"], fs.device().path().display().to_string());
    assert_eq!(target["file_system"], "ext4");
    assert_eq!(target["discard"], "off");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(run["kernel"], kernel.trim());
    assert_eq!(target["stack"][0]["kind"], "loop");
    assert!(run["drives"][0]["size_bytes"].as_u64() > Some(0));
    let again = measure(fs.path(), &[]);
    assert_ne!(again.verdict["origin"]["id"], run["id"]);
}

#[test]
fn one_file_for_both_outputs_is_refused() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("both");
    let link = directory.path().join("link");
    for (dry, before) in [(true, None), (false, None), (false, Some("precious"))] {
        if let Some(text) = before {
            fs::write(&file, text).unwrap();
            fs::hard_link(&file, &link).unwrap();
        }
        let other = if before.is_some() { &link } else { &file };
        let mut command = short_run();
        command.arg("--json").arg(&file).arg("--output").arg(other);
        command.args(dry.then_some("--dry-run")).arg(fs.path());
        run(command).fails_with(2, &["--json", "--output", "same file"]);
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), before);
        assert_eq!(fs.names(), [""; 0]);
    }
}

#[test]
fn a_record_is_not_written_to_standard_output() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = short_run();
    command.args(["--output", "-"]).arg(directory.path());
    run(command).fails_with(2, &["--output", "give a file"]);
}

#[test]
fn dry_run_says_what_and_does_nothing() {
    let _turn = beside();
    let Some(fs) = quiet_fs() else { return };
    let files = Files::new();
    let free = fs.free();
    let done = run(command_on(fs.path(), &files, &["--dry-run"]));
    done.succeeds();
    assert_eq!(fs.names(), [""; 0]);
    assert_eq!(fs.free(), free);
    assert!(!files.verdict().exists() && !files.record().exists());
    let device = fs.device().path().display().to_string();
    for word in ["ext4", "32", "MiB", device.trim_start_matches("/dev/")] {
        assert!(
            done.stdout.contains(word),
            "{word:?} missing in:\n{}",
            done.stdout
        );
    }
}

#[test]
fn version_is_printed() {
    let mut command = trimbench();
    command.arg("--version");
    let done = run(command);
    assert_eq!(
        done.succeeds().stdout.trim(),
        concat!("trimbench ", env!("CARGO_PKG_VERSION"))
    );
}
