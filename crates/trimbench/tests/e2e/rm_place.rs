//! Where tests of `trimbench rm` work, and the command itself.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::gate::{Need, Turn, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL, names};
use crate::common::run::{Done, copied_to, run, start_with, trimbench};

pub const MIB: usize = 1 << 20;

/// `trimbench rm` in a directory, with notes of its own, which `names` leaves out.
pub fn rm(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = trimbench();
    command
        .current_dir(directory)
        .env("XDG_STATE_HOME", directory.join("lost+found/state"))
        .arg("rm")
        .args(arguments);
    command
}

/// The same, to its end.
pub fn removed(directory: &Path, arguments: &[&str]) -> Done {
    run(rm(directory, arguments))
}

/// The same as another user, by a copy of the binary that this user can reach.
pub fn removed_as(user: u32, directory: &Path, arguments: &[&str]) -> Done {
    run_as(user, directory, &[], arguments, Stdio::null())
}

/// The same on a terminal, where these answers are given.
pub fn answered_as(user: u32, directory: &Path, arguments: &[&str], answers: &str) -> Done {
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(answers.as_bytes()).unwrap();
    input.rewind().unwrap();
    let spawn = "import os, pty, sys; \
                 sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    run_as(user, directory, &["python3", "-c", spawn], arguments, input)
}

fn run_as(
    user: u32,
    directory: &Path,
    within: &[&str],
    arguments: &[&str],
    input: impl Into<Stdio>,
) -> Done {
    let copy = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir_in("/dev/shm")
        .unwrap();
    let binary = copied_to(copy.path());
    let homeless = ["env", "--unset=XDG_STATE_HOME", "HOME=/nonexistent"];
    let before = [within, &homeless].concat();
    let mut command = Command::new(before[0]);
    command
        .args(&before[1..])
        .args(["setpriv", "--clear-groups"])
        .args([format!("--reuid={user}"), format!("--regid={user}")])
        .arg(&binary)
        .arg("rm")
        .args(arguments)
        .current_dir(directory);
    start_with(command, input).wait()
}

/// The needs of a test that acts as another user.
pub const USERS: &[Need] = &[Need::Root, Need::Tool("setpriv")];

/// A directory of the test's own, with the notes beside it.
pub fn place() -> (tempfile::TempDir, PathBuf) {
    let outer = tempfile::tempdir_in("/dev/shm").unwrap();
    let inner = outer.path().join("place");
    fs::create_dir(&inner).unwrap();
    (outer, inner)
}

/// A file system of the test's own; its turn ends when it is gone.
pub struct Ground {
    fs: LoopFs,
    _turn: Turn,
}

impl Deref for Ground {
    type Target = LoopFs;

    fn deref(&self) -> &LoopFs {
        &self.fs
    }
}

/// ext4 with these options, or nothing where the machine lacks something.
pub fn ext4(options: &str, mib: u64) -> Option<Ground> {
    ground(Fs::Ext4, options, mib)
}

/// A file system, or nothing where the machine lacks something.
pub fn ground(kind: Fs, options: &str, mib: u64) -> Option<Ground> {
    let turn = beside();
    (!lacks(kind.needs())).then(|| Ground {
        fs: LoopFs::new(kind, options, mib.min(SMALL), On::Tmpfs),
        _turn: turn,
    })
}

/// Seven names, a link that leads elsewhere among them.
pub fn tree(at: &Path) {
    fs::create_dir_all(at.join("b/c")).unwrap();
    for name in ["one", "b/two", "b/c/three"] {
        fs::write(at.join(name), name).unwrap();
    }
    symlink("/etc", at.join("b/link")).unwrap();
}

/// A new file of so many MiB, on the disk.
pub fn file(path: &Path, mib: usize) -> File {
    let file = File::options()
        .create_new(true)
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    for at in 0..mib {
        file.write_all_at(&vec![1; MIB], (at * MIB) as u64).unwrap();
    }
    file.sync_all().unwrap();
    file
}

/// The same, and nobody has it open. By another process: one of ours that is just being forked
/// would have it open until it becomes its program.
pub fn written(path: &Path, mib: usize) {
    let write = "set -C; head -c \"$1\"M /dev/zero | tr '\\0' '\\1' > \"$0\" && sync \"$0\"";
    let mut command = Command::new("sh");
    let output = command
        .args(["-c", write])
        .arg(path)
        .arg(mib.to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {output:?}", path.display());
}

/// Names, with those of a trash shown as `trash`.
pub fn seen(directory: &Path) -> Vec<String> {
    let trash = |name: String| match name.starts_with(".trimbench-trash-") {
        true => "trash".to_owned(),
        false => name,
    };
    names(directory).into_iter().map(trash).collect()
}

/// A MiB at a time, for tests that change something meanwhile.
pub const SLOW: [&str; 4] = ["--chunk", "1M", "--sleep", "200ms"];

/// Whether `t` is in the trash for good: its file's second piece comes after a commit.
pub fn half_way(here: &Path) -> bool {
    let Some(trash) = names(here).into_iter().find(|name| name.starts_with('.')) else {
        return false;
    };
    // Where it is emptied.
    let big = fs::metadata(here.join(trash).join("file"));
    !here.join("t").exists() && big.is_ok_and(|big| big.len() < 31 * MIB as u64)
}
