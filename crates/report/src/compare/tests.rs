//! Comparisons as text: what they say, and that names stay names.

use judge::JudgeOptions;
use judge::compare::condition::{ChangeCondition, Outcome};
use judge::compare::{Change, Comparison, Figure, Group, Run, compare};
use record::RunRecord;
use record::{DeletionLine, Event, EventKind, Part, PhaseName};

use super::{json, markdown, terminal, words};
use crate::common::{self, READER};
use crate::terminal::Style;
use crate::words::Tone;

fn record(of: &common::Run) -> RunRecord {
    let mut record = of.record();
    let delete = record.phases.iter().find(|p| p.name == PhaseName::Delete);
    record.deletions.push(DeletionLine {
        part: Part::Main,
        at_s: delete.unwrap().at_s,
        seconds: 0.21,
        bytes: of.bytes,
        files: 1,
        ..DeletionLine::default()
    });
    record
}

fn groups<'a>(named: &[(&str, &[&'a RunRecord])]) -> Vec<Group<'a>> {
    let group = |(name, records): &(&str, &[&'a RunRecord])| Group {
        name: (*name).to_owned(),
        runs: records
            .iter()
            .enumerate()
            .map(|(i, record)| Run {
                name: format!("{name}-{i}.jsonl"),
                record,
                options: JudgeOptions::default(),
            })
            .collect(),
    };
    named.iter().map(group).collect()
}

fn style(width: u16) -> Style {
    Style {
        colour: false,
        width,
        unicode: true,
    }
}

fn slower() -> RunRecord {
    let mut record = record(&common::Run {
        stall_s: 20.0,
        ..READER
    });
    record.head.host.kernel = "6.13.0".into();
    record
}

#[test]
fn a_comparison_is_told_as_text() {
    let (a, b) = (record(&READER), slower());
    let groups = groups(&[("old", &[&a]), ("new", &[&b])]);
    let comparison = compare(&groups);
    let text = terminal(&comparison, &style(100));
    for said in [
        "old – the reference",
        "STALL Deleting 1.0 TiB stalled reads for 16.9 s",
        "  lost time               16.2 s        19.2 s  +18.",
        "kernel  6.12.9 → 6.13.0",
        "note  One run each",
    ] {
        assert!(text.contains(said), "{said:?} missing in:\n{text}");
    }
    let at = |said: &str| text.find(said).unwrap();
    let first = at("  lost time  ");
    assert!(
        first < at("What differs in the set-up") && first < at("note  One run each"),
        "{text}"
    );
    for width in [40, 60, 80, 200] {
        let text = terminal(&comparison, &style(width));
        assert!(
            text.lines().all(|l| l.chars().count() <= width.into()),
            "{text}"
        );
        assert!(text.contains("+18."), "{text}");
    }
    let text = markdown(&comparison);
    assert!(
        text.starts_with("**new against old (reader): lost time 16.2 s → 19.2 s (+18"),
        "{text}"
    );
    assert!(
        text.contains("| lost time | 16.2 s | 19.2 s | **+18."),
        "{text}"
    );
    assert!(text.contains("| kernel | 6.12.9 | 6.13.0 |"), "{text}");
    let back: Comparison = serde_json::from_str(&json(&comparison).unwrap()).unwrap();
    assert_eq!(back, comparison);
}

#[test]
fn warnings_have_a_line_each_and_what_is_the_same_has_one() {
    let warned = |warnings: &[&str]| {
        let mut record = slower();
        record.events.extend(warnings.iter().map(|text| Event {
            at_s: 0.0,
            kind: EventKind::Warning,
            detail: Some((*text).to_owned()),
        }));
        record
    };
    let (a, b) = (
        warned(&["the clock jumped"]),
        warned(&["fio ended", "the clock jumped"]),
    );
    let comparison = compare(&groups(&[("old", &[&a]), ("new", &[&b])]));
    let text = terminal(&comparison, &style(100));
    for said in [
        "warning  all runs: the clock jumped\n",
        "warning  new-0.jsonl: fio ended\n",
        "\n  same              rate before ",
        "\n  same              TRIM rate ",
    ] {
        assert!(text.contains(said), "{said:?} missing in:\n{text}");
    }
    assert!(!text.contains("\n  rate before"), "{text}");
    assert!(!text.contains(" · "), "{text}");
    let text = markdown(&comparison);
    assert!(text.contains("\nSame: rate before "), "{text}");
    assert!(text.contains("> ⚠️ all runs: the clock jumped\n"), "{text}");
    assert!(!text.contains("| rate before |"), "{text}");
}

