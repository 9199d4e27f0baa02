# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # the settings and paths are set by ../vcluster
# Roots and mounts. All of them live in the cluster's own mount namespaces: the machine's mount table never changes.

# The root that all hosts start from: the machine's top folders, plus /vcluster (our records), /local and /shared.
make_root() {
  local root=$state/root entry
  mkdir -p "$root"
  mount -t tmpfs -o mode=755,size=16m vcluster "$root"
  mount --make-unbindable "$root" # so that the bind of its own parent folder does not contain it again
  for entry in /*; do
    if [ -L "$entry" ]; then
      cp -P "$entry" "$root$entry"
    elif [ -d "$entry" ]; then
      mkdir -p "$root$entry"
      [ "$entry" = /proc ] || mount --rbind "$entry" "$root$entry"
    fi
  done
  mkdir -p "$root"/{vcluster/hosts,local,shared,opt}
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o "mode=755,size=${shared_mb}m" shared "$root/shared"
  cp "$state/settings" "$root/vcluster/"
  cd "$root" || exit
  pivot_root . .
  umount -l .
  mount --make-private /
  hostname "$name"
}

# Runs in the host's own namespaces. What a host writes goes to memory: /etc, /var and /opt are overlays over the
# machine's, /run, /tmp, /dev/shm and /local are its own.
mount_host() {
  local host=$1 fs=/vcluster/fs folder
  mkdir -p $fs
  mount -t tmpfs -o mode=755,size=1g "$host" $fs
  for folder in etc var opt; do
    mkdir -p $fs/$folder.upper $fs/$folder.work
    mount -t overlay -o lowerdir=/$folder,upperdir=$fs/$folder.upper,workdir=$fs/$folder.work "$host" /$folder
  done
  mkdir -p /var/log/slurm /opt/autocloud-burst "$state/log/$host"
  mount --bind "$state/log/$host" /var/log/slurm
  for folder in bin lib; do
    [ -d "$build/$folder" ] || continue
    mkdir -p "/opt/autocloud-burst/$folder"
    mount --bind "$build/$folder" "/opt/autocloud-burst/$folder"
  done
  cover_tmp_and_run "$host"
  mount -t tmpfs -o mode=1777 "$host" /dev/shm
  mount -t tmpfs -o "mode=1777,size=${local_mb}m" "$host" /local
}

# /tmp and /run become the host's own, but the project and its build stay visible where they are.
cover_tmp_and_run() {
  local host=$1 kept=() path i
  for path in "$project" "$build"; do
    [[ $path =~ ^/(tmp|run)/ && -d $path ]] || continue
    mkdir -p "/vcluster/fs/keep/${#kept[@]}"
    mount --bind "$path" "/vcluster/fs/keep/${#kept[@]}"
    kept+=("$path")
  done
  mount -t tmpfs -o mode=1777,size=1g "$host" /tmp
  mount -t tmpfs -o mode=755,size=64m "$host" /run
  for ((i = 0; i < ${#kept[@]}; ++i)); do
    mkdir -p "${kept[i]}"
    mount --bind "/vcluster/fs/keep/$i" "${kept[i]}"
  done
}

# What does not outlive a boot on a real host.
forget_boot() {
  find /run /dev/shm -xdev -mindepth 1 -delete
}
