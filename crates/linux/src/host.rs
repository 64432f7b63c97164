//! The machine.

use record::Host;

use crate::SysRoot;

/// The machine's description in a record's head. Unknown fields are empty or 0.
pub fn describe() -> Host {
    let uname = rustix::system::uname();
    let memory = rustix::system::sysinfo();
    Host {
        name: uname.nodename().to_string_lossy().into_owned(),
        kernel: uname.release().to_string_lossy().into_owned(),
        cpus: cpus_online(&SysRoot::host()),
        memory_bytes: (memory.totalram as u64).saturating_mul(u64::from(memory.mem_unit)),
    }
}

/// Major and minor version of the running kernel, e.g. (6, 12); (0, 0) when it is unknown.
pub fn kernel_version() -> (u32, u32) {
    version_of(&rustix::system::uname().release().to_string_lossy())
}

/// Major and minor version of a kernel's release, e.g. (6, 12) of `6.12.3-amd64`; 0 for each that it
/// doesn't hold.
pub fn version_of(release: &str) -> (u32, u32) {
    let mut parts = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// The times of a line of cron that runs each Sunday before noon, on each machine at its own.
pub fn weekly(sys: &SysRoot) -> String {
    let id = sys.text("/etc/machine-id");
    let id = id
        .or_else(|_| sys.text("/etc/hostname"))
        .unwrap_or_default();
    let digest = id
        .bytes()
        .fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let minutes = digest % (12 * 60);
    format!("{} {} * * 0", minutes % 60, minutes / 60)
}

/// Files that makers of containers leave.
const MARKS: [&str; 3] = [
    "/.dockerenv",
    "/run/.containerenv",
    "/run/systemd/container",
];

/// Inodes of the first namespaces (Linux, include/uapi/linux/nsfs.h); that of mounts since 6.18.
const FIRST_PID: u64 = 0xEFFF_FFFC;
const FIRST_USER: u64 = 0xEFFF_FFFD;
const FIRST_MOUNTS: u64 = 0xEFFF_FFF8;

/// Whether this process is in the machine's first pid and user namespaces; `None` where the kernel
/// does not show it.
pub fn is_in_first_namespaces() -> Option<bool> {
    let pid = namespace("self", "pid")? == FIRST_PID;
    Some(pid && namespace("self", "user")? == FIRST_USER)
}

/// Whether a container's mounts and timers are all that can be seen. Of the running machine its
/// namespaces decide, of a copy the files that makers of containers leave.
pub fn is_container(sys: &SysRoot) -> bool {
    let is_marked = MARKS.iter().any(|file| sys.path(file).exists());
    if !sys.is_host() {
        return is_marked;
    }
    let mounts = namespace("self", "mnt");
    match is_in_first_namespaces() {
        Some(false) => true,
        // One that shares these with the machine has mounts of its own.
        _ => is_marked && mounts != Some(FIRST_MOUNTS) && mounts != namespace("1", "mnt"),
    }
}

/// The inode of a process' namespace.
fn namespace(process: &str, name: &str) -> Option<u64> {
    let found = rustix::fs::stat(format!("/proc/{process}/ns/{name}"));
    found.ok().map(|found| found.st_ino)
}

fn cpus_online(sys: &SysRoot) -> u32 {
    sys.text("/sys/devices/system/cpu/online")
        .map(|text| count_of_ranges(&text))
        .unwrap_or(0)
}

/// The count of numbers in the kernel's list form, e.g. 5 in `0-3,8`.
fn count_of_ranges(text: &str) -> u32 {
    text.trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_ranges_and_single_processors() {
        assert_eq!(count_of_ranges("0-3,8\n"), 5);
        assert_eq!(count_of_ranges("0"), 1);
        assert_eq!(count_of_ranges(""), 0);
    }

    #[test]
    fn reads_a_release() {
        assert_eq!(version_of("6.18.44-fc-v657"), (6, 18));
        assert_eq!(version_of("5.15"), (5, 15));
        assert_eq!(version_of("odd"), (0, 0));
    }

    #[test]
    fn each_machine_has_its_own_time_of_the_week() {
        let times = |id: &str| {
            let root = tempfile::tempdir().unwrap();
            let machine = SysRoot::at(root.path());
            std::fs::create_dir(root.path().join("etc")).unwrap();
            std::fs::write(root.path().join("etc/machine-id"), id).unwrap();
            weekly(&machine)
        };
        let one = times("5f2c9a1be0d34a7c8e1f00a1b2c3d4e5\n");
        assert_eq!(one, times("5f2c9a1be0d34a7c8e1f00a1b2c3d4e5\n"));
        assert_ne!(one, times("5f2c9a1be0d34a7c8e1f00a1b2c3d4e6\n"));
        let fields: Vec<&str> = one.split(' ').collect();
        let [minute, hour, "*", "*", "0"] = fields[..] else {
            panic!("{one}");
        };
        assert!(minute.parse::<u8>().unwrap() < 60 && hour.parse::<u8>().unwrap() < 12);
    }

    #[test]
    fn a_containers_mark_decides_of_a_copy_alone() {
        let root = tempfile::tempdir().unwrap();
        let copy = SysRoot::at(root.path());
        assert!(!is_container(&copy));
        std::fs::write(root.path().join(".dockerenv"), "").unwrap();
        assert!(is_container(&copy));
        // `rm` looks for holders of files where this machine is none.
        let first = namespace("self", "mnt") == Some(FIRST_MOUNTS);
        if first && is_in_first_namespaces() == Some(true) {
            assert!(!is_container(&SysRoot::host()));
        }
    }

    #[test]
    fn describes_this_machine() {
        let host = describe();
        assert!(!host.kernel.is_empty() && host.cpus > 0 && host.memory_bytes > 1 << 20);
    }
}
