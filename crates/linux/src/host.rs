//! The machine.

use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use record::{Host, Invocation, Origin};
use ring::hmac;

use crate::SysRoot;

/// The variable that says which parts of the machine's identity are shown, and how.
pub const IDENTITY: &str = "TRIMBENCH_IDENTITY";

/// The application that ids of machines are hashed for.
const APPLICATION: u128 = 0x78a6_26d0_90bb_4c7f_8083_c24a_56e0_de87;

/// The parts of a machine's identity that are shown.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    /// The label that stands for the host's name.
    host: Option<String>,
    machine_id: bool,
    serials: bool,
}

impl Shown {
    /// Of words between commas.
    fn parse(text: &str) -> Result<Shown, String> {
        let mut shown = Shown {
            host: None,
            machine_id: true,
            serials: true,
        };
        for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            match word.split_once('=') {
                Some(("host", label)) if !label.is_empty() => shown.host = Some(label.to_owned()),
                None if word == "no-machine-id" => shown.machine_id = false,
                None if word == "no-serial" => shown.serials = false,
                _ => {
                    return Err(format!(
                        "{IDENTITY}: '{word}' is not host=LABEL, no-machine-id or no-serial"
                    ));
                }
            }
        }
        Ok(shown)
    }
}

static SHOWN: LazyLock<Result<Shown, String>> = LazyLock::new(|| {
    Shown::parse(
        &std::env::var_os(IDENTITY)
            .unwrap_or_default()
            .to_string_lossy(),
    )
});

/// Checks [`IDENTITY`].
///
/// # Errors
/// The word that it doesn't know. Then nothing is shown.
pub fn check_identity() -> Result<(), String> {
    SHOWN.as_ref().map(drop).map_err(Clone::clone)
}

/// Whether drives' serial numbers are shown.
pub fn shows_serials() -> bool {
    SHOWN.as_ref().is_ok_and(|shown| shown.serials)
}

/// The machine's description in a record's head. Unknown fields are empty or 0.
pub fn describe() -> Host {
    of(&SysRoot::host())
}

/// The description of a machine, or of a copy of its files. Of a copy, processors and memory are
/// unknown.
fn of(sys: &SysRoot) -> Host {
    let shown = SHOWN.as_ref().ok();
    let name = || {
        let name = sys.line("/proc/sys/kernel/hostname");
        name.or_else(|| sys.line("/etc/hostname"))
    };
    let memory = sys.is_host().then(rustix::system::sysinfo);
    Host {
        name: shown
            .and_then(|shown| shown.host.clone().or_else(name))
            .unwrap_or_default(),
        machine_id: shown
            .filter(|shown| shown.machine_id)
            .and_then(|_| hashed(&sys.line("/etc/machine-id")?)),
        kernel: sys.line("/proc/sys/kernel/osrelease").unwrap_or_default(),
        cpus: cpus_online(sys),
        memory_bytes: memory.map_or(0, |memory| {
            memory.totalram.saturating_mul(u64::from(memory.mem_unit))
        }),
    }
}

/// A machine's id as `systemd-id128 machine-id --app-specific` hashes it: the id itself is
/// confidential (machine-id(5)). `None` of a text that is no id.
fn hashed(id: &str) -> Option<String> {
    let key = u128::from_str_radix(id, 16)
        .ok()
        .filter(|_| id.len() == 32)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key.to_be_bytes());
    let tag = hmac::sign(&key, &APPLICATION.to_be_bytes());
    let first: [u8; 16] = tag.as_ref().get(..16)?.try_into().ok()?;
    // A UUID of version 4 (systemd, src/libsystemd/sd-id128/id128-util.c).
    let marks = u128::from_be_bytes(first) & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    Some(format!("{marks:032x}"))
}

/// This run of the program: a name of its own, and the command line.
pub fn invocation(unix_s: f64) -> Invocation {
    let mut chance = [0; 4];
    // Without it the time has to do.
    let _ = rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::empty());
    let arguments = std::env::args_os().skip(1);
    Invocation {
        id: format!(
            "{}-{:08x}",
            record::units::utc(unix_s),
            u32::from_ne_bytes(chance)
        ),
        arguments: arguments
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect(),
        fail_on: Vec::new(),
    }
}

/// Whose the results of this run of the program are, on a machine or a copy of its files, without
/// places and drives.
pub fn origin(sys: &SysRoot) -> Origin {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.map_or(0.0, |now| now.as_secs_f64());
    let run = invocation(now_s);
    Origin::new(record::form::VERSION, Some(now_s), Some(&run), &of(sys))
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
    weekly_within(sys, 0, 12 * 60)
}

/// The times of a line of cron that runs once a week, on each machine at its own. It is within `spread`
/// minutes of `start`, which counts minutes since Sunday, 0:00.
pub fn weekly_within(sys: &SysRoot, start: u64, spread: u64) -> String {
    let id = sys.text("/etc/machine-id");
    let id = id
        .or_else(|_| sys.text("/etc/hostname"))
        .unwrap_or_default();
    let digest = id
        .bytes()
        .fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let at = start + digest % spread.max(1);
    format!("{} {} * * {}", at % 60, at / 60 % 24, at / 1440 % 7)
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
        // The week ends on Saturday.
        let root = tempfile::tempdir().unwrap();
        let at = weekly_within(&SysRoot::at(root.path()), 7 * 1440 + 61, 0);
        assert_eq!(at, "1 1 * * 0");
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
    fn a_machines_id_is_hashed_as_systemd_does() {
        // By Python's hmac, which agrees with `systemd-id128 machine-id --app-specific` (252).
        let hashed = hashed("0123456789abcdef0123456789abcdef");
        assert_eq!(hashed.as_deref(), Some("ddbf02915381446e8f8eed9bbc056826"));
        for none in ["", "uninitialized", "0123456789abcdef0123456789abcde"] {
            assert_eq!(super::hashed(none), None, "{none}");
        }
    }

    #[test]
    fn words_keep_parts_of_the_identity_out() {
        let shown = |text| Shown::parse(text).unwrap();
        let all = shown("");
        assert!(all.machine_id && all.serials && all.host.is_none());
        let some = shown(" host=rack 3, no-serial,");
        assert!(some.machine_id && !some.serials);
        assert_eq!(some.host.as_deref(), Some("rack 3"));
        assert!(!shown("no-machine-id").machine_id);
        for wrong in ["no-serials", "host", "host=", "serial=no"] {
            let why = Shown::parse(wrong).unwrap_err();
            assert!(why.contains(&format!("'{wrong}'")), "{why}");
        }
    }

    #[test]
    fn describes_this_machine() {
        let host = describe();
        assert!(!host.kernel.is_empty() && host.cpus > 0 && host.memory_bytes > 1 << 20);
    }
}
