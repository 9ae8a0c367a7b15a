#!/usr/bin/env python3
"""Runs the shards of a sweep on this machine by HyperQueue (pip install hyperqueue).

    sweep_hyperqueue.py SHARDS COMMAND...
    sweep_hyperqueue.py 20 steadfast sweep run --plan plan.json -o results

Each task is the same command: HQ_TASK_ID says which shard it runs. How tasks have
ended is not looked at: the merge decides. What they print is in N.stdout and N.stderr.
For a server that is there already, use Client(folder) instead of LocalCluster.
"""

import sys
import tempfile

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig


def main():
    shards, command = int(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        with LocalCluster(server_dir=folder, worker_config=WorkerConfig()) as cluster:
            client, job = cluster.client(), Job()
            for _ in range(shards):
                job.program(command)
            client.wait_for_jobs([client.submit(job)], raise_on_error=False)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main()
