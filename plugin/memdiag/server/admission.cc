#include "plugin/memdiag/server/admission.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>

#include "my_sys.h"
#include "my_systime.h"
#include "mysql/psi/mysql_cond.h"
#include "mysql/psi/mysql_mutex.h"
#include "mysqld_error.h"
#include "mysys/memdiag/accounting/statement_gate.h"
#include "mysys/memdiag/clock.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/host/limit_reader.h"
#include "plugin/memdiag/server/error_log.h"
#include "plugin/memdiag/tables/purge_receipt.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/sql_security_ctx.h"
#include "sql/derror.h"
#include "sql/mysqld.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"

namespace memdiag::admission {

unsigned long mode = off;
unsigned wait_ms = 10'000;
unsigned long long reserve_bytes = 0;

namespace {

/** A statement that waits looks again after this time, or when another large
one has ended. */
constexpr uint64_t look_us = 100'000;
/** Less is not worth a purge. */
constexpr uint64_t worth_purging_bytes = 1 << 20;

template <typename T>
T value_of(const T &variable) {
  return __atomic_load_n(&variable, __ATOMIC_RELAXED);
}

/** Never destroyed: sessions may ask while the process exits. */
struct State {
  State() {
    mysql_mutex_init(PSI_NOT_INSTRUMENTED, &mutex, MY_MUTEX_INIT_FAST);
    mysql_cond_init(PSI_NOT_INSTRUMENTED, &changed);
  }

  /** Protects gate, log and reader. */
  mysql_mutex_t mutex;
  /** A place has become free, or the mode has changed. */
  mysql_cond_t changed;
  Gate gate;
  Log log;
  host::Limit_reader reader;
};

State &state() {
  static State *const instance = new State;
  return *instance;
}

class Locked {
 public:
  explicit Locked(State *state) : m_state(state) {
    mysql_mutex_lock(&m_state->mutex);
  }
  ~Locked() { mysql_mutex_unlock(&m_state->mutex); }
  Locked(const Locked &) = delete;
  Locked &operator=(const Locked &) = delete;

 private:
  State *const m_state;
};

constinit thread_local Place place_of_thread{};
constinit std::atomic<bool> started{false};

/** A statement that was let through has ended. */
void leave() {
  State &self = state();
  const Locked locked(&self);
  self.gate.leave(&place_of_thread);
  mysql_cond_broadcast(&self.changed);
}

bool has_grant(THD *thd, const char *privilege) {
  return thd->security_context()
      ->has_global_grant(privilege, strlen(privilege))
      .first;
}

bool is_exempt(THD *thd) {
  return thd->system_thread != NON_SYSTEM_THREAD || thd->slave_thread ||
         thd->in_sub_stmt != 0 || thd->sp_runtime_ctx != nullptr ||
         thd->security_context()->check_access(SUPER_ACL) ||
         has_grant(thd, "CONNECTION_ADMIN") ||
         has_grant(thd, admin_privilege_name);
}

/** As they are now, without a refresh of jemalloc's statistics. */
Reading dirty_bytes(Pool pool) {
  const Result<uint64_t> bytes = purging::dirty_bytes(pool);
  return bytes ? Reading(bytes.value()) : std::nullopt;
}

/** Caller holds the mutex, so that no other statement is let through until this
one has been. */
Figures take_figures(State *self, uint64_t now_us) {
  Figures figures{};
  const host::Limit_figures now = self->reader.look(now_us);
  figures.limit_bytes = host::limit_bytes(now);
  figures.room_bytes = now.room_bytes;
  figures.reserve_bytes = value_of(reserve_bytes);
  figures.unused_bytes = 0;
  for (size_t i = 0; i < pool_count; ++i)
    figures.unused_bytes =
        sum(figures.unused_bytes, dirty_bytes(static_cast<Pool>(i)));
  return figures;
}

void purge() {
  for (size_t i = 0; i < pool_count; ++i) {
    const Pool pool = static_cast<Pool>(i);
    if (dirty_bytes(pool).value_or(0) >= worth_purging_bytes)
      (void)purging::purge(pool, Purge_reason::pressure);
  }
}

PSI_stage_info waits_for_memory = {0, "Waiting for memory (memdiag_admission)",
                                   0, ""};

/** Waits until a place is free, at most until a moment. */
void wait(THD *thd, State *self, uint64_t time_us) {
  const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
  const uint64_t left_us =
      std::min(look_us, time_us > now_us ? time_us - now_us : 0);
  timespec until;
  set_timespec_nsec(&until, std::max<uint64_t>(left_us, 1) * 1000);
  PSI_stage_info old_stage;
  mysql_mutex_lock(&self->mutex);
  thd->ENTER_COND(&self->changed, &self->mutex, &waits_for_memory, &old_stage);
  thd_wait_begin(thd, THD_WAIT_SLEEP);
  if (!thd->killed)
    (void)mysql_cond_timedwait(&self->changed, &self->mutex, &until);
  thd_wait_end(thd);
  mysql_mutex_unlock(&self->mutex);
  thd->EXIT_COND(&old_stage);
}

/** A statement that asks. */
class Asking {
 public:
  Asking(THD *thd, const sessions::Digest &digest, uint64_t peak_bytes)
      : m_thd(thd),
        m_self(&state()),
        m_request{peak_bytes, clock_us(CLOCK_MONOTONIC),
                  uint64_t{value_of(wait_ms)} * 1000} {
    m_decided.digest = digest;
    m_decided.processlist_id = thd->thread_id();
    m_decided.peak_bytes = peak_bytes;
    if (thd->lex->sql_command == SQLCOM_SELECT) {
      const uint64_t limit_ms = thd->lex->max_execution_time != 0
                                    ? thd->lex->max_execution_time
                                    : thd->variables.max_execution_time;
      if (limit_ms != 0 && limit_ms * 1000 < m_request.wait_us) {
        m_request.wait_us = limit_ms * 1000;
        m_times_out = true;
      }
    }
  }

