#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [PATTERN]: rlock beside the real libraries that share its locks: Redisson, redis-py, redsync, node-redlock, ShedLock, and Curator for the cases of tests/integration. Downloads
# them to build/interop, and runs the scenarios whose names match PATTERN. A library whose tools or registry are missing is
# skipped with a line. `run.sh --download` only downloads and builds, rslock too, for tests/bench. RLOCK is the rlock that is tested (build/release/rlock), RLOCK_TEST_SERVER the server (redis-server).
# RLOCK_INTEROP_SECONDS: no scenario begins after that time.
set -eu
until=$(($(date +%s) + ${RLOCK_INTEROP_SECONDS:-3600}))
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../.." && pwd)/build/interop
rlock=${RLOCK:-$here/../../build/release/rlock}
mkdir -p "$out"

download_only=''
[ "${1-}" != --download ] || download_only=yes
# What is not downloaded and built by then is skipped.
ready_by=$(($(date +%s) + ${download_only:+5}100))

in_time() {
  left=$((ready_by - $(date +%s)))
  timeout -k 5 "$((left > 1 ? left : 1))" "$@"
}

skip() {
  echo "interop: $1 is skipped: $2"
  return 1
}

# download NAME TOOL COMMAND...: fetches a library, once; fails when it must be skipped.
download() {
  name=$1 tool=$2
  shift 2
  rm -f "$out/$name.ready"
  command -v "$tool" >/dev/null || skip "$name" "there is no $tool" || return 1
  [ ! "$out/$name.ok" -nt "$here/java/pom.xml" ] || return 0
  in_time "$@" >"$out/$name.log" 2>&1 || skip "$name" "cannot download it, see build/interop/$name.log" || return 1
  touch "$out/$name.ok"
}

# build NAME COMMAND...: builds its driver. A driver that does not compile is an error.
build() {
  name=$1 result=0
  shift
  in_time "$@" || result=$?
  [ "$result" -lt 124 ] || skip "$name" "no time to build its driver" || return 0
  [ "$result" = 0 ] || return "$result"
  touch "$out/$name.ready"
}

redisson() {
  export MAVEN_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # half the start time
  download "redisson-$1" mvn mvn -B -q -f "$here/java/pom.xml" -P "redisson-$1" -Dmaven.repo.local="$out/m2" \
    -DoutputDirectory="$out/redisson-$1" -DincludeScope=runtime dependency:copy-dependencies || return 0
  build "redisson-$1" javac -nowarn -d "$out/redisson-$1/classes" -cp "$out/redisson-$1/*" "$here"/java/*.java
}

shedlock() {
  export MAVEN_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
  download shedlock mvn mvn -B -q -f "$here/java/pom.xml" -P shedlock -Dmaven.repo.local="$out/m2" \
    -DoutputDirectory="$out/shedlock" -DincludeScope=runtime dependency:copy-dependencies || return 0
  build shedlock javac -nowarn -d "$out/shedlock/classes" -cp "$out/shedlock/*" "$here"/java/shedlock/*.java
}

# For the cases "curator format" and "curator read-write" of tests/integration.
curator() {
  export MAVEN_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
  download curator mvn mvn -B -q -f "$here/java/pom.xml" -P curator -Dmaven.repo.local="$out/m2" \
    -DoutputDirectory="$out/curator" -DincludeScope=runtime dependency:copy-dependencies || return 0
  build curator javac -nowarn -d "$out/curator/classes" -cp "$out/curator/*" "$here"/java/curator/*.java
}

redsync() {
  export GOMODCACHE="$out/go" GOCACHE="$out/go-build" GOFLAGS=-modcacherw
  cd "$here/strings/redsync"
  download redsync go go mod download || return 0
  build redsync go build -o "$out/redsync" .
}

node_redlock() {
  mkdir -p "$out/node-redlock"
  cd "$out/node-redlock"
  cp "$here/strings/package.json" "$here/strings/package-lock.json" .
  download node-redlock npm npm ci --no-audit --no-fund || return 0
  build node-redlock cp "$here/strings/node_redlock.mjs" .
}

rslock() {
  export CARGO_HOME="$out/cargo" CARGO_TARGET_DIR="$out/rslock"
  cd "$here/../bench/rslock"
  download rslock cargo cargo fetch -q --locked || return 0
  build rslock cargo build -q --release --locked --offline
}

redis_py() {
  download redis-py pip pip install -q --target "$out/redis-py" -r "$here/strings/requirements.txt" || return 0
  build redis-py true
}

if ! command -v python3 >/dev/null; then
  echo "interop: skipped: there is no python3"
  exit 0
fi
pids=''
(redisson 4.7.0 && redisson 3.16.8 && shedlock && curator) & pids="$pids $!"
(redsync) & pids="$pids $!"
(node_redlock) & pids="$pids $!"
(redis_py) & pids="$pids $!"
if [ -n "$download_only" ]; then
  (rslock) & pids="$pids $!"
fi
"${CXX:-c++}" -std=c++20 -O1 -o "$out/job" "$here/job.cpp"
for pid in $pids; do
  wait "$pid"
done
[ -z "$download_only" ] || exit 0
exec python3 -B "$here" --rlock "$rlock" --out "$out" --until "$until" "$@"
