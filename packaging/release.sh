#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# release.sh [--twice] [--key FILE] VERSION: makes the files of a release from the last commit, on Debian 12, in build/release/VERSION, and
# tries them: static programs, packages and a container image for x86_64 and aarch64, the source, a Homebrew formula, a bill of
# materials, a PKGBUILD, and the checksums. --twice: builds in a second directory as well, and compares the bytes. --key: the private
# key that signs the checksums, instead of RLOCK_KEY; its public half stands in the install.sh of the release. Where there is no such
# file this is a trial, signed with a key of its own.
# First installs with apt what is missing (packaging/install-deps.sh release), which adds the architecture arm64 to dpkg.
# packaging/release/project.sh has the address of the repository and the path of the key.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=$PWD

die() { echo "release.sh: $*" >&2; exit 1; }
say() { printf '\n== %s\n' "$*"; }

twice=false key=''
while :; do
  case ${1-} in
    --twice) twice=true ;;
    --key) key=$(realpath -e "${2:?--key needs a value}") && shift ;;
    *) break ;;
  esac
  shift
done
version=${1:?usage: release.sh [--twice] [--key FILE] VERSION}
say "what a release needs"
sh packaging/install-deps.sh release
grep -q "^project(rlock VERSION $version " CMakeLists.txt || die "project() in CMakeLists.txt has another version"
[ "$(dpkg --print-architecture)" = amd64 ] || die "a release is made on Debian 12 for amd64"
[ -z "$(git status --porcelain)" ] || die "there are changes that are not committed; a release is made of a commit"
grep -q "^## ${version}[, ]" CHANGELOG.md || echo "note: CHANGELOG.md has no section $version, so this is a trial"

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
# shellcheck source=packaging/release/project.sh
. packaging/release/project.sh
[ -n "$key" ] || [ ! -r "$RLOCK_KEY" ] || key=$RLOCK_KEY
export SOURCE_DATE_EPOCH
export LC_ALL=C TZ=UTC
name=rlock-$version
work=$top/build/release/work
out=$top/build/release/$version
architectures='x86_64 aarch64'
debian_name() { case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; esac; }
preset_of() { case $1 in x86_64) echo release ;; *) echo "release-$1" ;; esac; }

# build DIRECTORY: unpacks the source there and makes the programs and packages of all architectures in DIRECTORY/out.
build() {
  local to=$1/out arch
  mkdir -p "$to"
  tar -xzf "$work/$name.tar.gz" -C "$1"
  for arch in $architectures; do
    say "$arch in $1"
    build_one "$1/$name" "$to" "$arch" >"$1/$arch.log" 2>&1 || { tail -n 30 "$1/$arch.log"; die "see $1/$arch.log"; }
  done
  say "container image in $1"
  image "$1"
}

# build_one SOURCE TO ARCHITECTURE
build_one() (
  set -e
  cd "$1"
  tree=$PWD/build/$(preset_of "$3")
  env -u CFLAGS -u CXXFLAGS -u LDFLAGS cmake --preset "$(preset_of "$3")"
  cmake --build "$tree" --target all standalone
  cp "$tree/standalone/rlock" "$2/$name-linux-$3"
  cd "$2"
  cpack --config "$tree/CPackConfig.cmake" -G DEB
  cmake -S "$1" -B "$tree" -DRLOCK_ZSH_COMPLETIONS=share/zsh/site-functions
  cpack --config "$tree/CPackConfig.cmake" -G RPM
  rm -rf _CPack_Packages
)

# image DIRECTORY: the static programs and the certificates of Debian's CAs as an OCI image for both architectures.
image() {
  local arch files container
  local buildah=(buildah --root "$1/containers" --runroot "$1/containers.run" --storage-driver vfs)
  "${buildah[@]}" manifest create "rlock:$version" >/dev/null
  for arch in $architectures; do
    files=$1/image-$arch
    install -D "$1/out/$name-linux-$arch" "$files/usr/bin/rlock"
    ln -s rlock "$files/usr/bin/rflock"
    # From the package, because the bundle in /etc also has the CAs that were added on this machine.
    install -D -m 644 <(cat /usr/share/ca-certificates/mozilla/*.crt) "$files/etc/ssl/certs/ca-certificates.crt"
    # Not by packaging/Containerfile: `buildah build` writes a digest into the image that depends on the machine.
    container=$("${buildah[@]}" from scratch)
    "${buildah[@]}" copy --quiet "$container" "$files" / >/dev/null
    "${buildah[@]}" config --arch "$(debian_name "$arch")" --entrypoint '["/usr/bin/rlock"]' "$container"
    "${buildah[@]}" commit --quiet --rm --timestamp "$SOURCE_DATE_EPOCH" "$container" "$arch:$version" >/dev/null
    "${buildah[@]}" manifest add "rlock:$version" "localhost/$arch:$version" >/dev/null
  done
  "${buildah[@]}" manifest push --quiet --all "rlock:$version" "oci:$1/oci:$version" >/dev/null
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    -C "$1/oci" -cf "$1/out/$name-oci.tar" .
}

say "source"
rm -rf "$work" "$out"
mkdir -p "$work" "$out"
git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$work/$name.tar.gz"
build "$work/first"
if $twice; then
  build "$work/a/second/directory"
  say "the same bytes twice?"
  diff -r "$work/first/out" "$work/a/second/directory/out" || die "the two builds differ"
  echo "yes, all $(find "$work/first/out" -type f | wc -l) files"
fi

say "source, formula, PKGBUILD, installer, bill of materials, checksums"
cp "$work/first/out"/* "$work/$name.tar.gz" packaging/install.sh "$out"
source_sum=$(sha256sum <"$out/$name.tar.gz")
filled() { sed -e "s|@HOME@|$RLOCK_HOME|g; s|@VERSION@|$version|g; s|@SHA256@|${source_sum%% *}|; s|@PACKAGER@|$RLOCK_PACKAGER|" "$1"; }
filled packaging/release/rlock.rb.in >"$out/rlock.rb"
filled packaging/release/PKGBUILD.in >"$out/PKGBUILD"
if [ -z "$key" ]; then
  echo 'note: there is no key of releases, so this is a trial'
  key=$work/trial.key
  openssl genpkey -algorithm ed25519 -out "$key"
fi
openssl pkey -in "$key" -pubout -out "$work/key.pub"
public=$(sed -n 2p "$work/key.pub")
sed -i "/^release_key=/{n;s|.*|$public|}" "$out/install.sh"
python3 packaging/release/sbom.py "$version" "$out" "$work/first/$name/build"/*
(cd "$out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
openssl pkeyutl -sign -inkey "$key" -rawin -in "$out/SHA256SUMS" -out "$out/SHA256SUMS.sig"

bash packaging/release/try.sh "$version" "$out" "$work"

say "$out, in bytes"
(cd "$out" && stat -c '%s %n' -- *)
echo "took $((SECONDS / 60)) min $((SECONDS % 60)) s"
