/*
  Registers the meter mysql.memdiag (tables/meter_list.h) with the server's
  telemetry. component_telemetry exports it by OTLP; performance_schema's
  SETUP_METERS and SETUP_METRICS show it. Without a consumer nothing is ever
  measured. Without Performance Schema nothing is registered.

  A consumer asks for one metric after the other. The first one reads, as a
  SELECT from MEMDIAG_LEDGER does, and all that follow within half a second show
  the same readings.

  Threads: measurements come from any thread, which may hold LOCK_status. None
  waits: while another thread takes a snapshot the last one serves, and while
  another thread reads for the meter its last readings do, unless they are old.
  The readings' copies come from malloc(), and nothing from a pool.
  Errors: a figure that could not be read is no measurement. Neither is anything
  while the server starts or shuts down.
*/

#ifndef MEMDIAG_METERS_H
#define MEMDIAG_METERS_H

namespace memdiag::meters {

void register_them();

/** Waits for measurements that run. None begins afterwards. */
void unregister_them();

}  // namespace memdiag::meters

#endif  // MEMDIAG_METERS_H
