//! A Slurm of this machine: munged, slurmctld and two slurmd on loopback, with a folder and ports
//! of their own. All of them are children of the test, and are ended by their process ids.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use steadfast_host::Folder;

use super::{LIMIT, find};

const NODES: [&str; 2] = ["n1", "n2"];
const STARTS_WITHIN: Duration = Duration::from_secs(60);

pub struct Cluster {
    folder: Folder,
    daemons: Vec<(String, Child)>,
}

impl Cluster {
    /// Starts it, or says why that cannot be.
    pub fn start() -> Result<Cluster, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("needs root, for whom Slurm's daemons run".into());
        }
        for program in ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo"] {
            if find(program).is_none() {
                return Err(format!("{program} is not there (packages munge and slurm-wlm)"));
            }
        }
        let folder = Folder::new("steadfast-test-").map_err(|e| e.to_string())?;
        let mut cluster = Cluster { folder, daemons: Vec::new() };
        cluster.make_key();
        let (socket, key) = (cluster.path("munge/socket"), cluster.path("munge/key"));
        let option = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
        let munge = [
            // Root's own, in a folder that nobody else can look into.
            "--force".to_owned(),
            "--foreground".into(),
            option("socket", socket.clone()),
            option("key-file", key),
            option("pid-file", cluster.path("munge/pid")),
            option("log-file", cluster.path("munge/log")),
            option("seed-file", cluster.path("munge/seed")),
        ];
        cluster.spawn("munged", "munged", &munge);
        wait_for("munged's socket", || socket.exists());
        cluster.write_configuration();
        cluster.spawn("slurmctld", "slurmctld", &["-D".to_owned()]);
        for node in NODES {
            cluster.spawn(node, "slurmd", &["-D".to_owned(), "-N".into(), node.into()]);
        }
        wait_for("two idle nodes", || cluster.idle_nodes() == NODES.len());
        Ok(cluster)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What clients need in their environment.
    pub fn configuration(&self) -> (&'static str, PathBuf) {
        ("SLURM_CONF", self.path("slurm.conf"))
    }

    fn make_key(&self) {
        fs::DirBuilder::new().mode(0o700).create(self.path("munge")).unwrap();
        let random = fs::read("/proc/sys/kernel/random/uuid").unwrap();
        let key = self.path("munge/key");
        fs::write(&key, random.repeat(4)).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A lost node is noticed within seconds, and what ran there is run again some seconds later:
    /// by default that takes five minutes and two.
    fn write_configuration(&self) {
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let listeners = [free(), free(), free()];
        let [control, n1, n2] = listeners.each_ref().map(|l| l.local_addr().unwrap().port());
        drop(listeners);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let host = host.split('.').next().unwrap_or_default().to_owned();
        let at = self.folder.path().display();
        fs::create_dir(self.path("state")).unwrap();
        let mut text = format!(
            "ClusterName=steadfast\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\n\
             SlurmdUser=root\nAuthType=auth/munge\nCredType=cred/munge\n\
             AuthInfo=socket={at}/munge/socket,cred_expire=5\nStateSaveLocation={at}/state\n\
             SlurmdSpoolDir={at}/spool.%n\nSlurmctldPidFile={at}/slurmctld.pid\n\
             SlurmdPidFile={at}/slurmd.%n.pid\nSlurmctldLogFile={at}/slurmctld.log\n\
             SlurmdLogFile={at}/slurmd.%n.log\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             SchedulerParameters=sched_interval=1,batch_sched_delay=0\nSlurmdTimeout=3\n\
             MessageTimeout=2\nKillWait=1\nReturnToService=2\nMpiDefault=none\n\
             SlurmctldPort={control}\n"
        );
        for (node, port) in NODES.iter().zip([n1, n2]) {
            text += &format!(
                "NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 \
                 RealMemory=100 State=UNKNOWN\n"
            );
        }
        text += "PartitionName=short Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
        fs::write(self.path("slurm.conf"), text).unwrap();
    }

    fn spawn(&mut self, name: &str, program: &str, options: &[String]) {
        let log = fs::File::create(self.path(&format!("{name}.out"))).unwrap();
        let (variable, value) = self.configuration();
        // A test that is killed leaves no daemon.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(find(program).unwrap())
            .args(options)
            .env(variable, value)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.daemons.push((name.into(), child.unwrap()));
    }

    fn idle_nodes(&self) -> usize {
        let (variable, value) = self.configuration();
        let mut sinfo = Command::new(find("sinfo").unwrap());
        sinfo.args(["--noheader", "--Node", "--format=%t"]).env(variable, value);
        let out = steadfast_suite::output(LIMIT, &mut sinfo).unwrap();
        String::from_utf8_lossy(&out.stdout).lines().filter(|state| state.trim() == "idle").count()
    }

    /// A node is gone, with the task that it runs.
    pub fn lose(&mut self, node: &str, task: u32) {
        let at = self.daemons.iter().position(|(name, _)| name == node).unwrap();
        let (_, mut slurmd) = self.daemons.remove(at);
        slurmd.kill().unwrap();
        slurmd.wait().unwrap();
        // What watches over the task: it would tell the others how that has ended.
        let status = fs::read_to_string(format!("/proc/{task}/status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
        let parent: u32 = parent.trim().parse().unwrap();
        let name = fs::read_to_string(format!("/proc/{parent}/comm")).unwrap();
        assert!(name.starts_with("slurmstepd"), "{name}");
        for pid in [parent, task] {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        }
    }

    /// What the daemons have said, for whoever looks why a test fails.
    pub fn said(&self) -> String {
        let files = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|e| e == "log" || e == "out"));
        let text = |path: PathBuf| {
            let text = fs::read_to_string(&path).unwrap_or_default();
            format!("{}:\n{text}\n", path.display())
        };
        logs.map(text).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (_, daemon) in self.daemons.iter_mut().rev() {
            let pid = i32::try_from(daemon.id()).ok().and_then(Pid::from_raw);
            // OK to ignore: it may have ended by itself.
            let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
            let asked = Instant::now();
            while matches!(daemon.try_wait(), Ok(None)) {
                if asked.elapsed() > Duration::from_secs(5) {
                    let _ = daemon.kill();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        if std::thread::panicking() {
            // OK to ignore: there is nobody else to tell.
            let _ = std::io::stderr().write_all(self.said().as_bytes());
        }
    }
}

pub fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < STARTS_WITHIN, "no {what} within {STARTS_WITHIN:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
