//! Figures that answer an alert: last trims and findings; and dashboards that ask for them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::gate::{lacks_rare, note_skip};

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::{run, trimbench};
use crate::fstrim::trimmed;
use crate::guard_place::{ended, place};
use crate::watch::promtool;

/// `inspect --all --metrics -`, with states in a directory of the test's own.
fn figures(states: &Path) -> String {
    let mut command = trimbench();
    command.env("STATE_DIRECTORY", states);
    command.args(["inspect", "--all", "--metrics", "-"]);
    run(command).succeeds().stdout.clone()
}

/// Asserts that the older format, as in a file, is one that Prometheus takes.
fn is_taken(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    if Command::new("promtool").arg("--version").output().is_ok() {
        promtool(&["check", "metrics"], Some(&text));
    }
    text
}

#[test]
fn the_last_trim_of_a_mount_is_known_to_inspect_and_watch() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let states = tempfile::tempdir().unwrap();
    let made = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let at = made.path().to_str().unwrap();
    let labels = format!("{{mount=\"{at}\",by=\"fstrim\"}}");
    assert!(!figures(states.path()).contains(&labels));
    // A part is not the file system.
    let part = ["--slowdown", "100%", "--length", "32M", at];
    trimmed(states.path(), &part).succeeds();
    assert!(!figures(states.path()).contains(&labels));
    let whole = ["--slowdown", "100%", "--json", "-", at];
    let done = trimmed(states.path(), &whole);
    let done: Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    let bytes = &done["file_systems"][0]["trim"]["trimmed_bytes"];
    let line = format!("\ntrimbench_last_trim_bytes{labels} {bytes}\n");
    let found = figures(states.path());
    assert!(found.contains(&line), "{line}{found}");
    for figure in ["last_trim_timestamp_seconds", "last_trim_duration_seconds"] {
        assert!(found.contains(&format!("{figure}{labels} ")), "{found}");
    }
    // Goals that were missed count until one is met.
    assert!(!found.contains("in_a_row{"), "{found}");
    for (deadline, code, missed) in [("1ms", 3, 1), ("1ms", 3, 2), ("1h", 0, 0)] {
        let done = trimmed(states.path(), &["--deadline", deadline, at]);
        assert_eq!(done.code(), Some(code), "{}", done.text());
        let line = format!("\ntrimbench_trim_goals_missed_in_a_row{labels} {missed}\n");
        let found = figures(states.path());
        assert!(found.contains(&line), "{line}{found}");
    }
    let line = format!("trimbench_trim_goals_missed_in_a_row{labels} 0\n");
    let file = states.path().join("figures.prom");
    let mut command = trimbench();
    command.env("STATE_DIRECTORY", states.path());
    command.args(["watch", "--quiet", "--for", "2s", "--interval", "200ms"]);
    run({
        command.arg("--prometheus").arg(&file);
        command
    })
    .succeeds();
    let found = is_taken(&file);
    assert!(found.contains(&line), "{line}{found}");
}

#[test]
fn the_last_trim_of_a_guard_is_known_while_it_runs() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    let line = format!(
        "last_trim_timestamp_seconds{{mount=\"{}\",by=\"guard\"}} ",
        fs.path().display()
    );
    let mut running = fs.trims(&[]);
    running.until("its first trims", || figures(&fs.states()).contains(&line));
    let file = fs.path().join("lost+found/guard.prom");
    let words = ["status", "--metrics", file.to_str().unwrap(), "."];
    fs.guarded(&words).succeeds();
    assert!(is_taken(&file).contains("trimbench_guard_trimmed_bytes_total{"));
    ended(running);
    assert!(!figures(&fs.states()).contains(&line));
}

