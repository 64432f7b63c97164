//! The processes at the other ends of a process' connections: Unix sockets, TCP of this machine,
//! and pipes.
//!
//! The kernel's socket diagnosis (`NETLINK_SOCK_DIAG`) names the peer of each Unix socket, and
//! `/proc/PID/net/tcp` the addresses of each TCP socket. `/proc/PID/fd` names who holds a socket,
//! of other users' processes to root alone.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};

use super::processes;

/// An open end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// A socket, by its inode.
    Socket(u64),
    /// A pipe, by its inode: all its ends have the same.
    Pipe(u64),
}

/// The connections that a process has open, each with its descriptor; none of other users'
/// processes.
pub fn ends(pid: u32) -> Vec<(u64, End)> {
    let all = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    all.flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((
                number,
                End::parse(fs::read_link(entry.path()).ok()?.to_str()?)?,
            ))
        })
        .collect()
}

impl End {
    /// Parses the target of a link in `/proc/PID/fd`: `socket:[123]` or `pipe:[123]`.
    fn parse(link: &str) -> Option<End> {
        let (kind, rest) = link.split_once(":[")?;
        let inode = rest.strip_suffix(']')?.parse().ok()?;
        match kind {
            "socket" => Some(End::Socket(inode)),
            "pipe" => Some(End::Pipe(inode)),
            _ => None,
        }
    }
}

/// The processes that hold any of these ends, in order.
pub fn holders(ends: &HashSet<End>) -> Vec<u32> {
    let holds = |pid: &u32| self::ends(*pid).iter().any(|one| ends.contains(&one.1));
    let mut all: Vec<u32> = processes().into_iter().filter(holds).collect();
    all.sort_unstable();
    all
}

/// The parent of a process, and its program's file.
pub fn parent_and_program(pid: u32) -> Option<(u32, std::path::PathBuf)> {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some((super::status(pid, "PPid:")?, program))
}

/// The connected sockets that a process sees, each with the one at its other end.
#[derive(Debug, Default)]
pub struct Connections {
    peers: HashMap<u64, u64>,
    /// Sockets whose other end no process has yet, with the one that listens for it.
    listeners: HashMap<u64, u64>,
}

impl Connections {
    /// Those that are there now, in the network namespace of this process, and the TCP connections
    /// in that of process `pid`.
    pub fn now(pid: u32) -> Connections {
        let mut found = Connections {
            peers: unix_peers().unwrap_or_default(),
            ..Connections::default()
        };
        let read = |file| fs::read_to_string(format!("/proc/{pid}/net/{file}"));
        let tcp = ["tcp", "tcp6"].map(|file| read(file).unwrap_or_default());
        found.add_tcp(&tcp.concat());
        found
    }

    fn add_tcp(&mut self, text: &str) {
        let all: Vec<Tcp> = text.lines().filter_map(Tcp::parse).collect();
        let connected = |one: &&Tcp| !one.listens && one.inode != 0;
        let at: HashMap<(&str, &str), u64> = all
            .iter()
            .filter(connected)
            .map(|one| ((one.local.as_str(), one.remote.as_str()), one.inode))
            .collect();
        for one in all.iter().filter(connected) {
            let other = at.get(&(one.remote.as_str(), one.local.as_str()));
            self.peers.extend(other.map(|other| (one.inode, *other)));
            let port = one.remote.rsplit(':').next();
            let here = one.remote.split(':').next() == one.local.split(':').next();
            let mut listeners = all.iter().filter(|other| other.listens);
            let listener = listeners.find(|other| here && other.local.rsplit(':').next() == port);
            self.listeners
                .extend(listener.map(|other| (one.inode, other.inode)));
        }
    }

    /// The socket at the other end.
    pub fn peer(&self, inode: u64) -> Option<u64> {
        self.peers.get(&inode).copied()
    }

    /// The socket that listens for such connections, of one over TCP of this machine.
    pub fn listener(&self, inode: u64) -> Option<u64> {
        self.listeners.get(&inode).copied()
    }
}

/// A line of `/proc/net/tcp`.
#[derive(Debug)]
struct Tcp {
    local: String,
    remote: String,
    listens: bool,
    inode: u64,
}

