//! Results of many machines as flat rows, for engines that speak SQL.
//!
//! A result has a row for each drive below each of its file systems or raw devices. [`COLUMNS`] is
//! what all rows have; docs/fleet.md shows the same list.

use std::borrow::Cow;
use std::io::{self, Write};

use record::form::refusal;
use record::units::names::shown;
use serde_json::{Value, json};

/// A column of the table.
#[derive(Debug)]
pub struct Column {
    /// Its name. Its end is the unit of figures.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// The places of the value, of which the first that has one counts: a part of the result, then
    /// a JSON pointer.
    places: &'static [&'static str],
}

/// Columns from a table with a row for each: its name, its places and its meaning.
macro_rules! columns {
    ($($name:literal [$($place:literal)*] $about:literal;)+) => {
        &[$(Column { name: $name, about: $about, places: &[$($place),*] }),+]
    };
}

/// Every column, in the order in which rows have them. Older verdicts have no origin.
pub const COLUMNS: &[Column] = columns! {
    "file" ["row/file"] "the file";
    "kind" ["row/kind"] "`run` (a record, judged anew), `verdict`, `inspect`, `rm`, `fstrim`, `verify`, `why`, `tune`, `guard`, `suite`, `card`";
    "id" ["origin/id"] "the run of trimbench; a record and its verdict have the same";
    "time" ["origin/time"] "when it began, RFC 3339 (UTC)";
    "version" ["origin/version" "result/version"] "of trimbench";
    "command" ["origin/arguments"] "the command line, without the program's name";
    "host" ["origin/host" "result/target/host"] "the host's name, or its label";
    "machine_id" ["origin/machine_id"] "the machine's id, hashed";
    "kernel" ["origin/kernel" "result/target/kernel" "result/kernel"] "its release";
    "mount" ["target/mount" "part/mount"] "the mount point; null on a raw device";
    "device" ["target/device"] "the mounted or raw device";
    "file_system" ["target/file_system"] "its type";
    "options" ["target/options"] "mount options, with commas";
    "discard" ["target/discard"] "whether deleting sends discards: `on`, `async`, `off`, `unsupported`, `unknown`";
    "target_bytes" ["target/size_bytes"] "size of the file system or device";
    "drive_number" ["row/drive_number"] "this row's drive among those below the mount, from 1. The figures are those of the mount, so `WHERE drive_number = 1` counts each once";
    "drive_count" ["row/drive_count"] "drives below the mount; 0: none is known";
    "drive" ["drive/name"] "the kernel's name";
    "model" ["drive/model"] "of a card without origin its name";
    "firmware" ["drive/firmware"] "version";
    "serial" ["drive/serial"] "serial number";
    "transport" ["drive/transport"] "`nvme`, `ata`, `scsi`, `usb`, `virtio` and others";
    "drive_bytes" ["drive/size_bytes"] "size of the drive";
    "rotational" ["drive/rotational"] "whether Linux reports a hard disk";
    "result" ["part/result" "result/verdict" "result/outcome" "result/result"] "how it ended, or the verdict: `stall`, `slowdown`, `none`, `inconclusive`";
    "reasons" ["result/reasons"] "verdicts: why nothing, or no more, can be concluded, with commas";
    "goal" ["row/goal"] "`rm` and `fstrim`: the worst of the goals: `missed`, `unsure`, `not-measured`, `nobody-else`, `met`";
    "seconds" ["figures/seconds" "result/deletion/seconds" "result/seconds"] "how long the deletion or trim took; `why`, `verify`: how long it was watched";
    "freed_bytes" ["figures/freed_bytes" "result/deletion/bytes"] "deleted, or trimmed";
    "discarded_bytes" ["figures/discarded_bytes" "result/discard/bytes"] "discarded; `rm`, `fstrim`: by their own discards, where they can be distinguished";
    "discards" ["figures/discards" "result/discard/commands"] "discard commands of all programs meanwhile";
    "lost_s" ["figures/lost_s"] "verdicts: time that the worst actor lost to discards";
    "lost_share" ["figures/readers/lost/value"] "`rm`, `fstrim`: share of their throughput that readers lost";
    "stall_s" ["figures/stall/seconds"] "verdicts: stalled time of the worst actor";
    "longest_stall_s" ["figures/stall/longest_s"] "its longest stall";
    "baseline_per_s" ["figures/baseline/ops_per_s" "figures/readers/baseline_per_s"] "operations each second without discards";
    "beside_per_s" ["figures/discarding/ops_per_s" "figures/readers/during_per_s"] "the same beside discards";
    "baseline_p99_us" ["figures/baseline/p99_us"] "99th percentile of the latency without discards";
    "beside_p99_us" ["figures/discarding/p99_us"] "the same beside discards";
    "longest_wait_s" ["figures/canary/max_added_s"] "`rm`, `fstrim`: the longest wait of a small read, on top of the usual";
    "discard_us" ["result/fit/a_us"] "verdicts, cards: time of a discard, whatever its size";
    "discard_us_per_mib" ["result/fit/b_us_per_mib"] "time for each MiB of it";
    "phi" ["result/fit/phi"] "share of its time in which other I/O waits";
    "trim_arrives" ["part/open"] "`inspect`: whether discards get to a drive that takes them";
    "stops_at" ["part/stops_at"] "`inspect`: the layer that stops them";
    "severity" ["row/severity"] "`inspect`: the gravest finding about the mount or what is below: `note`, `warning`, `critical`; null: none";
    "findings" ["row/findings"] "`inspect`: the findings about it, with commas ([list](inspect.md#findings))";
};

