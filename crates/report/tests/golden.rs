//! The texts as people see them. Change them on purpose only: look at the new
//! text with `cargo run -p trimbench-report --example look`, then paste it here.

mod common;

use common::{GIB, READER, SHORT, T500};
use judge::verdict::*;
use record::*;
use report::terminal::{self, Style};

const STYLE: Style = Style {
    colour: false,
    width: 80,
    unicode: true,
};

#[track_caller]
fn same(text: &str, expected: &str) {
    assert!(
        text == expected,
        "the text is now:\n{text}\nand was to be:\n{expected}"
    );
}

#[test]
fn a_stall() {
    let (record, verdict) = (READER.record(), READER.verdict());
    same(
        &terminal::verdict(&verdict, &record, &STYLE),
        "\
STALL  Deleting 1.0 TiB stalled reads for 16.9 s (to 4.3 % of 92,100/s).

  reader: random 4 KiB read, direct, io_uring, closed loop at depth 8
              before  while discarding     after
  rate      92,100/s           3,920/s  92,100/s
  p50        84.0 µs            2.1 ms   84.0 µs
  p99         121 µs            2.2 ms    121 µs
  p99.9       163 µs            2.3 ms    163 µs
  max         1.2 ms            2.7 ms    1.2 ms
  From submission: in a closed loop, response and service time are the same, and
  the percentiles hide a stall, since few operations meet it.

  deletion   1.0 TiB in 1 file; the calls took 0.21 s
  stall      16.9 s in one piece; 4.3 % of the rate was left; 16.2 s of work
             lost beside discards; longest wait 2.7 ms
  TRIM       65.1 GB/s (60.6 GiB/s); 8,205 discards of 128 MiB, 1.0 TiB in all;
             busy with them for at most 16.9 s; mean wait 2.1 ms
  debt       up to 1.0 TiB freed and not yet discarded; the first discard came
             18.2 s after the first deletion call; all discarded 34.9 s after
             the last deletion call
  cost       a discard of 128 MiB takes 2.1 ms; beside each, 8.0 (7.8 to 8.2)
             operations of others completed (8 in flight)
  barrier    yes: other I/O was blocked for 96 % (95 % to 97 %) of the stall;
             about one queue depth (8) completes between two
",
    );
}

#[test]
fn an_open_loop_has_two_latencies_side_by_side() {
    let (record, mut verdict) = (T500.record(), T500.verdict());
    verdict.foreground.remove(0);
    let service = verdict.foreground[0].service.as_mut().unwrap();
    service.discarding.as_mut().unwrap().p99_us = Some(1_990.0);
    let response = verdict.foreground[0].discarding.as_mut().unwrap();
    response.p99_us = Some(210_000.0);
    verdict.foreground[0].unfinished = Some(UnfinishedFigures {
        operations: 1,
        oldest_us: 312_000.0,
    });
    verdict.fit = None;
    same(
        &terminal::verdict(&verdict, &record, &STYLE),
        "\
STALL  Deleting 1.0 TiB stalled reads for 16.9 s (to 4.3 % of 92,100/s).

  canary: random 4 KiB read, direct, io_uring, open loop at 100/s
                        before    while discarding               after
            response   service  response   service  response   service
  rate         100/s               100/s               100/s
  p50        84.0 µs   84.0 µs    2.1 ms    2.1 ms   84.0 µs   84.0 µs
  p99         121 µs    121 µs    210 ms    2.0 ms    121 µs    121 µs
  p99.9       163 µs    163 µs    2.3 ms    2.3 ms    163 µs    163 µs
  max         1.2 ms    1.2 ms    2.7 ms    2.7 ms    1.2 ms    1.2 ms
  Response time counts from the intended start, service time from submission.

  deletion   1.0 TiB in 1 file; the calls took 0.21 s
  unfinished 1 operation never finished; the oldest had waited 312 ms
  TRIM       65.1 GB/s (60.6 GiB/s); 8,205 discards of 128 MiB, 1.0 TiB in all;
             busy with them for at most 16.9 s; mean wait 2.1 ms
  debt       up to 1.0 TiB freed and not yet discarded; the first discard came
             18.2 s after the first deletion call; all discarded 34.9 s after
             the last deletion call
",
    );
}

