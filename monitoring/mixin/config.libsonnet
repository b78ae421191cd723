// Settings that a user may want to change. Sizes are those of the server's own advice
// (plugin/memdiag/advice), so that an alert and MEMDIAG_ADVICE agree.
{
  _config+:: {
    // Further labels of the series that the rules read, such as 'cluster="a"'. The names of the
    // metrics are enough: an exporter's job has a name of the user's, and OpenTelemetry's is
    // mysql/mysqld.
    memdiagSelector: '',
    // The jobs of exporters. An exporter that reads nothing has no metric of ours.
    memdiagExporterSelector: 'job=~"mysql-memdiag.*"',

    // A smaller amount in one place is no reason to act.
    memdiagWorthBytes: 64 * 1024 * 1024,
    // A large part of the server's memory.
    memdiagLargeRatio: 0.1,
    // A heap of mixed block sizes usually wastes a quarter.
    memdiagFragmentedRatio: 0.33,
    // The last tenth of a limit is the room that a burst needs.
    memdiagNearLimitRatio: 0.9,
    // The share of time in which some task waits for memory.
    memdiagStalledRatio: 0.1,
    // The server waits up to 16 times its usual pause.
    memdiagBackoff: 4,
    memdiagSoonSeconds: 3600,
    memdiagLaterSeconds: 86400,
    // The end of the last run is news for so long.
    memdiagLastRunSeconds: 86400,
  },
}
