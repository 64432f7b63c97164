//! A drive's own report about itself and discards, from `/sys` and from its own pages.

mod ata;
mod health;
mod nvme;
mod scsi;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::{fs, io};

use linux::SysRoot;
use linux::identify::{self, Answers, Page};
use linux::sysroot::{entries, line, number};
use record::{AtaTrim, DeviceInfo, DiscardLimits, Transport, Written};
use serde::Serialize;

pub use ata::Ata;
pub use health::{Health, SlowTrims};
pub use nvme::{Nvme, ReadsAs};
pub use scsi::Scsi;

use crate::devices;

/// A drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drive {
    /// Its kernel name.
    pub name: String,
    /// Its model.
    pub model: Option<String>,
    /// Its maker, where SCSI or virtio report one.
    pub vendor: Option<String>,
    /// The version of its firmware.
    pub firmware: Option<String>,
    /// Its serial number, where `/sys` shows it and it is not kept out.
    pub serial: Option<String>,
    /// How it is connected.
    pub transport: Transport,
    /// Its size, in bytes.
    pub size_bytes: u64,
    /// Whether it turns.
    pub rotational: Option<bool>,
    /// Its limits, as Linux has them now.
    pub limits: DiscardLimits,
    /// How Linux turns discards into SCSI commands (`provisioning_mode`).
    pub provisioning_mode: Option<String>,
    /// Of a USB bridge its vendor and product numbers, as `idVendor` and `idProduct` have them.
    #[serde(skip)]
    pub usb: Option<(String, String)>,
    /// NVMe's pages.
    pub nvme: Option<Nvme>,
    /// Its record of its life.
    pub health: Option<Health>,
    /// ATA's page.
    pub ata: Option<Ata>,
    /// SCSI's pages.
    pub scsi: Option<Scsi>,
    /// Why the drive's own pages are missing; `None` if they aren't, or it has none.
    pub pages_missing: Option<String>,
}

