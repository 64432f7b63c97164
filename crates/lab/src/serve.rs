//! The process behind a drive.
//!
//! It does nothing but serve the FUSE file and the control socket. The loop
//! device over the file, the file system on it and everything that reads it
//! belong to other processes: one that waited for itself could not even be
//! killed.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ssd::{Card, Drive};

use crate::control::{self, Order, Reply};
use crate::device::Device;
use crate::error::LabError;
use crate::faults::Fault;
use crate::fuse::{self, Reply as FuseReply, Session};
use crate::guardian::{self, Guardian};
use crate::place::Place;
use crate::spec::Spec;
use crate::store::{Content, Store};
use crate::trip::Looks;

/// A client that has sent no whole message after this time is dropped.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves the drive in `dir`, until an order stops it or its file is unmounted. This is the whole
/// life of a process that [`Lab::up`](crate::Lab::up) started; it must have no other threads.
///
/// # Errors
/// If the drive can't be made, with what to do.
pub fn serve(dir: &Path) -> Result<(), LabError> {
    if guardian::is_wanted() {
        return guardian::guard(dir);
    }
    // Away from the terminal of whoever made it.
    let _ = rustix::process::setsid();
    let place = Place::new(dir.to_owned());
    let _claim = place
        .claim()
        .map_err(LabError::io("cannot lock the server's file in", dir))?;
    // Before there is anything to take down.
    let guardian = Guardian::start().map_err(LabError::io("cannot start the guardian of", dir))?;
    if let Err((call, error)) = protect() {
        log(&format!(
            "{call}: {error}; under memory pressure this drive may hang"
        ));
    }
    // A drive isn't slower when the processor is busy.
    if let Err(errno) = rustix::process::setpriority_process(None, -20) {
        log(&format!(
            "setpriority: {errno}; beside other work this drive may be late"
        ));
    }
    let spec = place.read_spec()?;
    spec.check()?;
    let card = spec.card()?;
    let device = Arc::new(make(&spec, &card)?);
    let granule = u32::try_from(card.figures().granule).unwrap_or(4096);
    let (size, on) = (spec.size_bytes, place.fuse());
    let session = fuse::mount(&device, size, granule, &on)
        .map_err(LabError::io("cannot mount FUSE on", on))?;

    let timekeeper = start("lab-time", &device, |d| d.keep_time())?;
    let sweeper = start("lab-sweep", &device, |d| d.store().sweep())?;
    let listener = listen(&place)?;
    let end = answer_orders(&listener, &device, &place, spec, session, guardian);
    device.close();
    let _ = timekeeper.join();
    let _ = sweeper.join();
    device.store().finish();
    end.map_err(LabError::io("the FUSE session ended:", place.fuse()))
}

fn make(spec: &Spec, card: &Card) -> Result<Device<FuseReply>, LabError> {
    // Without a limit its file system limits a store.
    let limit = spec.store_limit_bytes.unwrap_or(u64::MAX);
    let shown = spec.store.as_deref().unwrap_or(Path::new("(memory)"));
    let content = if spec.keep {
        Content::Keep
    } else {
        Content::Empty
    };
    let store = Store::new(
        spec.store.as_deref().map(|file| (file, content)),
        spec.size_bytes,
        limit,
        spec.volatile_cache,
    )
    .map_err(LabError::io("cannot make the store", shown))?;
    let mut drive = Drive::new(card.figures().clone(), spec.size_bytes, spec.seed);
    if spec.premapped {
        drive.premap(0..spec.size_bytes);
        store.premap(0..spec.size_bytes);
    }
    if spec.aged > 0.0 {
        drive.age(spec.aged);
    }
    if spec.keep {
        let data = store
            .data()
            .map_err(LabError::io("cannot read the store", shown))?;
        data.into_iter().for_each(|range| drive.premap(range));
    }
    Ok(Device::new(drive, store, spec.slower))
}

fn start(
    name: &str,
    device: &Arc<Device<FuseReply>>,
    work: impl FnOnce(&Device<FuseReply>) + Send + 'static,
) -> Result<thread::JoinHandle<()>, LabError> {
    let device = Arc::clone(device);
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&device))
        .map_err(LabError::io("cannot start thread", name))
}

fn listen(place: &Place) -> Result<UnixListener, LabError> {
    let path = place.control();
    let listener = UnixListener::bind(&path);
    // Nobody else can enter the directory meanwhile.
    listener
        .and_then(|l| fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map(|()| l))
        .map_err(LabError::io("cannot make the control socket", &path))
}

