//! The pages in which a drive describes itself, as raw bytes: NVMe Identify, ATA IDENTIFY DEVICE,
//! SCSI vital product data and READ CAPACITY(16).
//!
//! A drive that hangs keeps the caller waiting for [`DEADLINE`] at most.

mod nvme;
mod scsi;

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::SysRoot;

/// So long a drive may take to answer all requests for its pages.
pub const DEADLINE: Duration = Duration::from_secs(4);

/// Milliseconds that the kernel waits for one command.
const COMMAND_MS: u32 = 2000;

/// A page of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// NVMe Identify Controller (CNS 01h), 4096 bytes.
    NvmeController,
    /// NVMe Identify Namespace (CNS 00h), 4096 bytes.
    NvmeNamespace,
    /// NVMe Identify Controller of the NVM command set (CNS 06h, CSI 0), 4096 bytes.
    NvmeCommandSet,
    /// ATA IDENTIFY DEVICE, 512 bytes.
    Ata,
    /// SCSI Block Limits, the vital product data page B0h.
    ScsiLimits,
    /// SCSI Logical Block Provisioning, the vital product data page B2h.
    ScsiProvisioning,
    /// The answer to SCSI READ CAPACITY(16), 32 bytes.
    ScsiCapacity,
}

impl Page {
    /// The name of the file that a recorded tree has for it, in `identify/DEVICE/`.
    pub fn file(self) -> &'static str {
        match self {
            Page::NvmeController => "nvme-controller",
            Page::NvmeNamespace => "nvme-namespace",
            Page::NvmeCommandSet => "nvme-command-set",
            Page::Ata => "ata",
            Page::ScsiLimits => "scsi-b0",
            Page::ScsiProvisioning => "scsi-b2",
            Page::ScsiCapacity => "scsi-capacity",
        }
    }
}

/// Pages with the answer to each request.
pub type Answers = Vec<(Page, io::Result<Vec<u8>>)>;

/// Asks a whole device, by its kernel name, for pages. In a recorded tree they are read from
/// `identify/DEVICE/`.
///
/// # Errors
/// The kernel's error where the device can't be opened (it needs root), and
/// [`io::ErrorKind::TimedOut`] where it doesn't answer within [`DEADLINE`].
pub fn pages(sys: &SysRoot, device: &str, pages: &[Page]) -> io::Result<Answers> {
    if !sys.is_host() {
        let read = |&page: &Page| {
            let path = sys.path(format!("/identify/{device}/{}", page.file()));
            (page, std::fs::read(path))
        };
        return Ok(pages.iter().map(read).collect());
    }
    let path = std::path::Path::new("/dev").join(device.replace('!', "/"));
    let pages = pages.to_vec();
    within(DEADLINE, move || {
        let mut options = File::options();
        // Opening must not wait for a medium.
        let file = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        Ok(pages
            .into_iter()
            .map(|page| (page, ask(&file, page)))
            .collect())
    })
}

/// The result of a piece of work, unless it takes too long. Then its thread is left behind.
fn within<T: Send + 'static>(
    deadline: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (to, from) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let _ = to.send(work());
    })?;
    from.recv_timeout(deadline).unwrap_or_else(|_| {
        let why = format!("it did not answer within {} s", deadline.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    })
}

fn ask(file: &File, page: Page) -> io::Result<Vec<u8>> {
    match page {
        Page::NvmeController => nvme::identify(file, 0x01, 0),
        Page::NvmeNamespace => nvme::identify(file, 0x00, nvme::namespace(file)?),
        Page::NvmeCommandSet => nvme::identify(file, 0x06, 0),
        Page::Ata => scsi::ata_identify(file),
        Page::ScsiLimits => scsi::vital_page(file, 0xb0),
        Page::ScsiProvisioning => scsi::vital_page(file, 0xb2),
        Page::ScsiCapacity => scsi::capacity(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_that_hangs_is_given_up() {
        let hung = within(Duration::from_millis(20), || {
            thread::sleep(Duration::from_secs(2));
            Ok(())
        });
        assert_eq!(hung.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(within(DEADLINE, || Ok(7)).unwrap(), 7);
    }

    #[test]
    fn a_file_has_no_pages() {
        let file = tempfile::tempfile().unwrap();
        for page in [
            Page::NvmeController,
            Page::NvmeNamespace,
            Page::Ata,
            Page::ScsiLimits,
        ] {
            assert!(ask(&file, page).is_err());
        }
    }

    #[test]
    fn a_recorded_tree_has_them_as_files() {
        let machine = testkit::Machine::new("");
        machine.write("identify/sda/ata", "page");
        let sys = SysRoot::at(machine.root());
        let answers = pages(&sys, "sda", &[Page::Ata, Page::ScsiLimits]).unwrap();
        assert_eq!(answers[0].1.as_deref().unwrap(), b"page");
        assert!(answers[1].1.is_err());
    }
}
