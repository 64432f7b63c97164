//! `trimbench rm` of files that others hold, by mounts and overlays: their content stays.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;

use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::UnshareFlags;

use crate::common::gate::{LOOP_EXT4, Need, alone, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, must, unmount};
use crate::common::run::{Done, run};
use crate::rm_place::{MIB, ext4, removed, removed_as, rm, written};

/// A file of this many MiB.
const BIG: usize = 8;

/// A mount of a file; unmounted when dropped.
struct Bound<'a>(&'a Path);

impl<'a> Bound<'a> {
    fn new(file: &Path, on: &'a Path) -> Bound<'a> {
        let [file, at] = [file, on].map(|path| path.to_string_lossy());
        must("mount", &["--bind", &file, &at]);
        Bound(on)
    }
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        unmount(&self.0.to_string_lossy());
    }
}

/// A process with mounts of its own, as a container is; killed when dropped.
struct Container(Child);

impl Container {
    /// With a file mounted there, for it alone.
    fn new(file: &Path, on: &Path) -> Container {
        let mount = "mount --make-rprivate / && mount --bind \"$0\" \"$1\" && exec sleep 600";
        let child = Command::new("unshare")
            .args(["--mount", "sh", "-c", mount])
            .args([file, on])
            .spawn()
            .unwrap();
        let container = Container(child);
        while fs::metadata(container.sees(on)).map_or(0, |found| found.len()) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        container
    }

    fn sees(&self, path: &Path) -> PathBuf {
        let root = format!("/proc/{}/root", self.0.id());
        Path::new(&root).join(path.strip_prefix("/").unwrap())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// By way of the trash, in a tree, in place, and in place where nobody else comes.
const WAYS: [(u32, &[&str]); 4] = [
    (0o755, &["t/big"]),
    (0o755, &["-r", "t"]),
    (0o755, &["--set", "trash=false", "t/big"]),
    (0o700, &["--set", "trash=false", "t/big"]),
];

/// Removes a file each way, while it is mounted elsewhere, where its content stays visible.
fn stays_whole<T>(here: &Path, mounts: impl Fn(&Path) -> T, reads: impl Fn(&T) -> Vec<u8>) {
    for (mode, arguments) in WAYS {
        let _ = fs::create_dir(here.join("t"));
        fs::set_permissions(here.join("t"), fs::Permissions::from_mode(mode)).unwrap();
        written(&here.join("t/big"), BIG);
        let mounted = mounts(&here.join("t/big"));
        let done = removed(here, arguments);
        assert!(!here.join("t/big").exists());
        assert_whole(&reads(&mounted), &done);
        let said = &done.succeeds().stderr;
        assert!(said.contains("1 file is mounted at '/"), "{}", done.text());
    }
}

/// That the content of the file is all there.
fn assert_whole(content: &[u8], done: &Done) {
    assert!(
        content.len() == BIG * MIB && content.iter().all(|&byte| byte == 1),
        "{} bytes are left: {}",
        content.len(),
        done.text()
    );
}

#[test]
fn a_file_that_is_mounted_elsewhere_keeps_its_content() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let outside = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let on = outside.path();
    stays_whole(
        fs.path(),
        |file| Bound::new(file, on),
        |_| fs::read(on).unwrap(),
    );
}

#[test]
fn a_file_that_a_container_has_mounted_keeps_its_content() {
    let Some((_turn, fs)) = ext4_alone() else {
        return;
    };
    let outside = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let on = outside.path();
    let mounts = |file: &Path| Container::new(file, on);
    stays_whole(fs.path(), mounts, |container| {
        fs::read(container.sees(on)).unwrap()
    });
}

/// ext4 while no other test runs: what others have mounted would stay mounted in namespaces that
/// are made meanwhile.
fn ext4_alone() -> Option<(crate::common::gate::Turn, LoopFs)> {
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("unshare"), Need::Tool("nsenter")]) {
        return None;
    }
    let turn = alone();
    Some((turn, LoopFs::new(Fs::Ext4, "discard", 512, On::Tmpfs)))
}

/// A thread that isn't the first of its process, with mounts of its own.
struct ThreadWithMounts {
    ends: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<Vec<u8>>>,
}

