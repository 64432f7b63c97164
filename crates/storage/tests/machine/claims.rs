//! Raw devices: claimed only when nobody's data can be lost.

use std::os::unix::fs::FileExt;
use std::process::Command;

use linux::files::Caching;
use storage::raw::{RawDevice, RawError, signatures};

use testkit::loop_fs::LoopFs;

use crate::loops::{LoopDevice, attach, can, device, made, partition_table, run};

const TOOLS: &[&str] = &["losetup", "mount", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];

fn refused(path: &str, force: bool) -> RawError {
    RawDevice::claim(path, force).expect_err("should have been refused")
}

#[test]
fn a_blank_device_is_claimed_and_closed_to_others() {
    if !can(TOOLS) {
        return;
    }
    let device = device(64);
    let raw = RawDevice::claim(device.node(), false).unwrap();
    assert_eq!(raw.size_bytes(), 64 << 20);
    assert_eq!(raw.name(), device.name());
    assert!(raw.discard().max_bytes > 0);
    let second = refused(device.node(), false);
    assert!(matches!(second, RawError::Busy { .. }), "{second}");
    drop(raw);
    run("mkfs.ext4", &["-q", device.node()]);
    let raw = RawDevice::claim(device.node(), true).unwrap();
    // What is opened through the claim can be written, and others can't mount it.
    let file = raw.open(Caching::Buffered).unwrap();
    file.write_all_at(&[7; 4096], 32 << 20).unwrap();
    drop(file);
    let point = tempfile::tempdir().unwrap();
    let mount = Command::new("mount")
        .arg(device.node())
        .arg(point.path())
        .output()
        .unwrap();
    assert!(!mount.status.success(), "a claimed device was mounted");
    drop(raw);
    let holds = refused(device.node(), false);
    assert!(matches!(holds, RawError::Signatures { .. }), "{holds}");
}

#[test]
fn what_is_on_it_must_be_allowed() {
    if !can(TOOLS) {
        return;
    }
    let device = device(512);
    run("mkfs.xfs", &["-q", "-f", device.node()]);
    let error = refused(device.node(), false).to_string();
    assert!(error.contains("XFS") && error.contains("wipefs"), "{error}");
    let raw = RawDevice::claim(device.node(), true).unwrap();
    drop(raw);
    // Claiming alone writes nothing.
    refused(device.node(), false);
    run("wipefs", &["-q", "--all", device.node()]);
    RawDevice::claim(device.node(), false).unwrap();
}

#[test]
fn mounted_devices_are_never_claimed() {
    if !can(TOOLS) {
        return;
    }
    for fs in ["ext4", "xfs", "btrfs"] {
        let mounted = made(fs, "defaults");
        let error = refused(mounted.device().node(), false);
        assert!(matches!(error, RawError::InUse { .. }), "{fs}: {error}");
        assert!(error.to_string().contains("mounted"), "{fs}: {error}");
    }
    let pair = LoopFs::pair("defaults", 512);
    for device in pair.devices() {
        refused(device.node(), false);
    }
}

#[test]
fn a_drive_with_partitions_is_not_blank_and_a_mounted_one_is_in_use() {
    if !can(&["losetup", "mount", "mkfs.ext4", "addpart", "delpart"]) {
        return;
    }
    let table = partition_table(100 << 11);
    let drive = LoopDevice::starting_with(&table, 128, &["--partscan"]);
    let error = refused(drive.node(), false);
    assert!(error.to_string().contains("partition table"), "{error}");
    let partition = format!("{}p1", drive.node());
    if !std::path::Path::new(&partition).exists() {
        // A kernel that doesn't know this kind of table can be told.
        run("addpart", &[drive.node(), "1", "2048", "204800"]);
    }
    run("mkfs.ext4", &["-q", &partition]);
    let point = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = point.path().to_str().unwrap();
    run("mount", &["-o", "discard", &partition, at]);
    let found = storage::describe(at);
    let whole = RawDevice::claim(drive.node(), false);
    let own = RawDevice::claim(&partition, false);
    run("umount", &[at]);
    run("delpart", &[drive.node(), "1"]);
    for refused in [whole, own] {
        let error = refused.expect_err("should have been refused").to_string();
        assert!(error.contains("p1 is mounted"), "{error}");
    }
    // The partition stands for the drive: its limits, and its own counters.
    let devices = found.unwrap().devices;
    assert_eq!(devices.len(), 1, "{devices:?}");
    assert_eq!(devices[0].name, format!("{}p1", drive.name()));
    assert_eq!(devices[0].kind, record::DeviceKind::Partition);
    assert!(devices[0].leaf && devices[0].discard.max_bytes > 0);
    assert_eq!(devices[0].size_bytes, 100 << 20);
}

