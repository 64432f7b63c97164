//! A recorded log as a table, and ways to write it down.

use std::fmt::Write;

use serde_json::{Map, Value, json};

/// One device in one report.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) figures: Vec<f64>,
}

/// A log: which figures there are, and each report's devices.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) reports: Vec<Vec<Line>>,
    /// Seconds between reports, if reports have a time stamp.
    pub(crate) stamps: Option<usize>,
    /// Whether times are as ISO 8601 has them.
    pub(crate) iso: bool,
}

impl Table {
    pub(crate) fn read(text: &str) -> Table {
        let mut table = Table {
            columns: vec![],
            reports: vec![],
            stamps: None,
            iso: false,
        };
        let mut in_rows = false;
        for line in text.lines() {
            let tokens: Vec<&str> = line.split_whitespace().collect();
            if tokens.first() == Some(&"Device") {
                table.columns = tokens[1..].iter().map(|t| t.to_string()).collect();
                table.reports.push(vec![]);
                in_rows = true;
            } else if tokens.is_empty() {
                in_rows = false;
            } else if in_rows {
                table.reports.last_mut().unwrap().push(Line {
                    name: tokens[0].to_owned(),
                    figures: tokens[1..].iter().map(|t| t.parse().unwrap()).collect(),
                });
            }
        }
        table
    }

    fn place(&self, column: &str) -> usize {
        self.columns.iter().position(|c| c == column).unwrap()
    }

    /// The reports that `iostat EVERY` would have printed: from `offset` on, so many in one.
    pub(crate) fn averaged(&self, every: usize, offset: usize) -> Table {
        let all: Vec<&[Vec<Line>]> = self.reports[offset..].chunks_exact(every).collect();
        let reports = all.iter().map(|some| {
            let first = some[0].iter().enumerate();
            first
                .map(|(i, line)| {
                    self.mean(&line.name, &some.iter().map(|r| &r[i]).collect::<Vec<_>>())
                })
                .collect()
        });
        Table {
            reports: reports.collect(),
            ..self.clone()
        }
    }

    /// One device's line of several.
    fn mean(&self, name: &str, lines: &[&Line]) -> Line {
        let n = lines.len() as f64;
        let mean = |i: usize| lines.iter().map(|l| l.figures[i]).sum::<f64>() / n;
        let figures = self.columns.iter().enumerate().map(|(i, column)| {
            // Waits and sizes are of operations, not of time.
            let of = column
                .split_once("_await")
                .map(|c| c.0)
                .or(column.split_once("areq-sz").map(|c| c.0));
            let Some(kind) = of else { return mean(i) };
            let count = self.place(&format!("{kind}/s"));
            let operations: f64 = lines.iter().map(|l| l.figures[count]).sum();
            let sum: f64 = lines.iter().map(|l| l.figures[count] * l.figures[i]).sum();
            if operations > 0.0 {
                sum / operations
            } else {
                0.0
            }
        });
        Line {
            name: name.to_owned(),
            figures: figures.collect(),
        }
    }

    /// With times so many seconds apart.
    pub(crate) fn stamped(self, seconds: usize) -> Table {
        Table {
            stamps: Some(seconds),
            ..self
        }
    }

    /// The time stamp of a report, if reports have one.
    pub(crate) fn stamp(&self, report: usize) -> Option<String> {
        let at = 36_000 + (report + 1) * self.stamps?;
        let (h, m, s) = (at / 3600, at / 60 % 60, at % 60);
        Some(match self.iso {
            true => format!("2024-06-19T{h:02}:{m:02}:{s:02}+0000"),
            false => format!("06/19/2024 {h:02}:{m:02}:{s:02} AM"),
        })
    }

    pub(crate) fn iso(&self) -> Table {
        Table {
            iso: true,
            ..self.clone()
        }
    }

    /// With each report changed.
    fn each(&self, change: impl Fn(&mut Vec<Line>)) -> Table {
        let mut table = self.clone();
        table.reports.iter_mut().for_each(change);
        table
    }

    /// With the total of all devices at the end (`-g NAME ALL`).
    pub(crate) fn grouped(&self, name: &str) -> Table {
        self.each(|report| {
            let devices: Vec<&Line> = report.iter().filter(|l| !l.name.starts_with(' ')).collect();
            let n = devices.len() as f64;
            let mut total = self.mean(&format!(" {name}"), &devices);
            for (figure, column) in total.figures.iter_mut().zip(&self.columns) {
                if !(column.contains("await") || column.contains("areq-sz") || column.contains('%'))
                {
                    *figure *= n;
                }
            }
            report.push(total);
        })
    }

