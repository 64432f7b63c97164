//! Parsers of files that a user gets from others: records, logs of other tools, cards, scenarios,
//! recordings, suites' logs. And the messages that a simulated drive reads.

use diagnose::why::recorder::recording::Recording;
use diagnose::why::{Subject, explain, folded, text};
use formats::{fio, iostat};
use judge::compare::{Group, Run};
use judge::{JudgeOptions, judge};
use record::units::names::is_harmful;
use record::{RecordReader, RunRecord};
use report::terminal::{self, Style};
use report::{csv, html, markdown};

use super::Target;

const STYLE: Style = Style {
    colour: false,
    width: 80,
    unicode: true,
};

/// Messages as Linux 6.18 sends them through `/dev/fuse`, little-endian.
const INIT: &[u8] = b"h\0\0\0\x1a\0\0\0\x08\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x19\x0b\0\0\0\0\0\0\x07\0\0\0*\0\0\0\0\0\x02\0\xfb\xff\xffs\xff\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const READ: &[u8] = b"P\0\0\0\x0f\0\0\0\x08\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x19\x0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0 \0\0\0\0\0\0\0\x10\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\x80\0\0\0\0\0\0";
const WRITE: &[u8] = b"`\0\0\0\x10\0\0\0\x08\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x19\x0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x000123456789abcdef";
const FALLOCATE: &[u8] = b"H\0\0\0+\0\0\0\x08\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x19\x0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0 \0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
const LOOKUP: &[u8] = b"-\0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x19\x0b\0\0\0\0\0\0disk\0";

/// These parsers.
pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "record",
        cost: 40,
        samples: &[
            include_bytes!("../../../../tests/formats/0.1/record.jsonl"),
            include_bytes!("samples/sim.jsonl"),
        ],
        parse: |input| {
            if let Ok(record) = RecordReader::read(input) {
                shown(&record);
                let _ = record::as_drive(record);
            }
        },
    },
    Target {
        name: "iostat",
        cost: 10,
        samples: &[
            include_bytes!("samples/iostat.txt"),
            include_bytes!("samples/iostat.json"),
            include_bytes!("samples/notes.txt"),
        ],
        parse: iostat,
    },
    Target {
        name: "fio",
        cost: 10,
        samples: &[
            include_bytes!("../../../formats/tests/data/fio/mixed/fio.json"),
            include_bytes!("../../../formats/tests/data/fio/gap/fio.json"),
            include_bytes!("../../../formats/tests/data/fio/mixed/m_iops.1.log"),
            include_bytes!("../../../formats/tests/data/fio/randread/r_clat.1.log"),
            include_bytes!("../../../formats/tests/data/fio/mixed/m_clat_hist.1.log"),
            include_bytes!("../../../formats/tests/data/fio/jobs/job.fio"),
        ],
        parse: fio,
    },
    Target {
        name: "card",
        cost: 2,
        samples: &[
            include_bytes!("../../../ssd/profiles/crucial-t500-2tb.toml"),
            include_bytes!("../../../ssd/profiles/ocz-vertex-2.toml"),
        ],
        parse: |input| {
            let text = String::from_utf8_lossy(input);
            if let Ok(card) = text.parse::<ssd::Card>() {
                let again: ssd::Card = card.to_string().parse().expect("what was shown");
                assert_eq!(again.figures(), card.figures(), "{card}");
                let _ = card.with(&text);
            }
        },
    },
    Target {
        name: "scenario",
        cost: 2,
        samples: &[
            include_bytes!("../../../bench/scenarios/drop-table.toml"),
            include_bytes!("../../../bench/scenarios/mail-server.toml"),
            include_bytes!("../../../bench/scenarios/lsm-compaction.toml"),
        ],
        parse: |input| {
            let text = String::from_utf8_lossy(input);
            if let Ok(scenario) = text.parse::<bench::scenario::Scenario>() {
                let _ = scenario.overlaid(bench::scenario::Options::default());
            }
            let _ = text.parse::<bench::scenario::Actor>();
        },
    },
    Target {
        name: "recording",
        cost: 20,
        samples: &[include_bytes!(
            "../../../../tests/formats/0.1/recording.jsonl"
        )],
        parse: recording,
    },
    Target {
        name: "suite_log",
        cost: 10,
        samples: &[include_bytes!(
            "../../../../tests/formats/0.1/suite-log.jsonl"
        )],
        parse: suite_log,
    },
    Target {
        name: "fuse",
        cost: 1,
        samples: &[INIT, READ, WRITE, FALLOCATE, LOOKUP],
        parse: |input| {
            for size in [0, 4096, 1 << 30, u64::MAX] {
                if let Some(range) = lab::reach_of_message(input, size) {
                    assert!(range.start <= range.end && range.end <= size, "{range:?}");
                }
            }
        },
    },
];

