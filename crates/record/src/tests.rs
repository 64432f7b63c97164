//! Records there and back, and what is no record.

use super::*;

fn head(actors: usize, devices: usize) -> Head {
    let actor = |i| ActorInfo {
        name: format!("actor{i}"),
        op: "read".into(),
        loop_kind: LoopKind::Closed { depth: 8 },
        block_bytes: 4096,
        pattern: Some("random".into()),
        direct: Some(true),
        engine: "null".into(),
    };
    let device = |i| DeviceInfo {
        size_bytes: 1 << 40,
        rotational: Some(false),
        ..DeviceInfo::disk(format!("sd{i}"))
    };
    Head {
        schema: RUN_SCHEMA.into(),
        run: None,
        version: "0".into(),
        started_unix_s: 1.7e9,
        host: Host::default(),
        target: Target::default(),
        scenario: serde_json::json!({"size": "8G"}),
        interval_ms: 100.0,
        actors: (0..actors).map(actor).collect(),
        devices: (0..devices).map(device).collect(),
    }
}

fn interval(i: u32, actors: usize, devices: usize) -> Interval {
    let actor = ActorInterval {
        ops: 1000 + u64::from(i % 7),
        bytes: 4096,
        p50_us: Some(73.25),
        p99_us: Some(160.5),
        max_us: Some(2000.0),
        ..ActorInterval::default()
    };
    Interval {
        at_s: f64::from(i) * 0.1,
        seconds: 0.1,
        actors: vec![Some(actor); actors],
        devices: vec![DeviceInterval::default(); devices],
        freed_bytes: 7,
        ..Interval::default()
    }
}

fn lines(n: u32) -> Vec<Line> {
    let mut lines = vec![Line::Head(Box::new(head(1, 1)))];
    lines.push(Line::Phase(Phase {
        name: PhaseName::Baseline,
        part: Part::Main,
        at_s: 0.0,
    }));
    lines.extend((0..n).map(|i| Line::Interval(interval(i, 1, 1))));
    let mut histogram = latency_histogram();
    histogram.record_n(73_000, 100).unwrap();
    let stretch = Grain::Stretch {
        at_s: 1.0,
        seconds: 0.1,
    };
    for over in [
        Grain::SecondAt(1.0),
        stretch,
        Grain::Phase(PhaseName::Baseline),
    ] {
        lines.push(Line::Histogram(HistogramLine {
            actor: 0,
            latency: Latency::Response,
            over,
            part: Part::Main,
            v2: encode_histogram(&histogram),
        }));
    }
    let kind = EventKind::DeletionBegan;
    lines.push(Line::Event(Event {
        at_s: 0.5,
        kind,
        detail: None,
    }));
    lines.push(Line::Deletion(DeletionLine {
        bytes: 9,
        files: 1,
        ..DeletionLine::default()
    }));
    lines.push(Line::End(End {
        at_s: 9.0,
        reason: EndReason::Completed,
        message: None,
        unfinished: vec![Unfinished {
            actor: 0,
            operations: 3,
            oldest_us: 5.0,
        }],
        lives: vec![Some(Written {
            host_written_bytes: Some(7),
            flash_written_bytes: None,
        })],
    }));
    lines
}