  /** @return true: an error was raised */
  bool is_refused() {
    for (;;) {
      const unsigned long now_mode = value_of(mode);
      if (now_mode == off || !started) return false;
      uint64_t now_us;
      Step step;
      {
        const Locked locked(m_self);
        now_us = clock_us(CLOCK_MONOTONIC);
        const Figures figures = take_figures(m_self, now_us);
        const uint64_t reserved = m_self->gate.reserved_bytes();
        step = now_mode == on
                   ? m_self->gate.step(m_request, figures, now_us)
                   : Gate{m_self->gate}.step(m_request, figures, now_us);
        if (step != Step::run && !m_delayed) {
          m_delayed = true;
          m_decided.figures = figures;
          m_decided.reserved_bytes = reserved;
        }
        if (step == Step::run || now_mode == watch) let_through();
      }
      m_decided.waited_us = now_us - m_request.asked_us;
      if (step == Step::run) {
        if (m_delayed) note(Decision::ran);
        return false;
      }
      if (now_mode == watch) {
        note(Decision::would_wait);
        return false;
      }
      if (m_thd->killed) {
        note(Decision::killed);
        m_thd->send_kill_message();
        return true;
      }
      switch (step) {
        case Step::purge:
          purge();
          break;
        case Step::wait:
          wait(m_thd, m_self, m_request.asked_us + m_request.wait_us);
          break;
        default:
          return refuse();
      }
    }
  }

 private:
  /** Caller holds the mutex. */
  void let_through();
  bool refuse() {
    note(m_times_out ? Decision::timed_out : Decision::refused);
    if (m_times_out)
      my_error(ER_QUERY_TIMEOUT, MYF(0));
    else
      my_printf_error(ER_CAPACITY_EXCEEDED, "%s", MYF(0),
                      refusal(m_decided).c_str());
    return true;
  }

  void note(Decision decision) {
    m_decided.decision = decision;
    m_decided.time_us = clock_us(CLOCK_REALTIME);
    std::optional<uint64_t> without_line;
    {
      const Locked locked(m_self);
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
  Request m_request;
  bool m_times_out{false};
  bool m_delayed{false};
  Decided m_decided{};
};

bool refuses(void *session, const sessions::Digest &digest) {
  auto *const thd = static_cast<THD *>(session);
  const uint64_t peak_bytes = sessions::peak_of(digest);
  if (peak_bytes < sessions::large_statement_bytes || is_exempt(thd))
    return false;
  try {
    return Asking(thd, digest, peak_bytes).is_refused();
  } catch (const std::bad_alloc &) {
    // If an error was raised, the statement ends with it.
    return thd->is_error();
  }
}

constexpr statement_gate::Gate gate{refuses, leave};

void Asking::let_through() {
  place_of_thread.peak_bytes = m_request.peak_bytes;
  m_self->gate.enter(&place_of_thread);
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
  const Locked locked(&self);
  mysql_cond_broadcast(&self.changed);
}

void stop() {
  started = false;
  changed();
}

std::vector<Row> decisions() {
  State &self = state();
  const Locked locked(&self);
  return self.log.rows();
}

}  // namespace memdiag::admission
