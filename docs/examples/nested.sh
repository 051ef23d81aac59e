#!/bin/sh
# A task that runs a team of its own and fails with it.
phalanx spawn outer -q
phalanx task create inner -q -- phalanx up checks.toml
phalanx wait --until task=1
failed=$?
phalanx down
exit $failed
