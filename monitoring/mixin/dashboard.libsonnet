// The Grafana dashboard. From the top it answers: How near is the limit? Who has the memory?
// What is wasted? What does the server do about it?
{
  local c = $._config { s: 'instance=~"$instance", ' + self.memdiagSelector },
  local one = 'instance=~"$instance"',

  local target(expr, legend) = {
    datasource: { type: 'prometheus', uid: '$datasource' },
    expr: expr,
    legendFormat: legend,
  },
  local panel(kind, title, description, unit, targets, width, defaults={}, options={}) = {
    type: kind,
    title: title,
    description: description,
    datasource: { type: 'prometheus', uid: '$datasource' },
    fieldConfig: { defaults: { unit: unit } + defaults, overrides: [] },
    options: options,
    targets: [
      targets[i] { refId: std.char(65 + i) }
      for i in std.range(0, std.length(targets) - 1)
    ],
    width:: width,
  },
  local graph(title, description, unit, targets, stacked=false, width=12) =
    panel('timeseries', title, description, unit, targets, width, {
      min: 0,
      custom: {
        fillOpacity: if stacked then 60 else 5,
        stacking: { mode: if stacked then 'normal' else 'none' },
      },
    }, {
      legend: { displayMode: 'table', placement: 'right', calcs: ['lastNotNull', 'max'] },
      tooltip: { mode: 'multi', sort: 'desc' },
    }),
  local figure(title, description, unit, expr, steps, legend='{{instance}}') =
    panel('stat', title, description, unit, [target(expr, legend)], 6, {
      thresholds: { mode: 'absolute', steps: steps },
    }, { reduceOptions: { calcs: ['lastNotNull'] } }),
  local steps(first, rest) = [{ color: first, value: null }] + rest,

  // Rows of panels become positions: 24 columns, panels eight high.
  local placed(rows) = std.flattenArrays([
    local height = if rows[y][0].type == 'stat' then 4 else 8;
    local top = std.foldl(
      function(sum, row) sum + (if row[0].type == 'stat' then 4 else 8),
      rows[0:y],
      0
    );
    [
      rows[y][x] {
        id: y * 10 + x + 1,
        gridPos: {
          h: height,
          w: rows[y][x].width,
          x: std.foldl(function(sum, other) sum + other.width, rows[y][0:x], 0),
          y: top,
        },
      }
      for x in std.range(0, std.length(rows[y]) - 1)
    ]
    for y in std.range(0, std.length(rows) - 1)
  ]),

  local rows = [
    [
      figure(
        'Time to the limit',
        'A line through RSS of the last 15 minutes. No data: not within a year.',
        's',
        'mysql_memdiag_process_until_limit_seconds{%s}' % c.s,
        steps('red', [
          { color: 'orange', value: c.memdiagSoonSeconds },
          { color: 'green', value: c.memdiagLaterSeconds },
        ])
      ),
      figure(
        'Limit in use',
        "The control group's, or else the machine's memory.",
        'percentunit',
        'instance:mysql_memdiag_limit_used:ratio{%s}' % one,
        steps('green', [{ color: 'red', value: c.memdiagNearLimitRatio }])
      ),
      figure(
        'Unused pages',
        "SELECT memdiag_purge('all') gives them back.",
        'bytes',
        'instance:mysql_memdiag_unused_bytes:sum{%s}' % one,
        steps('green', [])
      ),
      figure(
        'Last run killed',
        'The labels name the largest pool and the digest of the largest session.',
        'none',
        'mysql_memdiag_last_run_killed{%s}' % c.s,
        steps('green', [{ color: 'red', value: 1 }]),
        '{{instance}} {{largest_pool}} {{digest}}'
      ),
    ],
    [
      graph('Resident memory', 'RSS, its peak and the limit.', 'bytes', [
        target('mysql_memdiag_process_resident_bytes{%s}' % c.s, 'RSS {{instance}}'),
        target('mysql_memdiag_process_peak_bytes{%s}' % c.s, 'peak {{instance}}'),
        target('mysql_memdiag_process_limit_bytes{%s}' % c.s, 'limit {{instance}}'),
      ]),
      graph('Who has it', 'Every resident byte once.', 'bytes', [
        target('instance_component:mysql_memdiag_resident_bytes:sum{%s}' % one, '{{instance}} {{component}}'),
      ], stacked=true),
    ],
    [
      graph('Pools', 'Resident bytes of each pool.', 'bytes', [
        target('instance_pool:mysql_memdiag_resident_bytes:sum{%s}' % one, '{{instance}} {{pool}}'),
      ], stacked=true),
      graph('Blocks', 'Live bytes of each pool.', 'bytes', [
        target('mysql_memdiag_pool_live_bytes{%s}' % c.s, '{{instance}} {{pool}}'),
      ], stacked=true),
    ],
    [
      graph('Unused pages by pool', 'Dirty and muzzy pages that are resident.', 'bytes', [
        target('instance_pool:mysql_memdiag_unused_bytes:sum{%s}' % one, '{{instance}} {{pool}}'),
      ], stacked=true),
      graph('Gaps in pages', 'Free parts of pages in use.', 'bytes', [
        target('instance_pool:mysql_memdiag_fragmentation_bytes:sum{%s}' % one, '{{instance}} {{pool}}'),
      ], stacked=true),
    ],
    [
      graph('Outside of pools and regions', 'What no part of the server explains.', 'bytes', [
        target('instance:mysql_memdiag_unexplained_bytes:sum{%s}' % one, '{{instance}}'),
      ]),
      graph('Survivors', 'While memdiag_scope_survivors is ON.', 'bytes', [
        target('mysql_memdiag_survivors_bytes{%s}' % c.s, '{{instance}} {{pool}} {{scope}}'),
      ]),
    ],
    [
      graph('Purged', 'Bytes that purges released each second.', 'Bps', [
        target('rate(mysql_memdiag_pool_purged_bytes_total{%s}[$__rate_interval])' % c.s, '{{instance}} {{pool}}'),
      ]),
      graph('Needed again', 'Purged bytes that were needed within a second.', 'Bps', [
        target('rate(mysql_memdiag_pool_refaulted_bytes_total{%s}[$__rate_interval])' % c.s, '{{instance}} {{pool}}'),
      ]),
    ],
    [
      graph('Waiting for memory', 'Part of the time in which some task waited.', 'percentunit', [
        target('rate(mysql_memdiag_host_stalled_seconds_total{%s}[$__rate_interval])' % c.s, '{{instance}}'),
      ]),
      graph('Findings', 'SELECT * FROM information_schema.memdiag_advice says more.', 'none', [
        target('mysql_memdiag_advice_findings{%s}' % c.s, '{{instance}} {{severity}} {{subsystem}} {{verdict}}'),
      ]),
    ],
  ],

  grafanaDashboards+:: {
    'memdiag.json': {
      uid: 'mysql-memdiag',
      title: 'MySQL memory',
      tags: c.memdiagTags,
      schemaVersion: 36,
      timezone: 'browser',
      refresh: '30s',
      time: { from: 'now-3h', to: 'now' },
      templating: {
        list: [
          { name: 'datasource', type: 'datasource', query: 'prometheus' },
          {
            name: 'instance',
            type: 'query',
            datasource: { type: 'prometheus', uid: '$datasource' },
            query: 'label_values(mysql_memdiag_pool_live_bytes{%s}, instance)' % c.memdiagSelector,
            refresh: 2,
            includeAll: true,
            multi: true,
          },
        ],
      },
      panels: placed(rows),
    },
  },
}