impl Drive {
    /// A whole drive by its kernel name; `None` if `/sys` doesn't know it. It is asked for its
    /// own pages if `ask` is true.
    pub fn of(sys: &SysRoot, name: &str, ask: bool) -> Option<Drive> {
        let tree = devices::under_device(sys, name).ok()?;
        let device = tree
            .devices
            .into_iter()
            .find(|device| device.name == name)?;
        let place = fs::canonicalize(sys.class(name)).ok()?;
        let place = place.to_string_lossy().into_owned();
        let mut drive = Drive {
            name: name.to_owned(),
            model: device.model,
            vendor: sys.attribute(name, "device/vendor"),
            firmware: device.firmware,
            serial: device.serial,
            transport: device.transport.unwrap_or(Transport::Other),
            size_bytes: device.size_bytes,
            rotational: device.rotational,
            limits: device.discard,
            provisioning_mode: provisioning_mode(sys, name),
            usb: usb(Path::new(&place)),
            nvme: None,
            health: None,
            ata: None,
            scsi: None,
            pages_missing: None,
        };
        drive.read_sys(sys, &place);
        if ask && let Err(error) = drive.read_pages(sys) {
            drive.pages_missing = Some(match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "this process may not open the drive, though it asks as root; inspect on the host"
                        .to_owned()
                }
                io::ErrorKind::NotFound if !sys.is_host() => {
                    "the copy of the machine has none".to_owned()
                }
                _ => error.to_string(),
            });
        } else if !ask && drive.wanted().next().is_some() {
            drive.pages_missing = Some("they need root".to_owned());
        }
        Some(drive)
    }

    /// Whether it has a motor. Linux takes each SCSI disk for one with a motor that does not say
    /// otherwise (page B1h), so most LUNs and USB bridges: their page must say so. A loop device has
    /// the flag of what its file lies on.
    pub fn turns(&self) -> bool {
        let rate = self.scsi.as_ref().and_then(|page| page.rotation_rate);
        let says = match self.transport {
            Transport::Scsi | Transport::Usb => rate.is_some_and(|rate| rate > 1),
            Transport::Ata | Transport::Nvme => self.rotational == Some(true),
            _ => false,
        };
        says && !self.is_virtual()
    }

    /// Whether it is a hypervisor's.
    pub fn is_virtual(&self) -> bool {
        let says = |text: &Option<String>, word: &str| {
            text.as_ref()
                .is_some_and(|text| text.to_ascii_uppercase().contains(word))
        };
        matches!(self.transport, Transport::Virtio | Transport::Xen)
            || ["QEMU", "VBOX", "VMWARE", "MSFT", "VIRTUAL DISK"]
                .iter()
                .any(|word| says(&self.model, word) || says(&self.vendor, word))
    }

    /// Its promise for reads of trimmed blocks; `None` where that isn't known.
    pub fn reads_as(&self) -> Option<ReadsAs> {
        let nvme = self.nvme.as_ref().map(|page| page.reads_as);
        let ata = self.ata.as_ref().map(|page| page.reads_as);
        let scsi = self.scsi.as_ref().and_then(|page| page.lbprz);
        let scsi = scsi.map(|zeros| match zeros {
            true => ReadsAs::Zeros,
            false => ReadsAs::Anything,
        });
        nvme.or(ata).or(scsi)
    }

    /// Whether Linux knows that its firmware must not be sent TRIM.
    pub fn is_forbidden(&self) -> bool {
        self.limits.ata_trim == Some(AtaTrim::ForcedUnsupported)
    }

    /// Pages that `/sys` shows to everybody.
    fn read_sys(&mut self, sys: &SysRoot, place: &str) {
        let port = place
            .split('/')
            .find_map(|part| part.strip_prefix("ata")?.parse::<u32>().ok());
        if let Some(port) = port {
            let text = sys.text(format!("/sys/class/ata_device/dev{port}.0/id"));
            self.ata = text.ok().and_then(|text| Ata::parse_words(&text));
        }
        let vital = |page: &str| fs::read(sys.class(&self.name).join("device").join(page)).ok();
        let (limits, lbp) = (vital("vpd_pgb0"), vital("vpd_pgb2"));
        let mut scsi = Scsi::parse(None, limits.as_deref(), lbp.as_deref());
        scsi.rotation_rate = vital("vpd_pgb1").and_then(|page| scsi::rotation_rate(&page));
        self.scsi = scsi.is_known().then_some(scsi);
    }

    /// The pages that only the drive itself has.
    fn wanted(&self) -> impl Iterator<Item = Page> + use<> {
        let pages: &[Page] = match self.transport {
            Transport::Nvme => &[
                Page::NvmeController,
                Page::NvmeNamespace,
                Page::NvmeCommandSet,
                Page::NvmeHealth,
                Page::OcpHealth,
                Page::OcpLatency,
            ],
            Transport::Ata if self.ata.is_none() => &[Page::Ata],
            Transport::Scsi | Transport::Usb => &[
                Page::ScsiCapacity,
                Page::ScsiLimits,
                Page::ScsiProvisioning,
                Page::Ata,
            ],
            // virtio-scsi; a disk of virtio-blk has no such mode.
            Transport::Virtio if self.provisioning_mode.is_some() => {
                &[Page::ScsiCapacity, Page::ScsiLimits, Page::ScsiProvisioning]
            }
            _ => &[],
        };
        pages.iter().copied()
    }

    fn read_pages(&mut self, sys: &SysRoot) -> io::Result<()> {
        let mut wanted: Vec<Page> = self.wanted().collect();
        let is_needed = !wanted.is_empty();
        if self.transport == Transport::Ata {
            wanted.push(Page::AtaStatistics);
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let answers = match identify::pages(sys, &self.name, &wanted) {
            Err(_) if !is_needed => return Ok(()),
            answers => answers?,
        };
        let page = |page: Page| found(&answers, page);
        if let (Some(controller), Some(namespace)) =
            (page(Page::NvmeController), page(Page::NvmeNamespace))
        {
            self.nvme = Nvme::parse(controller, namespace, page(Page::NvmeCommandSet));
        }
        self.health = health(sys, &self.name, &answers);
        if let Some(bytes) = page(Page::Ata) {
            self.ata = Ata::parse(bytes).or(self.ata.take());
        }
        let vital = |one: &str| fs::read(sys.class(&self.name).join("device").join(one)).ok();
        let (limits, lbp) = (vital("vpd_pgb0"), vital("vpd_pgb2"));
        let scsi = Scsi::parse(
            page(Page::ScsiCapacity),
            page(Page::ScsiLimits).or(limits.as_deref()),
            page(Page::ScsiProvisioning).or(lbp.as_deref()),
        );
        if scsi.is_known() {
            let rotation_rate = self.scsi.as_ref().and_then(|one| one.rotation_rate);
            self.scsi = Some(Scsi {
                rotation_rate,
                ..scsi
            });
        }
        let none = is_needed && answers.iter().all(|(_, answer)| answer.is_err());
        match answers.into_iter().find_map(|(_, answer)| answer.err()) {
            Some(error) if none => Err(error),
            _ => Ok(()),
        }
    }
}

