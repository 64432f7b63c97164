//! A scenario of the user's own: a mistake in it is reported with its place, and options
//! override it.

use std::path::Path;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::LoopFs;
use crate::common::run::{Done, run, trimbench};
use crate::quick::measure;

/// Runs a scenario's file with `--dry-run`.
pub fn dry(scenario: &Path, arguments: &[&str]) -> Done {
    let place = tempfile::tempdir().unwrap();
    let mut command = trimbench();
    command.args(["run", "--dry-run", "--scenario"]);
    command.arg(scenario).args(arguments).arg(place.path());
    run(command)
}

/// A file with some text, refused with exit code 2 and some words.
#[track_caller]
fn refused(text: &str, arguments: &[&str], words: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    std::fs::write(&path, text).unwrap();
    dry(&path, arguments).fails_with(2, words);
}

#[test]
fn mistakes_are_told_with_file_line_and_column() {
    let file = "mine.toml: ";
    refused("[deletion\n", &[], &[file, "line 1, column "]);
    refused(
        "[deletion]\nhow = \"unlink\"\nparalel = 2\n",
        &[],
        &[
            file,
            "line 3, column 1",
            "'paralel'",
            "did you mean 'parallel'?",
        ],
    );
    refused(
        "[[actor]]\nop = \"rede\"\n",
        &[],
        &[
            "line 2, column 6",
            "there is no operation 'rede'; did you mean 'read'?",
        ],
    );
    refused(
        "[phases]\nbaseline = \"ten\"\n",
        &[],
        &["line 2, column 12", "baseline", "'ten'"],
    );
    refused(
        "[deletions]\n",
        &[],
        &["line 1", "did you mean 'deletion'?"],
    );
    refused(
        "[deletion]\nlevels = 3\n",
        &[],
        &[
            "line 2, column 1",
            "'levels': it only does something with how = lsm",
        ],
    );
}

#[test]
fn what_nobody_uses_is_refused_and_where_a_key_belongs_is_told() {
    let save = "[[actor]]\nop = \"save\"\n";
    refused(
        &format!("canary = 0\n[foreground]\nsize = \"1G\"\n{save}"),
        &[],
        &["line 3, column 8", "'size'", "the canary"],
    );
    refused(
        &format!("canary = 0\nengine = \"sync\"\n{save}"),
        &[],
        &["line 2, column 10", "'engine'", "the canary"],
    );
    refused(
        "size = \"1G\"\n",
        &[],
        &[
            "line 1, column 1",
            "size in [foreground] or [[actor]] or [deletion]",
        ],
    );
    refused(
        &format!("{save}name = \"a\"\n{save}name = \"a\"\n"),
        &[],
        &["line 4, column 1", "two actors are named 'a'"],
    );
    refused(
        "",
        &["--actor", "name=a,op=save", "--actor", "name=a,op=read"],
        &["two actors are named 'a'"],
    );
}

#[test]
fn what_is_no_text_is_refused_and_lines_of_any_kind_are_read() {
    dry(Path::new("/dev/zero"), &[]).fails_with(2, &["/dev/zero", "larger than 1 MiB"]);
    dry(Path::new("/proc"), &[]).fails_with(2, &["/proc", "readable"]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    std::fs::write(&path, b"\xff\xfe[\0").unwrap();
    dry(&path, &[]).fails_with(2, &["mine.toml", "UTF-8"]);
    std::fs::write(&path, "\u{feff}[deletion]\r\nsize = \"48M\"\r\n").unwrap();
    let read = dry(&path, &["--engine", "sync"]);
    assert!(!read.stderr.contains("mine.toml"), "{}", read.text());
}

#[test]
fn a_control_of_the_file_is_changed_and_turned_off() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    let text = "control = \"remount\"\n[deletion]\nsize = \"24M\"\n\
                [foreground]\nsize = \"16M\"\n[judge]\nlow = \"30%\"\n";
    std::fs::write(&path, text).unwrap();
    let said = |switches: &[&str]| {
        let mut command = trimbench();
        command.args(["run", "--dry-run", "--scenario"]).arg(&path);
        command.args(switches).arg(fs.path());
        run(command).succeeds().stdout.clone()
    };
    assert!(said(&[]).contains("remounted nodiscard"));
    assert!(!said(&["--control=off"]).contains("Control"));
    assert!(said(&["--control"]).contains("second name"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    dry(Path::new("/no/such/mine.toml"), &[]).fails_with(2, &["/no/such/mine.toml", "readable"]);
}

#[test]
fn an_option_that_the_scenario_makes_useless_is_refused() {
    let lsm = "[deletion]\nhow = \"lsm\"\n";
    refused(lsm, &["--files", "3"], &["--files", "scenario 'mine'"]);
    refused(
        "[[actor]]\nop = \"save\"\n",
        &["--set", "actor.buffered=true"],
        &["--set actor.buffered", "op = read", "scenario 'mine'"],
    );
}

#[test]
fn options_override_the_file_and_actors_replace_actors() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nightly.toml");
    let text = r#"
        seed = 7
        canary = 0
        [[actor]]
        name = "db"
        op = "mixed"
        reads = "60%"
        depth = 3
        [[actor]]
        name = "wal"
        op = "append"
        size = "8M"
        [deletion]
        how = "truncate"
        chunk = "1M"
        size = "48M"
        files = 2
    "#;
    std::fs::write(&path, text).unwrap();
    let file = path.to_string_lossy().into_owned();
    let over = [
        "--scenario",
        &file,
        "--size",
        "24M",
        "--delete",
        "unlink",
        "--depth",
        "5",
        "--actor",
        "name=wal,op=append-fdatasync,rate=50,size=8M",
    ];
    let measured = measure(fs.path(), &over).succeeds();
    let plan = &measured.head()["scenario"];
    assert_eq!(plan["scenario"], "nightly");
    assert_eq!(plan["seed"], 7);
    assert_eq!(plan["deletion"]["size_bytes"], 24 << 20);
    assert_eq!(plan["deletion"]["files"], 2);
    let plan_text = plan.to_string();
    assert!(plan_text.contains("\"read_percent\":60"), "{plan_text}");
    assert!(plan_text.contains("\"depth\":5"), "{plan_text}");
    assert!(plan_text.contains("append-fdatasync"), "{plan_text}");
    assert!(!plan_text.contains("truncate"), "{plan_text}");
    assert_eq!(measured.deletion()["files"], 2);
    let actors = measured.head()["actors"].as_array().unwrap();
    let names: Vec<_> = actors.iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["db-read", "db-write", "wal"]);
}
