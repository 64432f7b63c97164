//! The decision who may have the lease, without a clock and without a network.
//!
//! The rules are those of Kubernetes' own programs (client-go, leaderelection). A candidate takes a
//! lease that has no holder. It takes another's once it has seen no renewal for the lease's duration:
//! it trusts no other machine's clock. A holder stops at its deadline, which is before that. The
//! server accepts a change only of the version that was read.

use std::time::Duration;

use serde_json::{Map, Value, json};

/// The times of a lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// No other process takes the lease until so long after a renewal.
    pub(crate) duration: Duration,
    /// From the beginning of its last renewal on, a holder trusts it for so long. It is shorter, so
    /// that what is under way then has time to end.
    pub(crate) deadline: Duration,
    /// From one renewal to the next.
    pub(crate) renew: Duration,
    /// From one look of a candidate to the next.
    pub(crate) look: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            duration: Duration::from_secs(30),
            deadline: Duration::from_secs(20),
            renew: Duration::from_secs(5),
            look: Duration::from_secs(2),
        }
    }
}

/// One that waits for the lease.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Its identity, which no other process ever has.
    me: String,
    timing: Timing,
    /// The state that the lease was seen in, and since when.
    seen: Option<(String, Duration)>,
}

impl Candidate {
    pub(crate) fn new(me: String, timing: Timing) -> Candidate {
        Candidate {
            me,
            timing,
            seen: None,
        }
    }

    /// Whether to take the lease that was read at this time of its own clock.
    pub(crate) fn may_take(&mut self, found: &Object, now: Duration) -> bool {
        match found.holder() {
            None => return true,
            Some(holder) if holder == self.me => return true,
            Some(_) => {}
        }
        let state = found.state();
        match &self.seen {
            Some((seen, since)) if *seen == state => {
                // Whoever wrote it knows its duration; ours is the least.
                now.saturating_sub(*since) > found.duration().max(self.timing.duration)
            }
            _ => {
                self.seen = Some((state, now));
                false
            }
        }
    }
}

/// How long a holder may trust its lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tenure {
    until: Duration,
}

impl Tenure {
    /// From a renewal that began then.
    pub(crate) fn renewed(began: Duration, timing: Timing) -> Tenure {
        Tenure {
            until: began + timing.deadline,
        }
    }

    /// Whether it holds.
    pub(crate) fn holds(self, now: Duration) -> bool {
        now < self.until
    }
}

// The Lease as the API server keeps it.

/// A Lease that was read. Labels and whatever else others wrote stay in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object(pub(crate) Value);

impl Object {
    /// The first one of this name.
    pub(crate) fn new(name: &str) -> Object {
        Object(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {},
        }))
    }

    fn spec(&self, field: &str) -> &Value {
        &self.0["spec"][field]
    }

    /// The holder's identity, if it has a holder.
    pub(crate) fn holder(&self) -> Option<&str> {
        self.spec("holderIdentity")
            .as_str()
            .filter(|holder| !holder.is_empty())
    }

    /// For how long its holder asked for.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.spec("leaseDurationSeconds").as_u64().unwrap_or(0))
    }

    /// A word that differs once its holder renewed it, or another took it.
    pub(crate) fn state(&self) -> String {
        let fields = ["holderIdentity", "renewTime", "leaseTransitions"];
        fields.map(|field| self.spec(field).to_string()).join(" ")
    }

    /// Whether the server has it already.
    pub(crate) fn is_stored(&self) -> bool {
        !self.0["metadata"]["resourceVersion"].is_null()
    }

    /// The same, held by `me` from now on, or renewed. `now`: the time in words.
    pub(crate) fn held(&self, me: &str, duration: Duration, now: &str) -> Object {
        self.with_spec(|spec| {
            let is_mine = self.holder() == Some(me);
            let transitions = self.spec("leaseTransitions").as_u64().unwrap_or(0);
            spec.insert("holderIdentity".into(), me.into());
            spec.insert("leaseDurationSeconds".into(), duration.as_secs().into());
            spec.insert("renewTime".into(), now.into());
            if !is_mine {
                spec.insert("acquireTime".into(), now.into());
                spec.insert("leaseTransitions".into(), (transitions + 1).into());
            }
        })
    }

    /// The same, held by nobody.
    pub(crate) fn released(&self, now: &str) -> Object {
        self.with_spec(|spec| {
            spec.remove("holderIdentity");
            spec.insert("leaseDurationSeconds".into(), 1.into());
            spec.insert("renewTime".into(), now.into());
        })
    }

    fn with_spec(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Object {
        let mut spec = self.0["spec"].as_object().cloned().unwrap_or_default();
        change(&mut spec);
        let mut object = self.0.as_object().cloned().unwrap_or_default();
        object.insert("spec".into(), Value::Object(spec));
        Object(Value::Object(object))
    }
}

