//! Findings about drives.

use record::AtaTrim;
use storage::drive::{Drive, Transport};

use super::{Finding, queue};

/// A drive that takes no more in a command needs thousands of them.
const CAP_BYTES: u64 = 128 << 20;

pub(super) fn of(drive: &Drive) -> Vec<Finding> {
    [
        host(drive),
        bridge(drive),
        forbidden(drive),
        unqueued(drive),
        capped(drive),
        refused(drive),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A hypervisor shows a limit whatever it does with discards.
fn host(drive: &Drive) -> Option<Finding> {
    (drive.is_virtual() && drive.limits.max_bytes > 0).then(|| {
        Finding::new(
            "host-may-ignore",
            &drive.name,
            "a virtual drive takes discards whether its host acts on them or not",
        )
        .evidence(
            queue(&drive.name, "discard_max_bytes"),
            drive.limits.max_bytes,
        )
        .cost("if the host ignores them, its storage keeps every block that was ever written")
        .remedy("ask on the host for discard=unmap (QEMU); trimbench inspect --prove PATH shows it")
    })
}

/// A USB bridge that could, and is not asked to.
fn bridge(drive: &Drive) -> Option<Finding> {
    let scsi = drive.scsi.as_ref();
    let could = scsi.is_some_and(|page| page.unmap == Some(true) || page.lbpme == Some(true))
        || drive.ata.as_ref().is_some_and(|page| page.trim);
    if drive.transport != Transport::Usb || drive.limits.max_bytes > 0 || !could {
        return None;
    }
    let mode = drive.provisioning_mode.as_deref().unwrap_or("unknown");
    Some(
        Finding::new(
            "usb-lbpme",
            &drive.name,
            "the drive behind the USB bridge can unmap, and Linux does not use it",
        )
        .evidence(
            format!(
                "/sys/block/{}/device/scsi_disk/*/provisioning_mode",
                drive.name
            ),
            mode,
        )
        .evidence(queue(&drive.name, "discard_max_bytes"), 0)
        .cost("nothing on it is ever trimmed")
        .remedy(
            "a udev rule: ACTION==\"add|change\", SUBSYSTEM==\"scsi_disk\", \
             ATTRS{idVendor}==\"VVVV\", ATTRS{idProduct}==\"PPPP\", \
             ATTR{provisioning_mode}=\"unmap\"; then trimbench inspect --prove PATH",
        ),
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
        let file = format!(
            "/sys/block/{}/device/scsi_disk/*/provisioning_mode",
            drive.name
        );
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
