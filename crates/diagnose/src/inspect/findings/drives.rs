//! Findings about drives.

use record::AtaTrim;
use storage::drive::{Drive, Transport};
use storage::stack::{Effect, Mounted};

use super::super::prove::Outcome;
use super::super::{Inspection, Proof};
use super::{Finding, queue};

/// A drive that takes no more in a command needs thousands of them.
const CAP_BYTES: u64 = 128 << 20;

/// The cost where a host does not learn which blocks its guest has freed.
pub(super) const HOST_KEEPS: &str = "the host's storage keeps every block that was ever written";

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
    let said = |what: String| {
        Finding::new("host-may-ignore", &drive.name, what).evidence(
            queue(&drive.name, "discard_max_bytes"),
            drive.limits.max_bytes,
        )
    };
    let cost = format!("if the host ignores them, {HOST_KEEPS}");
    let below = |proof: &&Proof| proof.layers.iter().any(|layer| layer.name == drive.name);
    Some(match facts.proof.as_ref().filter(below) {
        Some(proof) if proof.result == Outcome::Arrives => said(format!(
            "the host of this virtual drive acts on discards: {}",
            proof.summary
        ))
        .cost("none: the proof shows it"),
        Some(proof) => said(format!("the host of this virtual drive: {}", proof.summary))
            .cost(cost)
            .remedy(host_step(drive)),
        None => said(
            "a virtual drive takes discards whether its host acts on them or not".to_owned(),
        )
        .cost(cost)
        .remedy(
            "trimbench inspect --prove PATH shows it; on the host it takes discard=unmap (QEMU)",
        ),
    })
}

/// A hypervisor that offers none.
fn host_blocks(drive: &Drive) -> Option<Finding> {
    let offered = drive.limits.max_bytes > 0 || drive.limits.max_hw_bytes > 0;
    (drive.is_virtual() && !offered).then(|| {
        Finding::new(
            "host-blocks",
            &drive.name,
            "the host offers no discard for this virtual drive",
        )
        .evidence(queue(&drive.name, "discard_max_bytes"), 0)
        .cost(HOST_KEEPS)
        .remedy(host_step(drive))
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
    let (what, remedy) = match (could, cannot) {
        (true, _) => (
            format!("the drive behind {bridge} can unmap, and Linux does not use it"),
            rule,
        ),
        (_, true) => (
            format!("{bridge} takes no UNMAP"),
            "another bridge (UASP with UNMAP), or a SATA port".to_owned(),
        ),
        _ => (
            format!(
                "Linux sends no TRIM through {bridge}, because it does not ask such bridges for it"
            ),
            format!(
                "if sg_vpd -p lbpv /dev/{} prints LBPU=1: {rule}",
                drive.name
            ),
        ),
    };
    Some(
        Finding::new("usb-lbpme", &drive.name, what)
            .evidence(provisioning(drive), mode)
            .evidence(queue(&drive.name, "discard_max_bytes"), 0)
            .cost("nothing on it is ever trimmed")
            .remedy(remedy),
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
        Finding::new(
            "firmware-wedges",
            &drive.name,
            "Linux knows that this drive's firmware fails on TRIM, and sends none",
        )
        .evidence(trim_file(), "forced_unsupported")
        .cost("without TRIM it gets slower; with it, it may lose data or hang")
        .remedy("leave it; replace the drive, or look for newer firmware")
    })
}

fn unqueued(drive: &Drive) -> Option<Finding> {
    let trim = drive.limits.ata_trim.filter(|trim| trim.runs_alone())?;
    let (word, why) = match trim {
        AtaTrim::ForcedUnqueued => (
            "forced_unqueued",
            "Linux knows that this model must not queue it",
        ),
        _ => ("unqueued", "the drive cannot queue it"),
    };
    Some(
        Finding::new(
            "trim-unqueued",
            &drive.name,
            format!("each TRIM runs alone: {why}"),
        )
        .evidence(trim_file(), word)
        .cost("Linux drains the queue before each TRIM; reads and writes wait for it")
        .remedy("delete at a pace (trimbench rm), and trim at a pace (trimbench fstrim)"),
    )
}

fn trim_file() -> &'static str {
    "/sys/class/ata_device/dev*/trim"
}

fn capped(drive: &Drive) -> Option<Finding> {
    let hardware = drive.limits.max_hw_bytes;
    (hardware > 0 && hardware <= CAP_BYTES).then(|| {
        Finding::new(
            "trim-capped",
            &drive.name,
            format!("one command discards {} at most", units::bytes(hardware)),
        )
        .evidence(queue(&drive.name, "discard_max_hw_bytes"), hardware)
        .cost(format!(
            "freeing 1 TiB takes {} commands",
            units::count((1u64 << 40).div_ceil(hardware))
        ))
    })
}

/// sd gives up UNMAP silently when the drive refuses it.
fn refused(drive: &Drive) -> Option<Finding> {
    (drive.provisioning_mode.as_deref() == Some("disabled")).then(|| {
        let file = provisioning(drive);
        Finding::new(
            "disabled-at-runtime",
            &drive.name,
            "the drive refused an UNMAP, and Linux switched discards off",
        )
        .evidence(&file, "disabled")
        .cost("nothing on it is trimmed until the next boot")
        .remedy(format!("dmesg shows the refusal; then echo unmap > {file}"))
    })
}
