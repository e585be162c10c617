#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install-deps.sh [tests]: installs with apt the missing packages for building and trying rlock; with `tests` also those for the
# tests. Needs no rights when nothing is missing.
set -eu

if ! command -v apt-get >/dev/null; then
  cat <<'END'
There is no apt here, so no package is installed. rlock needs a C++20 compiler, CMake 3.25, Ninja,
pkg-config, hiredis, OpenSSL's headers and nlohmann-json, then redis or valkey to talk to; its
tests need doctest and openssl:
  Fedora  dnf install gcc-c++ cmake ninja-build pkgconf hiredis-devel openssl-devel json-devel \
                      valkey doctest-devel openssl
  Arch    pacman -S gcc cmake ninja pkgconf hiredis openssl nlohmann-json valkey doctest
END
  exit 0
fi

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "neither root nor sudo: run as root: $*" >&2
    exit 1
  fi
}

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

packages='g++ cmake ninja-build pkgconf libhiredis-dev libssl-dev nlohmann-json3-dev'
if [ "${1:-}" = tests ]; then
  packages="$packages doctest-dev liblua5.1-0-dev openssl procps util-linux mandoc zsh fish"
fi
missing=''
for package in $packages; do
  is_installed "$package" || missing="$missing $package"
done
server=''
if ! command -v redis-server >/dev/null && ! command -v valkey-server >/dev/null; then
  server=redis-server
fi
if [ -z "$missing$server" ]; then
  exit 0
fi

echo "installing:$missing $server"
as_root apt-get -q update
if [ -n "$server" ] && ! apt-cache show "$server" >/dev/null 2>&1; then
  server=valkey-server
fi
# shellcheck disable=SC2086  # a list of words
as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
  -o DPkg::Lock::Timeout=120 install $missing $server

# Disables the service on port 6379 that the package started: rlock starts the program on a socket of its own.
if [ -n "$server" ] && [ -d /run/systemd/system ]; then
  as_root systemctl disable --now "$server"
fi