impl ThreadWithMounts {
    /// With a file mounted there, for it alone. It reads the file at the end.
    fn new(file: &Path, on: &Path) -> ThreadWithMounts {
        let (file, on) = (file.to_owned(), on.to_owned());
        let (ends, ended) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            #[allow(deprecated, reason = "it has no part in the descriptors")]
            rustix::thread::unshare(UnshareFlags::NEWNS).unwrap();
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", private).unwrap();
            mount_bind(&file, &on).unwrap();
            ready.send(()).unwrap();
            let _ = ended.recv();
            fs::read(&on).unwrap()
        });
        is_ready.recv().unwrap();
        ThreadWithMounts {
            ends: Some(ends),
            thread: Some(thread),
        }
    }

    fn reads(mut self) -> Vec<u8> {
        drop(self.ends.take());
        self.thread.take().unwrap().join().unwrap()
    }
}

#[test]
fn a_file_that_a_thread_has_mounted_keeps_its_content() {
    let Some((_turn, fs)) = ext4_alone() else {
        return;
    };
    let outside = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let mounts = |file: &Path| Some(ThreadWithMounts::new(file, outside.path()));
    let mounts = |file: &Path| std::cell::Cell::new(mounts(file));
    stays_whole(fs.path(), mounts, |thread| thread.take().unwrap().reads());
}

/// Reads a file within a mount namespace that has no process.
fn read_within(namespace: &str, path: &Path) -> Vec<u8> {
    let mut command = Command::new("nsenter");
    command
        .arg(format!("--mount={namespace}"))
        .arg("cat")
        .arg(path);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// A mount namespace that only a mount keeps, as `unshare --mount=FILE` makes it.
struct KeptByMount(tempfile::TempDir);

impl KeptByMount {
    fn new(file: &Path, on: &Path) -> KeptByMount {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let at = place.path().to_string_lossy().into_owned();
        // A namespace can be mounted on a private mount only.
        must("mount", &["--bind", &at, &at]);
        must("mount", &["--make-private", &at]);
        let kept = KeptByMount(place);
        File::create(kept.namespace()).unwrap();
        let [file, on] = [file, on].map(|path| path.to_string_lossy().into_owned());
        let option = format!("--mount={}", kept.namespace());
        must("unshare", &[&option, "mount", "--bind", &file, &on]);
        kept
    }

    fn namespace(&self) -> String {
        self.0
            .path()
            .join("namespace")
            .to_string_lossy()
            .into_owned()
    }
}

impl Drop for KeptByMount {
    fn drop(&mut self) {
        unmount(&self.namespace());
        unmount(&self.0.path().to_string_lossy());
    }
}

#[test]
fn a_file_in_a_namespace_that_only_a_mount_keeps_keeps_its_content() {
    let Some((_turn, fs)) = ext4_alone() else {
        return;
    };
    let outside = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let on = outside.path();
    let mounts = |file: &Path| KeptByMount::new(file, on);
    stays_whole(fs.path(), mounts, |kept| read_within(&kept.namespace(), on));
}

#[test]
fn a_file_in_a_namespace_that_only_a_descriptor_keeps_keeps_its_content() {
    let Some((_turn, fs)) = ext4_alone() else {
        return;
    };
    let outside = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let on = outside.path();
    let mounts = |file: &Path| {
        let container = Container::new(file, on);
        File::open(format!("/proc/{}/ns/mnt", container.0.id())).unwrap()
    };
    stays_whole(fs.path(), mounts, |kept| {
        let link = format!("/proc/{}/fd/{}", std::process::id(), kept.as_raw_fd());
        read_within(&link, on)
    });
}

#[test]
fn from_a_container_no_file_is_emptied_and_one_line_says_why() {
    let Some((_turn, fs)) = ext4_alone() else {
        return;
    };
    let here = fs.path();
    let outside = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    let on = outside.path();
    fs::create_dir(here.join("t")).unwrap();
    for name in ["t/big", "t/one", "t/two"] {
        written(&here.join(name), BIG);
    }
    // Larger than a piece, so that they would be emptied.
    written(&here.join("t/large"), 40);
    let container = Container::new(&here.join("t/large"), on);
    let inner = rm(here, &["-r", "t"]);
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc"]);
    command.arg(inner.get_program()).args(inner.get_args());
    command.current_dir(here);
    let done = run(command);
    assert!(!here.join("t").exists());
    let content = fs::read(container.sees(on)).unwrap();
    assert!(content.len() == 40 * MIB && content.iter().all(|&byte| byte == 1));
    let said = &done.succeeds().stderr;
    let why = "the mounts of others can't be seen from a container";
    assert_eq!(said.matches(why).count(), 1, "{}", done.text());
}

#[test]
fn a_user_who_is_not_root_frees_large_files_whole() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    if lacks(&[Need::Tool("setpriv")]) {
        return;
    }
    let here = fs.path();
    written(&here.join("big"), 40);
    must("chown", &["-R", "65534:65534", &here.to_string_lossy()]);
    let dry = removed_as(65534, here, &["--dry-run", "big"]);
    let said = "large files would be freed whole: who else has them is unknown";
    assert!(dry.succeeds().stderr.contains(said), "{}", dry.text());
    // Data that are in memory alone come to no discard, and nothing waits for one.
    fs::write(here.join("fresh"), vec![1; 40 * MIB]).unwrap();
    must("chown", &["65534", &here.join("fresh").to_string_lossy()]);
    let done = removed_as(65534, here, &["-f", "fresh"]);
    let said = "40.0 MiB needed no discard";
    assert!(done.succeeds().stderr.contains(said), "{}", done.text());
    assert!(!done.stderr.contains("no discards came"), "{}", done.text());
    let done = removed_as(65534, here, &["-f", "big"]);
    let said = "1 file of 40.0 MiB was freed at once, not in pieces: who else has them";
    assert!(
        done.succeeds().stderr.contains("only root sees all mounts"),
        "{}",
        done.text()
    );
    assert!(done.stderr.contains(said), "{}", done.text());
    assert!(!here.join("big").exists());
}

