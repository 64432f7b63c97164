//! What is set, now and for the next starts.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ::tune::persist::{self, Identity};
use ::tune::{Advice, Finding, Ground, Policy, Trial};
use linux::SysRoot;
use linux::mounts::{self, Mount};
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use units::names::{quoted, shown};
use units::percent_exact;

use crate::commands::tune::args::TuneArgs;
use crate::console::{self, Stream};
use crate::exit::Error;
use storage::FileSystem;

/// What went wrong first; what did after it is said at once.
pub(super) fn first_of(first: Result<(), Error>, next: Result<(), Error>) -> Result<(), Error> {
    if let (Err(_), Err(error)) = (&first, &next) {
        console::error(error);
    }
    first.and(next)
}

/// What was set, or would have to be.
pub(super) fn told(
    ground: &Ground,
    advice: &Advice,
    kept: Option<Trial>,
    args: &TuneArgs,
) -> String {
    let Some(trial) = kept.or(advice.set) else {
        return "\nAll is as it was.\n".to_owned();
    };
    let commands = commands(ground, &trial, &args.etc);
    let timer = timer_command(&trial, args);
    // That isn't among what was set: only --persist writes anything for later.
    let needs = match timer.is_empty() {
        true => String::new(),
        false => format!("It needs a timer, which --persist installs, or:\n{timer}"),
    };
    match kept {
        _ if commands.is_empty() && timer.is_empty() => {
            "\nAll is as it was, and as it should be.\n".to_owned()
        }
        Some(_) if commands.is_empty() => format!("\nAll is as it was. {needs}"),
        Some(_) => format!("\nSet:\n{commands}{needs}"),
        None => format!(
            "\nAll is as it was. To set it (or the same command with --apply{}):\n{commands}{timer}",
            if timer.is_empty() { "" } else { " --persist" },
        ),
    }
}

/// A sentence for each drive whose limit isn't what it was, and is so again with the next start
/// only. It is looked at: a run that was ended early may have changed none.
pub(super) fn left_changed(ground: &Ground) -> String {
    let all = ground.drives.iter().zip(&ground.limits_bytes);
    let lasting = all.filter(|(drive, _)| ground.irreversible.contains(drive));
    let sentences = lasting.filter_map(|(drive, before)| {
        let now = limit_now(drive).filter(|now| now != before)?;
        Some(format!(
            "But the limit of {drive} is {now} until the next start.\n"
        ))
    });
    sentences.collect()
}

/// What `discard_max_bytes` of a drive is.
fn limit_now(drive: &str) -> Option<u64> {
    let file = format!("/sys/block/{drive}/queue/discard_max_bytes");
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// A path as a word of a command.
fn word(path: &Path) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@".contains(c);
    match path.to_str() {
        Some(text) if text.chars().all(plain) => text.to_owned(),
        _ => quoted(path),
    }
}

/// What sets a trial's settings, as far as they aren't so already.
fn commands(ground: &Ground, trial: &Trial, etc: &Path) -> String {
    let mut text = String::new();
    if trial.limit_bytes != ground.range.now_bytes {
        for drive in &ground.drives {
            text += &format!(
                "  echo {} > /sys/block/{drive}/queue/discard_max_bytes\n",
                trial.limit_bytes
            );
        }
    }
    if trial.policy.is_online() != ground.is_online() {
        let option = if trial.policy.is_online() {
            "discard"
        } else {
            "nodiscard"
        };
        // mount(8) would add what a bind mount's line says, and change that mount alone.
        let own = own_place(&ground.mount, &fstab_text(etc));
        let at = own.as_ref().unwrap_or(&ground.mount.mount_point);
        text += &format!("  mount -o remount,{option} {}\n", word(at));
    }
    text
}

/// The commands that install and start the timer which a trial's way needs, unless that was
/// done or `--persist` does it.
fn timer_command(trial: &Trial, args: &TuneArgs) -> String {
    if trial.policy != Policy::PacedFstrim || args.persist {
        return String::new();
    }
    let units = args.etc.join("systemd/system");
    let timer = "trimbench-fstrim.timer";
    let enable = format!("  systemctl enable --now {timer}\n");
    match (
        units.join(timer).exists(),
        units.join("timers.target.wants").join(timer).exists(),
    ) {
        (true, true) => String::new(),
        (true, false) => enable,
        (false, _) => format!(
            "  trimbench {}\n{enable}",
            timer_words(args.slowdown).join(" ")
        ),
    }
}

