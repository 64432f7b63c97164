//! Figures of drives that stalled, or did not, in June 2024, and the logs that iostat makes of them.
//!
//! `data/NAME.csv` has a line for each second and each device that did something, with its source.

use std::fmt::{self, Write};
use std::fs;
use std::path::{Path, PathBuf};

/// One recorded run.
#[derive(Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The name of its table, as `t500-ext4`.
    pub name: &'static str,
    text: &'static str,
}

/// Samsung 870 EVO, ext4 with discard: a stall of 15 s.
pub const EVO: &Recorded = &Recorded {
    name: "870-evo-ext4",
    text: include_str!("../data/870-evo-ext4.csv"),
};

/// Crucial T500, ext4 with discard: a stall of 17 s.
pub const T500: &Recorded = &Recorded {
    name: "t500-ext4",
    text: include_str!("../data/t500-ext4.csv"),
};

/// Two Crucial T500 as RAID 0, XFS with discard: a stall of 5 s.
pub const RAID: &Recorded = &Recorded {
    name: "t500-raid0-xfs",
    text: include_str!("../data/t500-raid0-xfs.csv"),
};

/// Samsung 980 PRO, XFS with discard: no stall.
pub const PRO: &Recorded = &Recorded {
    name: "980-pro-xfs",
    text: include_str!("../data/980-pro-xfs.csv"),
};

/// Crucial T500, ext4 without discard: nothing is discarded.
pub const CONTROL: &Recorded = &Recorded {
    name: "t500-ext4-nodiscard",
    text: include_str!("../data/t500-ext4-nodiscard.csv"),
};

/// All of them.
pub const RUNS: [&Recorded; 5] = [EVO, T500, RAID, PRO, CONTROL];

/// How `iostat -x` of one version lays out its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sysstat {
    /// 11.5 and earlier: `Device:`, one wait for all, sizes in sectors, no discards.
    V11_5,
    /// 11.6 to 12.0: a size for each kind, no discards.
    V12_0,
    /// 12.1 and 12.2: discards, no flushes.
    V12_1,
    /// 12.3 and later: discards and flushes. The runs were recorded with 12.5.
    V12_5,
}

impl Sysstat {
    /// All layouts.
    pub const ALL: [Sysstat; 4] = [
        Sysstat::V11_5,
        Sysstat::V12_0,
        Sysstat::V12_1,
        Sysstat::V12_5,
    ];

    /// The names of the columns with rates in MB/s, as `iostat -x -m` prints them.
    pub fn columns(self) -> &'static [&'static str] {
        const NEW: &[&str] = &[
            "r/s", "rMB/s", "rrqm/s", "%rrqm", "r_await", "rareq-sz", "w/s", "wMB/s", "wrqm/s",
            "%wrqm", "w_await", "wareq-sz", "d/s", "dMB/s", "drqm/s", "%drqm", "d_await",
            "dareq-sz", "f/s", "f_await", "aqu-sz", "%util",
        ];
        const WITHOUT_FLUSHES: &[&str] = &[
            "r/s", "rMB/s", "rrqm/s", "%rrqm", "r_await", "rareq-sz", "w/s", "wMB/s", "wrqm/s",
            "%wrqm", "w_await", "wareq-sz", "d/s", "dMB/s", "drqm/s", "%drqm", "d_await",
            "dareq-sz", "aqu-sz", "%util",
        ];
        match self {
            Sysstat::V11_5 => &[
                "rrqm/s", "wrqm/s", "r/s", "w/s", "rMB/s", "wMB/s", "avgrq-sz", "avgqu-sz",
                "await", "r_await", "w_await", "svctm", "%util",
            ],
            Sysstat::V12_0 => &[
                "r/s", "w/s", "rMB/s", "wMB/s", "rrqm/s", "wrqm/s", "%rrqm", "%wrqm", "r_await",
                "w_await", "aqu-sz", "rareq-sz", "wareq-sz", "svctm", "%util",
            ],
            Sysstat::V12_1 => WITHOUT_FLUSHES,
            Sysstat::V12_5 => NEW,
        }
    }

    fn first_column(self) -> &'static str {
        match self {
            Sysstat::V11_5 => "Device:",
            _ => "Device",
        }
    }
}

/// One device in one second.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    columns: &'a [&'a str],
    fields: &'a [&'a str],
}

