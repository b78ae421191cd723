#include "plugin/memdiag/server/threads/watcher.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <optional>
#include <string>

#include "my_thread.h"
#include "mysys/memdiag/base/worker.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/host/reserved_pages.h"
#include "plugin/memdiag/pressure/pressure_response.h"
#include "plugin/memdiag/pressure/relief.h"
#include "plugin/memdiag/server/bridge/error_log.h"
#include "plugin/memdiag/server/threads/admission.h"
#include "sql/mysqld.h"
#include "sql/mysqld_cs.h"
#include "sql/server_component/mysql_system_variable_update_imp.h"
#include "sql/sql_base.h"
#include "sql_string.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag::watcher {

unsigned long mode = off;
unsigned limit_percent = 90;
unsigned stall_percent = 10;
unsigned long long buffer_pool_min_bytes = 0;

namespace {

constexpr uint64_t tick_ms = 200;
/** A table's full-text cache with less is not worth writing. InnoDB itself
writes one that grows by a tenth of innodb_ft_cache_size, so that it is many
tables rather than large ones that take memory. */
constexpr uint64_t worth_writing_bytes = 64 << 10;

/** Never destroyed: see Worker. */
Worker &worker() {
  static Worker *const instance = new Worker;
  return *instance;
}

constinit std::atomic<bool> started{false};

template <typename T>
T value_of(const T &variable) {
  return __atomic_load_n(&variable, __ATOMIC_RELAXED);
}

class Server final : public Server_memory {
 public:
  bool statements_wait() override { return admission::statement_waits_long(); }

  /** Caches and the buffer pool are left alone while the server starts and
  shuts down. */
  relief::Stock stock() override {
    relief::Stock stock;
    const Snapshot snapshot = take_snapshot();
    for (size_t i = 0; i < pool_count; ++i)
      stock.dirty_bytes[i] = snapshot.pools[i].dirty_bytes.value_or(0);
    if (get_server_state() == SERVER_OPERATING) {
      stock.full_text_bytes = pools::counters(Pool::fts_cache).live_bytes;
      stock.table_cache_bytes = pools::counters(Pool::table_cache).live_bytes;
      if (const auto size = innodb::buffer_pool_size())
        stock.buffer_pool_bytes = buffer_pool_step(*size);
    }
    return stock;
  }

  purging::Receipt purge(Pool pool) override {
    return purging::purge(pool, Purge_reason::pressure);
  }

  Done write_full_text_caches() override {
    const auto bytes = innodb::write_full_text_caches(worth_writing_bytes);
    if (!bytes)
      return {{}, "InnoDB could not be asked to write full-text caches"};
    return {bytes, "InnoDB was asked to write full-text caches of " +
                       std::to_string(*bytes) + " bytes"};
  }

  Done close_unused_tables() override {
    const auto live_bytes = [] {
      return pools::counters(Pool::table_cache).live_bytes;
    };
    const uint64_t before_bytes = live_bytes();
    tdc_flush_unused_tables();
    const uint64_t freed_bytes =
        before_bytes - std::min(before_bytes, live_bytes());
    return {freed_bytes, "closed unused tables, " +
                             std::to_string(freed_bytes) + " bytes freed"};
  }

  Done shrink_buffer_pool(uint64_t bytes) override {
    const auto size = innodb::buffer_pool_size();
    if (!size || bytes >= size->bytes)
      return {{}, "InnoDB is changing the size of its buffer pool"};
    const uint64_t wanted = size->bytes - bytes;
    static constexpr char variable[] = "innodb_buffer_pool_size";
    String name(variable, sizeof variable - 1, system_charset_info);
    // Without a THD the change is made as by root, in a session that ends with
    // it.
    if (mysql_system_variable_update_imp::set_unsigned(
            nullptr, "GLOBAL", nullptr, reinterpret_cast<my_h_string>(&name),
            wanted))
      return {{}, "the buffer pool could not be made smaller"};
    // InnoDB refuses with a warning only. An unknown size means that it has
    // begun.
    if (const auto now = innodb::buffer_pool_size();
        now && now->bytes != wanted)
      return {{}, "InnoDB did not make its buffer pool smaller"};
    const std::string from = std::to_string(size->bytes);
    return {bytes, "InnoDB was asked to make the buffer pool smaller, from " +
                       from + " to " + std::to_string(wanted) +
                       " bytes; SET GLOBAL " + variable + " = " + from +
                       " gives it back"};
  }

  void note(const std::string &text) override { error_log::note(text); }
  void warn(const std::string &text) override { error_log::warn(text); }

 private:
  static uint64_t buffer_pool_step(const innodb::Buffer_pool_size &size) {
    const uint64_t min_bytes = value_of(buffer_pool_min_bytes);
    return min_bytes == 0 || host::has_reserved_pages()
               ? 0
               : relief::buffer_pool_step(size.bytes, size.unit_bytes,
                                          std::max(min_bytes, size.min_bytes));
  }
};

void run(Worker *self) {
  my_thread_init();
  Server server;
  std::optional<Pressure_response> response;
  unsigned long current;
  do {
    current = value_of(mode);
    if (current == off) {
      response.reset();
      continue;
    }
    const auto wanted = current == on ? Pressure_response::Mode::act
                                      : Pressure_response::Mode::report;
    try {
      if (!response || response->mode() != wanted)
        response.emplace(wanted, &server);
      response->tick({{value_of(limit_percent), value_of(stall_percent)},
                      value_of(buffer_pool_min_bytes)});
    } catch (const std::bad_alloc &) {
      // The next tick tries again.
    }
  } while (self->wait_ms(current == off ? 0 : tick_ms));
  my_thread_end();
}

}  // namespace

int start() {
  started = true;
  return changed();
}

void stop() {
  started = false;
  worker().stop();
}

int changed() {
  if (!started) return 0;
  // The session that switches it off may hold locks that closing a table waits
  // for. So no session waits for the thread to end: it sleeps on.
  if (value_of(mode) != off) {
    const int error = worker().start("memdiag_watcher", run);
    if (error != 0 && error != EALREADY) return error;
  }
  worker().wake();
  return 0;
}

}  // namespace memdiag::watcher
