//! `deploy/sweep.sbatch` on a Slurm cluster of one machine.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::gate::{Need, beside, lacks};
use crate::common::run::{run, trimbench};

const SLURM: &[Need] = &[
    Need::Root,
    Need::Tool("slurmctld"),
    Need::Tool("slurmd"),
    Need::Tool("sbatch"),
];

const GRID: &str = "profile = [\"ideal\", \"ocz-vertex-2\"]\npolicy = [\"coalesce\", \"queued\"]\n\
    size = \"16M\"\nreaders = 1\nbaseline = \"100ms\"\nrecovery = \"100ms\"\nseed = [1, 2]\n";

/// A controller and a node, both on this machine and of this test alone.
struct Cluster {
    dir: TempDir,
    daemons: Vec<Child>,
}

impl Cluster {
    fn start() -> Cluster {
        let dir = TempDir::new().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        for name in ["state", "spool"] {
            fs::create_dir(at(name)).unwrap();
        }
        let host = run(Command::new("hostname")).succeeds().stdout.clone();
        let host = host.trim().split('.').next().unwrap().to_owned();
        // Ports that another test of another process doesn't take.
        let port = 20_000 + std::process::id() % 20_000 * 2;
        let configuration = format!(
            "ClusterName=trimbench\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\n\
             SlurmdPort={}\nAuthType=auth/none\nCredType=cred/none\nSlurmUser=root\n\
             SlurmdUser=root\nStateSaveLocation={}\nSlurmdSpoolDir={}\nSlurmctldPidFile={}\n\
             SlurmdPidFile={}\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/linear\nReturnToService=2\nMpiDefault=none\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN\n\
             PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE:4\n",
            port + 1,
            at("state"),
            at("spool"),
            at("controller.pid"),
            at("node.pid"),
        );
        fs::write(at("slurm.conf"), configuration).unwrap();
        let mut cluster = Cluster {
            dir,
            daemons: Vec::new(),
        };
        for (daemon, more) in [("slurmctld", vec![]), ("slurmd", vec!["-N", &host])] {
            let mut command = cluster.command(daemon);
            let log = fs::File::create(cluster.path(&format!("{daemon}.log"))).unwrap();
            command
                .args(["-D", "-f", &cluster.path("slurm.conf")])
                .args(more);
            command.stdout(Stdio::null()).stderr(log);
            let child = command.spawn().unwrap();
            cluster.daemons.push(child);
        }
        cluster.wait_for_the_node();
        cluster
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.path("slurm.conf"));
        command
    }

    fn wait_for_the_node(&self) {
        let end = Instant::now() + Duration::from_secs(120);
        while Instant::now() < end {
            let mut sinfo = self.command("sinfo");
            sinfo.args(["--noheader", "--format=%t"]);
            if run(sinfo).stdout.trim() == "idle" {
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        panic!("the node did not come up: {}", self.logs());
    }

    fn logs(&self) -> String {
        ["slurmctld.log", "slurmd.log"]
            .map(|name| fs::read_to_string(self.path(name)).unwrap_or_default())
            .concat()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

#[test]
fn an_array_of_slurm_runs_the_shards_of_a_sweep() {
    if lacks(SLURM) {
        return;
    }
    let _turn = beside();
    let cluster = Cluster::start();
    fs::write(cluster.path("grid.toml"), GRID).unwrap();
    let (grid, output) = (cluster.path("grid.toml"), cluster.path("sweep"));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/sweep.sbatch");
    let mut sbatch = cluster.command("sbatch");
    sbatch.env("TRIMBENCH", trimbench().get_program());
    sbatch.args(["--wait", "--array=1-3"]);
    sbatch.arg(format!("--output={}", cluster.path("task-%a.log")));
    sbatch.args([script, &grid, &output]);
    let done = run(sbatch);
    assert_eq!(done.code(), Some(0), "{}\n{}", done.text(), cluster.logs());

    let mut whole = trimbench();
    whole.args(["sim", "sweep", &grid, "--output", &cluster.path("whole")]);
    run(whole).succeeds();
    let mut merge = trimbench();
    merge.args(["sim", "merge", "--output", &output]);
    merge.args((1..=3).map(|shard| format!("{output}.{shard}-of-3")));
    run(merge).succeeds();
    let text = |path: &str| fs::read_to_string(Path::new(path)).unwrap();
    assert_eq!(text(&output), text(&cluster.path("whole")));
    assert_eq!(text(&output).lines().count(), 8);
}