fn written(lines: &[Line], compressed: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = if compressed {
        RecordWriter::compressed(&mut bytes).unwrap()
    } else {
        RecordWriter::new(&mut bytes)
    };
    for line in lines {
        writer.write(line).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

fn message(bytes: &[u8]) -> String {
    RecordReader::read(bytes).unwrap_err().to_string()
}

fn text(lines: &[Line]) -> String {
    String::from_utf8(written(lines, false)).unwrap()
}

#[test]
fn comes_back_plain_and_compressed() {
    let lines = lines(50);
    let mut built = RunRecord::new(head(1, 1)).unwrap();
    for line in &lines[1..] {
        built.push(line).unwrap();
    }
    for compressed in [false, true] {
        let record = RecordReader::read(written(&lines, compressed).as_slice()).unwrap();
        let intervals = |r: &RunRecord| format!("{:?}", r.intervals);
        assert!(
            intervals(&record) == intervals(&built),
            "the columns differ"
        );
        assert_eq!(record.head, built.head);
        assert_eq!(record.phases, built.phases);
        assert_eq!(record.events, built.events);
        assert_eq!(record.deletions, built.deletions);
        assert_eq!(record.end, built.end);
        assert!(record.histograms[0].histogram == built.histograms[0].histogram);
        assert_eq!(record.intervals.len(), 50);
        assert_eq!(record.intervals.actors[0].ops[3], 1003);
        assert_eq!(
            record.histograms.len(),
            1,
            "histograms of seconds stay in the file"
        );
        assert_eq!(record.histograms[0].histogram.len(), 100);
        assert!(record.end.is_some());
    }
}

#[test]
fn every_prefix_of_a_killed_run_is_readable() {
    let all = lines(30);
    let plain = written(&all, false);
    let after_head = plain.iter().position(|&b| b == b'\n').unwrap() + 1;
    for cut in after_head..plain.len() - 1 {
        let record = RecordReader::read(&plain[..cut]).unwrap();
        assert!(record.end.is_none() && record.intervals.len() <= 30);
    }
}

#[test]
fn a_record_in_gzip_is_read_and_a_cut_one_as_far_as_it_goes() {
    let fast = flate2::Compression::fast();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), fast);
    std::io::Write::write_all(&mut gzip, &written(&lines(30), false)).unwrap();
    let file = gzip.finish().unwrap();
    let whole = RecordReader::read(file.as_slice()).unwrap();
    assert!(whole.end.is_some() && whole.intervals.len() == 30);
    let cut = RecordReader::read(&file[..file.len() - 20]).unwrap();
    assert!(cut.end.is_none() && cut.intervals.len() <= 30);
}

#[test]
fn a_flipped_bit_in_a_compressed_record_changes_no_figure() {
    let file = written(&lines(30), true);
    let shown = |file: &[u8]| -> Option<Vec<String>> {
        let record = RecordReader::read(file).ok()?;
        Some(record.lines().map(|line| format!("{line:?}")).collect())
    };
    let whole = shown(&file).unwrap();
    let mut refused = 0;
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        match shown(&damaged) {
            // A bit of the frame's own header, or one that ends the record early.
            Some(lines) => assert!(whole.starts_with(&lines), "byte {at}"),
            None => refused += 1,
        }
    }
    assert!(refused > file.len() / 10 * 9, "{refused}");
}

