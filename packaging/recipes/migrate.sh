#!/bin/sh
# Before a pod starts: the first one migrates, the others wait for it and share its success. When it fails the next one
# tries. The version is part of the key, so that the next release migrates again.
set -eu
exec rlock once -k "migrate:${VERSION:?}" --for 30d -w 10m -- ./migrate-database.sh
