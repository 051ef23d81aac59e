#!/bin/sh
# Passes the output of one task to the next.
phalanx spawn w -q
phalanx task create version -q -- ./version.sh
phalanx wait --until task=1
version=$(phalanx task get 1 --json | jq -r .output)
phalanx task create "release $version" -q -- ./publish.sh "$version"
phalanx wait --until task=2; phalanx down
