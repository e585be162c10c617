#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh: builds rlock with fewer stores (-DRLOCK_STORES), and checks that each program knows its own and refuses the others. Takes
# minutes, so ctest runs it under the label on-stores alone.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "stores: $1" >&2
  exit 1
}

build() {  # build STORES
  cmake -S "$top" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS='-O0 -g0' -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 -DRLOCK_STORES="$1" >"$work.log" || fail "cannot configure with $1"
  ninja -C "$work" rlock >"$work.log" || fail "cannot build with $1: $(tail -n 20 "$work.log")"
  rm -f "$work.log"
}

lists() {  # lists STORES
  [ "$("$work/rlock" version | sed -n 2p)" = "stores: $1" ] || fail "$("$work/rlock" version) instead of $1"
}

refuses() {  # refuses URL STORE
  code=0
  said=$("$work/rlock" ttl -S "$1" key 2>&1) || code=$?
  [ "$code" = 78 ] || fail "$1: $code: $said"
  case $said in
    *"built without $2 "*-DRLOCK_STORES*) ;;
    *) fail "$1: $said" ;;
  esac
}

build redis
lists redis
refuses postgresql://user:secret@db/app postgres
refuses mongodb+srv://db/app mongo
refuses mariadb://db/app mysql
refuses etcds://e1 etcd
refuses zookeeper+tls://zk1 zookeeper
refuses s3://bucket s3
! grep -qE '^LIB(PQ|MARIADB|MONGOC|NGHTTP2|CURL)_' "$work/CMakeCache.txt" || fail "a library of a store that is left out was looked for"

build redis,postgres
lists 'redis, postgres'
refuses mysql://db/app mysql

! cmake -S "$top" -B "$work" -DRLOCK_STORES=postgres >"$work.log" 2>&1 || fail "Redis can be left out"
! cmake -S "$top" -B "$work" -DRLOCK_STORES=redis,oracle >"$work.log" 2>&1 || fail "oracle is a store"
rm -f "$work.log"
