"""The benches of tests/bench in process: the store against Node, boards of 100,000 tasks, the lead.

One of them alone: `cargo bench --locked --bench store -- board`."""

import subprocess

from common import ROOT, size


def run():
    subprocess.run(["npm", "ci", "--silent", "--prefix", "tests/interop"], cwd=ROOT, check=True)
    for bench in ("store", "in_process"):
        # `--test` runs each bench once.
        options = size(["--quiet"], ["--test"])
        subprocess.run(["cargo", "bench", "--locked", "--bench", bench, "--", *options], cwd=ROOT, check=True)
