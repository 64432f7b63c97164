//! A lock that machines share, so that they do one after the other what loads their common storage.
//!
//! A [`Place`] is a file on that storage, or a Lease of Kubernetes (`coordination.k8s.io/v1`).
//! [`Place::take`] waits for it, and dropping the [`Lease`] releases it. The lock of a file holds as
//! long as the process lives. A Lease of Kubernetes must be renewed, and [`Lease::holds`] is false
//! once that failed for too long: then another machine may take it.

mod kubernetes;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use record::units::names::shown;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Where the lock is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file that all machines see; a lock on it (flock) is the lease.
    File(PathBuf),
    /// A Lease of Kubernetes.
    Kubernetes {
        /// Its namespace; `None` for the pod's own.
        namespace: Option<String>,
        /// Its name.
        name: String,
    },
}

/// The name of the Lease if none is given.
const NAME: &str = "trimbench-fstrim";

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LeaseError {
    #[error("lease={}: {source}", shown(path))]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "{0:?} is no name of a Lease; write k8s, k8s:NAME or k8s:NAMESPACE/NAME, in lower-case \
         letters, digits, - and ."
    )]
    Name(String),
    #[error(
        "lease=k8s: this is no pod: {0}; outside a cluster run kubectl proxy, and set \
         TRIMBENCH_KUBERNETES_API=http://127.0.0.1:8001"
    )]
    NoPod(String),
    #[error("lease=k8s: {0}")]
    Refused(String),
}

impl std::str::FromStr for Place {
    type Err = LeaseError;

    /// Parses `k8s`, `k8s:NAME`, `k8s:NAMESPACE/NAME`, or the path of a file. A file of the name `k8s`
    /// is `./k8s`.
    fn from_str(text: &str) -> Result<Place, LeaseError> {
        let Some(rest) = text.strip_prefix("k8s") else {
            return Ok(Place::File(text.into()));
        };
        let whole = match (rest, rest.strip_prefix(':')) {
            ("", _) => NAME,
            (_, Some(whole)) => whole,
            _ => return Ok(Place::File(text.into())),
        };
        let (namespace, name) = match whole.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, whole),
        };
        if !namespace.into_iter().chain([name]).all(is_name) {
            return Err(LeaseError::Name(text.to_owned()));
        }
        Ok(Place::Kubernetes {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

/// Whether Kubernetes takes it as a name (RFC 1123 subdomain).
fn is_name(text: &str) -> bool {
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 253
        && text.starts_with(ends)
        && text.ends_with(ends)
        && text.chars().all(|c| ends(c) || c == '-' || c == '.')
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::File(path) => f.write_str(&shown(path)),
            Place::Kubernetes { namespace, name } => match namespace {
                Some(namespace) => write!(f, "the Lease {namespace}/{name}"),
                None => write!(f, "the Lease {name}"),
            },
        }
    }
}

impl Place {
    /// Waits until nobody else has the lease; `None` if `stop` came first. `note` gets what the user
    /// should know while it waits: each sentence once.
    ///
    /// # Errors
    /// When the file can't be opened, or Kubernetes refuses the request or isn't there.
    pub fn take(
        &self,
        stop: &AtomicBool,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Lease>, LeaseError> {
        let held = match self {
            Place::File(path) => take(path, stop, note)?.map(Held::File),
            Place::Kubernetes { namespace, name } => {
                kubernetes::take(namespace.as_deref(), name, stop, note)?.map(Held::Kubernetes)
            }
        };
        Ok(held.map(|held| Lease { held }))
    }
}

/// Something that was done under a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Whether it needs attention.
    pub is_warning: bool,
    /// The reason in one word, in upper camel case.
    pub reason: &'a str,
    /// It, in a sentence.
    pub message: &'a str,
}

/// A lease that this process has; dropping it releases it.
#[derive(Debug)]
pub struct Lease {
    held: Held,
}

#[derive(Debug)]
enum Held {
    File(#[allow(dead_code, reason = "the lock ends with it")] std::fs::File),
    Kubernetes(kubernetes::Renewed),
}

impl Lease {
    /// Whether nobody else can have it now.
    pub fn holds(&self) -> bool {
        match &self.held {
            Held::File(_) => true,
            Held::Kubernetes(renewed) => renewed.holds(),
        }
    }

    /// Reports what was done under it, where other machines' users look: of a Lease of Kubernetes an Event
    /// about it, of a file nothing.
    ///
    /// # Errors
    /// Why the API server has no Event, in words.
    pub fn publish(&self, event: &Event<'_>) -> Result<(), String> {
        match &self.held {
            Held::File(_) => Ok(()),
            Held::Kubernetes(renewed) => renewed.publish(event),
        }
    }

    /// Why it was lost; `None` while it holds.
    pub fn lost(&self) -> Option<String> {
        match &self.held {
            Held::Kubernetes(renewed) if !renewed.holds() => Some(renewed.why()),
            _ => None,
        }
    }
}

// A lock on a file.

/// How often a lock that another has is asked for. A network file system tells nobody when it is
/// free.
const EVERY: Duration = Duration::from_millis(500);

/// Waits for the lock, which ends with the returned file; `None` if `stop` came first.
pub(crate) fn take(
    path: &Path,
    stop: &AtomicBool,
    note: &mut dyn FnMut(&str),
) -> Result<Option<File>, LeaseError> {
    let failed = |source: std::io::Error| LeaseError::File {
        path: path.to_owned(),
        source,
    };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(failed)?;
    let mut told = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if !told {
            note(&format!("waits for {}, which another holds", shown(path)));
            told = true;
        }
        sleep(EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_or_a_lease_of_kubernetes() {
        let lease = |namespace: Option<&str>, name: &str| Place::Kubernetes {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        for (text, place) in [
            ("k8s", lease(None, "trimbench-fstrim")),
            ("k8s:ceph.ssd-1", lease(None, "ceph.ssd-1")),
            ("k8s:storage/ceph", lease(Some("storage"), "ceph")),
            ("/mnt/share/lock", Place::File("/mnt/share/lock".into())),
            ("./k8s", Place::File("./k8s".into())),
            ("k8s-lock", Place::File("k8s-lock".into())),
        ] {
            assert_eq!(text.parse::<Place>().unwrap(), place, "{text}");
        }
        for text in [
            "k8s:",
            "k8s:A",
            "k8s:a/b/c",
            "k8s:../x",
            "k8s:a?b",
            "k8s:/a",
        ] {
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
        assert_eq!(lease(Some("a"), "b").to_string(), "the Lease a/b");
    }
}
