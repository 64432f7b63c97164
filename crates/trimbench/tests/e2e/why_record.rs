//! `trimbench why --record`, `--since` and `--recording`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::gate::{few, lacks};
use crate::common::run::{Running, run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::why::{FILES, conforms, script, why};

/// A recorder of a test's own, when it is ready.
#[track_caller]
fn recorder(directory: &Path) -> Running {
    let mut command = trimbench();
    command
        .args(["why", "--record", "--set"])
        .arg(format!("directory={}", directory.display()));
    let running = start(command);
    let until = Instant::now() + Duration::from_secs(30);
    while !directory.join("recorder.socket").exists() {
        assert!(Instant::now() < until, "no recorder started");
        std::thread::sleep(Duration::from_millis(50));
    }
    running
}

#[test]
fn a_recorder_answers_what_waited_before_anybody_asked() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recorder");
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount();
    let at = mount.to_str().unwrap();
    let up = ["--profile", "ocz-agility-2", "--size", "8G", "--fs", "ext4"];
    let device = lab.up(
        &name,
        &[&up[..], &["--mount", at, "-o", "discard"]].concat(),
    );
    let shell = |text: &str| {
        let words = script(&mount, text);
        let done = Command::new(&words[0]).args(&words[1..]).status();
        assert!(done.unwrap().success());
    };
    shell(FILES);
    let recorder = recorder(&directory);
    // When it has the lock, another must not start.
    let mut second = trimbench();
    second
        .args(["why", "--record", "--set"])
        .arg(format!("directory={}", directory.display()));
    let own = format!("process {}", recorder.pid().as_raw_nonzero());
    run(second).fails_with(2, &["runs already", &own]);
    // On a busy machine the recorder may miss one that lives for seconds.
    shell(
        "rm -f f*[02468]; sync -f .
        for i in 1 2 3 4; do dd if=/dev/zero of=w$i bs=4k count=60 oflag=dsync status=none & done; wait",
    );
    let outputs = ["json", "folded"].map(|kind| folder.path().join(format!("why.{kind}")));
    let mut command = trimbench();
    command
        .args(["why", "--since", "0s", "--set"])
        .arg(format!("directory={}", directory.display()));
    run(command).succeeds();
    // What it recommends holds from its start.
    let mut command = trimbench();
    command
        .args(["why", "--since", "5m", "--set"])
        .arg(format!("directory={}", directory.display()));
    let all = run(command);
    assert!(
        all.succeeds().stderr.contains("the recorder has kept"),
        "{}",
        all.text()
    );
    // The oldest moment that it has: that of its start, which a wrong time names.
    let date = Command::new("date")
        .args(["-d", "-2 hours", "+%H:%M"])
        .output();
    let two_hours_ago = String::from_utf8(date.unwrap().stdout).unwrap();
    let mut command = trimbench();
    command
        .args(["why", "--since", two_hours_ago.trim(), "--set"])
        .arg(format!("directory={}", directory.display()));
    let refused = run(command);
    refused.fails_with(2, &["before all that the recorder has kept", "--since "]);
    let oldest = refused.stderr.split("`--since ").nth(1).unwrap()[..8].to_owned();
    let mut command = trimbench();
    command
        .args(["why", "--since", &oldest, "--for", "10m", "--set"])
        .arg(format!("directory={}", directory.display()));
    command.arg("--json").arg(&outputs[0]);
    command.arg("--output").arg(&outputs[1]);
    let done = run(command);
    let read = |index: usize| std::fs::read_to_string(&outputs[index]).unwrap();
    eprintln!("{}", done.succeeds().stdout);
    let found = conforms(&read(0));
    let dd = |found: &Value| -> Value {
        let victims = found["victims"].as_array().unwrap().iter();
        let dd = victims.filter(|one| one["name"] == "dd");
        dd.max_by(|a, b| {
            a["discards_s"]
                .as_f64()
                .partial_cmp(&b["discards_s"].as_f64())
                .unwrap()
        })
        .cloned()
        .unwrap_or_default()
    };
    let waited = dd(&found);
    assert!(waited["discards_s"].as_f64().unwrap() > 0.5, "{found:#}");
    let senders = found["senders"].as_array().unwrap();
    let sent = senders.iter().find(|one| {
        one["reason"] == "ext-commit" && device.ends_with(one["device"].as_str().unwrap())
    });
    // While other tests free much, the recorder leaves out deletions. The kernel may have forgotten
    // the name of a process that has ended.
    let by_rm = |deletion: &Value| {
        let program = deletion["program"].as_str().unwrap();
        program == "rm" || program == format!("process {}", deletion["pid"])
    };
    let deletion = &sent.unwrap()["deletion"];
    assert!(deletion.is_null() || by_rm(deletion), "{senders:#?}");
    assert!(
        read(1).lines().any(|line| line.starts_with("dd;")),
        "{}",
        read(1)
    );
    // A signal makes it write a file, which says the same of one process.
    recorder.signal(rustix::process::Signal::USR1);
    let recording = || {
        let all = std::fs::read_dir(&directory).unwrap().flatten();
        let mut all = all.map(|entry| entry.path());
        all.find(|path| path.extension().is_some_and(|kind| kind == "recording"))
    };
    let until = Instant::now() + Duration::from_secs(30);
    while recording().is_none() {
        assert!(Instant::now() < until, "no recording was written");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = waited["pid"].to_string();
    let path = recording().unwrap();
    let again = why(&["--recording", path.to_str().unwrap(), "--pid", &pid]);
    assert_eq!(again["victims"][0]["name"], "dd", "{again:#}");
    assert_eq!(again["victims"].as_array().unwrap().len(), 1);
    // Its memory is locked and small.
    let pid = recorder.pid().as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let kib = |key: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert!(kib("VmLck:") > 0 && kib("VmHWM:") < 32 << 10, "{status}");
    recorder.signal(rustix::process::Signal::TERM);
    assert_eq!(recorder.wait().code(), Some(0));
    let mut command = trimbench();
    command
        .args(["why", "--since", "5m", "--set"])
        .arg(format!("directory={}", directory.display()));
    run(command).fails_with(2, &["no recorder runs", "why --record"]);
    std::fs::write(folder.path().join("none"), "{}\n").unwrap();
    let mut command = trimbench();
    command
        .args(["why", "--recording"])
        .arg(folder.path().join("none"));
    run(command).fails_with(2, &["line 1 is no line of a recording"]);
}
