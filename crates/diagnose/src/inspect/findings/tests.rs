//! Each rule on a machine that has it, and on one that is mended.

use linux::SysRoot;
use testkit::Machine;

use super::super::prove::{Outcome, Raw};
use super::super::{Inspection, Now, Options, Proof, Scope, inspect};
use super::*;

mod advice;
mod life;

const GIB: u64 = 1 << 30;

fn inspected(machine: &Machine, card: Option<Card>) -> Inspection {
    proven(machine, card, None)
}

fn proven(machine: &Machine, card: Option<Card>, proof: Option<Proof>) -> Inspection {
    let options = Options {
        now: Now {
            unix_s: 1_795_485_600,
            offset_s: 0,
        },
        privileged: true,
        card,
        proof,
        ..Options::default()
    };
    inspect(&SysRoot::at(machine.root()), &Scope::All, &options).unwrap()
}

fn ids(machine: &Machine) -> Vec<&'static str> {
    inspected(machine, None)
        .findings
        .iter()
        .map(|finding| finding.id)
        .collect()
}

/// The finding, which must rest on something and say what to do or cost.
#[track_caller]
fn finding(machine: &Machine, id: &str) -> Finding {
    let found = inspected(machine, None).findings;
    let one = found.iter().find(|one| one.id == id);
    let one = one
        .unwrap_or_else(|| panic!("no {id} in {found:#?}"))
        .clone();
    assert!(!one.evidence.is_empty() && !one.cost.is_empty(), "{one:#?}");
    // Each place of the texts has its value.
    let texts = format!("{} {} {:?}", one.what, one.cost, one.remedy);
    let texts = texts.replace("ATTR{", "").replace("ATTRS{", "");
    assert!(!texts.contains('{'), "{one:#?}");
    one
}

/// An NVMe drive with a mount.
fn nvme(fs: &str, options: &str) -> Machine {
    let machine = Machine::new(&format!("1 0 259:0 / / rw - {fs} /dev/nvme0n1 {options}\n"));
    machine.device("pci/nvme/nvme0/nvme0n1", "259:0", Some(GIB));
    machine.write(
        "sys/devices/pci/nvme/nvme0/nvme0n1/queue/discard_max_hw_bytes",
        "1073741824\n",
    );
    machine
}

fn set(machine: &Machine, place: &str, file: &str, value: &str) {
    machine.write(
        &format!("sys/devices/{place}/{file}"),
        &format!("{value}\n"),
    );
}

const NVME: &str = "pci/nvme/nvme0/nvme0n1";

fn timer(machine: &Machine, exec: &str, enabled: bool) {
    let lib = "usr/lib/systemd/system";
    machine.write(
        &format!("{lib}/fstrim.timer"),
        "[Timer]\nOnCalendar=weekly\nRandomizedDelaySec=6000\n",
    );
    machine.write(
        &format!("{lib}/fstrim.service"),
        &format!("[Service]\nExecStart={exec}\n"),
    );
    if enabled {
        machine.link("etc/systemd/system/timers.target.wants/fstrim.timer", "x");
    }
}

/// A device of the device mapper over another.
fn dm(machine: &Machine, index: u32, label: &str, uuid: &str, max: u64, below: &str) -> String {
    let place = format!("virtual/block/dm-{index}");
    machine.device(&place, &format!("253:{index}"), Some(max));
    set(
        machine,
        &place,
        "queue/discard_max_hw_bytes",
        &max.to_string(),
    );
    set(machine, &place, "dm/name", label);
    set(machine, &place, "dm/uuid", uuid);
    machine.slave(&place, below);
    place
}

fn on_dm(index: u32, options: &str) -> Machine {
    let line = format!("1 0 253:{index} / / rw - ext4 /dev/dm-{index} {options}\n");
    let machine = Machine::new(&line);
    machine.device(NVME, "259:0", Some(GIB));
    set(&machine, NVME, "queue/discard_max_hw_bytes", "1073741824");
    machine
}

