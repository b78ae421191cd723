// Recording rules: the sums that alerts and dashboard have in common.
{
  local selector = $._config.memdiagSelector,
  local ledger(where) =
    'sum without (component, name, state) (mysql_memdiag_ledger_resident_bytes{%s%s})'
    % [selector, if where == '' then '' else ', ' + where],
  local of_pools(where) =
    'sum without (component, name, state) (label_replace(mysql_memdiag_ledger_resident_bytes{%s, component="pool"%s}, "pool", "$1", "name", "(.*)"))'
    % [selector, if where == '' then '' else ', ' + where],

  prometheusRules+:: {
    groups+: [
      {
        name: 'memdiag_rules',
        rules: [
          { record: 'instance:mysql_memdiag_resident_bytes:sum', expr: ledger('') },
          {
            record: 'instance:mysql_memdiag_beside_buffer_pool_bytes:sum',
            expr: ledger('component!="buffer_pool"'),
          },
          {
            record: 'instance:mysql_memdiag_beside_buffer_pool_bytes:deriv5m',
            expr: 'deriv(instance:mysql_memdiag_beside_buffer_pool_bytes:sum[5m])',
          },
          {
            record: 'instance:mysql_memdiag_beside_buffer_pool_bytes:deriv20m',
            expr: 'deriv(instance:mysql_memdiag_beside_buffer_pool_bytes:sum[20m])',
          },
          {
            record: 'instance:mysql_memdiag_unused_bytes:sum',
            expr: ledger('component="pool", state=~"dirty|muzzy"'),
          },
          {
            // Memory that belongs to no pool and no region.
            record: 'instance:mysql_memdiag_unexplained_bytes:sum',
            expr: ledger('component=~"anonymous|heap|unexplained"'),
          },
          {
            record: 'instance_component:mysql_memdiag_resident_bytes:sum',
            expr: 'sum without (name, state) (mysql_memdiag_ledger_resident_bytes{%s})' % selector,
          },
          { record: 'instance_pool:mysql_memdiag_resident_bytes:sum', expr: of_pools('') },
          {
            record: 'instance_pool:mysql_memdiag_unused_bytes:sum',
            expr: of_pools('state=~"dirty|muzzy"'),
          },
          {
            record: 'instance_pool:mysql_memdiag_fragmentation_bytes:sum',
            expr: of_pools('state="fragmentation"'),
          },
          {
            record: 'instance_pool:mysql_memdiag_fragmentation:ratio',
            expr: |||
              instance_pool:mysql_memdiag_fragmentation_bytes:sum
              / (%s > 0)
            ||| % of_pools('state=~"live|fragmentation"'),
          },
          {
            // The control group's limit; without one, the machine's.
            record: 'instance:mysql_memdiag_limit_used:ratio',
            expr: |||
              1 - mysql_memdiag_host_room_bytes{%(s)s} / mysql_memdiag_host_limit_bytes{%(s)s}
              or
              1 - mysql_memdiag_host_available_bytes{%(s)s} / mysql_memdiag_host_memory_bytes{%(s)s}
            ||| % { s: selector },
          },
        ],
      },
    ],
  },
}
