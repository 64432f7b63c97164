//! The pages in which a drive describes itself, as raw bytes: NVMe Identify and log pages, ATA
//! IDENTIFY DEVICE and Device Statistics, SCSI vital product data and READ CAPACITY(16).
//!
//! A drive that hangs keeps the caller waiting for [`DEADLINE`] at most.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};

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
    /// NVMe SMART / Health Information (log 02h), 512 bytes.
    NvmeHealth,
    /// SMART / Health Information Extended of OCP's specification (log C0h), 512 bytes. Only a drive
    /// whose UUID list names that specification is asked.
    OcpHealth,
    /// Latency Monitor of OCP's specification (log C3h), 512 bytes; the same of it.
    OcpLatency,
    /// ATA IDENTIFY DEVICE, 512 bytes.
    Ata,
    /// The pages that an ATA drive lists of its Device Statistics (log 04h), 512 bytes each.
    AtaStatistics,
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
            Page::NvmeHealth => "nvme-health",
            Page::OcpHealth => "ocp-health",
            Page::OcpLatency => "ocp-latency",
            Page::Ata => "ata",
            Page::AtaStatistics => "ata-statistics",
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
        Page::NvmeController => identify(file, 0x01, 0),
        Page::NvmeNamespace => identify(file, 0x00, namespace(file)?),
        Page::NvmeCommandSet => identify(file, 0x06, 0),
        Page::NvmeHealth => log_page(file, 0x02, 0),
        Page::OcpHealth => log_page(file, 0xc0, ocp(file)?),
        Page::OcpLatency => log_page(file, 0xc3, ocp(file)?),
        Page::Ata => ata_identify(file),
        Page::AtaStatistics => ata_statistics(file),
        Page::ScsiLimits => vital_page(file, 0xb0),
        Page::ScsiProvisioning => vital_page(file, 0xb2),
        Page::ScsiCapacity => capacity(file),
    }
}

// Identify pages of NVMe drives (`linux/nvme_ioctl.h`).

/// `NVME_IOCTL_ID`, `_IO('N', 0x40)`.
const ID: libc::Ioctl = 0x4E40;

/// `NVME_IOCTL_ADMIN_CMD`, `_IOWR('N', 0x41, struct nvme_admin_cmd)`.
const ADMIN: libc::Ioctl = 0xC048_4E41_u32 as libc::Ioctl;

const IDENTIFY: u8 = 0x06;

const GET_LOG_PAGE: u8 = 0x02;

/// Bytes of each log page here.
const LOG: usize = 512;

/// The UUID of OCP's Datacenter NVMe SSD Specification, as a UUID list has it.
const OCP: [u8; 16] = [
    0xc1, 0x94, 0xd5, 0x5b, 0xe0, 0x94, 0x47, 0x94, 0xa2, 0x1d, 0x29, 0x99, 0x8f, 0x56, 0xbe, 0x6f,
];

const PAGE: usize = 4096;

/// `struct nvme_admin_cmd`.
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    word2: u32,
    word3: u32,
    metadata: u64,
    address: u64,
    metadata_length: u32,
    length: u32,
    words: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// The namespace's number of a block device.
