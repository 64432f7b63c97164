//! `trimbench lab`: drives made, looked at, changed and spoilt.

use std::path::Path;
use std::process::Command;

use linux::loop_device::partition_numbers;

use crate::common::gate::{Need, beside, lacks};
use crate::common::loop_fs::must;
use crate::common::run::{as_plain_user, copied_to, run, trimbench};
use crate::lab_drive::{NEEDS, OwnLab, dd};

#[test]
fn a_drive_with_a_file_system_is_used_and_taken_down() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mount = lab.mount();
    let mount = mount.to_str().unwrap();
    let mut options = vec!["--profile", "870-evo", "--size", "512M"];
    options.extend(["--slower", "2", "--set", "a=1ms"]);
    options.extend(["--fs", "ext4", "--mount", mount, "--options", "discard"]);
    let up = lab.lab(&[&["up", "fs"], &options[..]].concat());
    assert_eq!(up.succeeds().stdout.trim().lines().count(), 1, "the device");
    for next in [
        &format!("trimbench run {mount}"),
        "lab exec fs --",
        "lab down fs",
    ] {
        assert!(up.stderr.contains(next), "{next} missing: {}", up.text());
    }
    let file = Path::new(mount).join("file");
    std::fs::write(&file, [7; 4096]).unwrap();
    let listed = lab.lab(&["list"]);
    for part in ["fs", "samsung-870-evo-2tb, 2 times slower", "ext4", mount] {
        assert!(listed.succeeds().stdout.contains(part), "{}", listed.text());
    }
    let drives = lab.list();
    assert_eq!(drives.len(), 1);
    assert_eq!(drives[0]["profile"], "samsung-870-evo-2tb");
    assert_eq!(drives[0]["mounts"][0], mount);
    assert_eq!(drives[0]["size_bytes"], 512 << 20);
    lab.lab(&["up", "fs", "--profile", "ideal", "--size", "1G"])
        .fails_with(2, &["a drive `fs` already"]);

    let held = std::fs::File::open(&file).unwrap();
    let me = format!("({})", std::process::id());
    lab.lab(&["down", "fs"])
        .fails_with(1, &["fs", "used by", &me, "--force"]);
    drop(held);
    lab.lab(&["down", "fs"]).succeeds();
    assert!(!Path::new(mount).exists());
    assert!(lab.list().is_empty());
    lab.lab(&["down", "fs"]).fails_with(2, &["no drive"]);
}

#[test]
fn a_lock_under_which_a_drive_is_made_is_free_after_it() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock");
    let mut command = Command::new("flock");
    command.arg(&lock).arg(trimbench().get_program());
    command.args(["lab", "up", "one", "--profile", "ideal", "--size", "64M"]);
    run(lab.in_here(command)).succeeds();
    must("flock", &["-n", lock.to_str().unwrap(), "true"]);
}

#[test]
fn what_it_has_done_is_shown() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let drive = ["--profile", "ideal", "--size", "64M"];
    let device = lab.up("seen", &[&drive[..], &["--set", "premapped=true"]].concat());
    let from = format!("if={}", device.display());
    assert!(dd(&[&from, "of=/dev/null", "iflag=direct"]));
    must("blkdiscard", &[device.to_str().unwrap()]);
    let seen = lab.stats("seen");
    assert!(seen["kinds"][0]["commands"].as_u64().unwrap() > 0);
    assert_eq!(seen["unmapped_bytes"], 64 << 20);
    let shown = lab.lab(&["stats", "seen", "--reset"]);
    for part in [
        "read",
        "discard",
        "mapped",
        "lab exec seen",
        "each whole discard",
    ] {
        assert!(shown.succeeds().stdout.contains(part), "{}", shown.text());
    }
    assert!(shown.stdout.lines().all(|line| line.chars().count() <= 100));
    let fresh = lab.stats("seen");
    assert_eq!(fresh["kinds"][0]["commands"], 0);
    assert_eq!(fresh["unmapped_bytes"], 0);
}

