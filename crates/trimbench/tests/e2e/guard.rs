//! `trimbench guard`: its orders, its state that only root can plant or rename, and its service.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::time::Duration;

use crate::common::gate::lacks;
use crate::common::loop_fs::{Fs, must};
use crate::common::run::{run, start};
use crate::deployed::capabilities;
use crate::guard_place::{ended, place};
use crate::rm_place::{MIB, USERS, written};

#[test]
fn its_goal_is_changed_while_it_runs() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    let goal = [
        ".",
        "--slowdown",
        "5%",
        "--max-latency",
        "50ms",
        "--deadline",
        "1h",
        "--profile",
        "ideal",
        "--quiet",
    ];
    let mut running = start(fs.guard(&goal));
    running.until("a status", || {
        fs.guarded(&["status", "."]).code() == Some(0)
    });
    assert_eq!(fs.status()["goal"]["slowdown"], 0.05);
    let set = ["set", ".", "slowdown=30%", "max-latency=20ms"];
    fs.guarded(&set).succeeds();
    // It returns when that holds.
    assert_eq!(fs.status()["goal"]["slowdown"], 0.3);
    assert_eq!(fs.status()["goal"]["max_latency_ms"], 20.0);
    let shown = fs.guarded(&["status", "."]).succeeds().stdout.clone();
    for part in [
        "guarded by process",
        "--slowdown 30%",
        "since the guard's start",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // All guards, of other tests, too.
    let all = fs.guarded(&["status"]).succeeds().stdout.clone();
    let who = shown.split(" for ").next().unwrap();
    assert!(all.contains(who), "{all}");
    let at = format!("{{mount=\"{}\"}}", fs.path().display());
    let figures = fs.guarded(&["status", "--metrics", "-", "."]);
    for part in [
        &format!("guard_up{at} 1.0"),
        &format!("goal_slowdown_ratio{at} 0.3"),
        "busy_seconds_total",
        "# EOF",
    ] {
        let text = &figures.succeeds().stdout;
        assert!(text.contains(part), "{part}: {text}");
    }
    fs.guarded(&["status", "--metrics", "lost+found/g.prom", "."])
        .succeeds();
    let file = fs::read_to_string(fs.path().join("lost+found/g.prom")).unwrap();
    assert!(file.contains(&format!("debt_bytes{at}")), "{file}");
    assert_eq!(ended(running).stderr, "");
    for order in [
        &["set", ".", "slowdown=30%"][..],
        &["status", "."],
        &["drain", "."],
        &["stop", "."],
    ] {
        fs.guarded(order).fails_with(2, &["is not guarded"]);
    }
    let down = fs.guarded(&["status", "--metrics", "-", "."]);
    let down = down.succeeds().stdout.clone();
    assert!(down.contains(&format!("guard_up{at} 0.0")), "{down}");
    assert!(fs.all_states().is_empty());
}

/// Through another mount point, a bind mount, or one that was mounted over it.
#[test]
fn a_second_guard_of_a_file_system_is_refused_wherever_it_is_mounted() {
    for kind in [Fs::Ext4, Fs::Xfs] {
        let Some(fs) = place(kind, "nodiscard") else {
            return;
        };
        let running = fs.trims(&[]);
        fs.guarded(&["."])
            .fails_with(2, &["is guarded already (by process", "guard status"]);
        let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
        let at = elsewhere.path().to_string_lossy().into_owned();
        let device = fs.device().path().to_string_lossy().into_owned();
        let again = ["-o", "nodiscard", &device, &at];
        let bound = ["--bind", &*fs.path().to_string_lossy(), &at];
        for mount in [&again[..], &bound] {
            must("mount", mount);
            let second = run(fs.guard_in(elsewhere.path(), &["."]));
            let status = run(fs.guard_in(elsewhere.path(), &["status", "."]));
            must("umount", &[&at]);
            second.fails_with(2, &["is guarded already"]);
            status.succeeds();
        }
        ended(running);
    }
}

