//! The programs that trim here, when, and which mounts: timers, cron, and LVM's own setting.

mod command;
mod shell;
mod units;

use std::fs;
use std::time::UNIX_EPOCH;

use linux::SysRoot;
use linux::fstab::{self, Entry};
use linux::mounts::Mount;
use linux::sysroot::{entries, value};
use serde::Serialize;

use command::{Command, Program};
pub use units::Calendar;
use units::Unit;

/// The programs that trim beside the file systems themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Policy {
    /// Programs that trim from time to time.
    pub trimmers: Vec<Trimmer>,
    /// `issue_discards` of `/etc/lvm/lvm.conf`; `None` where LVM has no file. Then it is 0.
    pub issue_discards: Option<bool>,
    /// Entries of `/etc/fstab` with `discard`: their mount points.
    pub fstab_discard: Vec<String>,
    /// Entries of `/etc/fstab` that `fstrim` leaves out (`X-fstrim.notrim`): their mount points.
    pub fstab_notrim: Vec<String>,
    /// Whether systemd runs, so that timers do.
    #[serde(skip)]
    pub has_systemd: bool,
    /// Devices with something that sends its own discards, or none: pools of ZFS, OSDs of Ceph.
    pub users: Vec<User>,
}

/// A device's user that is no file system of Linux.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct User {
    /// The device; `None` of a pool whose devices aren't known.
    pub device: Option<String>,
    /// Its user.
    pub name: String,
    /// The command that shows whether it sends discards.
    pub switch: String,
}

/// A program that trims from time to time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trimmer {
    /// The name of the timer, or the file that cron reads.
    pub name: String,
    /// The file that says when.
    pub file: String,
    /// Why it does not run by itself; `None` if it does.
    pub inactive: Option<&'static str>,
    /// The program, or several.
    pub program: String,
    /// Whether it is `trimbench fstrim`.
    pub paced: bool,
    /// When, as the file says it.
    pub schedule: Option<String>,
    /// The most by which it starts later, in seconds.
    pub random_delay_s: u64,
    /// Whether the delay is the same each time on this machine.
    pub fixed_delay: bool,
    /// When it elapses next, in seconds since 1970; `None` if that isn't known.
    pub next_unix_s: Option<i64>,
    /// When it ran last, in seconds since 1970; `None` if that isn't known.
    pub last_unix_s: Option<i64>,
    /// The mount points that it trims, as far as they are known.
    pub covers: Vec<String>,
    /// Whether a shell or a program chooses some of them, so that any mount may be among them.
    pub covers_unknown: bool,
}

impl Trimmer {
    /// Whether it trims pools of ZFS and no other mounts.
    pub fn is_for_pools(&self) -> bool {
        !self.program.ends_with(command::FSTRIM)
    }

    /// A trimmer that runs these commands; the rest is to be filled in.
    fn of(sys: &SysRoot, mounts: &[Mount], commands: &[Command]) -> Trimmer {
        let covers: Vec<_> = commands.iter().map(|one| one.covers(sys, mounts)).collect();
        // Those of mounts are last: the mounts follow.
        let mut sorted: Vec<&Command> = commands.iter().collect();
        sorted.sort_by_key(|one| one.program != Program::Zpool);
        let mut programs: Vec<String> = sorted.into_iter().map(Command::name).collect();
        programs.dedup();
        Trimmer {
            name: String::new(),
            file: String::new(),
            inactive: None,
            program: programs.join(" and "),
            paced: commands
                .iter()
                .all(|command| command.program == Program::Ours),
            schedule: None,
            random_delay_s: 0,
            fixed_delay: false,
            next_unix_s: None,
            last_unix_s: None,
            covers_unknown: covers.iter().any(Option::is_none),
            covers: covers.into_iter().flatten().flatten().collect(),
        }
    }
}

/// The present, for what comes next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// Seconds since 1970 (UTC).
    pub unix_s: i64,
    /// Seconds by which local time is ahead of UTC.
    pub offset_s: i64,
}

impl Policy {
    /// The policy in the files of a machine.
    pub fn of(sys: &SysRoot, mounts: &[Mount], now: Now) -> Policy {
        let mut trimmers = timers(sys, mounts, now);
        trimmers.extend(cron(sys, mounts));
        let entries = fstab::parse(&fs::read(sys.path("/etc/fstab")).unwrap_or_default());
        let with = |has: &dyn Fn(&str) -> bool| -> Vec<String> {
            let own = |entry: &&Entry| entry.options.iter().any(|one| has(one));
            let own = entries.iter().filter(own);
            own.map(|entry| entry.target.to_string_lossy().into_owned())
                .collect()
        };
        Policy {
            trimmers,
            issue_discards: sys
                .text("/etc/lvm/lvm.conf")
                .ok()
                .map(|text| issue_discards(&text)),
            fstab_discard: with(&|one| one == "discard" || one.starts_with("discard=")),
            fstab_notrim: with(&|one| one == "X-fstrim.notrim"),
            has_systemd: runs_systemd(sys),
            users: users(sys, mounts),
        }
    }

