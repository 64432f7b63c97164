//! `trimbench sim`: runs in virtual time, comparisons, sweeps and their shards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::gate::{beside, soak};
use crate::common::run::{Done, run, trimbench};

/// Settings that make a run short.
const SMALL: [&str; 4] = ["--set", "size=256M", "--set", "recovery=200ms"];

fn sim(arguments: &[&str]) -> Done {
    let mut command = trimbench();
    command.arg("sim").args(arguments);
    run(command)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&text(path)).unwrap()
}

#[test]
fn a_run_writes_a_record_that_report_shows_and_its_figures() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let (record, figures) = (dir.path().join("r.jsonl"), dir.path().join("f.json"));
    let own = dir.path().join("own.toml");
    fs::write(
        &own,
        "[[policy]]\nname = \"mine\"\nkind = \"ext4-online\"\npiece = \"1M\"\n",
    )
    .unwrap();
    let mut arguments = vec!["run", "--profile", "870-evo", "--workload", "drop-file"];
    arguments.extend(SMALL);
    let policy = format!("{}:mine", own.display());
    arguments.extend(["--policy", &policy]);
    arguments.extend([
        "--output",
        record.to_str().unwrap(),
        "--json",
        figures.to_str().unwrap(),
    ]);
    let done = sim(&arguments);
    let shown = done.succeeds().stdout.clone();
    assert!(
        shown.contains("virtual time, no drive was touched"),
        "{shown}"
    );
    let figures = &json(&figures)["runs"][0]["figures"];
    // 256 MiB in pieces of 1 MiB; the tables of two groups cut two of them.
    let commands = figures["commands"].as_u64().unwrap();
    assert!((256..262).contains(&commands), "{figures}");
    let mut command = trimbench();
    command.args(["report", "--format", "json"]).arg(&record);
    let verdict: Value = serde_json::from_str(&run(command).succeeds().stdout).unwrap();
    assert_eq!(
        verdict["discard"]["bytes"].as_u64(),
        Some(256 << 20),
        "{verdict}"
    );

    // The record again, as another policy would have done it.
    let like = sim(&[
        "run",
        "--like",
        record.to_str().unwrap(),
        "--policy",
        "btrfs-sync",
        "--json",
        "-",
    ]);
    let like: Value = serde_json::from_str(&like.succeeds().stdout).unwrap();
    let run = &like["runs"][0];
    assert_eq!(run["settings"]["readers"], "8", "{like}");
    let discarded = run["figures"]["discarded_bytes"].as_u64().unwrap() as f64;
    assert!(
        (discarded / f64::from(256 << 20) - 1.0).abs() < 0.02,
        "{like}"
    );
}

#[test]
fn a_run_that_ends_at_its_limit_prints_so_and_the_barrier_that_report_prints() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let record = dir.path().join("r.jsonl");
    let path = record.to_str().unwrap();
    let mut arguments = vec!["run", "--profile", "vertex-2", "--policy", "ext4-online"];
    arguments.extend(["--set", "size=16G", "--set", "volume=64G"]);
    arguments.extend(["--set", "limit=3s", "--output", path]);
    let shown = sim(&arguments).succeeds().stdout.clone();
    assert!(shown.contains("not within 3.0 s"), "{shown}");
    assert!(shown.contains("give a larger `limit`"), "{shown}");
    let line = |text: &str, label: &str| {
        let mut lines = text.lines().map(str::trim);
        lines
            .find(|line| line.starts_with(label))
            .map(str::to_owned)
    };
    assert_eq!(
        line(&shown, "freed, MB/s")
            .unwrap()
            .split_whitespace()
            .last(),
        Some("–")
    );
    let mut command = trimbench();
    command.arg("report").arg(&record);
    let report = run(command).succeeds().stdout.clone();
    let barrier = line(&report, "barrier");
    assert!(barrier.is_some(), "{report}");
    assert_eq!(line(&shown, "barrier"), barrier);
}