#[test]
fn what_is_set_while_it_runs_takes_effect() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mut options = vec!["--profile", "ideal", "--size", "64M"];
    options.extend(["--set", "premapped=true", "--set", "volatile-cache=true"]);
    // The foreground's cgroup carries the name, and the machine has one of each.
    let name = &*format!("e2e-{}", std::process::id());
    let device = lab.up(name, &options);
    assert_eq!(lab.stats(name)["mapped_bytes"], 64 << 20);
    let from = format!("if={}", device.display());
    let read = || dd(&[&from, "of=/dev/null", "iflag=direct"]);
    assert!(read());
    lab.lab(&["set", name, "read.latency=1ms", "a=2ms"])
        .succeeds();
    // Who asks later what drive it is learns that, too.
    assert_eq!(
        lab.list()[0]["set"],
        serde_json::json!(["discard.a", "read.latency"])
    );
    let listed = lab.lab(&["list"]).succeeds().stdout.clone();
    assert!(
        listed.contains("ideal, set by hand: discard.a=2ms, read.latency=1ms"),
        "{listed}"
    );
    lab.lab(&["set", name, "red.latency=1ms"])
        .fails_with(2, &["read.latency"]);
    lab.lab(&["fault", name, "read", "error"]).succeeds();
    assert!(!read());
    let fault = &lab.stats(name)["faults"][0];
    assert_eq!(fault["fault"], "read error");
    let struck = fault["struck"].as_u64().unwrap();
    assert!(struck > 0);
    let listed = format!("read error: {struck} struck");
    assert_eq!(
        lab.lab(&["fault", name]).succeeds().stdout,
        format!("{listed}\n")
    );
    assert_eq!(lab.list()[0]["faults"][0], listed);
    lab.lab(&["fault", name, "clear"]).succeeds();
    assert!(read());
    lab.lab(&["fault", name, "power", "off"]).succeeds();
    assert!(!read());
    lab.lab(&["fault", name, "power", "on"]).succeeds();
    lab.lab(&["fault", name, "hang 100ms"]).succeeds();
    assert!(read());
    for (bad, words) in [
        ("read nonsense", &["KIND EFFECT"][..]),
        ("hang soon", &["hang", "soon"]),
        ("power maybe", &["power off"]),
    ] {
        lab.lab(&["fault", name, bad]).fails_with(2, words);
    }
    let done = lab.lab(&["exec", name, "--", "cat", "/proc/self/cgroup"]);
    assert!(done.succeeds().stdout.contains(name), "{}", done.text());
    let done = lab.lab(&["exec", name, "--", "sh", "-c", "exit 7"]);
    assert_eq!(done.code(), Some(7), "its exit code is the command's");
}

#[test]
fn a_hang_and_a_power_cut_are_listed_and_can_be_ended() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let name = &*format!("hung-{}", std::process::id());
    let device = lab.up(name, &["--profile", "ideal", "--size", "64M"]);
    let from = format!("if={}", device.display());
    let read = || dd(&[&from, "of=/dev/null", "iflag=direct"]);
    let fault = |words: &str| lab.lab(&["fault", name, words]).succeeds().stdout.clone();
    let shown = |what: &str| {
        let commands: [&[&str]; 3] = [&["list"], &["stats", name], &["fault", name]];
        for command in commands {
            let done = lab.lab(command);
            assert!(done.succeeds().stdout.contains(what), "{}", done.text());
        }
    };
    let clear = || lab.lab(&["fault", name, "clear"]).succeeds().stdout.clone();

    // Each of these reads would wait for an hour.
    fault("hang 1h");
    shown("hang: ");
    clear();
    assert!(read());
    fault("hang 1h");
    fault("hang 1ms");
    assert!(read(), "a shorter hang takes the place of a longer one");
    fault("hang 1h");
    fault("power off");
    shown("power off");
    assert!(!read());
    fault("power on");
    assert!(read(), "a power cut ends a hang");
    fault("power off");
    clear();
    assert!(read());
    assert_eq!(lab.stats(name)["power"], true);
    assert_eq!(lab.lab(&["fault", name]).succeeds().stdout, "");

    fault("read error times 1");
    assert!(!read() || !read());
    shown("read error times 1: 1 struck, over");
}

#[test]
fn a_new_drive_has_none_of_the_settings_of_its_numbers_last_user() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let options = ["--profile", "ideal", "--size", "64M"];
    let spoilt = [
        ("write_cache", "write through"),
        ("scheduler", "mq-deadline"),
        ("max_sectors_kb", "64"),
        ("nomerges", "2"),
        ("nr_requests", "33"),
        ("wbt_lat_usec", "0"),
        ("iostats", "0"),
        ("read_ahead_kb", "4"),
        ("rotational", "1"),
        ("add_random", "1"),
        ("rq_affinity", "2"),
        ("stable_writes", "1"),
    ];
    // Another test may take the number between the two drives.
    let met = (0..10).any(|_| {
        let old = lab.up("old", &options);
        let fresh = spoilt.map(|(name, _)| setting(&old, name));
        for (name, value) in spoilt {
            let _ = std::fs::write(queue(&old).join(name), value);
        }
        let part = ["1", "2048", "4096"];
        does("addpart", &[&[old.to_str().unwrap()], &part[..]].concat());
        assert_eq!(partition_numbers(&old), [1]);
        lab.lab(&["down", "old"]).succeeds();
        let new = lab.up("new", &options);
        assert!(partition_numbers(&new).is_empty(), "a partition is left");
        for ((name, value), fresh) in spoilt.iter().zip(fresh) {
            assert_eq!(setting(&new, name), fresh, "{name} was set to {value}");
        }
        lab.lab(&["down", "new"]).succeeds();
        new == old
    });
    assert!(
        met,
        "ten drives had ten other numbers than those before them"
    );
}