    /// Whether a program trims mounts by itself that trimbench can't tell.
    pub fn may_trim(&self) -> bool {
        let mut all = self.trimmers.iter();
        all.any(|one| one.inactive.is_none() && one.covers_unknown)
    }

    /// The programs that trim a mount point by themselves.
    pub fn trims<'a>(&'a self, mount_point: &'a str) -> impl Iterator<Item = &'a Trimmer> {
        let covers = move |one: &&Trimmer| {
            one.inactive.is_none() && one.covers.iter().any(|path| path == mount_point)
        };
        self.trimmers.iter().filter(covers)
    }
}

fn timers(sys: &SysRoot, mounts: &[Mount], now: Now) -> Vec<Trimmer> {
    let container = linux::host::is_container(sys);
    let timer = |(name, enabled): (String, bool)| {
        let timer = Unit::of(sys, &name)?;
        let service = match timer.last("Unit") {
            Some(unit) => unit.to_owned(),
            None => name.replace(".timer", ".service"),
        };
        let service = Unit::of(sys, &service)?;
        let commands: Vec<Command> = service
            .all("ExecStart")
            .flat_map(|line| Command::all(sys, line))
            .collect();
        if commands.is_empty() {
            return None;
        }
        let inactive = match () {
            () if !enabled => Some("it is not enabled"),
            () if !runs_systemd(sys) => Some("systemd is not running here"),
            () if container && outside_only(&timer) => Some("it does not run in a container"),
            () => None,
        };
        let next = timer.all("OnCalendar").filter_map(|text| {
            let next = Calendar::parse(text)?.next(now.unix_s + now.offset_s)?;
            Some(next - now.offset_s)
        });
        let stamp = sys.path(format!("/var/lib/systemd/timers/stamp-{name}"));
        let last = fs::metadata(stamp).and_then(|stamp| stamp.modified()).ok();
        let last = last.and_then(|last| last.duration_since(UNIX_EPOCH).ok());
        Some(Trimmer {
            inactive,
            schedule: timer.last("OnCalendar").map(str::to_owned),
            random_delay_s: timer
                .last("RandomizedDelaySec")
                .and_then(units::span_s)
                .unwrap_or(0),
            fixed_delay: timer.last("FixedRandomDelay").is_some_and(is_yes),
            next_unix_s: next.min().filter(|_| inactive.is_none()),
            last_unix_s: last.map(|last| last.as_secs() as i64),
            file: timer.file,
            name,
            ..Trimmer::of(sys, mounts, &commands)
        })
    };
    units::timers(sys).into_iter().filter_map(timer).collect()
}

/// Whether the first process is systemd, or isn't known.
fn runs_systemd(sys: &SysRoot) -> bool {
    let first = sys.line("/proc/1/comm");
    first.as_deref() == Some("systemd") || !sys.path("/proc/1/comm").exists()
}

fn outside_only(unit: &Unit) -> bool {
    unit.all("ConditionVirtualization")
        .any(|value| value == "!container")
}

fn is_yes(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "1" | "yes" | "true" | "on"
    )
}

/// Files of cron and the schedule of all that is in them; `None`: each line has its own.
const CRON: [(&str, Option<&str>); 8] = [
    ("/etc/crontab", None),
    ("/etc/cron.d", None),
    ("/var/spool/cron", None),
    ("/var/spool/cron/crontabs", None),
    ("/etc/cron.hourly", Some("hourly")),
    ("/etc/cron.daily", Some("daily")),
    ("/etc/cron.weekly", Some("weekly")),
    ("/etc/cron.monthly", Some("monthly")),
];

fn cron(sys: &SysRoot, mounts: &[Mount]) -> Vec<Trimmer> {
    let mut found = Vec::new();
    for (place, schedule) in CRON {
        for file in files(sys, place) {
            let text = sys.text(&file).unwrap_or_default();
            // A script is one, and each line of a table stands for itself.
            let parts: Vec<&str> = match schedule {
                Some(_) => vec![text.as_str()],
                None => text.lines().map(str::trim).collect(),
            };
            for part in parts {
                let commands = Command::all(sys, part);
                if commands.is_empty() {
                    continue;
                }
                found.push(Trimmer {
                    name: "cron".to_owned(),
                    file: file.clone(),
                    schedule: schedule.map(str::to_owned).or_else(|| when(part)),
                    ..Trimmer::of(sys, mounts, &commands)
                });
            }
        }
    }
    found
}

