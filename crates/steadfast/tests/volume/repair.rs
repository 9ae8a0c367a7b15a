//! What is lost or blank, and how a person gets on: memory after a boot, a map of zeros, a disk of
//! a stripe of mirrors.

use std::fs;
use std::os::unix::fs::FileExt;

use super::Desk;

const TEXT: &str = "what must stay\n";

impl Desk {
    /// A file system with a file, on the image.
    fn filled(&self, image: &str) {
        fs::write(self.path().join("text"), TEXT).unwrap();
        self.good(&format!("mkfs {image}"));
        self.good(&format!("put {image} text /text"));
    }

    fn holds_it(&self, image: &str) {
        assert_eq!(self.good(&format!("cat {image} /text")), TEXT);
        assert!(self.good(&format!("check {image}")).contains("clean"));
    }

    fn zero(&self, name: &str, from: u64, bytes: usize) {
        let file = fs::OpenOptions::new().write(true).open(self.path().join(name)).unwrap();
        file.write_all_at(&vec![0; bytes], from).unwrap();
    }
}

#[test]
fn a_map_of_zeros_is_a_map_that_is_lost() {
    let desk = Desk::new(&["a", "b"]);
    desk.good("volume create m a b --region 64k");
    desk.filled("volume:a,b");
    for leg in ["a", "b"] {
        // Both slots of the map's first block.
        desk.zero(leg, 8192, 8192);
        desk.holds_it("volume:a,b");
        desk.zero(leg, 8192, 8192);
    }
    desk.zero("a", 8192, 8192);
    desk.zero("b", 8192, 8192);
    desk.holds_it("volume:a,b");
    desk.bad("mkfs volume:a,b", 2, "-F");
}

#[test]
fn one_bit_of_a_labels_version_is_damage_to_one_copy() {
    let desk = Desk::new(&["a", "b"]);
    desk.good("volume create m a b --region 64k");
    desk.filled("volume:a,b");
    let file = fs::OpenOptions::new().write(true).open(desk.path().join("a")).unwrap();
    // Version 2 becomes 1026.
    file.write_all_at(&[4], 4096 + 9).unwrap();
    desk.holds_it("volume:a,b");
    desk.good("volume set a b --pass 2");
    desk.holds_it("volume:b,a");
}

#[test]
fn memory_that_is_blank_after_a_boot_is_a_leg_again() {
    let desk = Desk::new(&["a", "b", "ram"]);
    desk.good("volume create m a b --volatile ram --region 64k");
    desk.filled("volume:a,b,ram");
    let bytes = fs::metadata(desk.path().join("ram")).unwrap().len() as usize;
    desk.zero("ram", 0, bytes);
    // Who only reads leaves it blank.
    desk.holds_it("volume:a,b,ram");
    assert!(fs::read(desk.path().join("ram")).unwrap().iter().all(|b| *b == 0));
    desk.good("put volume:a,b,ram text /again");
    let status = desk.good("volume status a b ram");
    assert!(!status.contains("Unavailable"), "{status}");
    desk.good("volume resync a b ram");
    desk.holds_it("volume:ram,a,b");
    // One that holds something else is not taken.
    desk.zero("ram", 0, bytes);
    desk.good("mkfs ram");
    desk.bad("put volume:a,b,ram text /more", 2, "ram: is no member of a volume");
    // Whatever that is.
    desk.zero("ram", 0, bytes);
    let file = fs::OpenOptions::new().write(true).open(desk.path().join("ram")).unwrap();
    file.write_all_at(b"somebody's", bytes as u64 - 4096).unwrap();
    desk.bad("put volume:a,b,ram text /more", 2, "ram: is no member of a volume");
}

#[test]
fn memory_stays_memory_when_it_is_replaced() {
    let desk = Desk::new(&["a", "b", "c"]);
    desk.good("volume create m a --volatile b --region 64k");
    desk.filled("volume:a,b");
    desk.good("volume replace a b --leg 1 --with c");
    // It does not count as the last one that keeps anything.
    desk.bad("volume remove a c --leg 0", 2, "a:");
    desk.good("volume replace a c --leg 1 --with b --durable --force");
    desk.good("volume remove a b --leg 0");
    desk.holds_it("volume:b");
}

