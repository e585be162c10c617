#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh [--from PLACE] [--to DIRECTORY] [--key FILE]: installs the static program of a release for the architecture of this
# machine.
# PLACE: the files of the release, as packaging/release.sh makes them: a directory, or the address that they are published under.
#   Default: the directory of this script; through a pipe, as from curl, there is no default.
# DIRECTORY: default /usr/local/bin, or ~/.local/bin for other users than root.
# FILE: a public key in PEM, instead of the key of the releases below.
# Needs openssl, sha256sum, od, and for an address curl or wget. Nothing is installed unless the signature of the checksums, the
# checksum and the architecture are right.
set -eu

release_key='-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAKr+QIu7qlTk8XNiM639DZibW3Dd99AR+55QrPxHlPWU=
-----END PUBLIC KEY-----'

die() { echo "install.sh: $*" >&2; exit 1; }

# must WHAT COMMAND...: when the command fails, WHAT and the first line that the command wrote become the only message.
must() {
  what=$1
  shift
  code=0
  said=$("$@" 2>&1) || code=$?
  [ $code -ne 0 ] || return 0
  said=$(echo "$said" | grep -m 1 .) || said="$1 ended with $code"
  die "$what: $said"
}

from=''
[ ! -f "$0" ] || from=$(dirname "$0")
key=''
to=/usr/local/bin
[ "$(id -u)" -eq 0 ] || to=${HOME:-}/.local/bin
while [ $# -gt 0 ]; do
  case $1 in
    --from | --to | --key) [ -n "${2-}" ] || die "$1 needs a value" ;;
  esac
  case $1 in
    --from) from=$2 ;;
    --to) to=$2 ;;
    --key) key=$2 ;;
    *) die "usage: install.sh [--from PLACE] [--to DIRECTORY] [--key FILE]" ;;
  esac
  shift 2
done

[ -n "$from" ] || die "--from must name the directory or the address of the files"
command -v openssl >/dev/null || die "needs openssl, which checks the signature"
[ -z "$key" ] || [ -r "$key" ] || die "cannot read the key $key"
[ "$(uname -s)" = Linux ] || die "rlock runs on Linux, and this is $(uname -s)"
case $(uname -m) in  # `machine`: the bytes 18 and 19 of an ELF file
  x86_64 | amd64) architecture=x86_64 machine=3e00 ;;
  aarch64 | arm64) architecture=aarch64 machine=b700 ;;
  *) die "no program is made for $(uname -m); BUILDING.md tells how to build one" ;;
esac

# fetch NAME FILE
fetch() {
  set -- "cannot get $1 from $from" "$2" "$from/$1"
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null; then
        must "$1" curl -fsSL --connect-timeout 30 -o "$2" "$3"
      elif command -v wget >/dev/null; then
        must "$1" wget -q -O "$2" "$3"
      else
        die "an address as $from needs curl or wget"
      fi ;;
    *) must "$1" cp "$3" "$2" ;;
  esac
}

{ mkdir -p "$to" && new=$(mktemp -d "$to/.rlock-XXXXXX"); } 2>/dev/null ||  # beside the target, so that mv replaces it at once
  die "cannot write to $to; --to names another directory"
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM

fetch SHA256SUMS "$new/sums"
fetch SHA256SUMS.sig "$new/signature"
[ -n "$key" ] || echo "$release_key" >"$new/key"
openssl pkeyutl -verify -pubin -inkey "${key:-$new/key}" -rawin -in "$new/sums" -sigfile "$new/signature" >/dev/null 2>&1 ||
  die "SHA256SUMS at $from is not signed with ${key:-the key of the releases} (--key names another one)"
line=$(grep -E "^[0-9a-f]{64} [ *]rlock-[0-9.]+-linux-$architecture\$" "$new/sums") ||
  die "SHA256SUMS at $from names no program for $architecture"
sum=${line%% *}
name=${line##*[ *]}
fetch "$name" "$new/rlock"
found=$(sha256sum <"$new/rlock")
[ "${found%% *}" = "$sum" ] || die "$name has the checksum ${found%% *} instead of $sum"
found=$(od -A n -t x1 -j 18 -N 2 "$new/rlock" | tr -d ' \n')
[ "$found" = "$machine" ] || die "$name is not a program for $architecture"

chmod 755 "$new/rlock"
must "$name does not run here" "$new/rlock" version
ln -s rlock "$new/rflock"
must "cannot install in $to" mv -f "$new/rlock" "$new/rflock" "$to"
echo "$name is now $to/rlock"
case :$PATH: in
  *:"$to":*) ;;
  *) echo "$to is not in PATH" ;;
esac
