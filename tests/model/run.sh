#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh: lets Spin visit all states of lock.pml, and those of each deliberate mistake until it is found. Prints a table; fails when a
# search of the right model finds an error or does not reach its end, or when a mistake is not found.
# run.sh SEARCH MISTAKE: prints the shortest way to what the mistake breaks, step by step: run.sh NET no_drift
set -eu
model=$(cd "$(dirname "$0")" && pwd)/lock.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"
deepest=1000000 # steps; a search that would have to go deeper fails
megabytes=3000
failed=0

# build SEARCH MISTAKE STOPS IN_TIME FLAG...: makes ./pan.
build() {
  rm -f pan.c
  spin "-D$1" "-DMISTAKE=$2" "-DSTOPS=$3" "-DIN_TIME=$4" -a model.pml >spin.log 2>&1 || true
  [ -f pan.c ] || { cat spin.log >&2; exit 1; }
  shift 4
  # The warnings are about what Spin writes.
  gcc -w -DSAFETY -DNOCLAIM -DNOFAIR -DNOREDUCE -DNOBOUNDCHECK "-DMEMLIM=$megabytes" "$@" -o pan pan.c
}

# field NAME: a number that pan printed.
field() {
  case $1 in
    states) sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log ;;
    depth) sed -n 's/.*depth reached \([0-9]*\),.*/\1/p' pan.log ;;
    seconds) sed -n 's/^pan: elapsed time \([0-9.e+-]*\) seconds.*/\1/p' pan.log ;;
  esac
}

# Which promise the last search found broken.
broken() {
  case $(sed -n 's/^pan:[0-9]*: //p' pan.log) in
    *'fence[each]!=fence'*) echo 'two jobs with the same fencing number' ;;
    *'holder=='*) echo 'a job without its lock' ;;
    *'ttl<=bound'*) echo 'a renewal after the revoke' ;;
    *'idle[each]'*) echo 'a free lock is not taken in time' ;;
    *'over[each]'*) echo 'two jobs overlap for too long' ;;
    *'assertion violated'*freeze*) echo 'a grant passes a freeze' ;;
    *) echo 'no promise, but see below'; cat pan.log >&2 ;;
  esac
}

# search TITLE SEARCH MISTAKE STOPS IN_TIME: one row of the table.
search() {
  title=$1
  mistake=$3
  optimised=-O2
  [ "$mistake" = 0 ] || optimised=-O0 # a mistake is found at once
  shift
  build "$@" "$optimised"
  rm -f ./*.trail
  ./pan -E "-m$deepest" -w24 >pan.log 2>&1 || true
  if [ -f model.pml.trail ]; then
    found="found: $(broken)"
  elif ! grep -q 'errors: 0$' pan.log || grep -q 'not completed\|too small\|out of memory\|memory limit' pan.log; then
    found='the search did not end'
  else
    found='all states visited, no error'
  fi
  case $mistake,$found in
    0,all* | [!0]*,found*) ;;
    *) found="WRONG, $found" failed=1 ;;
  esac
  printf '%-26s %9s %8s %8s  %s\n' "$title" "$(field states)" "$(field depth)" "$(field seconds)" "$found"
}

# Each step of the trail: who takes it, the line of the model, and what changes.
story() {
  awk '
    function end_step() {
      for (name in now) {
        if (now[name] != before[name]) {
          printf "      %s = %s\n", name, now[name]
        }
        before[name] = now[name]
      }
    }
    NR == FNR { line[FNR] = $0; next }
    /^ *[0-9]+:\tproc/ && $1 != last {
      end_step()
      last = $1
      split($5, place, ":")
      print $1, ($4 ~ /client/ ? "client " $3 : "world") ":" line[place[2]]
    }
    /^\t\t[a-z_]+(\[[0-9]\])? = / && $1 !~ /^(next|each|yes|high|past|frees)$/ { now[$1] = $3 }
    /Error:/ { end_step(); print; exit }
  ' model.pml steps
}

if [ $# -eq 2 ]; then
  sed 's/^hidden //' "$model" >model.pml # a search by breadth allows no hidden variable
  build "$1" "$2" 1 8 -O1 -DBFS
  ./pan -E -w24 >pan.log 2>&1 || true
  [ -f model.pml.trail ] || { echo "run.sh: $2 is not found in $1" >&2; exit 1; }
  spin "-D$1" "-DMISTAKE=$2" -DSTOPS=1 -DIN_TIME=8 -t -p -g -k model.pml.trail model.pml >steps || true
  story
  exit 0
fi
[ $# -eq 0 ] || { echo 'usage: run.sh [SEARCH MISTAKE]' >&2; exit 64; }

cp "$model" model.pml
printf '%-26s %9s %8s %8s  %s\n' search states depth seconds result
search 'NET' NET 0 1 8
search 'LIVE, killed: 2.5 s' LIVE 0 0 5
search 'LIVE, and stopped: 4 s' LIVE 0 1 8
search 'LOSS' LOSS 0 1 8
for mistake in no_drift from_answer old_message no_last_resort revoke_frees renews_revoked late_frees past_freeze; do
  search "NET $mistake" NET "$mistake" 1 8
done
search 'LIVE never_past' LIVE never_past 1 8
search 'LIVE not_watched' LIVE not_watched 1 8
search 'LOSS not_told' LOSS not_told 1 8
search 'LOSS counted_fence' LOSS counted_fence 1 8
echo "bound: none in time or number of acquisitions: three clients, one late request at a time, times as lock.pml defines them;"
echo "where all states were visited, no search was cut off (at most $deepest steps deep, $megabytes MB)"
exit "$failed"