#[test]
fn held_devices_are_never_claimed() {
    if !can(TOOLS) {
        return;
    }
    let lower = device(64);
    let upper = attach(lower.path());
    let error = refused(lower.node(), false);
    run("losetup", &["-d", upper.to_str().unwrap()]);
    assert!(error.to_string().contains("loop device over"), "{error}");

    let swap = device(64);
    run("mkswap", &[swap.node()]);
    let swapped = Command::new("swapon").arg(swap.node()).output().unwrap();
    if swapped.status.success() {
        let error = refused(swap.node(), false);
        run("swapoff", &[swap.node()]);
        assert!(error.to_string().contains("swap"), "{error}");
    } else {
        eprintln!(
            "not tried with swap: {}",
            String::from_utf8_lossy(&swapped.stderr)
        );
    }
}

#[test]
fn read_only_and_empty_devices_and_files_are_refused() {
    if !can(TOOLS) {
        return;
    }
    let read_only = LoopDevice::starting_with(&[], 64, &["--read-only"]);
    let error = refused(read_only.node(), false);
    assert!(
        matches!(
            error,
            RawError::ReadOnly { .. } | RawError::NotPermitted { .. }
        ),
        "{error}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    for path in [file.path().to_str().unwrap(), "/dev/null", "/tmp"] {
        let error = refused(path, false);
        assert!(matches!(error, RawError::NotABlockDevice { .. }), "{error}");
    }
    let missing = refused("/dev/no-such-device", false);
    assert!(missing.to_string().contains("no-such-device"), "{missing}");
    let empty = device(0);
    let error = refused(empty.node(), false);
    assert!(matches!(error, RawError::NoSize { .. }), "{error}");
}

#[test]
fn what_the_tools_make_is_recognised() {
    let tools: [(&str, &[&str], &str); 5] = [
        ("mkfs.ext4", &["-q", "-F"], "ext2/3/4"),
        ("mkfs.xfs", &["-q", "-f"], "XFS"),
        ("mkfs.btrfs", &["-q", "-f"], "btrfs"),
        ("mkswap", &[], "swap space"),
        ("mkfs.vfat", &[], "FAT"),
    ];
    let mut tried = 0;
    for (tool, arguments, name) in tools {
        let image = tempfile::NamedTempFile::new().unwrap();
        let size = 512 << 20;
        image.as_file().set_len(size).unwrap();
        match Command::new(tool)
            .args(arguments)
            .arg(image.path())
            .output()
        {
            Ok(output) if output.status.success() => {
                let found = signatures(image.as_file(), size).unwrap();
                assert!(
                    found.iter().any(|one| one.name == name),
                    "{tool}: {found:?}"
                );
                tried += 1;
            }
            other => eprintln!("not tried with {tool}: {other:?}"),
        }
    }
    assert!(
        tried >= 3 || std::env::var_os("CI").is_none(),
        "only {tried} tools"
    );
}

#[test]
fn loop_devices_over_different_bytes_of_a_file_are_different_devices() {
    if !can(TOOLS) {
        return;
    }
    let image = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    image.as_file().set_len(128 << 20).unwrap();
    let path = image.path().to_str().unwrap();
    let parts = ["0", "67108864"].map(|offset| {
        let limit = [
            "-f",
            "--show",
            "--sizelimit",
            "67108864",
            "--offset",
            offset,
            path,
        ];
        run("losetup", &limit).trim().to_owned()
    });
    let claimed = RawDevice::claim(&parts[1], false);
    for part in &parts {
        run("losetup", &["-d", part]);
    }
    claimed.unwrap();
}

/// A program that keeps a device in use without a claim, until it is dropped.
struct Program(std::process::Child);