#[test]
fn a_slowdown() {
    let (record, mut verdict) = (READER.record(), READER.verdict());
    verdict.verdict = Finding::Slowdown;
    verdict.summary = "Deleting 512 GiB slowed reads to 88 % of 102,000/s for 1.4 s.".into();
    let reader = &mut verdict.foreground[0];
    reader.stall = None;
    reader.ops_ratio = Some(0.88);
    reader.lost_s = Some(0.086);
    reader.discarding.as_mut().unwrap().ops_per_s = Some(89_900.0);
    reader.baseline_from = Some(BaselineFrom::BeforeFirstDiscard);
    verdict.discard.bytes_per_s_is_lower_bound = true;
    verdict.fit = Some(Fit {
        a_us: Some(100.0),
        b_us_per_mib: Some(0.59),
        phi: Some(0.2),
        service_us: Some(2_410.0),
        at_mib: Some(3_920.0),
        barrier: Some(false),
        ops_per_discard: Some(686.3),
        phi_95: Some([0.15, 0.25]),
        ..Fit::default()
    });
    same(
        &terminal::verdict(&verdict, &record, &STYLE),
        "\
SLOWDOWN  Deleting 512 GiB slowed reads to 88 % of 102,000/s for 1.4 s.

  reader: random 4 KiB read, direct, io_uring, closed loop at depth 8
              before  while discarding     after
  rate      92,100/s          89,900/s  92,100/s
  p50        84.0 µs            2.1 ms   84.0 µs
  p99         121 µs            2.2 ms    121 µs
  p99.9       163 µs            2.3 ms    163 µs
  max         1.2 ms            2.7 ms    1.2 ms
  From submission: in a closed loop, response and service time are the same.
  Before: the steady seconds before the first discard.

  deletion   1.0 TiB in 1 file; the calls took 0.21 s
  rate kept  88 % of the baseline's rate in the median interval with discards;
             86.0 ms of work lost beside discards
  TRIM       at least 65.1 GB/s (60.6 GiB/s); 8,205 discards of 128 MiB, 1.0 TiB
             in all; busy with them for at most 16.9 s; mean wait 2.1 ms
  debt       up to 1.0 TiB freed and not yet discarded; the first discard came
             18.2 s after the first deletion call; all discarded 34.9 s after
             the last deletion call
  cost       a discard of 3.8 GiB takes 2.4 ms; one of any size 100 µs + 590 ns
             per MiB; beside each, 686.3 operations of others completed
  barrier    no: a discard blocks other I/O for 20 % (15 % to 25 %) of its time
",
    );
}

#[test]
fn a_deleter_that_never_stops_is_compared_with_itself() {
    let (record, mut verdict) = (READER.record(), READER.verdict());
    verdict.summary = "Deleting 75.0 GiB stalled reads for 12.0 s (to 2.0 % of 36,000/s in its \
        seconds without discards)."
        .into();
    verdict.reasons = vec![Reason::DiscardsAllTheTime, Reason::MoreWritesWithDiscards];
    let reader = &mut verdict.foreground[0];
    reader.baseline_from = Some(BaselineFrom::WithoutDiscards);
    reader.undisturbed = Some(reader.baseline);
    reader.baseline.ops_per_s = Some(36_000.0);
    reader.baseline.p999_us = None;
    verdict.fit = None;
    same(
        &terminal::verdict(&verdict, &record, &STYLE),
        "\
STALL  Deleting 75.0 GiB stalled reads for 12.0 s (to 2.0 % of 36,000/s in its
       seconds without discards).

  reader: random 4 KiB read, direct, io_uring, closed loop at depth 8
             without  while discarding     after
  rate      36,000/s           3,920/s  92,100/s
  p50        84.0 µs            2.1 ms   84.0 µs
  p99         121 µs            2.2 ms    121 µs
  p99.9            –            2.3 ms    163 µs
  max         1.2 ms            2.7 ms    1.2 ms
  From submission: in a closed loop, response and service time are the same, and
  the percentiles hide a stall, since few operations meet it.
  Without: the seconds of the deletion without discards, but with its writes.
  Before the deletion, without its writes: 92,100/s, p99 121 µs, max 1.2 ms.

  deletion   1.0 TiB in 1 file; the calls took 0.21 s
  stall      16.9 s in one piece; 4.3 % of the rate was left; 16.2 s of work
             lost beside discards; longest wait 2.7 ms
  TRIM       65.1 GB/s (60.6 GiB/s); 8,205 discards of 128 MiB, 1.0 TiB in all;
             busy with them for at most 16.9 s; mean wait 2.1 ms
  debt       up to 1.0 TiB freed and not yet discarded; the first discard came
             18.2 s after the first deletion call; all discarded 34.9 s after
             the last deletion call

- Discards were in service nearly all the time while files were created and
  dropped, so what they cost can't be separated from what the writes cost. A
  control run (--control) has the writes without the discards; or leave longer
  pauses between the deletions, or look closer (--set phases.interval=10ms).
- The devices wrote far more in the seconds with discards than in those without:
  it may be the writes that slow the foreground. A control run (--control) has
  them without the discards; or let the deleter write more evenly.
",
    );
}

