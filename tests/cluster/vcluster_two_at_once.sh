#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two clusters with the same addresses run beside each other and do not see each other.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

other=$cluster-b
cluster_up --plain --onprem 1
at_end+=("$vcluster -n $other down 2>/dev/null")
"$vcluster" -n "$other" up --plain --onprem 3
matches "$("$vcluster" list)" "$cluster +up" "list"
matches "$("$vcluster" list)" "$other +up" "list"

equal "$(as_user ctl srun -N1 hostname)" own-0 "job on the small one"
equal "$("$vcluster" -n "$other" exec --user researcher ctl -- srun -N3 hostname | wc -l)" 3 "job on the other"
as_user own-0 touch /shared/home/researcher/mine
matches "$(fails "$vcluster" -n "$other" exec own-0 -- ls /shared/home/researcher/mine)" "No such file" "storage"

"$vcluster" -n "$other" cut own-0
equal "$(as_user ctl srun -N1 hostname)" own-0 "job after a host of the other was cut"
"$vcluster" -n "$other" down
equal "$(as_user ctl srun -N1 hostname)" own-0 "job after the other has gone"
