// Alerts. Each says what is wrong, how much it is, and the statement that helps.
{
  local c = $._config {
    s: if self.memdiagSelector == '' then '' else '{%s}' % self.memdiagSelector,
    and_s: if self.memdiagSelector == '' then '' else ', ' + self.memdiagSelector,
  },
  local worth(expr) = '%s > %d' % [expr, c.memdiagWorthBytes],
  local server = '{{ $labels.instance }}',
  // The server's own forecast is a line through at most 15 minutes of RSS. A burst or a start
  // tilts it for so long. Therefore two more conditions hold. RSS without the buffer pool must
  // have grown in every part (5 or 20 minutes) of the time since `age` ago. And the slowest part
  // must lead to the limit, too, or take all that others leave of it. The buffer pool is left out,
  // because it stops at its size.
  local reaches(seconds, part, window, age) = |||
    mysql_memdiag_process_until_limit_seconds%(s)s < %(seconds)d
    and
    (
      %(grown)s
        > clamp_min(mysql_memdiag_process_limit_bytes%(s)s - mysql_memdiag_process_resident_bytes%(s)s, 0)
      or
      %(grown)s > mysql_memdiag_host_room_bytes%(s)s
      or
      %(grown)s > mysql_memdiag_host_available_bytes%(s)s
    )
    and
    mysql_memdiag_process_resident_bytes%(s)s offset %(age)s
  ||| % {
    s: c.s,
    seconds: seconds,
    age: age,
    grown: 'min_over_time(instance:mysql_memdiag_beside_buffer_pool_bytes:%s[%s]) * %d' % [part, window, seconds],
  },

  prometheusAlerts+:: {
    groups+: [
      {
        name: 'memdiag_alerts',
        rules: [
          {
            alert: 'MemdiagReachesLimit',
            expr: reaches(c.memdiagSoonSeconds, 'deriv5m', '10m', '15m'),
            'for': '2m',
            labels: { severity: 'critical' },
            annotations: {
              summary: 'MySQL reaches its memory limit within an hour.',
              description: server + " has grown for 15 minutes, not by its buffer pool, and reaches its limit in {{ $value | humanizeDuration }}. SELECT * FROM information_schema.memdiag_summary names what grows; SELECT memdiag_purge('all') gives back what is unused.",
            },
          },
          {
            alert: 'MemdiagGrowsTowardsLimit',
            expr: reaches(c.memdiagLaterSeconds, 'deriv20m', '40m', '1h'),
            'for': '15m',
            labels: { severity: 'warning' },
            annotations: {
              summary: 'MySQL reaches its memory limit within a day.',
              description: server + ' has grown for an hour, not by its buffer pool, and reaches its limit in {{ $value | humanizeDuration }}. SELECT * FROM information_schema.memdiag_summary names what grows.',
            },
          },
          {
            alert: 'MemdiagUnexplainedGrowth',
            expr: |||
              (instance:mysql_memdiag_unexplained_bytes:sum
                - instance:mysql_memdiag_unexplained_bytes:sum offset 1h) > %d
              and
              (instance:mysql_memdiag_unexplained_bytes:sum
                - instance:mysql_memdiag_unexplained_bytes:sum offset 1h)
                > %g * instance:mysql_memdiag_resident_bytes:sum
            ||| % [c.memdiagWorthBytes, c.memdiagLargeRatio],
            'for': '15m',
            labels: { severity: 'warning' },
            annotations: {
              summary: 'Memory that no pool of MySQL has grows.',
              description: server + ' has {{ $value | humanize1024 }}B more of it than an hour ago: a plugin, a component or a library takes it. SELECT * FROM information_schema.memdiag_ledger ORDER BY resident_bytes DESC shows where.',
            },
          },
          {
            alert: 'MemdiagPoolGrowth',
            expr: 'sum without (severity, verdict) (mysql_memdiag_advice_findings{verdict=~"growth|leak"%s}) > 0' % c.and_s,
            'for': '15m',
            labels: { severity: 'warning' },
            annotations: {
              summary: 'Memory of sessions or statements of MySQL grows steadily.',
              description: server + ', {{ $labels.subsystem }}: SELECT * FROM information_schema.memdiag_advice has the figures and the remedy.',
            },
          },
          {
            // Any rule of the advice, also one that no alert here knows.
            alert: 'MemdiagCriticalAdvice',
            expr: 'sum without (severity) (mysql_memdiag_advice_findings{severity="critical"%s}) > 0' % c.and_s,
            'for': '5m',
            labels: { severity: 'critical' },
            annotations: {
              summary: 'The advice of MySQL about its memory is critical.',
              description: server + ', {{ $labels.subsystem }}: SELECT * FROM information_schema.memdiag_advice has the figures and the remedy.',
            },
          },
          {
            alert: 'MemdiagFragmentation',
            expr: |||
              instance_pool:mysql_memdiag_fragmentation:ratio > %g
              and %s
              and instance_pool:mysql_memdiag_fragmentation_bytes:sum
                > on (instance, job) group_left %g * instance:mysql_memdiag_resident_bytes:sum
            ||| % [
              c.memdiagFragmentedRatio,
              worth('instance_pool:mysql_memdiag_fragmentation_bytes:sum'),
              c.memdiagLargeRatio,
            ],
            'for': '30m',
            labels: { severity: 'warning' },
            annotations: {
              summary: 'Much of the pages that MySQL uses is free.',
              description: server + ', pool {{ $labels.pool }}: {{ $value | humanizePercentage }} of the pages in use are gaps, which no purge releases. SELECT * FROM information_schema.memdiag_advice names what holds them.',
            },
          },
          {
            alert: 'MemdiagUnusedPagesKept',
            expr: |||
              %s
              and
              instance:mysql_memdiag_unused_bytes:sum > %g * instance:mysql_memdiag_resident_bytes:sum
            ||| % [worth('instance:mysql_memdiag_unused_bytes:sum'), c.memdiagLargeRatio],
            'for': '15m',
            labels: { severity: 'info' },
            annotations: {
              summary: 'MySQL keeps unused pages.',
              description: server + " has {{ $value | humanize1024 }}B of them. SELECT memdiag_purge('all') gives them back; memdiag_quiet_ms decides when the server does it by itself.",
            },
          },
          {
            alert: 'MemdiagSurvivors',
            expr: 'mysql_memdiag_survivors_bytes%s > %d' % [c.s, c.memdiagWorthBytes],
            'for': '15m',
            labels: { severity: 'warning' },
            annotations: {
              summary: 'Memory outlives the statement, transaction or session that it was for.',
              description: server + ', pool {{ $labels.pool }}: {{ $value | humanize1024 }}B outlived their {{ $labels.scope }}. SELECT * FROM information_schema.memdiag_survivors ORDER BY bytes DESC names the route.',
            },
          },
          {
            alert: 'MemdiagPurgeBackoff',
            expr: 'min_over_time(mysql_memdiag_pool_backoff%s[10m]) > %d' % [c.s, c.memdiagBackoff],
            'for': '10m',
            labels: { severity: 'info' },
            annotations: {
              summary: 'A pool of MySQL needs its purged pages again soon.',
              description: server + ', pool {{ $labels.pool }} waits {{ $value }} times its usual pause before a purge, so RSS stays higher between bursts. SET GLOBAL memdiag_quiet_ms sets a longer pause.',
            },
          },
          {
            alert: 'MemdiagNearLimit',
            // Below the ceiling a server may use all that its control group has, unless the ceiling's target is
            // lower: then others use the rest. The advice has the same rule.
            expr: |||
              instance:mysql_memdiag_limit_used:ratio{of="machine"} > %(memdiagNearLimitRatio)g
              or
              instance:mysql_memdiag_limit_used:ratio{of="cgroup"} > %(memdiagNearLimitRatio)g
                unless on (instance, job) (
                  mysql_memdiag_ceiling_level%(s)s > 0
                  and on (instance, job)
                  mysql_memdiag_ceiling_target_bytes%(s)s >= %(memdiagNearLimitRatio)g
                    * (mysql_memdiag_host_room_limit_bytes%(s)s or mysql_memdiag_host_limit_bytes%(s)s)
                )
            ||| % c,
            'for': '2m',
            labels: { severity: 'critical' },
            annotations: {
              summary: 'The memory that MySQL may use is nearly full.',
              description: server + ": {{ $value | humanizePercentage }} of the {{ if eq $labels.of \"machine\" }}machine's memory{{ else }}control group's limit{{ end }} is used. SELECT memdiag_purge('all') gives back what is unused. {{ if eq $labels.of \"machine\" }}The ceiling does not look at the machine: set memdiag_memory_target in bytes.{{ else }}With memdiag_memory_target = AUTO the server does so by itself.{{ end }}",
            },
          },
          {
            alert: 'MemdiagPressure',
            expr: 'rate(mysql_memdiag_host_stalled_seconds_total%s[5m]) > %g' % [c.s, c.memdiagStalledRatio],
            'for': '2m',
            labels: { severity: 'warning' },
            annotations: {
              summary: 'Tasks wait for memory where MySQL runs.',
              description: server + ": in {{ $value | humanizePercentage }} of the time some task waits for memory. SELECT memdiag_purge('all') gives back what is unused. The ceiling does not look at this: set memdiag_memory_target in bytes.",
            },
          },
          {
            alert: 'MemdiagCeilingEndedStatements',
            expr: 'increase(mysql_memdiag_ceiling_ended_total%(s)s[10m]) + increase(mysql_memdiag_ceiling_refused_total%(s)s[10m]) > 0' % c,
            labels: { severity: 'warning' },
            annotations: {
              summary: 'Statements failed because MySQL had no room below its memory target.',
              description: server + ' ended or did not begin statements, or refused them a block, a value or a message, {{ $value | humanize }} times within 10 minutes (error 3170). SELECT * FROM information_schema.memdiag_ceiling names the digests of those that ended or did not begin. Raise the limit, or make the statements smaller.',
            },
          },
          {
            alert: 'MemdiagCeilingWentOn',
            expr: 'increase(mysql_memdiag_ceiling_went_on_total%(s)s[1h]) > 0' % c,
            labels: { severity: 'warning' },
            annotations: {
              summary: 'Statements of MySQL waited for memory as long as they may, and went on without room.',
              description: server + ' let {{ $value | humanize }} waits end so within an hour: it may grow above its memory target. Raise the limit, or lower innodb_buffer_pool_size.',
            },
          },
          {
            // No frame comes back while little room is left, also when nobody uses the server.
            alert: 'MemdiagCeilingPoolTooLarge',
            expr: worth('mysql_memdiag_ceiling_parked_bytes%(s)s' % c),
            'for': '1h',
            labels: { severity: 'warning' },
            annotations: {
              summary: 'The buffer pool of MySQL is too large for the memory limit.',
              description: server + ' has taken {{ $value | humanize1024 }}B of the buffer pool for an hour, and has no room to give them back. Lower innodb_buffer_pool_size by so much, or raise the limit.',
            },
          },
          {
            // Without a limit, AUTO has nothing to do.
            alert: 'MemdiagCeilingUnknown',
            expr: 'mysql_memdiag_ceiling_level%(s)s == 0 and mysql_memdiag_host_limit_bytes%(s)s' % c,
            'for': '5m',
            labels: { severity: 'warning' },
            annotations: {
              summary: 'The ceiling of MySQL does nothing, although there is a limit.',
              description: server + ' cannot read the figures of its control group, or the value of memdiag_memory_target. The error log says which.',
            },
          },
          {
            alert: 'MemdiagLastRunKilled',
            expr: |||
              mysql_memdiag_last_run_killed%(s)s == 1
              and
              time() - mysql_memdiag_last_run_ended_timestamp_seconds%(s)s < %(memdiagLastRunSeconds)d
            ||| % c,
            labels: { severity: 'warning' },
            annotations: {
              summary: 'The last run of MySQL was killed or crashed.',
              description: server + ': pool {{ $labels.largest_pool }} was the largest{{ if $labels.grown_pool }}, {{ $labels.grown_pool }} grew most in the last minute{{ end }}{{ if $labels.digest }}, and the largest session ran digest {{ $labels.digest }}{{ end }}. SELECT * FROM information_schema.memdiag_history WHERE run > 0 ORDER BY run, time DESC shows its last minutes.',
            },
          },
          {
            alert: 'MemdiagNoMetrics',
            // Debian's exporter repeats the last figures if the server is down.
            expr: |||
              up{%(memdiagExporterSelector)s} == 1 unless on (instance, job) mysql_memdiag_ledger_resident_bytes%(s)s
              or
              max without (query) (sql_exporter_last_scrape_failed{query="mysql_memdiag_pool", %(memdiagExporterSelector)s}) == 1
            ||| % c,
            'for': '5m',
            labels: { severity: 'warning' },
            annotations: {
              summary: 'The exporter runs and reads nothing from MySQL.',
              description: server + ': the server is down or is not this build, the endpoint is wrong, or the account lacks PROCESS. The log of the exporter says which.',
            },
          },
        ],
      },
    ],
  },
}
