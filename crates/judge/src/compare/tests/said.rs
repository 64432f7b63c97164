//! Sentences, notes, what differs in the set-up, and conditions.

use std::sync::LazyLock;

use serde_json::Value;

use super::make::{MADE, Made, compared, figure};
use crate::compare::condition::{ChangeCondition, Outcome};
use crate::compare::{COMPARE_JSON_SCHEMA, Comparison, Figure};
use record::RunRecord;
use testkit::schema::closed;

static STRICT: LazyLock<jsonschema::Validator> = LazyLock::new(|| closed(COMPARE_JSON_SCHEMA));

/// Panics if a comparison doesn't conform, or doesn't come back as it was.
fn conforms(comparison: &Comparison) {
    let json = serde_json::to_value(comparison).unwrap();
    let errors: Vec<String> = STRICT
        .iter_errors(&json)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let back: Comparison = serde_json::from_value(json).unwrap();
    assert_eq!(&back, comparison);
}

fn slower() -> Made {
    Made {
        stall_s: 5.0,
        kernel: "6.13.0",
        ..MADE
    }
}

fn one_each() -> Comparison {
    compared(&[
        ("old", &[MADE.record()]),
        ("new", &[slower().seed(6).record()]),
    ])
}

#[test]
fn the_schema_is_one_and_can_fail() {
    let schema: Value = serde_json::from_str(COMPARE_JSON_SCHEMA).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    assert!(!STRICT.is_valid(&serde_json::json!({"schema": "trimbench.compare/1"})));
    let mut json = serde_json::to_value(one_each()).unwrap();
    assert!(STRICT.is_valid(&json));
    json["figures"][0]
        .as_object_mut()
        .unwrap()
        .remove("changes");
    assert!(!STRICT.is_valid(&json));
}

#[test]
fn comparisons_conform_to_their_schema() {
    conforms(&one_each());
    let runs: Vec<RunRecord> = (1..5).map(|seed| MADE.seed(seed).record()).collect();
    conforms(&compared(&[
        ("a", &runs[..2]),
        ("b", &runs[2..]),
        ("c", &[]),
    ]));
    let mut nothing = RunRecord::new(runs[0].head.clone()).unwrap();
    nothing.phases = runs[0].phases[..1].to_vec();
    conforms(&compared(&[("a", &[nothing]), ("b", &runs[..1])]));
    conforms(&compared(&[]));
}

#[test]
fn the_sentence_says_what_became_of_it() {
    let comparison = one_each();
    let sentence = &comparison.summaries[0];
    assert!(
        sentence.starts_with("new against old (reader): lost time 3.8 s → 4."),
        "{sentence}"
    );
    assert!(sentence.contains("stall 4.0 s → 5.0 s (+2"), "{sentence}");
    assert!(sentence.contains("TRIM rate"), "{sentence}");
    let notes = comparison.notes.join(" ");
    assert!(
        notes.contains("One run each") && notes.contains("one in twenty"),
        "{notes}"
    );
}

#[test]
fn a_lower_bound_that_tells_the_direction_is_one_in_the_sentence_too() {
    // Three intervals of discards leave no rate but a bound.
    let bound = |per_s: u64| {
        let mut record = MADE.record();
        let device = &mut record.intervals.devices[0];
        let all = 0..device.discards.len();
        let with = all.filter(|i| device.discards[*i] > 0).collect::<Vec<_>>();
        for (n, i) in with.into_iter().enumerate() {
            let is_kept = n < 3;
            device.discard_bytes[i] = if is_kept { per_s / 10 } else { 0 };
            device.discards[i] = if is_kept { 100 } else { 0 };
        }
        record
    };
    let rated = MADE.record();
    let of = |reference: &RunRecord, other: &RunRecord| {
        let (a, b) = (reference.clone(), other.clone());
        let comparison = compared(&[("old", &[a]), ("new", &[b])]);
        conforms(&comparison);
        comparison
    };
    let result = |comparison: &Comparison, condition: &str| {
        condition.parse::<ChangeCondition>().unwrap().of(comparison)
    };
    let more = of(&rated, &bound(40_000_000_000));
    let sentence = &more.summaries[0];
    assert!(
        sentence.contains("→ ≥ ") && sentence.contains("(≥ "),
        "{sentence}"
    );
    let change = &figure(&more, Figure::TrimRate).changes[0];
    assert!(change.absolute_low > Some(0.0) && change.absolute_high.is_none());
    assert!(matches!(
        result(&more, "trim > +10%"),
        Outcome::Holds { .. }
    ));
    assert!(matches!(
        result(&more, "trim > +9000%"),
        Outcome::Unknown { .. }
    ));
    assert!(matches!(
        result(&more, "trim < +9000%"),
        Outcome::Unknown { .. }
    ));
    assert_eq!(result(&more, "trim < -10%"), Outcome::Fails);
    let less = of(&bound(40_000_000_000), &rated);
    let sentence = &less.summaries[0];
    assert!(
        sentence.contains("TRIM rate ≥ ") && sentence.contains("(≤ −"),
        "{sentence}"
    );
    let none = of(&rated, &bound(4_000_000_000));
    let sentence = &none.summaries[0];
    assert!(sentence.contains("→ ≥ ") && sentence.contains("(can't tell: a lower bound)"));
}

