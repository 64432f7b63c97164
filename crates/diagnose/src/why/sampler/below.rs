//! The file system or device that a thread waits for.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use linux::tasks::{self, Call, Thread};

use super::super::frames::{Place, place};
use super::{Sample, Sampler};

/// Of a process with more files open than this nobody asks on which devices they are.
const MOST_FILES: usize = 64;

/// The files that a process has open are asked for again after so long, in seconds.
const FILES_S: f64 = 1.0;

/// The device through which a process serves a file system.
const FUSE: &str = "/dev/fuse";

/// The link of a descriptor that is a ring of io_uring.
const RING: &str = "anon_inode:[io_uring]";

/// The facts that a process' open files show.
#[derive(Debug, Clone)]
pub(super) struct Open {
    /// Where all of them are that count for a queue.
    place: Option<usize>,
    /// Whether it serves a file system.
    serves: bool,
    /// The descriptors that are rings of io_uring.
    rings: Vec<u64>,
}

/// Whether a function of a stack is that of a system call, on x86-64 and ARM.
pub(super) fn is_of_call(function: &str) -> bool {
    const BEGIN: [&str; 4] = ["do_syscall_64", "__x64_sys_", "el0_svc", "__arm64_sys_"];
    BEGIN.iter().any(|begin| function.starts_with(begin))
}

impl Sampler {
    /// The file system or device that a call works on. `None`: it is not known, or there are
    /// several.
    pub(super) fn below(
        &mut self,
        thread: Thread,
        call: Option<Call>,
        now_s: f64,
    ) -> Result<Option<usize>, Late> {
        Ok(match call {
            None => None,
            Some(call) if call.has_descriptor() => self.below_path(thread.descriptor(call.first)),
            Some(call) if call.is_of_queue() => self.below_queue(thread, now_s),
            Some(call) => return self.below_named(thread, call),
        })
    }

    /// The place of a call that takes a directory and a path. While a thread is in the same call
    /// at each look, it is asked for once.
    fn below_named(&mut self, thread: Thread, call: Call) -> Result<Option<usize>, Late> {
        let Some(name) = call.file_name() else {
            return Ok(None);
        };
        let known = self.named.get(&thread);
        if let Some((_, place)) = known.filter(|one| one.0 == call) {
            return Ok(*place);
        }
        let path = self.memory.path(thread, name.path);
        let file = thread.named(name, path.clone().unwrap_or_default().as_deref());
        let place = file.and_then(|file| self.below_path(file.path()));
        match path {
            Err(Late) if place.is_none() => return Err(Late),
            Err(Late) => {}
            Ok(_) => {
                self.named.insert(thread, (call, place));
            }
        }
        Ok(place)
    }

    /// Whether a server waits in its ring for requests, and not for storage. Nothing is in flight
    /// there, or it answers for a file system: FUSE over io_uring keeps an operation in flight for
    /// each request to come.
    pub(super) fn awaits_requests(&mut self, thread: Thread, call: &Call, now_s: f64) -> bool {
        call.name() == Some("io_uring_enter")
            && (self.in_flight(thread, call, now_s) == Some(0)
                || self.open_of(thread, now_s).serves)
    }

    /// Operations in flight in the ring that a thread waits at. A program may name its ring by an
    /// index instead of a descriptor. Then they are known if the process has one ring, or if none of
    /// its rings has any.
    fn in_flight(&mut self, thread: Thread, call: &Call, now_s: f64) -> Option<u32> {
        thread.ring_in_flight(call.first).or_else(|| {
            let rings = self.open_of(thread, now_s).rings;
            let all = rings.iter().map(|ring| thread.ring_in_flight(*ring));
            let all: Vec<u32> = all.collect::<Option<_>>()?;
            let is_idle = || all.iter().all(|one| *one == 0);
            all.first().copied().filter(|_| all.len() == 1 || is_idle())
        })
    }

    /// The place of a thread with this stack.
    pub(super) fn place_of(&mut self, thread: Thread, sample: &Sample, stack: &[String]) -> Place {
        let found = place(stack.iter().map(String::as_str));
        let ring = sample
            .call
            .filter(|call| call.name() == Some("io_uring_enter"));
        let ring = ring.filter(|_| found == Place::Completions);
        let in_flight = ring.and_then(|call| self.in_flight(thread, &call, sample.at_s));
        in_flight.map_or(found, |_| Place::Io)
    }