/// A file that outlives its writer.
#[derive(Clone, Default)]
struct Disk(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_was_flushed_survives_a_kill() {
    for compressed in [false, true] {
        let disk = Disk::default();
        let mut writer = if compressed {
            RecordWriter::compressed(disk.clone()).unwrap()
        } else {
            RecordWriter::new(disk.clone())
        };
        for (i, line) in lines(40)[..40].iter().enumerate() {
            writer.write(line).unwrap();
            if i == 21 {
                writer.flush().unwrap();
            }
        }
        // Killed: nothing is finished, not even dropped.
        std::mem::forget(writer);
        let written = disk.0.borrow().clone();
        let record = RecordReader::read(written.as_slice()).unwrap();
        assert!(record.intervals.len() >= 20, "{}", record.intervals.len());
        assert!(record.end.is_none());
        // And whatever else of it had reached the disk.
        for cut in written.len() * 3 / 4..written.len() {
            let record = RecordReader::read(&written[..cut]);
            assert!(record.is_ok() || compressed, "{record:?}");
            assert!(
                record.is_ok() || matches!(record, Err(ReadError::Empty)),
                "{record:?}"
            );
        }
    }
}

#[test]
fn what_is_no_record_is_refused_with_a_reason() {
    assert!(message(b"").contains("empty"));
    assert!(message(b"hello\n").contains("not a record"));
    assert!(message(b"{\"schema\":\"trimbench.verdict/1\"}\n").contains("trimbench.verdict/1"));
    assert!(message(&[0x28, 0xb5, 0x2f, 0xfd, 9, 9, 9, 9]).contains("cannot be read"));
    let newer = text(&lines(1)).replace("trimbench.run/1", "trimbench.run/2");
    let why = message(newer.as_bytes());
    assert!(
        why.contains("trimbench 0 wrote it as trimbench.run/2, and")
            && why.contains("reads trimbench.run/1"),
        "{why}"
    );
    let headless: String = text(&lines(2))
        .lines()
        .skip(2)
        .map(|l| format!("{l}\n"))
        .collect();
    assert!(message(headless.as_bytes()).contains("not a head"));
    let broken = text(&lines(2)).replace("\"at_s\":0.1", "\"at_s\":x");
    assert!(
        message(broken.as_bytes()).starts_with("line 4 "),
        "{}",
        message(broken.as_bytes())
    );
}

#[test]
fn absurd_lines_do_not_fit() {
    let mut record = RunRecord::new(head(1, 1)).unwrap();
    record.push(&Line::Interval(interval(5, 1, 1))).unwrap();
    let mut refused = |change: &dyn Fn(&mut Interval)| {
        let mut it = interval(6, 1, 1);
        change(&mut it);
        record.push(&Line::Interval(it)).unwrap_err()
    };
    assert!(matches!(
        refused(&|i| i.seconds = f64::NAN),
        PushError::Absurd { .. }
    ));
    assert!(matches!(
        refused(&|i| i.seconds = -0.1),
        PushError::Absurd { .. }
    ));
    assert!(matches!(
        refused(&|i| i.seconds = 0.0),
        PushError::Absurd { .. }
    ));
    assert!(matches!(
        refused(&|i| i.at_s = f64::INFINITY),
        PushError::Absurd { .. }
    ));
    assert!(matches!(
        refused(&|i| i.at_s = 0.2),
        PushError::Order { .. }
    ));
    assert!(matches!(
        refused(&|i| i.actors.clear()),
        PushError::Columns { .. }
    ));
    assert!(matches!(
        refused(&|i| i.devices.clear()),
        PushError::Columns { .. }
    ));
    assert_eq!(record.intervals.len(), 1);
    let unknown = Unfinished {
        actor: 1,
        operations: 1,
        oldest_us: 1.0,
    };
    let reason = EndReason::Completed;
    let end = End {
        at_s: 1.0,
        reason,
        message: None,
        unfinished: vec![unknown],
        lives: Vec::new(),
    };
    assert!(matches!(
        record.push(&Line::End(end)),
        Err(PushError::UnknownActor { .. })
    ));
    let end = End {
        at_s: 1.0,
        reason,
        message: None,
        unfinished: vec![],
        lives: vec![None],
    };
    let many = End {
        lives: vec![None; 2],
        ..end.clone()
    };
    assert!(matches!(
        record.push(&Line::End(many)),
        Err(PushError::TooMany { .. })
    ));
    record.push(&Line::End(end)).unwrap();
    assert_eq!(
        record.push(&Line::Interval(interval(9, 1, 1))),
        Err(PushError::AfterEnd)
    );
    assert_eq!(
        RunRecord::new(Head {
            interval_ms: 0.0,
            ..head(1, 1)
        })
        .unwrap_err(),
        PushError::Absurd {
            what: "the interval in ms",
            value: 0.0
        }
    );
}

#[test]
fn a_deletion_is_continuous_only_where_it_says_so() {
    let mut line = DeletionLine::default();
    let json = serde_json::to_value(line).unwrap();
    assert_eq!(json.get("continuous"), None);
    assert_eq!(serde_json::from_value::<DeletionLine>(json).unwrap(), line);
    line.continuous = true;
    let json = serde_json::to_value(line).unwrap();
    assert_eq!(json["continuous"], true);
    assert_eq!(serde_json::from_value::<DeletionLine>(json).unwrap(), line);
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>, zstd: bool, after_head: bool) {
        let mut file = if after_head { written(&lines(0)[..1], false) } else { Vec::new() };
        file.extend(&bytes);
        if zstd {
            file.splice(0..0, [0x28, 0xb5, 0x2f, 0xfd]);
        }
        let _ = RecordReader::read(file.as_slice());
    }

    #[test]
    fn a_flipped_byte_is_an_error_or_another_record(at in 0_usize..10_000, to: u8) {
        for compressed in [false, true] {
            let mut file = written(&lines(5), compressed);
            let at = at % file.len();
            file[at] = to;
            if let Ok(record) = RecordReader::read(file.as_slice()) {
                assert!(record.lines().count() > 0);
            }
        }
    }
}

