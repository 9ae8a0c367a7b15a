# Files in place on /dev/pmem0 of a guest, by us and by its kernel, in both directions:
#
#   cargo build -p steadfast && strip -o target/guest/steadfast target/debug/steadfast
#   cargo xtask guest "$(cat xtask/guests/pmem.sh)" --nvdimm target/guest/nvdimm --module fuse \
#     --module ext4 --program target/guest/steadfast --program e2fsck
set -e
cat /sys/bus/nd/devices/region0/mappings
steadfast pmem list
steadfast pmem info /dev/pmem0
steadfast mkfs -F /dev/pmem0
mkdir -p /m /k /run
steadfast mount -o dax=always /dev/pmem0 /m
steadfast status | head -6
dd if=/dev/zero of=/m/test.dat oflag=direct bs=4k count=2048
echo hello from us > /m/greeting
sync
steadfast umount /m
e2fsck -fn /dev/pmem0
mount -t ext4 -o dax=always /dev/pmem0 /k
grep pmem0 /proc/mounts
cat /k/greeting
md5sum /k/test.dat
echo hello from the kernel > /k/second
umount /k
steadfast cat /dev/pmem0 /second
steadfast check /dev/pmem0
echo ALL GOOD
