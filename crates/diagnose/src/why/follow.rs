//! Follows a client to the server that it waits for: a `psql` sleeps while its server deletes.
//!
//! The kernel names the process at the other end of each connection. A server of several processes
//! leaves work to some that have no client of their own; they are watched as well.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use linux::tasks::peers::{self, Connections, End};
use linux::tasks::{self, Thread};

use super::{Missing, Subject};

/// New connections are looked for so often at most,
const PAUSE: Duration = Duration::from_millis(20);

/// and for one part in so many of the time: in the first seconds, in which most clients connect, and
/// later.
const PART: (u32, u32) = (3, 20);

/// The first seconds.
const FIRST: Duration = Duration::from_secs(2);

/// A connection whose other end no process holds is looked up so often at most.
const TRIES: u32 = 10;

/// A process that works for the subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Server {
    /// The process.
    pub pid: u32,
    /// Whether it has no client of its own, and works for one that has.
    pub helper: bool,
}

/// Looks for the servers of a subject.
#[derive(Debug)]
pub(super) struct Follower {
    subject: Subject,
    found: Vec<Server>,
    /// How often the other end of a connection was looked up.
    tries: HashMap<End, u32>,
    began: Instant,
    due: Instant,
    unknown: bool,
}

impl Follower {
    pub(super) fn of(subject: &Subject) -> Follower {
        Follower {
            subject: subject.clone(),
            found: Vec::new(),
            tries: HashMap::new(),
            began: Instant::now(),
            due: Instant::now(),
            unknown: false,
        }
    }

    /// Looks for servers if that is due, and returns those that are new.
    pub(super) fn turn(&mut self) -> Vec<u32> {
        let clients = match self.subject {
            Subject::Family(pid) => tasks::family(pid),
            Subject::Process(pid) => vec![pid],
            // They are watched anyway, or a boundary was asked for.
            Subject::All | Subject::Group(_) => return Vec::new(),
        };
        let began = Instant::now();
        if began < self.due {
            return Vec::new();
        }
        let known = self.found.len();
        for client in &clients {
            self.servers_of(*client, &clients);
        }
        self.helpers(&clients);
        let part = match self.began.elapsed() < FIRST {
            true => PART.0,
            false => PART.1,
        };
        self.due = began + PAUSE.max(began.elapsed() * part);
        self.found[known..].iter().map(|one| one.pid).collect()
    }

    /// The servers, and whether some could not be found.
    pub(super) fn finish(self) -> (Vec<Server>, Option<Missing>) {
        let missing = (self.unknown && self.found.is_empty()).then(|| Missing {
            what: "the servers that it is connected to".to_owned(),
            why: match rustix::process::geteuid().is_root() {
                true => {
                    "no process of this machine holds the other ends of its connections; name a \
                         server with --pid or --service"
                        .to_owned()
                }
                false => "the kernel shows who holds a connection to root alone; run it as root"
                    .to_owned(),
            },
        });
        (self.found, missing)
    }

    fn servers_of(&mut self, client: u32, clients: &[u32]) {
        let waits_at = |end: &End, number: u64| match end {
            // Usually of the shell, not of a server.
            End::Socket(_) if number > 2 => true,
            _ => tasks::threads(client)
                .into_iter()
                .any(|one| is_at(one, number)),
        };
        let open = peers::ends(client).into_iter();
        let fresh: Vec<End> = open
            .filter(|(_, end)| self.tries.get(end).is_none_or(|tries| *tries < TRIES))
            .filter(|(number, end)| waits_at(end, *number))
            .map(|(_, end)| end)
            .collect();
        if fresh.is_empty() {
            return;
        }
        let connections = Connections::now(client);
        for end in fresh {
            *self.tries.entry(end).or_default() += 1;
            let other = match end {
                End::Pipe(_) => Some(end),
                End::Socket(inode) => connections.peer(inode).map(End::Socket),
            };
            let mut holders = other.map(|end| peers::holders(&HashSet::from([end])));
            let last = self.tries[&end] == TRIES;
            if let (End::Socket(inode), true, true) =
                (end, last, holders.as_ref().is_none_or(Vec::is_empty))
            {
                let listener = connections.listener(inode).map(End::Socket);
                holders = listener.map(|end| peers::holders(&HashSet::from([end])));
            }
            let own = std::process::id();
            let outside = |pid: &u32| !clients.contains(pid) && *pid != own;
            let servers: Vec<u32> = holders
                .unwrap_or_default()
                .into_iter()
                .filter(outside)
                .collect();
            self.unknown |= last && servers.is_empty() && matches!(end, End::Socket(_));
            if !servers.is_empty() {
                self.tries.insert(end, TRIES);
            }
            for pid in servers {
                self.add(pid, false);
            }
        }
    }

