//! Whatever the bytes, a parser neither panics nor makes a record that can't be.

#![allow(clippy::unwrap_used, reason = "tests may")]

use formats::fio::{Grid, Input, Output, series};
use formats::iostat::{Log, Moment, Notes, Options, record};
use formats::sniff;
use judge::{JudgeOptions, judge};
use proptest::prelude::*;

const REPORT: &str = "Linux 6.5.0 (box) \t06/19/2024 \t_x86_64_\t(24 CPU)\n\n\
06/19/2024 05:02:34 AM\n\
avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n   1.47    0.00    4.83    0.13    0.00   93.57\n\n\
Device            r/s     rMB/s r_await rareq-sz d/s dMB/s d_await dareq-sz aqu-sz\n\
md0          6000.00     23.44    0.07     4.00    0.00      0.00    0.00 0.00 7.52\n\
sda          3000.00     11.72    0.07     4.00    9.00    900.00    2.00 102400.00 7.52\n\
sdb          3001.00     11.72    0.07     4.00    9.00    900.00    2.00 102400.00 7.52\n\n";
const ROWS: &str =
    "1795207889468, 38300, 0, 0, 0\n1795207889568, 40000, 40001, 0, 0, 0\n7, 1, 1, 4096, 0\n";
const JSON: &str = "{\"sysstat\": {\n\"date\": \"06/01/20\",\n\"disk\": [\n{\"disk_device\": \"sda\", \"r/s\": 6.00, \"d/s\": 2.00},\n]\n";
const JOBS: &str = "[global]\nbs=4k\n[a]\nrw=randrw\nnumjobs=2\nrate_iops=1k,\n";
const OUTPUT: &str = "{\"fio version\": \"fio-3.33\", \"timestamp_ms\": 1795207892339, \"jobs\": [{\"jobname\": \"a\", \"job options\": {\"numjobs\": \"2\"}, \"read\": {\"total_ios\": 7, \"io_bytes\": 9, \"runtime\": 3, \"clat_ns\": {\"max\": 1}}}]}";

/// A text of the field with some of its bytes changed, repeated or cut off.
fn mangled() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        Just(REPORT),
        Just(ROWS),
        Just(JSON),
        Just(JOBS),
        Just(OUTPUT)
    ];
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4), 0..6);
    (text, 1_usize..9, edits, any::<prop::sample::Index>()).prop_map(|(text, times, edits, cut)| {
        let mut bytes = text.repeat(times).into_bytes();
        for (at, byte, what) in edits {
            let at = at.index(bytes.len());
            match what {
                0 => bytes[at] = byte,
                1 => bytes[at] = b'9',
                2 => drop(bytes.drain(at..(at + usize::from(byte)).min(bytes.len() - 1).max(at))),
                _ => bytes.insert(at, b'\n'),
            }
        }
        let keep = cut.index(2 * bytes.len());
        bytes.truncate(keep.max(1));
        bytes
    })
}

fn take_all(bytes: &[u8]) {
    let _ = sniff(bytes);
    let text = String::from_utf8_lossy(bytes);
    let notes = Notes::parse(&text);
    for deletion in [None, Some(Moment::After(3.0)), Some(Moment::Unix(1.7e9))] {
        let options = Options {
            deletion,
            ..Options::default()
        };
        if let Ok(log) = Log::read(bytes)
            && let Ok(record) = record(&log, Some(&notes), &options)
        {
            let _ = judge(&record, &JudgeOptions::default());
        }
    }
    let output = Output::parse(&text).ok();
    for name in [
        "job1_iops.1.log",
        "x_lat.2.log",
        "x_clat_hist.log",
        "x_bw.1.log",
    ] {
        let inputs = [
            Input {
                name: name.to_owned(),
                text: bytes,
            },
            Input {
                name: "job1_clat.1.log".to_owned(),
                text: ROWS.as_bytes(),
            },
        ];
        for one in series(inputs, output.as_ref()).into_iter().flatten() {
            let grid = Grid {
                started_unix_s: 1_795_207_889.0,
                at_s: &[0.0, 0.25, 0.5, 0.75],
                seconds: &[0.25; 4],
            };
            assert_eq!(one.intervals(&grid).len(), 4);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        take_all(&bytes);
    }

    #[test]
    fn nearly_good_texts(bytes in mangled()) {
        take_all(&bytes);
    }
}

#[test]
fn the_good_ones_are_taken() {
    let log = Log::read(REPORT.repeat(9).as_bytes()).unwrap();
    let record = record(&log, None, &Options::default()).unwrap();
    assert_eq!(record.intervals.len(), 9);
    assert_eq!(record.head.actors[0].name, "md0");
    assert_eq!(record.head.devices.len(), 3);
    assert!(Output::parse(OUTPUT).is_ok());
}
