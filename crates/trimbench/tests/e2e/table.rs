//! `trimbench table` on a made-up fleet of 1,000 hosts.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::gate::{lacks_rare, only_in_soak};
use crate::common::run::{Done, run, start, trimbench};

/// Hosts of the fleet. Each has one result in a directory of its own.
const HOSTS: u64 = 1000;

/// Model and firmware of a host's drives, by number.
fn drive(host: u64) -> (u64, u64) {
    (host % 3, host / 4 % 2)
}

/// Seconds that a host's readers lose for each TiB deleted.
fn lost_s_per_tib(host: u64) -> f64 {
    let (model, firmware) = drive(host);
    100.0 * (1 + model) as f64 * (1 + 3 * firmware) as f64
}

/// The result of a host, by its number: every fifth has two drives below its mount.
fn result(host: u64) -> Value {
    let (model, firmware) = drive(host);
    let drive = |name: &str| {
        json!({
            "name": name, "model": format!("M{model}"), "firmware": format!("F{firmware}"),
            "serial": format!("{host}-{name}"), "transport": "nvme", "size_bytes": 1u64 << 40,
            "rotational": false, "discard_max_bytes": 1u64 << 31,
        })
    };
    let names: &[&str] = match host % 5 {
        0 => &["nvme0n1", "nvme1n1"],
        _ => &["nvme0n1"],
    };
    let options: &[&str] = if model == 0 {
        &["rw"]
    } else {
        &["rw", "discard"]
    };
    let origin = json!({
        "id": format!("run-{host}"), "time": format!("2026-11-{:02}T20:00:00Z", 1 + host % 28),
        "version": "0.1.0", "arguments": ["fstrim", "/data"], "host": format!("host-{host}"),
        "machine_id": null, "kernel": if host < 500 { "6.12.0" } else { "6.18.0" },
        "targets": [{
            "path": "/data", "mount": "/data", "device": "/dev/dm-0", "stack": [], "drives": names,
            "file_system": "xfs", "options": options, "discard": "on", "size_bytes": null,
        }],
        "drives": names.iter().map(|name| drive(name)).collect::<Vec<_>>(),
    });
    let goals = json!([{"goal": "slowdown", "result": if host.is_multiple_of(5) { "missed" } else { "met" }}]);
    let freed = (host + 1) << 30;
    let stalls = host.is_multiple_of(12);
    let stall = json!({"seconds": 1 + firmware});
    let finding = |id: &str| json!({"id": id, "severity": "warning", "subject": "/data"});
    let mut result = match host % 4 {
        0 => json!({
            "schema": "trimbench.verdict/1", "verdict": if stalls { "stall" } else { "none" },
            "deletion": {"bytes": freed, "seconds": 2.0}, "discard": {"bytes": freed, "commands": 9},
            "fit": {"a_us": 100 * (1 + model), "b_us_per_mib": 1 + model},
            "foreground": [
                {"lost_s": 0.001, "stall": null},
                {
                    "lost_s": lost_s_per_tib(host) * freed as f64 / 2f64.powi(40),
                    "stall": if stalls { stall } else { Value::Null },
                },
            ],
        }),
        1 => json!({
            "schema": "trimbench.inspect/1",
            "stacks": [{
                "path": "/data", "file_system": {"mount_point": "/data"}, "open": model > 0,
                "stops_at": if model > 0 { Value::Null } else { json!("dm-0") },
                "layers": [{"name": "nvme0n1"}],
            }],
            "findings": if model > 0 {
                json!([finding("never-trimmed")])
            } else {
                json!([finding("never-trimmed"), finding("stopped")])
            },
        }),
        2 => json!({
            "schema": "trimbench.rm/1", "result": "done", "file_systems": [{
                "mount": "/data", "freed_bytes": freed, "discarded_bytes": freed / 2, "goals": goals,
            }],
        }),
        _ => json!({
            "schema": "trimbench.fstrim/1", "result": "done", "file_systems": [{
                "path": "/data", "result": "done", "trim": {
                    "freed_bytes": freed, "discarded_bytes": freed, "goals": goals, "seconds": host,
                    "readers": {"lost": {"value": host as f64 / 1000.0}},
                },
            }],
        }),
    };
    result["origin"] = origin;
    result
}

