//! The differences between the set-ups: the heads, key by key.
//!
//! Every key of a head is looked at, so that one which is added later is
//! compared, too; those that are known have a name in words.

use std::collections::BTreeMap;

use serde_json::Value;

use super::comparison::SetUpDifference;
use crate::verdict::Verdict;
use record::{ActorInfo, Head};

/// Where a run doesn't tell.
const NOTHING: &str = "–";

/// Keys that differ between any two runs and say nothing.
///
/// The arguments name the files. Whatever else they set is in the scenario and the target.
const PASSING: [&str; 5] = [
    "/schema",
    "/started_unix_s",
    "/target/available_bytes",
    "/run/id",
    "/run/arguments",
];

/// Names of keys; `*` stands for any one part of a path.
const NAMES: [(&str, &str); 31] = [
    ("/version", "trimbench version"),
    ("/host/name", "host"),
    ("/host/kernel", "kernel"),
    ("/host/cpus", "processors"),
    ("/host/memory_bytes", "memory"),
    ("/target/path", "path"),
    ("/target/mount", "mount point"),
    ("/target/source", "mounted from"),
    ("/target/fs", "file system"),
    ("/target/options", "mount options"),
    ("/target/discard", "discards"),
    ("/target/size_bytes", "size of the file system"),
    ("/interval_ms", "interval in ms"),
    ("/actors/*/op", "operation"),
    ("/actors/*/block_bytes", "block size"),
    ("/actors/*/loop", "loop"),
    ("/actors/*/rate_per_s", "intended rate per second"),
    ("/actors/*/poisson", "random arrivals"),
    ("/actors/*/direct", "past the page cache"),
    ("/devices/*/name", "device"),
    ("/devices/*/kind", "kind"),
    ("/devices/*/model", "drive model"),
    ("/devices/*/firmware", "firmware"),
    ("/devices/*/size_bytes", "size"),
    ("/devices/*/rotational", "rotates"),
    ("/devices/*/scheduler", "I/O scheduler"),
    (GRANULARITY, "discard granularity"),
    (MAX, "largest discard (discard_max_bytes)"),
    (MAX_HW, "largest discard of the hardware"),
    ("/devices/*/discard/max_segments", "ranges per discard"),
    ("/warnings", "warnings"),
];
const GRANULARITY: &str = "/devices/*/discard/granularity_bytes";
const MAX: &str = "/devices/*/discard/max_bytes";
const MAX_HW: &str = "/devices/*/discard/max_hw_bytes";

/// Returns the differences between groups, and those within one.
pub(super) fn differences(
    heads: &[Vec<&Head>],
    verdicts: &[Vec<&Verdict>],
) -> Vec<SetUpDifference> {
    let all: Vec<&Head> = heads.iter().flatten().copied().collect();
    let runs = heads.iter().zip(verdicts).map(|(heads, verdicts)| {
        let runs = heads.iter().zip(verdicts);
        let runs = runs.map(|(head, verdict)| flat(head, verdict, &all));
        runs.collect()
    });
    let mut groups: Vec<Vec<BTreeMap<String, String>>> = runs.collect();
    forget_missing_devices(&mut groups);
    let keys = all.iter().flat_map(|head| &head.actors);
    keys.for_each(|actor| forget_missing_actor(&mut groups, &actor_key(actor, &all)));
    let mut paths: Vec<&String> = groups.iter().flatten().flat_map(BTreeMap::keys).collect();
    paths.sort();
    paths.dedup();
    let difference = |path: &String| {
        let values: Vec<Vec<String>> = groups.iter().map(|runs| values(runs, path)).collect();
        let one = values[0].len() == 1 && values.iter().all(|v| *v == values[0]);
        (!one).then(|| SetUpDifference {
            name: name(path, &groups),
            path: path.clone(),
            values,
        })
    };
    let mut found: Vec<SetUpDifference> = paths.into_iter().filter_map(difference).collect();
    let order = |path: &str| {
        let known = NAMES.iter().position(|(pattern, _)| matches(pattern, path));
        known.unwrap_or(NAMES.len())
    };
    found.sort_by(|a, b| (order(&a.path), &a.path).cmp(&(order(&b.path), &b.path)));
    found
}

