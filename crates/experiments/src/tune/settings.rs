//! The settings, held: changed from trial to trial, and put back whatever happens.

use linux::SysRoot;
use linux::limit::{LimitError, LimitGuard};
use linux::mounts::Mount;
use storage::remount::{self, DiscardGuard, RemountError};

use record::units::names;

use crate::Error;
use crate::tune::target::Target;
use crate::tune::trials::Trial;

/// The error of a limit that was not taken. Where another process holds it, a later try may
/// succeed, so the request is not at fault.
fn limit_not_taken(error: LimitError) -> Error {
    match error {
        LimitError::Busy { .. } => Error::failed(error),
        _ => Error::Usage(error.to_string()),
    }
}

/// The same of a mount's option.
fn mount_not_taken(error: RemountError) -> Error {
    match error {
        RemountError::Busy { .. } => Error::failed(error),
        _ => Error::Usage(error.to_string()),
    }
}

fn changed(what: &str) -> Error {
    Error::Failed(format!("something else changed {what} just now: try again"))
}

/// The limits of the drives and the mount's option. Dropping it puts all back, and
/// so does the end of this process, be it by `kill -9`.
#[derive(Debug)]
pub struct Settings {
    limits: Vec<LimitGuard>,
    /// The least of the limits as they were.
    now_bytes: u64,
    mount: Mount,
    was_online: bool,
    /// While the mount's option isn't the old one.
    switched: Option<DiscardGuard>,
    /// The setting that could not be put back. Then nothing more is tried.
    left: Option<String>,
}

impl Settings {
    /// Takes what is to be changed, and changes nothing yet.
    ///
    /// # Errors
    /// When it isn't ours to change (root is needed), another process has it, or it
    /// isn't any more what was found.
    pub fn take(target: &Target) -> Result<Settings, Error> {
        let sys = SysRoot::host();
        let take = |drive: &String| LimitGuard::take(&sys, drive).map_err(limit_not_taken);
        let limits: Vec<LimitGuard> = target.drives.iter().map(take).collect::<Result<_, _>>()?;
        // What was found before the locks may be what somebody else had set for a while.
        let mut pairs = limits.iter().zip(&target.limits_bytes);
        if let Some((limit, _)) = pairs.find(|(limit, found)| limit.before_bytes() != **found) {
            return Err(changed(&format!(
                "the discard_max_bytes of {}",
                limit.device()
            )));
        }
        let settled = remount::settled(&target.mount).map_err(mount_not_taken)?;
        if settled.super_options != target.mount.super_options {
            let at = names::shown(&target.mount.mount_point);
            return Err(changed(&format!("the options of {at}")));
        }
        Ok(Settings {
            limits,
            now_bytes: target.range.now_bytes,
            mount: target.mount.clone(),
            was_online: target.is_online(),
            switched: None,
            left: None,
        })
    }

    /// Sets what a trial needs.
    ///
    /// # Errors
    /// When the kernel refuses it: XFS, for one, takes the option only when it is
    /// mounted. And when something could not be put back since it was taken.
    pub fn set(&mut self, trial: &Trial) -> Result<(), Error> {
        for limit in &self.limits {
            // As it is now, each drive has its own: that is put back.
            let bytes = match trial.limit_bytes == self.now_bytes {
                true => limit.before_bytes(),
                false => trial.limit_bytes,
            };
            limit.set(bytes).map_err(Error::failed)?;
        }
        let online = trial.policy.is_online();
        if online == self.was_online || self.is_lost() {
            return self.switch_back();
        }
        if self.switched.is_none() {
            let switched = match online {
                true => DiscardGuard::on(&self.mount),
                false => DiscardGuard::off(&self.mount),
            };
            self.switched = Some(switched.map_err(Error::failed)?);
        }
        Ok(())
    }

    /// Whether something could not be put back: all that is tried from now on would be tried
    /// with another setting than it says.
    pub fn is_lost(&self) -> bool {
        self.left.is_some()
    }

    fn switch_back(&mut self) -> Result<(), Error> {
        if let Some(switched) = self.switched.take() {
            self.left = switched.restore().err().map(|error| error.to_string());
        }
        let left = self.left.clone();
        left.map_or(Ok(()), |left| Err(Error::Failed(left)))
    }

    /// Puts all back.
    ///
    /// # Errors
    /// The error names each setting that could not be put back, and how to do it by hand. The
    /// others are put back.
    pub fn restore(mut self) -> Result<(), Error> {
        let mut ended = self.switch_back();
        for limit in std::mem::take(&mut self.limits) {
            ended = ended.and(limit.restore().map_err(Error::failed));
        }
        ended
    }

    /// Sets what a trial needs, and leaves it so.
    ///
    /// # Errors
    /// When the kernel refuses it; then all is put back.
    pub fn keep(mut self, trial: &Trial) -> Result<(), Error> {
        self.set(trial)?;
        for limit in std::mem::take(&mut self.limits) {
            limit.keep();
        }
        if let Some(switched) = self.switched.take() {
            switched.keep();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_not_at_fault_where_another_process_holds_the_settings() {
        let (file, path) = ("/sys/x".into(), "/data".into());
        assert!(!limit_not_taken(LimitError::Busy { file }).is_usage());
        assert!(!mount_not_taken(RemountError::Busy { path }).is_usage());
        let (path, device) = ("/data".into(), "sda".into());
        assert!(mount_not_taken(RemountError::NotPermitted { path }).is_usage());
        assert!(limit_not_taken(LimitError::NoQueue { device }).is_usage());
    }
}
