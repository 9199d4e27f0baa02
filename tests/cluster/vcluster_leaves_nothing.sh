#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# After `down` there is no process, namespace, mount or file of the cluster, however it ended.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

machine() {
  echo "mounts: $(sort /proc/mounts | md5sum)"
  echo "links: $(ip -o link | sed 's/.*: \(.*\): <.*/\1/' | tr '\n' ' ')"
  echo "processes: $(pgrep -f -c -- "-n $cluster " || echo none)"
  echo "folder: $(find "$(state_folder)" 2>/dev/null || echo none)"
}

files_elsewhere() {
  find / -xdev -newer "$stamp" \( -path "*$cluster*" -o -path /shared -o -path /local -o -path '/var/*slurm*' \
    -o -path '/etc/*slurm*' -o -path '/var/log/munge/*' -o -path '/run/*' \) ! -path '/proc/*' ! -path "$stamp" -print
}

# The namespaces of all processes with an ancestor in the cluster end with them; a service left alive would be found here.
services() {
  local process
  for process in /proc/[0-9]*; do
    case $(readlink "$process/exe") in
      */slurmctld | */slurmd | */munged) grep -qs " $(state_folder)/log" "$process/mountinfo" && echo "$process" ;;
    esac
  done
}

require_namespaces
trap end_of_test EXIT
stamp=$(mktemp "/tmp/stamp-XXXXXX")
at_end+=("rm -f $stamp")
before=$(machine)

cluster_quietly() {
  "$vcluster" -n "$cluster" up --plain --build "$build" 2>/dev/null
}

said=$(cluster_quietly) # returns only if nothing of the cluster holds the pipe
equal "$said" "" "standard output of up"
as_user ctl sbatch -N2 --wrap 'setsid -f sleep 1000; sleep 1000'
"$vcluster" -n "$cluster" down
equal "$(machine)" "$before" "machine after down"
equal "$(services)" "" "services after down"

kill_up_after() {
  "$vcluster" -n "$cluster" up --plain --build "$build" 2>/dev/null &
  sleep "$1"
  kill -KILL $! 2>/dev/null || echo "up had ended already" >&2
  wait $! 2>/dev/null || echo "up ended with status $?" >&2
}

for delay in 0.05 0.2 0.4; do
  kill_up_after "$delay"
  "$vcluster" -n "$cluster" down 2>/dev/null
  equal "$(machine)" "$before" "machine after up was killed at $delay s"
  equal "$(services)" "" "services after up was killed at $delay s"
done

cluster_quietly
fails on ctl sh -c 'kill -KILL -1' # everything but init, the way there included
"$vcluster" -n "$cluster" down
equal "$(machine)" "$before" "machine after the services were killed"

kill_up_after 0.3
cluster_quietly # what the killed one left is in nobody's way
equal "$(on ctl sinfo -h -t idle -o %D)" 2 "idle nodes after a start over the remains of another"
"$vcluster" -n "$cluster" down
equal "$(files_elsewhere)" "" "files outside the folder of the cluster"