#[test]
fn no_stall_without_discards() {
    let (mut record, mut verdict) = (READER.record(), READER.verdict());
    record.head.target.discard = DiscardSetting::Off;
    verdict.verdict = Finding::None;
    verdict.reasons = vec![Reason::NoDiscards];
    verdict.summary = "Deleting 8.0 GiB did not slow reads; no discards were sent.".into();
    verdict.discard = Discard {
        bytes: Some(0),
        commands: Some(0),
        debt_max_bytes: Some(8 * GIB),
        ..Discard::default()
    };
    verdict.fit = None;
    let reader = &mut verdict.foreground[0];
    (reader.stall, reader.ops_ratio) = (None, None);
    (reader.delete, reader.discarding) = (reader.baseline, None);
    same(
        &terminal::verdict(&verdict, &record, &STYLE),
        "\
NO STALL  Deleting 8.0 GiB did not slow reads; no discards were sent.

  reader: random 4 KiB read, direct, io_uring, closed loop at depth 8
              before    while deleting     after
  rate      92,100/s          92,100/s  92,100/s
  p50        84.0 µs           84.0 µs   84.0 µs
  p99         121 µs            121 µs    121 µs
  p99.9       163 µs            163 µs    163 µs
  max         1.2 ms            1.2 ms    1.2 ms
  From submission: in a closed loop, response and service time are the same.

  deletion   1.0 TiB in 1 file; the calls took 0.21 s
  TRIM       no discards were seen
  debt       up to 8.0 GiB freed and not yet discarded

- The devices saw no discards, since /data is mounted without them. To see what
  they would do: mount -o remount,discard /data, then run again. A periodic
  fstrim can still stall this system.
",
    );
}

#[test]
fn a_dip_partly_beside_discards_is_not_called_one_without() {
    let (record, mut verdict) = (READER.record(), READER.verdict());
    let dip = |at_s, discards| Dip {
        at_s,
        seconds: 9.0,
        depth: 0.0,
        discards,
    };
    verdict.foreground[0].stall = None;
    verdict.foreground[0].dips = vec![dip(40.0, Some(DipDiscards::Partly)), dip(60.0, None)];
    let text = terminal::verdict(&verdict, &record, &STYLE);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("9.0 s at 40.0 s (to 0.0 %); beside discards in a part"),
        "{text}"
    );
    assert!(
        text.contains("9.0 s at 60.0 s (to 0.0 %); without discards"),
        "{text}"
    );
    // An open loop completes as much, only later.
    verdict.foreground[0].dips[1].depth = 1.0;
    let text = terminal::verdict(&verdict, &record, &STYLE);
    assert!(text.contains("9.0 s at 60.0 s; without"), "{text}");
}