    /// The place that a queue's operations go to, if it is the only one of the process' open files.
    /// Of a process with files that bypass the page cache, these alone count. The kernel does not
    /// show the files of a queue.
    fn below_queue(&mut self, thread: Thread, now_s: f64) -> Option<usize> {
        self.open_of(thread, now_s).place
    }

    /// The facts that a process' open files show.
    fn open_of(&mut self, thread: Thread, now_s: f64) -> Open {
        let known = self.open_at.get(&thread.pid);
        if let Some((_, open)) = known.filter(|one| now_s - one.0 < FILES_S) {
            return open.clone();
        }
        let all = thread.descriptors();
        let mut places: Vec<usize> = Vec::new();
        let (mut serves, mut rings) = (false, Vec::new());
        for number in all.iter().take(MOST_FILES) {
            let link = std::fs::read_link(thread.descriptor(*number)).unwrap_or_default();
            serves |= link.as_os_str() == FUSE;
            rings.extend(Some(*number).filter(|_| link.as_os_str() == RING));
        }
        if all.len() <= MOST_FILES {
            let direct = all.iter().copied().filter(|one| thread.is_direct(*one));
            let direct: Vec<u64> = direct.collect();
            let all = if direct.is_empty() { all } else { direct };
            let paths = all.into_iter().map(|number| thread.descriptor(number));
            places.extend(paths.filter_map(|path| self.below_path(path)));
        }
        places.dedup();
        let open = Open {
            place: (places.len() == 1).then(|| places[0]),
            serves,
            rings,
        };
        self.open_at.insert(thread.pid, (now_s, open.clone()));
        open
    }

    pub(super) fn below_path(&mut self, path: PathBuf) -> Option<usize> {
        let number = tasks::device_of(&path)?;
        if let Some(known) = self.below.get(&number) {
            return *known;
        }
        let found = self.disks.place(&self.sys, &path, number);
        let index = found.map(|place| {
            let same = self.found.places.iter().position(|one| *one == place);
            same.unwrap_or_else(|| {
                self.found.places.push(place);
                self.found.places.len() - 1
            })
        });
        self.below.insert(number, index);
        index
    }
}

// Paths in the memory of other processes, without waiting for those who change its map.

/// So many paths are asked for in a turn at most.
const MOST: usize = 8;

/// An answer that takes longer comes too late.
const PATIENCE: Duration = Duration::from_millis(5);

/// A question is not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late;

/// A thread's address, asked for.
type Question = (Thread, u64);

/// A thread that reads memory. A process that waits for storage while it changes its memory's map
/// keeps that thread waiting, and not the sampler.
#[derive(Debug, Default)]
pub(super) struct Memory {
    reader: Option<(Sender<Question>, Receiver<Option<PathBuf>>)>,
    /// Whether an answer is outstanding that came too late.
    late: bool,
    asked: usize,
}

impl Memory {
    /// Allows a new turn's questions.
    pub(super) fn begin_turn(&mut self) {
        self.asked = 0;
    }

    /// The path at an address of a thread's memory.
    pub(super) fn path(&mut self, thread: Thread, address: u64) -> Result<Option<PathBuf>, Late> {
        if self.asked == MOST {
            return Err(Late);
        }
        self.asked += 1;
        let (ask, answers) = self.reader.get_or_insert_with(reader);
        if self.late {
            answers.try_recv().map_err(|_| Late)?;
            self.late = false;
        }
        ask.send((thread, address)).map_err(|_| Late)?;
        answers.recv_timeout(PATIENCE).map_err(|error| {
            self.late = error == RecvTimeoutError::Timeout;
            Late
        })
    }
}

