#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# try.sh VERSION DIRECTORY WORK: tries the files of a release in DIRECTORY; release.sh calls it. WORK: as release.sh leaves it.
# Says what it did, and what cannot be done on this machine. qemu-user runs what is made for aarch64.
set -euo pipefail
version=$1 out=$2 work=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=rlock-$version
scratch=$(mktemp -d /tmp/rlock-try-XXXXXX)
chmod 755 "$scratch"
trap 'kill "$(cat "$scratch/redis.pid")" 2>/dev/null || true; sleep 0.2; rm -rf "$scratch"' EXIT

die() { echo "try.sh: $*" >&2; exit 1; }
say() { printf '\n== %s\n' "$*"; }
ok() { echo "ok: $*"; }
within() { timeout --signal=KILL 60 "$@"; }

redis-server --port 0 --unixsocket "$scratch/redis.sock" --save '' --daemonize yes --pidfile "$scratch/redis.pid" >/dev/null
for _ in $(seq 100); do
  [ ! -S "$scratch/redis.sock" ] || break
  sleep 0.1
done
export RLOCK_SERVER=unix://$scratch/redis.sock RLOCK_CONFIG=/dev/null

# until SECONDS COMMAND...: whether the command succeeds in time.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" 2>/dev/null; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.05
  done
}
has_ended() { ! kill -0 "$1" || grep -q '^State:.Z' "/proc/$1/status"; }

# try_program WHAT COMMAND...: the command is an rlock.
try_program() {
  local what=$1 said code=0 runner job
  shift
  [ "$(within "$@" version | head -n 1)" = "rlock $version" ] || die "$what: version"
  # shellcheck disable=SC2016  # the job's variable
  said=$(within "$@" run -k try -- sh -c 'echo "$RLOCK_KEY"; exit 7') || code=$?
  [ "$said $code" = 'try 7' ] || die "$what: run said '$said' and ended with $code"
  rm -f "$scratch/job"
  "$@" run -k try -- sh -c "echo \$\$ >'$scratch/job.new'; mv '$scratch/job.new' '$scratch/job'; exec sleep 60" 2>/dev/null &
  runner=$!
  until_true 30 test -e "$scratch/job" || die "$what: the job does not start"
  job=$(cat "$scratch/job")
  kill -KILL "$runner"
  wait "$runner" 2>/dev/null || true
  until_true 30 has_ended "$job" || die "$what: the job survives kill -9 of rlock"
  until_true 60 within "$@" run -k try -n -q -- true || die "$what: the guardian does not release the lock"
  ok "$what: version, run on a unix socket; after kill -9 of rlock the guardian kills the job and releases the lock"
}

# No libc, no /lib: what the static program does about names.
try_without_libc() {
  local root=$scratch/root code=0
  mkdir -p "$root/etc" "$root/bin"
  cp "$out/$name-linux-x86_64" "$root/bin/rlock"
  echo '127.0.0.1 by-hosts' >"$root/etc/hosts"
  echo 'hosts: myhostname resolve [!UNAVAIL=return] files' >"$root/etc/nsswitch.conf"
  echo 'app:x:4242:4242::/:/bin/sh' >"$root/etc/passwd"
  within env -u RLOCK_CONFIG chroot --userspec=4242:4242 "$root" /bin/rlock status -S by-hosts:1 k 2>"$scratch/said" || code=$?
  { [ $code -eq 69 ] && grep -qi 'connection refused' "$scratch/said"; } || die "chroot without libc: $(cat "$scratch/said")"
  ok 'static program in a chroot without libc: finds a name in /etc/hosts, whatever nsswitch.conf says'
}

# In the same chroot: a CA that is where Fedora has it is trusted, and no other.
try_authorities() {
  local root=$scratch/root code port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  (
    cd "$scratch"
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca
    openssl req -newkey rsa:2048 -nodes -keyout tls.key -out tls.csr -subj /CN=by-hosts
    openssl x509 -req -in tls.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out tls.pem -days 2 \
      -extfile <(echo subjectAltName=DNS:by-hosts)
    redis-cli -s redis.sock config set tls-cert-file "$scratch/tls.pem" tls-key-file "$scratch/tls.key" \
      tls-ca-cert-file "$scratch/ca.pem" tls-auth-clients no tls-port "$port"
  ) >"$scratch/said" 2>&1 || die "TLS: $(cat "$scratch/said")"
  for wanted in 69 1; do  # not trusted; trusted, and the lock is free
    code=0
    within env -u RLOCK_CONFIG -u SSL_CERT_FILE -u SSL_CERT_DIR chroot "$root" \
      /bin/rlock status -S "rediss://by-hosts:$port" k >"$scratch/said" 2>&1 || code=$?
    [ $code -eq $wanted ] || die "TLS: $(cat "$scratch/said")"
    install -D "$scratch/ca.pem" "$root/etc/pki/tls/certs/ca-bundle.crt"
  done
  ok 'static program in that chroot: TLS with a CA that it finds where Fedora keeps them'
}

