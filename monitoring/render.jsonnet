// Makes the exporter's configuration from queries.libsonnet; monitoring/render.py runs it.

local mixin = import 'mixin/mixin.libsonnet';
local queries = import 'queries.libsonnet';

local prefix = 'mysql_memdiag_';
local lines(statement) = std.stripChars(statement, '\n') + '\n';

// Debian's prometheus-sql-exporter. It names a metric sql_<statement> and names the column in a
// label. prometheus/prometheus.yml joins both, so the names are the same.
local job(name, interval, set) = {
  name: name,
  interval: interval,
  connections: [
    'mysql://memdiag_exporter:CHANGE-ME@tcp(127.0.0.1:3306)/information_schema'
    + '?time_zone=%27%2B00%3A00%27&sql_select_limit=18446744073709551615&sql_big_selects=1',
  ],
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
  'debian/prometheus-sql-exporter.yml': yaml({
    jobs: [job('memdiag', '10s', queries.fast), job('memdiag_slow', '15s', queries.slow)],
  }),
  'prometheus/memdiag_rules.yml': yaml(mixin.prometheusRules),
  'prometheus/memdiag_alerts.yml': yaml(mixin.prometheusAlerts),
  'metrics.txt': std.lines([
    prefix + query + '_' + value.column + ' ' + value.type
    for set in std.objectValues(queries)
    for query in std.objectFields(set)
    for value in set[query].values
  ]),
}
