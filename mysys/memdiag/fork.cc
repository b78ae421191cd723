/*
  fork() holds every mutex of the layer, so that the child finds none of them
  locked by a thread that it does not have. This list has them all, in the order
  in which they nest: a mutex that is held while another is taken comes first.
  Those of a Worker (base/worker.h) are left out: its thread is not in the
  child, and the server starts workers after the fork of --daemonize.
*/

#include <pthread.h>

#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/ceiling/loose_blocks.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/purging/purge.h"
#include "mysys/memdiag/purging/purge_log.h"
#include "mysys/memdiag/routes/routes.h"

namespace memdiag {
namespace {

void prepare() {
  profiling::hold();
  routes::hold();
  policies::hold();
  purging::hold_purges();
  purge_log::hold();
  pools::hold_arenas();
  pools::hold_caches();
  // A thread may take these while it has a shard.
  sessions::hold_threads();
  sessions::hold_digests();
  scopes::hold();
  regions::hold();
  // malloc() takes it.
  ceiling::rounds.hold();
  // So does a pool.
  ceiling::loose_blocks.hold();
}

void let_go(bool in_child) {
  ceiling::loose_blocks.let_go();
  ceiling::rounds.let_go();
  regions::let_go(in_child);
  scopes::let_go();
  sessions::let_go_of_digests();
  sessions::let_go_of_threads(in_child);
  pools::let_go_of_caches(in_child);
  pools::let_go_of_arenas();
  purge_log::let_go();
  purging::let_go_of_purges();
  policies::let_go();
  routes::let_go();
  profiling::let_go(in_child);
}

[[gnu::constructor]] void register_handlers() {
  // jemalloc registers its own handlers when it is first used. Handlers that
  // are registered later run earlier, and these take jemalloc's mutexes.
  (void)mallctl::refresh();
  (void)pthread_atfork(prepare, [] { let_go(false); }, [] { let_go(true); });
}

}  // namespace
}  // namespace memdiag