#[test]
fn partitions_are_looked_for_where_asked_and_their_mounts_are_the_drives() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let options = ["--profile", "ideal", "--size", "64M"];
    let scans = |device: &Path| {
        let flag = Path::new("/sys/block").join(device.file_name().unwrap());
        std::fs::read_to_string(flag.join("loop/partscan")).unwrap() == "1\n"
    };
    assert!(!scans(&lab.up("plain", &options)));
    let device = lab.up(
        "parted",
        &[&options[..], &["--set", "partscan=true"]].concat(),
    );
    assert!(scans(&device));
    // A kernel that knows no partition tables takes them from a program all the same.
    let whole = device.to_str().unwrap();
    does("addpart", &[whole, "1", "2048", "98304"]);
    let part = format!("{whole}p1");
    let dir = tempfile::tempdir().unwrap();
    let mount = dir.path().to_str().unwrap();
    does("mkfs.ext4", &["-q", &part]);
    does("mount", &[&part, mount]);
    let listed = lab.lab(&["list"]);
    let on = format!("on {mount}");
    assert!(listed.succeeds().stdout.contains(&on), "{}", listed.text());
    lab.lab(&["down", "parted"]).succeeds();
    let left = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!left.contains(mount), "{left}");
    lab.lab(&["down", "plain"]).succeeds();
}

#[test]
fn drives_of_one_power_supply_lose_it_together() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let options = ["--profile", "ideal", "--size", "64M"];
    for name in ["a", "b", "c"] {
        lab.up(name, &options);
    }
    let power = |name: &str| lab.stats(name)["power"].as_bool().unwrap();
    let unknown = lab.lab(&["fault", "a,nobody", "power", "off"]);
    assert!(!unknown.status.success(), "{}", unknown.text());
    assert!(power("a"), "one of the names is wrong");
    lab.lab(&["fault", "a,b", "power", "off"]).succeeds();
    assert_eq!(["a", "b", "c"].map(power), [false, false, true]);
    lab.lab(&["fault", "a,b", "power", "on"]).succeeds();
    assert_eq!(["a", "b", "c"].map(power), [true; 3]);
}

/// Runs a program of the system, which may not fail.
fn does(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {said}");
}

fn queue(device: &Path) -> std::path::PathBuf {
    Path::new("/sys/block")
        .join(device.file_name().unwrap())
        .join("queue")
}

/// A queue's setting; empty where this kernel has none of that name.
fn setting(device: &Path, name: &str) -> String {
    std::fs::read_to_string(queue(device).join(name)).unwrap_or_default()
}

#[test]
fn data_in_a_file_stay_and_end_where_told() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let file = store.to_str().unwrap();
    let mut options = vec!["--profile", "no-trim", "--size", "16M"];
    options.extend(["--store", file, "--set", "store-limit=4k"]);
    let up = lab.lab(&[&["up", "kept"], &options[..]].concat());
    let said = &up.succeeds().stderr;
    assert!(said.contains("it keeps 4.0 KiB of data at most"), "{said}");
    let listed = lab.lab(&["list"]);
    let listed = &listed.succeeds().stdout;
    assert!(listed.contains("keeps 4.0 KiB at most"), "{listed}");
    let device = Path::new(up.stdout.trim());
    let to = format!("of={}", device.display());
    let write = |seek| dd(&["if=/dev/urandom", &to, "oflag=direct", seek]);
    assert!(write("seek=0"), "the first block");
    assert!(!write("seek=2"), "there is room for one");
    let stats = lab.lab(&["stats", "kept"]);
    for part in ["4.0 KiB at most", "no room", "took all they may"] {
        assert!(stats.succeeds().stdout.contains(part), "{}", stats.text());
    }
    lab.lab(&["down", "kept"]).succeeds();
    let kept = std::fs::read(&store).unwrap();
    assert!(kept[..4096].iter().any(|&b| b != 0));
}

