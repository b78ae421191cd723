#include "mysys/memdiag/purging/policies.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <mutex>
#include <optional>

#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/lists.h"

namespace memdiag {
namespace {

struct Declared_policy {
  /** The variable, for messages. */
  const char *name;
  int64_t lowest;
  int64_t highest;
  const char *values;
};
constexpr int64_t one_hour_ms = 3600 * 1000;
constexpr std::array<Declared_policy, policy_count> declared_policies{{
    {"memdiag_quiet_ms", 0, one_hour_ms, "0 to 3600000 milliseconds"},
    {"memdiag_dirty_decay_ms", -1, one_hour_ms, "-1 to 3600000 milliseconds"},
    {"memdiag_muzzy_decay_ms", -1, one_hour_ms, "-1 to 3600000 milliseconds"},
    {"memdiag_dirty_limit", 0, INT64_MAX, "bytes, or a number with K, M or G"},
}};

constexpr const Declared_policy &spec_of(Policy policy) {
  return declared_policies[static_cast<size_t>(policy)];
}

constexpr int64_t declared_value(Policy policy, const Pool_spec &spec) {
  switch (policy) {
    case Policy::quiet_ms:
      return spec.quiet_ms;
    case Policy::dirty_decay_ms:
      return spec.dirty_decay_ms;
    case Policy::muzzy_decay_ms:
      return spec.muzzy_decay_ms;
    case Policy::dirty_limit:
    case Policy::count:
      break;
  }
  return 0;
}

using Values = std::array<int64_t, pool_count>;

constexpr Values declared_values(Policy policy) {
  Values values{};
  for (size_t i = 0; i < pool_count; ++i)
    values[i] = declared_value(policy, pool_specs[i]);
  return values;
}

/** In force, but for what was never changed: `changed` says so. */
constinit std::atomic<int64_t> in_force[policy_count][pool_count];
constinit std::atomic<bool> changed[policy_count];
/** Held while a list is taken over, and over a fork(). */
constinit std::mutex mutex;

std::optional<int64_t> parse(Policy policy, std::string_view text) {
  int64_t value = 0;
  const char *const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || text.empty()) return std::nullopt;
  int shift = 0;
  if (rest != end) {
    const std::string_view units = "KMGkmg";
    const size_t unit = units.find(*rest);
    if (policy != Policy::dirty_limit || rest + 1 != end ||
        unit == std::string_view::npos)
      return std::nullopt;
    shift = 10 * (static_cast<int>(unit % 3) + 1);
  }
  const Declared_policy &limits = spec_of(policy);
  if (value < limits.lowest || value > (limits.highest >> shift))
    return std::nullopt;
  return value << shift;
}

/** True if a pool can have a policy: bursts of malloc() are not counted. */
constexpr bool may_have(Policy policy, Pool pool) {
  return !uses_malloc(pool) || policy == Policy::dirty_decay_ms ||
         policy == Policy::muzzy_decay_ms;
}

std::string read_list(Policy policy, std::string_view list, Values *values) {
  *values = declared_values(policy);
  const std::string name = spec_of(policy).name;
  return for_each_entry(list, [&](std::string_view entry) -> std::string {
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos)
      return name + ": '" + std::string(entry) +
             "' is not of the form pool=value";
    const std::optional<int64_t> value =
        parse(policy, entry.substr(equals + 1));
    if (!value)
      return name + ": '" + std::string(entry.substr(equals + 1)) +
             "' is not a value; it takes " + spec_of(policy).values;
    const std::string_view pool_name = entry.substr(0, equals);
    if (pool_name == "all") {
      for (size_t i = 0; i < pool_count; ++i)
        if (may_have(policy, static_cast<Pool>(i))) (*values)[i] = *value;
      return "";
    }
    const std::optional<Pool> pool = find_pool(pool_name);
    if (!pool || !may_have(policy, *pool))
      return name + ": '" + std::string(pool_name) +
             "' is not a pool that it can be set for; say all, or name some "
             "of " +
             names_of_pools(
                 [policy](Pool each) { return may_have(policy, each); });
    (*values)[static_cast<size_t>(*pool)] = *value;
    return "";
  });
}

}  // namespace

namespace policies {

int64_t get(Policy policy, Pool pool) {
  const auto p = static_cast<size_t>(policy);
  if (!changed[p].load(std::memory_order_acquire))
    return declared_value(policy, memdiag::spec_of(pool));
  return in_force[p][static_cast<size_t>(pool)].load(std::memory_order_relaxed);
}

std::string check(Policy policy, std::string_view list) {
  Values values;
  return read_list(policy, list, &values);
}

std::string set(Policy policy, std::string_view list) {
  const std::lock_guard<std::mutex> guard(mutex);
  Values values;
  if (std::string wrong = read_list(policy, list, &values); !wrong.empty())
    return wrong;
  const auto p = static_cast<size_t>(policy);
  for (size_t i = 0; i < pool_count; ++i)
    in_force[p][i].store(values[i], std::memory_order_relaxed);
  changed[p].store(true, std::memory_order_release);
  if (policy == Policy::dirty_decay_ms)
    pools::set_decay_times(pools::Decay::dirty, values);
  if (policy == Policy::muzzy_decay_ms)
    pools::set_decay_times(pools::Decay::muzzy, values);
  return "";
}

const char *options[policy_count];

std::string apply_options() {
  std::string wrong;
  for (size_t p = 0; p < policy_count && wrong.empty(); ++p)
    if (options[p] != nullptr && *options[p] != '\0')
      wrong = set(static_cast<Policy>(p), options[p]);
  return wrong;
}

void hold() noexcept { mutex.lock(); }
void let_go() noexcept { mutex.unlock(); }

}  // namespace policies
}  // namespace memdiag