try_deb() {  # try_deb ARCHITECTURE EMULATOR...
  local architecture=$1 root=$scratch/deb-$1
  local -a deb=("$out"/rlock_"$version"_"$1".deb)
  shift
  dpkg-deb -x "${deb[0]}" "$root"
  try_files "deb $architecture" "$root" zsh/vendor-completions "$@"
  lintian --allow-root --fail-on error,warning "${deb[0]}" || die "lintian: deb $architecture"
  ok "deb $architecture: lintian finds no error and no warning"
}

try_rpm() {  # try_rpm ARCHITECTURE EMULATOR...
  local architecture=$1 root=$scratch/rpm-$1
  local -a rpm=("$out"/rlock-"$version"-*."$1".rpm)
  shift
  mkdir "$root"
  (cd "$root" && rpm2cpio "${rpm[0]}" | cpio -idm --quiet)
  try_files "rpm $architecture" "$root" zsh/site-functions "$@"
  rpmlint --config "$here/rpmlint.toml" "${rpm[0]}" >"$scratch/rpmlint" || true
  grep -q ' 0 errors, 0 warnings' "$scratch/rpmlint" || { cat "$scratch/rpmlint"; die "rpmlint: rpm $architecture"; }
  ok "rpm $architecture: rpmlint finds nothing that rpmlint.toml does not answer"
}

try_files() {  # try_files WHAT ROOT ZSH EMULATOR...
  local what=$1 root=$2 zsh=$3 file
  shift 3
  for file in bin/rflock share/man/man1/rlock.1.gz share/man/man1/rflock.1.gz share/man/man7/rlock.7.gz share/bash-completion/completions/rlock \
    share/fish/vendor_completions.d/rlock.fish "share/$zsh/_rlock" share/doc/rlock/recipes/README.md; do
    [ -e "$root/usr/$file" ] || die "$what has no /usr/$file"
  done
  try_program "$what" "$@" "$root/usr/bin/rlock"
}

try_image() {
  local buildah=(buildah --root "$work/first/containers" --runroot "$work/first/containers.run" --storage-driver vfs) container
  mkdir "$scratch/oci"
  tar -C "$scratch/oci" -xf "$out/$name-oci.tar"
  container=$(cd "$scratch" && "${buildah[@]}" from --quiet "oci:oci:$version")  # a path may not have upper case letters
  said=$(within "${buildah[@]}" run --isolation chroot "$container" -- /usr/bin/rlock version)
  "${buildah[@]}" rm "$container" >/dev/null
  [ "${said%%$'\n'*}" = "rlock $version" ] || die "image: $said"
  ok 'image for x86_64: "rlock version" in a container of buildah, isolated by chroot'
  try_unpacked_image amd64
  try_unpacked_image arm64 qemu-aarch64
}

try_unpacked_image() {  # try_unpacked_image ARCHITECTURE EMULATOR...
  local architecture=$1 root=$scratch/image-$1 program
  shift
  mkdir "$root"
  program=$root$(python3 "$here/unpack_image.py" "$out/$name-oci.tar" "$architecture" "$root") || die "image $architecture"
  grep -q 'BEGIN CERTIFICATE' "$root/etc/ssl/certs/ca-certificates.crt" || die "image $architecture has no certificates"
  [ "$(readlink "$root/usr/bin/rflock")" = rlock ] || die "image $architecture has no rflock"
  try_program "image $architecture, unpacked" "$@" "$program"
}

try_installer() {
  sh "$out/install.sh" --to "$scratch/installed" >/dev/null
  cmp "$scratch/installed/rlock" "$out/$name-linux-$(uname -m)" || die 'install.sh installed another program'
  "$scratch/installed/rflock" --version | grep -qw "$version" || die 'install.sh: rflock'
  ok 'install.sh checks the signature and installs the program for this machine'
}

say 'trying the files'
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
ok 'checksums'
try_program 'static x86_64' "$out/$name-linux-x86_64"
try_program 'static aarch64 under qemu-user' qemu-aarch64 "$out/$name-linux-aarch64"
if [ "$(id -u)" -eq 0 ]; then
  try_without_libc
  try_authorities
else
  echo 'not tried: the chroot without libc, which needs root'
fi
try_deb amd64
try_deb arm64 qemu-aarch64
try_rpm x86_64
try_rpm aarch64 qemu-aarch64
try_image
try_installer
ruby "$here/try_formula.rb" "$out/rlock.rb" "$out/$name.tar.gz" "$scratch/brew" >"$work/formula.log" 2>&1 || {
  tail -n 20 "$work/formula.log"
  die 'formula'
}
ok 'formula: its steps build, install and pass its test, with Debian'"'"'s packages in the place of Homebrew'"'"'s (brew was not run)'