impl Program {
    fn python(text: &str, device: &str) -> Program {
        use std::io::BufRead;
        let text = format!("{text}\nprint('ready', flush=True)\nimport time\ntime.sleep(600)\n");
        let mut child = Command::new("python3")
            .args(["-c", &text, device])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.as_mut().unwrap();
        std::io::BufReader::new(out).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Program(child)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The kernel grants `O_EXCL` beside all of these.
#[test]
fn a_device_that_a_program_writes_to_or_has_mapped_is_refused_and_the_program_named() {
    if !can(&["losetup", "python3"]) {
        return;
    }
    let device = device(64);
    let begin = "import sys, os, mmap, threading\np = sys.argv[1]\n";
    for (text, what) in [
        ("f = open(p, 'r+b')", "has it open"),
        ("f = os.open(p, os.O_WRONLY | os.O_DIRECT)", "has it open"),
        // A map stays when its file is closed; Python keeps a second descriptor.
        (
            "f = open(p, 'r+b'); m = mmap.mmap(f.fileno(), 4096); os.closerange(3, 64)",
            "mapped",
        ),
        (
            "f = open(p, 'rb'); m = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ); os.closerange(3, 64)",
            "mapped",
        ),
        // The descriptors of a thread that shares none with the first.
        (
            "import ctypes\nready = threading.Event()\n\
             def other():\n  assert ctypes.CDLL(None).unshare(0x400) == 0\n  \
             global f; f = os.open(p, os.O_RDWR); ready.set(); threading.Event().wait()\n\
             threading.Thread(target=other, daemon=True).start(); ready.wait()",
            "has it open",
        ),
        // A node of the device elsewhere.
        (
            "n = '/dev/shm/trimbench-claims-%d' % os.getpid()\n\
             os.mknod(n, 0o600 | 0o060000, os.stat(p).st_rdev); f = open(n, 'r+b'); os.unlink(n)",
            "has it open",
        ),
    ] {
        let program = Program::python(&format!("{begin}{text}"), device.node());
        let error = refused(device.node(), false).to_string();
        let named = format!("process {} (python3", program.0.id());
        assert!(
            error.contains(&named) && error.contains(what),
            "{text}: {error}"
        );
        drop(program);
        RawDevice::claim(device.node(), false).expect("nobody has it any more");
    }
    // Who reads can lose nothing, and `O_PATH` opens nothing.
    for text in ["f = open(p, 'rb')", "f = os.open(p, os.O_PATH)"] {
        let _program = Program::python(&format!("{begin}{text}"), device.node());
        RawDevice::claim(device.node(), false).expect(text);
    }
}

#[test]
fn a_program_on_a_partition_keeps_the_drive_and_the_other_way_round() {
    if !can(&["losetup", "python3", "addpart", "delpart", "wipefs"]) {
        return;
    }
    let table = partition_table(100 << 11);
    let drive = LoopDevice::starting_with(&table, 128, &["--partscan"]);
    let partition = format!("{}p1", drive.node());
    if !std::path::Path::new(&partition).exists() {
        run("addpart", &[drive.node(), "1", "2048", "204800"]);
    }
    let open = "import sys; f = open(sys.argv[1], 'r+b')";
    for (used, other) in [(&*partition, drive.node()), (drive.node(), &*partition)] {
        let program = Program::python(open, used);
        let error = refused(other, true).to_string();
        let named = format!("process {} (python3", program.0.id());
        assert!(error.contains(&named), "{used}, {other}: {error}");
        let name = used.trim_start_matches("/dev/");
        assert!(error.contains(&format!("as {name}")), "{error}");
    }
    run("delpart", &[drive.node(), "1"]);
}

#[test]
fn a_second_loop_device_over_the_same_bytes_is_in_use_by_the_first() {
    if !can(TOOLS) {
        return;
    }
    let first = device(512);
    run("mkfs.ext4", &["-q", first.node()]);
    let point = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = point.path().to_str().unwrap();
    run("mount", &[first.node(), at]);
    // By another name of the same file.
    let name = first.image().with_extension("other");
    std::fs::hard_link(first.image(), &name).unwrap();
    let second = attach(&name);
    let outcome = RawDevice::claim(&second, true);
    run("umount", &[at]);
    let unmounted = RawDevice::claim(&second, true);
    run("losetup", &["-d", second.to_str().unwrap()]);
    std::fs::remove_file(&name).unwrap();
    for outcome in [outcome, unmounted] {
        let error = outcome.expect_err("should have been refused").to_string();
        let named = format!("{} is a loop device over", first.name());
        assert!(error.contains(&named), "{error}");
    }
}

#[test]
fn a_mount_that_calls_itself_the_device_does_not_keep_it() {
    if !can(TOOLS) {
        return;
    }
    let device = device(64);
    let point = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = point.path().to_str().unwrap();
    run("mount", &["-t", "tmpfs", device.node(), at]);
    let claimed = RawDevice::claim(device.node(), false);
    run("umount", &[at]);
    claimed.unwrap();
}
