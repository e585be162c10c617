#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# places.sh [--short] [PLACE...]: the stories of `build/dev` on another kind of server each: unix, tcp, tls, acl, sentinel,
# cluster, quorum3, quorum5. A case that makes no sense there is listed as skipped, with the reason. --short: those that are quick.
set -u
cd "$(dirname "$0")/.."
only=  # -R goes before what the preset names
if [ "${1-}" = --short ]; then
  only='^(exit codes|once: a run|several keys: (the job|one that)|nested: |status|waiting: (a lock|-w|a server))'
  shift
fi
[ $# -gt 0 ] || set -- tcp tls acl sentinel cluster quorum3 quorum5

bad=
for place; do
  ctest --preset "on-$place" ${only:+-R "$only"} -j 2 --output-log "build/dev/on-$place.log" >/dev/null || bad="$bad $place"
  echo "on $place: $(grep -E '^[0-9]+% tests passed' "build/dev/on-$place.log")"
  grep -ho 'skipped here: .*' "build/dev/on-$place.log" | sort | uniq -c
done
[ -z "$bad" ] || { echo "failed on$bad; see build/dev/on-PLACE.log" >&2; exit 1; }
