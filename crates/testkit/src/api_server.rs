//! The part of Kubernetes' API server that keeps Leases and Events, over plain HTTP.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

/// A server that ends with the process.
#[derive(Debug)]
pub struct ApiServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    leases: HashMap<String, Value>,
    version: u64,
    /// Each change of a holder: the one before, and the one after.
    changes: Vec<(Option<String>, Option<String>)>,
    /// The Events that were created.
    events: Vec<Value>,
    /// The answer to everything, while there is one.
    failure: Option<u16>,
}

impl ApiServer {
    /// Starts one without Leases.
    pub fn start() -> ApiServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let kept = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&kept);
                std::thread::spawn(move || {
                    let reader = stream.try_clone().unwrap();
                    serve(&mut BufReader::new(reader), stream, &state);
                });
            }
        });
        ApiServer { address, state }
    }

    /// Its address, as `kubectl proxy` would have it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The spec of a Lease by its path, `NAMESPACE/leases/NAME`; null if there is none.
    pub fn spec(&self, path: &str) -> Value {
        self.state()
            .leases
            .get(path)
            .map_or(Value::Null, |lease| lease["spec"].clone())
    }

    /// Writes the holder of a Lease as another program would; `None` releases it.
    pub fn hold(&self, path: &str, holder: Option<&str>) {
        let name = path.rsplit('/').next().unwrap();
        let lease = json!({
            "kind": "Lease",
            "metadata": {"name": name, "labels": {"by": "another"}},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600, "renewTime": "T"},
        });
        self.state().store(path, lease);
    }

    /// From now on it answers so to everything; `None`: as it should.
    pub fn fail(&self, status: Option<u16>) {
        self.state().failure = status;
    }

    /// The Events that were created.
    pub fn events(&self) -> Vec<Value> {
        self.state().events.clone()
    }

    /// Each change of a holder: the one before, and the one after.
    pub fn changes(&self) -> Vec<(Option<String>, Option<String>)> {
        self.state().changes.clone()
    }
}

impl State {
    fn store(&mut self, path: &str, mut lease: Value) -> Value {
        let holder = |lease: &Value| lease["spec"]["holderIdentity"].as_str().map(str::to_owned);
        let before = self.leases.get(path).and_then(holder);
        if before != holder(&lease) {
            self.changes.push((before, holder(&lease)));
        }
        self.version += 1;
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.leases.insert(path.to_owned(), lease.clone());
        lease
    }

    /// The status and the body of an answer.
    fn answer(&mut self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let status = |code: u16, message: &str| {
            let text = json!({"kind": "Status", "code": code, "message": message});
            (code, text)
        };
        if let Some(failure) = self.failure {
            return status(failure, "the test wants it");
        }
        if let ("POST", Some(namespace)) = (method, events_of(path)) {
            assert_eq!(body["metadata"]["namespace"], namespace);
            self.events.push(body.clone());
            return (201, body);
        }
        let Some(place) = path.strip_prefix("/apis/coordination.k8s.io/v1/namespaces/") else {
            return status(404, "no such path");
        };
        match method {
            "GET" => match self.leases.get(place) {
                Some(lease) => (200, lease.clone()),
                None => status(404, "not found"),
            },
            "POST" => {
                let path = format!("{place}/{}", body["metadata"]["name"].as_str().unwrap());
                match self.leases.contains_key(&path) {
                    true => status(409, "already exists"),
                    false => (201, self.store(&path, body)),
                }
            }
            "PUT" => {
                let stored = self.leases.get(place).cloned().unwrap_or_default();
                let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
                match version(&stored) == version(&body) {
                    true => (200, self.store(place, body)),
                    false => status(409, "the object has been modified"),
                }
            }
            _ => status(405, "no such method"),
        }
    }
}

/// The namespace of a path of Events.
fn events_of(path: &str) -> Option<&str> {
    let place = path.strip_prefix("/api/v1/namespaces/")?;
    place.strip_suffix("/events")
}

/// Answers the requests of a connection until it ends.
fn serve(reader: &mut impl BufRead, mut writer: impl Write, state: &Mutex<State>) {
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(1..) if line.trim().is_empty() => break,
                Ok(1..) => head.push(line.trim().to_owned()),
                _ => return,
            }
        }
        let length = head.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.trim().parse().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let mut words = head[0].split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (status, answer) = state.lock().unwrap().answer(method, path, body);
        let answer = answer.to_string();
        let text = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        );
        if writer.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}
