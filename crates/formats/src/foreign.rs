//! Texts of other tools: trimbench names them, and what to record instead.

use std::fmt;

/// A tool whose output can't be imported.
#[derive(Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The text's name, such as `output of smartctl`.
    name: &'static str,
    holds: Holds,
    /// Lines that only this tool prints: each has one sign's words, in this order.
    signs: &'static [&'static [&'static str]],
}

/// The reason why such a text makes no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// A device or a set-up as it is.
    State,
    /// Counters or averages of one moment.
    Totals,
    /// A series in which discards don't occur.
    NoDiscards,
    /// Latencies or requests without rates over time.
    Requests,
    /// Something that has to be unpacked.
    Packed,
    /// fio's own sums.
    Fio,
}

/// The way to record a log that shows a stall and its discards.
const IOSTAT: &str = "record `iostat -x -y -t 1` (sysstat 12.1 or newer) while data is deleted";

const fn tool(
    name: &'static str,
    holds: Holds,
    signs: &'static [&'static [&'static str]],
) -> Foreign {
    Foreign { name, holds, signs }
}

use Holds::{Fio, NoDiscards, Packed, Requests, State, Totals};

/// All of them. The first whose sign occurs is it.
static KNOWN: [Foreign; 40] = [
    tool(
        "fio's terse output",
        Fio,
        &[&["^2;fio-"], &["^3;fio-"], &["^4;fio-"], &["^5;fio-"]],
    ),
    tool(
        "fio's normal output",
        Fio,
        &[&["(groupid=", "jobs="], &["(g=", "): rw="]],
    ),
    tool("output of smartctl", State, &[&["^smartctl "]]),
    tool(
        "output of hdparm",
        State,
        &[
            &["ATA device, with"],
            &["Timing cached reads"],
            &["Timing buffered disk reads"],
        ],
    ),
    tool(
        "output of nvme-cli",
        State,
        &[
            &["Smart Log for NVME"],
            &["NVME Identify"],
            &["NVME Namespace"],
            &["Node", "SN", "Model", "Namespace"],
            &["critical_warning", ":"],
            &["\"critical_warning\""],
            &["\"DevicePath\""],
        ],
    ),
    tool(
        "output of lsblk",
        State,
        &[
            &["NAME", "MAJ:MIN"],
            &["NAME", "DISC-"],
            &["NAME", "FSTYPE"],
            &["\"blockdevices\""],
        ],
    ),
    tool(
        "output of sg3_utils",
        State,
        &[&["Logical block provisioning VPD"], &["Block limits VPD"]],
    ),
    tool(
        "output of fstrim",
        Totals,
        &[&["bytes) trimmed"], &["bytes) were trimmed"]],
    ),
    tool("output of df", State, &[&["Filesystem", "Mounted on"]]),
    tool(
        "output of vmstat",
        NoDiscards,
        &[&["procs", "memory", "swap"], &["r", "b", "swpd", "free"]],
    ),
    tool(
        "output of vmstat -d",
        NoDiscards,
        &[&["disk-", "reads-", "writes-"]],
    ),
    tool(
        "output of dstat",
        NoDiscards,
        &[
            &["-dsk/"],
            &["--dsk/"],
            &["total-cpu-usage"],
            &["\"Dstat "],
            &["\"pcp-dstat"],
        ],
    ),
    tool(
        "output of ioping",
        Requests,
        &[&["request=", "time="], &["requests completed in"]],
    ),
    tool(
        "output of biolatency",
        Requests,
        &[
            &["secs", ": count", "distribution"],
            &["Tracing block device I/O"],
        ],
    ),
    tool(
        "a histogram of bpftrace",
        Requests,
        &[&["|@"], &["Attaching", "probe"]],
    ),
    tool(
        "output of biosnoop",
        Requests,
        &[&["TIME(s)", "COMM", "LAT(ms)"]],
    ),
    tool(
        "output of blkparse",
        Requests,
        &[&["CPU0 (", "):"], &["Reads Queued:"]],
    ),
    tool(
        "output of iolatency or btt",
        Requests,
        &[&["D2C", "Q2C"], &[">=(ms)", "<(ms)"]],
    ),
    tool(
        "output of zpool iostat",
        NoDiscards,
        &[
            &["capacity", "operations", "bandwidth"],
            &["pool", "alloc", "free"],
            &["total_wait", "disk_wait"],
        ],
    ),
    tool(
        "output of zpool status",
        State,
        &[&["pool:"], &["NAME", "STATE", "READ", "WRITE", "CKSUM"]],
    ),
    tool(
        "output of nfsiostat",
        NoDiscards,
        &[&["mounted on", ":"], &["ops/s", "rpc bklog"]],
    ),
    tool(
        "output of pidstat",
        NoDiscards,
        &[&["UID", "PID", "Command"]],
    ),
    tool("output of mpstat", NoDiscards, &[&["CPU", "%usr", "%nice"]]),
    tool(
        "output of iotop",
        NoDiscards,
        &[&["DISK READ", "DISK WRITE"]],
    ),
    tool(
        "output of top",
        NoDiscards,
        &[&["top - ", "load average"], &["PID", "USER", "%CPU"]],
    ),
    tool("output of atop", NoDiscards, &[&["ATOP - "]]),
    tool(
        "output of collectl",
        NoDiscards,
        &[&["<-", "Disks", "->"], &["KBRead", "KBWrit"]],
    ),
    tool("output of nmon", NoDiscards, &[&["AAA,progname"]]),
    tool(
        "output of sar",
        NoDiscards,
        &[
            &["DEV", "tps"],
            &["tps", "rtps", "wtps"],
            &["CPU", "%user", "%nice"],
        ],
    ),
    tool(
        "output of sadf without disks",
        NoDiscards,
        &[&["\"sysstat\""], &["# hostname;interval;"]],
    ),
    tool(
        "output of iostat of FreeBSD",
        NoDiscards,
        &[&["device", "kr/s"], &["KB/t", "tps", "MB/s"]],
    ),
    tool(
        "output of iostat of Solaris",
        NoDiscards,
        &[&["extended device statistics"], &["kr/s", "svc_t"]],
    ),
    tool(
        "a log of Windows' performance counters",
        NoDiscards,
        &[&["(PDH-"]],
    ),
    tool(
        "output of perf",
        NoDiscards,
        &[&["Performance counter stats for"], &["# Overhead"]],
    ),
    tool(
        "output of strace",
        Requests,
        &[&["% time", "usecs/call"], &["execve(", ") = 0"]],
    ),
    tool(
        "the kernel's log",
        NoDiscards,
        &[&["Linux version ", "gcc"], &["kernel: "]],
    ),
    tool("output of mdstat", State, &[&["Personalities :"]]),
    tool("output of mount", State, &[&[" on / type "]]),
    tool("/proc/diskstats", Totals, &[]),
    tool("an archive", Packed, &[]),
];

impl Foreign {
    /// The tool whose output begins so; `None` if trimbench doesn't know it.
    pub(crate) fn of(begin: &[u8], text: &str) -> Option<&'static Foreign> {
        let named = |name: &str| KNOWN.iter().find(|one| one.name == name);
        let packed: [&[u8]; 4] = [b"\xfd7zXZ", b"BZh", b"PK\x03\x04", b"7z\xbc\xaf"];
        if packed.iter().any(|magic| begin.starts_with(magic))
            || begin.get(257..262) == Some(b"ustar")
        {
            return named("an archive");
        }
        let lines = || text.lines().take(200);
        if lines().next().is_some_and(is_diskstats) {
            return named("/proc/diskstats");
        }
        if lines().filter(|line| is_event(line)).count() > 1 {
            return named("output of blkparse");
        }
        let found = KNOWN.iter().find(|one| lines().any(|line| one.is(line)));
        // A tree's first column may be cut off.
        found.or_else(|| named("output of lsblk").filter(|_| text.contains("├─")))
    }

    /// The tool whose output a text is, by its lines.
    pub fn in_text(text: &str) -> Option<&'static Foreign> {
        Foreign::of(text.as_bytes(), text)
    }

    fn is(&self, line: &str) -> bool {
        self.signs.iter().any(|sign| {
            let mut rest = line.trim_start();
            sign.iter().all(|word| {
                let found = match word.strip_prefix('^') {
                    Some(begin) => rest.starts_with(begin).then_some(0),
                    None => rest.find(word),
                };
                let Some(at) = found else { return false };
                rest = &rest[at + word.trim_start_matches('^').len()..];
                true
            })
        })
    }

    /// Why it makes no record, and what to do.
    pub fn instead(&self) -> String {
        match self.holds {
            State => format!(
                "It shows a state and nothing over time: {IOSTAT}. `trimbench inspect` describes devices."
            ),
            Totals => format!("It counts and shows nothing over time: {IOSTAT}."),
            NoDiscards => format!("It shows no discards of a device over time: {IOSTAT}."),
            Requests => format!("It shows requests and no rates over time: {IOSTAT}."),
            Packed => "Unpack it, and give the files or their folder.".to_owned(),
            Fio => "It sums up the whole run and has no series. Run fio with --write_iops_log=NAME \
                    --log_avg_msec=100 --log_unix_epoch=1 --output-format=json, and give its logs and \
                    its JSON."
                .to_owned(),
        }
    }
}

