//! `trimbench watch`: devices, senders of discards and blocked programs, live.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::gate::{Need, alone, beside, lacks};
use crate::common::run::{as_plain_user, copied_to, run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};

/// Asserts that each line has the form that the schema promises.
#[track_caller]
pub fn updates(text: &str) -> Vec<Value> {
    let validator = testkit::schema::open(include_str!("../../../diagnose/schema/watch-1.json"));
    let parsed = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let all: Vec<Value> = parsed.collect();
    for one in &all {
        let faults: Vec<String> = validator
            .iter_errors(one)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}\n{one:#}");
    }
    all
}

/// Sums a figure of one device over all updates.
fn sum(all: &[Value], device: &str, kind: &str, figure: &str) -> u64 {
    let devices = all
        .iter()
        .flat_map(|one| one["devices"].as_array().unwrap());
    devices
        .filter(|one| one["device"] == device)
        .map(|one| one[kind][figure].as_u64().unwrap())
        .sum()
}

#[test]
fn a_stall_on_a_slow_drive_is_shown_recorded_and_counted() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = alone();
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount();
    let up = ["--profile", "ocz-agility-2", "--size", "8G", "--fs", "ext4"];
    let at = ["--mount", mount.to_str().unwrap(), "-o", "discard"];
    let device = lab.up(&name, &[&up[..], &at].concat());
    let device = device.file_name().unwrap().to_str().unwrap();
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).current_dir(&mount);
        command
    };
    let files = "for i in $(seq 1 240); do dd if=/dev/urandom of=f$i bs=64k count=4 status=none; done; sync";
    assert!(shell(files).status().unwrap().success());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let mut command = trimbench();
    command.arg("watch").arg(&mount);
    command.args(["--interval", "200ms", "--for", "11s"]);
    command.arg("--json").arg(file("updates"));
    command.arg("--output").arg(file("record.zst"));
    command.arg("--prometheus").arg(file("figures.prom"));
    let before = lab.stats(&name);
    // The program that will wait is there from the beginning, so that the first look finds it.
    let stalled = "mkfifo in; dd if=in of=w bs=4k iflag=fullblock oflag=dsync status=none & \
                   until [ -e go ]; do sleep 0.1; done; rm -f f*[02468]; sync -f .; \
                   head -c 245760 /dev/zero > in; wait";
    let mut victim = shell(stalled).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let watching = start(lab.in_here(command));
    std::thread::sleep(Duration::from_secs(1));
    std::fs::write(mount.join("go"), "").unwrap();
    assert!(victim.wait().unwrap().success());
    let done = watching.wait();
    let after = lab.stats(&name);
    let lines = done.succeeds().stdout.clone();
    for part in [
        "in TRIM",
        "(ext4 commit)",
        "freed the space",
        "behind discards",
    ] {
        assert!(lines.contains(part), "{part:?} missing in\n{lines}");
    }
    let all = updates(&std::fs::read_to_string(file("updates")).unwrap());
    assert!(all.len() >= 10, "{}", all.len());
    let commands = |stats: &Value| -> u64 {
        let kinds = stats["kinds"].as_array().unwrap().iter();
        let of = kinds.filter(|kind| kind["kind"] == "discard");
        of.map(|kind| kind["commands"].as_u64().unwrap()).sum()
    };
    // The drive's own count; what came before the first update or after the last is not in ours.
    let drive = commands(&after) - commands(&before);
    let counted = sum(&all, device, "discards", "operations");
    assert!(
        counted <= drive && counted as f64 >= 0.9 * drive as f64,
        "{counted} of {drive}"
    );
    let senders = all
        .iter()
        .flat_map(|one| one["senders"].as_array().unwrap());
    let sent = senders.filter(|one| one["reason"] == "ext-commit" && one["device"] == device);
    let sent: u64 = sent.map(|one| one["discards"].as_u64().unwrap()).sum();
    assert!(
        sent as f64 >= 0.9 * counted as f64,
        "{sent} sent, {counted} counted"
    );
    let busiest = all
        .iter()
        .flat_map(|one| one["devices"].as_array().unwrap());
    let most = busiest.map(|one| one["discarding"].as_f64().unwrap());
    assert!(
        most.fold(0.0, f64::max) > 0.9,
        "the drive is always in a discard"
    );
    // The record is one that is read, and its discards are the same.
    let mut command = trimbench();
    command
        .args(["report", "--format", "json"])
        .arg(file("record.zst"));
    let verdict: Value = serde_json::from_str(&run(command).succeeds().stdout).unwrap();
    assert_eq!(verdict["discard"]["commands"], counted, "{verdict:#}");
    let mut command = trimbench();
    command
        .arg("compare")
        .args([file("record.zst"), file("record.zst")]);
    run(command).succeeds();
    let figures = std::fs::read_to_string(file("figures.prom")).unwrap();
    let line = format!("trimbench_device_discards_total{{device=\"{device}\"}} {counted}\n");
    assert!(figures.contains(&line), "{line:?} missing in\n{figures}");
    // Each of them has its time, which on this drive is above 10 ms for most.
    let figure = |start: String| -> u64 {
        let mut lines = figures.lines();
        let value = lines.find_map(|line| line.strip_prefix(&start));
        value
            .unwrap_or_else(|| panic!("{start}: {figures}"))
            .parse()
            .unwrap()
    };
    let timed = "trimbench_device_discard_latency_seconds";
    let all = figure(format!("{timed}_count{{device=\"{device}\"}} "));
    let short = figure(format!(
        "{timed}_bucket{{le=\"0.01\",device=\"{device}\"}} "
    ));
    assert!(all as f64 >= 0.9 * counted as f64, "{all} of {counted}");
    assert!(short * 2 < all, "{short} of {all}");
}

