/*
  The figures of the ceiling, in one list. The status variables
  Memdiag_ceiling_* and the metrics mysql.memdiag.ceiling.* come from here.

  MEMDIAG_CEILING_FIGURE(variable, unit, metric, metric_unit, kind, value,
                         meaning)

  variable     The status variable's name, behind Memdiag_ceiling_.
  unit         The variable's. A metric of microseconds is in seconds.
  metric       The metric's name, behind mysql.memdiag.ceiling.
  metric_unit  In UCUM.
  kind         Of the metric: counter or gauge.
  value        A Reading of `now`, which is Figures. Empty: the variable is
               empty, and there is no measurement. `when_off` is what the level
               is then.
*/

MEMDIAG_CEILING_FIGURE(
    level, none, "level", "{level}", gauge,
    now.on ? Reading{static_cast<uint64_t>(now.level)} : when_off,
    "The ceiling's level. 1: green, statements begin. 2: yellow, they wait. 3: "
    "red, running ones wait for memory. 0: there is no limit, or its figures "
    "cannot be read. While memdiag_memory_target is OFF, the variable is 0 and "
    "there is no metric.")
MEMDIAG_CEILING_FIGURE(target_bytes, bytes, "target", "By", gauge,
                       now.acts ? now.shown(now.marks.target_bytes)
                                : std::nullopt,
                       "The target that the ceiling keeps. None: level 0, or "
                       "memdiag_memory_target is WATCH.")
MEMDIAG_CEILING_FIGURE(left_bytes, bytes, "left", "By", gauge,
                       now.shown(now.left_bytes),
                       "Left below the target. 0 above it. None: level 0.")
MEMDIAG_CEILING_FIGURE(
    charged_bytes, bytes, "charged", "By", gauge, now.shown(now.charged_bytes),
    "Taken by threads since the kernel was read last. None: level 0.")
MEMDIAG_CEILING_FIGURE(
    promised_bytes, bytes, "promised", "By", gauge,
    now.shown(now.promised_bytes),
    "Promised to statements, and perhaps not touched yet. None: level 0.")
MEMDIAG_CEILING_FIGURE(
    parked_bytes, bytes, "parked", "By", gauge, now.parked_bytes,
    "Frames of the buffer pool whose memory the system has now.")
MEMDIAG_CEILING_FIGURE(waits, count, "waits", "{wait}", counter, now.waits,
                       "Waits for memory: of running statements, of packets "
                       "and messages before they are read, and of a replica's "
                       "reader of events.")
MEMDIAG_CEILING_FIGURE(wait_microseconds, microseconds, "wait.time", "s",
                       counter, now.wait_us, "How long these were, in all.")
MEMDIAG_CEILING_FIGURE(longest_wait_microseconds, microseconds, "longest_wait",
                       "s", gauge, now.longest_wait_us, "The longest of these.")
MEMDIAG_CEILING_FIGURE(went_on, count, "went_on", "{wait}", counter,
                       now.went_on, "Waits that ended without room.")
MEMDIAG_CEILING_FIGURE(ended, count, "ended", "{statement}", counter, now.ended,
                       "Statements that the ceiling told to end.")
MEMDIAG_CEILING_FIGURE(refused, count, "refused", "{statement}", counter,
                       now.refused,
                       "Statements that waited for room and did not begin, "
                       "blocks and values that were refused, and messages of "
                       "the X protocol that were not read.")
MEMDIAG_CEILING_FIGURE(kernel_reads, count, "kernel_reads", "{read}", counter,
                       now.kernel_reads, "Readings of the kernel.")
MEMDIAG_CEILING_FIGURE(rounds, count, "rounds", "{round}", counter, now.rounds,
                       "Rounds of the giver.")