/// Its path leads elsewhere then.
#[test]
fn a_guard_goes_on_after_another_file_system_was_mounted_over_its_own() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    written(&fs.path().join("gone"), 80);
    let mut running = fs.trims(&[]);
    fs.guarded(&["drain", "."]).succeeds();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let [here, there] =
        [fs.path(), elsewhere.path()].map(|path| path.to_string_lossy().into_owned());
    must("mount", &["--bind", &here, &there]);
    must("mount", &["-t", "tmpfs", "none", &here]);
    let held = || std::os::unix::fs::MetadataExt::blocks(&fs.device().image().metadata().unwrap());
    let full = held();
    fs::remove_file(elsewhere.path().join("gone")).unwrap();
    must("sync", &["-f", &there]);
    let trimmed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        running.until("its own is trimmed", || held() + (70 << 11) <= full);
    }));
    must("umount", &[&here]);
    must("umount", &[&there]);
    trimmed.unwrap();
    ended(running);
}

#[test]
fn a_guard_whose_state_was_renamed_ends_and_a_new_one_starts() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    let running = fs.trims(&[]);
    let state = fs.all_states().pop().unwrap();
    fs::rename(&state, fs.states().join("renamed")).unwrap();
    running
        .wait()
        .fails_with(1, &["ended, because its state was renamed or removed"]);
    ended(fs.trims(&[]));
}

#[test]
fn a_state_that_another_user_could_have_planted_is_refused() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    let running = fs.trims(&[]);
    let state = fs.all_states().pop().unwrap();
    ended(running);
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    fs::create_dir(&state).unwrap();
    chown(&state, Some(65_534), None).unwrap();
    fs.guarded(&["."])
        .fails_with(1, &["does not belong to root"]);
    chown(&state, Some(0), None).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    fs.guarded(&["."])
        .fails_with(1, &["can be written to by other users"]);
    fs::remove_dir(&state).unwrap();
    symlink(elsewhere.path(), &state).unwrap();
    fs.guarded(&["."])
        .fails_with(1, &["is no directory", "STATE_DIRECTORY"]);
    fs.guarded(&["status", "."])
        .fails_with(1, &["is no directory"]);
    fs::remove_file(&state).unwrap();
    // The directory above them is as safe.
    fs::remove_dir(fs.states()).unwrap();
    symlink(elsewhere.path(), fs.states()).unwrap();
    fs.guarded(&["."]).fails_with(1, &["is no directory"]);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn another_user_than_root_gets_the_command_that_works() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    if lacks(USERS) {
        return;
    }
    let copy = tempfile::Builder::new()
        .permissions(PermissionsExt::from_mode(0o755))
        .tempdir_in("/dev/shm")
        .unwrap();
    let binary = crate::common::run::copied_to(copy.path());
    for words in [&["guard", "."][..], &["guard", "status", "."]] {
        let mut command = std::process::Command::new("setpriv");
        command
            .args(["--clear-groups", "--reuid=65534", "--regid=65534"])
            .arg(&binary)
            .args(words)
            .current_dir(fs.path());
        let again = words.join(" ").replace('.', &fs.path().to_string_lossy());
        let again = format!("sudo trimbench {again}");
        run(command).fails_with(2, &["it takes root", &again]);
    }
}

/// A rest that guard itself would let wait is no warning at the end; more is one.
#[test]
fn a_rest_that_is_worth_no_trim_is_no_warning() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    let free = |mib: usize, arguments: &[&str]| {
        let gone = fs.path().join("gone");
        let mut running = fs.trims(arguments);
        fs.guarded(&["drain", "."]).succeeds();
        written(&gone, mib);
        std::thread::sleep(Duration::from_secs(2));
        fs::remove_file(&gone).unwrap();
        must("sync", &["-f", &fs.path().to_string_lossy()]);
        let waits = || fs.status()["trim"]["debt_bytes"].as_u64() >= Some((mib * MIB) as u64 / 2);
        running.until("its debt", waits);
        ended(running).stderr
    };
    // Outside its hours, so that nothing of it is trimmed.
    let hour = |from: u32| format!("{:02}:00-{:02}:00", from % 24, (from + 1) % 24);
    let now = run({
        let mut date = std::process::Command::new("date");
        date.arg("+%H");
        date
    });
    let now: u32 = now.succeeds().stdout.trim().parse().unwrap();
    let later = hour(now + 12);
    let between = format!("between={later}");
    let outside = ["--set", &*between, "--set", "most=90%"];
    let little = free(16, &outside);
    assert!(!little.contains("aren't trimmed"), "{little}");
    let much = free(128, &outside);
    assert!(much.contains("that are free aren't trimmed"), "{much}");
}

