#!/bin/sh
# Runs before each pod starts, as migrate.sh, with the lock in the database that is migrated: one pod migrates, the others wait and
# share its result. RLOCK_SERVER is such as postgresql://app@db1/app or mysql://app@db1/app; the version is part of the key.
set -eu
exec rlock once -k "migrate:${VERSION:?}" --for 30d -w 10m -- flyway migrate
