use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use ssd::Card;

use super::*;

const MIB: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Data,
    Done,
    Failed,
}

/// Tells what was answered, after it did something else.
struct Tells {
    to: Sender<(&'static str, Said)>,
    name: &'static str,
    first: Option<Box<dyn FnOnce() + Send>>,
}

impl Tells {
    fn tell(self, said: Said) {
        if let Some(first) = self.first {
            first();
        }
        let _ = self.to.send((self.name, said));
    }
}

impl Answer for Tells {
    fn data(self, len: usize, read: impl FnOnce(&mut [u8]) -> io::Result<()>) {
        let done = read(&mut vec![0; len]);
        self.tell(done.map_or(Said::Failed, |()| Said::Data));
    }

    fn done(self) {
        self.tell(Said::Done);
    }

    fn fail(self, _: rustix::io::Errno) {
        self.tell(Said::Failed);
    }
}

/// A drive of 64 MiB like `ideal`, with figures changed.
fn device(changes: &[&str], volatile: bool) -> Arc<Device<Tells>> {
    let ideal = ssd::profiles::by_name("ideal").unwrap().clone();
    let change = |card: Card, change: &&str| card.with(change).unwrap();
    let card = changes.iter().fold(ideal, change);
    let drive = Drive::new(card.figures().clone(), 64 * MIB, 1);
    let store = Store::new(None, 64 * MIB, u64::MAX, volatile).unwrap();
    Arc::new(Device::new(drive, store, 1.0))
}

fn ask(device: &Device<Tells>, op: Op<'_>) -> Said {
    let (to, told) = channel();
    let name = "";
    device.submit(
        op,
        Tells {
            to,
            name,
            first: None,
        },
    );
    told.recv().unwrap().1
}

#[test]
fn a_discard_of_any_number_of_pieces_is_one_command() {
    let device = device(&["max_bytes=512"], false);
    assert_eq!(ask(&device, Op::Write(4096, &[1; 4096])), Said::Done);
    assert_eq!(ask(&device, Op::Discard(0..64 * MIB)), Said::Done);
    let discards = &device.stats().kinds[Kind::Discard as usize];
    assert_eq!((discards.commands, discards.bytes), (1, 64 * MIB));
    assert_eq!(device.stats().in_flight, 0);
}

#[test]
fn what_fails_is_counted_and_changes_nothing() {
    let device = device(&["max_bytes=1M"], false);
    for kind in [Kind::Discard, Kind::Zero] {
        device.clear_faults();
        ask(&device, Op::Write(0, &[7; 512]));
        device.add_fault(format!("{} error times 1", kind.name()).parse().unwrap());
        let op = || match kind {
            Kind::Zero => Op::Zero(0..4 * MIB),
            _ => Op::Discard(0..4 * MIB),
        };
        assert_eq!(ask(&device, op()), Said::Failed);
        let count = &device.stats().kinds[kind as usize];
        assert_eq!((count.commands, count.failed), (1, 1), "{kind:?}");
        let mut byte = [0];
        device.store().read(0, &mut byte).unwrap();
        assert_eq!(byte, [7], "{kind:?}");
        assert_eq!(ask(&device, op()), Said::Done);
    }
    device.add_fault("discard nothing".parse().unwrap());
    ask(&device, Op::Write(0, &[7; 512]));
    assert_eq!(ask(&device, Op::Discard(0..4 * MIB)), Said::Done);
    let discards = &device.stats().kinds[Kind::Discard as usize];
    assert_eq!((discards.commands, discards.bytes), (3, 12 * MIB));
}

#[test]
fn a_drive_that_has_power_again_does_nothing_of_before() {
    let device = device(&["queue=exclusive", "phi=1", "a=1h"], false);
    let (to, told) = channel();
    let tells = |name| Tells {
        to: to.clone(),
        name,
        first: None,
    };
    device.submit(Op::Write(0, &[7; 512]), tells("write"));
    device.submit(Op::Discard(0..MIB), tells("discard"));
    device.submit(Op::Read(0..512), tells("read"));
    device.cut_power().unwrap();
    device.restore_power();
    device.submit(Op::Read(0..512), tells("again"));
    let mut said: Vec<_> = told.try_iter().collect();
    said[1..3].sort_unstable();
    let expected = [
        ("write", Said::Done),
        ("discard", Said::Failed),
        ("read", Said::Failed),
        ("again", Said::Data),
    ];
    assert_eq!(said, expected);
    assert_eq!(device.stats().mapped_bytes, 4096);
}

/// Whatever is done to a drive meanwhile, each command is answered once.
#[test]
fn no_answer_is_lost_or_given_twice() {
    const EACH: usize = 4000;
    let card = [
        "queue=exclusive",
        "phi=1",
        "a=20us",
        "max_bytes=64k",
        "read.latency=10us",
        "read.jitter=30%",
        "read.parallelism=3",
        "write.latency=5us",
        "write.parallelism=2",
        "flush.latency=15us",
    ];
    let device = device(&card, true);
    device.add_fault("read error rate 5%".parse().unwrap());
    device.add_fault("discard error rate 5%".parse().unwrap());
    let (to, told) = channel();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| device.keep_time());
        scope.spawn(|| device.store().sweep());
        for (name, seed) in [("one", 1), ("other", 2)] {
            let to = to.clone();
            let device = &device;
            scope.spawn(move || {
                let mut rng = ssd::Rng::new(seed);
                for _ in 0..EACH {
                    let at = rng.below(128) * 4096;
                    let end = at + (1 + rng.below(64)) * 4096;
                    let first = None;
                    let to = to.clone();
                    let answer = Tells { to, name, first };
                    let op = match rng.below(8) {
                        0..4 => Op::Read(at..end),
                        4 => Op::Flush,
                        5 => Op::Discard(at..end),
                        6 => Op::Zero(at..end),
                        _ => Op::Write(at, &[1; 4096]),
                    };
                    device.submit(op, answer);
                }
            });
        }
        scope.spawn(|| {
            for turn in 0_u64.. {
                let changed = |text: &str| {
                    let ideal = ssd::profiles::by_name("ideal").unwrap();
                    device.set_card(&ideal.with(text).unwrap());
                };
                match turn % 5 {
                    0 => device.hang(Duration::from_millis(1)),
                    1 => device.cut_power().unwrap(),
                    2 => device.restore_power(),
                    3 => changed("a=30us"),
                    _ => changed("supported=false"),
                }
                if over.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(Duration::from_micros(300));
            }
        });
        let patience = Duration::from_secs(60);
        let mut answers = 0;
        let all = loop {
            if answers == 2 * EACH {
                break true;
            }
            if told.recv_timeout(patience).is_err() {
                break false;
            }
            answers += 1;
        };
        over.store(true, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        device.close();
        assert!(all, "{answers} answers");
    });
    assert_eq!(
        told.try_iter().count(),
        0,
        "one more than there were commands"
    );
    let stats = device.stats();
    let commands: u64 = stats.kinds.iter().map(|kind| kind.commands).sum();
    assert_eq!((stats.in_flight, commands), (0, 2 * EACH as u64));
}

#[test]
fn a_power_cut_leaves_nothing_acknowledged_that_it_takes_back() {
    let device = device(&[], true);
    let (to, told) = channel();
    let tells = |name, first| Tells {
        to: to.clone(),
        name,
        first,
    };
    // All of them are done at the same moment, and the first one's answer is
    // when the power goes and comes again.
    device.hang(Duration::from_millis(20));
    let cuts = Arc::clone(&device);
    let cut = move || {
        cuts.cut_power().unwrap();
        cuts.restore_power();
    };
    device.submit(Op::Write(0, &[1; 512]), tells("cut", Some(Box::new(cut))));
    device.submit(Op::Write(4096, &[2; 512]), tells("write", None));
    device.submit(Op::Flush, tells("flush", None));
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(ask(&device, Op::Read(0..512)), Said::Failed);
    assert_eq!(told.recv().unwrap(), ("cut", Said::Done));
    assert_eq!(told.recv().unwrap(), ("write", Said::Failed));
    assert_eq!(told.recv().unwrap(), ("flush", Said::Failed));
    let mut byte = [9];
    device.store().read(4096, &mut byte).unwrap();
    assert_eq!(byte, [0]);
}