#[test]
fn a_finding_is_a_figure_until_it_is_mended() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let made = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let device = made.device().name();
    let limit = made.device().queue("discard_max_bytes");
    let file = made.path().join("findings.prom");
    let found = || {
        let mut command = trimbench();
        command.args(["inspect", "--all", "--metrics"]).arg(&file);
        let done = run(command);
        assert_eq!(done.succeeds().stdout, "");
        is_taken(&file)
    };
    let line = format!(
        "\ntrimbench_finding{{id=\"max-lowered\",severity=\"note\",mount=\"{}\",device=\"{device}\"}} 1\n",
        made.path().display()
    );
    assert!(!found().contains(&line));
    // Not to 0, which loop devices keep for good (Linux 6.18).
    fs::write(&limit, "1048576").unwrap();
    let text = found();
    assert!(text.contains(&line), "{line}{text}");
    // The most of all loop devices, in whole granules.
    fs::write(&limit, (u64::from(u32::MAX) / 4096 * 4096).to_string()).unwrap();
    assert!(!found().contains(&line));
    let mut command = trimbench();
    command.args(["inspect", "--metrics", "-", "--sysroot", "/"]);
    run(command).fails_with(2, &["--sysroot"]);
}

/// The dashboards, by their names.
fn dashboards() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana");
    let files = fs::read_dir(folder).unwrap().map(|file| {
        let path = file.unwrap().path();
        let value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        (path.to_str().unwrap().to_owned(), value)
    });
    files.collect()
}

#[test]
fn prometheus_understands_each_query_of_the_dashboards() {
    if lacks(&[Need::Tool("promtool")]) {
        return;
    }
    let _turn = beside();
    let mut rules = Vec::new();
    for (_, board) in dashboards() {
        let panels = board["panels"].as_array().unwrap();
        let targets = panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array().unwrap());
        for target in targets {
            let expr = target["expr"].as_str().unwrap();
            let expr = expr.replace("$__rate_interval", "5m");
            // JSON is YAML.
            let name = format!("query:{}", rules.len());
            rules.push(serde_json::json!({ "record": name, "expr": expr }));
        }
    }
    assert!(rules.len() > 20, "{}", rules.len());
    let group = serde_json::json!({ "groups": [{ "name": "dashboards", "rules": rules }] });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yml");
    fs::write(&file, group.to_string()).unwrap();
    promtool(&["check", "rules", file.to_str().unwrap()], None);
}

/// Reads dashboards by the types that Grafana makes of its schema, and prints what doesn't fit.
const SCHEMA: &str = r#"package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func main() {
	known := cog.NewRuntime()
	known.RegisterPanelcfgVariant(table.VariantConfig())
	known.RegisterPanelcfgVariant(timeseries.VariantConfig())
	known.RegisterDataqueryVariant(prometheus.VariantConfig())
	for _, name := range os.Args[1:] {
		text, err := os.ReadFile(name)
		if err == nil {
			err = new(dashboard.Dashboard).UnmarshalJSONStrict(text)
		}
		fmt.Print(err)
	}
}
"#;

/// The version of these types; they are under the Apache License.
const SDK: &str = "github.com/grafana/grafana-foundation-sdk/go@v0.0.22";

#[test]
fn the_dashboards_fit_the_schema_of_grafana() {
    for (name, board) in dashboards() {
        let panels = board["panels"].as_array().unwrap();
        assert!(panels.len() >= 8, "{name}");
        for panel in panels {
            let kind = panel["type"].as_str().unwrap();
            assert!(["table", "timeseries"].contains(&kind), "{name}: {kind}");
        }
    }
    if lacks_rare("go") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(folder.path());
        run(command)
    };
    fs::write(folder.path().join("go.mod"), "module check\n\ngo 1.21\n").unwrap();
    fs::write(folder.path().join("main.go"), SCHEMA).unwrap();
    if go(&["get", SDK]).code() != Some(0) {
        return note_skip("need the types of Grafana's schema, from Go's proxy");
    }
    let boards = dashboards();
    let names: Vec<&str> = boards.iter().map(|(name, _)| name.as_str()).collect();
    let done = go(&[&["run", "."], &names[..]].concat());
    assert_eq!(done.succeeds().stdout, "", "{}", done.text());
}
