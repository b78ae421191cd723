#include "plugin/memdiag/server/tables/status_server.h"

#include <mysql/status_var.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "plugin/memdiag/tables/status_variables.h"
#include "sql/sql_class.h"

namespace memdiag::status_server {
namespace {

using Clock = std::chrono::steady_clock;
/** Longer than any SHOW evaluates its variables. */
constexpr unsigned max_statement_age_ms = 1000;

using Values = std::array<Reading, status_variables.size()>;

struct Cached {
  std::optional<Values> values;
  Clock::time_point taken_at;

  bool is_younger_than(unsigned ms) const {
    return values && Clock::now() - taken_at < std::chrono::milliseconds(ms);
  }
};

/** SHOW GLOBAL STATUS holds LOCK_status, which each disconnect needs. It
therefore does not wait for a thread that is taking a snapshot with details: it
shows the last one, which the sampler keeps young. */
Values take_values() {
  Values values{};
  try {
    const std::optional<Snapshot> taken = try_take_snapshot();
    const std::shared_ptr<const Snapshot> last =
        taken ? nullptr : last_snapshot();
    const Snapshot *const snapshot = taken ? &*taken : last.get();
    for (size_t i = 0; snapshot != nullptr && i < values.size(); ++i)
      values[i] = status_variables[i].value(*snapshot);
  } catch (const std::bad_alloc &) {
    values.fill(std::nullopt);
  }
  return values;
}

/** The values that all sessions share. */
Cached shared_values() {
  static std::mutex mutex;
  static Cached shared;
  const std::lock_guard<std::mutex> guard(mutex);
  if (!shared.is_younger_than(max_age_ms)) {
    shared.values = take_values();
    shared.taken_at = Clock::now();
  }
  return shared;
}

/** The values for a statement: what its first variable was taken from, so that
they are of one moment even if the shared ones expire half-way. */
const Values &values_for(THD *thd) {
  thread_local Cached cached;
  thread_local query_id_t taken_for;
  const query_id_t query_id = thd == nullptr ? 0 : thd->query_id;
  // A thread without statements has one id for ever: hence the age.
  if (taken_for != query_id || !cached.is_younger_than(max_statement_age_ms)) {
    cached = shared_values();
    taken_for = query_id;
  }
  return *cached.values;
}

template <size_t i>
int show(THD *thd, SHOW_VAR *variable, char *buffer) {
  const Reading value = values_for(thd)[i];
  variable->value = buffer;
  // SHOW_UNDEF is shown as an empty text.
  variable->type = value ? SHOW_LONGLONG : SHOW_UNDEF;
  const uint64_t number = value.value_or(0);
  memcpy(buffer, &number, sizeof number);
  return 0;
}

template <size_t... i>
auto make_show_variables(std::index_sequence<i...>) {
  return std::array<SHOW_VAR, sizeof...(i) + 1>{
      {{status_variables[i].name, reinterpret_cast<char *>(show<i>), SHOW_FUNC,
        SHOW_SCOPE_GLOBAL}...,
       {nullptr, nullptr, SHOW_UNDEF, SHOW_SCOPE_UNDEF}}};
}

}  // namespace

SHOW_VAR *show_variables() {
  static auto variables =
      make_show_variables(std::make_index_sequence<status_variables.size()>{});
  return variables.data();
}

}  // namespace memdiag::status_server
