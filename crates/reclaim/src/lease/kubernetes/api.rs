//! Requests to the API server, as a pod makes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, http::Response};

use super::election::Object;
use crate::lease::LeaseError;

/// The address of an API server that needs no token, as `kubectl proxy` offers one.
const PROXY: &str = "TRIMBENCH_KUBERNETES_API";
/// Where Kubernetes puts a pod's token, namespace and the server's certificates.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// No request takes longer.
const LONGEST: Duration = Duration::from_secs(5);

/// Where the server is, and who asks.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its address, e.g. `https://10.0.0.1:443`.
    address: String,
    /// The directory of the token; `None` where none is needed.
    account: Option<PathBuf>,
    agent: Agent,
}

/// Why a request came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It may succeed if it is made again.
    Passing(String),
    /// It never will.
    Final(String),
}

/// The result of a change.
#[derive(Debug)]
pub(crate) enum Written {
    /// The server has stored it so.
    Done(Object),
    /// Another was faster.
    Conflict,
}

impl Server {
    /// The server of the cluster that this pod is in, or the one that the environment names.
    pub(crate) fn of_environment() -> Result<Server, LeaseError> {
        if let Ok(address) = std::env::var(PROXY) {
            return Ok(Server::without_account(&address));
        }
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| LeaseError::NoPod(format!("{name} is not set")))
        };
        let host = variable("KUBERNETES_SERVICE_HOST")?;
        let port = variable("KUBERNETES_SERVICE_PORT")?;
        Server::at(&host, &port, Path::new(ACCOUNT))
    }

    /// The server at an address that needs no token.
    pub(crate) fn without_account(address: &str) -> Server {
        Server {
            address: address.trim_end_matches('/').to_owned(),
            account: None,
            agent: agent(None),
        }
    }

    /// The server at a host, asked with the account in a directory.
    pub(crate) fn at(host: &str, port: &str, account: &Path) -> Result<Server, LeaseError> {
        let host = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.to_owned(),
        };
        Ok(Server {
            address: format!("https://{host}:{port}"),
            account: Some(account.to_owned()),
            agent: agent(Some(certificates(&account.join("ca.crt"))?)),
        })
    }

    /// The namespace that the pod is in.
    pub(crate) fn namespace(&self) -> Result<String, LeaseError> {
        let Some(account) = &self.account else {
            return Ok("default".to_owned());
        };
        let file = account.join("namespace");
        let text = fs::read_to_string(&file).map_err(|error| not_read(&file, &error))?;
        let text = text.trim();
        match crate::lease::is_name(text) {
            true => Ok(text.to_owned()),
            false => Err(LeaseError::NoPod(format!(
                "{} names no namespace",
                record::units::names::shown(&file)
            ))),
        }
    }

    fn url(&self, namespace: &str) -> String {
        format!(
            "{}/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
            self.address
        )
    }

    /// The header with the token. The kubelet writes a new one into the file every hour or so.
    fn authorization(&self) -> Result<Option<String>, Failure> {
        let Some(account) = &self.account else {
            return Ok(None);
        };
        let file = account.join("token");
        let token = fs::read_to_string(&file).map_err(|error| {
            Failure::Passing(format!("{}: {error}", record::units::names::shown(&file)))
        })?;
        Ok(Some(format!("Bearer {}", token.trim())))
    }

    /// The Lease as it is; a new one if there is none.
    pub(crate) fn read(&self, namespace: &str, name: &str) -> Result<Object, Failure> {
        let mut request = self
            .agent
            .get(format!("{}/{name}", self.url(namespace)))
            .header("Accept", "application/json");
        if let Some(authorization) = self.authorization()? {
            request = request.header("Authorization", authorization);
        }
        match self.answered(request.call())? {
            Answer::Object(object) => Ok(object),
            Answer::Missing => Ok(Object::new(name)),
            Answer::Conflict => Err(conflict()),
        }
    }

    /// Makes the change, if nobody has changed it since it was read.
    pub(crate) fn write(
        &self,
        namespace: &str,
        name: &str,
        object: &Object,
    ) -> Result<Written, Failure> {
        let url = self.url(namespace);
        let mut request = match object.is_stored() {
            true => self.agent.put(format!("{url}/{name}")),
            false => self.agent.post(url),
        };
        if let Some(authorization) = self.authorization()? {
            request = request.header("Authorization", authorization);
        }
        match self.answered(request.send_json(&object.0))? {
            Answer::Object(object) => Ok(Written::Done(object)),
            Answer::Conflict => Ok(Written::Conflict),
            // Somebody removed it since.
            Answer::Missing if object.is_stored() => Ok(Written::Conflict),
            Answer::Missing => Err(no_namespace(namespace)),
        }
    }

    /// Stores a new Event.
    pub(crate) fn publish(&self, namespace: &str, event: &Value) -> Result<(), Failure> {
        let url = format!("{}/api/v1/namespaces/{namespace}/events", self.address);
        let mut request = self.agent.post(url);
        if let Some(authorization) = self.authorization()? {
            request = request.header("Authorization", authorization);
        }
        match self.answered(request.send_json(event))? {
            Answer::Object(_) => Ok(()),
            Answer::Missing => Err(no_namespace(namespace)),
            Answer::Conflict => Err(conflict()),
        }
    }

    fn answered(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Answer, Failure> {
        let address = &self.address;
        let mut answer =
            answer.map_err(|error| Failure::Passing(format!("cannot ask {address}: {error}")))?;
        let status = answer.status().as_u16();
        let text = answer
            .body_mut()
            .with_config()
            .limit(1 << 20)
            .read_to_string()
            .map_err(|error| Failure::Passing(format!("cannot ask {address}: {error}")))?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let message = value["message"].as_str().unwrap_or("").to_owned();
        match status {
            200 | 201 if value["kind"] == "Lease" || value["kind"] == "Event" => {
                Ok(Answer::Object(Object(value)))
            }
            404 => Ok(Answer::Missing),
            409 => Ok(Answer::Conflict),
            // A token may be replaced just now, and a server that starts answers 5xx.
            401 | 408 | 429 | 500.. => Err(Failure::Passing(format!(
                "{address} answers {status} {message}"
            ))),
            403 => Err(Failure::Final(format!(
                "{message}; apply deploy/kubernetes/lease.yaml, which lets the service account get, \
                 create and update Leases, and create Events"
            ))),
            _ => Err(Failure::Final(format!(
                "{address} answers {status} {message}; is it the API server?"
            ))),
        }
    }
}

enum Answer {
    Object(Object),
    Missing,
    Conflict,
}

fn no_namespace(namespace: &str) -> Failure {
    Failure::Final(format!("the namespace {namespace} does not exist"))
}

fn conflict() -> Failure {
    Failure::Passing("the server reports a conflict".to_owned())
}

fn agent(certificates: Option<Vec<Certificate<'static>>>) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&certificates.unwrap_or_default()))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Agent::config_builder()
        .tls_config(tls)
        // The token is for this server alone.
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_global(Some(LONGEST))
        .user_agent(concat!("trimbench/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, LeaseError> {
    let text = fs::read(file).map_err(|error| not_read(file, &error))?;
    let found: Vec<_> = parse_pem(&text)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    match found.is_empty() {
        true => Err(LeaseError::NoPod(format!(
            "{} has no certificate",
            record::units::names::shown(file)
        ))),
        false => Ok(found),
    }
}

fn not_read(file: &Path, error: &std::io::Error) -> LeaseError {
    LeaseError::NoPod(format!("{}: {error}", record::units::names::shown(file)))
}
