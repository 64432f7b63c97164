//! `trimbench inspect`: on this machine, and on recorded ones.

use std::os::unix::fs::FileExt;

use serde_json::Value;
use testkit::Machine;

use crate::common::gate::{LOOP_BTRFS, LOOP_EXT4, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::{Done, as_plain_user, copied_to, run, trimbench};
use crate::common::schema::Schema;

fn inspect(arguments: &[&str]) -> Done {
    let mut command = trimbench();
    command.arg("inspect").args(arguments);
    run(command)
}

/// A recorded machine, by its directory.
fn on(machine: &Machine, arguments: &[&str]) -> Done {
    let root = machine.root().to_str().unwrap();
    inspect(&[&["--sysroot", root], arguments].concat())
}

/// Asserts that an inspection has the form that its schema promises.
#[track_caller]
pub fn conforms(text: &str) -> Value {
    static SCHEMA: Schema = Schema::new(include_str!("../../../diagnose/schema/inspect-1.json"));
    SCHEMA.parse(text)
}

/// ext4 on LVM on LUKS without discards, an array without them, and an ATA drive.
fn mixed() -> Machine {
    let machine = Machine::new(
        "1 0 253:1 / / rw - ext4 /dev/mapper/vg-root rw,discard\n\
         2 1 9:0 / /array rw - xfs /dev/md0 rw\n\
         3 1 8:0 / /sata rw - btrfs /dev/sda rw,discard\n",
    );
    machine.device("pci/nvme/nvme0/nvme0n1", "259:0", Some(1 << 30));
    machine.device("pci/nvme/nvme0/nvme0n1/nvme0n1p3", "259:3", None);
    for (index, label, uuid, below) in [
        (
            0,
            "luks",
            "CRYPT-LUKS2-1-luks",
            "pci/nvme/nvme0/nvme0n1/nvme0n1p3",
        ),
        (1, "vg-root", "LVM-a", "virtual/block/dm-0"),
    ] {
        let place = format!("virtual/block/dm-{index}");
        machine.device(&place, &format!("253:{index}"), Some(0));
        machine.write(
            &format!("sys/devices/{place}/queue/discard_max_hw_bytes"),
            "0\n",
        );
        machine.write(&format!("sys/devices/{place}/dm/name"), label);
        machine.write(&format!("sys/devices/{place}/dm/uuid"), uuid);
        machine.slave(&place, below);
    }
    machine.device("virtual/block/md0", "9:0", Some(0));
    machine.write(
        "sys/devices/virtual/block/md0/queue/discard_max_hw_bytes",
        "0\n",
    );
    machine.write("sys/devices/virtual/block/md0/md/level", "raid5\n");
    machine.slave("virtual/block/md0", "pci/nvme/nvme0/nvme0n1");
    let sata = "pci/ata3/host2/target2:0:0/2:0:0:0/block/sda";
    machine.device(sata, "8:0", Some(2 << 30));
    let mut words = vec!["0000"; 256];
    (words[169], words[69]) = ("0001", "4020");
    machine.write("sys/class/ata_device/dev3.0/id", &words.join(" "));
    machine.write("sys/class/ata_device/dev3.0/trim", "forced_unqueued\n");
    machine
}

#[test]
fn a_picture_shows_where_discards_stop() {
    let machine = mixed();
    let done = on(&machine, &["/home"]);
    let text = &done.succeeds().stdout;
    for line in [
        "✗ dm-0 (luks)  dm-crypt, 1.0 GiB: dm-crypt passes none on without allow_discards",
        "      ↓ nvme0n1p3  partition",
        "= discards stop at dm-0",
        "WARNING luks-blocks  dm-0",
        "do: cryptsetup refresh --allow-discards --persistent luks",
    ] {
        assert!(text.contains(line), "{line:?} missing in:\n{text}");
    }
    assert!(!text.contains("/array"), "{text}");
    let mut ascii = trimbench();
    ascii
        .env("LC_ALL", "C")
        .args(["inspect", "--sysroot"])
        .arg(machine.root())
        .arg("/home");
    let text = run(ascii).succeeds().stdout.clone();
    assert!(text.is_ascii() && text.contains("x dm-0 (luks)"), "{text}");
}

#[test]
fn all_of_a_machine_as_json_conforms_to_the_schema() {
    let machine = mixed();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.json");
    let done = on(&machine, &["--all", "--json", file.to_str().unwrap()]);
    assert!(
        done.succeeds().stdout.contains("raid5-off"),
        "{}",
        done.text()
    );
    let value = conforms(&std::fs::read_to_string(&file).unwrap());
    let ids: Vec<&str> = value["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["id"].as_str().unwrap())
        .collect();
    for id in [
        "luks-blocks",
        "raid5-off",
        "btrfs-sync",
        "trim-unqueued",
        "option-inert",
    ] {
        assert!(ids.contains(&id), "{id} missing in {ids:?}");
    }
    assert_eq!(value["drives"].as_array().unwrap().len(), 2);
    // This machine, whatever it is.
    conforms(&inspect(&["--all", "--json", "-"]).succeeds().stdout);
}

#[test]
fn verbose_prints_what_drives_report() {
    let done = on(&mixed(), &["/sata", "--verbose"]);
    let text = &done.succeeds().stdout;
    for part in [
        "trimmed sectors read (word 69)     zeros",
        "alone: Linux forbids",
        "(rw,discard)",
    ] {
        assert!(text.contains(part), "{part:?} missing in:\n{text}");
    }
}

#[test]
fn fail_on_a_severity_gives_its_exit_code() {
    let machine = mixed();
    for (severity, code) in [("note", 3), ("warning", 3), ("critical", 0)] {
        let done = on(&machine, &["/", "--fail-on", severity]);
        assert_eq!(done.code(), Some(code), "{severity}: {}", done.text());
    }
}

#[test]
fn a_profile_predicts_the_stall() {
    let machine = mixed();
    let done = on(&machine, &["/sata", "--profile", "870-evo"]);
    let text = &done.succeeds().stdout;
    assert!(
        text.contains("predicted-stall") && text.contains("1 discard of 1.0 GiB"),
        "{text}"
    );
    on(&machine, &["/", "--profile", "nosuch"]).fails_with(2, &["there is no profile"]);
}

#[test]
fn what_is_missing_is_no_failure_but_a_path_is() {
    let nothing = tempfile::tempdir().unwrap();
    let root = nothing.path().to_str().unwrap();
    for place in ["--all", "/data"] {
        let done = inspect(&["--sysroot", root, place]);
        let text = &done.succeeds().stdout;
        assert!(
            text.contains("Not found out") && text.contains("/sys is not there"),
            "{text}"
        );
    }
    inspect(&["/no/such/place"]).fails_with(2, &["/no/such/place", "name a path"]);
    inspect(&["/", "--all"]).fails_with(2, &["cannot be used with"]);
    for place in ["/proc", "/dev/shm", "/dev/null"] {
        inspect(&[place]).succeeds();
    }
}

#[test]
fn without_root_it_shows_what_it_can() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let path = folder.path();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, mode).unwrap();
    let mut command = as_plain_user(&copied_to(path));
    command.args(["inspect", "/", "--json", "-"]);
    let value = conforms(&run(command).succeeds().stdout);
    assert!(
        !value["stacks"][0]["layers"].as_array().unwrap().is_empty(),
        "{value:#}"
    );
}