    /// Adds processes of the servers' services that have no client.
    fn helpers(&mut self, clients: &[u32]) {
        let servers: Vec<u32> = self
            .found
            .iter()
            .filter(|one| !one.helper)
            .map(|one| one.pid)
            .collect();
        let mut connections = None;
        for server in servers {
            let own = peers::parent_and_program(server);
            let Some((parent, program)) = own else {
                continue;
            };
            let is_service =
                |pid| peers::parent_and_program(pid).is_some_and(|one| one.1 == program);
            let service = if is_service(parent) { parent } else { server };
            for pid in tasks::family(service) {
                let known = self.found.iter().any(|one| one.pid == pid);
                if known || clients.contains(&pid) || pid == service {
                    continue;
                }
                let connections = connections.get_or_insert_with(|| Connections::now(server));
                let connected = peers::ends(pid).iter().any(|(_, end)| {
                    matches!(end, End::Socket(inode) if connections.peer(*inode).is_some_and(|peer| peer != *inode))
                });
                if !connected {
                    self.add(pid, true);
                }
            }
        }
    }

    fn add(&mut self, pid: u32, helper: bool) {
        if !self.found.iter().any(|one| one.pid == pid) {
            self.found.push(Server { pid, helper });
        }
    }
}

/// Whether a thread is in a call that works on this descriptor.
fn is_at(thread: Thread, number: u64) -> bool {
    let call = thread.call();
    call.is_some_and(|call| call.has_descriptor() && call.first == number)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use testkit::gate::{Need, lacks};

    use super::*;

    /// A service: a parent that listens, one child for each client and one without.
    const SERVICE: &str = "
import os, socket, sys, time
listener = socket.socket(socket.AF_UNIX if sys.argv[1] == 'unix' else socket.AF_INET)
listener.bind(sys.argv[2] if sys.argv[1] == 'unix' else ('127.0.0.1', 0))
listener.listen()
if os.fork() == 0:
    listener.close()
    time.sleep(60)
print(listener.getsockname() if sys.argv[1] == 'unix' else listener.getsockname()[1], flush=True)
client, _ = listener.accept()
if os.fork() == 0:
    listener.close()
    time.sleep(60)
client.close()
time.sleep(60)
";

    const CLIENT: &str = "
import socket, sys, time
unix = sys.argv[1] == 'unix'
own = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
own.connect(sys.argv[2] if unix else ('127.0.0.1', int(sys.argv[2])))
own.recv(1)
";

    struct Process(Child);

    impl Process {
        fn start(text: &str, arguments: &[&str]) -> Process {
            let mut python = Command::new("python3");
            python
                .args(["-c", text])
                .args(arguments)
                .stdout(Stdio::piped());
            Process(python.spawn().unwrap())
        }

        fn line(&mut self) -> String {
            use std::io::BufRead;
            let mut line = String::new();
            let output = self.0.stdout.take().unwrap();
            std::io::BufReader::new(output)
                .read_line(&mut line)
                .unwrap();
            line.trim().to_owned()
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            for pid in tasks::family(self.0.id()) {
                let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_client_is_followed_to_its_server_and_the_servers_helper() {
        if lacks(&[Need::Root, Need::Tool("python3")]) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        for kind in ["unix", "tcp"] {
            let mut service = Process::start(SERVICE, &[kind, path.to_str().unwrap()]);
            let at = service.line();
            let client = Process::start(CLIENT, &[kind, &at]);
            let mut follower = Follower::of(&Subject::Family(client.0.id()));
            let began = Instant::now();
            // Whoever else has the other end of a pipe of the client is followed, too.
            let own = |found: &[Server], helper| {
                let family = tasks::family(service.0.id());
                let is_it = |one: &Server| one.helper == helper && family.contains(&one.pid);
                found.iter().any(is_it)
            };
            let both = |found: &[Server]| own(found, true) && own(found, false);
            while !both(&follower.found) && began.elapsed() < Duration::from_secs(30) {
                follower.turn();
                std::thread::sleep(Duration::from_millis(5));
            }
            let (found, missing) = follower.finish();
            assert!(both(&found) && missing.is_none(), "{kind}: {found:?}");
        }
    }
}
