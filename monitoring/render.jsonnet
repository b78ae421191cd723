// Makes each exporter's configuration from queries.libsonnet; monitoring/render.py runs it.

local mixin = import 'mixin/mixin.libsonnet';
local queries = import 'queries.libsonnet';

local prefix = 'mysql_memdiag_';
local lines(statement) = std.stripChars(statement, '\n') + '\n';

// burningalchemist/sql_exporter. One statement gives several metrics.
local collector(name, interval, set) = {
  collector_name: name,
  min_interval: interval,
  metrics: [
    {
      metric_name: prefix + query + '_' + value.column,
      type: value.type,
      help: value.help,
      [if set[query].labels != [] then 'key_labels']: set[query].labels,
      values: [value.column],
      query_ref: query,
    }
    for query in std.objectFields(set)
    for value in set[query].values
  ],
  queries: [
    { query_name: query, query: lines(set[query].query) }
    for query in std.objectFields(set)
  ],
};

// PMM: the names of statement and column make the metric's name.
local pmm(set) = {
  [prefix + query]: {
    query: lines(set[query].query),
    metrics: [
      { [label]: { usage: 'LABEL', description: label } }
      for label in set[query].labels
    ] + [
      { [value.column]: { usage: std.asciiUpper(value.type), description: value.help } }
      for value in set[query].values
    ],
  }
  for query in std.objectFields(set)
};

// Debian's prometheus-sql-exporter. It names a metric sql_<statement> and names the column in a
// label. prometheus/prometheus.yml joins both, so the names are the same.
local job(name, interval, set) = {
  name: name,
  interval: interval,
  connections: ['mysql://memdiag_exporter:CHANGE-ME@tcp(127.0.0.1:3306)/information_schema'],
  queries: [
    {
      name: prefix + query,
      help: 'From INFORMATION_SCHEMA.MEMDIAG_*.',
      labels: set[query].labels,
      values: [value.column for value in set[query].values],
      query: lines(set[query].query),
      allow_zero_rows: true,
    }
    for query in std.objectFields(set)
  ],
};

local yaml(value) = '# Made by monitoring/render.py from its jsonnet sources. Do not edit.\n'
                    + std.manifestYamlDoc(value) + '\n';

{
  'sql_exporter/memdiag.collector.yml': yaml(collector('memdiag', '0s', queries.fast)),
  'sql_exporter/memdiag_slow.collector.yml': yaml(collector('memdiag_slow', '15s', queries.slow)),
  'pmm/medium-resolution/memdiag.yml': yaml(pmm(queries.fast)),
  'pmm/low-resolution/memdiag.yml': yaml(pmm(queries.slow)),
  'debian/prometheus-sql-exporter.yml': yaml({
    jobs: [job('memdiag', '10s', queries.fast), job('memdiag_slow', '15s', queries.slow)],
  }),
  'prometheus/memdiag_rules.yml': yaml(mixin.prometheusRules),
  'prometheus/memdiag_alerts.yml': yaml(mixin.prometheusAlerts),
  'grafana/memdiag.json': std.manifestJsonEx(mixin.grafanaDashboards['memdiag.json'], '  ') + '\n',
  'metrics.txt': std.lines([
    prefix + query + '_' + value.column + ' ' + value.type
    for set in std.objectValues(queries)
    for query in std.objectFields(set)
    for value in set[query].values
  ]),
}