/// A thread that answers until nobody asks any more.
fn reader() -> (Sender<Question>, Receiver<Option<PathBuf>>) {
    let (ask, asked) = channel::<Question>();
    let (tell, answers) = channel();
    let answer = move || {
        for (thread, address) in asked {
            if tell.send(thread.path_at(address)).is_err() {
                return;
            }
        }
    };
    // Without it every question fails.
    let _ = std::thread::Builder::new()
        .name("paths".to_owned())
        .spawn(answer);
    (ask, answers)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use linux::SysRoot;
    use storage::disks::Disks;
    use testkit::gate::{Need, lacks};
    use testkit::loop_fs::{Fs, LoopFs, must};

    use super::*;
    use crate::why::Subject;
    use crate::why::frames::Place;

    /// Two file systems, each on a loop device of its own.
    fn two() -> Option<(LoopFs, LoopFs)> {
        let one = LoopFs::or_skip(Fs::Ext4, "nodiscard", 32)?;
        Some((one, LoopFs::or_skip(Fs::Ext4, "discard", 32)?))
    }

    fn sampler() -> Sampler {
        let sys = SysRoot::host();
        let disks = Disks::now(&sys);
        Sampler::new(sys, Subject::All, disks)
    }

    fn call(name: &str) -> Call {
        let of = |number| Call {
            number,
            first: 3,
            second: 0,
        };
        let all = (0..1000).map(of);
        all.into_iter()
            .find(|call| call.name() == Some(name))
            .unwrap()
    }

    struct Frozen<'a>(&'a Path);

    impl Frozen<'_> {
        fn new(at: &Path) -> Frozen<'_> {
            must("fsfreeze", &["-f", at.to_str().unwrap()]);
            Frozen(at)
        }
    }

    impl Drop for Frozen<'_> {
        fn drop(&mut self) {
            let _ = Command::new("fsfreeze").arg("-u").arg(self.0).status();
        }
    }

    #[test]
    fn a_removal_waits_at_the_file_system_of_its_path() {
        let Some((held, other)) = two() else { return };
        for name in ["relative", "absolute"] {
            std::fs::write(held.path().join(name), name).unwrap();
        }
        std::fs::create_dir(held.path().join("tree")).unwrap();
        std::fs::write(held.path().join("tree/leaf"), "leaf").unwrap();
        let frozen = Frozen::new(held.path());
        let removal = |from: &Path, arguments: &[&str]| -> Child {
            let mut rm = Command::new("rm");
            rm.args(arguments).current_dir(from);
            rm.stdin(Stdio::null()).spawn().unwrap()
        };
        let absolute = held.path().join("absolute");
        let absolute = absolute.to_str().unwrap();
        let mut all = [
            removal(held.path(), &["-f", "relative"]),
            removal(other.path(), &["-f", absolute]),
            removal(held.path(), &["-rf", "tree"]),
        ];
        let places: Vec<Option<String>> = all.iter().map(|child| waits_at(child.id())).collect();
        drop(frozen);
        for child in &mut all {
            assert!(child.wait().unwrap().success());
        }
        let expected = Some(held.path().to_str().unwrap().to_owned());
        assert_eq!(places, [expected.clone(), expected.clone(), expected]);
    }

    /// The mount point that a process is seen to wait at.
    fn waits_at(pid: u32) -> Option<String> {
        let mut sampler = sampler();
        let thread = Thread { pid, tid: pid };
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            sampler.look_at(&[thread], began.elapsed().as_secs_f64(), &|_| false);
            let last = sampler.found.samples.last();
            let frozen = last.filter(|one| one.place == Place::Frozen);
            if let Some(place) = frozen.and_then(|one| one.below) {
                return Some(sampler.found.places[place].at.clone());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    #[test]
    fn a_queue_is_at_the_only_place_of_its_open_files() {
        let Some((one, other)) = two() else { return };
        let file = |at: &LoopFs, name: &str| File::create(at.path().join(name)).unwrap();
        let sleeper = |input: File, output: File| {
            // Without what the test inherited.
            let sleeps = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec sleep 60";
            let mut sleep = Command::new("sh");
            sleep.args(["-c", sleeps]).stdin(input).stdout(output);
            let child = sleep.stderr(Stdio::null()).spawn().unwrap();
            let (pid, tid) = (child.id(), child.id());
            let sleeps = || Thread { pid, tid }.wait_channel();
            // Until then it opens libraries.
            for _ in 0..500 {
                if sleeps().is_some_and(|function| function.contains("nanosleep")) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            child
        };
        let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        options.custom_flags(direct);
        let data = options.open(one.path().join("data")).unwrap();
        let mut database = sleeper(data, file(&other, "log"));
        let mut together = sleeper(file(&one, "a"), file(&one, "b"));
        let mut apart = sleeper(file(&one, "c"), file(&other, "d"));
        let mut sampler = sampler();
        let mut place = |child: &Child, name: &str| {
            let pid = child.id();
            let thread = Thread { pid, tid: pid };
            let below = sampler.below(thread, Some(call(name)), 1.0).unwrap();
            below.map(|index| sampler.found.places[index].at.clone())
        };
        for name in ["io_uring_enter", "io_getevents"] {
            let expected = Some(one.path().to_str().unwrap().to_owned());
            assert_eq!(place(&together, name), expected);
            assert_eq!(place(&database, name), expected);
            assert_eq!(place(&apart, name), None);
        }
        for child in [&mut together, &mut apart, &mut database] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn who_serves_a_file_system_waits_for_requests_in_its_ring() {
        if lacks(&[Need::Root, Need::File(FUSE)]) {
            return;
        }
        let open = |path: &str| File::options().read(true).write(true).open(path).unwrap();
        let (ring, other) = (call("io_uring_enter"), call("io_getevents"));
        for (path, expected) in [(FUSE, true), ("/dev/null", false)] {
            let mut sleep = Command::new("sleep")
                .arg("60")
                .stdin(open(path))
                .spawn()
                .unwrap();
            let pid = sleep.id();
            let thread = Thread { pid, tid: pid };
            let mut sampler = sampler();
            let waits = [&ring, &other].map(|call| sampler.awaits_requests(thread, call, 1.0));
            sleep.kill().unwrap();
            sleep.wait().unwrap();
            assert_eq!(waits, [expected, false], "{path}");
        }
    }

    #[test]
    fn an_idle_ring_that_is_registered_awaits_requests() {
        let Ok(ring) = load::ring::Ring::new(1) else {
            return;
        };
        let own = std::process::id();
        let thread = Thread { pid: own, tid: own };
        let is_ring = |number: &u64| {
            std::fs::read_link(thread.descriptor(*number)).is_ok_and(|link| link == Path::new(RING))
        };
        let number = thread.descriptors().into_iter().find(is_ring).unwrap();
        if thread.ring_in_flight(number).is_none() {
            return;
        }
        let pidfd = rustix::process::pidfd_open(
            rustix::process::getpid(),
            rustix::process::PidfdFlags::empty(),
        );
        let ring_too = || {
            let flags = rustix::process::PidfdGetfdFlags::empty();
            let pidfd = pidfd.as_ref().unwrap();
            rustix::process::pidfd_getfd(pidfd, number as i32, flags).unwrap()
        };
        for (input, expected) in [(Stdio::from(ring_too()), true), (Stdio::null(), false)] {
            let mut sleep = Command::new("sleep")
                .arg("60")
                .stdin(input)
                .spawn()
                .unwrap();
            let pid = sleep.id();
            let thread = Thread { pid, tid: pid };
            // It names no descriptor, as a program does that registered its ring.
            let waits = sampler().awaits_requests(thread, &call("io_uring_enter"), 1.0);
            sleep.kill().unwrap();
            sleep.wait().unwrap();
            assert_eq!(waits, expected);
        }
        drop(ring);
    }

    #[test]
    fn a_turn_asks_for_a_few_paths() {
        let pid = std::process::id();
        let own = Thread { pid, tid: pid };
        let address = c"/data/old".as_ptr() as u64;
        let mut memory = Memory::default();
        // A busy machine may be late.
        let found = loop {
            memory.begin_turn();
            if let Ok(found) = memory.path(own, address) {
                break found;
            }
        };
        assert_eq!(found, Some(PathBuf::from("/data/old")));
        for _ in 1..MOST {
            let _ = memory.path(own, address);
        }
        assert_eq!(memory.path(own, address), Err(Late));
    }
}