/// Eight hours at 100 ms with four actors and two devices: below 100 MB in memory.
#[test]
fn the_loop_is_a_plain_word() {
    let mut info = head(1, 0).actors.remove(0);
    let json = serde_json::to_value(&info).unwrap();
    assert_eq!(
        (&json["loop"], &json["depth"]),
        (&"closed".into(), &8.into())
    );
    info.loop_kind = LoopKind::Open {
        rate_per_s: 1000.0,
        poisson: false,
        depth: 64,
    };
    let json = serde_json::to_value(&info).unwrap();
    assert_eq!(json["loop"], "open");
    assert_eq!(json["rate_per_s"], 1000.0);
    assert_eq!(json["poisson"], false);
    assert_eq!(json["depth"], 64);
    assert_eq!(serde_json::from_value::<ActorInfo>(json).unwrap(), info);
}

#[test]
fn a_record_in_memory_can_be_written_again() {
    let record = RecordReader::read(written(&lines(30), false).as_slice()).unwrap();
    let again: Vec<Line> = record.lines().collect();
    let read = RecordReader::read(written(&again, true).as_slice()).unwrap();
    assert_eq!(read.lines().collect::<Vec<_>>(), again);
    assert_eq!(read.intervals.len(), 30);
    assert_eq!(read.interval(3), record.interval(3));
    // Histograms of seconds stay in the file.
    let kept = |line: &&Line| match line {
        Line::Histogram(h) => !matches!(h.over, Grain::SecondAt(_)),
        _ => true,
    };
    assert_eq!(again.len(), lines(30).iter().filter(kept).count());
}

/// Records made before it could be unknown say true or false.
#[test]
fn whether_an_actor_is_direct_may_be_unknown() {
    let mut head = head(1, 0);
    for direct in [Some(true), Some(false), None] {
        head.actors[0].direct = direct;
        let text = serde_json::to_value(&head).unwrap();
        assert_eq!(text["actors"][0]["direct"], serde_json::json!(direct));
        assert_eq!(serde_json::from_value::<Head>(text).unwrap(), head);
    }
    let mut text = serde_json::to_value(&head).unwrap();
    text["actors"][0].as_object_mut().unwrap().remove("direct");
    assert_eq!(serde_json::from_value::<Head>(text).unwrap(), head);
}

/// Records of versions that didn't look have neither.
#[test]
fn how_far_trimbench_was_there_comes_back_and_may_be_missing() {
    use crate::absence::{Absent, Cause};
    let plain = interval(0, 2, 1);
    let text = serde_json::to_value(&plain).unwrap();
    assert_eq!((text.get("absent"), text.get("cpu_wait")), (None, None));
    assert_eq!(serde_json::from_value::<Interval>(text).unwrap(), plain);
    let away = Interval {
        actors: vec![None, None],
        absent: Some(Absent {
            seconds: 3.0,
            cause: Cause::WaitingForCpu,
        }),
        ..interval(1, 2, 1)
    };
    let short = Interval {
        cpu_wait: vec![Some(0.25), None],
        ..interval(2, 2, 1)
    };
    let text = serde_json::to_value(&away).unwrap();
    let absent = serde_json::json!({"seconds": 3.0, "cause": "waiting-for-cpu"});
    assert_eq!(text["absent"], absent);
    let mut record = RunRecord::new(head(2, 1)).unwrap();
    let all = [plain, away, short];
    for one in &all {
        record.push(&Line::Interval(one.clone())).unwrap();
    }
    for (i, one) in all.iter().enumerate() {
        assert_eq!(record.interval(i).absent, one.absent);
        assert_eq!(record.interval(i).cpu_wait, one.cpu_wait);
    }
    let too_few = Interval {
        cpu_wait: vec![Some(0.25)],
        ..interval(3, 2, 1)
    };
    let error = record.push(&Line::Interval(too_few)).unwrap_err();
    assert!(matches!(error, PushError::Columns { .. }), "{error}");
}
