// Recording rules: sums for alerts and for dashboards of your own.
{
  local where(matchers) =
    local all = std.filter(function(one) one != '', [$._config.memdiagSelector] + matchers);
    if all == [] then '' else '{%s}' % std.join(', ', all),
  local ledger(matchers) =
    'sum without (component, name, state) (mysql_memdiag_ledger_resident_bytes%s)' % where(matchers),
  local of_pools(state) =
    'sum without (component, name, state) (label_replace(mysql_memdiag_ledger_resident_bytes%s, "pool", "$1", "name", "(.*)"))'
    % where(['component="pool"', state]),

  prometheusRules+:: {
    groups+: [
      {
        name: 'memdiag_rules',
        rules: [
          { record: 'instance:mysql_memdiag_resident_bytes:sum', expr: ledger([]) },
          {
            record: 'instance:mysql_memdiag_beside_buffer_pool_bytes:sum',
            expr: ledger(['component!="buffer_pool"']),
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
            expr: ledger(['component="pool"', 'state=~"dirty|muzzy"']),
          },
          {
            // Memory that belongs to no pool and no region.
            record: 'instance:mysql_memdiag_unexplained_bytes:sum',
            expr: ledger(['component=~"anonymous|heap|unexplained"']),
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
            // The machine and the control group with the least room each end a server. A meter of
            // an older server does not know that group's limit.
            record: 'instance:mysql_memdiag_limit_used:ratio',
            expr: |||
              label_replace(
                1 - mysql_memdiag_host_room_bytes%(s)s
                  / (mysql_memdiag_host_room_limit_bytes%(s)s or mysql_memdiag_host_limit_bytes%(s)s),
                "of", "cgroup", "", "")
              or
              label_replace(
                1 - mysql_memdiag_host_available_bytes%(s)s / mysql_memdiag_host_memory_bytes%(s)s,
                "of", "machine", "", "")
            ||| % { s: where([]) },
          },
        ],
      },
    ],
  },
}
