//! Faults of md's discards in some kernels, which lost data or crashed the machine.

use linux::SysRoot;
use record::DeviceInfo;

use crate::Warning;

/// A fault of md's discards.
#[derive(Debug)]
pub struct Fault {
    levels: &'static [&'static str],
    /// Whether a kernel has it, and whether SATA or SCSI drives are below.
    has: fn(&str, (u32, u32), bool) -> bool,
    /// The harm that discards do, in a sentence without a full stop.
    pub what: &'static str,
    /// The address of a report.
    pub source: &'static str,
    destroys_data: bool,
}

static FAULTS: [Fault; 3] = [
    Fault {
        levels: &["raid10"],
        has: |_, version, _| ((6, 8)..(6, 15)).contains(&version),
        what: "fstrim and discards can crash Linux 6.8 to 6.14",
        source: "https://bugs.launchpad.net/bugs/2117395",
        destroys_data: false,
    },
    Fault {
        levels: &["raid10"],
        has: |release, _, _| is_of_2020(release),
        what: "fstrim and discards destroy data with the patches of December 2020 (Linux 5.10-rc, \
               Ubuntu 4.15.0-126, 5.4.0-56 and 5.8.0-31 and the builds after them)",
        source: "https://bugs.launchpad.net/bugs/1907262",
        destroys_data: true,
    },
    Fault {
        levels: &["raid0", "raid10", "linear"],
        // bio_split() left both parts with the vector into which sd writes a discard's address,
        // ever since md passes discards on; RHEL 7's 3.10 does so, too. NVMe keeps the address
        // elsewhere.
        has: |_, version, scsi| scsi && ((3, 7)..(4, 2)).contains(&version),
        what: "fstrim and discards can destroy data on SATA and SCSI drives from Linux 3.7 to 4.1",
        source: "https://www.algolia.com/blog/engineering/when-solid-state-drives-are-not-that-solid",
        destroys_data: true,
    },
];

/// Whether a release has the patches of December 2020.
fn is_of_2020(release: &str) -> bool {
    let builds = [
        ("4.15.0-", 126..128),
        ("5.4.0-", 56..58),
        ("5.8.0-", 31..33),
    ];
    let of_ubuntu = builds.into_iter().any(|(version, builds)| {
        let rest = release.strip_prefix(version);
        let build = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        build.is_some_and(|build| builds.contains(&build))
    });
    of_ubuntu || release.starts_with("5.10.0-rc")
}

impl Fault {
    /// The fault of an array of this level, e.g. `raid10`, over these drives, e.g. `sda`, in a
    /// kernel of this release.
    pub fn of<'a>(
        level: &str,
        kernel: &str,
        mut drives: impl Iterator<Item = &'a str>,
    ) -> Option<&'static Fault> {
        let scsi = drives.any(|name| name.starts_with("sd"));
        let version = linux::host::version_of(kernel);
        let mut levels = FAULTS.iter().filter(|one| one.levels.contains(&level));
        levels.find(|one| (one.has)(kernel, version, scsi))
    }
}

/// The warning about the first of these devices that takes discards and has a fault.
pub(crate) fn warning(sys: &SysRoot, devices: &[DeviceInfo]) -> Option<Warning> {
    let kernel = sys.line("/proc/sys/kernel/osrelease")?;
    let mut taking = devices.iter().filter(|one| one.discard.max_bytes > 0);
    taking.find_map(|device| {
        let whole = device.drive.as_ref().map_or(&device.name, |one| &one.name);
        let level = sys.attribute(whole, "md/level")?;
        let leaves = devices.iter().filter(|one| one.leaf);
        let fault = Fault::of(&level, &kernel, leaves.map(|one| one.name.as_str()))?;
        Some(Warning::Faulty {
            device: whole.clone(),
            level,
            kernel: kernel.clone(),
            what: fault.what,
            report: fault.source,
            destroys_data: fault.destroys_data,
        })
    })
}
