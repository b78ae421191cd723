/*
  memdiag_fail_allocations(what, kind, skip, count), a loadable function for
  tests: makes allocations of the running server fail.

    what   a pool or a route, as in MEMDIAG_ROUTES, or '' for all pools
    kind   'soft': the pool has no page, in any thread; 'hard': the general
           allocator has none either, in the calling session's thread
    skip   how many succeed before
    count  how many fail; 0 ends it

  Returns how many of the call before have not happened. The rest of the calling
  statement may be hit already.
*/

#include <mysql/udf_registration_types.h>

#include <cstdint>
#include <cstring>
#include <string_view>

#include "mysys/memdiag/pools/failures_for_test.h"
#include "mysys/memdiag/routes/routes.h"

namespace {

std::string_view text(const UDF_ARGS *args, unsigned i) {
  return args->args[i] == nullptr
             ? std::string_view{}
             : std::string_view{args->args[i], args->lengths[i]};
}

uint32_t number(const UDF_ARGS *args, unsigned i) {
  long long value = 0;
  if (args->args[i] != nullptr) memcpy(&value, args->args[i], sizeof value);
  return static_cast<uint32_t>(value);
}

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

}  // namespace

extern "C" bool memdiag_fail_allocations_init(UDF_INIT *init, UDF_ARGS *args,
                                              char *message) {
  if (args->arg_count != 4) {
    strcpy(message, "it takes what, kind, skip, count");
    return true;
  }
  args->arg_type[0] = args->arg_type[1] = STRING_RESULT;
  args->arg_type[2] = args->arg_type[3] = INT_RESULT;
  init->const_item = false;
  return false;
}

extern "C" long long memdiag_fail_allocations(UDF_INIT *, UDF_ARGS *args,
                                              unsigned char *,
                                              unsigned char *error) {
  const std::string_view kind = text(args, 1);
  memdiag::pools::Failures failures{.count = number(args, 3),
                                    .skip = number(args, 2)};
  if ((kind != "soft" && kind != "hard") || !find(text(args, 0), &failures)) {
    *error = 1;
    return 0;
  }
  failures.hard = failures.this_thread = kind == "hard";
  return memdiag::pools::fail_allocations_for_test(failures);
}