#[test]
fn disks_beside_memory_come_and_go() {
    let desk = Desk::new(&["a", "b", "ram", "c"]);
    desk.good("volume create m a b --volatile ram --region 64k");
    desk.filled("volume:a,b,ram");
    desk.good("volume replace a b ram --leg 0 --with c");
    desk.good("volume remove c b ram --leg 1");
    desk.holds_it("volume:c,ram");
    desk.bad("volume remove c ram --leg 0", 2, "c:");
}

#[test]
fn a_mirror_inside_of_a_stripe_is_repaired_by_its_name() {
    let desk = Desk::new(&["a", "b", "c", "d", "e"]);
    desk.good("volume create left a b --region 64k");
    desk.good("volume create right c d --region 64k");
    desk.good("volume create r10 volume:a,b volume:c,d --kind stripe");
    desk.filled("volume:a,b,c,d");
    fs::remove_file(desk.path().join("a")).unwrap();
    desk.bad("cat volume:b,c,d /text", 1, "'steadfast volume resync'");
    desk.bad("volume resync b c d --degraded", 2, "--volume");
    desk.bad("volume resync b c d --degraded --volume no", 2, "there is none of this name among");
    desk.good("volume resync b c d --degraded --volume left");
    desk.holds_it("volume:b,c,d");
    desk.good("volume replace b c d --volume left --leg 0 --with e");
    fs::remove_file(desk.path().join("b")).unwrap();
    desk.good("volume resync e c d --degraded --volume left");
    desk.holds_it("volume:d,c,e");
}

#[test]
fn status_of_what_cannot_be_assembled_has_found_a_problem() {
    let desk = Desk::new(&["a", "b"]);
    desk.good("volume create m a b --region 64k");
    desk.filled("volume:a,b");
    for leg in ["a", "b"] {
        desk.good(&format!("volume resync {leg} --degraded"));
        desk.good(&format!("put volume:{leg} text /{leg}"));
    }
    for line in ["volume status a b", "volume status a b --json"] {
        assert_eq!(desk.run(line).status.code(), Some(1), "{line}");
    }
}

#[test]
fn volumes_inside_of_each_other_come_to_an_end() {
    let desk = Desk::of(&["a"], 2 << 20);
    for n in 0..17 {
        let member = if n == 0 { "a" } else { "volume:a" };
        desk.good(&format!("volume create v{n} {member} --kind concat"));
    }
    desk.bad("volume status a", 1, "");
    desk.bad("check volume:a", 2, "16 volumes are inside of each other");
}

#[test]
fn a_partial_leg_is_smaller_than_the_volume_and_blank_after_a_boot() {
    let desk = Desk::new(&["a", "b"]);
    desk.image("ram", 2 << 20);
    desk.bad("volume create m a b --volatile ram --size 20m", 2, "too small");
    let made = desk.good("volume create m a b --partial ram --region 64k");
    let status = desk.good("volume status a b ram");
    assert!(status.contains("leg 2: ram: Okay, volatile"), "{status}");
    assert!(status.contains("partial: holds 0 bytes, has room for"), "{status}");
    desk.filled("volume:a,b,ram");
    desk.holds_it("volume:ram,b,a");
    desk.bad("volume add a b ram --leg c --partial", 2, "c");
    // A boot: blank, and smaller still.
    desk.image("ram2", 1 << 20);
    desk.good("volume resync a b ram2");
    let status = desk.good("volume status a b ram2");
    assert!(status.contains("leg 2: ram2: Okay, volatile"), "{status}");
    desk.holds_it("volume:a,b,ram2");
    desk.good("volume remove a b ram2 --leg 2");
    desk.good("volume add a b --leg ram --partial --force");
    desk.bad("volume remove a ram --degraded --leg 0", 2, "last good durable copy");
    desk.holds_it("volume:a,b,ram");
    assert!(made.contains("m: mirror"), "{made}");
}
