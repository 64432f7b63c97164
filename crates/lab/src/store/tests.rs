use std::io;
use std::os::fd::AsRawFd;

use proptest::prelude::*;

use super::*;

const SIZE: usize = 64 << 10;

#[derive(Debug, Clone)]
enum Step {
    Write(u8),
    Free,
    Premap,
    Flush,
    Cut,
}

fn steps() -> impl Strategy<Value = Vec<(Step, usize, usize)>> {
    let step = prop_oneof![
        4 => any::<u8>().prop_map(Step::Write),
        2 => Just(Step::Free),
        1 => Just(Step::Premap),
        1 => Just(Step::Flush),
        1 => Just(Step::Cut),
    ];
    // Sectors, as the kernel sends them.
    let place = (step, 0..SIZE / 512, 1..40_usize);
    proptest::collection::vec(
        place.prop_map(|(step, at, len)| {
            let at = at * 512;
            (step, at, (at + len * 512).min(SIZE))
        }),
        1..40,
    )
}

/// Does the same to a store, whose sweeper runs beside it, and to plain
/// bytes; they must read the same after each step.
fn compare(steps: Vec<(Step, usize, usize)>, volatile: bool) {
    let store = Store::new(None, SIZE as u64, u64::MAX, volatile).unwrap();
    let mut bytes = vec![0; SIZE];
    std::thread::scope(|scope| {
        scope.spawn(|| store.sweep());
        for (step, at, end) in steps {
            let range = at as u64..end as u64;
            match step {
                Step::Write(value) => {
                    let data = vec![value; end - at];
                    store.write(at as u64, &data).unwrap();
                    bytes[at..end].copy_from_slice(&data);
                }
                Step::Free => {
                    store.free(range);
                    bytes[at..end].fill(0);
                }
                Step::Premap => {
                    store.premap(range);
                    pattern(at as u64, &mut bytes[at..end]);
                }
                Step::Flush => {
                    let flush = store.begin_flush();
                    store.flushed(flush);
                }
                // Without a volatile cache nothing is lost.
                Step::Cut => store.cut_power().unwrap(),
            }
            let mut read = vec![1; SIZE];
            store.read(0, &mut read).unwrap();
            if read != bytes {
                store.close();
                panic!("after {step:?} {at}..{end}");
            }
        }
        store.close();
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reads_what_plain_bytes_would(steps in steps()) {
        compare(steps, false);
    }

    #[test]
    fn keeping_earlier_contents_changes_nothing(steps in steps()) {
        let steps = steps.into_iter().filter(|(step, ..)| !matches!(step, Step::Cut));
        compare(steps.collect(), true);
    }
}

#[test]
fn what_was_discarded_can_be_written_elsewhere_at_once() {
    let (size, half) = (32 << 20, 16 << 20);
    let store = Store::new(None, size, half, false).unwrap();
    let data = vec![1; 1 << 20];
    std::thread::scope(|scope| {
        scope.spawn(|| store.sweep());
        let fill = |from: u64| -> io::Result<()> {
            (from..from + half)
                .step_by(data.len())
                .try_for_each(|at| store.write(at, &data))
        };
        let outcome = (|| {
            fill(0)?;
            for turn in 1..5 {
                // Full, all of it discarded, and full again.
                let from = turn % 2 * half;
                store.free(half - from..half - from + half);
                fill(from)?;
            }
            Ok::<_, io::Error>(fill(half).is_err())
        })();
        store.close();
        assert!(outcome.unwrap(), "more than it may hold");
    });
    assert_eq!(store.refused(), 1);
}

#[test]
fn a_cut_takes_back_what_no_flush_covered() {
    let store = Store::new(None, SIZE as u64, u64::MAX, true).unwrap();
    let read = |at| {
        let mut byte = [0];
        store.read(at, &mut byte).unwrap();
        byte[0]
    };
    store.premap(8192..SIZE as u64);
    store.write(0, &[1; 512]).unwrap();
    let flush = store.begin_flush();
    store.flushed(flush);
    store.write(512, &[2; 512]).unwrap();
    store.write(8192, &[3; 512]).unwrap();
    store.cut_power().unwrap();
    let mut first = [0];
    pattern(8192, &mut first);
    assert_eq!((read(0), read(512), read(8192)), (1, 0, first[0]));
}

/// A store with a limit, and its sweeper beside what is done to it.
fn swept(size: u64, limit: u64, work: impl FnOnce(&Store)) {
    struct Closes<'a>(&'a Store);
    impl Drop for Closes<'_> {
        fn drop(&mut self) {
            self.0.close();
        }
    }
    let store = Store::new(None, size, limit, false).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| store.sweep());
        let closes = Closes(&store);
        work(closes.0);
    });
}

#[test]
fn space_that_is_freed_this_very_moment_is_there() {
    let page = [1; 4096];
    swept(1 << 20, 4096, |store| {
        store.write(0, &page).unwrap();
        for turn in 1..20_000 {
            let (old, new) = ((turn - 1) % 2 * 4096, turn % 2 * 4096);
            store.free(old..old + 4096);
            store
                .write(new, &page)
                .unwrap_or_else(|e| panic!("turn {turn}: {e}"));
        }
    });
}

#[test]
fn sectors_take_whole_pages_of_the_limit() {
    swept(1 << 20, 64 << 10, |store| {
        let kept = (0..256_u64).filter(|page| store.write(page * 4096, &[1; 512]).is_ok());
        assert_eq!(kept.count(), 16);
        assert!(store.allocated().unwrap() <= 64 << 10);
    });
}

#[test]
fn nothing_lies_behind_the_end() {
    let store = Store::new(None, SIZE as u64, u64::MAX, true).unwrap();
    store.free(4096..u64::MAX);
    assert_eq!(store.lock().freed, Extents::from(4096..SIZE as u64));
}

#[test]
fn no_two_drives_keep_their_data_in_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let open = || Store::new(Some((&path, Content::Empty)), SIZE as u64, u64::MAX, false);
    let first = open().unwrap();
    first.write(0, &[7; 512]).unwrap();
    let error = open().unwrap_err().to_string();
    assert!(error.contains("another drive"), "{error}");
    let mut byte = [0];
    first.read(0, &mut byte).unwrap();
    assert_eq!(byte, [7]);
    drop(first);
    let mut byte = [1];
    open().unwrap().read(0, &mut byte).unwrap();
    assert_eq!(byte, [0], "a new drive is empty");
}

#[test]
fn a_write_that_fails_brings_nothing_back() {
    let mut store = Store::new(None, SIZE as u64, u64::MAX, false).unwrap();
    store.write(0, &[7; 4096]).unwrap();
    store.free(0..4096);
    store.premap(8192..12_288);
    let path = format!("/proc/self/fd/{}", store.file.as_raw_fd());
    store.file = File::open(path).unwrap();
    store.write(0, &[8; 4096]).unwrap_err();
    store.write(8192, &[8; 4096]).unwrap_err();
    let mut read = [1; 16 << 10];
    store.read(0, &mut read).unwrap();
    let mut there = [0; 4096];
    pattern(8192, &mut there);
    assert!(read[..8192].iter().all(|&byte| byte == 0));
    assert_eq!(read[8192..12_288], there);
}
