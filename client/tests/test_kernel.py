import os
import socket
import unittest
from unittest import mock

from memdiag.collect import kernel
from memdiag.collect.innodb_status import figures

from tests.scratch import Scratch


class Machine(Scratch):
    """A tree of files that looks like the kernel's."""

    def test_version_2_takes_the_limits_above(self):
        self.write("proc/7/cgroup", "0::/pod/db\n")
        self.write("proc/self/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        for folder, limit in (("pod/db", "max"), ("pod", str(1 << 30)), ("", None)):
            base = f"sys/fs/cgroup/{folder}".rstrip("/")
            if limit is not None:
                self.write(f"{base}/memory.max", limit)
                self.write(f"{base}/memory.current", "1000")
                self.write(f"{base}/memory.stat", "inactive_file 400\n")
                self.write(f"{base}/memory.events", "oom_kill 2\n")
        rows = kernel.cgroup(7, self.root).rows
        self.assertEqual([row["limit"] for row in rows], [None, 1 << 30])
        self.assertEqual(rows[1]["reclaimable_cache"], 400)
        self.assertEqual(rows[1]["oom_kills"], 2)

    def test_page_cache_that_the_kernel_can_drop(self):
        """As the server has it (kernel_text::without_cache()). A file that is read twice is active."""

        def of(version, names, *figures):
            lines = (f"{name} {value}\n" for name, value in zip(names.split(), figures))
            self.write("m/memory.stat", "".join(lines))
            self.write(f"m/{kernel._FILES[version][1]}", "5000")
            return kernel._group(version, self.root / "m")["reclaimable_cache"]

        first = "total_inactive_file total_active_file total_dirty total_writeback total_mapped_file"
        second = "inactive_file active_file file_dirty file_writeback file_mapped slab_reclaimable"
        for version, names in ((1, first), (2, second)):
            self.assertEqual(of(version, names, 100, 700, 5, 5, 20), 770)
            self.assertEqual(of(version, names, 100, 700, 5, 5, 750), 100)
            self.assertEqual(of(version, names, 100, 700, 5, 5), 100)
        self.assertEqual(of(2, second, 100, 700, 5, 5, 20, 30), 800)
        self.assertEqual(of(2, "inactive_file slab_reclaimable", 100, 30), 130)
        self.assertIsNone(of(2, "active_file", 4))

    def test_version_1_without_a_limit(self):
        self.write("proc/7/cgroup", "4:cpu:/\n3:memory:/box\n")
        self.write("proc/self/mountinfo", "30 1 0:26 / /m rw - cgroup cgroup rw,memory\n")
        self.write("m/box/memory.limit_in_bytes", "9223372036854771712")
        self.write("m/box/memory.usage_in_bytes", "5")
        (row,) = kernel.cgroup(7, self.root).rows
        self.assertIsNone(row["limit"])
        self.assertIsNone(row["peak"])

    def test_files_of_another_form_have_a_reason(self):
        files = {
            "proc/7/cgroup": "0::/db\n",
            "proc/self/mountinfo": "30 1 0:26 / /m rw - cgroup2 cgroup2 rw\n",
            "m/db/memory.max": "max\n",
            "m/db/memory.current": "5\n",
            "m/db/memory.stat": "inactive_file 4\n",
        }
        for name, text in files.items():
            self.write(name, text)
        self.assertTrue(kernel.cgroup(7, self.root).rows)
        for name, wrong in (
            ("proc/7/cgroup", "0:/db\n"),
            ("proc/self/mountinfo", "30 1 0:26 / /m rw cgroup2 cgroup2 rw\n"),
            ("proc/self/mountinfo", "30 1 -\n"),
        ):
            self.write(name, wrong)
            with self.subTest(wrong):
                found = kernel.cgroup(7, self.root)
                self.assertEqual(found.rows, [])
                self.assertEqual(found.error, "it has another form than expected")
            self.write(name, files[name])
        self.write("m/db/memory.stat", "inactive_file 4\nanon x\n")
        self.assertEqual(kernel.cgroup(7, self.root).rows[0]["reclaimable_cache"], 4)

    def test_names_in_no_character_set(self):
        """A disk may be mounted at any bytes."""
        self.write("proc/7/cgroup", "0::/db\n")
        self.write("m/db/memory.current", "5\n")
        mounted = b"29 1 0:25 / /mnt/\xe4 rw - ext4 a rw\n30 1 0:26 / /m rw - cgroup2 cgroup2 rw\n"
        self.write("proc/self/mountinfo", mounted)
        self.assertEqual(kernel.cgroup(7, self.root).rows[0]["usage"], 5)

    def test_a_process_that_is_gone_has_a_reason(self):
        found = kernel.process(7, self.root)
        self.assertEqual(found["process"].rows, [])
        self.assertTrue(found["process"].error)
        self.assertFalse(kernel.is_server(7, 99, self.root))

    def begin(self, seconds_ago=100):
        """Process 7 began then."""
        clock = mock.patch("memdiag.collect.kernel.time.clock_gettime", return_value=1000.0)
        clock.start()
        self.addCleanup(clock.stop)
        ticks = os.sysconf("SC_CLK_TCK") * (1000 - seconds_ago)
        self.write("proc/7/stat", "7 (a) b) S" + " 0" * 18 + f" {ticks} 0\n")

    def test_a_server_has_its_name_in_its_command(self):
        self.begin()

        def of(*words):
            self.write("proc/7/cmdline", "\0".join((*words, "")))
            return kernel.is_server(7, 99, self.root)

        for words in (
            ("/usr/sbin/mysqld",),
            ("mysqld-debug", "--port=1"),
            ("/usr/sbin/mariadbd", "--user=mysql"),
            ("/opt/bitnami/mysql/bin/mysqld.bin", "--port=1"),
            ("/usr/libexec/mysqld-8.0",),
            ("mysqld8.4",),
            ("/usr/sbin/mysqld.real",),
            ("/nix/store/x-mariadb-11/bin/.mariadbd-wrapped",),
            ("/lib64/ld-linux-x86-64.so.2", "--library-path", "/opt/lib", "/usr/sbin/mysqld", "--port=1"),
            ("/usr/bin/valgrind", "--tool=massif", "/usr/sbin/mysqld"),
        ):
            self.assertTrue(of(*words), words)
        for words in (
            ("ssh", "-N", "-L", "/tmp/mysqld.sock:/run/mysqld/mysqld.sock", "db1"),
            ("socat", "UNIX-LISTEN:/tmp/mysqld.sock,fork", "TCP:db1:3306"),
            ("/usr/bin/mysqlrouter", "-c", "/etc/mysqld.cnf"),
            ("/bin/sh", "/usr/bin/mysqld_safe"),
            ("mysqld_exporter",),
            ("mysqldump", "--all-databases"),
            *(
                ("forward", f"/run/mysqld{name}")
                for name in (".sock", "-3307.sock", ".sock.lock", ".cnf", ".pid", ".log")
            ),
            ("",),
        ):
            self.assertFalse(of(*words), words)

    def test_a_forwarded_socket_may_be_called_as_the_server(self):
        """Its server began at another time."""
        self.begin(seconds_ago=100)
        self.write("proc/7/cmdline", "socat\0UNIX-LISTEN:/tmp/mysqld\0TCP:db1:3306\0")
        for uptime in (5, 110, 100_000, None):
            self.assertFalse(kernel.is_server(7, uptime, self.root), uptime)

    def test_a_server_that_an_entry_point_executed_is_older_than_its_uptime(self):
        """It made a database before that, or the machine's clock was set."""
        self.begin(seconds_ago=400)
        self.write("proc/7/cmdline", "mysqld\0--user=mysql\0")
        for uptime in (400, 5, 100_000, None):
            self.assertTrue(kernel.is_server(7, uptime, self.root), uptime)

    def test_the_age_of_a_server_in_lxc(self):
        """lxcfs counts /proc/uptime from the start of the container."""
        self.begin()
        self.write("proc/uptime", "110.00 1.00\n")
        self.write("proc/7/cmdline", "/lib/ld.so\0/usr/sbin/mysqld\0")
        self.assertTrue(kernel.is_server(7, 99, self.root))

    def test_allocator(self):
        self.write("proc/7/maps", "1-2 r-xp 0 0:0 1 /usr/lib/libtcmalloc_minimal.so.4\n1-2 rw-p 0 0:0 0\n")
        (row,) = kernel.process(7, self.root)["allocator_library"].rows
        self.assertEqual(row["library"], "tcmalloc_minimal.so.4")

    def test_an_allocator_whose_package_was_renewed(self):
        self.write("proc/7/maps", "1-2 r-xp 0 0:0 1 /usr/lib/libjemalloc.so.2 (deleted)\n")
        (row,) = kernel.process(7, self.root)["allocator_library"].rows
        self.assertEqual(row["library"], "jemalloc.so.2")

    def test_nodes(self):
        for number, free in ((10, 5), (2, 7)):
            self.write(
                f"sys/devices/system/node/node{number}/meminfo",
                f"Node {number} MemTotal:  100 kB\nNode {number} MemFree:   {free} kB\n",
            )
        rows = kernel.machine(self.root)["numa"].rows
        self.assertEqual([(row["node"], row["MemFree"]) for row in rows], [("node2", 7 << 10), ("node10", 5 << 10)])

    def test_only_a_process_that_is_proven_is_the_server_asked_over_tcp(self):
        """A container with the host's network, or a machine of the same name behind a tunnel, has the same pid_file."""
        self.write("run/mysqld.pid", "7\n")
        self.begin(seconds_ago=100)
        self.write("data/auto.cnf", "[auto]\nserver-uuid=1-a\n")
        row = {"pid_file": "/run/mysqld.pid", "datadir": "/data/", "hostname": socket.gethostname()}
        ours = row | {"server_uuid": "1-a"}

        def pid(variables, uptime=99):
            return kernel.pid_on_loopback(variables, uptime, 3307, self.root)

        self.assertEqual(pid(ours), 7)
        self.assertEqual(pid(row | {"server_uuid": "1-b"}), 0)
        self.assertEqual(pid(ours | {"hostname": "not-" + row["hostname"]}), 0)
        for uptime in (5, 110, None):  # that of another server
            self.assertEqual(pid(ours, uptime), 0)
        (self.root / "zero").symlink_to("/dev/zero")
        self.assertEqual(pid(ours | {"pid_file": "/zero"}), 0)
        # MariaDB has no UUID: the process owns the socket of this port.
        self.assertEqual(pid(row), 0)
        head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        line = "   0: 0100007F:{:04X} 00000000:0000 {} 0:0 0:0 0 0 0 {} 1\n"
        self.write("proc/7/net/tcp", head + line.format(3307, "01", 88) + line.format(3308, "0A", 88))
        (self.root / "proc/7/fd").mkdir()
        (self.root / "proc/7/fd/20").symlink_to("socket:[88]")
        self.assertEqual(pid(row), 0)
        self.write("proc/7/net/tcp6", head + line.format(3307, "0A", 88))
        self.assertEqual(pid(row), 7)

    def test_a_group_of_another_namespace_is_unknown(self):
        for number, mounted, path in (
            (2, "/", "/../../system.slice/mysql.service"),
            (2, "/", "/pod/other"),
            (2, "/mine", "/other"),
            (1, "/mine", "/mineral"),
        ):
            with self.subTest(path):
                controllers = ("3:memory" if number == 1 else "0:") + f":{path}\n"
                kind = "cgroup cgroup rw,memory" if number == 1 else "cgroup2 cgroup2 rw"
                self.write("proc/7/cgroup", controllers)
                self.write("proc/self/mountinfo", f"30 1 0:26 {mounted} /sys/fs/cgroup rw - {kind}\n")
                for name in ("max", "current", "limit_in_bytes", "usage_in_bytes"):
                    self.write(f"sys/fs/cgroup/memory.{name}", "512")
                found = kernel.cgroup(7, self.root)
                self.assertEqual(found.rows, [])
                self.assertIn("not visible", found.error)


class InnodbStatus(unittest.TestCase):
    TEXT = """
Total large memory allocated 137363456
Dictionary memory allocated 237378
---TRANSACTION 1, ACTIVE 5 sec
LIST: SELECT 'heap size 99999999,' FROM secret
2 lock struct(s), heap size 1128, 3 row lock(s)
4 lock struct(s), heap size 1000, 3 row lock(s)
Hash table size 34679, node heap has 3 buffer(s)
Hash table size 34679, node heap has 2 buffer(s)
"""

    def test_only_figures_are_kept(self):
        found = {row["NAME"]: row["VALUE"] for row in figures(self.TEXT)}
        self.assertEqual(found["total_large_memory"], 137363456)
        self.assertEqual(found["adaptive_hash_buffers"], 5)
        self.assertEqual(found["lock_heaps"], 2128)
        self.assertNotIn("secret", str(found))

    def test_locks_of_the_last_deadlock_are_gone(self):
        text = f"LATEST DETECTED DEADLOCK\n9 lock struct(s), heap size 8192, 1 row\n------------\nTRANSACTIONS\n------------\n{self.TEXT}"
        found = {row["NAME"]: row["VALUE"] for row in figures(text)}
        self.assertEqual(found["lock_heaps"], 2128)
        self.assertEqual(found["dictionary_memory"], 237378)
