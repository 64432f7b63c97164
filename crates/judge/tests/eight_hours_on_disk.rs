//! Eight hours at 100 ms take less than 200 MB on disk, compressed: five
//! minutes of it in `make test`, all of it in `make soak`.

#![allow(clippy::unwrap_used)]

use std::io::{self, Write};
use testkit::Rng;

use record::{
    ActorInterval, DeviceInterval, Grain, HistogramLine, Interval, Latency, Line, Part,
    RecordWriter, encode_histogram, second_histogram,
};

const SECONDS: u32 = 8 * 3600;

/// Counts what is written.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A latency in nanoseconds: around 80 µs, one in a hundred with a long tail.
fn latency_ns(random: &mut Rng) -> u64 {
    let spread = (0..4).map(|_| random.unit()).sum::<f64>() / 4.0;
    let usual = 80e3 * (0.5 + spread) * (0.5 + spread);
    let tail = if random.below(100) == 0 {
        (1.0 / (1.0 - random.unit()).max(1e-4)).min(1000.0)
    } else {
        1.0
    };
    (usual * tail) as u64
}

/// Bytes of so many seconds: a fast reader with one histogram a second, and a
/// canary with two, on three devices.
fn compressed_bytes(seconds: u32) -> u64 {
    let mut count = Count(0);
    let mut random = Rng::new(0x9E37_79B9_7F4A_7C15);
    let mut writer = RecordWriter::compressed(&mut count).unwrap();
    for second in 0..seconds {
        for tenth in 0..10 {
            let at_s = f64::from(second) + f64::from(tenth) / 10.0 + random.unit() * 1e-4;
            let mut us = || Some(latency_ns(&mut random) as f64 / 1e3);
            let mut actor = || ActorInterval {
                p50_us: us(),
                p99_us: us(),
                max_us: us(),
                oldest_us: us(),
                ..ActorInterval::default()
            };
            let (mut reader, mut canary) = (actor(), actor());
            (reader.ops, canary.ops) = (2000 + random.next_u64() % 200, 5);
            (reader.bytes, canary.bytes) = (reader.ops * 4096, 5 * 4096);
            let device = DeviceInterval {
                reads: reader.ops,
                read_bytes: reader.bytes,
                read_ms: reader.ops / 12,
                in_flight: random.next_u64() % 9,
                ..DeviceInterval::default()
            };
            let interval = Interval {
                at_s,
                seconds: 0.1 + random.unit() * 1e-4,
                actors: vec![Some(reader), Some(canary)],
                devices: vec![device; 3],
                freed_bytes: 0,
                ..Interval::default()
            };
            writer.write(&Line::Interval(interval)).unwrap();
        }
        for (actor, latency, operations) in [
            (0, Latency::Response, 21_000),
            (1, Latency::Response, 50),
            (1, Latency::Service, 50),
        ] {
            let mut histogram = second_histogram();
            for _ in 0..operations {
                histogram.record(latency_ns(&mut random)).unwrap();
            }
            let line = HistogramLine {
                actor,
                latency,
                over: Grain::SecondAt(f64::from(second)),
                part: Part::Main,
                v2: encode_histogram(&histogram),
            };
            writer.write(&Line::Histogram(line)).unwrap();
        }
        writer.flush().unwrap();
    }
    writer.finish().unwrap();
    count.0
}

#[test]
fn eight_hours_take_less_than_200_mb() {
    let soak = std::env::var_os("TRIMBENCH_SOAK").is_some();
    let seconds = if soak { SECONDS } else { 300 };
    let bytes = compressed_bytes(seconds);
    let whole = bytes * u64::from(SECONDS) / u64::from(seconds);
    eprintln!("{bytes} B in {seconds} s: {whole} B in eight hours");
    assert!(whole < 200_000_000, "{whole}");
    assert!(whole > 10_000_000, "{whole}: nothing was written");
}
