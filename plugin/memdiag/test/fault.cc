/*
  memdiag_fault(name, ...), the loadable function of the test suite. It is never
  installed. It reaches every seam that tests of the running server need:

    'read', source       this source of figures fails, for all sessions, until
                         the next call; '' ends it (mysys/memdiag/base/fault.h).
                         A control of jemalloc as in the list below, 'regions',
                         '/proc/meminfo', 'innodb' (its dictionary is in use),
                         'variables', or 'profile' (no memory for the profiler).
                         'end': reads that ask whether they were interrupted go
                         on until they are
    'allocate', what, kind, skip, count
                         allocations fail. what: a pool or a route as in
                         MEMDIAG_ROUTES, '' for all pools. kind: 'soft', the
                         pool has no page, in any thread; 'own', the same in
                         this session's thread; 'hard', the general allocator
                         has none either, in this session's thread; 'refused',
                         as 'hard', where the ceiling could refuse the block to
                         a statement that it has told to end just then.
                         skip: how many succeed before. count: how many fail; 0
                         ends it. Returns how many of the call before have not
                         happened; the rest of this statement may be hit already
    'fallbacks', pool    returns how many blocks the general allocator has
                         served for the pool that are not free yet
    'clock', ms          the clock of the allocator layer and of the plugin goes
                         forward by so many milliseconds; 0: it is the system's
                         again
    'group_clock', stop  the clock of read groups (plugin/memdiag/base/
                         read_group.h) stops; 0: it goes again
    'ceiling', bytes     the ceiling takes the kernel to count so many bytes as
                         kept; NULL: it asks the kernel again. Returns the
                         level, as Memdiag_ceiling_level has it
    'policies', hold     each SET of a policy (mysys/memdiag/purging/policies.h)
                         waits, until the same session calls it with 0
*/

#include <dlfcn.h>
#include <mysql/udf_registration_types.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

#include "my_sys.h"
#include "mysqld_error.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/ceiling/owner.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "mysys/memdiag/ceiling/taken.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/failures_for_test.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/purging/policies.h"
#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/server/tables/statement.h"
#include "sql/current_thd.h"
#include "sql/sql_class.h"

namespace {

namespace fault = memdiag::fault;
using memdiag::Ctl;

/** The arguments behind the name. */
class Arguments {
 public:
  explicit Arguments(const UDF_ARGS *args) : m_args(args) {}

  std::string_view text(unsigned i) const {
    if (m_args->args[i] == nullptr) return "NULL";
    return {m_args->args[i], m_args->lengths[i]};
  }
  long long number(unsigned i, long long if_null = 0) const {
    if (m_args->args[i] == nullptr) return if_null;
    long long value;
    memcpy(&value, m_args->args[i], sizeof value);
    return value;
  }