/// Makes what is set outlast a restart, be it since just now or since before: writes a
/// udev rule, and tells of the timer that was installed. A line of fstab is only shown, for a
/// mistake in it keeps a machine from starting.
pub(super) fn persist(
    ground: &Ground,
    advice: &Advice,
    kept: Option<Trial>,
    timer: Option<String>,
    args: &TuneArgs,
    people: Stream,
) -> Result<(), Error> {
    if kept.is_none() && matches!(advice.finding, Finding::TooFewRuns) {
        people.print("For the next starts nothing is written, for nothing was found out.\n");
        return Ok(());
    }
    // Each is attempted whatever becomes of the others.
    let rule = keep_limit(ground, kept, &args.etc);
    let online = kept.map_or(ground.is_online(), |trial| trial.policy.is_online());
    let line = fstab(ground, online, &args.etc);
    let mut ended = Ok(());
    let mut nothing = true;
    for part in [Ok(timer), rule, Ok(line)] {
        match part {
            Ok(None) => continue,
            Ok(Some(text)) => people.print(&text),
            Err(error) => ended = first_of(ended, Err(error)),
        }
        nothing = false;
    }
    if nothing {
        people.print("For the next starts nothing has to be written.\n");
    }
    ended
}

/// Writes a rule for the limit where drives don't start with it, and takes an older one away
/// where they do; what there is to say.
fn keep_limit(ground: &Ground, kept: Option<Trial>, etc: &Path) -> Result<Option<String>, Error> {
    let limit_bytes = match kept {
        Some(trial) if trial.limit_bytes != ground.range.now_bytes => Some(trial.limit_bytes),
        _ => Some(ground.range.now_bytes).filter(|_| ground.alike),
    };
    let Some(limit_bytes) = limit_bytes else {
        return Ok(None);
    };
    let rule = persist::rule_path(etc);
    let drives = identities(&ground.drives);
    // A drive starts with the most that it takes, which may be more than a rule can give it.
    if limit_bytes >= ground.range.most_bytes() {
        let removed = remove_rule(&drives, &rule)?;
        return Ok(removed.then(|| {
            format!(
                "Taken out of {}: what it said of {}, which needs no rule for that limit.\n",
                shown(&rule),
                ground.drives.join(", ")
            )
        }));
    }
    write_rule(&drives, limit_bytes, &rule)?;
    let mut text = format!("Written: {}\n", shown(&rule));
    for drive in drives {
        if let Identity::Name(name) = drive {
            text += &format!(
                "udev knows no serial number of {name}, so the rule goes by that name, which \
                 another drive may have after the next start.\n"
            );
        }
    }
    Ok(Some(text))
}

/// How the drives are recognised at the next start.
fn identities(drives: &[String]) -> Vec<Identity> {
    let identity = |drive: &String| {
        let number = fs::read_to_string(format!("/sys/class/block/{drive}/dev"));
        let data = number
            .ok()
            .and_then(|n| fs::read_to_string(format!("/run/udev/data/b{}", n.trim())).ok());
        persist::identity(drive, data.as_deref())
    };
    drives.iter().map(identity).collect()
}

/// Writes a rule for the drives.
fn write_rule(drives: &[Identity], limit_bytes: u64, path: &Path) -> Result<(), Error> {
    fs::create_dir_all(directory(path)).map_err(not_written(path))?;
    let _locked = locked(path)?;
    let there_is = read_rules(path)?;
    let rules = persist::rules(there_is.as_deref(), drives, limit_bytes).ok_or_else(|| {
        Error::Usage(format!(
            "{}: isn't ours, and was left alone; move it away",
            shown(path)
        ))
    })?;
    linux::files::replace(path, rules.as_bytes(), 0o644).map_err(not_written(path))
}

/// Takes the drives' rule away; whether there was one.
fn remove_rule(drives: &[Identity], path: &Path) -> Result<bool, Error> {
    // No directory is made to find out that there was nothing in it.
    if !path.exists() {
        return Ok(false);
    }
    let _locked = locked(path)?;
    let rules = read_rules(path)?.and_then(|text| persist::without(&text, drives));
    let Some(rules) = rules else {
        return Ok(false);
    };
    linux::files::replace(path, rules.as_bytes(), 0o644).map_err(not_written(path))?;
    Ok(true)
}

