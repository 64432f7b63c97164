//! The Lease as the API server keeps it.

use std::time::Duration;

use serde_json::{Map, Value, json};

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
    use super::*;

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
