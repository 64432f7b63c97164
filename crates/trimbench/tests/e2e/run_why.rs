//! `trimbench run --why`: who of the actors waited in what.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::gate::{Need, alone, beside, few, lacks, times};
use crate::common::run::{as_plain_user, copied_to, run, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::quick::{Files, Measured, command_on, measure};

/// A drive that takes so long for a discard, and writes fast, so that a test is over soon.
fn drive(discard: &str) -> Vec<String> {
    let figure = format!("a={discard}");
    let set = ["--set", &figure, "--set", "write.latency=0"];
    let size = ["--profile", "870-evo", "--size", "3G"];
    let all = [&size[..], &set, &["--set", "write.per_mib=0ns/MiB"]].concat();
    all.into_iter().map(str::to_owned).collect()
}

/// Succeeds, or fails the test.
#[track_caller]
fn must(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {done:?}");
}

/// Mounted until it is dropped.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn ext4_without_journal(device: &Path, at: &'a Path) -> Mounted<'a> {
        let device = device.to_str().unwrap();
        must("mkfs.ext4", &["-q", "-F", "-O", "^has_journal", device]);
        std::fs::create_dir_all(at).unwrap();
        must("mount", &["-o", "discard", device, at.to_str().unwrap()]);
        Mounted(at)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
        let _ = std::fs::remove_dir(self.0);
    }
}

/// A run on a file system without a journal, which discards within `unlink`.
fn measured_in_call(discard: &str, options: &[&str]) -> Measured {
    let lab = OwnLab::new();
    let mount = lab.mount();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let drive = drive(discard);
    let drive: Vec<&str> = drive.iter().map(String::as_str).collect();
    let device = lab.up(&name, &drive);
    let _mounted = Mounted::ext4_without_journal(&device, &mount);
    let files = Files::new();
    let options = [&["--why"][..], options].concat();
    let done = run(lab.in_here(command_on(&mount, &files, &options)));
    files.read(done).succeeds()
}

/// The seconds and the discards that an actor spent in a phase, by cause.
fn waits(measured: &Measured, actor: &str, cause: &str) -> (f64, u64) {
    let actors = measured.verdict["waits"]["actors"].as_array().unwrap();
    let own = actors.iter().filter(|one| one["actor"] == actor);
    let phases = own.flat_map(|one| one["phases"].as_array().unwrap());
    let delete = phases.filter(|one| one["phase"] == "delete");
    let waits = delete.flat_map(|one| one["waits"].as_array().unwrap());
    waits
        .filter(|one| one["cause"] == cause)
        .fold((0.0, 0), |sum, one| {
            let discards = one["discards"].as_u64().unwrap_or(0);
            (sum.0 + one["seconds"].as_f64().unwrap(), sum.1 + discards)
        })
}

/// How long the deletion's calls took by the deleter's own clock.
fn calls_s(measured: &Measured) -> f64 {
    measured.verdict["deletion"]["seconds"].as_f64().unwrap()
}

#[test]
fn the_deleter_waits_in_its_own_discards_and_the_readers_behind_them() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    let sizes = ["--size", "256M", "--set", "foreground.size=64M"];
    let measured = measured_in_call("400ms", &[&sizes[..], &["--baseline", "2s"]].concat());
    let text = measured.done.text();
    let (own_s, discards) = waits(&measured, "deleter", "in-discards");
    let took_s = calls_s(&measured);
    assert!(
        (own_s / took_s - 1.0).abs() < 0.1,
        "{own_s} of {took_s} s: {text}"
    );
    assert!(discards >= 4, "{discards}: {text}");
    let (behind_s, none) = waits(&measured, "reader", "behind-discards");
    assert!(
        behind_s > 0.5 * took_s && none == 0,
        "{behind_s} of {took_s} s: {text}"
    );
    // One line of the record has all of it, and the page shows it.
    let line = measured.lines("waits").next().unwrap();
    let discarding = line["timeline"]["discarding"].as_array().unwrap();
    assert!(
        discarding.iter().any(|share| share.as_f64() > Some(0.9)),
        "{line}"
    );
    let sentence = measured.verdict["waits"]["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("deleter ran for "), "{sentence}");
    assert!(sentence.contains("of its own (unlink"), "{sentence}");
    for part in ["  waits ", "behind discards"] {
        assert!(measured.done.stdout.contains(part), "{part}: {text}");
    }
    let record = tempfile::NamedTempFile::new().unwrap();
    let lines: Vec<String> = measured.record.iter().map(Value::to_string).collect();
    std::fs::write(record.path(), lines.join("\n")).unwrap();
    let mut page = trimbench();
    page.args(["report", "--format", "html"]).arg(record.path());
    let page = run(page);
    let html = &page.succeeds().stdout;
    for part in ["Who waited in what", "Waits of deleter", "its own discards"] {
        assert!(html.contains(part), "{part} is missing");
    }
}

