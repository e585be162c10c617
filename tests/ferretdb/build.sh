#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh [FILE]: builds the FerretDB of the tests, which needs Go 1.22 and the Go proxy, as FILE, or where the tests look for it.
# Does nothing when the file is newer than its source.
set -eu
version=v1.24.0
here=$(cd "$(dirname "$0")" && pwd)
file=${1-${XDG_CACHE_HOME-$HOME/.cache}/rlock-tests/ferretdb}
mkdir -p "$(dirname "$file")"
file=$(cd "$(dirname "$file")" && pwd)/$(basename "$file")
if [ -n "$(find "$file" -newer "$here/main.go" 2>/dev/null)" ]; then
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf 'module download\ngo 1.22\nrequire github.com/FerretDB/FerretDB %s\n' "$version" >go.mod
source=$(GOFLAGS=-mod=mod go mod download -json "github.com/FerretDB/FerretDB@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
cp -R "$source" ferretdb
chmod -R u+w ferretdb
mkdir ferretdb/cmd/rlock
cp "$here/main.go" ferretdb/cmd/rlock
cd ferretdb
echo "$version" >build/version/version.txt
GOTOOLCHAIN=local GOFLAGS=-buildvcs=false go build -o "$file" ./cmd/rlock
