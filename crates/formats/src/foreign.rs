//! Texts of other tools: trimbench names them, and what to record instead.

use std::fmt;

/// A tool whose output can't be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// The text's name, such as `output of smartctl`.
    name: &'static str,
    /// The kind of figures in it; `instead` says why they make no record.
    holds: &'static str,
}

/// The tools: name, kind of figures, and signs of which one alone is enough. A sign's words
/// (between `…`) are in one line, in this order; after `^` the line begins with the word. The first
/// tool whose sign occurs is it.
const KNOWN: &str = r##"
fio's terse output | fio | ^2;fio- | ^3;fio- | ^4;fio- | ^5;fio-
fio's normal output | fio | (groupid=…jobs= | (g=…): rw=
output of smartctl | state | ^smartctl …
output of hdparm | state | ATA device, with | Timing cached reads | Timing buffered disk reads
output of nvme-cli | state | Smart Log for NVME | NVME Identify | NVME Namespace | Node…SN…Model…Namespace | critical_warning…: | "critical_warning" | "DevicePath"
output of lsblk | state | NAME…MAJ:MIN | NAME…DISC- | NAME…FSTYPE | "blockdevices"
output of sg3_utils | state | Logical block provisioning VPD | Block limits VPD
output of fstrim | totals | bytes) trimmed | bytes) were trimmed
output of df | state | Filesystem…Mounted on
output of vmstat | no discards | procs…memory…swap | r…b…swpd…free
output of vmstat -d | no discards | disk-…reads-…writes-
output of dstat | no discards | -dsk/ | total-cpu-usage | "Dstat … | "pcp-dstat
output of ioping | requests | request=…time= | requests completed in
output of biolatency | requests | secs…: count…distribution | Tracing block device I/O
a histogram of bpftrace | requests | |@ | Attaching…probe
output of biosnoop | requests | TIME(s)…COMM…LAT(ms)
output of blkparse | requests | CPU0 (…): | Reads Queued:
output of iolatency or btt | requests | D2C…Q2C | ^Q2Q | >=(ms)…<(ms)
a trace of the kernel | requests | ^# tracer: | block_rq_
output of zpool iostat | no discards | capacity…operations…bandwidth | pool…alloc…free | total_wait…disk_wait
output of zpool status | state | pool: | NAME…STATE…READ…WRITE…CKSUM
output of nfsiostat | no discards | mounted on…: | ops/s…rpc bklog
output of pidstat | no discards | UID…PID…Command
output of mpstat | no discards | CPU…%usr…%nice
output of iotop | no discards | DISK READ…DISK WRITE
output of top | no discards | top - …load average | PID…USER…%CPU
output of atop | no discards | ATOP - …
output of collectl | no discards | <-…Disks…-> | KBRead…KBWrit
output of nmon | no discards | AAA,progname
output of sar | no discards | DEV…tps | tps…rtps…wtps | CPU…%user…%nice
output of sadf without disks | no discards | "sysstat" | # hostname;interval;
output of gstat | no discards | L(q)…ops/s
output of iostat of FreeBSD | no discards | device…kr/s | KB/t…tps…MB/s
output of iostat of Solaris | no discards | extended device statistics | kr/s…svc_t
a log of Windows' performance counters | no discards | (PDH-
output of sysbench | no discards | qps:…(r/w/o:
output of pgbench | no discards | progress:…tps, lat
a list of Prometheus metrics | totals | ^# TYPE …
output of perf | no discards | Performance counter stats for | # Overhead
output of strace | requests | % time…usecs/call | execve(…) = 0 | ) = 0 <
the kernel's log | no discards | Linux version …gcc | kernel: … | blocked for more than…seconds
output of mdstat | state | Personalities :
output of mount | state | … on / type …"##;

/// The way to record a log that shows a stall and its discards.
const IOSTAT: &str = "record `iostat -x -y -t 1` (sysstat 12.1 or newer) while data is deleted";

impl Foreign {
    /// The tool whose output begins so; `None` if trimbench doesn't know it.
    pub(crate) fn of(begin: &[u8], text: &str) -> Option<Foreign> {
        let is = |name, holds| Some(Foreign { name, holds });
        let packed: [&[u8]; 4] = [b"\xfd7zXZ", b"BZh", b"PK\x03\x04", b"7z\xbc\xaf"];
        let tar = begin.get(257..262) == Some(b"ustar");
        if tar || packed.iter().any(|magic| begin.starts_with(magic)) {
            return is("an archive", "packed");
        }
        let lines = || text.lines().take(200);
        // A time may stand before each copy.
        if lines().take(2).any(is_diskstats) {
            return is("/proc/diskstats", "totals");
        }
        if lines().filter(|line| is_event(line)).count() > 1 {
            return is("output of blkparse", "requests");
        }
        for known in KNOWN.trim_start().lines() {
            let mut parts = known.split(" | ");
            let (name, holds) = (parts.next()?, parts.next()?);
            let shows = |sign| lines().any(|line| is_in(line, sign));
            if parts.any(shows) {
                return is(name, holds);
            }
        }
        // A tree's first column may be cut off.
        is("output of lsblk", "state").filter(|_| text.contains("├─"))
    }

    /// The tool whose output a text is, by its lines.
    pub fn in_text(text: &str) -> Option<Foreign> {
        Foreign::of(text.as_bytes(), text)
    }

    /// Why it makes no record, and what to do.
    pub fn instead(&self) -> String {
        match self.holds {
            "state" => format!(
                "It shows a state and nothing over time: {IOSTAT}. `trimbench inspect` describes devices."
            ),
            "totals" => format!("It counts and shows nothing over time: {IOSTAT}."),
            "requests" => format!("It shows requests and no rates over time: {IOSTAT}."),
            "packed" => "Unpack it, and give the files or their folder.".to_owned(),
            "fio" => "It sums up the whole run and has no series. Run fio with --write_iops_log=NAME \
                      --log_avg_msec=100 --log_unix_epoch=1 --output-format=json, and give its logs and \
                      its JSON."
                .to_owned(),
            _ => format!("It shows no discards of a device over time: {IOSTAT}."),
        }
    }
}

/// Whether a line has a sign's words.
fn is_in(line: &str, sign: &str) -> bool {
    let mut rest = line.trim_start();
    sign.split('…').all(|word| {
        let found = match word.strip_prefix('^') {
            Some(begin) => rest.strip_prefix(begin),
            None => rest.split_once(word).map(|(_, after)| after),
        };
        found.map(|after| rest = after).is_some()
    })
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
                "Wed Jun 19 05:02:00 UTC 2024\n 259 0 nvme0n1 4512 31 2 3 4 5 6 7 8 9 10 11 12 13\n",
                "/proc/diskstats",
            ),
            (
                "rm  2099 [001]  123.456: block:block_rq_issue: 259,0 D 1048576 () 12 + 2048 [rm]\n",
                "a trace of the kernel",
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
            let found = Foreign::of(text.as_bytes(), text).map(|tool| tool.to_string());
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
