/*
  Every function that patched files of upstream call: upstream/hooks.h,
  upstream/malloc_hooks.h, upstream/scope_hooks.h, upstream/thread_hooks.h,
  upstream/idle_hooks.h, upstream/interval_hooks.h and upstream/message_hooks.h
  declare them. Each hands its call on to the room that does the work. This file
  is above all rooms, and nothing calls it by any other name.
*/

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "mysys/memdiag/accounting/block_events.h"
#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/accounting/intervals.h"
#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/accounting/statement_gate.h"
#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/bound_threads.h"
#include "mysys/memdiag/pools/sharing.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "mysys/memdiag/routes/routes.h"
#include "mysys/memdiag/upstream/hooks.h"
#include "mysys/memdiag/upstream/idle_hooks.h"
#include "mysys/memdiag/upstream/interval_hooks.h"
#include "mysys/memdiag/upstream/malloc_hooks.h"
#include "mysys/memdiag/upstream/message_hooks.h"
#include "mysys/memdiag/upstream/scope_hooks.h"
#include "mysys/memdiag/upstream/thread_hooks.h"

using memdiag::Packed_tag;
using memdiag::Place;
using memdiag::Scope;
namespace block_events = memdiag::block_events;
namespace profiling = memdiag::profiling;
namespace regions = memdiag::regions;
namespace routes = memdiag::routes;
namespace scopes = memdiag::scopes;
namespace sessions = memdiag::sessions;
namespace statement_gate = memdiag::statement_gate;

// Blocks and their routes.

uint32_t memdiag_note_instrument(const char *category, const char *name,
                                 uint32_t key) {
  // INSTALL PLUGIN registers some. A new connection may need the mutex.
  const memdiag::ceiling::No_wait no_wait;
  return routes::note_instrument(category, name, key);
}

Packed_tag memdiag_tag_of_place(uint16_t place) {
  return routes::tag_of_place(static_cast<Place>(place));
}

void *memdiag_allocate(Packed_tag tag, size_t size, bool zero) {
  return routes::allocate(tag, size, zero);
}

void memdiag_free(Packed_tag tag, void *block, size_t size) {
  routes::free(tag, block, size);
}

bool memdiag_error_is_raised() { return memdiag::ceiling::error_is_raised(); }

bool memdiag_is_same_size_class(size_t size, size_t other) {
  return memdiag::placed::usable(size) == memdiag::placed::usable(other);
}

void *memdiag_perfschema_allocate(size_t size, size_t alignment, bool zero) {
  // A size class that is a multiple of a cache line is aligned to one: jemalloc
  // lays blocks of a class side by side from the begin of a page.
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  // Performance Schema allocates before instruments register. The plugin
  // reports wrong options when it starts.
  (void)routes::apply_options();
  const Packed_tag tag = routes::tag_of_place(Place::perfschema);
  void *block = routes::allocate(tag, rounded, zero);
  if (block == nullptr || reinterpret_cast<uintptr_t>(block) % alignment == 0)
    return block;
  // Another malloc() than jemalloc's.
  routes::free(tag, block, rounded);
  if (posix_memalign(&block, alignment, rounded) != 0) return nullptr;
  if (zero) memset(block, 0, rounded);
  return block;
}

void memdiag_perfschema_free(void *block) {
  routes::free_of_place(Place::perfschema, block);
}

void *memdiag_place_allocate(uint16_t place, size_t size) {
  return routes::allocate(memdiag_tag_of_place(place), size);
}

void memdiag_place_free(uint16_t place, void *block) {
  routes::free_of_place(static_cast<Place>(place), block);
}

// Memory without an allocator.

void memdiag_region_add(uint32_t key, void *address, size_t bytes,
                        bool reserved) {
  regions::add(regions::kind_of(routes::name_of_key(key)), address, bytes,
               reserved ? regions::Pages::reserved : regions::Pages::ordinary);
}

void memdiag_region_remove(void *address) { regions::remove(address); }

void memdiag_thread_begins() { regions::add_stack_of_thread(); }

// Connections, sessions, statements.

void memdiag_connection_thread() {
  memdiag::ceiling::before_connection();
  if (memdiag::pools::shares_one_arena())
    memdiag::pools::share_one_arena(false);
  if (!routes::is_disabled(memdiag::Pool::connection))
    memdiag::pools::bind_thread(memdiag::Pool::connection);
}