#[test]
fn who_waits_in_a_short_stall_is_named_among_many_threads() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = alone();
    let lab = OwnLab::new();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mount = lab.mount();
    let up = ["--profile", "t500", "--slower", "50", "--size", "2G"];
    let at = ["--fs", "ext4", "--mount", mount.to_str().unwrap()];
    lab.up(&name, &[&up[..], &at, &["-o", "discard"]].concat());
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).current_dir(&mount);
        command
    };
    let files = "dd if=/dev/zero of=read bs=1M count=16 oflag=direct status=none; fallocate -l 640M big; fallocate -l 320M more; sync -f .";
    assert!(shell(files).status().unwrap().success());
    let sleepers = "trap 'pkill -P $$' TERM; for i in $(seq 500); do sleep 60 & done; wait";
    let mut sleepers = shell(sleepers).spawn().unwrap();
    // Longer than the watch.
    let mut reader = shell("exec dd if=read of=/dev/null bs=4k iflag=direct status=none")
        .spawn()
        .unwrap();
    let updates_file = mount.join("updates");
    let mut command = trimbench();
    command
        .arg("watch")
        .arg(&mount)
        .args(["--interval", "200ms", "--for", "4s"]);
    command.arg("--json").arg(&updates_file);
    let watching = start(lab.in_here(command));
    std::thread::sleep(Duration::from_millis(1500));
    assert!(shell("rm big; sync -f .").status().unwrap().success());
    // A pause of its own, in which the whole of a second stall passes.
    std::thread::sleep(Duration::from_millis(700));
    watching.signal(Signal::STOP);
    let paused = Instant::now();
    assert!(shell("rm more; sync -f .").status().unwrap().success());
    let paused = paused.elapsed();
    watching.signal(Signal::CONT);
    let done = watching.wait();
    let _ = reader.kill();
    reader.wait().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&sleepers), Signal::TERM)
        .unwrap();
    sleepers.wait().unwrap();
    done.succeeds();
    let all = updates(&std::fs::read_to_string(updates_file).unwrap());
    let blocked = all
        .iter()
        .flat_map(|one| one["blocked"].as_array().unwrap());
    let behind = blocked.filter(|one| one["program"] == "dd" && one["cause"] == "behind-discards");
    assert!(behind.count() >= 1, "{all:#?}");
    // It waits for each read, so nearly all looks meet it waiting.
    let met = |one: &&Value| one["blocked"].to_string().contains("\"dd\"");
    assert!(2 * all.iter().filter(met).count() > all.len(), "{all:#?}");
    let length = |one: &&Value| one["seconds"].as_f64().unwrap();
    let across = all.iter().max_by(|a, b| length(a).total_cmp(&length(b)));
    let across = across.unwrap();
    let mut blocked = across["blocked"].as_array().unwrap().iter();
    let reader = blocked
        .find(|one| one["program"] == "dd")
        .expect("it waits for all reads");
    let by_trim = reader["discards_s"].as_f64().unwrap();
    assert!(
        by_trim >= paused.as_secs_f64().min(1.0) / 2.0,
        "{paused:?}: {across:#}"
    );
}

