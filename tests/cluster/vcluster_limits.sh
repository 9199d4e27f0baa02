#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The link rate holds in both directions, and storage fills up.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

cluster_up --plain --rate 80 --local-mb 20 --shared-mb 30
matches "$(fails as_user own-0 dd if=/dev/zero of=/local/f bs=1M count=21)" "No space left on device" "/local"
as_user own-1 dd if=/dev/zero of=/local/f bs=1M count=19 status=none
matches "$(fails as_user own-1 dd if=/dev/zero of=/shared/home/researcher/f bs=1M count=31)" "No space left" "/shared"

# 20 MB at 80 Mbit/s take 2 s.
milliseconds_from() {
  local from=$1 to=$2
  on "$from" timeout 20 python3 -c 'import socket
s = socket.create_server(("", 7000)); c = s.accept()[0]; c.sendall(bytes(20_000_000))' &
  within 10 on "$from" bash -c 'ss -Hltn | grep -q :7000'
  on "$to" timeout 20 python3 -c 'import socket, sys, time
s = socket.create_connection((sys.argv[1], 7000)); start = time.monotonic(); received = 0
while data := s.recv(65536): received += len(data)
print(int((time.monotonic() - start) * 1000) if received == 20_000_000 else f"only {received} bytes")' "$from"
  wait $!
}
between "$(milliseconds_from own-0 own-1)" 1700 3500 "milliseconds for 20 MB"
