#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [PATTERN]: rlock beside the real libraries that share its locks: Redisson, redis-py, redsync, node-redlock. Downloads
# them to build/interop, and runs the scenarios whose names match PATTERN. A library whose tools or registry are missing is
# skipped with a line. RLOCK is the rlock that is tested (build/dev/rlock), RLOCK_TEST_SERVER the server (redis-server).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$here/../.." && pwd)/build/interop
rlock=${RLOCK:-$here/../../build/dev/rlock}
mkdir -p "$out"

# download NAME TOOL COMMAND...: makes $out/NAME.ok, or prints why the library is skipped and fails.
download() {
  name=$1 tool=$2
  shift 2
  [ ! -e "$out/$name.ok" ] || return 0
  if ! command -v "$tool" >/dev/null; then
    echo "interop: $name is skipped: there is no $tool"
    return 1
  fi
  if ! timeout 75 "$@" >"$out/$name.log" 2>&1; then
    echo "interop: $name is skipped: cannot download it, see build/interop/$name.log"
    return 1
  fi
  touch "$out/$name.ok"
}

# Each function downloads a library and builds its driver; a driver that does not compile is an error.
redisson() {
  download "redisson-$1" mvn mvn -B -q -f "$here/java/pom.xml" -P "redisson-$1" -Dmaven.repo.local="$out/m2" \
    -DoutputDirectory="$out/redisson-$1" -DincludeScope=runtime dependency:copy-dependencies || return 0
  javac -nowarn -d "$out/redisson-$1/classes" -cp "$out/redisson-$1/*" "$here"/java/*.java
}

redsync() {
  export GOMODCACHE="$out/go" GOCACHE="$out/go-build" GOFLAGS=-modcacherw
  cd "$here/strings/redsync"
  download redsync go go mod download || return 0
  go build -o "$out/redsync" .
}

node_redlock() {
  mkdir -p "$out/node-redlock"
  cd "$out/node-redlock"
  cp "$here/strings/package.json" "$here/strings/package-lock.json" "$here/strings/node_redlock.mjs" .
  download node-redlock npm npm ci --no-audit --no-fund || return 0
}

redis_py() {
  download redis-py pip pip install -q --target "$out/redis-py" -r "$here/strings/requirements.txt" || return 0
}

if ! command -v python3 >/dev/null; then
  echo "interop: skipped: there is no python3"
  exit 0
fi
pids=''
(redisson 4.7.0 && redisson 3.16.8) & pids="$pids $!"
(redsync) & pids="$pids $!"
(node_redlock) & pids="$pids $!"
(redis_py) & pids="$pids $!"
"${CXX:-c++}" -std=c++20 -O1 -o "$out/job" "$here/job.cpp"
for pid in $pids; do
  wait "$pid"
done
exec python3 -B "$here" --rlock "$rlock" --out "$out" "$@"
