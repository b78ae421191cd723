#include "plugin/memdiag/server/threads/admission.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>
#include <string>

#include "mutex_lock.h"
#include "my_sys.h"
#include "my_systime.h"
#include "mysql/psi/mysql_cond.h"
#include "mysql/psi/mysql_mutex.h"
#include "mysqld_error.h"
#include "mysys/memdiag/accounting/statement_gate.h"
#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/host/limit_reader.h"
#include "plugin/memdiag/server/bridge/error_log.h"
#include "plugin/memdiag/server/threads/exempt.h"
#include "plugin/memdiag/tables/purge_receipt.h"
#include "sql/derror.h"
#include "sql/mysqld.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"

namespace memdiag::admission {

unsigned long mode = off;
unsigned wait_ms = 10'000;
unsigned long long reserve_bytes = 0;

namespace {

template <typename T>
T value_of(const T &variable) {
  return __atomic_load_n(&variable, __ATOMIC_RELAXED);
}

/** The thread's statement that asks, waits or runs. */
struct Thread_statement : Statement {
  /** While it waits. */
  mysql_cond_t *woken = nullptr;
};

/** Caller holds the mutex. */
void wake(Statement *statement) {
  if (mysql_cond_t *const woken =
          static_cast<Thread_statement *>(statement)->woken)
    mysql_cond_signal(woken);
}

/** Never destroyed: sessions may ask while the process exits. */
struct State {
  State() {
    mysql_mutex_init(PSI_NOT_INSTRUMENTED, &mutex, MY_MUTEX_INIT_FAST);
  }

  /** Protects the others. */
  mysql_mutex_t mutex;
  Gate gate{wake};
  Log log;
  host::Limit_reader reader;
};

State &state() {
  static State *const instance = new State;
  return *instance;
}

constinit thread_local Thread_statement statement_of_thread{};
constinit std::atomic<bool> started{false};

/** A statement that was let through has ended. */
void leave() {
  State &self = state();
  MUTEX_LOCK(locked, &self.mutex);
  self.gate.leave(&statement_of_thread);
}

/** As they are now, without a refresh of jemalloc's statistics. Unknown is
0. */
std::array<uint64_t, pool_count> unused_bytes() {
  std::array<uint64_t, pool_count> bytes;
  for (size_t i = 0; i < pool_count; ++i) {
    const Result<uint64_t> dirty = purging::dirty_bytes(static_cast<Pool>(i));
    bytes[i] = dirty ? dirty.value() : 0;
  }
  return bytes;
}

/** Caller holds the mutex, so that no other statement is let through
meanwhile. */
void refresh_figures(State *self, bool with_unused, uint64_t now_us) noexcept {
  Figures figures{};
  figures.reserve_bytes = value_of(reserve_bytes);
  try {
    const host::Limit_figures now = self->reader.read(now_us);
    figures.limit_bytes = host::limit_bytes(now);
    figures.room_bytes = now.room_bytes;
  } catch (const std::bad_alloc &) {
    // An unknown figure does not make a statement wait.
  }
  if (with_unused) {
    const auto unused = unused_bytes();
    figures.unused_bytes =
        std::accumulate(unused.begin(), unused.end(), uint64_t{0});
  }
  self->gate.refresh(figures, now_us);
}

/** The pools with most unused pages first, until so much has gone back. */
void purge(uint64_t wanted_bytes) {
  auto unused = unused_bytes();
  for (uint64_t purged = 0; purged <= wanted_bytes;) {
    const auto most = std::max_element(unused.begin(), unused.end());
    if (*most < Gate::worth_purging_bytes) return;
    purged += *most;
    *most = 0;
    const auto pool = static_cast<Pool>(most - unused.begin());
    (void)purging::purge(pool, Purge_reason::pressure);
  }
}

PSI_stage_info waits_for_memory = {0, "Waiting for memory (memdiag_admission)",
                                   0, ""};

/** A statement that asks. */
class Admission_request {
 public:
  Admission_request(THD *thd, const sessions::Digest &digest,
                    const sessions::Past &past)
      : m_thd(thd), m_self(&state()) {
    m_mine = {};
    m_mine.past = past;
    m_mine.held_bytes = &sessions::held_by_statement();
    m_mine.asked_us = clock_us(CLOCK_MONOTONIC);
    m_mine.wait_us = uint64_t{value_of(wait_ms)} * 1000;
    m_decided.digest = digest;
    m_decided.processlist_id = thd->thread_id();
    if (thd->lex->sql_command == SQLCOM_SELECT) {
      const uint64_t limit_ms = thd->lex->max_execution_time != 0
                                    ? thd->lex->max_execution_time
                                    : thd->variables.max_execution_time;
      if (limit_ms != 0 && limit_ms * 1000 < m_mine.wait_us) {
        m_mine.wait_us = limit_ms * 1000;
        m_times_out = true;
      }
    }
  }

  ~Admission_request() {
    if (m_mine.woken == nullptr) return;
    m_mine.woken = nullptr;
    mysql_cond_destroy(&m_woken);
  }
  Admission_request(const Admission_request &) = delete;
  Admission_request &operator=(const Admission_request &) = delete;

  /** @return true: an error was raised */
  bool is_refused() {
    mysql_mutex_lock(&m_self->mutex);
    const std::optional<Decision> decision = decide();
    mysql_mutex_unlock(&m_self->mutex);
    if (m_mine.runs) let_through();
    if (!decision) return false;
    m_decided.waited_us = clock_us(CLOCK_MONOTONIC) - m_mine.asked_us;
    switch (*decision) {
      case Decision::killed:
        m_thd->send_kill_message();
        break;
      case Decision::timed_out:
        my_error(ER_QUERY_TIMEOUT, MYF(0));
        break;
      case Decision::refused:
        my_printf_error(ER_CAPACITY_EXCEEDED, "%s", MYF(0),
                        refusal(m_decided).c_str());
        break;
      case Decision::ran:
      case Decision::would_wait:
        break;
    }
    note(*decision);
    return !m_mine.runs;
  }

