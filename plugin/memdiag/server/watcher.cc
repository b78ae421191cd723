#include "plugin/memdiag/server/watcher.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <new>
#include <optional>
#include <string>

#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/server/error_log.h"
#include "mysys/memdiag/clock.h"
#include "storage/innobase/memdiag_innodb.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/purging/purge.h"
#include "mysys/memdiag/purging/purge_log.h"
#include "mysys/memdiag/purging/worker.h"
#include "my_thread.h"
#include "plugin/memdiag/host/pressure.h"
#include "plugin/memdiag/advice/relief.h"
#include "sql/mysqld.h"
#include "sql/mysqld_cs.h"
#include "sql/server_component/mysql_system_variable_update_imp.h"
#include "sql/sql_base.h"
#include "sql_string.h"

namespace memdiag::watcher {

unsigned long mode = off;
unsigned limit_percent = 90;
unsigned stall_percent = 10;
unsigned long long buffer_pool_min_bytes = 0;

namespace {

using purge_log::Action;
using relief::Event;
using relief::Step;

constexpr uint64_t look_ms = 200;
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

std::string text_of(const pressure::Figures &figures) {
  std::string text = "memory pressure (";
  if (figures.used_bytes && figures.limit_bytes)
    text += std::to_string(*figures.used_bytes) + " of " +
            std::to_string(*figures.limit_bytes) + " bytes are used";
  if (figures.stall_percent) {
    char percent[64];
    (void)snprintf(percent, sizeof percent,
                   "%stasks waited for %.1f%% of the last second",
                   text.ends_with('(') ? "" : "; ", *figures.stall_percent);
    text += percent;
  }
  return text + ")";
}

uint64_t buffer_pool_step(const innodb::Buffer_pool_size &size) {
  const uint64_t min_bytes = value_of(buffer_pool_min_bytes);
  return min_bytes == 0
             ? 0
             : relief::buffer_pool_step(size.bytes, size.unit_bytes,
                                        std::max(min_bytes, size.min_bytes));
}

/** What there is to give back. Caches and the buffer pool count for nothing
while the server starts or shuts down. */
relief::Stock take_stock() {
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

class Watcher {
 public:
  explicit Watcher(bool acts) : m_acts(acts) {}

  bool acts() const { return m_acts; }

  void look() {
    const relief::Settings settings{value_of(limit_percent),
                                    value_of(stall_percent)};
    const uint64_t now = clock_us(CLOCK_MONOTONIC);
    const pressure::Figures figures = m_gauge.look(now, settings.limit_percent);
    if (!m_introduced) introduce();
    const bool was_in_round = m_state.in_round;
    const Event event =
        relief::heed(settings, figures, kept_bytes(), now, &m_state);
    if (m_state.in_round && !was_in_round) m_purged = {};
    switch (event) {
      case Event::none:
        return;
      case Event::ended:
        say_end();
        return;
      case Event::due:
        break;
    }
    if (m_acts)
      act(figures, now);
    else
      plan(figures, now);
  }

 private:
  void introduce() {
    m_introduced = true;
    const auto name = [](const std::string &file) {
      return file.empty() ? "nowhere" : file;
    };
    error_log::note("memory pressure is watched: use in " +
                    name(m_gauge.usage_file()) + ", stalls in " +
                    name(m_gauge.stall_file()));
  }

  /** Of the last round. */
  uint64_t kept_bytes() const {
    std::array<uint64_t, pool_count> allocated_bytes;
    for (size_t i = 0; i < pool_count; ++i)
      allocated_bytes[i] = pools::allocated_bytes(static_cast<Pool>(i));
    return relief::kept_bytes(m_purged, allocated_bytes);
  }

  void act(const pressure::Figures &figures, uint64_t now) {
    const Step step = relief::next_step(take_stock(), now, &m_state);
    std::string what;
    switch (step.kind) {
      case Step::none:
        // Of a round that had nothing to do, once.
        if (m_spoken) return;
        what = "nothing is worth giving back";
        break;
      case Step::purge:
        what = purge(step.pool);
        break;
      case Step::write_full_text_caches:
        what = logged(step.pool, Action::write_full_text,
                      [] { return write_full_text_caches(); });
        break;
      case Step::close_unused_tables:
        what = logged(step.pool, Action::close_tables,
                      [] { return close_unused_tables(); });
        break;
      case Step::shrink_buffer_pool:
        what = logged(step.pool, Action::shrink_buffer_pool,
                      [&step] { return shrink_buffer_pool(step.bytes); });
        break;
    }
    if (step.kind != Step::none) m_gauge.forget_stalls();
    say(figures, what);
  }

  /** Say what act() would do. */
  void plan(const pressure::Figures &figures, uint64_t now) {
    relief::Stock stock = take_stock();
    std::string what;
    for (;;) {
      const Step step = relief::next_step(stock, now, &m_state);
      if (step.kind == Step::none) break;
      struct Words {
        const char *verb;
        const char *what;
      };
      constexpr Words words[] = {
          {},
          {"purge pool ", " bytes unused)"},
          {"have full-text caches written, pool ", " bytes live)"},
          {"close unused tables, pool ", " bytes live)"},
          {"make the buffer pool smaller, pool ", " bytes less)"}};
      const auto [verb, unit] = words[step.kind];
      what += (what.empty() ? "would " : ", ") + std::string(verb) +
              spec_of(step.pool).name + " (" + std::to_string(step.bytes) +
              unit;
      if (step.kind == Step::purge)
        stock.dirty_bytes[static_cast<size_t>(step.pool)] = 0;
    }
    relief::rest_long(&m_state);
    say(figures, what.empty() ? "nothing is worth giving back" : what);
  }

  std::string purge(Pool pool) {
    const purging::Receipt receipt = purging::purge(pool, Purge_reason::pressure);
    relief::Purged &purged = m_purged[static_cast<size_t>(pool)];
    purged.released_bytes += receipt.released_bytes();
    purged.allocated_bytes = pools::allocated_bytes(pool);
    m_released_bytes += receipt.released_bytes();
    return std::string("purged pool ") + spec_of(pool).name + ", " +
           std::to_string(receipt.released_bytes()) + " bytes given back in " +
           std::to_string(receipt.duration_us) + " us";
  }

  /** What a step other than a purge did. */
  struct Done {
    /** Empty: nothing could be done. */
    std::optional<uint64_t> freed_bytes;
    std::string what;
  };

  /** Takes a step, and notes it among the purges. @return what it did */
  template <typename Do_it>
  static std::string logged(Pool pool, Action action, Do_it do_it) {
    const uint64_t began_us = clock_us(CLOCK_MONOTONIC);
    Done done = do_it();
    purge_log::Purge entry{};
    entry.time_us = clock_us(CLOCK_REALTIME);
    entry.pool = pool;
    entry.reason = Purge_reason::pressure;
    entry.action = action;
    entry.receipt.duration_us = clock_us(CLOCK_MONOTONIC) - began_us;
    entry.receipt.error = done.freed_bytes ? 0 : EBUSY;
    entry.freed_bytes = done.freed_bytes;
    purge_log::add(entry);
    return std::move(done.what);
  }

  static Done write_full_text_caches() {
    const auto bytes = innodb::write_full_text_caches(worth_writing_bytes);
    if (!bytes)
      return {{}, "InnoDB could not be asked to write full-text caches"};
    return {bytes, "InnoDB was asked to write full-text caches of " +
                       std::to_string(*bytes) + " bytes"};
  }

  static Done close_unused_tables() {
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

  static Done shrink_buffer_pool(uint64_t bytes) {
    const auto size = innodb::buffer_pool_size();
    if (!size || bytes >= size->bytes)
      return {{}, "InnoDB is changing the size of its buffer pool"};
    const uint64_t wanted = size->bytes - bytes;
    static constexpr char variable[] = "innodb_buffer_pool_size";
    String name(variable, sizeof variable - 1, system_charset_info);
    // Without a session: as if root did it, in a session that ends with it.
    if (mysql_system_variable_update_imp::set_unsigned(
            nullptr, "GLOBAL", nullptr, reinterpret_cast<my_h_string>(&name),
            wanted))
      return {{}, "the buffer pool could not be made smaller"};
    // It refuses with a warning. Not known: it has begun.
    if (const auto now = innodb::buffer_pool_size();
        now && now->bytes != wanted)
      return {{}, "InnoDB did not make its buffer pool smaller"};
    const std::string from = std::to_string(size->bytes);
    return {bytes, "InnoDB was asked to make the buffer pool smaller, from " +
                       from + " to " + std::to_string(wanted) +
                       " bytes; SET GLOBAL " + variable + " = " + from +
                       " gives it back"};
  }

  void say(const pressure::Figures &figures, const std::string &what) {
    m_spoken = true;
    error_log::note(text_of(figures) + ": " + what);
  }

  void say_end() {
    if (m_spoken)
      error_log::note("memory pressure has ended; " +
                      std::to_string(m_released_bytes) +
                      " bytes were given back meanwhile");
    m_spoken = false;
    m_released_bytes = 0;
  }

  const bool m_acts;
  pressure::Gauge m_gauge;
  relief::State m_state;
  /** By the last round. */
  std::array<relief::Purged, pool_count> m_purged{};
  /** Since the pressure began. */
  uint64_t m_released_bytes{0};
  bool m_spoken{false};
  bool m_introduced{false};
};

void run(Worker *self) {
  my_thread_init();
  std::optional<Watcher> watcher;
  unsigned long current;
  do {
    current = value_of(mode);
    if (current == off) {
      watcher.reset();
      continue;
    }
    try {
      if (!watcher || watcher->acts() != (current == on))
        watcher.emplace(current == on);
      watcher->look();
    } catch (const std::bad_alloc &) {
      // Next time.
    }
  } while (self->wait_ms(current == off ? 0 : look_ms));
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
  // Whoever switches it off may hold locks that closing a table waits for: the
  // thread sleeps on instead of being waited for.
  if (value_of(mode) != off) {
    const int error = worker().start("memdiag_watcher", run);
    if (error != 0 && error != EALREADY) return error;
  }
  worker().wake();
  return 0;
}

}  // namespace memdiag::watcher
