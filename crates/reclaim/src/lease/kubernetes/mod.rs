//! A Lease of Kubernetes: taken, renewed by a thread of its own, and released.

mod api;
mod election;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use api::{Failure, Server, Written};
use election::{Candidate, Object, Tenure, Timing, micro_time};
use serde_json::json;

use crate::lease::LeaseError;

/// How often a candidate looks whether to stop.
const NAP: Duration = Duration::from_millis(100);

/// One Lease on one server, and who asks for it.
#[derive(Debug)]
struct Ours {
    server: Server,
    namespace: String,
    name: String,
    me: String,
    timing: Timing,
    began: Instant,
}

impl Ours {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn read(&self) -> Result<Object, Failure> {
        self.server.read(&self.namespace, &self.name)
    }

    fn write(&self, object: &Object) -> Result<Written, Failure> {
        self.server.write(&self.namespace, &self.name, object)
    }

    /// Takes it or renews it.
    fn hold(&self, object: &Object) -> Result<Written, Failure> {
        self.write(&object.held(&self.me, self.timing.duration, &time()))
    }
}

/// The time of day, for people: nobody reckons with it.
fn time() -> String {
    micro_time(since_1970())
}

fn since_1970() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

/// An identity that no other process has: the pod's or the machine's name, and a random number.
fn identity() -> String {
    let uname = rustix::system::uname();
    let host = uname.nodename().to_string_lossy().into_owned();
    format!("{host}_{:016x}", fastrand::u64(..))
}

/// Waits for the Lease; `None` if `stop` came first.
pub(crate) fn take(
    namespace: Option<&str>,
    name: &str,
    stop: &AtomicBool,
    note: &mut dyn FnMut(&str),
) -> Result<Option<Renewed>, LeaseError> {
    let server = Server::of_environment()?;
    let namespace = match namespace {
        Some(namespace) => namespace.to_owned(),
        None => server.namespace()?,
    };
    let ours = Ours {
        server,
        namespace,
        name: name.to_owned(),
        me: identity(),
        timing: Timing::default(),
        began: Instant::now(),
    };
    wait(ours, stop, note)
}

fn wait(
    ours: Ours,
    stop: &AtomicBool,
    note: &mut dyn FnMut(&str),
) -> Result<Option<Renewed>, LeaseError> {
    let mut candidate = Candidate::new(ours.me.clone(), ours.timing);
    let (mut waits, mut failed) = (false, false);
    while !stop.load(Ordering::Relaxed) {
        match attempt(&ours, &mut candidate) {
            Ok(Attempt::Taken(object, tenure)) => {
                return Ok(Some(Renewed::new(ours, object, tenure)));
            }
            Ok(Attempt::Held(holder)) if !waits => {
                let (namespace, name) = (&ours.namespace, &ours.name);
                note(&format!(
                    "waits for the Lease {namespace}/{name}, which {holder} holds"
                ));
                waits = true;
            }
            Ok(Attempt::Held(_)) => {}
            Err(Failure::Final(why)) => return Err(LeaseError::Refused(why)),
            Err(Failure::Passing(why)) if !failed => {
                note(&format!("lease=k8s: {why}; tries again"));
                failed = true;
            }
            Err(Failure::Passing(_)) => {}
        }
        pause(&ours, stop);
    }
    Ok(None)
}

/// Until the next look, a little longer or shorter each time: nodes that began together should not
/// ask together.
fn pause(ours: &Ours, stop: &AtomicBool) {
    let end = ours.now() + ours.timing.look.mul_f64(0.8 + 0.4 * fastrand::f64());
    while ours.now() < end && !stop.load(Ordering::Relaxed) {
        sleep(NAP);
    }
}

enum Attempt {
    Taken(Object, Tenure),
    /// By this one.
    Held(String),
}

fn attempt(ours: &Ours, candidate: &mut Candidate) -> Result<Attempt, Failure> {
    let object = ours.read()?;
    let holder = object.holder().unwrap_or("another").to_owned();
    let began = ours.now();
    if !candidate.may_take(&object, began) {
        return Ok(Attempt::Held(holder));
    }
    match ours.hold(&object)? {
        Written::Done(object) => Ok(Attempt::Taken(object, Tenure::renewed(began, ours.timing))),
        Written::Conflict => Ok(Attempt::Held("another".to_owned())),
    }
}

