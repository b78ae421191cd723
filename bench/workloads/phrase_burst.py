"""Full-text phrase searches in a burst: a large heap per search, all of it freed when the search ends."""

import bisect
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from bench.workloads.base import HUGE_PAGES, LIMIT, PLAIN, Load, Workload
from harness import burst
from harness.server import Server
from harness.sql import Connection

# The collection. Words are drawn independently with P(rank) proportional to 1 / (rank + SHIFT) ** SKEW. The values make
# the phrase words below occur in most documents, as "the package provides" does in real text; with them stock behaves
# as recorded in the project's design (glibc: about 465 MB of growth, 20 to 34 searches a second on two cores).
WORDS_PER_DOCUMENT = 60
VOCABULARY = 20_000
SKEW = 1.05
SHIFT = 2.7
SEED = 20
PHRASE_WORDS = 12  # phrases are made of the most frequent so many words


def words(count: int) -> list[str]:
    """Pronounceable distinct words of six letters, the same in every run."""
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    return ["".join(parts) for parts in itertools.islice(itertools.product(syllables, repeat=3), count)]


def documents(count: int) -> Iterator[str]:
    chooser = random.Random(SEED)
    vocabulary = words(VOCABULARY)
    chooser.shuffle(vocabulary)
    cumulative = list(itertools.accumulate(1 / (rank + SHIFT) ** SKEW for rank in range(1, VOCABULARY + 1)))
    total = cumulative[-1]
    for _ in range(count):
        draws = (bisect.bisect(cumulative, chooser.random() * total) for _ in range(WORDS_PER_DOCUMENT))
        yield " ".join(vocabulary[min(draw, VOCABULARY - 1)] for draw in draws)


def fill_documents(session: Connection, count: int) -> None:
    session.query("CREATE TABLE documents (id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT, body TEXT NOT NULL)")
    every = documents(count)
    while batch := list(itertools.islice(every, 500)):
        session.query("INSERT INTO documents (body) VALUES " + ",".join(f"('{text}')" for text in batch))
    session.query("CREATE FULLTEXT INDEX body ON documents (body)")


def searches() -> list[str]:
    """Every ordered pair of the most frequent words as a phrase."""
    vocabulary = words(VOCABULARY)
    random.Random(SEED).shuffle(vocabulary)
    return [
        f"SELECT COUNT(*) FROM documents WHERE MATCH(body) AGAINST ('\"{one} {other}\"' IN BOOLEAN MODE)"
        for one, other in itertools.permutations(vocabulary[:PHRASE_WORDS], 2)
    ]


@dataclass(frozen=True)
class PhraseBurst(Workload):
    name = "phrase_burst"
    shows = "full-text phrase searches: heaps that are freed, but not given back"
    unit = "searches"
    options = (
        "--innodb-buffer-pool-size=512M",
        # Words are all of three letters or more; none may count as a stop word.
        "--innodb-ft-min-token-size=3",
        "--innodb-ft-enable-stopword=OFF",
    )
    data = ("documents",)
    surroundings = (PLAIN, HUGE_PAGES, LIMIT)

    documents: int = 40_000
    clients: int = 8
    seconds: float = 15.0

    def fill(self, server: Server) -> None:
        with server.connect(self.name) as session:
            fill_documents(session, self.documents)
            session.query("ANALYZE TABLE documents")

    def load(self, server: Server) -> Load:
        return Load.of(burst.run(server.socket, self.name, searches(), self.clients, self.seconds))
