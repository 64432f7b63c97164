//! Writes a service of systemd that guards.

use std::path::{Path, PathBuf};

use linux::mounts::Mount;
use record::units::names::shown;
use record::units::{duration_exact, percent_exact};
use storage::FileSystem;

use crate::commands::guard::args::{Details, StartArgs};
use crate::console::Stream;
use crate::exit::{Error, Exit};
use crate::goal::in_shell;
use crate::systemd::{
    Units, absolute, in_unit, next_steps, own_program, refuse_control, with_command,
};

const MARK: &str = "# Written by trimbench guard --install";
const NAME: &str = "trimbench-guard.service";

/// The unit as packages install it, one for each mount point (`%f`).
const SERVICE: &str = include_str!("../../../systemd/trimbench-guard@.service");

/// Writes the service, or shows it, unless another is there or a start would be refused.
pub(super) fn install(args: &StartArgs, details: &Details) -> Result<Exit, Error> {
    super::intentions(args, details)?;
    let own = own_program()?;
    let command = command(args, details, &own)?;
    let files = [(details.unit_dir().join(NAME), text(args, &command)?)];
    let units = Units {
        kind: "service",
        mark: MARK,
        program: &own,
        files: &files,
    };
    let enable = format!(
        "To start it, now and with the machine:\n  systemctl daemon-reload\n  \
         systemctl enable --now {NAME}\n"
    );
    let next = next_steps(&enable, "@reboot", &command);
    if args.dry_run {
        units.show();
        Stream::Out.print(&next);
        return Ok(Exit::Done);
    }
    units.write(details.replace())?;
    Stream::Out.print(&format!(
        "Wrote {}. It runs:{}\n{next}",
        shown(&files[0].0),
        in_shell(&command),
    ));
    Ok(Exit::Done)
}

/// The service, which sees the file systems as writable and waits for their mounts.
fn text(args: &StartArgs, command: &[String]) -> Result<String, Error> {
    let paths = args
        .mounts
        .iter()
        .map(|mount| Ok(in_unit(&absolute(mount)?)));
    let paths = paths.collect::<Result<Vec<String>, Error>>()?.join(" ");
    let is_btrfs = |path: &PathBuf| {
        Mount::of(path).is_ok_and(|mount| FileSystem::mounted(&mount) == FileSystem::Btrfs)
    };
    let line = |line: &str| match line {
        // The rate of the kernel's own trims is set there.
        _ if line.starts_with("ReadWritePaths=") && !args.mounts.iter().any(is_btrfs) => {
            "ReadWritePaths=%f".to_owned()
        }
        line => line.to_owned(),
    };
    let named = SERVICE.lines().skip_while(|line| line.starts_with('#'));
    let lines = named.map(|text| line(text).replace("%f", &paths) + "\n");
    Ok(with_command(&lines.collect::<String>(), MARK, command))
}

/// Returns the command of the service, with the options that were given.
fn command(args: &StartArgs, details: &Details, own: &Path) -> Result<Vec<String>, Error> {
    let mut words = vec![absolute(own)?, "guard".to_owned()];
    let mut add = |key: &str, value: String| words.push(format!("--set={key}={value}"));
    add("max-age", duration_exact(details.max_age()));
    add("most", percent_exact(details.most()));
    if let Some(bytes) = details.min_run {
        add("min-run", bytes.to_string());
    }
    if let Some(hours) = details.between {
        add("between", hours.to_string());
    }
    words.extend(args.goal.in_unit(true)?);
    for (given, word) in [(args.remount, "--remount"), (args.quiet, "--quiet")] {
        if given {
            words.push(word.to_owned());
        }
    }
    for mount in &args.mounts {
        words.push(absolute(mount)?);
    }
    refuse_control(&words)?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use record::units::settings::Section;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn what_a_start_refuses_is_not_installed() {
        let units = tempfile::tempdir().unwrap();
        let at = format!("--set=unit-dir={}", units.path().display());
        let words = [
            "trimbench",
            "guard",
            "--install",
            &at,
            "--set=replace=true",
            "/proc/sys",
        ];
        let Command::Guard(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command");
        };
        let details = Details::of(&args.start.set).unwrap();
        let refused = install(&args.start, &details).unwrap_err();
        assert!(matches!(refused, Error::Guard(_)), "{refused}");
        assert_eq!(std::fs::read_dir(units.path()).unwrap().count(), 0);
    }
}
