#!/usr/bin/env bash
# Slurm 24.11.5: scontrol cannot expand a list, prints nothing, and exits with 0.
#
# "scontrol show hostnames" is how launch scripts and host files get from SLURM_JOB_NODELIST, or from
# a list that a person wrote, to names. A list with a step as ClusterShell has it (n[1-9/2]), with a
# range that descends, or with a range of more than 65,536 gives two lines on standard error, nothing
# on standard output, and exit code 0; one such range empties the whole list, also of what is right
# in it. "scontrol show hostlist" of the same list exits with 1.
#
# Guessed before it was run: refused, with an exit code that is not 0.
# A script under "set -e" that writes a host file of it goes on with an empty one: expand lists
# where the number of names is compared with SLURM_JOB_NUM_NODES, and write no steps for Slurm.
#
# Debian 13's packages, unpacked beside a Debian of any age and started with their own C library.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $site trixie main" >sources.list
mkdir -p lists/partial cache/archives/partial packages root
options=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=-
  -o "Dir::State::lists=$PWD/lists" -o "Dir::Cache=$PWD/cache" -o APT::Sandbox::User=root)
apt-get -qq "${options[@]}" update
(cd packages && apt-get -qq "${options[@]}" download slurm-client slurm-wlm-basic-plugins \
  libmunge2 libc6 libhwloc15 libjansson4 libjwt2 libyaml-0-2 liblz4-1)
for package in packages/*.deb; do dpkg-deb -x "$package" root; done
echo "unpacked $(basename packages/slurm-client_*.deb)"
libraries=root/usr/lib/x86_64-linux-gnu
printf '%s\n' ClusterName=c SlurmctldHost=localhost "PluginDir=$PWD/$libraries/slurm-wlm" \
  'NodeName=n[1-4]' 'PartitionName=p Nodes=ALL' >slurm.conf
export SLURM_CONF=$PWD/slurm.conf

scontrol() {
  "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries:$libraries/slurm-wlm" \
    root/usr/bin/scontrol "$@"
}

[ "$(scontrol show hostnames 'n[08-11]' | tr '\n' ' ')" = "n08 n09 n10 n11 " ]
for list in 'n[1-9/2]' 'n[5-1]' 'n[1-70000]' 'n[1-4],n[5-9/2],n[10-11]'; do
  code=0
  scontrol show hostnames "$list" >names 2>errors || code=$?
  echo "show hostnames $list: exit code $code, $(wc -l <names) names, $(head -n 1 errors)"
  [ "$code" = 0 ] && [ ! -s names ] && grep -q 'Invalid hostlist' errors
done
code=0
scontrol show hostlist 'n[5-1]' >names 2>errors || code=$?
echo "show hostlist n[5-1]: exit code $code"
[ "$code" = 1 ]
echo "as described"
