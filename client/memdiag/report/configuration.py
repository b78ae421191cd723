"""The variables that decide about memory, as they are in force."""

from __future__ import annotations

from memdiag.model.document import Column, Note, Section, Table
from memdiag.model.view import View

_NOT_SHOWN = {
    "hostname",
    "port",
    "socket",
    "pid_file",
    "version",
    "version_comment",
    "version_compile_machine",
    "datadir",
    "server_uuid",
}
_COUNTS = {
    "max_connections",
    "thread_cache_size",
    "table_open_cache",
    "table_open_cache_instances",
    "table_definition_cache",
    "stored_program_cache",
    "stored_program_definition_cache",
    "max_prepared_stmt_count",
    "innodb_buffer_pool_instances",
    "wait_timeout",
    "performance_schema_max_memory_classes",
    "memdiag_memory_wait_ms",
    "memdiag_history_interval_ms",
    "memdiag_history_samples",
}
# MySQL writes `no limit` as the largest number that fits.
_NO_LIMIT = 1 << 63


def section(view: View) -> Section:
    result = Section("configuration", "Configuration that matters")
    variables = view.row("variables")
    if not variables:
        result.blocks.append(Note(f"Unknown: {view.error('variables')}."))
        return result
    rows = []
    for name in sorted(variables):
        if name in _NOT_SHOWN:
            continue
        value = variables[name]
        if isinstance(value, int) and name not in _COUNTS:
            rows.append([name, "", "no limit"] if value >= _NO_LIMIT - (1 << 20) else [name, value, ""])
        else:
            rows.append([name, "", "(empty)" if value == "" else value])
    result.blocks.append(
        Table(
            "configuration",
            "Global variables",
            [Column("variable", "variable"), Column("bytes", "bytes", "bytes"), Column("value", "value")],
            rows,
            "SHOW GLOBAL VARIABLES",
            folded=True,
        )
    )
    allocator = view.row("memdiag_allocator")
    if allocator:
        result.blocks.append(
            Table(
                "allocator",
                "Allocator",
                [Column("name", "figure"), Column("bytes", "bytes", "bytes"), Column("value", "value")],
                [
                    [
                        name.lower(),
                        value if name.endswith("_BYTES") else "",
                        "" if name.endswith("_BYTES") else ("none" if value is None else value),
                    ]
                    for name, value in allocator.items()
                ],
                "INFORMATION_SCHEMA.MEMDIAG_ALLOCATOR",
                folded=True,
            )
        )
    return result
