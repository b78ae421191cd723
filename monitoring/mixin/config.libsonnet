// Settings that a user may want to change. Sizes are those of the server's own advice
// (plugin/memdiag/advice/advisor.cc), so that an alert and MEMDIAG_ADVICE agree.
{
  _config+:: {
    // The series of the exporter.
    memdiagSelector: 'job=~"mysql-memdiag.*"',

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
    // Relief from pressure, and the end of the last run, are news for so long.
    memdiagRelievedSeconds: 300,
    memdiagLastRunSeconds: 86400,

    memdiagTags: ['mysql', 'memdiag'],
  },
}