/// On a mount that another user owns, as a database's.
#[test]
fn guard_and_fstrim_run_with_the_capabilities_of_their_units_alone() {
    for kind in [Fs::Ext4, Fs::Xfs, Fs::Btrfs] {
        let option = if kind == Fs::Btrfs {
            "discard=async"
        } else {
            "nodiscard"
        };
        let Some(fs) = place(kind, option) else {
            return;
        };
        if lacks(USERS) {
            return;
        }
        chown(fs.path(), Some(65_534), Some(65_534)).unwrap();
        fs::set_permissions(fs.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let bounded = |unit: &str, words: &[&str]| {
            let ours = fs.guard(&[]);
            let set = capabilities(unit).join(",+").to_lowercase();
            let mut command = std::process::Command::new("setpriv");
            command.args([
                "--inh-caps=-all".to_owned(),
                format!("--bounding-set=-all,+{set}"),
            ]);
            command.arg(ours.get_program()).args(words).current_dir("/");
            command.env("STATE_DIRECTORY", fs.states());
            command
        };
        let here = fs.path().to_string_lossy().into_owned();
        let words = ["guard", "--slowdown", "100%", &here];
        let mut running = start(bounded("trimbench-guard@.service", &words));
        running.until_said("trims what is freed", 1);
        written(&fs.path().join("gone"), 80);
        fs::remove_file(fs.path().join("gone")).unwrap();
        must("sync", &["-f", &here]);
        running.until("a status", || {
            fs.guarded(&["status", "."]).code() == Some(0)
        });
        fs.guarded(&["drain", "."]).succeeds();
        let found = fs.status();
        let done = ended(running);
        for failed in ["can't", "cannot", "denied", "not permitted"] {
            assert!(!done.stderr.contains(failed), "{found}: {}", done.stderr);
        }
        let words = ["fstrim", "--slowdown", "100%", "--verbose", &here];
        let trimmed = run(bounded("trimbench-fstrim.service", &words));
        assert!(
            trimmed.succeeds().stdout.contains("trimmed"),
            "{}",
            trimmed.text()
        );
    }
}

#[test]
fn install_writes_a_hardened_service_once() {
    let Some(fs) = place(Fs::Ext4, "nodiscard") else {
        return;
    };
    let outer = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = format!("unit-dir={}", outer.path().display());
    let install = |more: &[&str]| {
        let all = [&[".", "--install", "--set", &at], more].concat();
        fs.guarded(&all)
    };
    install(&[]).fails_with(2, &["replace=true"]);
    let dry = install(&["--dry-run", "--slowdown", "5%"]);
    for part in [
        "trimbench-guard.service\n",
        "\n[Service]\n",
        "--slowdown=5%%",
    ] {
        assert!(dry.succeeds().stdout.contains(part), "{}", dry.text());
    }
    fs.guarded(&["/nonexistent", "--install"])
        .fails_with(2, &["cannot open '/nonexistent'", "mount point"]);
    fs.guarded(&["status", "/nonexistent"])
        .fails_with(2, &["cannot open"]);
    install(&["--set=replace=true", "/proc/sys"]).fails_with(2, &["can't be guarded"]);
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    install(&[
        "--set=replace=true",
        "--slowdown",
        "5%",
        "--remount",
        "--set",
        "between=1:00-2:00",
    ])
    .succeeds();
    let unit = outer.path().join("trimbench-guard.service");
    let text = fs::read_to_string(&unit).unwrap();
    let mount = fs.path().canonicalize().unwrap();
    let mount = mount.display();
    for line in [
        format!("Description=Trim what is freed on {mount} without stalling other I/O\n"),
        format!(
            " guard --set=max-age=1h --set=most=20%% --set=between=01:00-02:00 --slowdown=5%% \
             --remount {mount}\n"
        ),
        format!("ReadWritePaths={mount}\n"),
        format!("RequiresMountsFor={mount}\n"),
        "CapabilityBoundingSet=CAP_SYS_ADMIN CAP_DAC_OVERRIDE\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert!(!text.contains("%f"), "{text}");
    install(&["--slowdown", "9%"]).fails_with(2, &["replace=true"]);
    install(&[
        "--set=replace=true",
        "--set",
        "most=5%",
        "--set",
        "min-run=0",
    ])
    .succeeds();
    fs::write(&unit, "mine").unwrap();
    install(&["--set=replace=true"]).fails_with(2, &["wasn't written by trimbench"]);
}