/// A moment as Kubernetes' `MicroTime` has it.
pub(crate) fn micro_time(since_1970: Duration) -> String {
    let whole = record::units::utc(since_1970.as_secs() as f64);
    format!(
        "{}.{:06}Z",
        whole.trim_end_matches('Z'),
        since_1970.subsec_micros()
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A server that keeps one Lease: it takes a change of the present version alone.
    #[derive(Default)]
    struct Server {
        stored: Option<Object>,
        version: u64,
    }

    impl Server {
        fn write(&mut self, mut object: Object) -> bool {
            let based = object.0["metadata"]["resourceVersion"].as_u64();
            let present = self.stored.as_ref().map(|_| self.version);
            if based != present {
                return false;
            }
            self.version += 1;
            object.0["metadata"]["resourceVersion"] = self.version.into();
            self.stored = Some(object);
            true
        }
    }

    struct Node {
        candidate: Candidate,
        /// The Lease that it read last, and when by its own clock.
        read: Option<(Object, Duration)>,
        tenure: Option<Tenure>,
        /// Its clock is ahead by so much.
        ahead: Duration,
    }

    impl Node {
        fn new(index: usize, timing: Timing) -> Node {
            Node {
                candidate: Candidate::new(format!("node{index}"), timing),
                read: None,
                tenure: None,
                ahead: Duration::from_secs(1000 * index as u64),
            }
        }
    }

    proptest! {
        /// Whatever the order of reads and writes, however long each node sleeps, two never hold.
        #[test]
        fn never_both(steps in proptest::collection::vec((0usize..3, 0u8..6, 0u64..25), 1..400)) {
            let timing = Timing::default();
            let mut server = Server::default();
            let mut nodes: Vec<Node> = (0..3).map(|index| Node::new(index, timing)).collect();
            let mut time = Duration::ZERO;
            for (who, what, wait) in steps {
                time += Duration::from_secs(wait) / 4;
                let node = &mut nodes[who];
                let now = time + node.ahead;
                match what {
                    0 | 1 => node.read = Some((server.stored.clone().unwrap_or(Object::new("x")), now)),
                    // It takes, or renews, what it read, perhaps long ago.
                    2 | 3 => {
                        let Some((read, at)) = node.read.take() else { continue };
                        if !node.candidate.may_take(&read, at) {
                            continue;
                        }
                        let text = format!("{time:?}");
                        let object = read.held(&node.candidate.me, timing.duration, &text);
                        if server.write(object) {
                            node.tenure = Some(Tenure::renewed(now, timing));
                        }
                    }
                    4 => {
                        // It gives it back, or is killed and comes again as another process.
                        let read = node.read.take();
                        let mine = read.filter(|(read, _)| read.holder() == Some(&node.candidate.me));
                        if let Some((read, _)) = mine {
                            server.write(read.released(&format!("{time:?}")));
                        }
                        node.tenure = None;
                        node.candidate = Candidate::new(format!("node{who} {time:?}"), timing);
                    }
                    _ => {}
                }
                let holders = nodes.iter().filter(|node| {
                    node.tenure.is_some_and(|tenure| tenure.holds(time + node.ahead))
                });
                prop_assert!(holders.count() <= 1);
            }
        }
    }

    #[test]
    fn a_lease_is_taken_once_its_holder_has_been_silent_for_its_duration() {
        let timing = Timing::default();
        let seconds = Duration::from_secs;
        let object = Object::new("x").held("other", timing.duration, "T");
        let mut candidate = Candidate::new("me".to_owned(), timing);
        assert!(!candidate.may_take(&object, seconds(100)));
        assert!(!candidate.may_take(&object, seconds(129)));
        assert!(candidate.may_take(&object, seconds(131)));
        let renewed = object.held("other", timing.duration, "T2");
        assert!(!candidate.may_take(&renewed, seconds(132)));
        // One that asked for longer has longer.
        let long = object.held("other", seconds(60), "T3");
        assert!(!candidate.may_take(&long, seconds(200)));
        assert!(!candidate.may_take(&long, seconds(259)));
        assert!(candidate.may_take(&long, seconds(261)));
        assert!(candidate.may_take(&renewed.released("T4"), seconds(262)));
        let tenure = Tenure::renewed(seconds(10), timing);
        assert!(tenure.holds(seconds(29)) && !tenure.holds(seconds(30)));
    }

    #[test]
    fn taking_renewing_and_releasing_keep_what_others_wrote() {
        let mut first = Object::new("x");
        first.0["metadata"]["labels"] = json!({"team": "storage"});
        assert!(!first.is_stored());
        let taken = first.held("a", Duration::from_secs(30), "T1");
        assert_eq!(
            (taken.holder(), taken.duration().as_secs()),
            (Some("a"), 30)
        );
        assert_eq!(taken.0["spec"]["leaseTransitions"], 1);
        let renewed = taken.held("a", Duration::from_secs(30), "T2");
        assert_eq!(renewed.0["spec"]["acquireTime"], "T1");
        assert_eq!(renewed.0["spec"]["leaseTransitions"], 1);
        assert_ne!(renewed.state(), taken.state());
        let released = renewed.released("T3");
        assert_eq!(released.holder(), None);
        assert_eq!(released.0["metadata"]["labels"]["team"], "storage");
        let other = released.held("b", Duration::from_secs(30), "T4");
        assert_eq!(other.0["spec"]["leaseTransitions"], 2);
        // Whatever a server answers.
        for odd in [
            json!(null),
            json!([1]),
            json!({"spec": 3}),
            json!({"spec": {"leaseDurationSeconds": -1}}),
        ] {
            let odd = Object(odd);
            assert_eq!((odd.holder(), odd.duration()), (None, Duration::ZERO));
            assert_eq!(
                odd.held("a", Duration::from_secs(1), "T").holder(),
                Some("a")
            );
        }
    }

    #[test]
    fn times_have_microseconds() {
        let time = Duration::new(1_700_000_000, 1_500);
        assert_eq!(micro_time(time), "2023-11-14T22:13:20.000001Z");
    }
}
