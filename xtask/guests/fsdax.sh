# An fsdax namespace of ours in a guest's kernel, and one of its making here:
#
#   cargo build -p steadfast && strip -o target/guest/steadfast target/debug/steadfast
#   S=target/guest/steadfast; rm -f target/guest/fsdax
#   $S pmem create --emulate 256m --mode fsdax target/guest/fsdax
#   $S mkfs target/guest/fsdax
#   echo hello from us > target/guest/g; $S put target/guest/fsdax target/guest/g /greeting
#   cargo xtask guest "$(cat xtask/guests/fsdax.sh)" --nvdimm target/guest/fsdax \
#     --nvdimm-as-it-is --module fuse --module ext4 --program $S --program e2fsck
#   $S cat target/guest/fsdax /second; $S check target/guest/fsdax
#
# and the same with an empty file of 256 MiB for the kernel's own, `truncate -s 256m FILE`.
set -e
cd /sys/bus/nd/devices
if [ ! -d pfn0.0 ] || [ "$(cat pfn0.1/namespace pfn0.0/namespace 2>/dev/null | head -1)" = "" ]; then
    echo "no namespace: the kernel makes one"
    (
        cd /sys/bus/nd
        echo namespace0.0 > drivers/nd_pmem/unbind
        cat /proc/sys/kernel/random/uuid > devices/pfn0.0/uuid
        echo pmem > devices/pfn0.0/mode
        echo 2097152 > devices/pfn0.0/align
        echo namespace0.0 > devices/pfn0.0/namespace
        echo pfn0.0 > drivers/nd_pmem/bind
    )
    steadfast mkfs -F /dev/pmem0
fi
for pfn in pfn*; do echo "$pfn: $(cat $pfn/namespace) $(cat $pfn/mode) $(cat $pfn/align)"; done
cat /sys/block/pmem0/size /sys/block/pmem0/queue/dax
e2fsck -fn /dev/pmem0
mkdir -p /k
mount -t ext4 -o dax=always /dev/pmem0 /k
grep pmem0 /proc/mounts
cat /k/greeting || true
echo hello from the kernel > /k/second
umount /k
e2fsck -fn /dev/pmem0
echo ALL GOOD