#[test]
fn warnings_that_differ_in_figures_alone_are_one_line_with_the_number_of_runs() {
    let drifted = |percent: &str, also: &str| {
        let mut record = slower();
        let texts = [format!("reader drifted by {percent} %."), also.to_owned()];
        record.events.extend(texts.map(|text| Event {
            at_s: 0.0,
            kind: EventKind::Warning,
            detail: Some(text),
        }));
        record
    };
    // A run's own two are about two things.
    let (a, b) = (
        drifted("13", "reader drifted by 4 %."),
        drifted("32", "it froze"),
    );
    let comparison = compare(&groups(&[("old", &[&a, &b, &b]), ("new", &[&a])]));
    assert_eq!(
        words::warnings(&comparison),
        [
            "all runs: reader drifted by 13 %. (These figures are those of old-0.jsonl.)",
            "old-0.jsonl, new-0.jsonl: reader drifted by 4 %.",
            "all runs: The record has no end: its run was killed.",
            "old-1.jsonl, old-2.jsonl: it froze",
        ]
    );
    let comparison = compare(&groups(&[("old", &[&b, &b, &b]), ("new", &[&slower()])]));
    let all = words::warnings(&comparison);
    assert_eq!(all[0], "old-0.jsonl and 2 more: reader drifted by 32 %.");
}

#[test]
fn a_shorter_and_deeper_stall_is_not_called_worse() {
    let deep = |left, stall_s| {
        record(&common::Run {
            left,
            stall_s,
            ..READER
        })
    };
    let (a, b) = (deep(0.4, 16.9), deep(0.001, 8.0));
    let groups = groups(&[("a", &[&a]), ("b", &[&b])]);
    let comparison = compare(&groups);
    let row = |figure| {
        comparison
            .figures
            .iter()
            .find(|f| f.figure == figure)
            .unwrap()
    };
    let tone = |figure| words::tone(row(figure), &row(figure).changes[0]);
    assert_eq!(tone(Figure::Stall), Tone::Good);
    assert!(!matches!(tone(Figure::Depth), Tone::Bad | Tone::Warn));
    let depth = words::change(row(Figure::Depth), &row(Figure::Depth).changes[0]);
    assert!(depth.contains(" points"), "{depth}");
}

#[test]
fn an_actor_that_a_single_group_has_is_named_and_has_no_table() {
    let mut b = slower();
    (b.head.actors[0].name, b.head.actors[0].op) = ("pages".into(), "write".into());
    let comparison = compare(&groups(&[("old", &[&slower()]), ("new", &[&b])]));
    let text = terminal(&comparison, &style(100));
    let note = "Not compared, because a single group has them: reader (old), pages (new).";
    assert!(text.contains(note), "{text}");
    assert!(
        !text.contains("reader (read)") && !text.contains("not measured"),
        "{text}"
    );
    assert!(text.contains("\ndiscards and deletion\n"), "{text}");
    assert!(
        comparison.summaries[0].starts_with("new against old: TRIM rate"),
        "{text}"
    );
}

/// The row of a figure in words: its sides, and how it changed.
fn row(comparison: &Comparison, label: &str) -> Option<(Vec<String>, String)> {
    let tables = words::tables(comparison);
    let mut rows = tables.iter().flat_map(|table| &table.rows);
    let row = rows.find(|row| row.figure.label() == label)?;
    Some((row.shown(), words::change(row, &row.changes[0])))
}

