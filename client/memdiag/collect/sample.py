"""One cheap look at a server, for a recording and for the live screen: some milliseconds.

{"time", "rss", "swap", "limit", "used", "limit_of", "buffer_pool", "pool_in_rss", "counted", "unused",
 "sessions", "uptime", "pools": {name: [live, unused]}, "instruments": {name: bytes},
 "ceiling": {"level", "target", "left", "parked", "ended"}, absent where there is none or its level is 0}; a figure that is not known is None.
"""

from __future__ import annotations

import time
from typing import Any

from memdiag.collect import kernel, queries
from memdiag.collect.sources import Row
from memdiag.connect.session import Refused, Session
from memdiag.model.view import View, total

# Smaller instruments would only make the file large.
WORTH_BYTES = 1 << 20

_HOST = "SELECT SUBJECT, NAME, NUMBER, VALUE, SOURCE FROM information_schema.MEMDIAG_HOST WHERE SUBJECT IN ('process', 'cgroup', 'memory')"
_LEDGER = "SELECT COMPONENT, NAME, STATE, RESIDENT_BYTES FROM information_schema.MEMDIAG_LEDGER"
_INSTRUMENTS = "SELECT EVENT_NAME, CURRENT_NUMBER_OF_BYTES_USED AS BYTES FROM performance_schema.memory_summary_global_by_event_name WHERE CURRENT_NUMBER_OF_BYTES_USED <> 0"


class Sampler:
    """Asks what does not change once, and the rest at each sample."""

    def __init__(self, session: Session) -> None:
        self._session = session
        who = session.rows("SELECT VERSION() AS V")[0]["V"]
        tables = {
            row["TABLE_NAME"]
            for row in self._try(
                "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME LIKE 'MEMDIAG\\_%'"
            )
        }
        self.ours = "MEMDIAG_LEDGER" in tables
        self.server = {
            "version": who,
            "flavour": "memdiag" if self.ours else "mariadb" if "mariadb" in who.lower() else "mysql",
        }
        variables = self.variables()
        self.server |= {name: variables.get(name) for name in ("hostname", "server_uuid")}
        self._large_pages = variables.get("large_pages")
        pid, uptime = session.server_process(), self._status().get("uptime")
        if not pid and session.target.host in kernel.LOOPBACK:
            pid = kernel.pid_on_loopback(variables, uptime, session.target.port)
        self.pid = pid if pid and kernel.is_server(pid, uptime) else 0

    def variables(self) -> Row:
        return {row["VARIABLE_NAME"].lower(): row["VALUE"] for row in self._try(queries.VARIABLES)}

    def sample(self) -> dict[str, Any]:
        view = self._view()
        limit = view.limit
        result: dict[str, Any] = {
            "time": time.time(),
            "rss": view.rss,
            "swap": view.swapped,
            "limit": limit.bytes if limit else None,
            "limit_of": limit.what if limit else None,
            "used": limit.used if limit else None,
            "buffer_pool": view.buffer_pool,
            "pool_in_rss": view.pool_in_rss,
            "counted": view.counted,
            "sessions": view.status("Threads_connected"),
            "uptime": view.status("Uptime"),
            "instruments": {
                row["EVENT_NAME"]: row["BYTES"] for row in view.rows("memory") if row["BYTES"] >= WORTH_BYTES
            },
        }
        if self.ours:
            states = view.pool_states()
            result["pools"] = {
                name: [one.get("live"), total([one.get("dirty"), one.get("muzzy")])] for name, one in states.items()
            }
            unused = [one[1] for one in result["pools"].values()]
            result["unused"] = total(unused) if unused else None
        if level := view.status("Memdiag_ceiling_level"):
            result["ceiling"] = {"level": level} | {
                name: view.status(f"Memdiag_ceiling_{name}{'_bytes' * (name != 'ended')}")
                for name in ("target", "left", "parked", "ended")
            }
        return result

    def _view(self) -> View:
        sources: dict[str, Any] = {}

        def keep(name: str, rows: list[Row]) -> None:
            sources[name] = {"source": name, "rows": rows, "error": None}

        keep("variables", [{"large_pages": self._large_pages}])
        status = self._status()
        keep("status", [status] if status else [])
        keep("memory", self._try(_INSTRUMENTS))
        if self.ours:
            keep("memdiag_ledger", self._try(_LEDGER))
            keep("memdiag_host", self._try(_HOST))
        if self.pid and not (self.ours and sources["memdiag_host"]["rows"]):
            # A server without memdiag, or an account without PROCESS.
            for name, source in (kernel.process(self.pid) | kernel.machine()).items():
                keep(name, source.rows)
        return View(
            {"label": self._session.target.label, "server": self.server, "sources": sources, "local": bool(self.pid)}
        )

    def _status(self) -> Row:
        return {row["VARIABLE_NAME"].lower(): _number(row["VALUE"]) for row in self._try(queries.GLOBAL_STATUS)}

    def _try(self, statement: str) -> list[Row]:
        try:
            return self._session.rows(statement)
        except Refused:
            return []


def _number(text: Any) -> Any:
    return int(text) if isinstance(text, str) and text.isdigit() else text
