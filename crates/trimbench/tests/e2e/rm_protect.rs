//! `--protect`: the waits for I/O of one control group.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::gate::{beside, lacks, skip};
use crate::common::run::{run, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::rm_place::{rm, written};

/// A control group of version 2 with a process that reads in it.
struct Reading {
    group: PathBuf,
    process: Child,
}

impl Reading {
    /// `None` where the machine has no such groups.
    fn start(lab: &OwnLab, name: &str, file: &Path) -> Option<Reading> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let root = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (at, kind) = (words.next()?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(at))
        });
        let Some(root) = root.filter(|root| root.join("io.pressure").exists()) else {
            skip("need control groups of version 2");
            return None;
        };
        let group = root.join(name);
        fs::create_dir(&group).unwrap();
        let line = "echo $$ > \"$0/cgroup.procs\"; \
                    while dd if=\"$1\" of=/dev/null bs=4k count=1 iflag=direct status=none; do sleep 0.02; done";
        let mut command = Command::new("sh");
        command.args(["-c", line]).arg(&group).arg(file);
        command.stdout(Stdio::null());
        let process = lab.in_here(command).spawn().unwrap();
        Some(Reading { group, process })
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let _ = fs::write(self.group.join("cgroup.kill"), "1");
        let _ = self.process.wait();
        while fs::remove_dir(&self.group).is_err_and(|error| error.raw_os_error() == Some(16)) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_group_that_waits_longer_makes_rm_slower_and_is_reported() {
    let _turn = beside();
    if lacks(NEEDS) {
        return;
    }
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount().to_string_lossy().into_owned();
    let drive = ["--profile", "870-evo", "--size", "1G", "--fs", "ext4"];
    lab.up(
        &name,
        &[&drive[..], &["-o", "discard", "--mount", &mount]].concat(),
    );
    // A second of discards in all.
    lab.lab(&["set", &name, "b=20ms/MiB"]).succeeds();
    let here = Path::new(&mount);
    let file = here.join("read");
    let bytes = fs::File::create(&file).unwrap();
    bytes.write_all_at(&vec![1; 8 << 20], 0).unwrap();
    bytes.sync_all().unwrap();
    let Some(reading) = Reading::start(&lab, &name, &file) else {
        return;
    };
    let group = reading.group.display().to_string();
    let mut took = Vec::new();
    for protect in [None, Some(format!("{group}=5%"))] {
        written(&here.join("big"), 48);
        let mut command = rm(here, &["big", "--slowdown", "60%", "--json", "-"]);
        if let Some(group) = &protect {
            command.args(["--protect", group]);
        }
        let done = run(lab.in_here(command));
        let all: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        let of = &all["file_systems"][0];
        // It observes a group for 3 s before it begins.
        let before = if protect.is_some() { 3.0 } else { 0.0 };
        took.push(of["seconds"].as_f64().unwrap() - before);
        assert_eq!(of["protected"].is_object(), protect.is_some(), "{of}");
        let sentence = format!("{group} waited for I/O ");
        assert_eq!(
            done.stderr.contains(&sentence),
            protect.is_some(),
            "{}",
            done.stderr
        );
    }
    assert!(took[1] > 1.3 * took[0], "{took:?}");
}

/// By each command that has the option, on a place that it would work on.
#[test]
fn a_group_that_cannot_be_watched_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().to_str().unwrap();
    let first = "/sys/fs/cgroup/cpu";
    let has_first = Path::new(first).join("cgroup.procs").exists();
    let missing = "no-such-unit-of-trimbench";
    let cases = [
        (missing, "there is no such control group"),
        (first, "control groups of version 1 count no pressure"),
    ];
    for command in ["rm", "fstrim", "guard", "blkdiscard"] {
        for (group, why) in &cases[..if has_first { 2 } else { 1 }] {
            let mut refused = trimbench();
            refused.args([command, "--protect", group, path]);
            let done = run(refused);
            assert_eq!(done.code(), Some(2), "{command}: {}", done.text());
            assert!(done.stderr.contains(why), "{command}: {}", done.stderr);
        }
    }
}