    /// With busy devices called differently.
    pub(crate) fn renamed(&self, names: &[&str]) -> Table {
        let place = self.place("r/s");
        let busy = |name: &str| {
            let mut all = self.reports.iter().flatten();
            all.any(|line| line.name == name && line.figures[place] > 100.0)
        };
        let first: Vec<String> = self.reports[0].iter().map(|l| l.name.clone()).collect();
        let busy: Vec<&String> = first.iter().filter(|name| busy(name)).collect();
        self.each(|report| {
            for line in report {
                if let Some(at) = busy.iter().position(|name| **name == line.name) {
                    line.name = names[at].to_owned();
                }
            }
        })
    }

    /// With so many disks that do a little.
    pub(crate) fn with_disks(&self, disks: usize) -> Table {
        let (reads, kb) = (self.place("r/s"), self.place("rMB/s"));
        self.each(|report| {
            for disk in 0..disks {
                let mut line = Line {
                    name: format!("disk{disk}"),
                    figures: vec![0.0; self.columns.len()],
                };
                line.figures[reads] = (disk % 7) as f64;
                line.figures[kb] = line.figures[reads] * 0.004;
                report.insert(disk % 3, line);
            }
        })
    }

    /// As `iostat -x -o JSON` tells it, on which serde_json sorts the names.
    pub(crate) fn json(&self) -> Value {
        let device = |line: &Line| {
            let mut all = Map::new();
            all.insert("disk_device".into(), line.name.as_str().into());
            for (column, figure) in self.columns.iter().zip(&line.figures) {
                all.insert(column.clone(), (*figure).into());
            }
            Value::Object(all)
        };
        let reports = self.reports.iter().enumerate().map(|(at, report)| {
            let devices: Vec<Value> = report.iter().map(device).collect();
            json!({"timestamp": self.stamp(at), "avg-cpu": {"idle": 99.0}, "disk": devices})
        });
        let reports: Vec<Value> = reports.collect();
        let host = json!({"nodename": "box", "sysname": "Linux", "release": "6.5.0",
            "number-of-cpus": 24, "date": "06/19/24", "statistics": reports});
        json!({"sysstat": {"hosts": [host]}})
    }

    /// As `iostat -x -h` prints it: a part for each kind, the device in the last column,
    /// units on figures.
    pub(crate) fn human(&self) -> String {
        let kinds = ["r", "w", "d", "f"].map(|kind| {
            let own = |column: &str| {
                let mine = |c: char| column.trim_start_matches('%').starts_with(c);
                match kind {
                    "f" => column.starts_with("f") || column == "aqu-sz" || column == "%util",
                    _ => mine(kind.chars().next().unwrap()),
                }
            };
            let places = (0..self.columns.len()).filter(|&i| own(&self.columns[i]));
            places.collect::<Vec<_>>()
        });
        let mut text = String::from("Linux 6.5.0 (box) \t06/19/2024 \t_x86_64_\t(24 CPU)\n\n");
        for (at, report) in self.reports.iter().enumerate() {
            writeln!(text, "{}", self.stamp(at).unwrap_or_default()).unwrap();
            for places in &kinds {
                for &place in places {
                    write!(text, " {:>8}", self.columns[place].replace("MB", "kB")).unwrap();
                }
                text += " Device\n";
                for line in report {
                    for &place in places {
                        text += &human(&self.columns[place], line.figures[place]);
                    }
                    writeln!(text, " {}", line.name).unwrap();
                }
                text.push('\n');
            }
        }
        text
    }

    /// As `iostat -x` prints it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("Linux 6.5.0 (box) \t06/19/2024 \t_x86_64_\t(24 CPU)\n\n");
        for (at, report) in self.reports.iter().enumerate() {
            if let Some(stamp) = self.stamp(at) {
                writeln!(text, "{stamp}").unwrap();
            }
            writeln!(text, "Device {}", self.columns.join(" ")).unwrap();
            for line in report {
                write!(text, "{:<13}", line.name).unwrap();
                for figure in &line.figures {
                    write!(text, " {figure:>8.2}").unwrap();
                }
                text.push('\n');
            }
            text.push('\n');
        }
        text
    }
}

/// A figure with its unit, in as many digits as fit.
fn human(column: &str, figure: f64) -> String {
    let bytes = match column {
        _ if column.contains('%') => return format!(" {:>7}", format!("{figure:.1}%")),
        _ if column.ends_with("MB/s") => figure * 1024.0,
        _ if column.ends_with("areq-sz") => figure,
        _ => return format!(" {figure:>8.2}"),
    };
    match bytes {
        b if b >= 1024.0 * 1024.0 => format!(" {:>8}", format!("{:.1}G", b / 1024.0 / 1024.0)),
        b if b >= 1024.0 => format!(" {:>8}", format!("{:.1}M", b / 1024.0)),
        b => format!(" {:>8}", format!("{b:.1}k")),
    }
}