#[test]
fn a_file_system_on_a_loop_device() {
    if lacks(LOOP_BTRFS) {
        return;
    }
    let fs = LoopFs::new(Fs::Btrfs, "discard", SMALL, On::Disk);
    let at = fs.path().to_str().unwrap();
    let text = inspect(&[at]).succeeds().stdout.clone();
    assert!(
        text.contains("≈ loop") && text.contains("makes holes in"),
        "{text}"
    );
    assert!(text.contains("WARNING btrfs-sync"), "{text}");
}

#[test]
fn a_trim_of_btrfs_is_forecast() {
    if lacks(LOOP_BTRFS) {
        return;
    }
    let fs = LoopFs::new(Fs::Btrfs, "nodiscard", SMALL, On::Disk);
    let kept = fs.path().join("kept");
    std::fs::write(&kept, vec![7; 8 << 20]).unwrap();
    std::fs::write(fs.path().join("old"), vec![7; 32 << 20]).unwrap();
    std::fs::remove_file(fs.path().join("old")).unwrap();
    rustix::fs::syncfs(std::fs::File::open(fs.path()).unwrap()).unwrap();
    let mut trim = trimbench();
    trim.args(["fstrim", "--dry-run"]).arg(fs.path());
    let text = run(trim).succeeds().stdout.clone();
    let (_, forecast) = text.split_once("at most ").expect(&text);
    let mut words = forecast.split_whitespace();
    let size: f64 = words.next().unwrap().parse().expect(&text);
    // All but the file, and what mkfs wrote.
    let mib = match words.next().unwrap() {
        "GiB:" => size * 1024.0,
        _ => size,
    };
    let space = rustix::fs::statvfs(fs.path()).unwrap();
    let whole = ((space.f_blocks * space.f_frsize) >> 20) as f64;
    assert!(mib > 0.7 * whole && mib < 1.1 * whole, "{text}");
}

