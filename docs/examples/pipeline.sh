#!/bin/sh
# Builds, then tests, then publishes; nothing is published if a step fails.
phalanx spawn w -q
build=$(phalanx task create build -q -- ./build.sh)
tests=$(phalanx task create test -q --blocked-by "$build" -- ./test.sh)
phalanx task create publish -q --blocked-by "$tests" -- ./publish.sh
phalanx wait --until done && phalanx down || { phalanx down; exit 1; }
