//! Drives as kernels show them, rebuilt in a temporary directory.

use super::*;
use testkit::Machine;

fn drive(machine: &Machine, name: &str) -> Drive {
    Drive::of(&SysRoot::at(machine.root()), name, true).unwrap()
}

#[test]
fn transports_by_the_way_to_the_device() {
    let machine = Machine::new("");
    let places = [
        ("pci/nvme/nvme0/nvme0n1", Transport::Nvme),
        (
            "pci/ata3/host2/target2:0:0/2:0:0:0/block/sda",
            Transport::Ata,
        ),
        (
            "pci/usb2/2-1/host6/target6:0:0/6:0:0:0/block/sdb",
            Transport::Usb,
        ),
        ("pci/virtio1/block/vda", Transport::Virtio),
        (
            "pci/virtio0/host1/target1:0:0/1:0:0:0/block/sdc",
            Transport::Virtio,
        ),
        ("vbd-51712/block/xvda", Transport::Xen),
        ("pci/host9/target9:0:0/9:0:0:0/block/sdd", Transport::Scsi),
        (
            "platform/mmc_host/mmc0/mmc0:0001/block/mmcblk0",
            Transport::Mmc,
        ),
        ("virtual/block/loop3", Transport::Loop),
        ("virtual/block/zram0", Transport::Memory),
    ];
    for (index, (place, expected)) in places.iter().enumerate() {
        machine.device(place, &format!("8:{index}"), Some(1 << 20));
        let name = place.rsplit('/').next().unwrap();
        assert_eq!(drive(&machine, name).transport, *expected, "{place}");
    }
}

#[test]
fn serial_numbers_as_each_driver_shows_them() {
    let machine = Machine::new("");
    let places = [
        ("pci/nvme/nvme0/nvme0n1", "device/serial", "S4EV 12 \n"),
        ("pci/virtio1/block/vda", "serial", "disk-7\n"),
        (
            "pci/host9/target9:0:0/9:0:0:0/block/sdd",
            "device/vpd_pg80",
            "\0\u{1}\0\u{8}  WD-33  ",
        ),
        ("pci/virtio2/block/vdb", "serial", ""),
    ];
    for (index, (place, file, text)) in places.iter().enumerate() {
        machine.device(place, &format!("8:{index}"), Some(1 << 20));
        machine.write(&format!("sys/devices/{place}/{file}"), text);
    }
    let serials = ["nvme0n1", "vda", "sdd", "vdb"].map(|name| drive(&machine, name).serial);
    let expected = [Some("S4EV 12"), Some("disk-7"), Some("WD-33"), None];
    assert_eq!(serials.each_ref().map(Option::as_deref), expected);
}

#[test]
fn pages_of_a_recorded_drive_are_read() {
    let machine = Machine::new("");
    machine.device("pci/nvme/nvme0/nvme0n1", "259:0", Some(1 << 30));
    let found = drive(&machine, "nvme0n1");
    assert!(found.nvme.is_none() && found.pages_missing.is_some());
    let page = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut page = vec![0u8; 4096];
        edit(&mut page);
        String::from_utf8(page).unwrap()
    };
    machine.write(
        "identify/nvme0n1/nvme-controller",
        &page(&|page| page[520] = 4),
    );
    machine.write(
        "identify/nvme0n1/nvme-namespace",
        &page(&|page| {
            (page[33], page[130]) = (1, 9);
        }),
    );
    let found = drive(&machine, "nvme0n1");
    assert_eq!(found.reads_as(), Some(ReadsAs::Zeros));
    assert_eq!(found.pages_missing, None);
    let without_root = Drive::of(&SysRoot::at(machine.root()), "nvme0n1", false).unwrap();
    assert_eq!(
        without_root.pages_missing.as_deref(),
        Some("they need root")
    );
}

#[test]
fn a_scsi_disk_has_its_mode_and_vital_pages_in_sys() {
    let machine = Machine::new("");
    let place = "pci/usb2/host6/target6:0:0/6:0:0:0/block/sdb";
    machine.device(place, "8:16", Some(0));
    machine.write("sys/devices/pci/usb2/host6/scsi/scsi_disk/6:0:0:0/x", "");
    machine.link(
        &format!("sys/devices/{place}/device"),
        "sys/devices/pci/usb2/host6/scsi",
    );
    machine.write("sys/class/scsi_disk/6:0:0:0/provisioning_mode", "full\n");
    machine.write("sys/devices/pci/usb2/host6/scsi/vendor", "QEMU\n");
    let found = drive(&machine, "sdb");
    assert_eq!(found.provisioning_mode.as_deref(), Some("full"));
    assert!(found.is_virtual());
    assert_eq!(found.scsi, None);
}

