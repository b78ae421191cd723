#include "plugin/memdiag/server/threads/ceiling_state.h"

#include "mutex_lock.h"
#include "sql/sql_class.h"

namespace memdiag::ceiling {

constinit std::atomic<bool> started{false};
constinit std::atomic<Target::Mode> mode{Target::off};
constinit std::atomic<uint64_t> wanted_bytes{0};
unsigned wait_ms = 50'000;

State &state() {
  static State *const instance = new State;
  return *instance;
}

void State::list(Running *mine) {
  mine->number = ++last_number;
  mine->session_id = mine->thd->thread_id();
  running.append(mine);
  mine->listed = true;
}

void note(const Done &done) {
  MUTEX_LOCK(locked, &state().mutex);
  state().log.add(done);
}

Done begun(Action action) {
  return {clock_us(CLOCK_REALTIME), action, acts(),         0, {}, 0, 0,
          account.left_bytes(),     0,      account.level()};
}

void finish(Done *done, uint64_t since_us, uint64_t bytes) {
  done->bytes = bytes;
  done->duration_us = monotonic_us() - since_us;
  done->left_after_bytes = account.left_bytes();
}

bool kill(Running *running) {
  THD *const thd = running->thd;
  if (mysql_mutex_trylock(&thd->LOCK_thd_data) != 0) return false;
  if (thd->killed == THD::NOT_KILLED) thd->awake(THD::KILL_QUERY);
  mysql_mutex_unlock(&thd->LOCK_thd_data);
  return true;
}

}  // namespace memdiag::ceiling