#[test]
fn inconclusive_since_the_control_dips_too() {
    let (record, mut verdict) = (READER.record(), READER.verdict());
    let mut control = verdict.foreground.clone();
    control[0].stall = None;
    control[0].dips = vec![Dip {
        at_s: 190.0,
        seconds: 15.3,
        depth: 0.1,
        discards: None,
    }];
    verdict.verdict = Finding::Inconclusive;
    verdict.reasons = vec![Reason::ControlDipsToo, Reason::DipsWithoutDiscards];
    verdict.summary = "Reads dipped for 16.9 s, but as much in the control run.".into();
    verdict.control = Some(Control {
        method: Some("nodiscard".into()),
        verdict: Finding::None,
        discard_bytes: Some(0),
        foreground: control,
    });
    verdict.foreground[0].dips = (0..5)
        .map(|n| Dip {
            at_s: 62.5 + f64::from(n),
            seconds: 0.3,
            depth: 0.25,
            discards: None,
        })
        .collect();
    verdict.warnings = vec!["The sampling thread was up to 0.4 s late.".into()];
    same(
        &terminal::verdict(&verdict, &record, &STYLE),
        "\
INCONCLUSIVE  Reads dipped for 16.9 s, but as much in the control run.

  reader: random 4 KiB read, direct, io_uring, closed loop at depth 8
              before  while discarding     after
  rate      92,100/s           3,920/s  92,100/s
  p50        84.0 µs            2.1 ms   84.0 µs
  p99         121 µs            2.2 ms    121 µs
  p99.9       163 µs            2.3 ms    163 µs
  max         1.2 ms            2.7 ms    1.2 ms
  From submission: in a closed loop, response and service time are the same, and
  the percentiles hide a stall, since few operations meet it.

  deletion   1.0 TiB in 1 file; the calls took 0.21 s
  stall      16.9 s in one piece; 4.3 % of the rate was left; 16.2 s of work
             lost beside discards; longest wait 2.7 ms
  dips       0.30 s at 62.5 s (to 25 %), 0.30 s at 63.5 s (to 25 %), 0.30 s at
             64.5 s (to 25 %), 2 more; without discards, so not TRIM's doing
  TRIM       65.1 GB/s (60.6 GiB/s); 8,205 discards of 128 MiB, 1.0 TiB in all;
             busy with them for at most 16.9 s; mean wait 2.1 ms
  debt       up to 1.0 TiB freed and not yet discarded; the first discard came
             18.2 s after the first deletion call; all discarded 34.9 s after
             the last deletion call
  cost       a discard of 128 MiB takes 2.1 ms; beside each, 8.0 (7.8 to 8.2)
             operations of others completed (8 in flight)
  barrier    yes: other I/O was blocked for 96 % (95 % to 97 %) of the stall;
             about one queue depth (8) completes between two
  control    without discards (nodiscard): no stall; reader dipped for 15.3 s

- The control run, which sent no discards, lost about as much: TRIM isn't proven
  to be the cause. Deleting itself may be the cause (the file system's own work,
  or its journal).
- The foreground was slow without discards, or for longer than they took:
  something else slowed it, or the drive goes on trimming after it has answered.
  Look for other load; a control run (--control) shows whether it comes back
  without discards.
! The sampling thread was up to 0.4 s late.
",
    );
}

#[test]
fn a_stall_of_200_ms_is_seen_in_90_s() {
    let (record, verdict) = (SHORT.record(), SHORT.verdict());
    same(
        &terminal::timeline(&record, &verdict, &STYLE),
        "   66,100/s┤▇▆▇▆▆▇▇▆▆▆▆▆▆▆▇▆▆▆▇▆▆▆▇▇▇▇▆▆▆▇▇▆▆░░▆▆▇▆▆▆▇▇▆▆▇▇▆▆▇▇▆▆▇▇▇▇▆▆▆▇▇▆▇▆▆▆▆
     reader│█████████████████████████████████░░█████████████████████████████████
           │█████████████████████████████████░░█████████████████████████████████
           │█████████████████████████████████░░█████████████████████████████████
          0┤█████████████████████████████████▁▁█████████████████████████████████
      stall│                                 ━━
p99   10 ms┤
     reader│                                 ▇▇
     100 µs┤▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁██▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
  42.9 GB/s┤                                 ██
       TRIM│                                 ██
    8.0 GiB┤                              ████
       debt│                              ████
      phase│├ baseline ───────────────────┼────┼ recovery ──────────────────────
     events│                              12345
           └──────────────┬──────────────┬──────────────┬──────────────┬────────
                         80 s           100            120            140
            1 deletion began 101.4 s   2 it returned 101.6 s
            3 commit forced 101.6 s   4 commit done 101.8 s
            5 debt paid 106.6 s
",
    );
}