 private:
  const UDF_ARGS *const m_args;
};

/** Empty: an argument is wrong. */
using Answer = std::optional<long long>;

// --- read

struct Source {
  std::string_view name;
  fault::Point point;
  uint32_t detail;
};
constexpr Source sources[] = {
    {"", fault::Point::none, 0},
    {"stats.resident", fault::Point::control,
     static_cast<uint32_t>(Ctl::stats_resident)},
    {"stats.arenas.pdirty", fault::Point::control,
     static_cast<uint32_t>(Ctl::stats_arena_pdirty)},
    {"stats.arenas.bins.curregs", fault::Point::control,
     static_cast<uint32_t>(Ctl::stats_bin_curregs)},
    {"arenas.narenas", fault::Point::control,
     static_cast<uint32_t>(Ctl::arenas_narenas)},
    {"regions", fault::Point::pages, 0},
    {"/proc/meminfo", fault::Point::file, fault::digest_of("/proc/meminfo")},
    {"innodb", fault::Point::dictionary, 0},
    {"variables", fault::Point::variables, 0},
    {"profile", fault::Point::profile, 0},
    {"end", fault::Point::end, 0},
};

Answer read(const Arguments &arguments) {
  for (const Source &source : sources)
    if (source.name == arguments.text(1)) {
      fault::arm(source.point, source.detail);
      return 0;
    }
  return std::nullopt;
}

// --- allocate

/** @return false: there is no such pool or route */
bool find(std::string_view what, memdiag::pools::Failures *failures) {
  if (what.empty()) return true;
  failures->pool = memdiag::find_pool(what);
  if (failures->pool) return true;
  const auto routes = memdiag::routes::all();
  for (size_t i = 0; i < routes.size(); ++i)
    if (routes[i].name == what && routes[i].pool != memdiag::Pool::general) {
      failures->account = static_cast<memdiag::pools::Account>(i);
      return true;
    }
  return false;
}

/** Below a target, which the owner of the sensor needs. */
bool may_be_refused() {
  using memdiag::ceiling::Owner;
  const auto is = [](bool (*Owner::*what)()) {
    return memdiag::ceiling::ask_owner(what, false);
  };
  return !memdiag::ceiling::thread.busy && is(&Owner::is_executing) &&
         !is(&Owner::writes_for_good) && !is(&Owner::must_succeed) &&
         !is(&Owner::holds_lock);
}

void tell_to_end() {
  THD *const thd = current_thd;
  thd->killed = THD::KILL_QUERY;
  if (!thd->is_error())
    my_printf_error(ER_CAPACITY_EXCEEDED, "refused by a test",
                    MYF(ME_FATALERROR));
  memdiag::ceiling::thread.error_is_raised = true;
}

Answer allocate(const Arguments &arguments) {
  const std::string_view kind = arguments.text(2);
  memdiag::pools::Failures failures{
      .count = static_cast<uint32_t>(arguments.number(4)),
      .skip = static_cast<uint32_t>(arguments.number(3))};
  const bool refused = kind == "refused";
  if ((kind != "soft" && kind != "own" && kind != "hard" && !refused) ||
      !find(arguments.text(1), &failures))
    return std::nullopt;
  failures.hard = kind == "hard" || refused;
  if (refused) {
    failures.may_fail = may_be_refused;
    failures.fails = tell_to_end;
  }
  failures.this_thread = kind != "soft";
  return memdiag::pools::fail_allocations_for_test(failures);
}

Answer fallbacks(const Arguments &arguments) {
  const auto pool = memdiag::find_pool(arguments.text(1));
  if (!pool) return std::nullopt;
  return memdiag::pools::fallback_blocks(*pool);
}

// --- clocks, the ceiling and policies

std::atomic<uint64_t> ahead_us{0};

uint64_t advanced_clock_us(clockid_t clock) {
  return memdiag::system_clock_us(clock) + ahead_us.load();
}

/** Keeps this library in the process: threads of the server may call
advanced_clock_us() after the server has dropped the function.
@return false: it may be unloaded */
bool stay_loaded() {
  Dl_info self;
  return dladdr(&ahead_us, &self) != 0 &&
         dlopen(self.dli_fname, RTLD_NOW | RTLD_NODELETE) != nullptr;
}

Answer clock(const Arguments &arguments) {
  static const bool stays = stay_loaded();
  if (!stays) return std::nullopt;
  const long long ms = arguments.number(1);
  if (ms == 0) {
    memdiag::set_clock_for_test(nullptr);
    ahead_us = 0;
  } else {
    ahead_us += static_cast<uint64_t>(ms) * 1000;
    memdiag::set_clock_for_test(advanced_clock_us);
  }
  return ms;
}

Answer group_clock(const Arguments &arguments) {
  const long long stop = arguments.number(1);
  memdiag::statement_readings::stop_clock_for_test(stop != 0);
  return stop;
}

Answer ceiling(const Arguments &arguments) {
  auto &account = memdiag::ceiling::account;
  account.pretend_for_test(arguments.number(1, -1));
  (void)account.read(memdiag::clock_us(CLOCK_MONOTONIC));
  return static_cast<long long>(account.level());
}

Answer policies(const Arguments &arguments) {
  const long long hold = arguments.number(1);
  if (hold != 0)
    memdiag::policies::hold();
  else
    memdiag::policies::let_go();
  return hold;
}

// --- the function

constexpr Item_result text = STRING_RESULT;
constexpr Item_result number = INT_RESULT;

struct Seam {
  std::string_view name;
  Answer (*act)(const Arguments &);
  unsigned arguments;
  Item_result types[4];
};
constexpr Seam seams[] = {
    {"read", read, 1, {text}},
    {"allocate", allocate, 4, {text, text, number, number}},
    {"fallbacks", fallbacks, 1, {text}},
    {"clock", clock, 1, {number}},
    {"group_clock", group_clock, 1, {number}},
    {"ceiling", ceiling, 1, {number}},
    {"policies", policies, 1, {number}},
};

const Seam *find_seam(const UDF_ARGS *args) {
  if (args->arg_count == 0 || args->arg_type[0] != STRING_RESULT ||
      args->args[0] == nullptr)
    return nullptr;
  const std::string_view name{args->args[0], args->lengths[0]};
  for (const Seam &seam : seams)
    if (seam.name == name && args->arg_count == seam.arguments + 1)
      return &seam;
  return nullptr;
}

}  // namespace

extern "C" bool memdiag_fault_init(UDF_INIT *init, UDF_ARGS *args,
                                   char *message) {
  const Seam *const seam = find_seam(args);
  if (seam == nullptr) {
    strcpy(message, "no such fault, or another number of arguments");
    return true;
  }
  for (unsigned i = 0; i < seam->arguments; ++i)
    args->arg_type[i + 1] = seam->types[i];
  init->const_item = false;
  return false;
}

extern "C" long long memdiag_fault(UDF_INIT *, UDF_ARGS *args, unsigned char *,
                                   unsigned char *error) {
  const Seam *const seam = find_seam(args);
  const Answer answer = seam == nullptr ? Answer{} : seam->act(Arguments{args});
  if (!answer) *error = 1;
  return answer.value_or(0);
}