impl Tcp {
    fn parse(line: &str) -> Option<Tcp> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let address = |text: &str| {
            let (address, port) = text.split_once(':')?;
            // IPv4 in IPv6, as a server has it that listens for both.
            let address = address
                .strip_prefix("0000000000000000FFFF0000")
                .unwrap_or(address);
            Some(format!("{address}:{port}"))
        };
        Some(Tcp {
            local: address(words.get(1)?)?,
            remote: address(words.get(2)?)?,
            listens: *words.get(3)? == "0A",
            inode: words.get(9)?.parse().ok()?,
        })
    }
}

/// `SOCK_DIAG_BY_FAMILY`, `UDIAG_SHOW_PEER` and `UNIX_DIAG_PEER` (linux/sock_diag.h, unix_diag.h).
const BY_FAMILY: u16 = 20;
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;

/// The peer of each Unix socket, by inodes.
fn unix_peers() -> io::Result<HashMap<u64, u64>> {
    // SAFETY: the call takes no pointer.
    let number = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_SOCK_DIAG,
        )
    };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else has it.
    let mut socket = File::from(unsafe { OwnedFd::from_raw_fd(number) });
    let mut request = Vec::new();
    request.extend(40_u32.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    request.extend([0; 8]);
    request.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(0_u32.to_ne_bytes());
    request.extend(SHOW_PEER.to_ne_bytes());
    request.extend([0; 8]);
    socket.write_all(&request)?;
    let mut peers = HashMap::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = socket.read(&mut buffer)?;
        if count == 0 || read_peers(&buffer[..count], &mut peers) {
            return Ok(peers);
        }
    }
}

/// Reads the messages of one answer. Returns whether it was the last.
fn read_peers(mut all: &[u8], peers: &mut HashMap<u64, u64>) -> bool {
    let u16_at =
        |from: &[u8], at: usize| Some(u16::from_ne_bytes(from.get(at..at + 2)?.try_into().ok()?));
    let u32_at =
        |from: &[u8], at: usize| Some(u32::from_ne_bytes(from.get(at..at + 4)?.try_into().ok()?));
    while let (Some(length), Some(kind)) = (u32_at(all, 0), u16_at(all, 4)) {
        let length = length as usize;
        let (Some(message), true) = (all.get(..length), kind == BY_FAMILY && length >= 32) else {
            // The end, or an error.
            return true;
        };
        let inode = u32_at(message, 20);
        let mut rest = &message[32..];
        while let (Some(size), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
            if let (PEER, Some(inode), Some(peer)) = (kind, inode, u32_at(rest, 4)) {
                peers.insert(inode.into(), peer.into());
            }
            let size = usize::from(size).max(4).next_multiple_of(4);
            rest = rest.get(size..).unwrap_or_default();
        }
        all = all.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn inode(of: &impl AsRawFd) -> u64 {
        let link = fs::read_link(format!("/proc/self/fd/{}", of.as_raw_fd())).unwrap();
        match End::parse(link.to_str().unwrap()) {
            Some(End::Socket(inode)) => inode,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_ends_of_connections_find_each_other() {
        let own = std::process::id();
        let (a, b) = UnixStream::pair().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        // The kernel has the other end; no process has it yet.
        let waiting = Connections::now(own);
        assert_eq!(waiting.listener(inode(&client)), Some(inode(&server)));
        let (accepted, _) = server.accept().unwrap();
        let found = Connections::now(own);
        assert_eq!(found.peer(inode(&a)), Some(inode(&b)));
        assert_eq!(found.peer(inode(&client)), Some(inode(&accepted)));
        assert_eq!(found.peer(inode(&server)), None);
        let holders = holders(&HashSet::from([End::Socket(inode(&accepted))]));
        assert!(holders.contains(&own), "{holders:?}");
    }

    #[test]
    fn a_server_that_listens_for_both_families_is_the_peer_of_a_client_over_ipv4() {
        let mut found = Connections::default();
        found.add_tcp(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:9C40 0100007F:1538 01 00000000:00000000 00:00000000 00000000 0 0 41 1\n\
             1: 0000000000000000FFFF00000100007F:1538 0000000000000000FFFF00000100007F:9C40 01 \
             00000000:00000000 00:00000000 00000000 0 0 42 1\n\
             2: 0100007F:9C41 08080808:0050 01 00000000:00000000 00:00000000 00000000 0 0 43 1\n",
        );
        assert_eq!(
            (found.peer(41), found.peer(42), found.peer(43)),
            (Some(42), Some(41), None)
        );
    }
}
