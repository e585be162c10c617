#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install-deps.sh [tests] [databases] [lint] [release]: installs with apt the missing packages for building and trying rlock; with
# `tests` also those for the tests; with `databases` servers for the tests of locks in databases, without starting their services
# (FerretDB is built where there is Go, and moto comes from PyPI); with `lint` those of .ci/check.sh; with `release`
# those of packaging/release.sh, for which it adds the architecture arm64 to dpkg on x86_64. Needs no rights when nothing is missing.
set -eu

if ! command -v apt-get >/dev/null; then
  cat <<'END'
There is no apt here, so no package is installed. rlock needs a C++20 compiler, CMake 3.25, Ninja,
pkg-config, hiredis, OpenSSL's headers, Lua 5.1, headers of libpq, libmariadb, libmongoc, libcurl, nghttp2 and protozero, CLI11,
toml++ and nlohmann-json, then redis or valkey to talk to; its tests need doctest and openssl:
  Fedora  dnf install gcc-c++ cmake ninja-build pkgconf hiredis-devel openssl-devel compat-lua-devel libpq-devel \
                      mariadb-connector-c-devel mongo-c-driver-devel libcurl-devel libnghttp2-devel protozero-devel \
                      cli11-devel tomlplusplus-devel json-devel valkey doctest-devel openssl
  Arch    pacman -S gcc cmake ninja pkgconf hiredis openssl lua51 postgresql-libs mariadb-libs mongo-c-driver curl libnghttp2 protozero \
                   cli11 tomlplusplus nlohmann-json valkey doctest
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

# is_installed PACKAGE (for the architecture of this system, or for all) or PACKAGE:ARCHITECTURE
is_installed() {
  case $1 in
    *:*) architecture=${1#*:} ;;
    *) architecture=$(dpkg --print-architecture) ;;
  esac
  dpkg-query -W -f '${db:Status-Status}:${Architecture}\n' "$1" 2>/dev/null | grep -qE "^installed:($architecture|all)\$"
}

# A server that speaks MongoDB's protocol, for the tests.
build_ferretdb() {
  if command -v go >/dev/null; then
    sh "$(dirname "$0")/../tests/ferretdb/build.sh" || echo 'FerretDB is not built: the tests of MongoDB are skipped'
  else
    echo 'there is no Go 1.22, which builds FerretDB: the tests of MongoDB are skipped'
  fi
}

# A store of objects, for the tests.
install_moto() {
  python3 -c 'import moto.server' 2>/dev/null || python3 -m pip install --quiet --break-system-packages 'moto[s3,server]' ||
    echo 'there is no moto from PyPI: the tests of buckets are skipped'
}

for_databases=no
build_other_servers() {
  if [ "$for_databases" = yes ]; then
    build_ferretdb
    install_moto
  fi
}

packages='g++ cmake ninja-build pkgconf libhiredis-dev libssl-dev libcli11-dev libtomlplusplus-dev
  nlohmann-json3-dev liblua5.1-0-dev libpq-dev libmariadb-dev libmongoc-dev libcurl4-openssl-dev libnghttp2-dev libprotozero-dev'
for group in "$@"; do
  case $group in
    tests) packages="$packages doctest-dev openssl procps util-linux mandoc zsh fish curl wget busybox" ;;
    databases)  # for the tests of locks in databases and consensus stores
      for_databases=yes packages="$packages postgresql mariadb-server etcd-server etcd-client zookeeper
        python3-kazoo python3-pip" ;;
    lint)
      packages="$packages clang clang-format clang-tidy cppcheck git spin"
      # The sanitizers of clang++; a machine may have them without the package that names no version.
      ls "$(clang++ -print-resource-dir 2>/dev/null)"/lib/linux/libclang_rt.asan-*.a >/dev/null 2>&1 || packages="$packages libclang-rt-dev" ;;
    release)
      foreign='libstdc++-12-dev:arm64 libcurl4-openssl-dev:arm64 libssl-dev:arm64 libhiredis-dev:arm64 liblua5.1-0-dev:arm64'
      packages="$packages g++-aarch64-linux-gnu $foreign dpkg-dev rpm lintian rpmlint buildah ca-certificates qemu-user ruby file
        cpio git openssl python3" ;;
    *)
      echo "no such group of packages: $group" >&2
      exit 2 ;;
  esac
done
missing=''
for package in $packages; do
  is_installed "$package" || missing="$missing $package"
done
server=''
if ! command -v redis-server >/dev/null && ! command -v valkey-server >/dev/null; then
  server=redis-server
fi
if [ -z "$missing$server" ]; then
  build_other_servers
  exit 0
fi

case $missing in
  *:arm64*)
    echo 'adding the architecture arm64 to dpkg'
    as_root dpkg --add-architecture arm64 ;;
esac
echo "installing:$missing $server"
as_root apt-get -q update
if [ -n "$server" ] && ! apt-cache show "$server" >/dev/null 2>&1; then
  server=valkey-server
fi
# The services of the databases are not started: tests start servers of their own.
policy=/usr/sbin/policy-rc.d
case $missing in
  *postgresql* | *mariadb-server* | *etcd-server* | *zookeeper*)
    if [ ! -e "$policy" ]; then
      printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
      as_root chmod 755 "$policy"
      trap 'as_root rm -f "$policy"' EXIT
    fi ;;
esac
# shellcheck disable=SC2086  # a list of words
as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
  -o DPkg::Lock::Timeout=120 install $missing $server

# Disables the service on port 6379 that the package started: rlock starts the program on a socket of its own.
if [ -n "$server" ] && [ -d /run/systemd/system ]; then
  as_root systemctl disable --now "$server"
fi
build_other_servers