/// Pools of ZFS with a mount, and devices on which udev found a pool of ZFS or an OSD of Ceph.
fn users(sys: &SysRoot, mounts: &[Mount]) -> Vec<User> {
    let zfs = |device, pool: &str| User {
        device,
        name: format!("ZFS pool {pool}"),
        switch: format!("zpool get autotrim {pool}"),
    };
    let mut found: Vec<User> = Vec::new();
    for name in sys.devices() {
        let number = sys.attribute(&name, "dev").unwrap_or_default();
        let udev = sys.text(format!("/run/udev/data/b{number}"));
        let udev = udev.unwrap_or_default();
        let kind = value(&udev, "E:ID_FS_TYPE=");
        let label = sys.attribute(&name, "dm/name").unwrap_or_default();
        let is_osd = kind == Some("ceph_bluestore") || label.starts_with("ceph--");
        if is_osd {
            found.push(User {
                device: Some(name),
                name: "a Ceph OSD".to_owned(),
                switch: "ceph config get osd bdev_enable_discard".to_owned(),
            });
        } else if kind == Some("zfs_member") {
            let pool = value(&udev, "E:ID_FS_LABEL=").unwrap_or("of an unknown name");
            found.push(zfs(Some(name), pool));
        }
    }
    for mount in mounts.iter().filter(|mount| mount.fs == "zfs") {
        let user = zfs(None, mount.source.split('/').next().unwrap_or_default());
        if found.iter().all(|one| one.name != user.name) {
            found.push(user);
        }
    }
    found
}

/// The five fields of a crontab's line, in words where they name a day and a time, or its word such
/// as `@weekly`.
fn when(line: &str) -> Option<String> {
    const DAYS: [&str; 8] = [
        "Sunday",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ];
    let words: Vec<&str> = line.split_whitespace().collect();
    if let [minute, hour, "*", "*", day, ..] = words[..]
        && let (Ok(minute), Ok(hour)) = (minute.parse::<u8>(), hour.parse::<u8>())
    {
        let day = match day {
            "*" => Some("every day"),
            day => day
                .parse::<usize>()
                .ok()
                .and_then(|day| DAYS.get(day).copied()),
        };
        if let Some(day) = day {
            return Some(format!("{day} {hour:02}:{minute:02}"));
        }
    }
    match words.first()?.starts_with('@') {
        true => words.first().map(|word| (*word).to_owned()),
        false => Some(words.get(..5)?.join(" ")),
    }
}

/// A file, or the files in a folder, in order.
fn files(sys: &SysRoot, place: &str) -> Vec<String> {
    if sys.path(place).is_file() {
        return vec![place.to_owned()];
    }
    let names = entries(&sys.path(place)).into_iter();
    let files = names.map(|name| format!("{place}/{name}"));
    files.filter(|file| sys.path(file).is_file()).collect()
}

fn issue_discards(text: &str) -> bool {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let mut values = lines.filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim();
        (key == "issue_discards" || key == "devices/issue_discards").then(|| value.trim() == "1")
    });
    values.next_back().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Machine;

    const NOW: Now = Now {
        unix_s: 1_795_485_600,
        offset_s: 3600,
    };

    #[test]
    fn a_timer_says_when_and_what() {
        let machine = Machine::new("1 0 259:0 / / rw - ext4 /dev/nvme0n1 rw\n");
        machine.device("pci/nvme/nvme0/nvme0n1", "259:0", Some(1 << 30));
        let lib = "usr/lib/systemd/system";
        machine.write(
            &format!("{lib}/fstrim.timer"),
            "[Timer]\nOnCalendar=weekly\nRandomizedDelaySec=100min\nPersistent=true\n",
        );
        machine.write(
            &format!("{lib}/fstrim.service"),
            "[Service]\nExecStart=/sbin/fstrim --listed-in /etc/fstab:/proc/self/mountinfo\n",
        );
        machine.write(
            "etc/cron.weekly/trim",
            "#!/bin/sh\n# fstrim /no\nfstrim -v /srv\n",
        );
        machine.write("etc/crontab", "0 3 * * 0 root /sbin/fstrim /var\n");
        machine.write(
            "etc/lvm/lvm.conf",
            "devices {\n\t# issue_discards = 1\n\tissue_discards = 0\n}\n",
        );
        machine.write("etc/fstab", "/dev/nvme0n1 / ext4 discard 0 1\n");
        let sys = SysRoot::at(machine.root());
        let mounts = linux::mounts::list(&sys).unwrap();
        let policy = Policy::of(&sys, &mounts, NOW);
        let [timer, table, script] = &policy.trimmers[..] else {
            panic!("{policy:#?}");
        };
        assert!(timer.inactive.is_some() && timer.next_unix_s.is_none());
        assert_eq!(
            (timer.random_delay_s, &timer.covers[..]),
            (6000, &["/".to_owned()][..])
        );
        assert_eq!(table.schedule.as_deref(), Some("Sunday 03:00"));
        assert_eq!(script.covers, ["/srv"]);
        assert_eq!(policy.issue_discards, Some(false));
        assert_eq!(policy.fstab_discard, ["/"]);
        machine.link("etc/systemd/system/timers.target.wants/fstrim.timer", "x");
        let policy = Policy::of(&sys, &mounts, NOW);
        let timer = &policy.trimmers[0];
        assert!(timer.inactive.is_none() && policy.trims("/").count() == 1);
        machine.write("proc/1/comm", "sh\n");
        let idle = Policy::of(&sys, &mounts, NOW);
        assert_eq!(
            idle.trimmers[0].inactive,
            Some("systemd is not running here")
        );
        // Monday midnight of local time.
        assert_eq!(timer.next_unix_s.map(|at| (at + 3600) % 86_400), Some(0));
    }
}