/// The forms of results that this build reads.
const FORMS: [&str; 9] = [
    "trimbench.verdict/1",
    "trimbench.inspect/1",
    "trimbench.rm/1",
    "trimbench.fstrim/1",
    "trimbench.verify/1",
    "trimbench.why/1",
    "trimbench.tune/1",
    "trimbench.guard/2",
    "trimbench.suite/1",
];

/// The outcomes of goals, the worst first.
const GOALS: [&str; 5] = ["missed", "unsure", "not-measured", "nobody-else", "met"];
/// Severities, the gravest first.
const SEVERITIES: [&str; 3] = ["critical", "warning", "note"];

/// The value in a place where there is none.
static NOTHING: Value = Value::Null;

/// A result of trimbench with its kind.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    kind: &'a str,
    result: &'a Value,
}

impl<'a> Found<'a> {
    /// A result that is known to be of this kind.
    pub fn new(kind: &'a str, result: &'a Value) -> Found<'a> {
        Found { kind, result }
    }

    /// A result by its schema.
    ///
    /// # Errors
    /// Why it is none that a table takes, in words that follow the file's name.
    pub fn of(result: &'a Value) -> Result<Found<'a>, String> {
        let schema = result["schema"].as_str().unwrap_or_default();
        let form = schema.strip_prefix("trimbench.");
        if let Some((kind, _)) = form.and_then(|form| form.split_once('/'))
            && FORMS.contains(&schema)
        {
            return Ok(Found::new(kind, result));
        }
        let text = result.to_string();
        let refused = FORMS.iter().find_map(|form| refusal(text.as_bytes(), form));
        Err(refused.unwrap_or_else(|| "is no result of trimbench that a table takes".to_owned()))
    }

    /// Writes its rows, each a line of JSON. Returns how many there are.
    ///
    /// # Errors
    /// That of the writer.
    pub fn write(&self, file: &str, to: &mut dyn Write) -> io::Result<u64> {
        let result = self.result;
        let mut origin = first(result, &["/origin", "/head/origin"]);
        if origin.is_null() {
            origin = &result["run"];
        }
        let targets = match &origin["targets"] {
            Value::Array(all) => &all[..],
            _ if result["target"].is_object() => std::slice::from_ref(&result["target"]),
            _ => &[],
        };
        let mut written = 0;
        for (part, target) in self.parts(targets) {
            let mut drives = drives(origin, target);
            // Its origin has all drives of the machine.
            drives.retain(|drive| self.kind != "why" || is_active(result, &drive["name"]));
            for number in 0..drives.len().max(1) {
                let drive = drives.get(number).copied().unwrap_or(&NOTHING);
                let row = self.row(file, part, target, (number + 1, drives.len()));
                // A trim's figures are apart; a verdict's are those of the worst actor.
                let figures = match part.get("trim") {
                    Some(trim) => trim,
                    None if result["foreground"].is_array() => worst(&result["foreground"]),
                    None => part,
                };
                let places = [
                    ("row", &row),
                    ("result", result),
                    ("origin", origin),
                    ("part", part),
                    ("figures", figures),
                    ("target", target),
                    ("drive", drive),
                ];
                write_row(&places, to)?;
                written += 1;
            }
        }
        Ok(written)
    }

    /// The parts of the result, each with its target.
    fn parts(&self, targets: &'a [Value]) -> Vec<(&'a Value, &'a Value)> {
        let mut parts = ["file_systems", "stacks"].iter();
        let parts = parts.find_map(|name| self.result[name].as_array());
        let of = |part: &Value| {
            let mount = first(part, &["/file_system/mount_point", "/mount"]);
            let is = |target: &&Value| match mount.is_null() {
                true => target["path"] == part["path"],
                false => target["mount"] == *mount,
            };
            targets.iter().find(is).unwrap_or(&NOTHING)
        };
        match parts {
            Some(parts) if !parts.is_empty() => parts.iter().map(|part| (part, of(part))).collect(),
            _ if targets.is_empty() => vec![(&NOTHING, &NOTHING)],
            _ => targets.iter().map(|target| (&NOTHING, target)).collect(),
        }
    }

    /// The values that no place of the result has.
    fn row(
        &self,
        file: &str,
        part: &Value,
        target: &Value,
        (number, count): (usize, usize),
    ) -> Value {
        let trim = part.get("trim").unwrap_or(part);
        let goals = strings(&trim["goals"], "result");
        let worst = |order: &'static [&str], of: &[&str]| {
            let mut order = order.iter();
            order.find(|one| of.contains(one)).copied()
        };
        let mut row = json!({
            "file": file, "kind": self.kind, "drive_number": number, "drive_count": count,
            "goal": worst(&GOALS, &goals),
        });
        if let Some(findings) = self.result["findings"].as_array() {
            let below = strings(&part["layers"], "name");
            let is_here = |finding: &&Value| {
                let subject = finding["subject"].as_str().unwrap_or_default();
                target["mount"] == subject || target["path"] == subject || below.contains(&subject)
            };
            let here: Vec<&Value> = findings.iter().filter(is_here).collect();
            let text = |key: &str| -> Vec<&str> {
                here.iter()
                    .filter_map(|finding| finding[key].as_str())
                    .collect()
            };
            row["severity"] = json!(worst(&SEVERITIES, &text("severity")));
            row["findings"] = json!(text("id").join(","));
        }
        row
    }
}