/// Writes the fleet's results, every seventh compressed, and returns how many of the files are none.
fn fleet(at: &Path) -> u64 {
    for host in 0..HOSTS {
        let directory = at.join(format!("host-{host}"));
        fs::create_dir(&directory).unwrap();
        let text = match host % 2 {
            0 => format!("{:#}\n", result(host)),
            _ => result(host).to_string(),
        };
        match host % 7 {
            0 => {
                let compressed = zstd::encode_all(text.as_bytes(), 1).unwrap();
                fs::write(directory.join("result.json.zst"), compressed).unwrap();
            }
            _ => fs::write(directory.join("result.json"), text).unwrap(),
        }
    }
    let whole = result(1).to_string();
    let compressed = zstd::encode_all(whole.as_bytes(), 1).unwrap();
    let damaged: [(&str, &[u8]); 7] = [
        ("cut.json", &whole.as_bytes()[..whole.len() / 2]),
        ("cut.zst", &compressed[..compressed.len() / 2]),
        ("twice.json", b"{}{"),
        ("empty", b""),
        ("noise", &[0xff; 100]),
        ("other.json", b"{\"schema\": \"trimbench.watch/1\"}"),
        (
            "head.jsonl",
            b"{\"line\":\"head\",\"schema\":\"trimbench.run/1\"}\n",
        ),
    ];
    for (name, text) in damaged {
        fs::write(at.join(name), text).unwrap();
    }
    // Neither is a file of the fleet: a link that leads back, and a pipe that nobody writes to.
    std::os::unix::fs::symlink(at, at.join("host-1/back")).unwrap();
    let pipe = at.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    damaged.len() as u64
}

fn table(arguments: &[&str]) -> Done {
    let mut command = trimbench();
    command.arg("table").args(arguments);
    run(command)
}

fn rows(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_table_of_a_fleet_has_every_result_and_lists_what_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("fleet");
    fs::create_dir(&at).unwrap();
    let damaged = fleet(&at);
    let done = table(&[at.to_str().unwrap()]);
    let text = done.stdout.clone();
    let skipped = format!("{damaged} of 1,007 files skipped\n");
    done.fails_with(
        2,
        &[
            &skipped,
            "cut.json: is damaged",
            "noise: is neither a result of trimbench nor a device card",
            "other.json",
            "head.jsonl",
        ],
    );
    let all = rows(&text);
    assert_eq!(
        all.len() as u64,
        HOSTS + HOSTS / 5,
        "two drives have a row each"
    );
    let first = |row: &&Value| row["drive_number"] == 1;
    let hosts: BTreeSet<&str> = all
        .iter()
        .map(|row| row["host"].as_str().unwrap())
        .collect();
    assert_eq!(hosts.len() as u64, HOSTS);
    let of = |kind: &str| {
        all.iter()
            .filter(first)
            .filter(|row| row["kind"] == kind)
            .collect::<Vec<_>>()
    };
    let sum = |rows: &[&Value], name: &str| {
        rows.iter()
            .filter_map(|row| row[name].as_f64())
            .sum::<f64>()
    };
    for kind in ["verdict", "inspect", "rm", "fstrim"] {
        assert_eq!(of(kind).len(), 250, "{kind}");
    }
    let verdicts: f64 = (0..HOSTS)
        .step_by(4)
        .map(|host| lost_s_per_tib(host) * (host + 1) as f64 / 1024.0)
        .sum();
    assert!((sum(&of("verdict"), "lost_s") - verdicts).abs() < 1e-6);
    let trims: u64 = (3..HOSTS).step_by(4).map(|host| (host + 1) << 30).sum();
    assert_eq!(sum(&of("fstrim"), "freed_bytes"), trims as f64);
    let missed = all
        .iter()
        .filter(first)
        .filter(|row| row["goal"] == "missed");
    assert_eq!(missed.count(), 100);
    let serials = all.iter().filter_map(|row| row["serial"].as_str());
    assert_eq!(serials.collect::<BTreeSet<_>>().len(), all.len());
}

