#!/bin/sh
# Runs before each pod starts: the first pod migrates, the others wait and share its result. When the migration fails, all of
# them fail, and the next start tries again. The version is part of the key, so that the next release migrates again.
set -eu
exec rlock once -k "migrate:${VERSION:?}" --for 30d -w 10m -- ./migrate-database.sh