/// Runs `watch` in a terminal of 80 by 24, presses keys when the screen shows given words, and
/// prints what it wrote. The last line is its exit code.
const TERMINAL: &str = r#"
import fcntl, os, pty, re, select, signal, struct, sys, termios, time
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    time.sleep(0.2)
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
steps = [("WHO WAITS", "?"), ("any key closes", "x"), ("q quit", "/zz"), ("filter: zz_", "\r"), ("filter: zz   Esc", "q")]
rows = [[" "] * 80 for _ in range(24)]
row = column = 0
seen, rest, until = "", "", time.time() + 60
while steps and time.time() < until:
    if not select.select([terminal], [], [], 0.1)[0]:
        continue
    piece = os.read(terminal, 65536).decode("utf-8", "replace")
    seen += piece
    rest += piece
    while rest:
        found = re.match(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b[^\[]|[^\x1b]", rest)
        if not found:
            break
        rest = rest[found.end():]
        if found[2] == "H":
            row, column = ([int(n or 1) - 1 for n in found[1].split(";")] + [0, 0])[:2]
        elif found[2] == "J":
            rows = [[" "] * 80 for _ in range(24)]
        elif not found[0].startswith("\x1b") and found[0] >= " ":
            if row < 24 and column < 80:
                rows[row][column] = found[0]
            column += 1
    if steps[0][0] in "\n".join("".join(line) for line in rows):
        os.write(terminal, steps.pop(0)[1].encode())
if steps:
    os.kill(pid, signal.SIGKILL)
# What it writes at its end is read, or it would wait for that.
end = ""
try:
    while piece := os.read(terminal, 65536):
        end += piece.decode("utf-8", "replace")
except OSError:
    pass
_, status = os.waitpid(pid, 0)
sys.stdout.write(seen + end)
print("\nsteps left:", steps, "code:", os.waitstatus_to_exitcode(status))
"#;

/// Runs `watch` in a terminal that goes away once the view is drawn, and prints its exit code. SIGHUP
/// is ignored, as with nohup.
const GONE: &str = r#"
import fcntl, os, pty, signal, struct, sys, termios, time
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    time.sleep(0.2)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execv(sys.argv[1], [sys.argv[1], "watch", "--interval", "100ms"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
seen = b""
while b"DEVICE" not in seen:
    seen += os.read(terminal, 65536)
os.close(terminal)
until, ended, status = time.time() + 30, 0, 0
while not ended and time.time() < until:
    time.sleep(0.1)
    ended, status = os.waitpid(pid, os.WNOHANG)
if not ended:
    os.kill(pid, signal.SIGKILL)
    sys.exit("it goes on")
print("code:", os.waitstatus_to_exitcode(status))
"#;

#[test]
fn watch_ends_when_its_terminal_is_gone() {
    if lacks(&[Need::Tool("python3")]) {
        return;
    }
    let _turn = beside();
    let mut command = Command::new("python3");
    command.args(["-c", GONE, env!("CARGO_BIN_EXE_trimbench")]);
    let done = run(command);
    let code = done.succeeds().stdout.trim();
    assert!(!code.contains('-'), "it died of a signal: {code}");
}

#[test]
fn the_view_is_drawn_and_given_back_when_q_is_pressed() {
    if lacks(&[Need::Tool("python3")]) {
        return;
    }
    let _turn = beside();
    let mut command = Command::new("python3");
    command.args(["-c", TERMINAL, env!("CARGO_BIN_EXE_trimbench")]);
    command.args(["watch", "--interval", "100ms"]);
    let done = run(command);
    let text = &done.succeeds().stdout;
    assert!(text.contains("steps left: [] code: 0"), "{text}");
    // The alternate screen was entered and left.
    for part in ["\u{1b}[?1049h", "\u{1b}[?1049l", "DEVICE", "reads/s"] {
        assert!(text.contains(part), "{part:?} missing in {text:?}");
    }
}

/// The body of what a server answers to GET.
fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

/// A server that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks again until the answer is one.
#[track_caller]
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "{what} never came");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Runs promtool in the folder of the rules.
pub fn promtool(arguments: &[&str], input: Option<&str>) {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus");
    let mut child = Command::new("promtool")
        .args(arguments)
        .current_dir(deploy)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    to.write_all(input.unwrap_or_default().as_bytes()).unwrap();
    drop(to);
    let done = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "promtool {arguments:?}: {text}");
}

#[test]
fn a_real_prometheus_takes_the_figures_and_the_rules() {
    if lacks(&[Need::Tool("promtool"), Need::Tool("prometheus")]) {
        return;
    }
    let _turn = beside();
    promtool(&["check", "rules", "trimbench.rules.yml"], None);
    promtool(&["test", "rules", "trimbench.test.yml"], None);
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trimbench"));
    command.args([
        "watch",
        "--quiet",
        "--interval",
        "100ms",
        "--prometheus",
        "127.0.0.1:0",
    ]);
    let mut watching = Killed(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut told = std::io::BufReader::new(watching.0.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut told, &mut line).unwrap();
    let address = line.trim().strip_prefix("figures at http://");
    let address = address.and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
    let figures = get(&address, "/metrics").unwrap();
    // The older format: no Accept header asks for OpenMetrics.
    assert!(!figures.contains("# EOF"), "{figures}");
    promtool(&["check", "metrics"], Some(&figures));
    let file = folder.path().join("figures.prom");
    let mut command = trimbench();
    command.args([
        "watch",
        "--quiet",
        "--for",
        "100ms",
        "--interval",
        "50ms",
        "--prometheus",
    ]);
    command.arg(&file);
    run(command).succeeds();
    promtool(
        &["check", "metrics"],
        Some(&std::fs::read_to_string(file).unwrap()),
    );
    let config = folder.path().join("prometheus.yml");
    let rules =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus/trimbench.rules.yml");
    let text = format!(
        "global: {{scrape_interval: 300ms, scrape_timeout: 300ms, evaluation_interval: 300ms}}\n\
         rule_files: ['{}']\n\
         scrape_configs: [{{job_name: watch, static_configs: [{{targets: ['{address}']}}]}}]\n",
        rules.display()
    );
    std::fs::write(&config, text).unwrap();
    promtool(&["check", "config", config.to_str().unwrap()], None);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = free.local_addr().unwrap().to_string();
    drop(free);
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!(
        "--storage.tsdb.path={}",
        folder.path().join("data").display()
    ));
    command.arg(format!("--web.listen-address={server}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Killed(command.spawn().unwrap());
    let query = |expression: &str| -> Option<Value> {
        let body = get(&server, &format!("/api/v1/query?query={expression}"))?;
        let answer: Value = serde_json::from_str(&body).ok()?;
        let result = answer["data"]["result"].as_array()?.clone();
        result.first().cloned()
    };
    let build = until("a scrape", || query("trimbench_build_info"));
    assert_eq!(build["metric"]["version"], env!("CARGO_PKG_VERSION"));
    until("a type", || {
        let body = get(&server, "/api/v1/metadata?metric=trimbench_cpu_seconds")?;
        body.contains("\"type\":\"counter\"").then_some(())
    });
    let up = query("up").unwrap();
    assert_eq!(up["value"][1], "1", "{up:#}");
    let body = get(&server, "/api/v1/rules").unwrap();
    assert!(
        body.contains("DeviceBusyWithTrim") && !body.contains("\"health\":\"err\""),
        "{body}"
    );
}

#[test]
fn without_root_it_shows_what_is_left_and_lists_what_is_missing() {
    let _turn = beside();
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let mut command = as_plain_user(&copied_to(folder.path()));
    command.args([
        "watch",
        "--json",
        "-",
        "--for",
        "400ms",
        "--interval",
        "100ms",
    ]);
    let all = updates(&run(command).succeeds().stdout);
    assert!(all.len() >= 2, "{all:?}");
    let missing = all[0]["missing"].to_string();
    assert!(
        missing.contains("who sends discards") && missing.contains("root"),
        "{missing}"
    );
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x");
    let file = file.to_str().unwrap();
    let refused = |arguments: &[&str], word: &str| {
        let mut command = trimbench();
        command.arg("watch").args(arguments);
        run(command).fails_with(2, &[word]);
    };
    refused(&["/no/such/path"], "/no/such/path");
    refused(&["/proc"], "no block device");
    refused(&["--interval", "1ms"], "50ms to 1m");
    refused(&["--prometheus", "nowhere:port"], "cannot listen");
    refused(&["--prometheus", "9877"], "--prometheus :9877");
    refused(&["--json", file, "--output", file], "same file");
    refused(&["--prometheus", "/no/such/folder/x"], "/no/such/folder/x");
}