#[test]
fn a_run_without_a_stall_has_nothing_left_in_it() {
    let (stalled, quiet) = (
        record(&READER),
        record(&common::Run {
            left: 1.0,
            ..READER
        }),
    );
    let of = |a, b| {
        row(
            &compare(&groups(&[("a", &[a]), ("b", &[b])])),
            "left in stall",
        )
    };
    let (sides, change) = of(&stalled, &quiet).unwrap();
    assert_eq!(
        (sides[1].as_str(), change.as_str()),
        ("–", "not both stalled")
    );
    assert_ne!(sides[0], "–");
    assert_eq!(of(&quiet, &quiet), None);
    let (_, change) = of(&stalled, &stalled).unwrap();
    assert!(change.starts_with("same"), "{change}");
}

#[test]
fn a_large_change_is_a_factor_and_one_from_next_to_nothing_is_absolute() {
    let deleted_in = |seconds: f64| {
        let mut record = record(&READER);
        record.deletions[0].seconds = seconds;
        record
    };
    let change = |before: f64, after: f64| {
        let (a, b) = (deleted_in(before), deleted_in(after));
        let comparison = compare(&groups(&[("a", &[&a]), ("b", &[&b])]));
        row(&comparison, "deletion calls").unwrap().1
    };
    assert_eq!(change(2.0, 3.0), "can't tell: once (+50.0 %)");
    assert_eq!(change(2.0, 15.0), "can't tell: once (7.5 times)");
    assert_eq!(change(15.0, 2.0), "can't tell: once (−86.7 %)");
    assert_eq!(change(5e-5, 172.0), "can't tell: once (+172 s)");
    // Its interval has the same unit.
    let (a, b) = (
        record(&common::Run {
            stall_s: 2.0,
            ..READER
        }),
        slower(),
    );
    let comparison = compare(&groups(&[("a", &[&a]), ("b", &[&b])]));
    let (_, stall) = row(&comparison, "stall").unwrap();
    assert!(
        stall.contains(" times (") && !stall.contains('%'),
        "{stall}"
    );
    assert!(
        comparison.summaries[0].contains(" times)"),
        "{comparison:?}"
    );
}

#[test]
fn a_condition_without_a_result_has_the_change_and_its_need() {
    let (a, b) = (record(&READER), slower());
    let result = |condition: &str, repeats: usize| {
        let (old, new) = (vec![&a; repeats], vec![&b; repeats]);
        let comparison = compare(&groups(&[("old", &old), ("new", &new)]));
        let condition: ChangeCondition = condition.parse().unwrap();
        let change = comparison.figures[0].changes[0].clone();
        let change = Change {
            relative: Some(0.881),
            relative_low: Some(-0.402),
            relative_high: Some(4.92),
            why: None,
            ..change
        };
        let open = Some((Some("reader".to_owned()), change));
        words::outcome(&comparison, &condition, &Outcome::Unknown { open })
    };
    let change = "is unknown: p99 of reader, new: +88.1 % (−40.2 to +492 %); it needs";
    assert_eq!(result("p99 > +5%", 3), format!("{change} more repeats"));
    let few = format!("{change} three to five repeats of each run");
    assert_eq!(result("p99 > +5%", 1), few);
}

#[test]
fn hostile_names_stay_names() {
    let name = "r</script><script>alert(1)</script>|'\"><img src=x>@someone";
    let (mut a, b) = (record(&READER), slower());
    a.head.actors[0].name = name.into();
    a.head.target.path = name.into();
    a.head.host.name = "\u{1b}[2J".into();
    let groups = groups(&[(name, &[&a]), ("new", &[&b])]);
    let comparison = compare(&groups);
    let text = markdown(&comparison);
    assert!(
        !text.contains("<img") && !text.contains("@someone"),
        "{text}"
    );
    assert!(!terminal(&comparison, &style(80)).contains('\u{1b}'));
}
