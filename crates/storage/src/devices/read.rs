//! One device's figures, from its directory in `/sys`.

use std::fs;
use std::path::Path;

use record::{AtaTrim, DeviceInfo, DeviceKind, DiscardLimits, Transport, WholeDrive};

use linux::SysRoot;
use linux::mounts::Mount;
use linux::sysroot::{line, number};

/// Sectors in `/sys` have 512 bytes, whatever the device's have.
const SECTOR_BYTES: u64 = 512;

/// Reads a device. A figure that the kernel doesn't give is 0 or `None`.
pub(super) fn device(sys: &SysRoot, name: &str, level: u32, below: Vec<String>) -> DeviceInfo {
    let own = sys.class(name);
    let own = fs::canonicalize(&own).unwrap_or(own);
    let is_partition = own.join("partition").exists();
    // A partition has no queue: its whole device has.
    let whole = match own.parent() {
        Some(parent) if is_partition => parent,
        _ => &own,
    };
    let queue = whole.join("queue");
    let whole_name = whole
        .file_name()
        .map_or_else(String::new, linux::sysroot::device_name);
    let is_drive = matches!(kind(whole), DeviceKind::Disk | DeviceKind::Loop);
    DeviceInfo {
        name: name.to_owned(),
        kind: if is_partition {
            DeviceKind::Partition
        } else {
            kind(whole)
        },
        level,
        leaf: below.is_empty(),
        below,
        model: model(whole),
        firmware: firmware(whole),
        serial: serial(whole).filter(|_| linux::host::shows_serials()),
        transport: is_drive.then(|| transport(sys, &whole.to_string_lossy(), &whole_name)),
        size_bytes: size_bytes(&own),
        rotational: line(&queue.join("rotational")).map(|value| value != "0"),
        scheduler: line(&queue.join("scheduler")).and_then(|text| chosen(&text)),
        discard: DiscardLimits {
            granularity_bytes: number(&queue.join("discard_granularity")).unwrap_or(0),
            max_bytes: number(&queue.join("discard_max_bytes")).unwrap_or(0),
            max_hw_bytes: number(&queue.join("discard_max_hw_bytes")).unwrap_or(0),
            max_segments: number(&queue.join("max_discard_segments")).unwrap_or(0),
            ata_trim: ata_trim(sys, whole),
        },
        slower: None,
        card: Default::default(),
        counting: Default::default(),
        life: None,
        drive: is_partition.then(|| WholeDrive {
            name: whole_name,
            size_bytes: size_bytes(whole),
        }),
    }
}

/// The size of a device, in bytes; 0 if the kernel does not tell.
fn size_bytes(device: &Path) -> u64 {
    let sectors: u64 = number(&device.join("size")).unwrap_or(0);
    sectors.saturating_mul(SECTOR_BYTES)
}

fn kind(whole: &Path) -> DeviceKind {
    let is_loop = || {
        whole
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix("loop"))
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    if whole.join("md").is_dir() {
        DeviceKind::Md
    } else if whole.join("dm").is_dir() {
        DeviceKind::Dm
    } else if is_loop() {
        DeviceKind::Loop
    } else {
        DeviceKind::Disk
    }
}

/// SCSI, ATA and NVMe call it `model`, MMC `name`; virtio has none.
fn model(whole: &Path) -> Option<String> {
    let device = whole.join("device");
    line(&device.join("model"))
        .or_else(|| line(&device.join("name")))
        .filter(|model| !model.is_empty())
}

/// NVMe calls it `firmware_rev`, MMC `fwrev`; SCSI and ATA tell their four characters as `rev`.
fn firmware(whole: &Path) -> Option<String> {
    let device = whole.join("device");
    ["firmware_rev", "fwrev", "rev"]
        .iter()
        .filter_map(|name| line(&device.join(name)))
        .find(|firmware| !firmware.is_empty())
}

/// NVMe and MMC call it `serial` beside the device, virtio in the disk's own directory. SCSI and ATA
/// have it in page 80h, which `/sys` shows to root alone: four bytes, then the number in ASCII.
fn serial(whole: &Path) -> Option<String> {
    let page = || {
        let page = fs::read(whole.join("device/vpd_pg80")).ok()?;
        Some(String::from_utf8_lossy(page.get(4..)?).trim().to_owned())
    };
    let files = ["device/serial", "serial"].iter();
    files
        .filter_map(|file| line(&whole.join(file)))
        .chain(page())
        .find(|serial| !serial.is_empty())
}

/// By the driver's directories on the way to the device.
fn transport(sys: &SysRoot, place: &str, name: &str) -> Transport {
    let part = |prefix: &str| {
        place.split('/').any(|part| {
            let rest = part.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    match () {
        () if name.starts_with("loop") && is_simulated(sys, name) => Transport::Simulated,
        () if name.starts_with("loop") => Transport::Loop,
        () if name.starts_with("zram") => Transport::Memory,
        () if part("nvme") || place.contains("/nvme-subsystem/") => Transport::Nvme,
        () if part("usb") => Transport::Usb,
        () if part("ata") => Transport::Ata,
        // A controller of virtio-scsi is SCSI below, and a hypervisor's all the same.
        () if part("virtio") => Transport::Virtio,
        () if part("vbd-") => Transport::Xen,
        () if part("mmc") => Transport::Mmc,
        () if part("host") => Transport::Scsi,
        () => Transport::Other,
    }
}

/// Whether a loop device is a drive of `trimbench lab`: its file has this name on FUSE.
fn is_simulated(sys: &SysRoot, name: &str) -> bool {
    let file = sys.attribute(name, "loop/backing_file");
    let mount = file.and_then(|file| Mount::of_in(sys, &file).ok());
    mount.is_some_and(|mount| super::is_simulated(&mount))
}

/// How TRIM is sent to an ATA drive. Its place in `/sys` leads through its port, and
/// its SCSI address tells which of the port's devices it is: `ata3/…/2:0:0:0/block/sda`
/// is `dev3.0`. Behind a port multiplier the channel does (libata-transport.c, libata-scsi.c).
fn ata_trim(sys: &SysRoot, whole: &Path) -> Option<AtaTrim> {
    let mut parts = whole.iter().filter_map(|part| part.to_str());
    let digits = |text: &str| text.parse::<u32>().ok();
    let port = parts.find_map(|part| digits(part.strip_prefix("ata")?))?;
    let address = |part: &str| -> Option<(u32, u32)> {
        let numbers: Option<Vec<u32>> = part.split(':').map(digits).collect();
        match numbers?[..] {
            [_, channel, id, _] => Some((channel, id)),
            _ => None,
        }
    };
    let (channel, id) = parts.find_map(address)?;
    let names = [format!("dev{port}.{channel}.0"), format!("dev{port}.{id}")];
    let file = |name: &String| sys.path("/sys/class/ata_device").join(name).join("trim");
    let word = names.iter().find_map(|name| line(&file(name)))?;
    word.parse().ok()
}

/// `mq-deadline` of `none [mq-deadline] kyber`; nothing of the bare `none`
/// that devices without requests have (md, dm).
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (name, _) = rest.split_once(']')?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_use_is_the_bracketed_one() {
        assert_eq!(
            chosen("none [mq-deadline] kyber bfq").as_deref(),
            Some("mq-deadline")
        );
        assert_eq!(chosen("[none] mq-deadline").as_deref(), Some("none"));
        assert_eq!(chosen("none"), None);
    }
}