#[test]
fn an_ata_drive_describes_itself_to_everybody() {
    let machine = Machine::new("");
    machine.device(
        "pci/ata3/host2/target2:0:0/2:0:0:0/block/sda",
        "8:0",
        Some(1 << 31),
    );
    let mut words = vec!["0000"; 256];
    (words[169], words[69]) = ("0001", "4020");
    machine.write("sys/class/ata_device/dev3.0/id", &words.join(" "));
    let found = Drive::of(&SysRoot::at(machine.root()), "sda", false).unwrap();
    assert_eq!(found.reads_as(), Some(ReadsAs::Zeros));
    assert_eq!(found.pages_missing, None);
}

#[test]
fn what_an_ata_drive_remembers() {
    let machine = Machine::new("");
    let place = "pci/ata3/host2/target2:0:0/2:0:0:0/block/sda";
    machine.device(place, "8:0", Some(1 << 31));
    machine.write(
        &format!("sys/devices/{place}/queue/logical_block_size"),
        "4096\n",
    );
    machine.write("identify/sda/ata-statistics", "");
    let mut page = [0; 512];
    // General Statistics, with 3 logical sectors written.
    (page[2], page[24], page[31]) = (1, 3, 0b1100_0000);
    let path = machine.root().join("identify/sda/ata-statistics");
    std::fs::write(path, page).unwrap();
    let health = drive(&machine, "sda").health.unwrap();
    let written = health.written;
    assert_eq!(written.host_written_bytes, Some(3 * 4096));
    assert_eq!(health.percentage_used, None);
}

#[test]
fn a_leaf_is_asked_for_its_life_at_its_drive() {
    let machine = Machine::new("");
    let sys = SysRoot::at(machine.root());
    machine.device("pci/nvme/nvme0/nvme0n1", "259:0", Some(1 << 30));
    machine.device("virtual/block/loop3", "7:3", Some(1 << 20));
    let partition = DeviceInfo {
        drive: Some(record::WholeDrive {
            name: "nvme0n1".into(),
            size_bytes: 1 << 39,
        }),
        transport: Some(Transport::Nvme),
        ..DeviceInfo::disk("nvme0n1p2")
    };
    assert_eq!(life(&sys, &partition), None, "it does not answer");
    machine.write("identify/nvme0n1/nvme-health", &{
        let mut page = vec![0u8; 512];
        page[48] = 2;
        String::from_utf8(page).unwrap()
    });
    let known = Written {
        host_written_bytes: Some(2 * 512_000),
        flash_written_bytes: None,
    };
    assert_eq!(life(&sys, &partition), Some(known));
    let above = DeviceInfo {
        leaf: false,
        ..partition
    };
    assert_eq!(life(&sys, &above), None);
    for other in ["loop3", "sdq"] {
        assert_eq!(life(&sys, &DeviceInfo::disk(other)), None, "{other}");
    }
}

#[test]
fn a_disk_of_virtio_scsi_is_asked_for_its_capacity() {
    let machine = Machine::new("");
    let place = "pci/virtio0/host1/target1:0:0/1:0:0:0/block/sda";
    machine.device(place, "8:0", Some(1 << 30));
    machine.write("sys/devices/pci/virtio0/host1/scsi/scsi_disk/1:0:0:0/x", "");
    machine.link(
        &format!("sys/devices/{place}/device"),
        "sys/devices/pci/virtio0/host1/scsi",
    );
    machine.write("sys/class/scsi_disk/1:0:0:0/provisioning_mode", "unmap\n");
    let capacity: String = (0..32)
        .map(|at| if at == 14 { '@' } else { '\0' })
        .collect();
    machine.write("identify/sda/scsi-capacity", &capacity);
    let scsi = drive(&machine, "sda").scsi.unwrap();
    // '@' is 40h: LBPME (bit 7) is off and LBPRZ (bit 6) is on.
    assert_eq!((scsi.lbpme, scsi.lbprz), (Some(false), Some(true)));
}
