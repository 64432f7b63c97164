//! A file system full of dirty pages and little memory: it writes back through
//! the drive, and the drive never waits for that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::{Fs, Launcher};

use crate::common::{Bench, NAME, cannot, launcher};

/// A drive waits for itself for ever; everything else is over in seconds.
const SECONDS: &str = "180";
const MIB: u64 = 1 << 20;

#[test]
fn dirty_pages_in_a_small_memory_cgroup_are_written_back() {
    if cannot(&["mkfs.ext4", "dd", "timeout"]) {
        return;
    }
    // Ten times what the cgroup may hold, all dirty.
    let Some(group) = Group::new("writer", 32 * MIB) else {
        return;
    };
    let bench = drive(1024);
    write(&group, bench.mount(), 320);
    assert!(bench.lab.stats(NAME).unwrap().kinds[1].bytes >= 320 * MIB);
}

#[test]
fn a_server_leaves_a_cgroup_that_limits_memory() {
    if cannot(&["mkfs.ext4", "dd", "timeout"]) {
        return;
    }
    // What the drive's data take is more than the cgroup leaves the writer's pages.
    // A server that stayed where it was started would wait for itself: seen with
    // Linux 6.18, in folio_wait_writeback under its own write.
    let Some(group) = Group::new("both", 112 * MIB) else {
        return;
    };
    let inside = format!(
        "echo $$ > {}/cgroup.procs && exec \"$@\"",
        group.dir.display()
    );
    let bench = drive_by(96, |launcher| {
        let program = std::mem::replace(&mut launcher.program, "sh".into());
        let before = ["-c".into(), inside.into(), "sh".into(), program.into()];
        launcher.arguments.splice(..0, before);
    });
    for file in ["server", "guardian"] {
        let pid = fs::read_to_string(server_dir(&bench).join(file)).unwrap();
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", pid.trim())).unwrap();
        let name = group
            .dir
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        assert!(!groups.contains(&name), "{file}: {groups}");
    }
    for _ in 0..3 {
        write(&group, bench.mount(), 64);
    }
    assert!(bench.lab.stats(NAME).unwrap().kinds[1].bytes >= 3 * 64 * MIB);
}

#[test]
fn server_and_guardian_are_locked_and_never_write_back() {
    if cannot(&["mkfs.ext4"]) {
        return;
    }
    let bench = drive(64);
    // One that may (CAP_SYS_RESOURCE) also keeps its threads from writing back.
    const MAY: u64 = 1 << 24;
    const FLAGS: u64 = 0x0008_0000 | 0x0010_0000; // PF_MEMALLOC_NOIO, PF_LOCAL_THROTTLE
    for file in ["server", "guardian"] {
        let pid = fs::read_to_string(server_dir(&bench).join(file)).unwrap();
        let process = Path::new("/proc").join(pid.trim());
        let status = fs::read_to_string(process.join("status")).unwrap();
        let number = |key: &str, radix| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let word = line.unwrap().split_whitespace().next().unwrap();
            u64::from_str_radix(word, radix).unwrap()
        };
        assert!(number("VmLck:", 10) > 0, "{file}: {status}");
        let oom = fs::read_to_string(process.join("oom_score_adj")).unwrap();
        let may = number("CapEff:", 16) & MAY != 0;
        assert!(!may || oom.trim() == "-1000", "{file}: {oom}");
        let mut threads = 0;
        for thread in fs::read_dir(process.join("task")).unwrap().flatten() {
            let name = fs::read_to_string(thread.path().join("comm")).unwrap();
            // The test harness's own thread began before.
            if thread.file_name().to_str() == Some(pid.trim()) {
                continue;
            }
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap();
            let fields = stat.rsplit_once(") ").unwrap().1;
            let flags: u64 = fields.split(' ').nth(6).unwrap().parse().unwrap();
            assert!(!may || flags & FLAGS == FLAGS, "{file}: {name} {flags:#x}");
            threads += 1;
        }
        assert!(threads >= 1, "{file}");
        if !may {
            eprintln!("{file}: PR_SET_IO_FLUSHER isn't permitted on this machine");
        }
    }
}

fn drive(mib: u64) -> Bench {
    drive_by(mib, |_| {})
}

fn drive_by(mib: u64, how: impl FnOnce(&mut Launcher)) -> Bench {
    let mount = Bench::mount_point();
    let mut launcher = launcher();
    how(&mut launcher);
    Bench::launched(&launcher, "crucial-t500-2tb", &[], mib, |spec| {
        spec.fs = Some(Fs::Ext4);
        spec.mount = Some(mount);
        spec.options = "discard".to_owned();
    })
}

/// The drive's directory.
fn server_dir(bench: &Bench) -> PathBuf {
    bench.lab.root().join(NAME)
}

/// Writes a file and waits until it is on the drive, in a group.
fn write(group: &Group, mount: &Path, mib: u64) {
    let script = format!(
        "echo $$ > {}/cgroup.procs && dd if=/dev/zero of={1}/big bs=1M count={mib} && sync -f {1}",
        group.dir.display(),
        mount.display(),
    );
    // Into a file: one that hangs can't be killed and keeps a pipe open for ever.
    let said = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("timeout")
        .args(["--signal=KILL", SECONDS, "sh", "-c", &script])
        .stderr(said.reopen().unwrap())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let said = fs::read_to_string(said.path()).unwrap();
    assert!(
        status.success(),
        "{status}, after {SECONDS} s at most (then the drive waited for itself): {said}"
    );
}

/// A memory cgroup of version 1 or 2.
struct Group {
    dir: PathBuf,
}

impl Group {
    fn new(name: &str, limit: u64) -> Option<Group> {
        let places = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        let found = places.into_iter().find_map(|(root, file)| {
            let dir = Path::new(root).join(format!("tb-lab-{}-{name}", std::process::id()));
            fs::create_dir(&dir).ok()?;
            let group = Group { dir };
            let limited = fs::write(group.dir.join(file), limit.to_string());
            limited.is_ok().then_some(group)
        });
        if found.is_none() {
            crate::gate::skip("need the memory controller of cgroups");
        }
        found
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.dir);
    }
}
