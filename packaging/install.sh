#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh [--from PLACE] [--to DIRECTORY]: installs the static program of a release for the architecture of this machine.
# PLACE: the files of the release, as packaging/release.sh makes them: a directory, or the address that they are published under.
#   Default: the directory of this script.
# DIRECTORY: default /usr/local/bin, or ~/.local/bin for other users than root.
# Needs sha256sum, od, and for an address curl or wget. Nothing is installed unless the checksum and the architecture are right.
set -eu

die() { echo "install.sh: $*" >&2; exit 1; }

from=$(dirname "$0")
to=/usr/local/bin
[ "$(id -u)" -eq 0 ] || to=${HOME:-}/.local/bin
while [ $# -gt 0 ]; do
  case $1 in
    --from) from=${2:?--from needs a directory or an address} ;;
    --to) to=${2:?--to needs a directory} ;;
    *) die "usage: install.sh [--from PLACE] [--to DIRECTORY]" ;;
  esac
  shift 2
done

[ "$(uname -s)" = Linux ] || die "rlock runs on Linux, and this is $(uname -s)"
case $(uname -m) in  # `machine`: as in the header of an ELF file
  x86_64 | amd64) architecture=x86_64 machine=003e ;;
  aarch64 | arm64) architecture=aarch64 machine=00b7 ;;
  *) die "no program is made for $(uname -m); BUILDING.md tells how to build one" ;;
esac

# fetch NAME FILE
fetch() {
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null; then
        curl -fsSL -o "$2" "$from/$1"
      else
        wget -q -O "$2" "$from/$1"
      fi ;;
    *) cp "$from/$1" "$2" ;;
  esac || die "cannot get $1 from $from"
}

mkdir -p "$to"
new=$(mktemp -d "$to/.rlock-XXXXXX")  # beside the target, so that mv replaces it at once
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM

fetch SHA256SUMS "$new/sums"
line=$(grep -E "^[0-9a-f]{64} [ *]rlock-[0-9.]+-linux-$architecture\$" "$new/sums") ||
  die "SHA256SUMS at $from names no program for $architecture"
sum=${line%% *}
name=${line##*[ *]}
fetch "$name" "$new/rlock"
found=$(sha256sum <"$new/rlock")
[ "${found%% *}" = "$sum" ] || die "$name has the checksum ${found%% *} instead of $sum"
# The bytes 18 and 19 of an ELF file, lower one first.
set -- $(od -A n -t x1 -j 18 -N 2 "$new/rlock")
[ "$2$1" = "$machine" ] || die "$name is not a program for $architecture"

chmod 755 "$new/rlock"
"$new/rlock" version >/dev/null || die "$name does not run here"
ln -s rlock "$new/rflock"
mv -f "$new/rlock" "$new/rflock" "$to"
echo "$name is now $to/rlock"
case :$PATH: in
  *:"$to":*) ;;
  *) echo "$to is not in PATH" ;;
esac
