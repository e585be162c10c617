#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# apt-repository.sh FILES TO: makes in TO, or adds to it, an apt repository of the packages FILES/rlock_*.deb, for any web server. gpg
# signs it with RLOCK_GPG_KEY, or with its default key. TO/rlock.asc is the public key, TO/rlock.sources what a user copies to
# /etc/apt/sources.list.d; its address is RLOCK_APT_URL, or the directory.
# Needs dpkg-dev, gpg, gzip.
set -eu
[ $# -eq 2 ] || { echo 'usage: apt-repository.sh FILES TO' >&2; exit 64; }
here=$(cd "$(dirname "$0")" && pwd)
files=$(cd "$1" && pwd)
mkdir -p "$2"
to=$(cd "$2" && pwd)
# shellcheck source=packaging/release/project.sh
cd "$here/../.." && . packaging/release/project.sh

# sign OPTION...: gpg with the key of the repository.
sign() { gpg --batch --yes ${RLOCK_GPG_KEY:+--local-user "$RLOCK_GPG_KEY"} "$@"; }

mkdir -p "$to/pool"
cp "$files"/rlock_*.deb "$to/pool"
cd "$to"
date=$(LC_ALL=C date -u -R ${SOURCE_DATE_EPOCH:+-d "@$SOURCE_DATE_EPOCH"})
architectures=''
for file in pool/*.deb; do
  architecture=$(dpkg-deb -f "$file" Architecture)
  case " $architectures " in
    *" $architecture "*) ;;
    *) architectures="$architectures $architecture" ;;
  esac
done
for architecture in $architectures; do
  index=dists/stable/main/binary-$architecture
  mkdir -p "$index"
  dpkg-scanpackages --multiversion --arch "$architecture" pool >"$index/Packages"
  gzip -9nkf "$index/Packages"
done
cd dists/stable
{
  printf 'Origin: rlock\nLabel: rlock\nSuite: stable\nCodename: stable\nComponents: main\nDate: %s\n' "$date"
  echo "Architectures:$architectures"
  echo 'SHA256:'
  find main -type f | sort | while read -r file; do
    sum=$(sha256sum <"$file")
    printf ' %s %s %s\n' "${sum%% *}" "$(stat -c %s "$file")" "$file"
  done
} >Release.new
mv Release.new Release
sign --clearsign --output InRelease Release
sign --armor --detach-sign --output Release.gpg Release
cd "$to"
sign --armor --export ${RLOCK_GPG_KEY:+"$RLOCK_GPG_KEY"} >rlock.asc
cat >rlock.sources <<END
Types: deb
URIs: ${RLOCK_APT_URL:-file:$to}
Suites: stable
Components: main
Signed-By: /etc/apt/keyrings/rlock.asc
END
echo "$to: packages for$architectures"