/// The queries of docs/fleet.md.
fn questions() -> Vec<String> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet.md");
    let docs = fs::read_to_string(docs).unwrap();
    let parts = docs.split("```sql\n").skip(1);
    let query = |part: &str| part.split("```").next().unwrap().to_owned();
    parts.map(query).collect()
}

/// Lines of CSV that answer them on this fleet.
fn answers() -> Vec<Vec<String>> {
    let every = |kind: u64| (kind..HOSTS).step_by(4);
    let count = |hosts: &mut dyn Iterator<Item = u64>| hosts.count();
    // The models and firmwares, those that lose most first.
    let drives = [(2, 1), (1, 1), (0, 1), (2, 0), (1, 0), (0, 0)];
    let lost =
        |(model, firmware): (u64, u64)| 100.0 * (1 + model) as f64 * (1 + 3 * firmware) as f64;
    let with =
        |kind: u64, of: (u64, u64)| count(&mut every(kind).filter(|host| drive(*host) == of));
    let named = |mut hosts: Vec<u64>, line: &dyn Fn(u64) -> String| -> Vec<String> {
        hosts.sort_by_key(|host| format!("host-{host}"));
        hosts
            .into_iter()
            .map(|host| format!("host-{host},/data,{}", line(host)))
            .collect()
    };
    let kernel = |kernel: &str, hosts: std::ops::Range<u64>| {
        let runs = || hosts.clone().filter(|host| host % 4 == 0);
        let stalls: Vec<u64> = runs().filter(|host| host % 12 == 0).collect();
        let seconds: u64 = stalls.iter().map(|host| 1 + drive(*host).1).sum();
        let mean = (seconds as f64 / stalls.len() as f64 * 100.0).round() / 100.0;
        format!("{kernel},{},{},{mean:?}", runs().count(), stalls.len())
    };
    let mut old: Vec<u64> = every(3).filter(|host| host % 28 < 13).collect();
    old.sort_by_key(|host| (host % 28, format!("host-{host}")));
    let mut population: Vec<(u64, String)> = drives
        .iter()
        .map(|of| {
            let hosts: Vec<u64> = (0..HOSTS).filter(|host| drive(*host) == *of).collect();
            let two = hosts.iter().filter(|host| *host % 5 == 0).count();
            let drives = (hosts.len() + two) as u64;
            (
                drives,
                format!("M{},F{},{drives},{}", of.0, of.1, hosts.len()),
            )
        })
        .collect();
    population.sort_by_key(|(drives, line)| (u64::MAX - drives, line.clone()));
    let of_model = |model: u64, kind: u64| every(kind).filter(move |host| host % 3 == model);
    let freed = |kind: u64| every(kind).map(|host| (host + 1) as f64).sum::<f64>();
    let stalled = every(0).filter(|host| host % 12 == 0).count();
    vec![
        drives
            .iter()
            .map(|of| format!("M{},F{},{:?},{}", of.0, of.1, lost(*of), with(0, *of)))
            .collect(),
        [0, 1]
            .iter()
            .map(|f| format!("F{f},{},{:?}", with(0, (1, *f)), lost((1, *f))))
            .collect(),
        named(of_model(0, 1).collect(), &|_| "dm-0".to_owned()),
        vec![kernel("6.12.0", 0..500), kernel("6.18.0", 500..1000)],
        (0..10)
            .map(|nth| 999 - 4 * nth)
            .map(|host| {
                format!(
                    "host-{host},/data,2026-11-{:02} 20:00:00,{:?},{:?}",
                    1 + host % 28,
                    host as f64,
                    host as f64 / 1000.0
                )
            })
            .collect(),
        named(every(3).filter(|host| host % 5 == 0).collect(), &|_| {
            "1,1".to_owned()
        }),
        old.iter()
            .map(|host| format!("host-{host},/data,2026-11-{:02} 20:00:00", 1 + host % 28))
            .collect(),
        population.into_iter().map(|(_, line)| line).collect(),
        vec![
            "never-trimmed,250".to_owned(),
            format!("stopped,{}", of_model(0, 1).count()),
        ],
        (0..3)
            .map(|model| {
                format!(
                    "M{model},{:?},{:?}",
                    100.0 * (1 + model) as f64,
                    (1 + model) as f64
                )
            })
            .collect(),
        vec![
            format!("false,{},{stalled}", of_model(0, 0).count()),
            format!("true,{},0", 250 - of_model(0, 0).count()),
        ],
        vec![
            format!("fstrim,{0:?},{0:?}", freed(3)),
            format!("rm,{:?},{:?}", freed(2), freed(2) / 2.0),
        ],
    ]
}

