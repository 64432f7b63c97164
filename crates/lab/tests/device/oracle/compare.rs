//! Workers who change regions of their own, and readers who read everywhere.
//!
//! A worker knows what its region holds: whatever it reads must be what the
//! plain file holds. A reader knows it of the sectors that nobody changed while
//! it read.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::media::{Buffer, Drive, Oracle};
use super::step::{SECTOR, Step, What, place};

const WORKERS: u64 = 4;
const READERS: u64 = 2;
/// Small, so that most steps meet what earlier ones left.
const REGION: u64 = 6 << 20;
/// However slow the machine, so many steps are done.
const FEWEST: u64 = 500;
/// The part of the drive that is used. The rest stays zeros.
pub(super) const SIZE: u64 = (WORKERS * REGION) + (8 << 20);
/// The most steps with a change that a worker keeps.
const MEMORY: usize = 20_000;

/// One comparison.
pub(super) struct Comparison {
    drive: Drive,
    oracle: Oracle,
    end: Instant,
    stop: AtomicBool,
    steps: AtomicU64,
    overlapping: AtomicU64,
    difference: Mutex<Option<Difference>>,
}

/// The fault.
struct Difference {
    told: String,
    /// Where the two differ; empty if the drive failed instead.
    place: Range<u64>,
    /// The drive's data there.
    found: Vec<u8>,
}

/// The amount that was compared without a difference.
#[derive(Debug)]
pub(super) struct Compared {
    #[expect(dead_code, reason = "only printed")]
    pub(super) steps: u64,
    /// Sectors read beside their writers, unchanged meanwhile.
    pub(super) overlapping: u64,
}

/// Compares a device with a plain file, for `span` or until they differ. The device contains only
/// zeros and has at least [`SIZE`] bytes. An error describes the difference, with the seed and the
/// steps at its place.
pub(super) fn compare(device: &Path, seed: u64, span: Duration) -> Result<Compared, String> {
    let comparison = Comparison {
        drive: Drive::open(device),
        oracle: Oracle::new(SIZE),
        end: Instant::now() + span,
        stop: AtomicBool::new(false),
        steps: AtomicU64::new(0),
        overlapping: AtomicU64::new(0),
        difference: Mutex::default(),
    };
    let workers: Vec<Worker> = std::thread::scope(|scope| {
        let comparison = &comparison;
        for number in 0..READERS {
            let seed = seed ^ (1000 + number);
            scope.spawn(move || comparison.report(comparison.read_everywhere(seed)));
        }
        let start = |number| {
            let mut worker = Worker::new(number, seed);
            scope.spawn(move || {
                comparison.report(worker.work(comparison));
                worker
            })
        };
        let started: Vec<_> = (0..WORKERS).map(start).collect();
        started.into_iter().map(|t| t.join().unwrap()).collect()
    });
    comparison.report(comparison.check(false, &(0..SIZE), &mut Buffer::default()));
    match comparison.difference.into_inner().unwrap() {
        Some(difference) => {
            let owner = workers.iter().find(|w| w.owns(&difference.place));
            let history = owner.map_or(String::new(), |w| w.history(&difference));
            let told = difference.told;
            Err(format!("TRIMBENCH_SEED={seed}: {told}\n{history}"))
        }
        None => Ok(Compared {
            steps: comparison.steps.into_inner(),
            overlapping: comparison.overlapping.into_inner(),
        }),
    }
}

impl Comparison {
    fn goes_on(&self) -> bool {
        let enough = Instant::now() >= self.end && self.steps.load(Relaxed) >= FEWEST;
        !enough && !self.stop.load(Relaxed)
    }

    /// The first difference stops everybody.
    fn report(&self, outcome: Result<(), Difference>) {
        if let Err(difference) = outcome {
            self.stop.store(true, Relaxed);
            self.difference.lock().unwrap().get_or_insert(difference);
        }
    }

    /// Reads a range that nobody changes meanwhile.
    fn check(
        &self,
        direct: bool,
        range: &Range<u64>,
        memory: &mut Buffer,
    ) -> Result<(), Difference> {
        let found = memory.of(range.end - range.start);
        let read = self.drive.read(direct, range.start, found);
        read.map_err(|error| Difference::failed("read", range, &error))?;
        let mut expected = vec![0; found.len()];
        self.oracle.read(range.start, &mut expected);
        Difference::between(range.start, &expected, found).map_or(Ok(()), Err)
    }

