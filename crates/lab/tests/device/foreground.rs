//! With φ = 0 nothing waits for a discard, except the loop driver's worker.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Bench, NAME, cannot};
use crate::gate::alone;

const DISCARD_S: f64 = 0.05;
const DEPTH: f64 = 8.0;

/// The drive's own counts.
struct Counted {
    reads: f64,
    discards: f64,
    /// How long it counted.
    seconds: f64,
}

impl Counted {
    /// The time in which no discard was under way: they come one after the
    /// other, but late on a busy machine.
    fn idle_s(&self) -> f64 {
        (self.seconds - self.discards * DISCARD_S).max(0.0)
    }
}

/// Reads at [`DEPTH`] for a second, perhaps beside discards.
fn reads(bench: &Bench, in_foreground_cgroup: bool, discard: bool) -> Counted {
    let device = bench.device().to_str().unwrap();
    let counts = || {
        let kinds = bench.lab.stats(NAME).unwrap().kinds;
        (kinds[0].commands as f64, kinds[3].commands as f64)
    };
    bench.lab.reset_stats(NAME).unwrap();
    // Enough for 12 s.
    let discarder = discard.then(|| {
        Command::new("blkdiscard")
            .args(["-o", "256M", "-l", "256M", "-p", "1M", device])
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    });
    let began = Instant::now();
    while discard && counts().1 < 2.0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no discards");
        std::thread::sleep(Duration::from_millis(10));
    }
    bench.lab.reset_stats(NAME).unwrap();
    let began = Instant::now();
    let group = bench.lab.foreground_cgroup(NAME).unwrap();
    let enter = if in_foreground_cgroup {
        format!("echo $$ > {}/cgroup.procs &&", group.dir().display())
    } else {
        String::new()
    };
    let fio = format!(
        "{enter} exec fio --name=r --filename={device} --rw=randread --bs=4k --iodepth={DEPTH} \
         --ioengine=libaio --direct=1 --size=128M --time_based --runtime=1 --minimal"
    );
    let output = Command::new("sh").arg("-c").arg(fio).output().unwrap();
    let (reads, discards) = counts();
    let seconds = began.elapsed().as_secs_f64();
    if let Some(mut discarder) = discarder {
        discarder.kill().unwrap();
        discarder.wait().unwrap();
    }
    assert!(output.status.success());
    Counted {
        reads,
        discards,
        seconds,
    }
}

#[test]
fn reads_of_the_foreground_cgroup_wait_only_for_the_drive() {
    if cannot(&["fio", "blkdiscard"]) {
        return;
    }
    let _alone = alone();
    let slow = ["a=50ms", "b=0us/MiB", "discard.queue=exclusive", "phi=0"];
    let bench = Bench::new("ideal", &slow, 512, |_| {});
    let without = reads(&bench, true, false).reads;
    let inside = reads(&bench, true, true);
    // Unaffected, but for the work of those who discard on a small machine.
    assert!(
        inside.reads > 0.5 * without,
        "φ = 0: {without} reads in a second without discards; inside {} beside {}",
        inside.reads,
        inside.discards
    );
    let undisturbed = without.max(inside.reads);
    waits(&reads(&bench, false, true), undisturbed);
    bench.lab.set(NAME, &["phi=1".to_owned()]).unwrap();
    for in_cgroup in [true, false] {
        waits(&reads(&bench, in_cgroup, true), undisturbed);
    }
}

/// Fails if there were more reads than the discards leave time for. Between two discards comes one
/// depth of reads, or two where one was just under way. Added are the reads in the time without a
/// discard, in which a machine that has become less busy may do three times as many.
#[track_caller]
fn waits(counted: &Counted, undisturbed: f64) {
    let Counted {
        reads,
        discards,
        seconds,
    } = counted;
    let most = 2.0 * DEPTH * (discards + 1.0) + 3.0 * undisturbed * counted.idle_s();
    eprintln!("{reads} reads beside {discards} discards in {seconds} s; at most {most}");
    assert!(*reads < most, "{reads} {most}");
}
