use std::time::Instant;

use linux::tasks;
use testkit::loop_fs::{Fs, LoopFs, must};

use super::*;

#[test]
fn a_process_that_runs_and_one_that_sleeps_are_told_apart() {
    let mut child = std::process::Command::new("sh")
        .args(["-c", "sleep 60 & while :; do :; done"])
        .spawn()
        .unwrap();
    let subject = Subject::Family(child.id());
    let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
    let seconds = |found: &Sampled, name: &str, place: Place| -> f64 {
        let all = found.samples.iter();
        all.filter(|s| s.place == place && found.threads[s.thread].comm == name)
            .map(|s| s.stands_for_s)
            .sum()
    };
    let began = Instant::now();
    // A busy machine gives them little time at first.
    let both = |found: &Sampled| {
        seconds(found, "sh", Place::Running) > 0.2 && seconds(found, "sleep", Place::Sleep) > 0.2
    };
    while !both(&sampler.found) && began.elapsed() < Duration::from_secs(20) {
        sampler.turn(began.elapsed().as_secs_f64(), Duration::from_millis(5));
        std::thread::sleep(Duration::from_millis(20));
    }
    for pid in tasks::family(child.id()).into_iter().rev() {
        let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    child.wait().unwrap();
    let found = sampler.finish();
    assert!(both(&found), "{found:?}");
    // Until it sleeps it runs.
    let runs = seconds(&found, "sleep", Place::Running);
    let sleeps = seconds(&found, "sleep", Place::Sleep);
    assert!(runs < sleeps / 2.0, "{found:?}");
}

#[test]
fn processes_that_end_between_two_looks_are_no_trouble() {
    let sleeps = |seconds: &str| {
        let command = |_| std::process::Command::new("sleep").arg(seconds).spawn();
        (0..8).map(command).collect::<Result<Vec<_>, _>>().unwrap()
    };
    let mut all = sleeps("60");
    let subject = Subject::Family(std::process::id());
    let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
    // It leaves out this process itself, and knows its children.
    sampler.turn(0.0, Duration::from_secs(1));
    for child in &mut all {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // No new list is due for that long: each of them is looked for.
    sampler.listing.set_duration(Duration::from_secs(1));
    sampler.turn(0.1, Duration::from_secs(1));
    let knows = |pid: u32| sampler.known.keys().any(|thread| thread.pid == pid);
    assert!(!all.iter().any(|child| knows(child.id())), "{sampler:?}");
}

#[test]
fn drained_looks_keep_their_threads() {
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let subject = Subject::Family(child.id());
    let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
    let mut turn = |at: u32| {
        sampler.turn(f64::from(at) / 10.0, Duration::from_millis(5));
        let found = sampler.drain();
        assert_eq!(found.threads.len(), 1, "{found:?}");
        found.samples.iter().map(|s| s.stands_for_s).sum::<f64>()
    };
    // The name of a program that has just been started may still be that of the shell.
    let sums: Vec<f64> = (0..5).map(&mut turn).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(sums[0], 0.0);
    assert!(
        (sums[1..].iter().sum::<f64>() - 0.4).abs() < 1e-9,
        "{sums:?}"
    );
}

#[test]
fn thinning_keeps_the_time() {
    let sample = |thread, at| Sample {
        at_s: f64::from(at),
        stands_for_s: 1.0,
        thread,
        place: Place::Io,
        stack: 0,
        call: None,
        below: None,
        nowhere: false,
    };
    let mut all: Vec<Sample> = (0..100)
        .flat_map(|at| [sample(0, at), sample(1, at)])
        .collect();
    thin(&mut all);
    assert_eq!(all.len(), 100);
    assert_eq!(all.iter().map(|s| s.stands_for_s).sum::<f64>(), 200.0);
}

#[test]
fn a_thread_is_seen_as_before_until_it_runs_again() {
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let thread = Thread {
        pid: child.id(),
        tid: child.id(),
    };
    let subject = Subject::Process(child.id());
    let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
    let began = Instant::now();
    let mut look = |mark: bool| {
        let before = sampler.found.samples.len();
        sampler.turn(began.elapsed().as_secs_f64(), Duration::from_secs(1));
        let seen = sampler.known.get_mut(&thread);
        let seen = seen.and_then(|known| known.seen.as_mut());
        if let Some((_, Some(sample))) = seen
            && mark
        {
            // No look sees this.
            sample.nowhere = true;
        }
        std::thread::sleep(Duration::from_millis(5));
        let fresh = sampler.found.samples[before..].first();
        fresh.is_some_and(|sample| sample.place == Place::Sleep && sample.nowhere)
    };
    while !look(true) && began.elapsed() < Duration::from_secs(20) {}
    assert!(look(false), "it sleeps on");
    let pid = rustix::process::Pid::from_raw(thread.pid as i32).unwrap();
    for signal in [rustix::process::Signal::STOP, rustix::process::Signal::CONT] {
        rustix::process::kill_process(pid, signal).unwrap();
    }
    while look(false) && began.elapsed() < Duration::from_secs(20) {}
    assert!(!look(false), "it has run");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_first_look_at_a_blocked_thread_stands_for_little_and_the_next_for_all() {
    if testkit::gate::lacks(&[testkit::gate::Need::Tool("fsfreeze")]) {
        return;
    }
    let Some(fs) = LoopFs::or_skip(Fs::Ext4, "nodiscard", 32) else {
        return;
    };
    let at = fs.path().to_str().unwrap();
    let mut child = std::process::Command::new("sh")
        .args(["-c", "read go; echo > \"$0\"/file", at])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let subject = Subject::Process(child.id());
    let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
    sampler.turn(0.0, Duration::from_secs(1));
    must("fsfreeze", &["-f", at]);
    drop(child.stdin.take());
    let thread = Thread {
        pid: child.id(),
        tid: child.id(),
    };
    let began = Instant::now();
    let is_blocked = || {
        thread
            .stat()
            .is_some_and(|stat| stat.state == State::Blocked)
    };
    while !is_blocked() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let times = [40.0, 40.9].map(|now_s| {
        sampler.turn(now_s, Duration::from_secs(1));
        sampler
            .found
            .samples
            .last()
            .map(|one| (one.place, one.stands_for_s))
    });
    must("fsfreeze", &["-u", at]);
    child.wait().unwrap();
    let [first, next] = times.map(Option::unwrap);
    assert_eq!(first, (Place::Frozen, FIRST_S));
    assert_eq!(next.0, Place::Frozen);
    assert!((next.1 - 0.9).abs() < 1e-9, "{next:?}");
}
