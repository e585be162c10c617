#!/bin/sh
# A deployment: many callers may build, one at a time switches. A keeper renews the lock until this script ends, however it ends, and
# until what it has started is gone, too. When the lock is lost, the script and what it has started get TERM, and then KILL. By
# --export the keeper knows what that is; where the whole script needs the lock, rlock run -- ./deploy.sh does without.
set -eu

./build.sh

lock=$(rlock acquire -k deploy:shop -w 10m --pid $$ --export)
eval "$lock"

./upload.sh
rlock check    # fails if the lock was lost: set -e then ends the script before it switches anything
./switch.sh
rlock release --exit-code 0    # a success; without the code the history says only that it was released