/// Answers orders until one of them stops the drive, or the session ends by itself.
fn answer_orders(
    listener: &UnixListener,
    device: &Arc<Device<FuseReply>>,
    place: &Place,
    mut spec: Spec,
    session: Session,
    mut guardian: Guardian,
) -> io::Result<()> {
    // Looks up from time to time, to see whether the file was unmounted, or the
    // guardian killed.
    let mut waits = rustix::event::PollFd::new(listener, rustix::event::PollFlags::IN);
    let mut looks = Looks::new();
    loop {
        let span = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: looks.every().subsec_nanos().into(),
        };
        let ready = rustix::event::poll(std::slice::from_mut(&mut waits), Some(&span));
        if session.is_finished() {
            return session.end();
        }
        guardian.keep();
        looks.keep(device, place);
        if !ready.is_ok_and(|ready| ready > 0) {
            continue;
        }
        let Ok((mut stream, _)) = listener.accept() else {
            // Not even memory for that: whoever waits there is asked again.
            thread::sleep(PATIENCE / 100);
            continue;
        };
        let order = read(&stream);
        if let Ok(Order::Stop) = order {
            // The caller has detached the loop device, so this isn't busy; and
            // if it is, the caller sees the server live on.
            let _ = control::send(&mut stream, &Reply::Done);
            return session.unmount_and_join();
        }
        let reply = match order {
            Ok(Order::Stats) => Reply::Stats(Box::new(device.stats())),
            Ok(order) => obey(order, device, place, &mut spec, &mut looks),
            Err(error) => Reply::Refused(format!("cannot understand this order: {error}")),
        };
        // Whoever asked may be gone.
        let _ = control::send(&mut stream, &reply);
    }
}

fn read(stream: &UnixStream) -> io::Result<Order> {
    stream.set_write_timeout(Some(PATIENCE))?;
    control::receive(stream, PATIENCE)
}

fn obey(
    order: Order,
    device: &Device<FuseReply>,
    place: &Place,
    spec: &mut Spec,
    looks: &mut Looks,
) -> Reply {
    match order {
        // The last two are carried out where they come in.
        Order::Ping | Order::Stop | Order::Stats => {}
        Order::ResetStats => device.reset_stats(),
        Order::Set(changes) => match set(&changes, place, spec) {
            Ok(card) => device.set_card(&card),
            Err(why) => return Reply::Refused(why),
        },
        Order::Tune(side) => {
            if let Some((depth, nanos)) = side {
                device.reader_side(depth as usize, Duration::from_nanos(nanos));
            }
            looks.look(device, place);
        }
        Order::Fault(text) => match text
            .parse()
            .and_then(|fault: Fault| fault.fits(spec.size_bytes))
        {
            Ok(fault) => device.add_fault(fault),
            Err(error) => return Reply::Refused(error.to_string()),
        },
        Order::ClearFaults => device.clear_faults(),
        Order::CutPower => {
            if let Err(error) = device.cut_power() {
                return Reply::Refused(format!("cannot take back what wasn't flushed: {error}"));
            }
        }
        Order::RestorePower => device.restore_power(),
        Order::HangMs(ms) => device.hang(Duration::from_millis(ms)),
    }
    Reply::Done
}

/// Changes figures, and stores them in the specification, which a record made on the drive repeats.
fn set(changes: &[String], place: &Place, spec: &mut Spec) -> Result<Card, String> {
    let old = spec.card().map_err(|error| error.to_string())?;
    let changes = changes.iter().map(String::as_str);
    let card = old
        .with_all(changes)
        .map_err(|(change, why)| format!("{change}: {why}"))?;
    let new = card.figures();
    let fixed = if old.figures().granule != new.granule {
        Some("granule")
    } else if old.figures().discard.is_some() != new.discard.is_some() {
        Some("supported")
    } else if old.figures().flash != new.flash {
        Some("flash.geometry")
    } else {
        None
    };
    if let Some(key) = fixed {
        return Err(format!(
            "`{key}` can't be changed while the drive is there, for the kernel asked for it when it \
             was made: take the drive down, and make it with `lab up --set {key}=VALUE`"
        ));
    }
    let new = Spec {
        card_toml: card.to_string(),
        ..spec.clone()
    };
    place.write_spec(&new).map_err(|error| error.to_string())?;
    if card.figures().read != old.figures().read {
        // It is a comparison with figures that the drive hasn't any more.
        let _ = fs::remove_file(place.trip());
    }
    *spec = new;
    Ok(card)
}

/// Lets neither a lack of memory nor its writing back end or stop this process,
/// as far as that can be had.
pub(crate) fn protect() -> Result<(), (&'static str, io::Error)> {
    // Whoever is killed for lack of memory, let it be somebody else.
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    leave_memory_cgroup();
    linux::memory::never_wait_for_writeback()
}

/// Moves this process to a cgroup that doesn't limit memory, if there is one.
///
/// A cgroup may be full of pages to be written to this drive. Then the server would wait for them,
/// and they for the server. Linux 6.12 mm/vmscan.c waits for the writeback of pages of version 1's
/// cgroups unless `PR_SET_IO_FLUSHER` was permitted, and with that the allocation fails.
fn leave_memory_cgroup() {
    for root in ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"] {
        // Of version 2 the root hands no limits down; of version 1 it has none.
        let _ = fs::write(Path::new(root).join("cgroup.procs"), "0");
    }
}

/// Writes a line to the drive's log, to which standard error leads.
pub(crate) fn log(line: &str) {
    let _ = rustix::io::write(rustix::stdio::stderr(), format!("{line}\n").as_bytes());
}