/// Whether a file of another user is open the kernel shows to that user and to root.
#[test]
fn discards_of_a_file_that_another_user_may_have_open_are_not_waited_for() {
    let Some((_turn, fs)) = ext4_alone() else {
        return;
    };
    if lacks(&[Need::Tool("setpriv")]) {
        return;
    }
    let here = fs.path();
    must("chown", &["65534", &here.to_string_lossy()]);
    let mut took = Vec::new();
    for is_held in [false, true] {
        written(&here.join("of-root"), 20);
        let held = is_held.then(|| File::open(here.join("of-root")).unwrap());
        let began = std::time::Instant::now();
        let done = removed_as(65534, here, &["-f", "of-root"]);
        took.push(began.elapsed());
        done.succeeds();
        assert!(!here.join("of-root").exists());
        drop(held);
    }
    let usual = took[0].max(std::time::Duration::from_millis(300));
    assert!(took[1] < usual * 5, "{took:?}");
}

/// Mounts an overlay, opens a file of it, and has the file copied to the upper directory. At the end
/// of its input it reads the file, which it opened before that. It forks no more meanwhile: closing
/// a copy of the descriptor makes the kernel (Linux 6.14) open the copy, which a lease shows.
const OPEN_BEFORE_COPY: &str = "
import subprocess, sys
top, merged = sys.argv[1:]
options = 'index=off,lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work'.format(top)
subprocess.check_call(['mount', '-t', 'overlay', 'overlay', '-o', options, merged])
before = open(merged + '/big', 'rb')
open(merged + '/big', 'r+b').close()
print('ready', flush=True)
sys.stdin.read()
sys.stdout.buffer.write(before.read())
";