/// A record goes through everything that reads one.
fn shown(record: &RunRecord) {
    let verdict = judge(record, &JudgeOptions::default());
    let mut texts = vec![
        terminal::set_up(&record.head, &STYLE),
        terminal::verdict(&verdict, record, &STYLE),
        terminal::timeline(record, &verdict, &STYLE),
        markdown::verdict(&verdict, record),
    ];
    let mut all = Vec::new();
    csv::actors(record, csv::Run::First("="), &mut all).expect("memory");
    csv::devices(record, csv::Run::Next("="), &mut all).expect("memory");
    texts.push(String::from_utf8(all).expect("text"));
    for text in &texts {
        harmless(text);
    }
    let _ = html::report(record, &verdict);
    let _ = report::json::verdict(&verdict);
    let group = |name: &str| Group {
        name: name.to_owned(),
        runs: vec![Run {
            name: name.to_owned(),
            record,
            options: JudgeOptions::default(),
        }],
    };
    let compared = judge::compare::compare(&[group("a"), group("b")]);
    harmless(&report::compare::terminal(&compared, &STYLE));
}

/// Nothing of a file acts on the terminal.
fn harmless(text: &str) {
    let found = text.chars().find(|&c| c != '\n' && is_harmful(c));
    assert_eq!(found, None, "{}", text.escape_debug());
}

fn iostat(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let _ = formats::sniff(input);
    let notes = iostat::Notes::parse(&text);
    let options = iostat::Options::default();
    if let Ok(log) = iostat::Log::read(input)
        && let Ok(record) = iostat::record(&log, Some(&notes), &options)
    {
        let _ = judge(&record, &JudgeOptions::default());
    }
}

fn fio(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let output = fio::Output::parse(&text).ok();
    if let Some(output) = &output
        && let Ok(record) = fio::totals(output)
    {
        let _ = judge(&record, &JudgeOptions::default());
    }
    for name in [
        "m_iops.1.log",
        "m_clat.1.log",
        "m_bw.1.log",
        "m_clat_hist.1.log",
    ] {
        let input = fio::Input {
            name: name.to_owned(),
            text: input,
        };
        if let Ok(series) = fio::series([input], output.as_ref())
            && let Ok(record) = fio::record(&series, &formats::Options::default())
        {
            let _ = judge(&record, &JudgeOptions::default());
        }
    }
}

fn recording(input: &[u8]) {
    let Ok(recording) = Recording::read(input) else {
        return;
    };
    let begin = recording.begins_unix_s();
    let seen = recording.observed(begin - 1.0, begin + 3600.0, None);
    for subject in [Subject::All, Subject::Family(1)] {
        let why = explain(&seen, &subject, None);
        let page = text::page(
            &why,
            diagnose::Look {
                width: 80,
                unicode: true,
                colour: false,
            },
        );
        harmless(&page);
        let _ = serde_json::to_string(&why);
        let _ = folded(&seen, &subject);
    }
}

fn suite_log(input: &[u8]) {
    let Ok(log) = experiments::suite::log::Log::parse(&String::from_utf8_lossy(input)) else {
        return;
    };
    let _ = log.left();
    let results = experiments::suite::Results::of(&log);
    let sheet = experiments::suite::sheet(&results);
    harmless(&report::sheet::text(&sheet, 80));
    let _ = results.json();
    let _ = experiments::suite::advise(&results);
}