impl fmt::Display for Foreign {
    /// Such as `output of smartctl`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// `   8       0 sda 4512 0 …`: two numbers, a name, and eleven numbers at least.
fn is_diskstats(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &&str| word.bytes().all(|b| b.is_ascii_digit());
    let all = words.iter().enumerate();
    words.len() >= 14 && all.clone().all(|(i, word)| number(word) != (i == 2))
}

/// `  8,0    1        1     0.000000000  4711  D   R 1234 + 8 [fio]`.
fn is_event(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let device = words.next().and_then(|word| word.split_once(','));
    let numbers = device.is_some_and(|(a, b)| a.parse::<u32>().is_ok() && b.parse::<u32>().is_ok());
    numbers && line.contains(" + ") && line.trim_end().ends_with(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_is_named_by_its_own_lines() {
        for (text, name) in [
            (
                "\n/dev/sda:\n\nATA device, with non-removable media\n",
                "output of hdparm",
            ),
            ("smartctl 7.3 2022-02-28 r5338\n", "output of smartctl"),
            (
                "Linux 6.8 (b) \t06/19/24 \t_x86_64_\t(2 CPU)\n\n10:00:01 AM       DEV       tps     rkB/s\n",
                "output of sar",
            ),
            (
                "procs -----------memory---------- ---swap-- -----io----\n r  b   swpd   free\n",
                "output of vmstat",
            ),
            (
                "--total-cpu-usage-- -dsk/total- -net/total-\n",
                "output of dstat",
            ),
            (
                "  8,0  1  1  0.000000000  4711  D   R 12 + 8 [fio]\n  8,0  1  2  0.000000001  4711  C   R 12 + 8 [0]\n",
                "output of blkparse",
            ),
            (
                "     usecs               : count     distribution\n         0 -> 1          : 0        |    |\n",
                "output of biolatency",
            ),
            (
                "4 KiB <<< . (ext4 /dev/sda2 100 GiB): request=1 time=121.3 us\n",
                "output of ioping",
            ),
            (
                "              capacity     operations     bandwidth \npool        alloc   free   read  write   read  write\n",
                "output of zpool iostat",
            ),
            (
                "   8       0 sda 4512 31 2 3 4 5 6 7 8 9 10 11 12 13\n",
                "/proc/diskstats",
            ),
            (
                "NAME        MAJ:MIN RM   SIZE RO TYPE MOUNTPOINTS\n",
                "output of lsblk",
            ),
            (
                "NAME DISC-ALN DISC-GRAN DISC-MAX DISC-ZERO\n",
                "output of lsblk",
            ),
            (
                "Smart Log for NVME device:nvme0 namespace-id:ffffffff\n",
                "output of nvme-cli",
            ),
            ("3;fio-3.33;rr;0;0;72000;11998\n", "fio's terse output"),
            (
                "rr: (groupid=0, jobs=1): err= 0: pid=1\n",
                "fio's normal output",
            ),
            (
                "{\"sysstat\": {\"hosts\": []}}\n",
                "output of sadf without disks",
            ),
        ] {
            let found = Foreign::of(text.as_bytes(), text).map(ToString::to_string);
            assert_eq!(found.as_deref(), Some(name), "{text}");
        }
        for text in ["", "hello\n", "[package]\nname=x\n", "read me first\n"] {
            assert_eq!(Foreign::of(text.as_bytes(), text), None, "{text}");
        }
        assert!(
            Foreign::of(b"PK\x03\x04", "PK")
                .unwrap()
                .instead()
                .contains("Unpack")
        );
    }
}