#[test]
fn a_mount_that_nothing_trims() {
    let machine = nvme("ext4", "rw");
    assert_eq!(
        finding(&machine, "nothing-trims").severity,
        Severity::Warning
    );
    timer(&machine, "/sbin/fstrim -a", false);
    assert_eq!(ids(&machine), ["nothing-trims"]);
    // No timer starts where another program is the first process, enabled or not.
    machine.write("proc/1/comm", "runit\n");
    let remedy = finding(&machine, "nothing-trims").remedy.unwrap();
    assert!(
        remedy.contains("> /etc/cron.d/") && !remedy.contains("systemctl"),
        "{remedy}"
    );
    let program = std::env::current_exe().unwrap();
    let command = format!("root {} fstrim", record::units::names::shown(program));
    assert!(remedy.contains(&command), "{remedy}");
    machine.write("proc/1/comm", "systemd\n");
    timer(&machine, "/sbin/fstrim -a", true);
    assert_eq!(ids(&machine), [""; 0]);
    assert_eq!(ids(&nvme("ext4", "rw,discard")), [""; 0]);
}

#[test]
fn a_timer_that_misses_a_mount() {
    let machine = nvme("ext4", "rw");
    timer(&machine, "/sbin/fstrim /srv", true);
    let found = finding(&machine, "timer-misses-mount");
    assert!(found.remedy.unwrap().contains("/etc/fstab"));
    assert!(!ids(&machine).contains(&"nothing-trims"));
}

#[test]
fn luks_without_discards() {
    let machine = on_dm(0, "rw,discard");
    let place = dm(&machine, 0, "root", "CRYPT-LUKS2-1-root", 0, NVME);
    let found = finding(&machine, "luks-blocks");
    assert!(found.remedy.unwrap().contains("--persistent root"));
    assert_eq!(
        found.evidence[0].file,
        "/sys/block/dm-0/queue/discard_max_bytes"
    );
    assert!(
        finding(&machine, "option-inert")
            .what
            .contains("stop at dm-0")
    );
    set(&machine, &place, "queue/discard_max_bytes", "1073741824");
    assert_eq!(ids(&machine), [""; 0]);
}

#[test]
fn luks_and_its_line_in_crypttab() {
    let machine = on_dm(0, "rw,discard");
    let place = dm(&machine, 0, "root", "CRYPT-LUKS2-1-root", 0, NVME);
    let table = "# name device key options\nswap /dev/sda2 /dev/urandom swap,discard\n";
    let root = |options: &str| {
        let line = format!("{table}root UUID=0a-1b none {options}\n");
        machine.write("etc/crypttab", &line);
    };
    root("luks");
    let found = finding(&machine, "luks-blocks");
    assert_eq!(
        found.remedy.unwrap(),
        "cryptsetup refresh --allow-discards root; sed -i '3c root UUID=0a-1b none luks,discard' \
         /etc/crypttab"
    );
    assert_eq!(found.evidence[1].file, "/etc/crypttab:3");
    root("luks,discard");
    let remedy = finding(&machine, "luks-blocks").remedy.unwrap();
    assert!(remedy.contains("update-initramfs"), "{remedy}");
    // The kernel lets them pass.
    set(&machine, &place, "queue/discard_max_bytes", "1073741824");
    assert_eq!(ids(&machine), [""; 0]);
    root("luks");
    let found = finding(&machine, "luks-not-kept");
    assert!(found.remedy.unwrap().starts_with("sed -i '3c root "));
    assert_eq!(ids(&machine), ["luks-not-kept"]);
    assert_eq!(inspected(&machine, None).crypttab[0].line, 3);
    // A line of another device says nothing of this one.
    machine.write("etc/crypttab", table);
    assert_eq!(ids(&machine), [""; 0]);
}

/// The command that a finding prints does what it says.
#[test]
fn the_command_for_crypttab_changes_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("crypttab");
    let text = "a UUID=1 none luks\nb UUID=2 /key\\040x luks,timeout=3\nc UUID=3\n";
    std::fs::write(&file, text).unwrap();
    let machine = on_dm(0, "rw,discard");
    dm(&machine, 0, "b", "CRYPT-LUKS2-1-b", 0, NVME);
    machine.write("etc/crypttab", text);
    let remedy = finding(&machine, "luks-blocks").remedy.unwrap();
    let command = remedy.split_once("; ").unwrap().1;
    let command = command.replace("/etc/crypttab", file.to_str().unwrap());
    let mut done = std::process::Command::new("sh");
    done.args(["-c", &command]);
    assert!(done.status().unwrap().success(), "{command}");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        text.replace("timeout=3", "timeout=3,discard")
    );
}

#[test]
fn an_option_that_a_remount_did_not_take() {
    let machine = nvme("xfs", "rw");
    machine.write("etc/fstab", "/dev/nvme0n1 / xfs discard 0 0\n");
    assert!(
        finding(&machine, "option-inert")
            .what
            .contains("/etc/fstab")
    );
}