/// A folder with the fleet's table, `fleet.jsonl`.
fn fleets_table() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("fleet");
    fs::create_dir(&at).unwrap();
    fleet(&at);
    let rows = table(&[at.to_str().unwrap()]).stdout;
    fs::write(folder.path().join("fleet.jsonl"), rows).unwrap();
    folder
}

/// DuckDB's answer to a query of docs/fleet.md.
fn asked(folder: &Path, question: &str) -> Done {
    let view = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/fleet.sql");
    let mut duckdb = Command::new("duckdb");
    duckdb
        .current_dir(folder)
        .args(["-init", view, "-csv", "-noheader", "-c", question]);
    run(duckdb)
}

/// Most columns are null in all rows, and a copy of the result counts once.
#[test]
fn the_questions_of_the_manual_need_no_other_kind_of_result() {
    if lacks_rare("duckdb") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let results = tempfile::tempdir().unwrap();
    for name in ["rm.json", "copy.json"] {
        fs::write(results.path().join(name), result(2).to_string()).unwrap();
    }
    let rows = table(&[results.path().to_str().unwrap()]);
    let rows = rows.succeeds().stdout.clone();
    assert_eq!(rows.lines().count(), 2);
    fs::write(folder.path().join("fleet.jsonl"), rows).unwrap();
    let questions = questions();
    for question in &questions {
        asked(folder.path(), question).succeeds();
    }
    let last = asked(folder.path(), &questions[11]);
    assert_eq!(last.succeeds().stdout.trim_end(), "rm,3.0,1.5");
}

#[test]
fn the_questions_of_the_manual_have_the_known_answers() {
    if lacks_rare("duckdb") {
        return;
    }
    let folder = fleets_table();
    let (questions, answers) = (questions(), answers());
    assert_eq!((questions.len(), answers.len()), (12, 12));
    for (question, answer) in questions.iter().zip(answers) {
        let done = asked(folder.path(), question);
        let lines: Vec<&str> = done.succeeds().stdout.lines().map(str::trim_end).collect();
        assert_eq!(lines, answer, "{question}");
    }
}

/// `spark-sql` on a cluster of a master and two workers prints the same rows as DuckDB.
#[test]
fn spark_answers_the_questions_as_duckdb_does() {
    if !only_in_soak() || lacks_rare("spark-sql") || lacks_rare("java") {
        return;
    }
    let folder = fleets_table();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let master = format!("spark://127.0.0.1:{port}");
    let spark = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(folder.path()).args(arguments);
        command.env("SPARK_LOCAL_IP", "127.0.0.1");
        command
    };
    let part = |name: &str, more: &[&str]| {
        let class = format!("org.apache.spark.deploy.{name}");
        let mut command = spark("spark-class", &[&class, "--webui-port", "0"]);
        command.args(more);
        start(command)
    };
    let mut first = part("master.Master", &["--host", "127.0.0.1", "--port", &port]);
    first.until_said("I have been elected leader", 1);
    let worker = |directory| {
        let size = [
            "--cores",
            "1",
            "--memory",
            "512m",
            "--work-dir",
            directory,
            &master,
        ];
        part("worker.Worker", &size)
    };
    let _workers = [worker("one"), worker("two")];
    first.until_said("Registering worker", 2);

    let questions = questions();
    let portable = |question: &&String| !question.contains("--");
    let asked: Vec<String> = questions.iter().filter(portable).cloned().collect();
    assert!(asked.len() >= 3);
    let path = folder.path().join("fleet.jsonl");
    let script = format!(
        "CREATE TEMPORARY VIEW fleet USING json OPTIONS (path '{}');\n{}",
        path.display(),
        asked.join("SELECT 'next';\n")
    );
    let session = [
        "--master",
        &master,
        "--executor-memory",
        "512m",
        "-S",
        "-e",
        &script,
    ];
    let done = run(spark("spark-sql", &session));
    let answered = done.succeeds().stdout.replace('\t', ",");
    let answered = answered.split("next\n").map(|part| part.lines().collect());
    let answered: Vec<Vec<&str>> = answered.collect();
    let both = questions.iter().zip(answers());
    let expected = both.filter(|(question, _)| portable(question));
    for (answer, (question, rows)) in answered.iter().zip(expected) {
        assert_eq!(answer, &rows, "{question}");
    }
    assert_eq!(answered.len(), asked.len());
}

