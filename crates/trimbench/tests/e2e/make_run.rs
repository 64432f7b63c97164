//! `make run` says what it installs and writes before it does.

use std::path::Path;
use std::process::Command;

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn output(command: &mut Command) -> String {
    let done = command.current_dir(repository()).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}");
    text
}

#[test]
fn make_run_lists_what_it_installs_and_writes_first() {
    // 8 GiB are deleted, and 1 GiB is read.
    let listed = output(Command::new("scripts/about-run").args(["/data", "8388608k"]));
    for part in [
        "installs",
        "downloads",
        "9.0 GiB into /data",
        "removes both",
    ] {
        assert!(listed.contains(part), "{part} missing in:\n{listed}");
    }
    let steps = output(Command::new("make").args([
        "--no-print-directory",
        "--dry-run",
        "run",
        "RUN_SIZE=1048576k",
    ]));
    let first = steps.lines().next().unwrap();
    assert_eq!(first, "scripts/about-run '.' '1048576k'", "{steps}");
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    assert!(
        readme.contains("9 GiB"),
        "README.md says how much is written"
    );
}
