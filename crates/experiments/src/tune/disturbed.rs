//! Whether something else than the trial shows in a run.

use judge::verdict::{Reason, Verdict};

use crate::Spread;
use crate::tune::figures::Figures;
use crate::tune::trials::Trial;

/// The readers begin at least at this share of their usual rate.
const USUAL: f64 = 0.7;
/// At least this share of what was deleted is discarded.
const TRIMMED: f64 = 0.5;
/// The share of the time before the deletion for which the readers may be slowed down.
const HELD_UP: f64 = 0.1;

/// A fault of a run because of which it should be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disturbance {
    /// In words, to be read after "for".
    pub(crate) why: String,
    /// Whether the run tells nothing at all, however often it is repeated.
    pub(crate) useless: bool,
}

/// Returns what disturbed a run, if anything did. `others` are the runs so far of all
/// trials, because all runs begin alike.
pub(crate) fn disturbed(
    trial: &Trial,
    verdict: &Verdict,
    figures: &Figures,
    others: &[&Figures],
) -> Option<Disturbance> {
    let found = |useless, why: &str| {
        let why = why.to_owned();
        Some(Disturbance { why, useless })
    };
    let deletion = verdict.deletion.as_ref();
    let few = |bytes: u64| (figures.discard_bytes as f64) < TRIMMED * bytes as f64;
    let late = verdict.reasons.contains(&Reason::DiscardsDidNotCome);
    if late && deletion.is_none_or(|deletion| few(deletion.bytes)) {
        return found(true, "its discards did not come within a minute");
    }
    if verdict.reasons.contains(&Reason::ForegroundErrors) {
        return found(true, "reads or fsyncs failed");
    }
    if trial.policy.is_online() && figures.discards == 0 {
        return found(true, "no discards came");
    }
    if let Some(deletion) = deletion
        && !trial.policy.is_online()
        && few(deletion.bytes)
    {
        let why = format!(
            "only {} were discarded of {} that were deleted",
            record::units::bytes(figures.discard_bytes),
            record::units::bytes(deletion.bytes),
        );
        return found(true, &why);
    }
    let rates = others.iter().map(|run| run.baseline_reads_per_s);
    if let Some(usual) = Spread::of(rates)
        && figures.baseline_reads_per_s < USUAL * usual.median
    {
        let why = format!(
            "before anything was deleted there were {} reads/s, where {} are usual",
            record::units::count(figures.baseline_reads_per_s as u64),
            record::units::count(usual.median as u64),
        );
        return found(false, &why);
    }
    if figures.usual_low >= HELD_UP {
        return found(false, "the readers were slow before anything was deleted");
    }
    None
}

#[cfg(test)]
mod tests {
    use judge::verdict::Deletion;

    use super::*;
    use crate::tune::trials::Policy;

    const TRIAL: Trial = Trial {
        policy: Policy::Online,
        limit_bytes: 1 << 20,
    };

    fn run(baseline_reads_per_s: f64) -> Figures {
        Figures {
            freeing_s: 1.0,
            lost_s: 0.5,
            worst_loss: 0.9,
            usual_worst_loss: 0.1,
            usual_low: 0.0,
            worst_read_us: 1e4,
            worst_fsync_us: 1e4,
            baseline_reads_per_s,
            discard_bytes: 1 << 30,
            discards: 8,
            stalled: true,
            inconclusive: false,
        }
    }

    fn verdict() -> Verdict {
        serde_json::from_str(
            r#"{"schema":"","verdict":"stall","reasons":[],"summary":"","foreground":[],"discard":
            {"bytes_per_s_is_lower_bound":false},"deletion":null,"fit":null,"control":null,"warnings":[]}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_run_is_set_against_those_before_it() {
        let others = [&run(1000.0), &run(1100.0)];
        let of =
            |figures: &Figures, others: &[&Figures]| disturbed(&TRIAL, &verdict(), figures, others);
        assert_eq!(of(&run(900.0), &others), None);
        assert!(of(&run(500.0), &others[..1]).is_some());
        assert_eq!(of(&run(500.0), &[]), None);
        let slow = of(&run(500.0), &others).unwrap();
        assert!(
            slow.why.contains("500 reads/s") && !slow.useless,
            "{slow:?}"
        );
        let mut busy = run(1000.0);
        busy.usual_low = 0.3;
        assert!(of(&busy, &others).unwrap().why.contains("slow before"));
    }

    #[test]
    fn without_discards_a_run_tells_nothing() {
        let mut none = run(1000.0);
        none.discards = 0;
        assert!(disturbed(&TRIAL, &verdict(), &none, &[]).unwrap().useless);
        let mut late = verdict();
        late.reasons.push(Reason::DiscardsDidNotCome);
        assert!(disturbed(&TRIAL, &late, &run(1.0), &[]).unwrap().useless);
    }

    #[test]
    fn a_trim_that_passed_over_what_was_deleted_tells_nothing() {
        let trim = Trial {
            policy: Policy::PacedFstrim,
            ..TRIAL
        };
        // 1 GiB was discarded.
        let of = |trial: &Trial, bytes| {
            let mut verdict = verdict();
            verdict.deletion = Some(Deletion {
                bytes,
                files: 1,
                seconds: 1.0,
                ..Deletion::default()
            });
            disturbed(trial, &verdict, &run(1000.0), &[])
        };
        assert_eq!(of(&trim, 2 << 30), None);
        let passed_over = of(&trim, 3 << 30).unwrap();
        assert!(
            passed_over.useless && passed_over.why.contains("3.0 GiB"),
            "{passed_over:?}"
        );
        assert_eq!(of(&TRIAL, 3 << 30), None);
    }
}
