#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The job of the recording: tells whether the deployment before it still runs, then works until it is killed.
before=$(cat deploy.pid 2>/dev/null) || before=
echo $$ >deploy.pid
if [ -z "$before" ]; then
  echo "deploy.sh $$ starts"
elif kill -0 "$before" 2>/dev/null; then
  echo "deploy.sh $$ starts, $before STILL RUNS"
else
  echo "deploy.sh $$ starts, $before is dead"
fi
step=1
while [ "$step" -le 40 ]; do
  echo "deploy.sh $$: step $step"
  step=$((step + 1))
  sleep 1
done
