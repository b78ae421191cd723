/*
  The layer's own thread: watches the pools, dates their peaks, and gives a
  pool's unused pages back once it has fallen quiet (Policy::quiet_ms), or has
  more of them than it may (Policy::dirty_limit), so that no query pays for it.
  It sees what purging costs: where the pages are taken again at once, it waits
  longer before the next purge.

  Every tick it reads a few counters of the layer; jemalloc is asked only when
  a pool is purged. A pool that fell quiet is purged once and then left alone
  until a megabyte has come and gone in it again. start() and stop() are called
  by the plugin, as Worker says.
*/

#ifndef MEMDIAG_PURGER_H
#define MEMDIAG_PURGER_H

#include <cstdint>

namespace memdiag::purger {

/** How often the pools are looked at. */
constexpr uint32_t tick_ms = 100;

/** A pool that moved no more than this between two looks is quiet: the server's
background threads never rest altogether. What so little can leave behind is
left to decay. */
constexpr uint64_t quiet_bytes = 64 << 10;

/** @return as Worker::start() */
int start();
void stop();

}  // namespace memdiag::purger

#endif  // MEMDIAG_PURGER_H
