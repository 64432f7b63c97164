//! The Lease beside a server that keeps it, and over TLS.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use testkit::api_server::ApiServer;

use super::*;

const PATH: &str = "ns/leases/x";

fn ours(server: Server, timing: Timing) -> Ours {
    Ours {
        server,
        namespace: "ns".to_owned(),
        name: "x".to_owned(),
        me: identity(),
        timing,
        began: Instant::now(),
    }
}

/// Times of a test.
const SHORT: Timing = Timing {
    duration: Duration::from_secs(3),
    deadline: Duration::from_secs(2),
    renew: Duration::from_millis(50),
    look: Duration::from_millis(50),
};

fn taken(api: &ApiServer) -> Renewed {
    let one = ours(Server::without_account(&api.url()), SHORT);
    wait(one, &AtomicBool::new(false), &mut |_| {})
        .unwrap()
        .unwrap()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_lease_is_renewed_until_it_is_dropped() {
    let api = ApiServer::start();
    let held = taken(&api);
    let first = api.spec(PATH)["renewTime"].clone();
    until("it is renewed", || api.spec(PATH)["renewTime"] != first);
    assert!(held.holds());
    drop(held);
    assert!(api.spec(PATH)["holderIdentity"].is_null());
    assert_eq!(api.spec(PATH)["leaseTransitions"], 1);
}

#[test]
fn a_holder_that_cannot_renew_has_lost_the_lease_for_good() {
    let api = ApiServer::start();
    let held = taken(&api);
    api.fail(Some(503));
    until("it is lost", || !held.holds());
    assert!(held.why().contains("503"), "{}", held.why());
    api.fail(None);
    // It may have tried to release it before.
    sleep(4 * SHORT.renew);
    assert!(!held.holds());
}

#[test]
fn a_silent_holder_is_followed_by_another() {
    let api = ApiServer::start();
    let gone = ours(Server::without_account(&api.url()), SHORT);
    let object = gone.read().unwrap();
    assert!(matches!(gone.hold(&object), Ok(Written::Done(_))));
    let began = Instant::now();
    let held = taken(&api);
    assert!(began.elapsed() >= SHORT.duration);
    assert!(held.holds());
    assert_eq!(api.spec(PATH)["leaseTransitions"], 2);
    // The one that was gone can't renew what it had read.
    assert!(matches!(gone.hold(&object), Ok(Written::Conflict)));
}

/// An account with the token `secret`, whose server must have a certificate of this authority.
fn account(authority: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    put("ca.crt", authority);
    put("token", "secret\n");
    put("namespace", "storage\n");
    directory
}

/// A server over TLS that answers every request with the request itself as a label; its port.
fn over_tls() -> u16 {
    let certificate = include_bytes!("test-certificates/server.crt");
    let key = include_bytes!("test-certificates/server.key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate).unwrap()],
            PrivateKeyDer::from_pem_slice(key).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let lease =
                serde_json::json!({"kind": "Lease", "metadata": {"labels": {"head": head}}});
            let body = lease.to_string();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.flush();
        }
    });
    port
}

#[test]
fn a_pod_shows_its_token_to_a_server_that_its_authority_knows_alone() {
    let port = over_tls().to_string();
    let at = |directory: &Path| Server::at("127.0.0.1", &port, directory).unwrap();
    let ours = account(include_str!("test-certificates/ca.crt"));
    let server = at(ours.path());
    assert_eq!(server.namespace().unwrap(), "storage");
    let found = server.read("storage", "x").unwrap();
    let head = found.0["metadata"]["labels"]["head"].as_str().unwrap();
    let path = "GET /apis/coordination.k8s.io/v1/namespaces/storage/leases/x HTTP/1.1";
    assert!(head.starts_with(path), "{head}");
    assert!(
        head.to_lowercase()
            .contains("authorization: bearer secret\r\n"),
        "{head}"
    );
    let another = account(include_str!("test-certificates/other-ca.crt"));
    let refused = at(another.path()).read("storage", "x").unwrap_err();
    assert!(matches!(&refused, Failure::Passing(why) if why.contains("cannot ask")));
    let none = account("no certificate");
    let why = Server::at("127.0.0.1", &port, none.path()).unwrap_err();
    assert!(why.to_string().contains("has no certificate"), "{why}");
}