#[test]
fn a_table_has_records_cards_and_results_of_earlier_versions() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (name, file) in [
        ("record", "a.jsonl"),
        ("verdict", "b.json"),
        ("card", "c.toml"),
    ] {
        let path = folder.path().join(file);
        fs::write(&path, &testkit::formats::all(name)[0]).unwrap();
        files.push(path.to_str().unwrap().to_owned());
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let done = table(&files);
    let all = rows(&done.succeeds().stdout);
    let kinds: Vec<&str> = all
        .iter()
        .map(|row| row["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["run", "verdict", "card"]);
    for row in &all[..2] {
        let of = |name: &str| row[name].as_str().unwrap().to_owned();
        assert_eq!(
            [of("host"), of("mount"), of("drive")],
            ["vm", "/srv/mnt", "vda"]
        );
        assert_eq!(row["freed_bytes"], 314572800);
    }
    assert_eq!(all[0]["id"], all[1]["id"], "one run");
    assert_eq!(
        (&all[2]["model"], &all[2]["discard_us"]),
        (&json!("crucial-t500-2tb"), &json!(976.0))
    );
}

/// A record in gzip, the same without its end, and a result in the form of a later version.
#[test]
fn a_directory_without_files_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let (full, empty) = (folder.path().join("full"), folder.path().join("empty"));
    fs::create_dir_all(empty.join("below")).unwrap();
    fs::create_dir(&full).unwrap();
    fs::write(full.join("rm.json"), result(2).to_string()).unwrap();
    let done = table(&[full.to_str().unwrap(), empty.to_str().unwrap()]);
    let noted = format!("trimbench table: {}: contains no files\n", empty.display());
    assert_eq!(done.succeeds().stderr, noted);
    assert_eq!(done.stdout.lines().count(), 1);
}

#[test]
fn a_cut_record_is_listed_and_a_newer_result_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let record = testkit::formats::all("record").remove(0);
    let fast = flate2::Compression::fast();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), fast);
    gzip.write_all(&record).unwrap();
    fs::write(at.join("a.jsonl.gz"), gzip.finish().unwrap()).unwrap();
    let lines = record.trim_ascii_end();
    let last = lines.iter().rposition(|&byte| byte == b'\n').unwrap();
    fs::write(at.join("cut.jsonl"), &lines[..last]).unwrap();
    let newer = json!({"schema": "trimbench.rm/99", "origin": {"version": "9.0.0"}});
    fs::write(at.join("newer.json"), newer.to_string()).unwrap();
    let done = table(&[at.to_str().unwrap()]);
    let all = rows(&done.stdout);
    done.fails_with(
        2,
        &[
            "cut.jsonl: has no end",
            "newer.json: trimbench 9.0.0 wrote it as trimbench.rm/99",
            "1 of 3 files skipped, 1 without an end",
        ],
    );
    let reasons = |row: &Value| row["reasons"].as_str().unwrap().contains("interrupted");
    assert_eq!(all.iter().map(reasons).collect::<Vec<_>>(), [false, true]);
}