/// An ext4 with a journal discards the free space behind a freed extent a second time: between the
/// parts of one file, and not where another file's lie between them.
#[test]
fn free_space_behind_a_deletion_is_forecast() {
    if linux::host::kernel_version() < (6, 8) || lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", 512, On::Disk);
    let at = |name: &str| fs.path().join(name);
    let part = [7; 64 << 10];
    let open = |name: &str| std::fs::File::create(at(name)).unwrap();
    let [alone, between, kept] = ["alone", "between", "kept"].map(open);
    for number in 0..30 {
        for (file, place) in [(&between, 16), (&kept, 16), (&alone, 20)] {
            file.write_all_at(&part, number << place).unwrap();
            file.sync_all().unwrap();
        }
    }
    drop((alone, between));
    for (name, least_again, most_again) in [("between", 0, 4 << 20), ("alone", 8 << 20, u64::MAX)] {
        let file = at(name);
        let done = inspect(&["--json", "-", "--if-deleted", file.to_str().unwrap()]);
        let forecast = conforms(&done.succeeds().stdout)["if_deleted"].clone();
        let figure = |key: &str| forecast[key].as_u64().unwrap();
        assert_eq!(figure("bytes"), 30 << 16, "{forecast:#}");
        assert!(
            (least_again..=most_again).contains(&figure("again_bytes")),
            "{forecast:#}"
        );
        let (_, before) = fs.device().discards();
        std::fs::remove_file(&file).unwrap();
        rustix::fs::syncfs(&kept).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(2));
        let sent = fs.device().discards().1 - before;
        let expected = figure("bytes") + figure("again_bytes");
        assert!(
            sent.abs_diff(expected) <= 1 << 20,
            "{name}: {sent} sent, {forecast:#}"
        );
    }
}

#[test]
fn a_deletion_is_forecast_and_not_done() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Disk);
    let file = fs.path().join("old");
    // Not yet written out.
    std::fs::write(&file, vec![7; 8 << 20]).unwrap();
    let at = file.to_str().unwrap();
    let done = inspect(&["--json", "-", "--profile", "870-evo", "--if-deleted", at]);
    let value = conforms(&done.succeeds().stdout);
    let forecast = &value["if_deleted"];
    assert_eq!(forecast["bytes"], 8 << 20, "{forecast:#}");
    assert!(forecast["commands"].as_u64().unwrap() >= 1);
    assert!(forecast["time"]["stall_s"].as_f64().unwrap() > 0.0005);
    let text = inspect(&["--if-deleted", at]).succeeds().stdout.clone();
    assert!(
        text.contains("Deleting 8.0 MiB: ") && text.contains("`trimbench fit`"),
        "{text}"
    );
    assert_eq!(file.metadata().unwrap().len(), 8 << 20);
    // Neighbours may be discarded apart.
    let small = fs.path().join("small");
    std::fs::create_dir(&small).unwrap();
    for number in 0..50 {
        std::fs::write(small.join(number.to_string()), [7; 12_000]).unwrap();
    }
    let done = inspect(&["--json", "-", "--if-deleted", small.to_str().unwrap()]);
    let value = conforms(&done.succeeds().stdout);
    let forecast = &value["if_deleted"];
    assert!(forecast["commands"].as_u64().unwrap() < 40, "{forecast:#}");
    if linux::host::kernel_version() >= (6, 8) {
        assert_eq!(forecast["most"]["commands"], 50, "{forecast:#}");
    }
    inspect(&["--if-deleted", at, "/dev/null"]).fails_with(2, &["another file system"]);
    inspect(&["--if-deleted", "/no/such"]).fails_with(2, &["/no/such"]);
    let mut trim = trimbench();
    trim.args(["fstrim", "--dry-run", "--profile", "870-evo"])
        .arg(fs.path());
    let text = run(trim).succeeds().stdout.clone();
    assert!(
        text.contains("at most ") && text.contains("a stall of"),
        "{text}"
    );
}

#[test]
fn a_copy_is_shown_whole_unless_a_path_is_given() {
    let machine = mixed();
    let stacks = |arguments: &[&str]| {
        let done = on(&machine, &[&["--json", "-"], arguments].concat());
        let found = conforms(&done.succeeds().stdout);
        found["stacks"].as_array().unwrap().len()
    };
    assert_eq!((stacks(&[]), stacks(&["/array"])), (3, 1));
}

#[test]
fn collected_files_are_inspected_as_the_machine_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("here.tar");
    let file = file.to_str().unwrap();
    let done = inspect(&["--collect", file]);
    assert!(done.succeeds().stdout.contains("--sysroot"));
    let shown = inspect(&["--all", "--json", "-", "--sysroot", file]);
    let found = conforms(&shown.succeeds().stdout);
    assert!(!found["stacks"].as_array().unwrap().is_empty(), "{found}");
    assert!(!found["origin"]["kernel"].as_str().unwrap().is_empty());
    // Half of it, and another file.
    let bytes = std::fs::read(file).unwrap();
    std::fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
    for other in [file, "/proc/self/exe"] {
        let refused = inspect(&["--all", "--sysroot", other]);
        refused.fails_with(2, &[other, "--collect"]);
    }
}
