"""A virtual machine with Debian's kernel and control groups of version 2 alone, without KVM and without a network.

Its root is this machine's, read-only, with an overlay in memory above it; /disk is an empty ext4. A program there sees
the checkout and the build at their own paths. What it writes outside of /disk is gone with the machine, and counts as
memory of the control group that wrote it. Without KVM all is some twenty times as slow.
"""

import gzip
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.problem import NotPossible, Problem
from harness.programs import captured, run_group
from harness.server import last_line
from harness.unpacked import unpacked

PACKAGES = "qemu-system-x86 busybox-static"
KERNEL = "linux-image-amd64"
# Debian's kernel has these as modules.
MODULES = ("virtio_pci", "virtio_blk", "9pnet_virtio", "9p", "overlay", "crc32c_generic", "ext4")
END = "status of the program: "

INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir /dev/shm
while read module; do insmod /modules/$module; done < /modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro root /lower
mount -t tmpfs tmpfs /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /root
for each in proc sys dev; do mount -o bind /$each /root/$each; done
mount -t tmpfs tmpfs /root/dev/shm
mount -t tmpfs tmpfs /root/tmp
mount -t tmpfs tmpfs /root/run
mount -t cgroup2 cgroup2 /root/sys/fs/cgroup
mkdir -p /root/disk
mount -t ext4 /dev/vda /root/disk
ip link set lo up
chroot /root /bin/sh /disk/program
echo "{END}$?"
poweroff -f
"""


def run(command: Sequence[str | Path], memory_mb: int, minutes: float) -> int:
    """Runs a program in the machine, shows what it says, and returns its status."""
    for name in ("qemu-system-x86_64", "busybox", "mkfs.ext4"):
        if not shutil.which(name):
            raise NotPossible(f"{name} is missing; install it with: apt-get install {PACKAGES} e2fsprogs")
    kernel = _kernel()
    with tempfile.TemporaryDirectory(prefix="memdiag-machine-") as scratch:
        folder = Path(scratch)
        disk = _disk(folder, command)
        first = _first_root(folder, kernel)
        log = folder / "console"
        words: list[str] = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"]
        words += ["-m", str(memory_mb), "-kernel", str(next(kernel.glob("boot/vmlinuz-*"))), "-initrd", str(first)]
        words += ["-append", "console=ttyS0 quiet panic=-1 cgroup_no_v1=all", "-no-reboot"]
        words += ["-display", "none", "-serial", "stdio", "-monitor", "none", "-nic", "none"]
        words += ["-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"]
        words += ["-drive", f"file={disk},if=virtio,format=raw,cache=unsafe"]
        with log.open("wb") as out:
            tee = subprocess.Popen(["tee", "/dev/stderr"], stdin=subprocess.PIPE, stdout=out)
            assert tee.stdin is not None
            try:
                run_group(["timeout", str(int(minutes * 60)), *words], stdin=subprocess.DEVNULL, stdout=tee.stdin)
            finally:
                tee.stdin.close()
                tee.wait()
        text = log.read_text(errors="replace")
    if END not in text:
        raise Problem(f"the machine ended without a status after at most {minutes:g} minutes; its console is above")
    return int(text.rsplit(END, 1)[1].split()[0])


def _kernel() -> Path:
    """Debian's newest kernel, with the list of what its modules need."""
    said = _output("apt-cache", "depends", KERNEL)
    name = next(line.split()[-1] for line in said.splitlines() if line.strip().startswith("Depends: linux-image-"))

    def prepare(tree: Path) -> None:
        _output("busybox", "depmod", "-b", str(tree), next((tree / "lib/modules").iterdir()).name)

    return unpacked(name, [name], prepare)


def _disk(folder: Path, command: Sequence[str | Path]) -> Path:
    """An empty file system of 8 GB, with the program's command."""
    start = folder / "start"
    start.mkdir()
    program = start / "program"
    path = os.environ.get("PATH", os.defpath)
    home = os.environ.get("HOME", "/root")
    program.write_text(
        f"export PATH={shlex.quote(path)} HOME={shlex.quote(home)} TMPDIR=/disk LANG=C.UTF-8\n"
        f"cd {shlex.quote(os.getcwd())}\n{shlex.join(map(str, command))}\n"
    )
    disk = folder / "disk.ext4"
    with disk.open("wb") as file:
        file.truncate(8 << 30)
    _output("mkfs.ext4", "-q", "-F", "-d", str(start), str(disk))
    return disk


def _first_root(folder: Path, kernel: Path) -> Path:
    """The root in memory that mounts the others."""
    root = folder / "root"
    for name in ("bin", "proc", "sys", "dev", "lower", "upper", "root", "modules"):
        (root / name).mkdir(parents=True)
    shutil.copy2(shutil.which("busybox") or "busybox", root / "bin/busybox")
    modules = next((kernel / "lib/modules").iterdir())
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        name, after = line.split(":")
        needs[Path(name).name] = (name, after.split())
    order: list[str] = []

    def add(name: str) -> None:
        path, before = needs[name]
        for each in before:
            add(Path(each).name)
        if name not in order:
            order.append(name)
            shutil.copy2(modules / path, root / "modules" / name)

    for name in MODULES:
        add(f"{name}.ko")
    (root / "modules/order").write_text("".join(f"{name}\n" for name in order))
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    files = "".join(f"{path.relative_to(root)}\n" for path in sorted(root.rglob("*")))
    done = subprocess.run(
        ["busybox", "cpio", "-o", "-H", "newc"], cwd=root, input=files.encode(), capture_output=True, check=False
    )
    if done.returncode:
        raise Problem(f"busybox cpio did not work: {last_line(done.stderr.decode())}")
    packed = folder / "first.gz"
    packed.write_bytes(gzip.compress(done.stdout, 1))
    return packed


def _output(*command: str) -> str:
    done = captured(command)
    if done.returncode:
        raise Problem(f"{' '.join(command[:3])} did not work: {last_line(done.stderr)}")
    return done.stdout