/// The drives of a target. Older verdicts have them there.
fn drives<'a>(origin: &'a Value, target: &'a Value) -> Vec<&'a Value> {
    let all = list(&origin["drives"]);
    match &target["drives"] {
        Value::Array(named) => named
            .iter()
            .filter_map(|drive| match drive {
                Value::String(_) => all.iter().find(|one| one["name"] == *drive),
                drive => Some(drive),
            })
            .collect(),
        // A place that the origin doesn't list.
        _ if origin["targets"][0].is_object() => Vec::new(),
        _ => all.iter().collect(),
    }
}

/// Whether a report of `why` has discards of a drive, or waits for it.
fn is_active(report: &Value, drive: &Value) -> bool {
    let discarded =
        |device: &Value| device["device"] == *drive && device["discards"].as_u64() > Some(0);
    let mut victims = list(&report["victims"]).iter();
    list(&report["devices"]).iter().any(discarded)
        || victims.any(|victim| {
            let mut waits = list(&victim["waits"]).iter();
            waits.any(|wait| list(&wait["devices"]).contains(drive))
        })
}

/// The values of a list, if it is one.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The actor that lost most, but the canary.
fn worst(actors: &Value) -> &Value {
    let lost = |actor: &Value| actor["lost_s"].as_f64().unwrap_or(-1.0);
    list(actors)
        .iter()
        .filter(|actor| actor["actor"] != "canary")
        .max_by(|a, b| lost(a).total_cmp(&lost(b)))
        .unwrap_or(&NOTHING)
}

/// The strings that a list's objects have under a key.
fn strings<'a>(objects: &'a Value, key: &str) -> Vec<&'a str> {
    let all = list(objects).iter();
    all.filter_map(|one| one[key].as_str()).collect()
}

/// The first of these that is there.
fn first<'a>(value: &'a Value, pointers: &[&str]) -> &'a Value {
    let mut found = pointers.iter().filter_map(|pointer| value.pointer(pointer));
    found.find(|value| !value.is_null()).unwrap_or(&NOTHING)
}