void memdiag_group_replication_thread() {
  if (!routes::is_disabled(memdiag::Pool::group_replication))
    memdiag::pools::bind_thread(memdiag::Pool::group_replication);
}

void *memdiag_group_replication_allocate(size_t size, bool zero) {
  constexpr auto pool = memdiag::Pool::group_replication;
  return routes::is_disabled(pool)
             ? memdiag::placed::general_allocate(size, zero)
             : memdiag::pools::allocate_as_bound(pool, size, zero);
}

void memdiag_group_replication_free(void *block) {
  memdiag::pools::free_as_bound(memdiag::Pool::group_replication, block);
}

int memdiag_client_is_idle() {
  const int error = errno;
  memdiag::ceiling::client_sleeps();
  const int calls = ask_owner(&memdiag::ceiling::Owner::client_is_idle, -1);
  memdiag::pools::suspend_cache();
  regions::give_back_unused_stack();
  errno = error;
  return calls;
}

void memdiag_client_is_back() {
  const int error = errno;
  memdiag::ceiling::client_is_back();
  memdiag::pools::resume_cache();
  errno = error;
}

void memdiag_session_began() {
  memdiag::ceiling::session_begins();
  if (block_events::is_on(block_events::sessions)) sessions::session_began();
  if (!profiling::is_on()) return;
  // Blocks that connecting took are not the first statement's.
  constexpr profiling::Digest none{};
  (void)profiling::statement_ended(none.data());
}

bool memdiag_gate_refuses(void *session, const unsigned char *digest) {
  return statement_gate::refuses(session, digest);
}

bool memdiag_statement_ends() { return memdiag::ceiling::ends_now(); }

bool memdiag_commit_is_small(int64_t bytes) {
  return memdiag::ceiling::commit_is_small(bytes);
}

bool memdiag_refuses_commit(int64_t bytes) {
  return !memdiag::ceiling::room_for_commit(bytes);
}

void memdiag_statement_ended(bool in_transaction, unsigned char *digest) {
  // XA COMMIT and XA ROLLBACK of one that is prepared are seen here alone.
  if (!in_transaction) memdiag::ceiling::transaction_ended();
  if (!block_events::any_is_on() && !profiling::is_on()) {
    (void)statement_gate::statement_ended();
    return;
  }
  memdiag_part_ended(digest);
  if (!block_events::is_on(block_events::survivors)) return;
  scopes::ended(Scope::statement);
  if (!in_transaction) scopes::ended(Scope::transaction);
}

void memdiag_part_ended(unsigned char *digest) {
  if (!statement_gate::statement_ended())
    memset(digest, 0, sizeof(profiling::Digest));
  profiling::Site_of_run top{};
  if (profiling::is_on()) top = profiling::statement_ended(digest);
  if (block_events::is_on(block_events::sessions))
    sessions::statement_ended(digest, {top.run, top.site});
  // A command without a digest would pass this one on.
  else if (profiling::is_on())
    memset(digest, 0, sizeof(profiling::Digest));
}

void memdiag_session_ended() {
  (void)memdiag::ceiling::end();
  // The session's own has ended. That of a plugin's session may have not.
  memdiag::ceiling::transaction_ended();
  if (block_events::is_on(block_events::sessions)) sessions::session_ended();
  if (!block_events::is_on(block_events::survivors)) return;
  for (const Scope scope :
       {Scope::statement, Scope::transaction, Scope::session})
    scopes::ended(scope);
}

bool memdiag_message_comes(size_t size, bool connects) {
  return memdiag::ceiling::message_comes(size, connects);
}

bool memdiag_message_goes_on() { return memdiag::ceiling::message_goes_on(); }

void memdiag_message_ended() { memdiag::ceiling::message_ended(); }

bool memdiag_value_is_refused(size_t size) {
  return !memdiag::ceiling::value_comes(size);
}

void memdiag_interval_begins(memdiag::Interval *interval) {
  sessions::interval_begins(interval);
}

bool memdiag_interval_so_far(const memdiag::Interval *interval,
                             memdiag::Interval_memory *memory) {
  return sessions::interval_so_far(*interval, memory);
}

void memdiag_interval_ends(const memdiag::Interval *interval) {
  sessions::interval_ends(*interval);
}
