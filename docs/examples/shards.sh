#!/bin/sh
# Runs four shards of a test suite at once. Exits with 1 if one fails.
phalanx spawn w1 w2 w3 w4 -q
seq 4 | xargs -I{} phalanx task create "shard {}" -q -- ./shard.sh {}
phalanx wait --until done
failed=$?
phalanx down
exit $failed
