//! The settings, held: changed from trial to trial, and put back whatever happens.

use linux::SysRoot;
use linux::limit::{LimitError, LimitGuard};
use linux::mounts::Mount;
use storage::remount::{self, DiscardGuard, RemountError};

use units::names;

use crate::tune::target::Target;
use crate::tune::trial::Trial;

/// Why a setting was not changed, or not put back.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The limit of a drive.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The mount's option.
    #[error(transparent)]
    Remount(#[from] RemountError),
    /// It isn't what it was when it was looked at.
    #[error("something else changed {0} just now: try again")]
    Changed(String),
    /// It was switched, and could not be switched back.
    #[error("{0}")]
    Left(String),
}

impl SettingsError {
    /// Whether another process holds the settings or has just changed them, so that a later
    /// try may succeed.
    pub fn passes(&self) -> bool {
        matches!(
            self,
            SettingsError::Changed(_)
                | SettingsError::Limit(LimitError::Busy { .. })
                | SettingsError::Remount(RemountError::Busy { .. })
        )
    }
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
    pub fn take(target: &Target) -> Result<Settings, SettingsError> {
        let sys = SysRoot::host();
        let limits = target
            .drives
            .iter()
            .map(|drive| LimitGuard::take(&sys, drive));
        let limits: Vec<LimitGuard> = limits.collect::<Result<_, _>>()?;
        // What was found before the locks may be what somebody else had set for a while.
        let mut pairs = limits.iter().zip(&target.limits_bytes);
        if let Some((limit, _)) = pairs.find(|(limit, found)| limit.before_bytes() != **found) {
            let what = format!("the discard_max_bytes of {}", limit.device());
            return Err(SettingsError::Changed(what));
        }
        if remount::settled(&target.mount)?.super_options != target.mount.super_options {
            let what = format!("the options of {}", names::shown(&target.mount.mount_point));
            return Err(SettingsError::Changed(what));
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
    pub fn set(&mut self, trial: &Trial) -> Result<(), SettingsError> {
        for limit in &self.limits {
            // As it is now, each drive has its own: that is put back.
            match trial.limit_bytes == self.now_bytes {
                true => limit.set(limit.before_bytes())?,
                false => limit.set(trial.limit_bytes)?,
            }
        }
        let online = trial.policy.is_online();
        if online == self.was_online || self.is_lost() {
            return self.switch_back();
        }
        if self.switched.is_none() {
            self.switched = Some(match online {
                true => DiscardGuard::on(&self.mount)?,
                false => DiscardGuard::off(&self.mount)?,
            });
        }
        Ok(())
    }

    /// Whether something could not be put back: all that is tried from now on would be tried
    /// with another setting than it says.
    pub fn is_lost(&self) -> bool {
        self.left.is_some()
    }

    fn switch_back(&mut self) -> Result<(), SettingsError> {
        if let Some(switched) = self.switched.take() {
            self.left = switched.restore().err().map(|error| error.to_string());
        }
        self.left
            .clone()
            .map_or(Ok(()), |left| Err(SettingsError::Left(left)))
    }

    /// Puts all back.
    ///
    /// # Errors
    /// The error names each setting that could not be put back, and how to do it by hand. The
    /// others are put back.
    pub fn restore(mut self) -> Result<(), SettingsError> {
        let mut ended = self.switch_back();
        for limit in std::mem::take(&mut self.limits) {
            let restored = limit.restore();
            ended = ended.and(restored.map_err(SettingsError::from));
        }
        ended
    }

    /// Sets what a trial needs, and leaves it so.
    ///
    /// # Errors
    /// When the kernel refuses it; then all is put back.
    pub fn keep(mut self, trial: &Trial) -> Result<(), SettingsError> {
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
    fn what_another_does_passes() {
        let passes = |error: SettingsError| error.passes();
        let (file, path) = ("/sys/x".into(), "/data".into());
        assert!(passes(SettingsError::Changed(
            "the options of /data".into()
        )));
        assert!(passes(LimitError::Busy { file }.into()));
        assert!(passes(RemountError::Busy { path }.into()));
        let (path, device) = ("/data".into(), "sda".into());
        assert!(!passes(RemountError::NotPermitted { path }.into()));
        assert!(!passes(LimitError::NoQueue { device }.into()));
    }
}