fn write_row(places: &[(&str, &Value)], to: &mut dyn Write) -> io::Result<()> {
    for (index, column) in COLUMNS.iter().enumerate() {
        let value = column.places.iter().find_map(|place| {
            let (part, _) = place.split_once('/')?;
            let (_, value) = places.iter().find(|(name, _)| *name == part)?;
            let found = value.pointer(&place[part.len()..])?;
            (!found.is_null()).then_some(found)
        });
        let separator = if index == 0 { '{' } else { ',' };
        write!(to, "{separator}\"{}\":", column.name)?;
        serde_json::to_writer(&mut *to, &*flat(value.unwrap_or(&NOTHING), column))?;
    }
    to.write_all(b"}\n")
}

/// A list as one text.
fn flat<'a>(value: &'a Value, column: &Column) -> Cow<'a, Value> {
    let Value::Array(all) = value else {
        return Cow::Borrowed(value);
    };
    let texts = all.iter().filter_map(Value::as_str);
    let text = match column.name {
        "command" => texts.map(shown).collect::<Vec<_>>().join(" "),
        _ => texts.collect::<Vec<_>>().join(","),
    };
    Cow::Owned(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::T500;

    fn rows(kind: Option<&str>, result: &Value) -> Vec<Value> {
        let found = match kind {
            Some(kind) => Found::new(kind, result),
            None => Found::of(result).unwrap(),
        };
        let mut text = Vec::new();
        let count = found.write("a.json", &mut text).unwrap();
        let rows: Vec<Value> = text
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(rows.len() as u64, count);
        for row in &rows {
            assert_eq!(row.as_object().unwrap().len(), COLUMNS.len());
            assert!(
                row.as_object()
                    .unwrap()
                    .values()
                    .all(|one| !one.is_array() && !one.is_object())
            );
        }
        rows
    }

    #[test]
    fn each_drive_of_a_mount_has_a_row() {
        let result = json!({
            "schema": "trimbench.rm/1", "result": "done",
            "origin": {
                "id": "1", "host": "a", "arguments": ["rm", "big file"],
                "targets": [
                    {"path": "/a", "mount": "/", "options": ["rw", "discard"], "drives": ["sda", "sdb"]},
                    {"path": "/b", "mount": "/b", "drives": []},
                ],
                "drives": [
                    {"name": "sda", "model": "M"}, {"name": "sdb", "model": "N"}, {"name": "sdc"},
                ],
            },
            "file_systems": [
                {"mount": "/", "freed_bytes": 5, "goals": [{"result": "met"}, {"result": "missed"}]},
                {"mount": "/b", "freed_bytes": 7, "goals": []},
                {"mount": "/c", "freed_bytes": 9, "goals": []},
            ],
        });
        let rows = rows(None, &result);
        let shown = |row: &Value| {
            let of = |name: &str| row[name].clone();
            json!([
                of("mount"),
                of("drive_number"),
                of("drive_count"),
                of("model"),
                of("freed_bytes"),
                of("goal")
            ])
        };
        let shown: Vec<Value> = rows.iter().map(shown).collect();
        let expected = [
            json!(["/", 1, 2, "M", 5, "missed"]),
            json!(["/", 2, 2, "N", 5, "missed"]),
            json!(["/b", 1, 0, null, 7, null]),
            json!(["/c", 1, 0, null, 9, null]),
        ];
        assert_eq!(shown, expected);
        assert_eq!(rows[0]["options"], "rw,discard");
        assert_eq!(rows[0]["command"], "rm 'big file'");
    }

    #[test]
    fn a_verdict_and_an_older_one() {
        let verdict = serde_json::to_value(T500.verdict()).unwrap();
        let new = &rows(None, &verdict)[0];
        assert_eq!(
            (&new["kind"], &new["result"]),
            (&json!("verdict"), &json!("stall"))
        );
        assert!(new["lost_s"].as_f64() > Some(0.0), "{new}");
        for text in testkit::formats::all("verdict") {
            let old = rows(None, &serde_json::from_slice(&text).unwrap());
            assert!(
                old[0]["host"].is_string() && old[0]["drive"].is_string(),
                "{old:?}"
            );
            assert!(old[0]["time"].is_string() && old[0]["file_system"] == "ext4");
        }
    }

    #[test]
    fn another_version_of_a_form_is_no_row() {
        for (schema, words) in [
            (
                "trimbench.rm/99",
                "trimbench 9.0.0 wrote it as trimbench.rm/99",
            ),
            ("trimbench.guard/1", "reads trimbench.guard/2"),
            ("trimbench.watch/1", "no result of trimbench"),
            ("other", "no result of trimbench"),
        ] {
            let result = json!({"schema": schema, "origin": {"version": "9.0.0"}});
            let why = Found::of(&result).unwrap_err();
            assert!(why.contains(words), "{schema}: {why}");
        }
    }

    #[test]
    fn a_newer_form_by_this_version_advises_no_later_version() {
        let result =
            json!({"schema": "trimbench.rm/99", "origin": {"version": record::form::VERSION}});
        let why = Found::of(&result).unwrap_err();
        assert!(why.contains("rm/99") && !why.contains("or later"), "{why}");
    }

    #[test]
    fn findings_are_those_of_the_mount_and_what_is_below() {
        let finding = |id: &str, severity: &str, subject: &str| json!({"id": id, "severity": severity, "subject": subject});
        let result = json!({
            "schema": "trimbench.inspect/1",
            "origin": {"targets": [{"path": "/", "mount": "/", "drives": []}], "drives": []},
            "stacks": [{
                "path": "/home", "file_system": {"mount_point": "/"}, "open": false,
                "stops_at": "dm-0", "layers": [{"name": "dm-0"}, {"name": "sda"}],
            }],
            "findings": [
                finding("a", "warning", "dm-0"), finding("b", "note", "/"),
                finding("c", "critical", "/other"),
            ],
        });
        let row = &rows(None, &result)[0];
        assert_eq!(
            (&row["severity"], &row["findings"]),
            (&json!("warning"), &json!("a,b"))
        );
        assert_eq!(
            (&row["trim_arrives"], &row["stops_at"]),
            (&json!(false), &json!("dm-0"))
        );
    }

    #[test]
    fn a_report_of_why_has_the_drives_with_discards_or_waits() {
        let device = |name: &str, discards: u64| json!({"device": name, "discards": discards});
        let result = json!({
            "schema": "trimbench.why/1",
            "origin": {"targets": [], "drives": [
                {"name": "loop0"}, {"name": "sda"}, {"name": "sdb"}, {"name": "zram0"},
            ]},
            "devices": [device("loop0", 0), device("sda", 3), device("sdb", 0), device("zram0", 0)],
            "victims": [{"waits": [{"devices": ["sdb"]}, {"devices": []}]}],
        });
        let drives = |result: &Value| -> Vec<Value> {
            let rows = rows(None, result);
            rows.iter().map(|row| row["drive"].clone()).collect()
        };
        assert_eq!(drives(&result), ["sda", "sdb"]);
        let mut quiet = result;
        (quiet["devices"], quiet["victims"]) = (json!([]), json!([]));
        assert_eq!(drives(&quiet), [Value::Null]);
    }

    /// DuckDB would guess JSON for a column that is null in the first rows.
    #[test]
    fn the_view_of_duckdb_types_the_columns() {
        let units = ["_s", "_us", "_mib", "_share"];
        let kind = |name: &str| match name {
            "time" => "TIMESTAMP",
            "rotational" | "trim_arrives" => "BOOLEAN",
            "drive_number" | "drive_count" | "discards" => "BIGINT",
            "seconds" | "phi" => "DOUBLE",
            _ if name.ends_with("_bytes") => "BIGINT",
            _ if units.iter().any(|unit| name.ends_with(unit)) => "DOUBLE",
            _ => "VARCHAR",
        };
        let columns: Vec<String> = COLUMNS
            .iter()
            .map(|column| format!("    {}: '{}'", column.name, kind(column.name)))
            .collect();
        let view = format!(
            "-- duckdb -init fleet.sql: the view `fleet` of the file fleet.jsonl, which trimbench table wrote.\n\
             -- Of copies of a result, which differ in the file alone, it has one.\n\
             -- Without these types, DuckDB fails at a column that is null in the first rows.\n\
             CREATE VIEW fleet AS SELECT DISTINCT ON (COLUMNS(* EXCLUDE file)) * FROM read_json('fleet.jsonl', format = 'newline_delimited', columns = {{\n\
             {}\n}});\n",
            columns.join(",\n")
        );
        let file = include_str!("../../../deploy/fleet.sql");
        assert!(file == view, "put this into deploy/fleet.sql:\n{view}");
    }

    #[test]
    fn the_documentation_lists_the_columns() {
        let list: String = COLUMNS
            .iter()
            .map(|column| format!("| `{}` | {} |\n", column.name, column.about))
            .collect();
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        assert!(docs.contains(&list), "put this into docs/fleet.md:\n{list}");
    }
}