#[test]
fn profiles_are_listed_and_shown_with_their_sources() {
    let lab = OwnLab::new();
    let listed = lab.lab(&["profiles"]);
    assert!(listed.succeeds().stdout.contains("crucial-t500-2tb"));
    let shown = lab.lab(&["profiles", "show", "t500"]);
    assert!(shown.succeeds().stdout.contains("source ="));
    lab.lab(&["profiles", "show", "nosuch"])
        .fails_with(2, &["nosuch", "ideal"]);

    // What is shown can be copied, and a copy is a profile.
    let dir = tempfile::tempdir().unwrap();
    let mine = dir.path().join("mine.toml");
    std::fs::write(&mine, &shown.stdout).unwrap();
    let again = lab.lab(&["profiles", "show", mine.to_str().unwrap()]);
    assert_eq!(again.succeeds().stdout, shown.stdout);
    std::fs::write(&mine, shown.stdout.replace("\na =", "\naa =")).unwrap();
    lab.lab(&["profiles", "show", mine.to_str().unwrap()])
        .fails_with(2, &["mine.toml", "line 5", "aa", "did you mean 'a'"]);
}

#[test]
fn a_drive_that_can_not_be_is_refused_with_what_can() {
    if lacks(NEEDS) {
        return;
    }
    let lab = OwnLab::new();
    let refused = |options: &str, words: &[&str]| {
        let options: Vec<&str> = options.split(' ').collect();
        lab.lab(&[&["up", "a"], &options[..]].concat())
            .fails_with(2, words);
        assert!(!lab.dir().exists(), "nothing was made");
    };
    // The laboratory is there by then, to see what its drives may take.
    let refused_later = |options: &str, words: &[&str]| {
        let options: Vec<&str> = options.split(' ').collect();
        lab.lab(&[&["up", "a"], &options[..]].concat())
            .fails_with(2, words);
        std::fs::remove_dir(lab.dir()).unwrap();
    };
    refused(
        "--profile idael --size 1G",
        &["no profile 'idael'", "did you mean 'ideal'"],
    );
    refused("--profile ocz --size 1G", &["ocz-vertex-2, ocz-agility-2"]);
    refused("--profile ./no.toml --size 1G", &["./no.toml"]);
    refused(
        "--profile ideal --size 1000k",
        &["1024000 bytes", "whole MiB"],
    );
    refused("--profile ideal --size lots", &["--size", "lots"]);
    refused("--profile ideal --size 1G --slower 0", &["0 times slower"]);
    refused_later(
        "--profile ideal --size 900T --set store-limit=800T",
        &["800 TiB of data in memory", "are free", "in a file"],
    );
    refused(
        "--profile ideal --size 1G --set phii=1",
        &["--set phii=1", "did you mean 'phi'"],
    );
    refused("--profile ideal --size 1G --mount /tmp/a", &["--fs"]);
    refused(
        "--profile ideal --size 1G --fs ext4 -o discard",
        &["--mount"],
    );
    refused(
        "--profile ideal --size 1G --fs ntfs",
        &["ext4", "xfs", "btrfs"],
    );
    // What can't be made is taken back, and mkfs's reason is told without its manual.
    let small = [
        "up",
        "a",
        "--profile",
        "ideal",
        "--size",
        "64M",
        "--fs",
        "xfs",
    ];
    let done = lab.lab(&small);
    done.fails_with(1, &["mkfs.xfs", "300MB"]);
    assert!(!done.stderr.contains("Usage"), "{}", done.text());
    assert!(lab.list().is_empty());
    lab.lab(&["up", "a/b", "--profile", "ideal", "--size", "1G"])
        .fails_with(2, &["`a/b` can't be a drive's name"]);
    lab.lab(&["stats", "nosuch"])
        .fails_with(2, &["no drive `nosuch`"]);
}

#[test]
fn without_root_it_says_what_it_needs() {
    if lacks(NEEDS) || lacks(&[Need::Tool("setpriv")]) {
        return;
    }
    // Where anybody may run it from; the build directory may be root's alone.
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let program = copied_to(dir.path());
    let as_nobody = |arguments: &[&str]| {
        let mut command = as_plain_user(&program);
        command.args(arguments);
        run(command)
    };
    as_nobody(&["lab", "list"]).fails_with(2, &["needs root", "sudo"]);
    as_nobody(&["lab", "profiles"]).succeeds();
}