fn namespace(file: &File) -> io::Result<u32> {
    // SAFETY: the request takes no argument.
    let number = unsafe { libc::ioctl(file.as_raw_fd(), ID) };
    match u32::try_from(number) {
        Ok(number) => Ok(number),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// One page of Identify, by its CNS value.
fn identify(file: &File, cns: u32, namespace: u32) -> io::Result<Vec<u8>> {
    admin(file, IDENTIFY, namespace, [cns, 0, 0, 0, 0, 0], PAGE)
}

/// A log page of the controller; `uuid`: the index of the UUID that its number is of, or 0.
fn log_page(file: &File, number: u32, uuid: u32) -> io::Result<Vec<u8>> {
    let dwords = (LOG / 4 - 1) as u32;
    let words = [number | dwords << 16, 0, 0, 0, uuid, 0];
    admin(file, GET_LOG_PAGE, u32::MAX, words, LOG)
}

/// The index of OCP's UUID in the drive's list (CNS 17h). A drive that is asked for a log page that
/// it hasn't would count an error.
fn ocp(file: &File) -> io::Result<u32> {
    let none = || io::Error::other("the drive names no specification of OCP");
    // CTRATT bit 9: it has a UUID list.
    if identify(file, 0x01, 0)?[97] & 0b10 == 0 {
        return Err(none());
    }
    let list = identify(file, 0x17, 0)?;
    let mut entries = list.chunks_exact(32).enumerate().skip(1);
    let found = entries.find(|(_, entry)| entry[16..] == OCP);
    found.map(|(index, _)| index as u32).ok_or_else(none)
}

/// An admin command that returns so many bytes.
fn admin(
    file: &File,
    opcode: u8,
    namespace: u32,
    words: [u32; 6],
    length: usize,
) -> io::Result<Vec<u8>> {
    let mut page = vec![0u8; length];
    let mut command = Command {
        opcode,
        namespace,
        address: page.as_mut_ptr() as u64,
        length: length as u32,
        words,
        timeout_ms: COMMAND_MS,
        ..Command::default()
    };
    // SAFETY: the request reads one such command, and the kernel writes `length` bytes to
    // `address`, which `page` has and outlives.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), ADMIN, &raw mut command) };
    match status {
        0 => Ok(page),
        -1 => Err(io::Error::last_os_error()),
        status => Err(io::Error::other(format!(
            "the drive refused it with status {status:#x}"
        ))),
    }
}

// Pages of SCSI drives, and of ATA drives through SCSI (`scsi/sg.h`, SPC-5, SBC-4, SAT-4).

/// `SG_IO`.
const SG_IO: libc::Ioctl = 0x2285;

const FROM_DEVICE: i32 = -3;

const IDENTIFY_DEVICE: u8 = 0xec;

const READ_LOG_EXT: u8 = 0x2f;

/// `struct sg_io_hdr`.
#[repr(C)]
struct Header {
    interface: i32,
    direction: i32,
    command_length: u8,
    sense_length: u8,
    vectors: u16,
    length: u32,
    data: *mut u8,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack: i32,
    user: *mut u8,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_written: u8,
    host_status: u16,
    driver_status: u16,
    left: i32,
    duration_ms: u32,
    info: u32,
}

/// A page of vital product data.
fn vital_page(file: &File, page: u8) -> io::Result<Vec<u8>> {
    let command = [0x12, 1, page, 0, 64, 0];
    let answer = read(file, &command, 64)?;
    match answer.get(1) {
        Some(&found) if found == page => Ok(answer),
        _ => Err(io::Error::other("the drive has no such page")),
    }
}

/// The answer to READ CAPACITY(16).
fn capacity(file: &File) -> io::Result<Vec<u8>> {
    let mut command = [0; 16];
    (command[0], command[1], command[13]) = (0x9e, 0x10, 32);
    read(file, &command, 32)
}

/// ATA IDENTIFY DEVICE.
fn ata_identify(file: &File) -> io::Result<Vec<u8>> {
    ata(file, IDENTIFY_DEVICE, [0, 0])
}

/// The pages of Device Statistics that page 0 lists: their count in byte 8, and their numbers. A drive whose
/// directory (log 00h, a word for each log) has no such log isn't asked for it, for it would count an error.
fn ata_statistics(file: &File) -> io::Result<Vec<u8>> {
    const LOG_NUMBER: u8 = 0x04;
    // Word 84, bit 5 of IDENTIFY DEVICE: it has logs; valid where bits 15 and 14 are 01.
    let supports = ata_identify(file)?
        .get(168..170)
        .map(|word| [word[0], word[1]]);
    let logs = supports.is_some_and(|[low, high]| low & 1 << 5 != 0 && high >> 6 == 0b01);
    let log = |number, page| ata(file, READ_LOG_EXT, [number, page]);
    let at = usize::from(LOG_NUMBER) * 2;
    if !logs || log(0, 0)?.get(at..at + 2).is_none_or(|word| word == [0, 0]) {
        return Ok(Vec::new());
    }
    let list = log(LOG_NUMBER, 0)?;
    let count = list.get(8).copied().unwrap_or(0);
    let numbers = list.iter().skip(9).take(count.into());
    let pages = numbers.filter(|&&number| (1..=7).contains(&number));
    let read: io::Result<Vec<_>> = pages.map(|&number| log(LOG_NUMBER, number)).collect();
    Ok(read?.concat())
}

/// The 512 bytes of an ATA command, through ATA PASS-THROUGH(16): PIO data-in, the length in the count
/// of sectors. `lba`: its bits 0 to 7 and 8 to 15, a log's number and page.
fn ata(file: &File, number: u8, lba: [u8; 2]) -> io::Result<Vec<u8>> {
    let mut command = [0; 16];
    let extend = u8::from(number == READ_LOG_EXT);
    (command[0], command[1], command[2]) = (0x85, 4 << 1 | extend, 0x0e);
    (command[6], command[14]) = (1, number);
    [command[8], command[10]] = lba;
    read(file, &command, 512)
}

fn read(file: &File, command: &[u8], length: usize) -> io::Result<Vec<u8>> {
    let mut data = vec![0u8; length];
    let mut sense = [0u8; 64];
    let mut header = Header {
        interface: i32::from(b'S'),
        direction: FROM_DEVICE,
        command_length: command.len() as u8,
        sense_length: sense.len() as u8,
        vectors: 0,
        length: length as u32,
        data: data.as_mut_ptr(),
        command: command.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: COMMAND_MS,
        flags: 0,
        pack: 0,
        user: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_written: 0,
        host_status: 0,
        driver_status: 0,
        left: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: the request reads and writes one such header; the buffers that it points to have
    // the lengths that it says, and outlive the call.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), SG_IO, &raw mut header) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    if header.status != 0 || header.host_status != 0 {
        let why = format!(
            "the drive refused it with status {:#x}, host {:#x}",
            header.status, header.host_status
        );
        return Err(io::Error::other(why));
    }
    data.truncate(length.saturating_sub(usize::try_from(header.left).unwrap_or(0)));
    Ok(data)
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
            Page::NvmeHealth,
            Page::OcpLatency,
            Page::Ata,
            Page::AtaStatistics,
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