#[test]
fn two_records_of_one_run_are_noticed() {
    let of = |id: &str, seed: u64| {
        let mut record = MADE.seed(seed).record();
        record.head.run = Some(record::Invocation {
            id: id.to_owned(),
            ..record::Invocation::default()
        });
        record
    };
    let noticed = |a: RunRecord, b: RunRecord| {
        let comparison = compared(&[("old", &[a]), ("new", &[b])]);
        comparison.notes[0].contains("records of the same run")
    };
    assert!(noticed(of("a", 1), of("a", 1)));
    assert!(!noticed(of("a", 1), of("b", 1)), "begun at once elsewhere");
    assert!(!noticed(of("a", 1), MADE.seed(2).record()));
    // An older record has no id.
    assert!(noticed(MADE.record(), MADE.record()));
    assert!(!noticed(MADE.record(), MADE.seed(2).record()));
}

#[test]
fn what_differs_in_the_set_up_is_named() {
    let mut other = slower().seed(2).record();
    other.head.devices[0].name = "sdb".into();
    other.head.devices[0].model = Some("Drive 2".into());
    other.head.target.options.pop();
    other.head.scenario["timing"]["baseline_s"] = 30.into();
    other.head.actors[0].engine = "sync".into();
    other.head.scenario["file"] = serde_json::json!({"size_bytes": 700 << 20, "chosen": true});
    let card = &mut other.head.devices[0].card;
    card.insert("discard.phi".into(), "0".into());
    let same = slower().seed(3).record();
    let comparison = compared(&[("old", &[MADE.record()]), ("new", &[other, same])]);
    let told: Vec<(&str, String)> = comparison
        .set_up
        .iter()
        .map(|d| (d.name.as_str(), format!("{:?}", d.values)))
        .collect();
    let expected = [
        ("kernel", r#"[["6.12.1"], ["6.13.0"]]"#),
        (
            "mount options",
            r#"[["rw, discard"], ["rw", "rw, discard"]]"#,
        ),
        ("device 1", r#"[["sda"], ["sdb", "sda"]]"#),
        (
            "sda: drive model",
            r#"[["Drive 1"], ["Drive 2", "Drive 1"]]"#,
        ),
        ("reader: engine", r#"[["null"], ["sync", "null"]]"#),
        ("sda: card discard.phi", r#"[["–"], ["0", "–"]]"#),
        ("scenario: timing.baseline_s", r#"[["20"], ["30", "20"]]"#),
    ];
    let told: Vec<(&str, &str)> = told.iter().map(|(n, v)| (*n, v.as_str())).collect();
    assert_eq!(told, expected);
}

fn outcome(comparison: &Comparison, text: &str) -> &'static str {
    let condition: ChangeCondition = text.parse().unwrap();
    match condition.of(comparison) {
        Outcome::Holds { .. } => "holds",
        Outcome::Fails => "fails",
        Outcome::Unknown { .. } => "unknown",
    }
}

#[test]
fn conditions_hold_of_differences_and_are_unknown_where_noise_reaches() {
    let worse = one_each();
    for (text, expected) in [
        ("lost > +10%", "holds"),
        ("lost > +500ms", "holds"),
        ("lost > +50%", "fails"),
        ("stall > +10%", "holds"),
        ("lost < -1%", "fails"),
        // Noise of some per cent: it may be as much.
        ("baseline < -0.01%", "unknown"),
        ("baseline < -10%", "fails"),
        ("bytes > +10%", "holds"),
        // Nobody knows how a single worst latency scatters.
        ("max > +100%", "unknown"),
        ("recovery.p999 > +10%", "unknown"),
    ] {
        assert_eq!(outcome(&worse, text), expected, "{text}");
    }
    let none = Made {
        stall_s: 0.0,
        ..MADE
    };
    let from_nothing = compared(&[("a", &[none.record()]), ("b", &[MADE.seed(2).record()])]);
    // From nothing to something is more than any share.
    assert_eq!(outcome(&from_nothing, "lost > +1000%"), "holds");
    assert_eq!(outcome(&from_nothing, "lost > +1h"), "fails");
}

#[test]
fn a_stall_in_both_repeats_of_one_group_alone_is_a_difference() {
    let group = |stall_s: f64, left: f64| {
        let made = |seed| {
            let made = Made {
                stall_s,
                left,
                ..MADE
            };
            made.seed(seed).record()
        };
        [made(1), made(2)]
    };
    // A stall of four intervals, and none where discards last longer.
    let (stalled, not) = (group(0.4, 0.0), group(3.0, 0.99));
    let worse = compared(&[("through", &not), ("block", &stalled)]);
    let better = compared(&[("block", &stalled), ("through", &not)]);
    for (name, lower) in [("lost", "lost < -50%"), ("stall", "stall < -50%")] {
        let figure = figure(&worse, Figure::named(name).unwrap());
        assert_eq!(
            outcome(&worse, &format!("{name} > +10%")),
            "holds",
            "{figure:?}"
        );
        assert_eq!(outcome(&better, lower), "holds", "{figure:?}");
    }
}

/// A run whose baseline had no steady second: whether it stalled is unknown.
fn without_baseline(seed: u64) -> RunRecord {
    let mut record = MADE.seed(seed).record();
    record.phases.remove(0);
    for actor in &mut record.intervals.actors {
        actor.running[..220].fill(false);
        actor.running[240..].fill(false);
    }
    record
}

#[test]
fn an_inconclusive_run_is_no_run_without_a_stall() {
    let runs: Vec<RunRecord> = (1..4).map(|seed| MADE.seed(seed).record()).collect();
    let open = without_baseline(9);
    let mixed = [runs[0].clone(), open.clone(), runs[1].clone()];
    let comparison = compared(&[("a", &mixed), ("b", &runs[1..])]);
    conforms(&comparison);
    for figure in &comparison.figures {
        let side = &figure.sides[0];
        assert!(side.runs.len() == 3 && side.runs[1].is_none(), "{figure:?}");
    }
    let stall = figure(&comparison, Figure::Stall);
    let value = stall.sides[0].value.unwrap();
    assert!((value - 4.0).abs() < 0.1, "{value}");
    let name = &comparison.groups[0].runs[1].name;
    let note = format!("Inconclusive, so left out of all figures: {name}.");
    assert!(comparison.notes.contains(&note), "{:?}", comparison.notes);
    let lacks = |note: &String| note.contains("lack figures");
    assert!(
        !comparison.notes.iter().any(lacks),
        "{:?}",
        comparison.notes
    );
    // It doesn't count as a repeat.
    let comparison = compared(&[("a", &[open.clone(), runs[0].clone()]), ("b", &runs)]);
    let single = "a: a single run";
    assert!(comparison.notes.iter().any(|note| note.starts_with(single)));
}

#[test]
fn without_a_conclusive_run_no_condition_on_a_stall_has_a_result() {
    let open = [without_baseline(8), without_baseline(9)];
    let runs: Vec<RunRecord> = (1..3).map(|seed| MADE.seed(seed).record()).collect();
    let comparison = compared(&[("a", &open), ("b", &runs)]);
    for condition in ["stall > +10%", "lost > +1ms"] {
        let condition: ChangeCondition = condition.parse().unwrap();
        let outcome = condition.of(&comparison);
        assert_eq!(outcome, Outcome::Unknown { open: None }, "{condition}");
    }
    let notes = comparison.notes.join(" ");
    assert!(notes.contains("without figures of a stall"), "{notes}");
}

#[test]
fn the_arguments_of_runs_are_no_difference_of_their_set_ups() {
    let run = |seed: u64| {
        let mut record = MADE.seed(seed).record();
        let name = format!("--output=run-{seed}.jsonl");
        record.head.run = Some(record::Invocation {
            id: format!("{seed:032x}"),
            arguments: vec!["run".into(), name],
            fail_on: Vec::new(),
        });
        record
    };
    let set_up = compared(&[("a", &[run(3), run(4)]), ("b", &[run(5)])]).set_up;
    let of_run = |path: &str| path.starts_with("/run/");
    assert!(!set_up.iter().any(|one| of_run(&one.path)), "{set_up:?}");
}