#[test]
fn btrfs_that_discards_within_commits() {
    assert!(
        finding(&nvme("btrfs", "rw,discard"), "btrfs-sync")
            .remedy
            .unwrap()
            .contains("=async")
    );
    assert_eq!(ids(&nvme("btrfs", "rw,discard=async")), [""; 0]);
}

#[test]
fn ext4_that_discards_free_space_again() {
    let on = |release: &str, options: &str| {
        let machine = nvme("ext4", options);
        machine.write("proc/sys/kernel/osrelease", &format!("{release}\n"));
        machine.write("sys/fs/ext4/nvme0n1/journal_task", "123\n");
        machine
    };
    let found = finding(&on("6.18.44-amd64", "rw,discard"), "ext4-rediscards");
    assert!(found.remedy.unwrap().contains("trimbench guard"));
    assert_eq!(ids(&on("6.1.0", "rw,discard")), [""; 0]);
    assert_eq!(ids(&on("6.18.44", "rw")), ["nothing-trims"]);
}

#[test]
fn a_file_system_that_is_not_known_to_discard() {
    finding(&nvme("reiserfs", "rw"), "fs-not-issuing");
    assert_eq!(ids(&nvme("squashfs", "ro")), [""; 0]);
}

#[test]
fn a_drive_that_turns() {
    let machine = nvme("ext4", "rw,discard");
    set(&machine, NVME, "queue/rotational", "1");
    finding(&machine, "hdd-trimmed");
    machine.write(
        "proc/self/mountinfo",
        "1 0 259:0 / / rw - ext4 /dev/nvme0n1 rw\n",
    );
    assert_eq!(ids(&machine), [""; 0]);
}

#[test]
fn several_that_trim_one_mount() {
    let machine = nvme("ext4", "rw,discard");
    timer(&machine, "/sbin/fstrim -a", true);
    let found = finding(&machine, "several-trimmers");
    assert!(
        found
            .what
            .contains("the mount's discard and by fstrim.timer"),
        "{}",
        found.what
    );
    machine.write("etc/cron.weekly/fstrim", "fstrim /\n");
    assert!(finding(&machine, "several-trimmers").what.contains("cron"));
}

#[test]
fn a_virtual_drive_and_its_herd() {
    let machine = Machine::new("1 0 254:0 / / rw - ext4 /dev/vda rw,discard\n");
    machine.device("pci/virtio1/block/vda", "254:0", Some(GIB));
    set(
        &machine,
        "pci/virtio1/block/vda",
        "queue/discard_max_hw_bytes",
        "1073741824",
    );
    assert_eq!(
        finding(&machine, "host-may-ignore").severity,
        Severity::Note
    );
    assert!(!ids(&machine).contains(&"timer-herd"));
    timer(&machine, "/sbin/fstrim -a", true);
    let found = finding(&machine, "timer-herd");
    assert_eq!(found.evidence[1].value, "RandomizedDelaySec=6000 s");
    machine.write(
        "etc/systemd/system/fstrim.timer.d/delay.conf",
        "[Timer]\nRandomizedDelaySec=12h\n",
    );
    assert!(!ids(&machine).contains(&"timer-herd"));
}

#[test]
fn a_usb_bridge_that_is_not_asked() {
    let place = "pci/usb2/host6/target6:0:0/6:0:0:0/block/sdb";
    let machine = Machine::new("1 0 8:16 / /usb rw - ext4 /dev/sdb rw\n");
    machine.device(place, "8:16", Some(0));
    set(&machine, place, "queue/discard_max_hw_bytes", "0");
    assert_eq!(ids(&machine), [""; 0]);
    machine.write("identify/sdb/scsi-b0", "");
    let path = machine.root().join("identify/sdb/scsi-b2");
    std::fs::write(path, [0, 0xb2, 0, 4, 0, 0x80, 0, 0]).unwrap();
    assert!(
        finding(&machine, "usb-lbpme")
            .remedy
            .unwrap()
            .contains("provisioning_mode")
    );
}

#[test]
fn a_drive_that_refused_unmap() {
    let place = "pci/host6/target6:0:0/6:0:0:0/block/sdb";
    let machine = Machine::new("1 0 8:16 / /x rw - ext4 /dev/sdb rw\n");
    machine.device(place, "8:16", Some(0));
    set(&machine, place, "queue/discard_max_hw_bytes", "0");
    machine.write("sys/devices/pci/host6/scsi/scsi_disk/6:0:0:0/x", "");
    machine.link(
        &format!("sys/devices/{place}/device"),
        "sys/devices/pci/host6/scsi",
    );
    machine.write(
        "sys/class/scsi_disk/6:0:0:0/provisioning_mode",
        "disabled\n",
    );
    assert!(
        finding(&machine, "disabled-at-runtime")
            .what
            .contains("refused")
    );
}