/// A Lease that a thread renews; dropping it releases it.
#[derive(Debug)]
pub(crate) struct Renewed {
    ours: Arc<Ours>,
    shared: Arc<Mutex<Shared>>,
    /// The thread, and what ends it.
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Shared {
    /// `None` once it was lost: what the holder did under it is over.
    tenure: Option<Tenure>,
    /// Why the last renewal failed.
    why: String,
}

impl Shared {
    fn holds(&mut self, now: Duration) -> bool {
        self.tenure = self.tenure.filter(|tenure| tenure.holds(now));
        self.tenure.is_some()
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Renewed {
    fn new(ours: Ours, object: Object, tenure: Tenure) -> Renewed {
        let ours = Arc::new(ours);
        let shared = Arc::new(Mutex::new(Shared {
            tenure: Some(tenure),
            why: String::new(),
        }));
        let (end, ended) = mpsc::channel();
        let (of_thread, for_thread) = (Arc::clone(&ours), Arc::clone(&shared));
        let thread = std::thread::spawn(move || {
            let mut object = object;
            let every = of_thread.timing.renew;
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                renew(&of_thread, &mut object, &for_thread);
                if !locked(&for_thread).holds(of_thread.now()) {
                    break;
                }
            }
            release(&of_thread, object);
        });
        Renewed {
            ours,
            shared,
            thread: Some((end, thread)),
        }
    }

    pub(crate) fn holds(&self) -> bool {
        locked(&self.shared).holds(self.ours.now())
    }

    pub(crate) fn why(&self) -> String {
        let (namespace, name) = (&self.ours.namespace, &self.ours.name);
        let why = locked(&self.shared).why.clone();
        format!("the Lease {namespace}/{name} is lost: {why}")
    }

    /// Stores an Event about the Lease.
    pub(crate) fn publish(&self, event: &super::Event<'_>) -> Result<(), String> {
        let Ours {
            namespace, name, ..
        } = &*self.ours;
        let now = record::units::utc(since_1970().as_secs_f64());
        let value = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": format!("{name}."), "namespace": namespace},
            "involvedObject": {
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": namespace, "name": name,
            },
            "type": if event.is_warning { "Warning" } else { "Normal" },
            "reason": event.reason,
            "message": event.message,
            "source": {"component": "trimbench", "host": linux::host::describe().name},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        });
        match self.ours.server.publish(namespace, &value) {
            Ok(()) => Ok(()),
            Err(Failure::Passing(why) | Failure::Final(why)) => Err(format!("no Event: {why}")),
        }
    }
}

/// Renews it once.
fn renew(ours: &Ours, object: &mut Object, shared: &Mutex<Shared>) {
    let began = ours.now();
    let why = match ours.hold(object) {
        Ok(Written::Done(stored)) => {
            *object = stored;
            let renewed = Tenure::renewed(began, ours.timing);
            let mut shared = locked(shared);
            shared.tenure = shared.tenure.map(|_| renewed);
            return;
        }
        // Others may write labels, and an answer may have been lost. The next renewal is on top.
        Ok(Written::Conflict) => match ours.read() {
            Ok(found) if found.holder() == Some(&ours.me) => {
                *object = found;
                return;
            }
            Ok(found) => {
                locked(shared).tenure = None;
                format!("{} has it", found.holder().unwrap_or("no node"))
            }
            Err(Failure::Passing(why) | Failure::Final(why)) => why,
        },
        Err(Failure::Passing(why) | Failure::Final(why)) => why,
    };
    locked(shared).why = why;
}

/// Lets the next one take it at once, if it is still ours. If that fails, its duration ends it.
fn release(ours: &Ours, object: Object) {
    let mut object = object;
    for _ in 0..2 {
        match ours.write(&object.released(&time())) {
            Ok(Written::Done(_)) => return,
            Ok(Written::Conflict) => {}
            Err(_) => return,
        }
        match ours.read() {
            Ok(found) if found.holder() == Some(&ours.me) => object = found,
            _ => return,
        }
    }
}

impl Drop for Renewed {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            drop(end);
            // It ends after its request.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
