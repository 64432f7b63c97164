//! Findings about drives.

use record::AtaTrim;
use record::Transport;
use storage::drive::Drive;
use storage::stack::{Effect, Mounted, Stack};

use super::super::prove::Outcome;
use super::super::{Inspection, Proof};
use super::Finding;

/// A drive that takes no more in a command needs thousands of them.
const CAP_BYTES: u64 = 128 << 20;

pub(super) fn of(facts: &Inspection, drive: &Drive) -> Vec<Finding> {
    let mut layers = facts
        .stacks
        .iter()
        .filter_map(|stack| stack.layer(&drive.name));
    if layers.any(|layer| layer.effect == Effect::Unknown) {
        return Vec::new();
    }
    [
        host(facts, drive),
        host_blocks(drive),
        bridge(facts, drive),
        forbidden(drive),
        unqueued(drive),
        capped(drive),
        refused(drive),
        remembers(drive),
        amplified(facts, drive),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether a finding says how a drive without TRIM can have it.
pub(super) fn is_mendable(drive: &Drive) -> bool {
    drive.is_virtual() || drive.transport == Transport::Usb
}

/// The setting of a virtual drive's host that passes discards on.
fn host_step(drive: &Drive) -> String {
    let says = |word: &str| {
        let mut texts = [&drive.vendor, &drive.model].into_iter().flatten();
        texts.any(|text| text.to_ascii_uppercase().contains(word))
    };
    match () {
        () if says("VMWARE") => format!(
            "on the ESXi host: a thin-provisioned VMDK and virtual hardware 11 or later; then \
             echo 1 > /sys/block/{}/device/rescan, or restart the guest",
            linux::sysroot::directory_name(&drive.name)
        ),
        () if says("VBOX") => {
            "on the host, with a VDI: VBoxManage storageattach VM … --nonrotational on --discard on"
                .to_owned()
        }
        () if drive.transport == Transport::Xen => {
            "on the Xen host: a disk without no-discard (xl.cfg), on a device that takes discards \
             or in a sparse file"
                .to_owned()
        }
        () if says("MSFT") => {
            "on the Hyper-V host: a dynamically expanding VHDX at a SCSI controller".to_owned()
        }
        () => "on the host: discard=unmap at the drive (QEMU; libvirt: <driver \
               discard='unmap'/>); virtio-blk takes discards from QEMU 4.0 on"
            .to_owned(),
    }
}

/// A hypervisor shows a limit whatever it does with discards.
fn host(facts: &Inspection, drive: &Drive) -> Option<Finding> {
    if !drive.is_virtual() || drive.limits.max_bytes == 0 {
        return None;
    }
    let below = |proof: &&Proof| proof.layers.iter().any(|layer| layer.name == drive.name);
    let proof = facts.proof.as_ref().filter(below);
    let name = match proof {
        Some(proof) if proof.result == Outcome::Arrives => "host-may-ignore.arrives",
        Some(_) => "host-may-ignore.proven",
        None => "host-may-ignore",
    };
    let summary = proof.map_or("", |proof| &proof.summary);
    Some(
        Finding::new(name, &drive.name)
            .with("summary", summary)
            .with("step", host_step(drive))
            .limit("discard_max_bytes", drive.limits.max_bytes),
    )
}

/// A hypervisor that offers none.
fn host_blocks(drive: &Drive) -> Option<Finding> {
    let offered = drive.limits.max_bytes > 0 || drive.limits.max_hw_bytes > 0;
    (drive.is_virtual() && !offered).then(|| {
        Finding::new("host-blocks", &drive.name)
            .with("step", host_step(drive))
            .limit("discard_max_bytes", 0)
    })
}

/// A USB bridge that passes no TRIM on. USB storage skips the pages that say whether it could.
fn bridge(facts: &Inspection, drive: &Drive) -> Option<Finding> {
    if drive.transport != Transport::Usb || drive.limits.max_bytes > 0 {
        return None;
    }
    let scsi = drive.scsi.as_ref();
    let could = scsi.is_some_and(|page| page.unmap == Some(true) || page.lbpme == Some(true))
        || drive.ata.as_ref().is_some_and(|page| page.trim);
    let cannot = scsi.is_some_and(|page| page.unmap == Some(false)) && !could;
    let wanted = facts.stacks.iter().any(|stack| {
        let online = stack.file_system.as_ref().is_some_and(Mounted::is_online);
        online && stack.layer(&drive.name).is_some()
    });
    // Most USB sticks and disks have no use for TRIM.
    if !could && !wanted {
        return None;
    }
    let mode = drive.provisioning_mode.as_deref().unwrap_or("unknown");
    let unknown = || ("VVVV".to_owned(), "PPPP".to_owned());
    let (vendor, product) = drive.usb.clone().unwrap_or_else(unknown);
    let bridge = match &drive.usb {
        Some(_) => format!("the USB bridge {vendor}:{product}"),
        None => "the USB bridge".to_owned(),
    };
    let rule = format!(
        "a udev rule: ACTION==\"add|change\", SUBSYSTEM==\"scsi_disk\", \
         ATTRS{{idVendor}}==\"{vendor}\", ATTRS{{idProduct}}==\"{product}\", \
         ATTR{{provisioning_mode}}=\"unmap\"; then trimbench inspect --prove PATH"
    );
    let name = match (could, cannot) {
        (true, _) => "usb-lbpme.could",
        (_, true) => "usb-lbpme.cannot",
        _ => "usb-lbpme",
    };
    Some(
        Finding::new(name, &drive.name)
            .with("bridge", bridge)
            .with("rule", rule)
            .evidence(provisioning(drive), mode)
            .limit("discard_max_bytes", 0),
    )
}

fn provisioning(drive: &Drive) -> String {
    format!(
        "/sys/block/{}/device/scsi_disk/*/provisioning_mode",
        linux::sysroot::directory_name(&drive.name)
    )
}

fn forbidden(drive: &Drive) -> Option<Finding> {
    drive.is_forbidden().then(|| {
        Finding::new("firmware-wedges", &drive.name).evidence(TRIM_FILE, "forced_unsupported")
    })
}

fn unqueued(drive: &Drive) -> Option<Finding> {
    let trim = drive.limits.ata_trim.filter(|trim| trim.runs_alone())?;
    let (name, word) = match trim {
        AtaTrim::ForcedUnqueued => ("trim-unqueued.forced", "forced_unqueued"),
        _ => ("trim-unqueued", "unqueued"),
    };
    Some(Finding::new(name, &drive.name).evidence(TRIM_FILE, word))
}

/// The file in which libata says how it treats TRIM.
const TRIM_FILE: &str = "/sys/class/ata_device/dev*/trim";

fn capped(drive: &Drive) -> Option<Finding> {
    let hardware = drive.limits.max_hw_bytes;
    (hardware > 0 && hardware <= CAP_BYTES).then(|| {
        let commands = (1u64 << 40).div_ceil(hardware);
        Finding::new("trim-capped", &drive.name)
            .with("most", record::units::bytes(hardware))
            .with("commands", record::units::count(commands))
            .limit("discard_max_hw_bytes", hardware)
    })
}

/// TRIMs that the drive itself recorded as slow.
fn remembers(drive: &Drive) -> Option<Finding> {
    let health = drive.health.as_ref()?;
    // Each threshold is above the one before, and a command counts once.
    let slow = health.slow_trims.iter().filter(|one| one.commands > 0);
    let slow: Vec<_> = slow.collect();
    let commands: u64 = slow.iter().map(|one| one.commands).sum();
    let above = slow.first()?.above_ms;
    let within = health.slow_trims_within_s.map(|all| {
        let long = record::units::seconds(all as f64);
        format!(" in {long} of operation")
    });
    let slowest = slow.iter().filter_map(|one| one.latency_ms).max();
    let slowest = slowest.map(|ms| {
        let long = record::units::latency_us(f64::from(ms) * 1e3);
        format!("; the slowest recorded took {long}")
    });
    Some(
        Finding::new("trims-recorded-slow", &drive.name)
            .with("commands", record::units::counted(commands, "TRIM command"))
            .with("above", format!("{above} ms"))
            .with("within", within.unwrap_or_default())
            .with("slowest", slowest.unwrap_or_default())
            .evidence("OCP log page C3h", format!("{commands} above {above} ms")),
    )
}

/// Flash that is written far more than the host writes, where nothing trims.
fn amplified(facts: &Inspection, drive: &Drive) -> Option<Finding> {
    const MUCH: f64 = 3.0;
    let times = drive.health.as_ref()?.written.amplification()?;
    let policy = &facts.policy;
    let is_trimmed = |stack: &Stack| {
        stack.layer(&drive.name).is_some()
            && (stack.trims_online() || policy.trims(stack.subject()).next().is_some())
    };
    let trimmed = facts.stacks.iter().any(is_trimmed) || policy.may_trim();
    (times > MUCH && !trimmed).then(|| {
        Finding::new("amplified", &drive.name)
            .with("times", format!("{times:.1}"))
            .evidence("OCP log page C0h over SMART", format!("{times:.2}"))
    })
}

/// sd gives up UNMAP silently when the drive refuses it.
fn refused(drive: &Drive) -> Option<Finding> {
    (drive.provisioning_mode.as_deref() == Some("disabled")).then(|| {
        let file = provisioning(drive);
        Finding::new("disabled-at-runtime.refused", &drive.name)
            .with("file", &file)
            .evidence(file, "disabled")
    })
}
