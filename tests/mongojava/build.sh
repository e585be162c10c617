#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh [DIRECTORY]: puts the replica set of the tests (ReplicaSet.java), which needs a JDK, Maven and its central repository, into
# that directory, or where the tests look for it. Does nothing when it is newer than its source.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1-${XDG_CACHE_HOME-$HOME/.cache}/rlock-tests/mongojava}
mkdir -p "$out"
if [ -n "$(find "$out/ReplicaSet.class" -newer "$here/ReplicaSet.java" -newer "$here/pom.xml" 2>/dev/null)" ]; then
  exit 0
fi
mvn -B -q -f "$here/pom.xml" -DoutputDirectory="$out/lib" -DincludeScope=runtime dependency:copy-dependencies
javac -nowarn -d "$out" -cp "$out/lib/*" "$here/ReplicaSet.java"