/// The first actor's rate before the deletion.
fn reads_per_s(record: &Path) -> f64 {
    let mut command = trimbench();
    command.args(["report", "--format", "json"]).arg(record);
    let verdict: Value = serde_json::from_str(&run(command).succeeds().stdout).unwrap();
    verdict["foreground"][0]["baseline"]["ops_per_s"]
        .as_f64()
        .unwrap()
}

#[test]
fn a_run_like_a_record_reads_as_fast_as_its_readers_did() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let (record, again) = (dir.path().join("r.jsonl"), dir.path().join("again.jsonl"));
    let mut arguments = vec!["run", "--profile", "870-evo", "--workload", "drop-file"];
    arguments.extend(SMALL);
    // The drive could serve three times as many: the readers' own work limits them.
    arguments.extend(["--set", "per-io=50us", "--output", record.to_str().unwrap()]);
    sim(&arguments).succeeds();
    let path = record.to_str().unwrap();
    sim(&["run", "--like", path, "--output", again.to_str().unwrap()]).succeeds();
    let (was, is) = (reads_per_s(&record), reads_per_s(&again));
    assert!(
        (is / was - 1.0).abs() < 0.03,
        "{is} reads/s, {was} in the record"
    );
}

#[test]
fn compare_runs_every_policy_and_those_of_a_file_the_same_each_time() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let own = dir.path().join("own.toml");
    fs::write(
        &own,
        "[[policy]]\nname = \"mine\"\nkind = \"queued\"\nranges = 256\n",
    )
    .unwrap();
    let policies = format!("all,{}", own.display());
    let compare = || {
        let file = dir.path().join("c.json");
        let mut arguments = vec![
            "compare",
            "--profile",
            "vertex-2",
            "--workload",
            "drop-many",
        ];
        arguments.extend([
            "--set",
            "size=16M",
            "--set",
            "files=10",
            "--set",
            "limit=10s",
        ]);
        arguments.extend(["--set", "every=2s", "--set", "delay=1s"]);
        arguments.extend(["--policy", &policies, "--json", file.to_str().unwrap()]);
        let shown = sim(&arguments).succeeds().stdout.clone();
        (shown, json(&file))
    };
    let (shown, figures) = compare();
    for policy in [
        "none",
        "per-block",
        "queued",
        "btrfs-async",
        "adaptive",
        "guard",
        "mine",
    ] {
        assert!(shown.contains(policy), "{policy} in {shown}");
    }
    assert!(shown.contains("Pareto front"), "{shown}");
    assert_eq!(figures["runs"].as_array().unwrap().len(), 13);
    assert_eq!(compare(), (shown, figures));
    let two = sim(&[
        "compare",
        "--policy",
        "none,ext4-online",
        "--set",
        "size=64M",
        "--set",
        "readers=1",
        "--json",
        "-",
    ]);
    let two: Value = serde_json::from_str(&two.succeeds().stdout).unwrap();
    assert_eq!(two["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn list_names_what_can_be_given() {
    let _turn = beside();
    let shown = sim(&["list"]).succeeds().stdout.clone();
    for name in [
        "ext4-online",
        "iops-limit",
        "log-purge",
        "per-discard",
        "intel-x25-e",
        "crucial-t500-2tb-raid0",
    ] {
        assert!(shown.contains(name), "{name} in {shown}");
    }
}

const GRID: &str = "profile = [\"ideal\", \"ocz-vertex-2\"]\npolicy = [\"coalesce\", \"queued\"]\n\
    ranges = [1, 64]\nsize = \"16M\"\nreaders = 1\nbaseline = \"100ms\"\nrecovery = \"100ms\"\nseed = [1, 2]\n";

/// The table of a sweep: a file of Parquet with a footer, and these texts in it.
fn is_table(file: &[u8], texts: &[&str]) {
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    let end = file.len() - 8;
    let length = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
    let (pages, footer) = file[..end].split_at(end - length);
    let has = |part: &[u8], text: &str| part.windows(text.len()).any(|at| at == text.as_bytes());
    for column in [
        "cell",
        "profile",
        "set_size",
        "set_ranges",
        "lost_s",
        "ranges",
        "is_full",
    ] {
        assert!(has(footer, column), "{column}");
    }
    for text in texts {
        assert!(has(pages, text), "{text}");
    }
}

/// A grid of twelve runs.
struct OnGrid {
    dir: TempDir,
}

impl OnGrid {
    fn new() -> OnGrid {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("grid.toml"), GRID).unwrap();
        OnGrid { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn sweep(&self, output: &str) -> Command {
        let mut command = trimbench();
        command.args(["sim", "sweep"]).arg(self.path("grid.toml"));
        command.arg("--output").arg(self.path(output));
        command
            .env_remove("SLURM_ARRAY_TASK_ID")
            .env_remove("JOB_COMPLETION_INDEX");
        command
    }

    fn merge(&self, shards: &[&str], output: &str) -> Done {
        let mut command = trimbench();
        command.args(["sim", "merge"]);
        command.args(shards.iter().map(|name| self.path(name)));
        command.arg("--output").arg(self.path(output));
        run(command)
    }
}

#[test]
fn shards_of_a_sweep_merge_to_the_bytes_of_one_run() {
    let _turn = beside();
    let grid = OnGrid::new();
    run(grid.sweep("whole")).succeeds();
    grid.merge(&["whole"], "whole.parquet").succeeds();
    let whole = text(&grid.path("whole"));
    assert_eq!(whole.lines().count(), 12);
    let table = fs::read(grid.path("whole.parquet")).unwrap();
    is_table(&table, &["ocz-vertex-2", "coalesce", "queued", "16M"]);
    let mut dry = grid.sweep("s");
    let said = run({
        dry.args(["--shard", "2/3", "--dry-run"]);
        dry
    });
    let said = said.succeeds().stdout.clone();
    assert!(said.contains("12 runs, of which shard 2/3 has 4"), "{said}");
    assert!(said.contains("s.2-of-3"), "{said}");
    assert!(!grid.path("s.2-of-3").exists());

    let mut first = grid.sweep("s");
    first.args(["--shard", "1/3"]);
    run(first).succeeds();
    let mut slurm = grid.sweep("s");
    slurm
        .env("SLURM_ARRAY_TASK_ID", "11")
        .env("SLURM_ARRAY_TASK_MIN", "10");
    slurm.env("SLURM_ARRAY_TASK_COUNT", "3");
    run(slurm).succeeds();
    let mut pod = grid.sweep("s");
    pod.env("JOB_COMPLETION_INDEX", "2").args(["--shard", "3"]);
    run(pod).succeeds();
    let shards = ["s.3-of-3", "s.1-of-3", "s.2-of-3"];
    grid.merge(&shards, "merged").succeeds();
    grid.merge(&shards, "merged.parquet").succeeds();
    assert_eq!(text(&grid.path("merged")), whole);
    assert_eq!(fs::read(grid.path("merged.parquet")).unwrap(), table);

    let twice = grid.merge(&["s.1-of-3", "s.2-of-3", "s.2-of-3"], "x");
    assert_eq!(twice.code(), Some(2));
    assert!(
        twice.stderr.contains("a shard was given twice"),
        "{}",
        twice.stderr
    );
    let few = grid.merge(&["s.1-of-3", "s.2-of-3"], "x");
    assert!(
        few.stderr.contains("is missing: run its shard to the end"),
        "{}",
        few.stderr
    );
    // A table would destroy a shard; of no line there is no table.
    let shard = text(&grid.path("s.1-of-3"));
    fs::write(grid.path("s.parquet"), &shard).unwrap();
    let own = grid.merge(&["s.parquet", "s.2-of-3", "s.3-of-3"], "s.parquet");
    assert_eq!(own.code(), Some(2));
    assert!(own.stderr.contains("give another one"), "{}", own.stderr);
    assert_eq!(text(&grid.path("s.parquet")), shard);
    fs::write(grid.path("empty"), "").unwrap();
    let nothing = grid.merge(&["empty"], "x.parquet");
    assert_eq!(nothing.code(), Some(2));
    assert!(
        nothing.stderr.contains("no file has a line"),
        "{}",
        nothing.stderr
    );
    assert!(!grid.path("x").exists() && !grid.path("x.parquet").exists());
}

#[test]
fn a_sweep_that_was_killed_goes_on_where_it_was() {
    let _turn = beside();
    let grid = OnGrid::new();
    run(grid.sweep("whole")).succeeds();
    let whole = text(&grid.path("whole"));
    let kills = if soak() { 40 } else { 3 };
    for kill in 0..kills {
        // What a kill leaves: whole lines, and a part of one.
        let cut = whole.len() * (kill + 1) / (kills + 1);
        fs::write(grid.path("cut"), &whole[..cut]).unwrap();
        run(grid.sweep("cut")).succeeds();
        assert_eq!(text(&grid.path("cut")), whole);
    }
    // Of another grid nothing is overwritten.
    fs::write(grid.path("grid.toml"), GRID.replace("16M", "32M")).unwrap();
    let other = run(grid.sweep("whole"));
    assert_eq!(other.code(), Some(2));
    assert!(other.stderr.contains("of another grid"), "{}", other.stderr);
    assert_eq!(text(&grid.path("whole")), whole);
}

#[test]
fn a_mistake_is_reported_with_its_place_and_the_nearest_name() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let grid = dir.path().join("grid.toml");
    let refused = |arguments: &[&str], said: &str| {
        let done = sim(arguments);
        assert_eq!(done.code(), Some(2), "{}", done.stderr);
        assert!(done.stderr.contains(said), "{said} in {}", done.stderr);
    };
    for (text, said) in [
        (
            "profile = \"ideal\"\nsise = \"1G\"\n",
            "line 2, column 1: unknown key 'sise'; did you mean 'size'?",
        ),
        (
            "profile = \"ideal\"\nsize = [\"1G\", \"5\"]\n",
            "line 2, column 15: 'size': '5': give a multiple of 4k",
        ),
        (
            "profile = \"idael\"\n",
            "line 1, column 11: 'profile': there is no profile 'idael'; did you mean 'ideal'?",
        ),
        (
            "profile = \"ideal\"\npolicy = [\"qeued\"]\n",
            "line 2, column 11: 'policy': there is no policy 'qeued'",
        ),
        (
            "policy = \"none\"\n",
            "there is no 'profile': add it (the drives, for example profile = ",
        ),
        ("profile =\n", "line 1, column"),
    ] {
        fs::write(&grid, text).unwrap();
        let grid = grid.to_str().unwrap();
        let out = dir.path().join("out");
        refused(&["sweep", grid, "--output", out.to_str().unwrap()], said);
        assert!(!out.exists());
    }
    fs::write(&grid, "[[policy]]\nkind = \"queued\"\nrnages = 3\n").unwrap();
    let file = grid.to_str().unwrap();
    refused(
        &["run", "--policy", file],
        "line 3, column 1: unknown key 'rnages'; did you mean 'ranges'?",
    );
    refused(&["run", "--policy", "qeued"], "did you mean 'queued'?");
    refused(
        &["run", "--workload", "drop-fiel"],
        "did you mean 'drop-file'?",
    );
    refused(&["run", "--set", "sise=1G"], "did you mean 'size'?");
    refused(&["compare", "--set", "pices=1M"], "did you mean");
    refused(
        &["run", "--set", "volume=1G", "--set", "size=2G"],
        "give a larger `volume`",
    );
}