/// A process that has a file of an overlay open since before it was copied to the upper directory.
struct OpenBeforeCopy {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl OpenBeforeCopy {
    /// In a directory that is made for it. The overlay's mark on the copy is missing, as it is on
    /// one of a file with two names.
    fn new(top: &Path, merged: &Path, within: &[&str]) -> OpenBeforeCopy {
        for name in ["lower", "upper", "work"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        written(&top.join("lower/big"), BIG);
        fs::hard_link(top.join("lower/big"), top.join("lower/same")).unwrap();
        let command = [within, &["python3", "-c", OPEN_BEFORE_COPY]].concat();
        let mut child = Command::new(command[0])
            .args(&command[1..])
            .args([top, merged])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        assert!(top.join("upper/big").exists(), "it was copied");
        OpenBeforeCopy { child, output }
    }

    fn reads(mut self) -> Vec<u8> {
        drop(self.child.stdin.take());
        let mut content = Vec::new();
        self.output.read_to_end(&mut content).unwrap();
        self.child.wait().unwrap();
        content
    }
}

/// The arguments with which a file is emptied in any case.
const IN_PIECES: [&str; 4] = ["--chunk", "1M", "--sleep", "0s"];

#[test]
fn a_file_of_an_upper_directory_keeps_its_content() {
    let Some((_turn, _)) = ext4_alone() else {
        return;
    };
    if lacks(&[Need::Tool("python3")]) {
        return;
    }
    // Below the upper directory, that itself, and above it. Each waits some seconds for discards.
    std::thread::scope(|scope| {
        for arguments in [
            &["top/upper/big"][..],
            &["-r", "top/upper"],
            &["-r", "top"],
            &["--set", "trash=false", "top/upper/big"],
            &["-r", "--set", "trash=false", "top/upper"],
        ] {
            scope.spawn(|| keeps_a_copy(arguments));
        }
    });
}

/// Removes a file of an upper directory, while an overlay here and one in a container has it.
fn keeps_a_copy(arguments: &[&str]) {
    let fs = LoopFs::new(Fs::Ext4, "discard", 512, On::Tmpfs);
    let top = fs.path().join("top");
    let merged = tempfile::tempdir_in("/dev/shm").unwrap();
    for within in [&[][..], &["unshare", "--mount"]] {
        let open = OpenBeforeCopy::new(&top, merged.path(), within);
        let done = removed(fs.path(), &[arguments, &IN_PIECES].concat());
        assert_whole(&open.reads(), &done);
        assert!(!top.join("upper/big").exists(), "{}", done.text());
        let said = done
            .stderr
            .contains("an overlay uses it as its upper layer")
            || done
                .stderr
                .contains("the upper directory of the overlay at");
        assert!(said, "{arguments:?} {within:?} {}", done.text());
        if within.is_empty() {
            unmount(&merged.path().to_string_lossy());
        }
        must("rm", &["-rf", &top.to_string_lossy()]);
    }
}

#[test]
fn a_file_beside_an_upper_directory_is_emptied() {
    let Some((_turn, fs)) = ext4_alone() else {
        return;
    };
    if lacks(&[Need::Tool("python3")]) {
        return;
    }
    let merged = tempfile::tempdir_in("/dev/shm").unwrap();
    let open = OpenBeforeCopy::new(&fs.path().join("top"), merged.path(), &[]);
    written(&fs.path().join("big"), BIG);
    let done = removed(fs.path(), &[&["big"], &IN_PIECES[..]].concat());
    let said = &done.succeeds().stderr;
    assert!(!said.contains("not in pieces"), "{}", done.text());
    open.reads();
    unmount(&merged.path().to_string_lossy());
}

#[test]
fn a_file_with_another_name_is_counted_once_and_stays() {
    let Some(fs) = ext4("discard", 512) else {
        return;
    };
    let here = fs.path();
    fs::create_dir(here.join("t")).unwrap();
    for (name, others) in [("t/a", &["t/b", "kept"][..]), ("t/c", &["t/d"])] {
        written(&here.join(name), 4);
        for other in others {
            fs::hard_link(here.join(name), here.join(other)).unwrap();
        }
    }
    let done = removed(here, &["-r", "t", "--json", "-"]);
    let said = "1 file has another name: its 4.0 MiB stay";
    assert!(done.succeeds().stderr.contains(said), "{}", done.text());
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json["not_emptied"][0]["reason"], "another-name", "{json}");
    assert_eq!(json["not_emptied"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(fs::metadata(here.join("kept")).unwrap().len(), 4 << 20);
}