/// Whoever reads the rules to write them again has their directory alone until this is dropped:
/// the rule of a drive that another process writes meanwhile would be lost.
fn locked(path: &Path) -> Result<File, Error> {
    let directory = File::open(directory(path)).map_err(not_written(path))?;
    retry_on_intr(|| flock(&directory, FlockOperation::LockExclusive))
        .map_err(|errno| not_written(path)(errno.into()))?;
    Ok(directory)
}

/// The rules there are; `None` where there is no such file.
fn read_rules(path: &Path) -> Result<Option<String>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::OutputOpen {
            path: path.to_path_buf(),
            source,
        }),
    }
}

/// The directory that the rules lie in.
fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Why the rules were not written.
fn not_written(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::OutputWrite { path, source }
}

/// What fstab says; nothing where there is none.
fn fstab_text(etc: &Path) -> String {
    let text = fs::read(etc.join("fstab")).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

/// Where the file system is mounted by itself, which its options belong to. A bind mount of
/// it, or of a part, has only its own. `None`: nowhere that can be seen from here.
fn own_place(mount: &Mount, fstab: &str) -> Option<PathBuf> {
    let is_own = |mount: &Mount| {
        // btrfs is mounted by itself with each of its subvolumes.
        let is_root = mount.root == Path::new("/") || FileSystem::mounted(mount).has_subvolumes();
        is_root && !persist::is_bind(fstab, &mount.mount_point)
    };
    if is_own(mount) {
        return Some(mount.mount_point.clone());
    }
    let all = mounts::list(&SysRoot::host()).unwrap_or_default();
    all.into_iter()
        .find(|other| other.device == mount.device && is_own(other))
        .map(|own| own.mount_point)
}

/// The line that somebody has to change, if one has to be.
fn fstab(ground: &Ground, online: bool, etc: &Path) -> Option<String> {
    let path = etc.join("fstab");
    let text = fstab_text(etc);
    let at = &ground.mount.mount_point;
    let own = own_place(&ground.mount, &text);
    let bind = match own.as_ref() == Some(at) {
        true => String::new(),
        false => format!(
            "{} is a bind mount, on whose line that option has no effect: it belongs on the line that \
             mounts the file system itself.\n",
            shown(at)
        ),
    };
    let option = match online {
        true => FileSystem::mounted(&ground.mount).discard_option(),
        false => "nodiscard",
    };
    // Where nothing has changed now, what isn't said there is as the file system has it; and
    // which of its ways of discarding btrfs is to have for good was not compared.
    let says = |line: &persist::FstabLine| {
        let contrary = if online { "nodiscard" } else { "discard" };
        online != ground.is_online() || line.is_with(contrary)
    };
    match own.and_then(|own| persist::fstab_line(&text, &own, option)) {
        Some(line) if !says(&line) => None,
        Some(line) => Some(format!(
            "In {} change this line by hand (it is not written to):\n- {}\n+ {}\n{bind}",
            shown(&path),
            line.is,
            line.should_be
        )),
        None if online == ground.is_online() => None,
        None => Some(format!(
            "{} has no line for {} that would have to change; wherever it is mounted from, add \
             the option {}.\n{bind}",
            shown(&path),
            shown(at),
            option
        )),
    }
}

/// What follows `trimbench` to install a timer with the same goal. It takes the place of the
/// distribution's timer, so it trims all that is mounted.
fn timer_words(slowdown: f64) -> [String; 4] {
    let slowdown = format!("--slowdown={}", percent_exact(slowdown));
    ["fstrim", "--all", "--install-timer", &slowdown].map(str::to_owned)
}

/// Installs the timer; what that says.
pub(super) fn install_timer(args: &TuneArgs) -> Result<String, Error> {
    let failed = |why: String| Error::Setting(format!("the timer was not installed: {why}"));
    let units = args.etc.join("systemd/system");
    fs::create_dir_all(&units).map_err(|e| failed(format!("{}: {e}", shown(&units))))?;
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let mut command = std::process::Command::new(program);
    command.args(timer_words(args.slowdown));
    command.arg("--unit-dir").arg(units);
    let done = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    match done.status.success() {
        true => Ok(text(&done.stdout) + "\n"),
        false => Err(failed(text(&done.stderr))),
    }
}

#[cfg(test)]
mod tests;