/// Returns the values that a group's runs have, each once, in their order.
fn values(runs: &[BTreeMap<String, String>], path: &str) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for run in runs {
        let value = run.get(path).cloned().unwrap_or_else(|| NOTHING.to_owned());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// Of a device that some run doesn't have at all, that it is there says it all.
fn forget_missing_devices(groups: &mut [Vec<BTreeMap<String, String>>]) {
    let has = |run: &BTreeMap<String, String>, i: usize| run.contains_key(&device(i));
    let most = (0..).find(|&i| !groups.iter().flatten().any(|run| has(run, i)));
    for i in 0..most.unwrap_or(0) {
        if groups.iter().flatten().all(|run| has(run, i)) {
            continue;
        }
        let below = format!("/devices/{i}/");
        for run in groups.iter_mut().flatten() {
            run.retain(|path, _| !path.starts_with(&below) || *path == device(i));
        }
    }
}

/// The same of an actor.
fn forget_missing_actor(groups: &mut [Vec<BTreeMap<String, String>>], key: &str) {
    let (below, op) = (format!("/actors/{key}/"), format!("/actors/{key}/op"));
    if !groups.iter().flatten().all(|run| run.contains_key(&op)) {
        for run in groups.iter_mut().flatten() {
            run.retain(|path, _| !path.starts_with(&below) || *path == op);
        }
    }
}

fn device(i: usize) -> String {
    format!("/devices/{i}/name")
}

/// Returns the key of an actor. It is the actor's name. Where runs name the actor differently, it
/// is the operation, if no other actor of a run has the same one.
fn actor_key(actor: &ActorInfo, all: &[&Head]) -> String {
    let named = |head: &&Head| head.actors.iter().any(|a| a.name == actor.name);
    let only = |head: &&Head| head.actors.iter().filter(|a| a.op == actor.op).count() == 1;
    match !all.iter().all(named) && all.iter().all(only) {
        true => actor.op.clone(),
        false => actor.name.clone(),
    }
}

fn flat(head: &Head, verdict: &Verdict, all: &[&Head]) -> BTreeMap<String, String> {
    let mut into = BTreeMap::new();
    let mut value = serde_json::to_value(head).unwrap_or(Value::Null);
    // Actors go by their names; devices by their places in the tree, for the same
    // drive may be called otherwise after a boot.
    if let Some(actors) = value.get_mut("actors") {
        let named = head.actors.iter().map(|a| actor_key(a, all));
        let each = actors.as_array_mut().map(std::mem::take);
        let each = each.unwrap_or_default();
        *actors = Value::Object(named.zip(each).collect());
    }
    walk(&value, String::new(), &mut into);
    let mut warnings = verdict.warnings.clone();
    warnings.sort();
    // Each is a sentence or more, and they are shown in one cell.
    let warnings = warnings.join(" · ");
    if !warnings.is_empty() {
        into.insert("/warnings".to_owned(), warnings);
    }
    for path in PASSING {
        into.remove(path);
    }
    if into
        .remove("/scenario/file/chosen")
        .is_some_and(|chosen| chosen == "yes")
    {
        into.remove("/scenario/file/size_bytes");
    }
    into.retain(|path, value| {
        let own = path.starts_with("/actors/") && path.ends_with("/name");
        // An imported log doesn't tell sizes and limits.
        let unknown = value == "0" && !path.contains("max_bytes") && path.ends_with("_bytes");
        let follows = path.contains("/below") || path.ends_with("/leaf");
        !own && !unknown && !follows
    });
    let devices = (0..).zip(&head.devices);
    for (i, _) in devices.filter(|(_, device)| device.size_bytes == 0) {
        let limits = format!("/devices/{i}/discard/");
        into.retain(|path, _| !path.starts_with(&limits));
    }
    into
}

fn walk(value: &Value, path: String, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                walk(value, format!("{path}/{key}"), into);
            }
        }
        // A list of words is one thing: mount options.
        Value::Array(list) if list.iter().all(Value::is_string) => {
            let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            into.insert(path, words.join(", "));
        }
        Value::Array(list) => {
            for (i, value) in list.iter().enumerate() {
                walk(value, format!("{path}/{i}"), into);
            }
        }
        Value::Null => {}
        Value::String(text) => {
            into.insert(path, text.clone());
        }
        Value::Number(number) => {
            let bytes = path.ends_with("_bytes").then(|| number.as_u64()).flatten();
            let text = bytes.map_or_else(|| number.to_string(), record::units::bytes_exact);
            into.insert(path, text);
        }
        Value::Bool(yes) => {
            into.insert(path, if *yes { "yes" } else { "no" }.to_owned());
        }
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(p), Some(part)) if p == "*" || p == part => {}
            _ => return false,
        }
    }
}

/// Returns the name of a key in words.
fn name(path: &str, groups: &[Vec<BTreeMap<String, String>>]) -> String {
    let known = NAMES.iter().find(|(pattern, _)| matches(pattern, path));
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let words = |parts: &[&str]| parts.join(" ").replace('_', " ");
    match (parts.as_slice(), known) {
        (["scenario", rest @ ..], _) if !rest.is_empty() => format!("scenario: {}", rest.join(".")),
        (["actors", actor, rest @ ..], known) if !rest.is_empty() => {
            let what = known.map_or_else(|| words(rest), |(_, name)| (*name).to_owned());
            format!("{actor}: {what}")
        }
        (["devices", i, "name"], _) => {
            let i: usize = i.parse().unwrap_or(0);
            format!("device {}", i + 1)
        }
        (["devices", i, rest @ ..], known) if !rest.is_empty() => {
            let what = known.map_or_else(|| words(rest), |(_, name)| (*name).to_owned());
            let path = format!("/devices/{i}/name");
            let device = groups.iter().flatten().find_map(|run| run.get(&path));
            format!("{}: {what}", device.map_or("device", String::as_str))
        }
        (_, Some((_, name))) => (*name).to_owned(),
        (parts, None) => words(parts),
    }
}
