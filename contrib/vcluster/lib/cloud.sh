# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # the settings and paths are set by ../vcluster
# The cloud: cloudsim on the host "cloud", autocloudd on ctl, and the hosts that cloudsim boots.

cloud_address=10.2.0.2

# A certificate authority of this cluster, and the cloud's certificate.
make_certificates() {
  local folder=/vcluster/tls
  mkdir -p $folder
  {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "/CN=$name test CA" \
      -keyout $folder/ca.key -out $folder/ca.pem
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=cloud \
      -addext "subjectAltName=DNS:cloud,IP:$cloud_address" -addext basicConstraints=critical,CA:FALSE \
      -CA $folder/ca.pem -CAkey $folder/ca.key -keyout $folder/cloud.key -out $folder/cloud.pem
  } 2>$folder/log || die "openssl: $(<$folder/log)"
  (umask 077 && head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n' >/vcluster/cloud.key)
}

# override BASE CHANGES: the first file with the values of the second, table by table. Every key has to be in both.
override() {
  awk '
    function full_key(line) { sub(/[ \t]*=.*/, "", line); return table "." line }
    FNR == 1 { table = ""; ++file }
    /^\[/ { table = $0 }
    !/^[a-z_]+[ \t]*=/ { if (file == 2) print; next }
    file == 1 { changed[full_key($0)] = $0; next }
    full_key($0) in changed { line = changed[full_key($0)]; delete changed[full_key($0)]; print line; next }
    { print }
    END { for (key in changed) { print "vcluster: autocloud.toml: there is no key " key >"/dev/stderr"; bad = 1 }; exit bad }
  ' "$2" "$1"
}

# The file that admins install, with this cluster's values.
write_autocloud_toml() {
  cat >/vcluster/changes.toml <<TOML
cluster = "$name"
[nodes]
cloud = "burst-[0-$((burst - 1))]"
[provider]
url = "https://cloud:8443"
ca_file = "/etc/autocloud-burst/ca.pem"
gpus_per_node = $((gpus > 0 ? gpus : 1))
TOML
  override "$project/etc/autocloud-burst/autocloud.toml" /vcluster/changes.toml >/vcluster/autocloud.toml
  [ -z "$autocloud_toml" ] && return
  override /vcluster/autocloud.toml "$autocloud_toml" >/vcluster/autocloud.toml.new
  mv /vcluster/autocloud.toml.new /vcluster/autocloud.toml
}

# Runs on ctl.
install_autocloud_conf() {
  install -d /etc/autocloud-burst
  install -m 644 /vcluster/autocloud.toml /vcluster/tls/ca.pem "$project/etc/autocloud-burst/user-data.tmpl" \
    /etc/autocloud-burst/
  install -o slurm -m 600 /vcluster/cloud.key /etc/autocloud-burst/cloud.key
  install -o slurm -m 400 /vcluster/munge.key /etc/autocloud-burst/munge.key
  install -d -o slurm -g slurm -m 700 /var/lib/autocloud-burst /var/spool/autocloud-burst /var/spool/autocloud-burst/inbox
}

boot_daemon() {
  in_host ctl install -d -o slurm -g slurm -m 755 /run/autocloud-burst
  start -f ctl autocloudd.log setpriv --reuid=slurm --regid=slurm --clear-groups autocloudd
  wait_until 20 in_host ctl test -S /run/autocloud-burst/autocloudd.sock || fail_with_log ctl autocloudd.log autocloudd
}

boot_cloud() {
  local vcluster="env XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/tmp} $self -n $name"
  cp "$scenario" /vcluster/scenario.toml # hosts may not see the original: they have a /tmp of their own
  add_host cloud cloud $cloud_address
  start -f cloud cloudsim.log cloudsim serve --scenario /vcluster/scenario.toml --listen "$cloud_address:8443" \
    --cert /vcluster/tls/cloud.pem --key /vcluster/tls/cloud.key --api-key-file /vcluster/cloud.key \
    --state /var/lib/cloudsim --boot "exec $vcluster instance" --destroy "exec $vcluster instance-destroy"
  wait_until 20 in_host cloud test -e /var/lib/cloudsim/endpoint.json || fail_with_log cloud cloudsim.log cloudsim
}

# The boot command of cloudsim, run on the host "cloud": in the foreground as long as the instance lives.
instance() {
  local id=${CLOUDSIM_INSTANCE_ID:?set by cloudsim} address
  address=$(inside rent_host "$id" "$CLOUDSIM_GPUS" <"$CLOUDSIM_USER_DATA")
  echo "$address" >"$CLOUDSIM_ADDRESS_FILE.new"
  mv "$CLOUDSIM_ADDRESS_FILE.new" "$CLOUDSIM_ADDRESS_FILE"
  inside run_user_data "$id" || say "instance $id: ended with status $?"
  inside remove_host "$id"
}

# Makes the host, whose image is this machine with Slurm, munge and our programs. User data comes on standard input;
# the address goes to standard output.
rent_host() {
  local host=$1 address
  address=$(rented_address "$(next_number rented)")
  add_host "$host" cloud "$address"
  in_host "$host" "$self" -n "$name" _inside set_up_image "$2"
  in_host "$host" sh -c 'install -d /var/lib/cloud && cat >/var/lib/cloud/user-data'
  echo "$address"
}

set_up_image() {
  make_fake_gpus "$1"
  install -d -o slurm -g slurm /run/slurm
  install -d /var/spool/slurmd
  install -d -o munge -g munge -m 755 /run/munge
  install -d -o munge -g munge -m 700 /etc/munge /var/lib/munge /var/log/munge
  install -d /etc/autocloud-burst
  cat >/etc/autocloud-burst/node.env <<'ENV'
# The user data is this host's first process: its end switches the host off.
POWER_OFF=true
START_SLURMD='exec slurmd -D'
SLURMD_OPTIONS=-b # hosts share the boot time of the machine
START_MUNGE=start_munged
start_munged() {
  setpriv --reuid=munge --regid=munge --clear-groups munged
  until [ -S /run/munge/munge.socket.2 ]; do sleep 0.02; done
}
ENV
}

run_user_data() {
  in_host "$1" env -i PATH="$host_path" LANG=C.UTF-8 sh /var/lib/cloud/user-data \
    </dev/null >"$state/log/$1/user-data.log" 2>&1
}

instance_destroy() {
  inside remove_host "${CLOUDSIM_INSTANCE_ID:?set by cloudsim}"
}