impl Row<'_> {
    /// The figure that iostat prints in this column; 0 where the table has none.
    pub fn figure(&self, column: &str) -> f64 {
        match column {
            "avgqu-sz" => self.figure("aqu-sz"),
            // In sectors, over reads and writes.
            "avgrq-sz" => self.mean("rareq-sz", "wareq-sz") * 2.0,
            "await" => self.mean("r_await", "w_await"),
            _ => {
                let place = self.columns.iter().position(|name| *name == column);
                let field = place.and_then(|place| self.fields.get(place));
                let field = field.filter(|field| !field.is_empty());
                field.map_or(0.0, |field| field.parse().unwrap())
            }
        }
    }

    /// The mean over reads and writes of two columns.
    fn mean(&self, of_reads: &str, of_writes: &str) -> f64 {
        let (reads, writes) = (self.figure("r/s"), self.figure("w/s"));
        let sum = reads * self.figure(of_reads) + writes * self.figure(of_writes);
        match reads + writes {
            0.0 => 0.0,
            all => sum / all,
        }
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Recorded {
    /// The values of a line of the table's head, as `# kernel: 6.5.0`.
    fn head(&self, key: &str) -> impl Iterator<Item = &'static str> {
        let prefix = format!("# {key}: ");
        let text: &'static str = self.text;
        text.lines()
            .filter_map(move |line| line.strip_prefix(&prefix))
    }

    fn one(&self, key: &str) -> &'static str {
        let value = self.head(key).next();
        value.unwrap_or_else(|| panic!("{}: no {key}", self.name))
    }

    /// The devices that iostat listed, in its order.
    pub fn devices(&self) -> Vec<&'static str> {
        self.one("devices").split(' ').collect()
    }

    /// Calls `each` for every second (from 1 on) and device, in iostat's order.
    pub fn each(&self, mut each: impl FnMut(usize, &str, Row<'_>)) {
        let mut lines = self.text.lines().filter(|line| !line.starts_with('#'));
        let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        for second in 1..=self.seconds() {
            let number = second.to_string();
            for device in self.devices() {
                let found = rows.iter().find(|row| row[0] == number && row[1] == device);
                let fields = found.map_or(&[][..], |row| row);
                let columns = &columns;
                each(second, device, Row { columns, fields });
            }
        }
    }

    /// How many seconds were recorded.
    pub fn seconds(&self) -> usize {
        self.one("seconds").parse().unwrap()
    }

    /// The log that `iostat -x -m -y 1` of this version would have printed.
    pub fn iostat(&self, version: Sysstat) -> String {
        let mut text = format!(
            "Linux {} ({}) \t{} \t_x86_64_\t({} CPU)\n\n",
            self.one("kernel"),
            self.one("host"),
            self.one("date"),
            self.one("cpus")
        );
        let mut now = 0;
        self.each(|second, device, row| {
            if second != now {
                now = second;
                text += "\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n";
                text += "           1.38    0.00    7.51    0.00    0.00   91.12\n\n";
                write!(text, "{:<13}", version.first_column()).unwrap();
                for column in version.columns() {
                    write!(text, " {column:>8}").unwrap();
                }
                text.push('\n');
            }
            write!(text, "{device:<13}").unwrap();
            for column in version.columns() {
                write!(text, " {:>8.2}", row.figure(column)).unwrap();
            }
            text.push('\n');
            if self.devices().last() == Some(&device) {
                text.push('\n');
            }
        });
        text
    }

    /// The notes that the script beside it wrote: mounts, what was removed when, and fio's job.
    pub fn notes(&self) -> String {
        let removed = self.one("removed");
        let path = removed.split(' ').next().unwrap_or_default();
        let mounts: Vec<&str> = self.head("mount").collect();
        format!(
            "Create {path}\n{bytes} bytes ({gib} GiB) copied, 3179.38 s, 346 MB/s\n\
             List mount options for filesystems\nproc on /proc type proc (rw,nosuid)\n{mounts}\n\n\
             Remove {removed}\n\n{job}\nfio-3.28\n     issued rwts: total={issued},0,0 short=0,0,0,0\n",
            bytes = self.one("removed-bytes"),
            gib = self.one("removed-bytes").parse::<u64>().unwrap() >> 30,
            mounts = mounts.join("\n"),
            job = self.one("job"),
            issued = self.one("issued"),
        )
    }

    /// Writes `iostat.txt` and `run.txt` into a new directory `into/NAME`, as the script left them.
    pub fn write_folder(&self, into: &Path) -> PathBuf {
        let folder = into.join(self.name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("iostat.txt"), self.iostat(Sysstat::V12_5)).unwrap();
        fs::write(folder.join("run.txt"), self.notes()).unwrap();
        folder
    }
}