#[test]
fn a_timeline_in_ascii() {
    let (record, verdict) = (T500.record(), T500.verdict());
    let style = Style {
        unicode: false,
        width: 60,
        ..STYLE
    };
    same(
        &terminal::timeline(&record, &verdict, &style),
        "   92,800/s|########################            ############
     reader|########################           .############
           |########################           .############
           |########################.          .############
          0|########################............############
      stall|                        ============
p99   10 ms|
     reader|                        ############
     100 us|________________________############____________
           |
p99   10 ms|
     canary|                        ############
     100 us|........................############............
  65.1 GB/s|                        ############
       TRIM|                        ############
    1.0 TiB|            ###############:._
       debt|            ####################:.._
      phase|+ baseline -+ delete ---------------+ recovery -
     events|            1234                   5
           `-----------+------------+------------+----------
                      80 s         100          120
            1 deletion began 81.4 s   2 it returned 81.6 s
            3 commit forced 81.6 s   4 commit done 81.8 s
            5 debt paid 116.5 s
",
    );
}

#[test]
fn a_control_run_is_a_picture_of_its_own() {
    let (mut record, mut verdict) = (SHORT.record(), SHORT.verdict());
    let end = record.intervals.end_s();
    for interval in 0..300 {
        let reader = ActorInterval {
            ops: 6_530,
            p99_us: Some(121.0),
            ..ActorInterval::default()
        };
        record.intervals.push(&Interval {
            at_s: end + f64::from(interval) * 0.1,
            seconds: 0.1,
            actors: vec![Some(reader)],
            devices: Vec::new(),
            freed_bytes: if interval == 150 { 8 * GIB } else { 0 },
            ..Interval::default()
        });
    }
    for (name, after) in [(PhaseName::Baseline, 0.0), (PhaseName::Delete, 15.0)] {
        record.phases.push(Phase {
            name,
            part: Part::Control,
            at_s: end + after,
        });
    }
    verdict.control = Some(Control {
        method: None,
        verdict: Finding::None,
        discard_bytes: None,
        foreground: verdict.foreground.clone(),
    });
    verdict.control.as_mut().unwrap().foreground[0].stall = None;
    let text = terminal::timeline(&record, &verdict, &STYLE);
    let (_, control) = text.split_once("\n\n").unwrap();
    same(
        control,
        "\
Control run
   66,100/s┤████████████████████████████████████████████████████████████████████
     reader│████████████████████████████████████████████████████████████████████
           │████████████████████████████████████████████████████████████████████
           │████████████████████████████████████████████████████████████████████
          0┤████████████████████████████████████████████████████████████████████
p99    1 ms┤
     reader│
     100 µs┤▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂
       TRIM│ none
    8.0 GiB┤                                  ██████████████████████████████████
       debt│                                  ██████████████████████████████████
      phase│├ baseline ──────────────────────┼ delete ──────────────────────────
           └───────┬───────────┬──────────┬──────────┬───────────┬──────────┬───
                  155 s       160        165        170         175        180
",
    );
}

#[test]
fn nothing_recorded_draws_nothing() {
    let verdict = READER.verdict();
    let record = common::empty(common::head(false, 0.1));
    assert_eq!(terminal::timeline(&record, &verdict, &STYLE), "");
}

#[test]
fn a_raid_is_drawn_as_a_tree() {
    let mut head = common::head(true, 0.1);
    head.devices = vec![
        common::device("md0", DeviceKind::Md, 0, &["nvme0n1p2", "nvme1n1p2"]),
        common::device("nvme0n1p2", DeviceKind::Partition, 1, &["nvme0n1"]),
        common::device("nvme0n1", DeviceKind::Disk, 2, &[]),
        common::device("nvme1n1p2", DeviceKind::Partition, 1, &["nvme1n1"]),
        common::device("nvme1n1", DeviceKind::Disk, 2, &[]),
    ];
    head.devices[0].discard.max_bytes = 0;
    head.devices[4].discard = DiscardLimits::default();
    same(
        &terminal::set_up(&head, &STYLE),
        "\
path       /data/test
mount      ext4 at /data from /dev/nvme0n1p2 (rw, relatime, discard)
discards   on: what is deleted is discarded at once
space      1.4 TiB of 1.8 TiB available
foreground reader: random 4 KiB read, direct, io_uring, closed loop at depth 8
           canary: random 4 KiB read, direct, io_uring, open loop at 100/s
machine    oak, Linux 6.12.9, 16 processors, 64.0 GiB
devices    md0 software RAID, 1.8 TiB
           │  discards switched off (discard_max_bytes is 0; the device takes up
              to 2.0 TiB)
           ├─ nvme0n1p2 partition, 1.8 TiB
           │  └─ nvme0n1 SSD, 1.8 TiB, CT2000T500SSD8, firmware P8CR002,
                 scheduler none
           │     discards up to 2.0 TiB in 256 segments, granularity 512 B
           └─ nvme1n1p2 partition, 1.8 TiB
              └─ nvme1n1 SSD, 1.8 TiB, CT2000T500SSD8, firmware P8CR002,
                 scheduler none
                 takes no discards
",
    );
}

#[test]
fn a_drive_under_two_partitions_is_described_once() {
    let mut head = common::head(false, 0.1);
    head.devices = vec![
        common::device("md0", DeviceKind::Md, 0, &["sda1", "sda2"]),
        common::device("sda1", DeviceKind::Partition, 1, &["sda"]),
        common::device("sda2", DeviceKind::Partition, 1, &["sda"]),
        // A record can be wrong: this one leads back to itself.
        common::device("sda", DeviceKind::Disk, 2, &["sda"]),
    ];
    let text = terminal::set_up(&head, &STYLE);
    assert_eq!(text.matches("CT2000T500SSD8").count(), 1, "{text}");
    assert_eq!(text.matches("(see above)").count(), 2, "{text}");
}

#[test]
fn a_finding_has_its_colour() {
    let style = Style {
        colour: true,
        ..STYLE
    };
    let record = READER.record();
    let mut verdict = READER.verdict();
    for (finding, start) in [
        (Finding::Stall, "\x1b[1;31mSTALL"),
        (Finding::Slowdown, "\x1b[1;33mSLOWDOWN"),
        (Finding::None, "\x1b[1;32mNO STALL"),
        (Finding::Inconclusive, "\x1b[1;33mINCONCLUSIVE"),
    ] {
        verdict.verdict = finding;
        let text = terminal::verdict(&verdict, &record, &style);
        assert!(text.starts_with(start), "{text}");
    }
}

#[test]
fn what_got_worse_is_coloured_and_nothing_else() {
    let style = Style {
        colour: true,
        ..STYLE
    };
    let (record, mut verdict) = (READER.record(), READER.verdict());
    let discarding = verdict.foreground[0].discarding.as_mut().unwrap();
    (discarding.p50_us, discarding.p999_us) = (Some(84.0), Some(400.0));
    let text = terminal::verdict(&verdict, &record, &style);
    for worse in [
        "\x1b[31m           3,920/s\x1b[0m",
        "\x1b[31m            2.2 ms\x1b[0m",
        "\x1b[33m            400 µs\x1b[0m",
    ] {
        assert!(text.contains(worse), "{worse:?} isn't in {text:?}");
    }
    let p50 = text.lines().find(|line| line.contains("p50")).unwrap();
    assert!(
        p50.ends_with("   84.0 µs           84.0 µs   84.0 µs"),
        "{p50:?}"
    );
}

#[test]
fn a_rate_that_a_stall_left_alone_does_not_stand_out() {
    let (record, mut verdict) = (READER.record(), READER.verdict());
    // Its waits show the stall of an actor that keeps its rate.
    let reader = &mut verdict.foreground[0];
    reader.ops_ratio = Some(1.0);
    let kept = reader.baseline.ops_per_s;
    reader.discarding.as_mut().unwrap().ops_per_s = kept;
    let style = Style {
        colour: true,
        ..STYLE
    };
    let text = terminal::verdict(&verdict, &record, &style);
    let rate = text.lines().find(|line| line.contains("rate")).unwrap();
    assert!(
        rate.ends_with("  92,100/s          92,100/s  92,100/s"),
        "{rate:?}"
    );
    let page = report::html::report(&record, &verdict).unwrap();
    let rate = page
        .lines()
        .find(|line| line.contains(">rate</th>"))
        .unwrap();
    assert!(!rate.contains("bad") && !rate.contains("warn"), "{rate}");
}
