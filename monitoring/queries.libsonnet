// The statements that an exporter runs, and what their columns mean. The exporter's
// configuration is made from here (monitoring/render.py), so that a figure has one
// name everywhere: mysql_memdiag_<statement>_<column>.
//
// The values of a label come from lists that the build or the start of the server fixes. No
// statement returns a row for each session, statement or digest.
//
// A NULL is no measurement, and the exporter leaves it out. Nor is a sample of more than three
// intervals or 15 s ago.
//
// The session's time_zone is '+00:00': in another one an hour may come twice a year. Its sql_select_limit and
// sql_big_selects are not those of an application, which would cut or refuse answers.

local gauge(column, help) = { column: column, type: 'gauge', help: help };
local counter(column, help) = { column: column, type: 'counter', help: help };

{
  // These are cheap enough to run each second.
  fast: {
    pool: {
      labels: ['pool'],
      values: [
        gauge('live_bytes', 'Allocated and not yet freed.'),
        gauge('active_bytes', 'Pages that hold at least one block.'),
        gauge('dirty_bytes', 'Unused pages that were not given back yet.'),
        gauge('muzzy_bytes', 'Unused pages that the kernel may take.'),
        gauge('metadata_bytes', "The allocator's bookkeeping."),
        gauge('peak_bytes', 'Highest live bytes since the server started.'),
        counter('fallbacks_total', 'Blocks that malloc() served because the pool could not.'),
        counter('purges_total', 'Purges of the whole pool.'),
        counter('purged_bytes_total', 'Bytes that purges released.'),
        counter('purge_time_seconds_total', 'Duration of the purges.'),
        counter('refaulted_bytes_total', 'Purged bytes that the pool needed again within a second.'),
        gauge('backoff', 'The pool waits this many times its usual pause before a purge.'),
      ],
      query: |||
        SELECT POOL AS pool, LIVE_BYTES AS live_bytes, ACTIVE_BYTES AS active_bytes,
               DIRTY_BYTES AS dirty_bytes, MUZZY_BYTES AS muzzy_bytes,
               METADATA_BYTES AS metadata_bytes, PEAK_BYTES AS peak_bytes,
               FALLBACKS AS fallbacks_total, PURGES AS purges_total,
               PURGED_BYTES AS purged_bytes_total,
               PURGE_MICROSECONDS / 1e6
                 AS purge_time_seconds_total,
               REFAULTED_BYTES AS refaulted_bytes_total, BACKOFF AS backoff
          FROM information_schema.MEMDIAG_POOLS
      |||,
    },
    ledger: {
      labels: ['component', 'name', 'state'],
      values: [
        gauge('resident_bytes', 'Physical memory. The series of a server add up to its RSS.'),
      ],
      query: |||
        SELECT COMPONENT AS component, NAME AS name, STATE AS state,
               RESIDENT_BYTES AS resident_bytes
          FROM information_schema.MEMDIAG_LEDGER
      |||,
    },
    advice: {
      labels: ['severity', 'subsystem', 'verdict'],
      values: [gauge('findings', 'Findings of MEMDIAG_ADVICE.')],
      query: |||
        SELECT SEVERITY AS severity, SUBSYSTEM AS subsystem, VERDICT AS verdict,
               COUNT(*) AS findings
          FROM information_schema.MEMDIAG_ADVICE
         GROUP BY SEVERITY, SUBSYSTEM, VERDICT
      |||,
    },
    survivors: {
      labels: ['pool', 'scope'],
      values: [
        gauge('bytes', 'Blocks that outlived the statement, transaction or session that they were for.'),
        gauge('oldest_seconds', 'No survivor is older.'),
      ],
      // Rows of MEMORY tables are kept on purpose. The advice leaves them out, too.
      query: |||
        SELECT POOL AS pool, SCOPE AS scope, SUM(BYTES) AS bytes,
               MAX(AGE_SECONDS) AS oldest_seconds
          FROM information_schema.MEMDIAG_SURVIVORS
         WHERE ROUTE NOT LIKE 'memory/memory/%'
         GROUP BY POOL, SCOPE
      |||,
    },
    host: {
      labels: [],
      values: [
        gauge('memory_bytes', 'Memory of the machine.'),
        gauge('available_bytes', 'Memory of the machine that is available.'),
        gauge('swapped_bytes', 'Swapped memory of the server.'),
        gauge('limit_bytes', 'Lowest limit of the control group and those above it. Absent: no limit.'),
        gauge('room_bytes', 'Least that is free below one of these limits. Absent: no limit.'),
        gauge('room_limit_bytes', 'The limit with the least room. Absent: no limit.'),
        gauge('safe_limit_bytes', 'How low the limit of the control group may be set now without a kill.'),
        counter('oom_kills_total', 'Processes of the control group that the OOM killer has killed.'),
        counter('stalled_seconds_total', 'Time in which some task waited for memory.'),
      ],
      query: |||
        SELECT MAX(IF(SUBJECT = 'memory' AND NAME = 'MemTotal', NUMBER, NULL)) AS memory_bytes,
               MAX(IF(SUBJECT = 'memory' AND NAME = 'MemAvailable', NUMBER, NULL)) AS available_bytes,
               MAX(IF(SUBJECT = 'process' AND NAME = 'VmSwap', NUMBER, NULL)) AS swapped_bytes,
               MAX(IF(SUBJECT = 'cgroup' AND NAME = 'effective_limit', NUMBER, NULL)) AS limit_bytes,
               MAX(IF(SUBJECT = 'cgroup' AND NAME = 'effective_room', NUMBER, NULL)) AS room_bytes,
               MAX(IF(SUBJECT = 'cgroup' AND NAME = 'room_limit', NUMBER, NULL)) AS room_limit_bytes,
               MAX(IF(SUBJECT = 'cgroup' AND NAME = 'safe_limit', NUMBER, NULL)) AS safe_limit_bytes,
               MAX(IF(SUBJECT = 'cgroup' AND NAME IN ('memory.events.oom_kill',
                 'memory.oom_control.oom_kill'), NUMBER, NULL)) AS oom_kills_total,
               IF(MAX(NAME = 'cgroup.some.total') = 1,
                 MAX(IF(NAME = 'cgroup.some.total', NUMBER, NULL)),
                 MAX(IF(NAME = 'machine.some.total', NUMBER, NULL))) / 1e6 AS stalled_seconds_total
          FROM information_schema.MEMDIAG_HOST
      |||,
    },
    ceiling: {
      labels: [],
      values: [
        gauge('level', 'The level of the ceiling. 1: green, statements begin. 2: yellow, they wait. 3: red, running ones wait for memory. 0: there is no limit, or its figures cannot be read. Absent: memdiag_memory_target is OFF.'),
        gauge('target_bytes', 'The target that the ceiling keeps. Absent: level 0, OFF, or WATCH.'),
        gauge('left_bytes', 'Left below the target; 0 above it. Absent: level 0, or OFF.'),
        gauge('charged_bytes', 'Taken by threads since the kernel was read last. Absent: level 0, or OFF.'),
        gauge('promised_bytes', 'Promised to statements, and perhaps not touched yet. Absent: level 0, or OFF.'),
        gauge('parked_bytes', 'Frames of the buffer pool whose memory the system has now.'),
        counter('waits_total', 'Waits for memory: of running statements, of packets and messages before they are read, and of replicas that read an event.'),
        counter('wait_time_seconds_total', 'How long these were, in all.'),
        gauge('longest_wait_seconds', 'The longest of these.'),
        counter('went_on_total', 'Waits that ended without room.'),
        counter('ended_total', 'Statements that the ceiling told to end.'),
        counter('refused_total', 'Statements that waited for room and did not begin, blocks and values that were refused, and messages of the X protocol that were not read.'),
        counter('kernel_reads_total', 'Readings of the kernel.'),
        counter('rounds_total', 'Rounds of the giver.'),
        gauge('last_timestamp_seconds', 'When the ceiling last did something. Absent: it never did.'),
      ],
      // The level of a ceiling that is OFF is 0, too.
      query: |||
        SELECT IF(@@GLOBAL.memdiag_memory_target = 'OFF', NULL,
                 MAX(IF(NAME = 'level', NUMBER, NULL))) AS level,
               MAX(IF(NAME = 'target_bytes', NUMBER, NULL)) AS target_bytes,
               MAX(IF(NAME = 'left_bytes', NUMBER, NULL)) AS left_bytes,
               MAX(IF(NAME = 'charged_bytes', NUMBER, NULL)) AS charged_bytes,
               MAX(IF(NAME = 'promised_bytes', NUMBER, NULL)) AS promised_bytes,
               MAX(IF(NAME = 'parked_bytes', NUMBER, NULL)) AS parked_bytes,
               MAX(IF(NAME = 'waits', NUMBER, NULL)) AS waits_total,
               MAX(IF(NAME = 'wait_microseconds', NUMBER, NULL)) / 1e6
                 AS wait_time_seconds_total,
               MAX(IF(NAME = 'longest_wait_microseconds', NUMBER, NULL)) / 1e6
                 AS longest_wait_seconds,
               MAX(IF(NAME = 'went_on', NUMBER, NULL)) AS went_on_total,
               MAX(IF(NAME = 'ended', NUMBER, NULL)) AS ended_total,
               MAX(IF(NAME = 'refused', NUMBER, NULL)) AS refused_total,
               MAX(IF(NAME = 'kernel_reads', NUMBER, NULL)) AS kernel_reads_total,
               MAX(IF(NAME = 'rounds', NUMBER, NULL)) AS rounds_total,
               (SELECT UNIX_TIMESTAMP(MAX(TIME)) FROM information_schema.MEMDIAG_CEILING
                 WHERE ACTED = 'YES') AS last_timestamp_seconds
          FROM (SELECT SUBSTR(VARIABLE_NAME, 17) AS NAME,
                       CAST(NULLIF(VARIABLE_VALUE, '') AS UNSIGNED) AS NUMBER
                  FROM performance_schema.global_status
                 WHERE VARIABLE_NAME LIKE 'Memdiag_ceiling_%') AS figures
      |||,
    },
  },

  // These read tables that keep the past, or that hardly change.
  slow: {
    process: {
      labels: [],
      values: [
        gauge('resident_bytes', 'Physical memory of the server (RSS).'),
        gauge('peak_bytes', 'Highest RSS since the server started.'),
        gauge('limit_bytes', "The lowest limit of the control group, or the machine's memory."),
        gauge('growth_bytes_per_second', 'Slope of a line through RSS of the last 15 minutes.'),
        gauge('until_limit_seconds', 'Time until that line reaches the limit, or has grown by all that other processes leave of it. Absent: not within a year.'),
      ],
      query: |||
        SELECT RSS_BYTES AS resident_bytes, RSS_PEAK_BYTES AS peak_bytes,
               LIMIT_BYTES AS limit_bytes,
               TREND_BYTES_PER_SECOND AS growth_bytes_per_second,
               SECONDS_UNTIL_LIMIT AS until_limit_seconds
          FROM information_schema.MEMDIAG_HISTORY
         WHERE RUN = 0 AND TIME <= NOW(6)
           AND TIME > NOW(6) - INTERVAL LEAST(3000 * @@memdiag_history_interval_ms, 15000000) MICROSECOND
         ORDER BY TIME DESC LIMIT 1
      |||,
    },
    budget: {
      labels: [],
      values: [
        gauge('worst_case_bytes', 'What the configuration allows at most.'),
      ],
      query: |||
        SELECT WORST_CASE_BYTES AS worst_case_bytes
          FROM information_schema.MEMDIAG_BUDGET
         WHERE VARIABLE = 'TOTAL'
      |||,
    },
    last_run: {
      // One series for each start: the last run does not change while the server runs.
      labels: ['largest_pool', 'grown_pool', 'digest'],
      values: [
        gauge('killed', '1: the run before this one was killed or crashed.'),
        gauge('ended_timestamp_seconds', 'Its last sample.'),
        gauge('resident_bytes', 'RSS at its last sample.'),
        gauge('limit_bytes', 'Its limit.'),
        gauge('session_bytes', 'Most that one session held when RSS was highest.'),
      ],
      query: |||
        SELECT COALESCE(LARGEST_POOL, '') AS largest_pool,
               COALESCE(GROWN_POOL, '') AS grown_pool,
               COALESCE(RSS_PEAK_DIGEST, '') AS digest,
               IF(SHUT_DOWN = 'NO', 1, 0) AS killed,
               UNIX_TIMESTAMP(TIME) AS ended_timestamp_seconds,
               RSS_BYTES AS resident_bytes, LIMIT_BYTES AS limit_bytes,
               RSS_PEAK_SESSION_BYTES AS session_bytes
          FROM information_schema.MEMDIAG_HISTORY
         WHERE RUN = 1
         ORDER BY TIME DESC LIMIT 1
      |||,
    },
  },
}