#[test]
fn a_deletion_of_one_short_discard_is_never_missed() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = alone();
    // A busy machine looks late, and the deletion is over in a twentieth of a second.
    let load: Vec<_> = (0..2)
        .map(|_| {
            let mut busy = Command::new("sh");
            busy.args(["-c", "while :; do :; done"]).spawn().unwrap()
        })
        .collect();
    let tried = std::panic::catch_unwind(|| {
        for _ in 0..times(2, 10) {
            let measured = measured_in_call("50ms", &["--size", "1M"]);
            let text = measured.done.text();
            let (own_s, discards) = waits(&measured, "deleter", "in-discards");
            let took_s = calls_s(&measured);
            eprintln!("{own_s:.4} of {took_s:.4} s in {discards}");
            assert!(discards >= 1, "{text}");
            assert!(
                own_s > 0.7 * took_s && own_s < 1.05 * took_s,
                "{own_s} of {took_s} s: {text}"
            );
        }
    });
    for mut busy in load {
        let _ = busy.kill();
        let _ = busy.wait();
    }
    if let Err(panic) = tried {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn a_btrfs_commit_and_a_program_that_deletes_wait_in_their_own_discards() {
    if lacks(NEEDS) || lacks(&[Need::Tool("rm")]) {
        return;
    }
    let _turn = few();
    let lab = OwnLab::new();
    let mount = lab.mount();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let drive = drive("200ms");
    let mut up: Vec<&str> = drive.iter().map(String::as_str).collect();
    up.extend(["--fs", "btrfs", "-o", "discard=sync", "--mount"]);
    up.push(mount.to_str().unwrap());
    lab.up(&name, &up);
    let files = Files::new();
    let options = ["--why", "--size", "128M", "--delete", "rm {}"];
    let measured = files.read(run(lab.in_here(command_on(&mount, &files, &options))));
    let measured = measured.succeeds();
    let (own_s, discards) = waits(&measured, "commit", "in-discards");
    assert!(
        own_s > 0.1 && discards > 0,
        "{own_s} {discards}: {}",
        measured.done.text()
    );
    drop(lab);
    let options = ["--size", "128M", "--delete", "rm {}"];
    let measured = measured_in_call("200ms", &options);
    let (own_s, discards) = waits(&measured, "deleter", "in-discards");
    let took_s = calls_s(&measured);
    let text = measured.done.text();
    assert!(
        own_s > 0.5 * took_s && discards > 0,
        "{own_s} of {took_s} s: {text}"
    );
}

#[test]
fn without_root_or_discards_a_run_says_what_nobody_found_out() {
    let _turn = beside();
    let place = tempfile::tempdir().unwrap();
    let with = measure(place.path(), &["--why"]).succeeds();
    let actors = with.verdict["waits"]["actors"].as_array().unwrap();
    assert!(
        actors.iter().any(|one| one["actor"] == "reader"),
        "{actors:?}"
    );
    // Without the option nobody looks.
    let without = measure(place.path(), &[]).succeeds();
    assert!(without.verdict.get("waits").is_none());
    assert_eq!(without.lines("waits").count(), 0);
    if lacks(&[Need::Root, Need::Tool("setpriv")]) {
        return;
    }
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(place.path(), open).unwrap();
    let mut command = as_plain_user(&copied_to(place.path()));
    command.arg("run").arg(place.path());
    command.args(["--why", "--size", "32M", "--set", "foreground.size=16M"]);
    command.args([
        "--settle",
        "0s",
        "--baseline",
        "500ms",
        "--recovery",
        "200ms",
    ]);
    command.current_dir("/");
    let done = run(command);
    let text = done.text();
    // Lines are broken where they become too long.
    let words: Vec<_> = done.stdout.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("Not found out:"), "{text}");
    assert!(words.contains("who sends discards"), "{text}");
}