 private:
  void let_through();

  /** Caller holds the mutex, which is free while this waits and purges.
  @return empty: the statement runs at once */
  std::optional<Decision> decide() {
    uint64_t now_us = clock_us(CLOCK_MONOTONIC);
    Gate &gate = m_self->gate;
    if (gate.is_stale(now_us))
      refresh_figures(m_self, gate.somebody_waits(), now_us);
    if (value_of(mode) != on) return watch(now_us);
    if (gate.ask(&m_mine, now_us)) return std::nullopt;
    bool noted = false;
    for (;; now_us = clock_us(CLOCK_MONOTONIC)) {
      const Next next = gate.next(m_mine, now_us);
      if (next.step == Step::run)
        return noted ? std::optional(Decision::ran) : std::nullopt;
      if (next.step == Step::refresh) {
        refresh_figures(m_self, true, now_us);
        continue;
      }
      if (!noted) note_figures();
      noted = true;
      if (value_of(mode) != on || !started) {
        gate.withdraw(&m_mine);
        gate.enter(&m_mine);
        return Decision::ran;
      }
      if (m_thd->killed || next.step == Step::refuse) {
        gate.withdraw(&m_mine);
        return m_thd->killed ? Decision::killed
               : m_times_out ? Decision::timed_out
                             : Decision::refused;
      }
      if (next.step == Step::purge) {
        mysql_mutex_unlock(&m_self->mutex);
        purge(next.bytes);
        mysql_mutex_lock(&m_self->mutex);
        gate.outdate();
      } else {
        wait(next.until_us - now_us);
      }
    }
  }

  std::optional<Decision> watch(uint64_t now_us) {
    Gate &gate = m_self->gate;
    if (value_of(mode) == off || !started) return std::nullopt;
    bool fits = gate.fits(&m_mine);
    if (!fits && (gate.may_refresh(now_us) || !gate.figures().unused_bytes)) {
      refresh_figures(m_self, true, now_us);
      fits = gate.fits(&m_mine);
    }
    if (!fits) note_figures();
    gate.enter(&m_mine);
    return fits ? std::nullopt : std::optional(Decision::would_wait);
  }

  void note_figures() {
    m_decided.expected_bytes = m_mine.need_bytes;
    m_decided.figures = m_self->gate.figures();
    m_decided.reserved_bytes = m_self->gate.reserved_bytes();
  }

  /** Caller holds the mutex. */
  void wait(uint64_t us) {
    if (m_mine.woken == nullptr) {
      mysql_cond_init(PSI_NOT_INSTRUMENTED, &m_woken);
      m_mine.woken = &m_woken;
    }
    timespec until;
    set_timespec_nsec(&until, std::max<uint64_t>(us, 1) * 1000);
    PSI_stage_info old_stage;
    m_thd->ENTER_COND(&m_woken, &m_self->mutex, &waits_for_memory, &old_stage);
    thd_wait_begin(m_thd, THD_WAIT_SLEEP);
    if (!m_thd->killed)
      (void)mysql_cond_timedwait(&m_woken, &m_self->mutex, &until);
    thd_wait_end(m_thd);
    mysql_mutex_unlock(&m_self->mutex);
    m_thd->EXIT_COND(&old_stage);
    mysql_mutex_lock(&m_self->mutex);
  }

  void note(Decision decision) {
    m_decided.decision = decision;
    m_decided.time_us = clock_us(CLOCK_REALTIME);
    std::optional<uint64_t> without_line;
    {
      MUTEX_LOCK(locked, &m_self->mutex);
      without_line = m_self->log.add(m_decided, clock_us(CLOCK_MONOTONIC));
    }
    if (!without_line) return;
    const std::string text = line(m_decided, *without_line);
    if (decision == Decision::ran)
      error_log::note(text);
    else
      error_log::warn(text);
  }

  THD *const m_thd;
  State *const m_self;
  Thread_statement &m_mine{statement_of_thread};
  mysql_cond_t m_woken;
  bool m_times_out{false};
  Decided m_decided{};
};

bool refuses(void *session, const sessions::Digest &digest) {
  auto *const thd = static_cast<THD *>(session);
  // Performance Schema computed none: nothing will be known of it.
  if (digest == sessions::Digest{}) return false;
  // Another digest may have taken the mark that says so (may_be_large()).
  const sessions::Past past = sessions::past_of(digest);
  if (past.is_small() || exempt::never_waits(thd)) return false;
  try {
    return Admission_request(thd, digest, past).is_refused();
  } catch (const std::bad_alloc &) {
    // If an error was raised, the statement ends with it.
    return thd->is_error();
  }
}

constexpr statement_gate::Gate gate{refuses, leave};

void Admission_request::let_through() {
  statement_gate::note_let_through(&gate);
}

}  // namespace

void start() {
  started = true;
  changed();
}

void changed() {
  const bool asks = started && value_of(mode) != off;
  statement_gate::set(asks ? &gate : nullptr);
  State &self = state();
  MUTEX_LOCK(locked, &self.mutex);
  self.gate.outdate();
  self.gate.wake_all();
}

bool statement_waits_long() {
  State &self = state();
  MUTEX_LOCK(locked, &self.mutex);
  return self.gate.is_pressed(clock_us(CLOCK_MONOTONIC));
}

void stop() {
  started = false;
  changed();
}

std::vector<Row> decisions() {
  State &self = state();
  MUTEX_LOCK(locked, &self.mutex);
  return self.log.rows();
}

}  // namespace memdiag::admission