#[test]
fn limits_that_were_lowered_or_switched_off() {
    let machine = nvme("ext4", "rw,discard");
    set(&machine, NVME, "queue/discard_max_bytes", "0");
    assert!(
        finding(&machine, "disabled-at-runtime")
            .remedy
            .unwrap()
            .starts_with("echo 1073741824")
    );
    set(&machine, NVME, "queue/discard_max_bytes", "33554432");
    assert_eq!(finding(&machine, "max-lowered").severity, Severity::Note);
    assert!(!ids(&machine).contains(&"disabled-at-runtime"));
    set(&machine, NVME, "queue/discard_max_bytes", "1073741824");
    assert_eq!(ids(&machine), [""; 0]);
}

fn ata(word: &str) -> Machine {
    let machine = Machine::new("1 0 8:0 / / rw - ext4 /dev/sda rw,discard\n");
    let place = "pci/ata3/host2/target2:0:0/2:0:0:0/block/sda";
    machine.device(place, "8:0", Some(GIB));
    set(&machine, place, "queue/discard_max_hw_bytes", "1073741824");
    machine.write("sys/class/ata_device/dev3.0/trim", &format!("{word}\n"));
    machine
}

#[test]
fn trim_that_runs_alone_or_is_forbidden() {
    assert!(
        finding(&ata("forced_unqueued"), "trim-unqueued")
            .what
            .contains("Linux knows")
    );
    assert!(
        finding(&ata("unqueued"), "trim-unqueued")
            .what
            .contains("the drive")
    );
    assert_eq!(
        finding(&ata("forced_unsupported"), "firmware-wedges").severity,
        Severity::Critical
    );
    assert_eq!(ids(&ata("queued")), [""; 0]);
}

#[test]
fn a_drive_with_a_small_largest_discard() {
    let machine = nvme("ext4", "rw,discard");
    for file in ["queue/discard_max_bytes", "queue/discard_max_hw_bytes"] {
        set(&machine, NVME, file, "134217728");
    }
    assert!(
        finding(&machine, "trim-capped")
            .cost
            .contains("8,192 commands")
    );
}

fn array(level: &str, max: u64) -> Machine {
    let machine = Machine::new("1 0 9:0 / / rw - xfs /dev/md0 rw,discard\n");
    machine.device("virtual/block/md0", "9:0", Some(max));
    set(&machine, "virtual/block/md0", "md/level", level);
    set(
        &machine,
        "virtual/block/md0",
        "queue/discard_max_hw_bytes",
        &max.to_string(),
    );
    for index in 0..3 {
        let place = format!("pci/nvme/nvme{index}/nvme{index}n1");
        machine.device(&place, &format!("259:{index}"), Some(GIB));
        set(&machine, &place, "queue/discard_max_hw_bytes", "1073741824");
        machine.slave("virtual/block/md0", &place);
    }
    machine
}

#[test]
fn arrays_with_parity() {
    let machine = array("raid5", 0);
    machine.write(
        "sys/module/raid456/parameters/devices_handle_discard_safely",
        "N\n",
    );
    let found = finding(&machine, "raid5-off");
    assert!(found.evidence[0].value.ends_with("is N"), "{found:#?}");
    assert_eq!(ids(&array("raid5", GIB)), ["raid5-splits"]);
    assert_eq!(ids(&array("raid1", GIB)), [""; 0]);
}

#[test]
fn thin_volumes() {
    let machine = on_dm(3, "rw,discard");
    let pool = dm(&machine, 2, "vg-pool-tpool", "LVM-a-tpool", GIB, NVME);
    let thin = dm(&machine, 3, "vg-thin", "LVM-b", GIB, &pool);
    assert_eq!(ids(&machine), ["thin-removed-lv"]);
    set(&machine, &thin, "queue/discard_granularity", "1048576");
    assert!(
        finding(&machine, "thin-granularity")
            .what
            .contains("1.0 MiB")
    );
    finding(&machine, "thin-removed-lv");
    machine.write(
        "dmsetup-table",
        "vg-pool-tpool: 0 8 thin-pool 253:1 253:0 128 0 1 no_discard_passdown\n",
    );
    assert!(
        finding(&machine, "thin-no-passdown")
            .remedy
            .unwrap()
            .contains("passdown")
    );
}

