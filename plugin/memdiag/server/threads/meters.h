/*
  Registers the meter mysql.memdiag (tables/meter_list.h) with the server's
  telemetry. component_telemetry exports it by OTLP; performance_schema's
  SETUP_METERS and SETUP_METRICS show it. Without a consumer nothing is ever
  measured. Without Performance Schema nothing is registered.

  A consumer asks for one metric after the other. The first request reads all
  figures, as a SELECT from MEMDIAG_LEDGER does. Requests within the next half
  second get the same readings.

  Threads: any thread may ask, and may hold LOCK_status. No request waits. While
  another thread takes a snapshot, the previous snapshot serves. While another
  thread reads for the meter, the meter's previous readings serve, unless they
  are old. The copies of readings come from malloc(), and nothing from a pool.
  Errors: a figure that could not be read is no measurement. While the server
  starts or shuts down, there are no measurements.
*/

#ifndef MEMDIAG_METERS_H
#define MEMDIAG_METERS_H

namespace memdiag::meters {

void register_them();

/** Waits for measurements that run. None begins afterwards. */
void unregister_them();

}  // namespace memdiag::meters

#endif  // MEMDIAG_METERS_H
