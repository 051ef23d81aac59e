#!/bin/sh
# Tries a task a second time if it fails.
phalanx spawn w -q
phalanx task create flaky -q -- ./flaky.sh
phalanx wait --until task=1 || { phalanx retry 1; phalanx wait --until task=1; }
failed=$?
phalanx down
exit $failed
