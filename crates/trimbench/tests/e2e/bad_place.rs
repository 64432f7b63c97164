//! Paths that can't be tested: each is reported with the next step.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL, names};
use crate::common::run::{as_plain_user, copied_to, run};
use crate::quick::{Files, Measured, command, command_on, measure};

#[track_caller]
fn refused(path: &Path, arguments: &[&str], words: &[&str]) -> Measured {
    let measured = measure(path, arguments);
    measured.done.fails_with(2, words);
    let path = path.display().to_string();
    assert!(
        measured.done.stderr.contains(&path),
        "{}",
        measured.done.text()
    );
    assert!(!measured.phases().contains(&"prepare"), "work had begun");
    measured
}

#[test]
fn a_missing_path() {
    refused(
        Path::new("/no/such/place"),
        &[],
        &["No such file", "existing directory"],
    );
}

#[test]
fn not_a_directory() {
    let file = tempfile::NamedTempFile::new().unwrap();
    refused(file.path(), &[], &["not a directory", "give a directory"]);
}

#[test]
fn a_read_only_mount() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    fs.remount("ro");
    refused(fs.path(), &[], &["read-only", "remount"]);
}

#[test]
fn a_directory_that_may_not_be_written() {
    let _turn = beside();
    if lacks(&[Need::Root, Need::Tool("setpriv")]) {
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // Somewhere that user can reach the program, too.
    let program = copied_to(directory.path());
    let target = directory.path().join("target");
    fs::create_dir(&target).unwrap();
    let mut command = as_plain_user(&program);
    command.args(["run", "--size", "16M"]).arg(&target);
    let done = run(command);
    done.fails_with(2, &["Permission denied", "may write to"]);
    assert!(
        done.stderr.contains(&*target.to_string_lossy()),
        "{}",
        done.text()
    );
}

#[test]
fn without_direct_io_it_offers_buffered() {
    let _turn = beside();
    if lacks(&[Need::Root]) {
        return;
    }
    // ext4 that journals data refuses O_DIRECT or falls back, by kernel version; a FAT or an old
    // tmpfs refuse it. What refuses it everywhere is a tmpfs before Linux 6.6, or ramfs.
    let mount = RamFs::new();
    refused(&mount.0, &[], &["add --set buffered=true"]);
    assert_eq!(names(&mount.0), [""; 0]);
}

/// A file system in memory that knows no direct I/O.
struct RamFs(std::path::PathBuf);

impl RamFs {
    fn new() -> Self {
        let path = crate::common::sweep::disk_dir().join(crate::common::sweep::own_name());
        fs::create_dir(&path).unwrap();
        let text = path.to_string_lossy().into_owned();
        crate::common::loop_fs::must("mount", &["-t", "ramfs", "ramfs", &text]);
        Self(path)
    }
}

impl Drop for RamFs {
    fn drop(&mut self) {
        crate::common::sweep::clear(&self.0);
    }
}

#[test]
fn a_file_system_in_memory_gets_no_discards_and_is_told_so() {
    let _turn = beside();
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let measured = measure(directory.path(), &["--set", "actor.buffered=true"]).succeeds();
    assert_ne!(measured.verdict["verdict"], "stall");
    assert!(
        measured.reasons().contains(&"no-discards"),
        "{:?}",
        measured.reasons()
    );
    assert_eq!(names(directory.path()), [""; 0]);
}

#[test]
fn where_no_file_can_be_made_it_says_what_to_give() {
    refused(Path::new("/proc"), &[], &["give a directory"]);
}

#[test]
fn too_little_space() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    refused(
        fs.path(),
        &["--size", "100G"],
        &["too little space", "--size", "needs 100 GiB"],
    );
    // Of 2 GiB half stays free: a gigabyte more than that is refused, too.
    refused(
        fs.path(),
        &["--size", "1500M"],
        &["too little space", "beyond the 1.0 GiB that stay free"],
    );
    assert_eq!(fs.names(), [""; 0]);
}

#[test]
fn outputs_that_cannot_be_written_are_known_before_the_work_begins() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    for option in ["--json", "--output"] {
        for path in ["/no/such/directory/file", "/"] {
            let mut command = crate::common::run::trimbench();
            command.args([
                "run",
                "--size",
                "32M",
                "--set",
                "foreground.size=16M",
                option,
                path,
            ]);
            command.arg(fs.path());
            run(command).fails_with(2, &[path]);
            assert_eq!(fs.names(), [""; 0]);
        }
    }
}

#[test]
fn an_output_file_keeps_its_content_when_the_run_is_refused() {
    let files = Files::new();
    fs::write(files.verdict(), "precious").unwrap();
    let done = run(command_on(Path::new("/no/such/place"), &files, &[]));
    done.fails_with(2, &["/no/such/place"]);
    assert_eq!(fs::read_to_string(files.verdict()).unwrap(), "precious");
    assert!(!files.record().exists());
}

#[test]
fn the_current_directory_is_the_default() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let files = Files::new();
    let mut here = command(&files, &[]);
    here.current_dir(fs.path());
    let measured = files.read(run(here)).succeeds();
    let target = &measured.head()["target"];
    assert_eq!(target["mount"], &*fs.path().to_string_lossy());
    assert_eq!(fs.names(), [""; 0]);
}
