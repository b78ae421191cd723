/*
  leak_blocks(blocks, size), a loadable function for tests: allocates as many
  blocks of that size and forgets them. Returns the sum of their sizes.
*/

#include <mysql/udf_registration_types.h>

#include <cstdlib>
#include <cstring>

namespace {

long long number(const UDF_ARGS *args, unsigned i) {
  long long value = 0;
  if (args->args[i] != nullptr) memcpy(&value, args->args[i], sizeof value);
  return value;
}

}  // namespace

extern "C" bool leak_blocks_init(UDF_INIT *init, UDF_ARGS *args,
                                 char *message) {
  if (args->arg_count != 2) {
    strcpy(message, "it takes blocks, size");
    return true;
  }
  args->arg_type[0] = args->arg_type[1] = INT_RESULT;
  init->const_item = false;
  return false;
}

extern "C" long long leak_blocks(UDF_INIT *, UDF_ARGS *args, unsigned char *,
                                 unsigned char *) {
  long long sum = 0;
  for (long long i = 0; i < number(args, 0); ++i) {
    void *const block = malloc(static_cast<size_t>(number(args, 1)));
    if (block == nullptr) break;
    // The compiler would leave out what nothing uses.
    memset(block, 1, static_cast<size_t>(number(args, 1)));
    asm volatile("" : : "r"(block) : "memory");
    sum += number(args, 1);
  }
  return sum;
}
