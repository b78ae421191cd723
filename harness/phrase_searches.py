"""The main job: a burst of phrase searches on real text, and what it does to the server's memory.

./run-demo shows it; the tests in a memory cgroup and of installed packages run the same.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence

from harness import burst, corpus
from harness.checks import Checks
from harness.common import say
from harness.problem import Problem
from harness.server import Server, initialise, private_folder
from harness.snapshots import Diagnostics, Figures, Snapshot, highest
from harness.sql import SqlError

DATABASE = "demo"
PHRASES = 40
AFTER_SECONDS = 5
PATIENCE = 180.0
MYSQLD_OPTIONS = (
    "--innodb-buffer-pool-size=512M",
    # Without these options, the pages that the server reads at its start would mix with the memory of the searches.
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--disable-log-bin",
)


def start(server: Server) -> bool:
    """False: it was up already."""
    if server.attach():
        private_folder(server.folder)
        if server.runs_current_program():
            say(f"== using the server that is up already (process {server.pid})")
            return False
        say(f"== the running server (process {server.pid}) is of an earlier build: restarting it")
        server.stop()
    if not server.data.exists():
        say("== initialising a private data directory (5 s)")
        initialise(server.build, server.data)
    say("== starting mysqld (2 s)")
    server.start()
    return True


def load(server: Server, texts: corpus.Corpus) -> bool:
    """Load the texts and build the index, unless exactly these are there. False: they are."""
    mark = server.folder / "loaded.json"
    digest = hashlib.sha256(json.dumps(texts.documents).encode()).hexdigest()
    what = {"documents": len(texts.documents), "source": texts.source, "sha256": digest}
    if mark.exists() and mark.read_text() == json.dumps(what):
        say(f"== {len(texts.documents):,} documents are loaded already ({texts.source})")
        return False
    mark.unlink(missing_ok=True)
    count = len(texts.documents)
    say(f"== loading {count:,} documents: {texts.source} (about {5 + count // 5000} s)")
    with server.connect() as session:
        session.query(f"DROP DATABASE IF EXISTS {DATABASE}")
        session.query(f"CREATE DATABASE {DATABASE}")
        session.query(f"USE {DATABASE}")
        session.query(
            "CREATE TABLE descriptions (id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT,"
            " name VARCHAR(255) NOT NULL UNIQUE COLLATE utf8mb4_bin, text MEDIUMTEXT NOT NULL)"
        )
        shown = time.monotonic()
        for first in range(0, count, 200):
            batch = texts.documents[first : first + 200]
            session.insert("INSERT INTO descriptions (name, text) VALUES (%s, %s)", batch)
            if time.monotonic() - shown > 3:
                say(f"   {100 * first // count}%")
                shown = time.monotonic()
        say(f"== building the full-text index (about {3 + count // 3000} s)")
        session.query("CREATE FULLTEXT INDEX text ON descriptions (text)")
        session.query("ANALYZE TABLE descriptions")
    mark.write_text(json.dumps(what))
    return True


def prepare(server: Server, documents: int) -> list[str]:
    """Load at most so many texts, unless exactly these are there; the statements that search them."""
    texts = corpus.load().sample(documents)
    load(server, texts)
    return searching(texts)


def searching(texts: corpus.Corpus) -> list[str]:
    """Statements that search these texts."""
    phrases = corpus.phrases(texts.documents, PHRASES)
    if not phrases:
        raise Problem("the texts have no phrase that is frequent enough to search for; take more --documents")
    return [statement(phrase) for phrase in phrases]


def statement(phrase: str) -> str:
    return f"SELECT COUNT(*) FROM descriptions WHERE MATCH(text) AGAINST ('\"{phrase}\"' IN BOOLEAN MODE)"


def run(server: Server, statements: Sequence[str], clients: int, seconds: float, checks: Checks) -> None:
    """Runs the burst, shows its speed and RSS, and makes the checks that every run must pass."""
    say(f"== warming up: {len(statements)} phrases once each (about 5 s)")
    found = 0
    with server.connect(DATABASE) as session:
        for sql in statements:
            found += int(session.query(sql).scalar() or 0)
    time.sleep(3)  # the warm-up's memory goes back first

    with Diagnostics(server) as diagnostics:
        before = diagnostics.snapshot()
        server.reset_peak()
        say(f"== burst: {clients} clients search for phrases, {seconds:g} s")
        with burst.Sampler(0.25, diagnostics.snapshot) as sampler:
            done = burst.run(server.socket, DATABASE, statements, clients, seconds)
            ended = time.monotonic()
        during = [snapshot for _, snapshot in sampler.samples]
        peak = highest(during, server.memory().peak_kb * 1024)
        time.sleep(max(0.0, ended + AFTER_SECONDS - time.monotonic()))
        after = last = diagnostics.snapshot()
        # A busy machine runs the server's threads later.
        while not pages_went_back(before, peak, last) and time.monotonic() < ended + PATIENCE:
            time.sleep(1)
            last = diagnostics.snapshot()
    say(
        f"\n{len(done.latencies)} searches, {done.per_second:.1f} a second, half of them within "
        f"{done.latency(50) * 1000:.0f} ms, 99% within {done.latency(99) * 1000:.0f} ms\n"
    )
    moments = {"before": before, "at its peak": peak, f"{AFTER_SECONDS} s after": after}
    say("RSS: " + ", ".join(f"{one.rss_bytes / 2**20:.0f} MiB {moment}" for moment, one in moments.items()))
    receipt = None
    if before.pools:
        receipt = purge(server)
    else:
        say("\nThis server has no memdiag tables: all that can be shown is above.")
    check(checks, found, before, peak, last, receipt)


def pages_went_back(before: Snapshot, peak: Snapshot, last: Snapshot) -> bool:
    """True also where a figure is missing, which no wait changes."""
    pools = [one.pools.get("fts_query", {}).get("RESIDENT_BYTES") for one in (before, peak, last)]
    return None in pools or pools[2] <= pools[0] + pools[1] // 4


def purge(server: Server) -> dict[str, object] | None:
    """Purge everything and show the receipt; None where this server cannot or the receipt cannot be read."""
    try:
        answer = server.query("SELECT memdiag_purge('all')").scalar()
        receipt = json.loads(answer or "")
        old, new = (int(receipt["rss_bytes_before"]), int(receipt["rss_bytes_after"]))
        taken = int(receipt["microseconds"])
    except SqlError as error:
        say(f"\nmemdiag_purge('all'): {error.message}")
        return None
    except (ValueError, KeyError, TypeError):
        say(f"\nmemdiag_purge('all') gave an unreadable receipt: {answer}")
        return None
    say(
        f"\nSELECT memdiag_purge('all'): RSS {old / 2**20:.1f} MiB before, {new / 2**20:.1f} MiB after,"
        f" {(old - new) / 2**20:.1f} MiB given back in {taken / 1000:.1f} ms"
    )
    return receipt


def check(
    checks: Checks, found: int, before: Snapshot, peak: Snapshot, last: Snapshot, receipt: dict[str, object] | None
) -> None:
    """Checks the relations that hold in every run. The figures themselves depend on the machine."""
    checks.check("phrases were found", found > 0)
    checks.check("MEMDIAG_ALLOCATOR has a row", bool(last.allocator))
    checks.check("MEMDIAG_POOLS has the pool general", "general" in last.pools)
    checks.check("MEMDIAG_POOLS has the pool fts_query", "fts_query" in last.pools)

    def at_most(name: str, figures: Callable[[], tuple[float, float]]) -> None:
        """The first figure is at most the second. A figure that is missing or NULL is a failure, too."""
        try:
            first, second = figures()
        except (KeyError, TypeError) as error:
            checks.check(name, False, f"no figure {error}")
        else:
            checks.check(name, first <= second, "" if first <= second else f"{first:,.0f} and {second:,.0f}")

    def known(figures: Figures, name: str) -> int:
        value = figures[name]
        if value is None:
            raise TypeError(f"{name} (it is NULL)")
        return value

    def pool(snapshot: Snapshot, figure: str) -> int:
        return known(snapshot.pools["fts_query"], figure)

    def total(figure: str) -> int:
        return known(last.allocator, figure)

    at_most("the searches used the pool", lambda: (pool(before, "ALLOCATIONS") + 1, pool(last, "ALLOCATIONS")))
    at_most(
        "the pool's live bytes rose in the burst", lambda: (pool(before, "LIVE_BYTES") + 1, pool(peak, "LIVE_BYTES"))
    )
    at_most("the pool is empty of queries afterwards", lambda: (pool(last, "LIVE_BYTES"), pool(before, "LIVE_BYTES")))
    at_most("no more frees than allocations", lambda: (pool(last, "FREES"), pool(last, "ALLOCATIONS")))
    # jemalloc counts blocks in its caches as live, and the pool does not. A moment passes
    # between the two counts.
    at_most(
        "the recorded peak covers what was seen", lambda: (pool(peak, "LIVE_BYTES") * 3 // 4, pool(last, "PEAK_BYTES"))
    )
    at_most(
        "the pool's pages went back",
        lambda: (pool(last, "RESIDENT_BYTES"), pool(before, "RESIDENT_BYTES") + pool(peak, "RESIDENT_BYTES") // 4),
    )
    at_most("allocated <= active", lambda: (total("ALLOCATED_BYTES"), total("ACTIVE_BYTES")))
    at_most("active <= resident", lambda: (total("ACTIVE_BYTES"), total("RESIDENT_BYTES")))
    at_most("resident <= mapped", lambda: (total("RESIDENT_BYTES"), total("MAPPED_BYTES")))
    at_most("the pools are part of allocated", lambda: (pool(last, "LIVE_BYTES"), total("ALLOCATED_BYTES")))
    # jemalloc counts a page as resident when it is mapped, the kernel at its first touch. The rest of RSS is only the
    # program's own data and stacks of threads that the server does not know.
    at_most(
        "the kernel has nothing that the tables do not know",
        lambda: (last.anon_bytes, 1.02 * (total("RESIDENT_BYTES") + (last.regions_bytes or 0)) + (24 << 20)),
    )
    said = receipt or {}
    at_most(
        "the purge left no more than there was", lambda: (said["rss_bytes_after"], said["rss_bytes_before"] + (1 << 20))
    )
    # Exact, unlike RSS itself, which other threads move meanwhile.
    at_most(
        "the purge released no more than RSS fell by",
        lambda: (said["released_bytes"], max(0, said["rss_bytes_before"] - said["rss_bytes_after"])),
    )