    fn read_everywhere(&self, seed: u64) -> Result<(), Difference> {
        let mut rng = Rng::with_seed(seed);
        let mut memory = Buffer::default();
        while self.goes_on() {
            let range = place(&mut rng, &(0..SIZE), SECTOR);
            let found = memory.of(range.end - range.start);
            let before = self.oracle.marks(&range);
            let read = self.drive.read(rng.bool(), range.start, found);
            read.map_err(|error| Difference::failed("read", &range, &error))?;
            let mut expected = vec![0; found.len()];
            self.oracle.read(range.start, &mut expected);
            let after = self.oracle.marks(&range);
            let sector = SECTOR as usize;
            let sectors = expected.chunks(sector).zip(found.chunks(sector));
            let mut still = 0;
            for (i, (expected, found)) in sectors.enumerate() {
                if before[i] % 2 == 1 || before[i] != after[i] {
                    continue;
                }
                still += 1;
                let at = range.start + i as u64 * SECTOR;
                if let Some(mut difference) = Difference::between(at, expected, found) {
                    difference.told += "\nread beside who changes it, but not while it changed";
                    return Err(difference);
                }
            }
            self.overlapping.fetch_add(still, Relaxed);
        }
        Ok(())
    }
}

impl Difference {
    fn failed(what: &str, range: &Range<u64>, error: &std::io::Error) -> Difference {
        let (start, len) = (range.start, range.end - range.start);
        Difference {
            told: format!("{what} {start}+{len} failed: {error}"),
            place: start..start,
            found: Vec::new(),
        }
    }

    fn between(base: u64, expected: &[u8], found: &[u8]) -> Option<Difference> {
        let part = first_difference(expected, found)?;
        let shown = part.start..part.end.min(part.start + 16);
        let place = base + part.start as u64..base + part.end as u64;
        Some(Difference {
            told: format!(
                "bytes {}+{} differ\nexpected {:02x?} …\nfound    {:02x?} …",
                place.start,
                part.len(),
                &expected[shown.clone()],
                &found[shown],
            ),
            place,
            found: found[part].to_vec(),
        })
    }
}

/// From the first to the last byte that differs.
fn first_difference(expected: &[u8], found: &[u8]) -> Option<Range<usize>> {
    if expected == found {
        return None;
    }
    let differs = |&i: &usize| expected[i] != found[i];
    let first = (0..found.len()).find(differs)?;
    let last = (0..found.len()).rfind(differs)?;
    Some(first..last + 1)
}

/// Does one step after the other in a region of its own.
struct Worker {
    number: u64,
    region: Range<u64>,
    /// Of its steps and their data.
    seed: u64,
    changes: VecDeque<Step>,
    memory: Buffer,
}

impl Worker {
    fn new(number: u64, seed: u64) -> Worker {
        Worker {
            number,
            region: number * REGION..(number + 1) * REGION,
            seed: seed.wrapping_mul(31).wrapping_add(number),
            changes: VecDeque::new(),
            memory: Buffer::default(),
        }
    }

    fn work(&mut self, all: &Comparison) -> Result<(), Difference> {
        let mut rng = Rng::with_seed(self.seed);
        for number in 0.. {
            if !all.goes_on() {
                break;
            }
            let step = Step::draw(&mut rng, number, &self.region);
            self.act(all, &step).map_err(|mut difference| {
                difference.told += &format!("\nseen by worker {}: {step}", self.number);
                difference
            })?;
            all.steps.fetch_add(1, Relaxed);
        }
        all.check(true, &self.region, &mut self.memory)
    }

    fn act(&mut self, all: &Comparison, step: &Step) -> Result<(), Difference> {
        if matches!(step.what, What::ReadDirect | What::ReadBuffered) {
            return all.check(step.what == What::ReadDirect, &step.range, &mut self.memory);
        }
        let data = self.memory.of(step.range.end - step.range.start);
        if step.writes() {
            step.data(self.seed, data);
        } else {
            data.fill(0);
        }
        all.oracle.mark(&step.range);
        let done = all.drive.change(step, data);
        done.map_err(|error| Difference::failed("the change", &step.range, &error))?;
        all.oracle.write(step.range.start, data);
        all.oracle.mark(&step.range);
        if step.range.is_empty() {
            return Ok(());
        }
        if self.changes.len() == MEMORY {
            self.changes.pop_front();
        }
        self.changes.push_back(step.clone());
        Ok(())
    }

    fn owns(&self, place: &Range<u64>) -> bool {
        self.region.start <= place.start && place.start < self.region.end
    }

    /// Describes the steps at the place of a difference, and whose data were found there.
    fn history(&self, difference: &Difference) -> String {
        let (at, found) = (difference.place.start, &difference.found);
        let here = at..at + 1;
        let there: Vec<&Step> = self.changes.iter().filter(|c| c.touches(&here)).collect();
        if there.is_empty() {
            return format!("nothing has changed byte {at}");
        }
        let mut told = format!("what changed byte {at}, the latest last:");
        for step in &there[there.len().saturating_sub(12)..] {
            let mut data = vec![0; (step.range.end - step.range.start) as usize];
            if step.writes() {
                step.data(self.seed, &mut data);
            }
            let theirs = &data[(at - step.range.start) as usize..];
            let len = theirs.len().min(found.len());
            let is_found = theirs[..len] == found[..len];
            let mark = if is_found { "   <- what was found" } else { "" };
            told += &format!("\n  {step}{mark}");
        }
        told
    }
}