fn found(answers: &Answers, wanted: Page) -> Option<&[u8]> {
    let (_, answer) = answers.iter().find(|(page, _)| *page == wanted)?;
    answer.as_deref().ok()
}

fn health(sys: &SysRoot, name: &str, answers: &Answers) -> Option<Health> {
    let page = |page: Page| found(answers, page);
    let sector = || number(&sys.class(name).join("queue/logical_block_size"));
    match (page(Page::NvmeHealth), page(Page::AtaStatistics)) {
        (Some(smart), _) => Health::of_nvme(smart, page(Page::OcpHealth), page(Page::OcpLatency)),
        (None, Some(pages)) => Health::of_ata(pages, sector()?),
        (None, None) => None,
    }
}

/// The bytes that the drive of a leaf counts as written over its life; `None` of a drive that counts
/// none, and where this process may not ask it.
pub fn life(sys: &SysRoot, device: &DeviceInfo) -> Option<Written> {
    if !device.leaf {
        return None;
    }
    let name = device.drive.as_ref().map_or(&device.name, |it| &it.name);
    let pages: &[Page] = match device.transport? {
        Transport::Nvme => &[Page::NvmeHealth, Page::OcpHealth],
        Transport::Ata => &[Page::AtaStatistics],
        _ => return None,
    };
    let answers = identify::pages(sys, name, pages).ok()?;
    let written = health(sys, name, &answers)?.written;
    Some(written).filter(|written| *written != Written::default())
}

/// The file of a SCSI disk's `provisioning_mode`, if there is one.
pub fn provisioning_file(sys: &SysRoot, name: &str) -> Option<String> {
    let disks = entries(&sys.class(name).join("device/scsi_disk"));
    let address = disks.first()?;
    Some(format!("/sys/class/scsi_disk/{address}/provisioning_mode"))
}

fn provisioning_mode(sys: &SysRoot, name: &str) -> Option<String> {
    let own = || {
        let place = fs::canonicalize(sys.class(name)).ok()?;
        let mut above = place.ancestors().map(|above| above.join("scsi_disk"));
        let disks = above.find(|disks| disks.is_dir())?;
        line(
            &disks
                .join(entries(&disks).first()?)
                .join("provisioning_mode"),
        )
    };
    own().or_else(|| sys.line(provisioning_file(sys, name)?))
}

/// The numbers of the USB device above a place in `/sys`.
fn usb(place: &Path) -> Option<(String, String)> {
    let above = place
        .ancestors()
        .find(|above| above.join("idVendor").exists())?;
    Some((
        line(&above.join("idVendor"))?,
        line(&above.join("idProduct"))?,
    ))
}

// Numbers in pages of bytes; 0 beyond their end.

/// Two bytes, the lower first.
fn le16(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(page, at))
}

/// Four bytes, the lowest first.
fn le32(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(page, at))
}

/// Eight bytes, the lowest first.
fn le64(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(page, at))
}

/// Four bytes, the highest first.
fn be32(page: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(page, at))
}

fn array<const N: usize>(page: &[u8], at: usize) -> [u8; N] {
    let bytes = at.checked_add(N).and_then(|end| page.get(at..end));
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .unwrap_or([0; N])
}
