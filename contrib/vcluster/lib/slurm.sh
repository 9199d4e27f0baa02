# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # the settings and paths are set by ../vcluster
# Slurm's configuration. What a site adds for autocloud-burst comes from etc/slurm, the files that admins install.

plugin_folder() {
  local folder
  for folder in /usr/lib/*/slurm-wlm /usr/lib/slurm /usr/lib64/slurm; do
    [ -d "$folder" ] && echo "$folder" && return
  done
  die "slurm: no plugin folder in /usr/lib/*/slurm-wlm, /usr/lib/slurm or /usr/lib64/slurm"
}

# A NodeName line must not promise more than slurmd finds, unless it is told to believe us.
node_hardware() {
  if [ "$cpus" -gt 0 ]; then
    echo "CPUs=$cpus Boards=1 SocketsPerBoard=1 CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=1024"
  else
    slurmd -C | sed -n 's/^NodeName=[^ ]* //p'
  fi
}

site_snippet() {
  sed -e '/^#/d' -e 's|/usr/libexec/autocloud-burst/|/opt/autocloud-burst/bin/|' \
    -e "s|@OWN_NODES@|$own_nodes|" -e "s|@CLOUD_NODES@|$cloud_nodes|" -e "s|@HARDWARE@|$hardware|" \
    -e "s|@GPUS@|$gpus|" "$project/etc/slurm/$1"
}

write_slurm_conf() {
  local own_nodes="own-[0-$((onprem - 1))]" cloud_nodes="burst-[0-$((burst - 1))]" hardware plugins gres=
  hardware=$(node_hardware)
  plugins=$(plugin_folder)
  [ "$gpus" -gt 0 ] && gres="Gres=gpu:$gpus"
  {
    base_slurm_conf
    [ "$cpus" -gt 0 ] && echo "SlurmdParameters=config_overrides"
    echo "NodeName=$own_nodes Features=onprem Weight=1 $gres $hardware State=UNKNOWN"
    echo "PartitionName=batch Nodes=$own_nodes Default=YES DefaultTime=01:00:00 MaxTime=24:00:00 State=UP"
    if [ "$plain" = no ]; then
      echo "PluginDir=/opt/autocloud-burst/lib:$plugins"
      site_snippet autocloud-burst.conf
      site_snippet autocloud-nodes.conf | if [ "$gpus" -gt 0 ]; then cat; else sed 's/ Gres=[^ ]*//'; fi
    fi
    [ -z "$slurm_conf" ] || cat "$slurm_conf"
  } >/vcluster/slurm.conf
  [ "$gpus" -eq 0 ] || gres_conf "$own_nodes" "$cloud_nodes" >/vcluster/gres.conf
  if [ "$plain" = no ]; then
    cp "$project/etc/slurm/plugstack.conf" /vcluster/plugstack.conf
  else
    : >/vcluster/plugstack.conf
  fi
}

gres_conf() {
  local file=/var/lib/fake-gpu/gpu0
  [ "$gpus" -eq 1 ] || file="/var/lib/fake-gpu/gpu[0-$((gpus - 1))]"
  echo "NodeName=$1 Name=gpu File=$file"
  [ "$plain" = yes ] || echo "NodeName=$2 Name=gpu File=$file"
}

base_slurm_conf() {
  cat <<CONF
ClusterName=$name
SlurmctldHost=ctl
SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
SlurmdTimeout=30
KillWait=5
MinJobAge=3600
MailProg=/bin/true
CONF
}

# Runs in the host: the files that slurmctld, slurmd and the commands read.
install_slurm_conf() {
  install -d /etc/slurm
  cp /vcluster/slurm.conf /vcluster/plugstack.conf /etc/slurm/
  [ ! -e /vcluster/gres.conf ] || cp /vcluster/gres.conf /etc/slurm/
}

# Runs in the host: gres.conf names plain files as the devices.
make_fake_gpus() {
  local count=$1 i
  mkdir -p /var/lib/fake-gpu
  for ((i = 0; i < count; ++i)); do
    : >"/var/lib/fake-gpu/gpu$i"
  done
}
