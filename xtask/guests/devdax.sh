# /dev/dax0.0 of a guest: its size, alignment and promise by /sys, mapped and used by us.
#
#   cargo build -p steadfast && strip -o target/guest/steadfast target/debug/steadfast
#   cargo xtask guest "$(cat xtask/guests/devdax.sh)" --nvdimm target/guest/devdax \
#     --nvdimm-as-it-is --module dax_pmem --module device_dax --module fuse \
#     --program target/guest/steadfast
set -e
# As `ndctl create-namespace -f -e namespace0.0 -m devdax` does.
(
    cd /sys/bus/nd
    echo namespace0.0 > drivers/nd_pmem/unbind
    cat /proc/sys/kernel/random/uuid > devices/dax0.0/uuid
    echo ram > devices/dax0.0/mode
    echo 2097152 > devices/dax0.0/align
    echo namespace0.0 > devices/dax0.0/namespace
    echo dax0.0 > drivers/dax_pmem/bind
)
ls -l /dev/dax0.0
cat /sys/bus/dax/devices/dax0.0/size /sys/bus/dax/devices/dax0.0/align
cat /sys/bus/nd/devices/region0/persistence_domain || true
cat /sys/bus/nd/devices/region0/mappings
steadfast pmem list
steadfast pmem info /dev/dax0.0
steadfast mkfs -F /dev/dax0.0
mkdir -p /m /run
steadfast mount -o dax=always /dev/dax0.0 /m
dd if=/dev/zero of=/m/test.dat oflag=direct bs=4k count=2048
echo hello from us > /m/greeting
sync
steadfast umount /m
steadfast check /dev/dax0.0
steadfast cat /dev/dax0.0 /greeting
echo ALL GOOD