#[test]
fn vdo_under_online_discard() {
    let machine = on_dm(1, "rw,discard");
    dm(&machine, 1, "vdo", "VDO-1", GIB, NVME);
    finding(&machine, "vdo-flood");
    machine.write(
        "proc/self/mountinfo",
        "1 0 253:1 / / rw - ext4 /dev/dm-1 rw\n",
    );
    assert!(!ids(&machine).contains(&"vdo-flood"));
}

#[test]
fn a_stall_is_predicted_from_a_card() {
    let card = |name: &str| ssd::profiles::by_name(name).cloned();
    let with = |machine: &Machine, name: &str| {
        let found = inspected(machine, card(name)).findings;
        found.into_iter().find(|one| one.id == "predicted-stall")
    };
    let machine = nvme("ext4", "rw,discard");
    let small = with(&machine, "samsung-870-evo-2tb").unwrap();
    assert!(
        small.what.contains("8 discards of 128 MiB"),
        "{}",
        small.what
    );
    set(&machine, NVME, "size", "419430400");
    let found = with(&machine, "samsung-870-evo-2tb").unwrap();
    // 100 GiB in pieces of 128 MiB, each 0.481 ms + 128 × 8.44 µs.
    assert!(
        found.what.contains("800 discards of 128 MiB"),
        "{}",
        found.what
    );
    assert!(
        found.what.contains("1.56 ms") || found.what.contains("1.6 ms"),
        "{}",
        found.what
    );
    assert_eq!(with(&machine, "ideal"), None);
    assert_eq!(with(&nvme("ext4", "rw"), "samsung-870-evo-2tb"), None);
}

#[test]
fn a_proof_that_found_something() {
    let machine = nvme("ext4", "rw,discard");
    let ids = |result: Outcome| {
        let proof = Proof {
            path: "/".to_owned(),
            probe_bytes: 64 << 20,
            fitrim: false,
            layers: Vec::new(),
            raw: Some(Raw::default()),
            raw_missing: None,
            result,
            stops_at: None,
            summary: "what came of it".to_owned(),
            seconds: 0.5,
        };
        let found = proven(&machine, None, Some(proof)).findings;
        found.iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(Outcome::Ignored), ["claims-but-ignores"]);
    assert_eq!(ids(Outcome::TooMuch), ["trims-too-much"]);
    assert_eq!(ids(Outcome::Arrives), [""; 0]);
}

/// The names that the rules give to [`Finding::new`].
fn names_in(source: &str) -> Vec<&str> {
    let words = source.split('"').skip(1).step_by(2);
    let is_name = |word: &&str| {
        RULES
            .iter()
            .any(|rule| Some(rule.0) == word.split('.').next())
    };
    words.filter(is_name).collect()
}

#[test]
fn every_case_of_a_rule_has_texts_and_every_text_a_case() {
    let sources = [
        include_str!("drives.rs"),
        include_str!("file_systems.rs"),
        include_str!("layers.rs"),
        include_str!("luks.rs"),
        include_str!("predicted.rs"),
        include_str!("proven.rs"),
        include_str!("trimmers.rs"),
    ];
    let names: Vec<&str> = sources.into_iter().flat_map(names_in).collect();
    for name in &names {
        let finding = Finding::new(name, "sda");
        assert!(
            !finding.what.is_empty() && !finding.cost.is_empty(),
            "{name}"
        );
    }
    let is_used = |name: &str| names.iter().any(|one| one.split('.').next() == Some(name));
    for (name, _) in TEXTS.get_ref() {
        let name = name.get_ref().as_ref();
        assert!(names.contains(&name) || is_used(name), "{name} is not used");
    }
}

#[test]
fn the_gravest_comes_first_and_a_shared_layer_once() {
    let machine = array("raid5", 0);
    machine.write(
        "proc/self/mountinfo",
        "1 0 9:0 / / rw - xfs /dev/md0 rw,discard\n2 1 259:9 / /b rw - xfs /dev/md0p1 rw,discard\n",
    );
    machine.device("virtual/block/md0/md0p1", "259:9", None);
    let found = inspected(&machine, None);
    let severities: Vec<Severity> = found.findings.iter().map(|one| one.severity).collect();
    assert!(severities.is_sorted_by(|a, b| a >= b));
    let off = found.findings.iter().filter(|one| one.id == "raid5-off");
    assert_eq!(off.count(), 1);
    assert_eq!(found.worst(), Some(Severity::Warning));
}
