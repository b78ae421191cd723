/*
  Allocates by ways that are known, so that profilers can be compared:
  other_profilers.py runs it.

    memdiag_known_ways ours FOLDER   our profile and jemalloc's own dump, of the
                                     same samples: FOLDER/ours, FOLDER/heap
    memdiag_known_ways plain         without a profiler, for Massif

  FOLDER/ours: one line for each stack: bytes, standard error, functions from
  the outermost to the innermost with ';' between them. Standard output: one
  line for each way: bytes, a space, its functions, "way_x;way_y".

  Ten ways hold much and six little. Each gives back half of what it takes.
*/

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/profiling/profiler.h"
#include "plugin/memdiag/profile/reader.h"
#include "plugin/memdiag/profile/stacks.h"
#include "plugin/memdiag/profile/symbols.h"

// jemalloc's header belongs to its facade, which has no dumps.
extern "C" int mallctl(const char *name, void *old_value, size_t *old_bytes,
                       void *new_value, size_t new_bytes);

namespace {

using namespace memdiag;

constexpr uint64_t sample_bytes = 64 << 10;

struct Block {
  void *address;
  size_t size;
  Pool pool;
};

// Names in the symbol table that every profiler shows alike.
extern "C" {

#define LEAF(name, take)                                         \
  [[gnu::noinline]] static void *name(size_t size) {             \
    void *const block = take;                                    \
    asm volatile("" ::"r"(block) : "memory"); /* no tail call */ \
    return block;                                                \
  }
#define WAY(name, next) LEAF(name, next(size))

LEAF(way_malloc, malloc(size))
LEAF(way_calloc, calloc(1, size))
LEAF(way_pool, pools::allocate(Pool::session, size))
LEAF(way_other_pool, pools::allocate(Pool::ddl, size))
WAY(way_a, way_malloc)
WAY(way_b, way_malloc)
WAY(way_c, way_a)
WAY(way_d, way_c)
WAY(way_e, way_calloc)
WAY(way_f, way_e)
WAY(way_g, way_pool)
WAY(way_h, way_g)
WAY(way_i, way_h)
WAY(way_j, way_other_pool)
WAY(way_k, way_j)
WAY(way_l, way_b)
}

struct Way {
  const char *functions;
  void *(*take)(size_t);
  size_t size;
  size_t bytes;
  Pool pool;
};

constexpr size_t mib = 1 << 20;
const Way ways[] = {
    {"way_malloc", way_malloc, 1 << 20, 64 * mib, Pool::general},
    {"way_a;way_malloc", way_a, 256, 56 * mib, Pool::general},
    {"way_b;way_malloc", way_b, 4096, 50 * mib, Pool::general},
    {"way_c;way_a;way_malloc", way_c, 40960, 44 * mib, Pool::general},
    {"way_d;way_c;way_a;way_malloc", way_d, 1024, 38 * mib, Pool::general},
    {"way_calloc", way_calloc, 163840, 34 * mib, Pool::general},
    {"way_pool", way_pool, 8192, 40 * mib, Pool::session},
    {"way_g;way_pool", way_g, 320, 36 * mib, Pool::session},
    {"way_h;way_g;way_pool", way_h, 65536, 32 * mib, Pool::session},
    {"way_other_pool", way_other_pool, 2048, 30 * mib, Pool::ddl},
    {"way_e;way_calloc", way_e, 512, 2 * mib, Pool::general},
    {"way_f;way_e;way_calloc", way_f, 128, 1 * mib, Pool::general},
    {"way_l;way_b;way_malloc", way_l, 64, 1 * mib, Pool::general},
    {"way_i;way_h;way_g;way_pool", way_i, 1024, 2 * mib, Pool::session},
    {"way_j;way_other_pool", way_j, 16384, 2 * mib, Pool::ddl},
    {"way_k;way_j;way_other_pool", way_k, 96, 1 * mib, Pool::ddl},
};

void give_back(const Block &block) {
  if (uses_malloc(block.pool))
    free(block.address);
  else
    pools::free(block.pool, block.address, block.size);
}

std::vector<Block> take_all(bool with_pools) {
  std::vector<Block> kept;
  for (const Way &way : ways) {
    if (!uses_malloc(way.pool) && !with_pools) continue;
    for (size_t i = 0; i < way.bytes / way.size; ++i) {
      kept.push_back({way.take(way.size), way.size, way.pool});
      give_back({way.take(way.size), way.size, way.pool});
    }
  }
  return kept;
}

[[noreturn]] void fail(const char *what, int error) {
  fprintf(stderr, "known_ways: %s: %s\n", what, strerror(error));
  _exit(1);
}

void write_ours(const std::string &path) {
  const auto profile = profile::take_profile();
  if (!profile) fail("take_profile", EINVAL);
  const profile::Symbols symbols(*profile);
  FILE *const file = fopen(path.c_str(), "w");
  if (file == nullptr) fail(path.c_str(), errno);
  for (const auto &[pool, stacks] : profile::folded_stacks(*profile, symbols))
    for (const auto &[stack, live] : stacks)
      fprintf(file, "%.0f %.0f %s\n", live.bytes,
              std::sqrt(live.bytes_variance), stack.c_str());
  fclose(file);
}

}  // namespace

int main(int argc, char **argv) {
  const bool is_ours = argc == 3 && strcmp(argv[1], "ours") == 0;
  if (!is_ours && (argc != 2 || strcmp(argv[1], "plain") != 0))
    fail("ours FOLDER, or plain", EINVAL);
  for (const Way &way : ways)
    if (is_ours || uses_malloc(way.pool))
      printf("%zu %s\n", way.bytes, way.functions);
  if (!is_ours) {
    // Massif looks closely when the peak is over.
    const std::vector<Block> blocks = take_all(false);
    give_back(blocks.front());
    return 0;
  }
  regions::add_stack_of_thread();
  const auto switched = profiling::switch_on({sample_bytes, 64 << 20, true});
  if (switched.error != 0) fail(switched.step, switched.error);
  // This thread finishes the interval that it had begun.
  pools::free(Pool::session, pools::allocate(Pool::session, 16 * mib),
              16 * mib);
  const std::vector<Block> blocks = take_all(true);
  const std::string folder = argv[2];
  const std::string dump = folder + "/heap";
  const char *dump_name = dump.c_str();
  if (const int error = ::mallctl("prof.dump", nullptr, nullptr, &dump_name,
                                  sizeof dump_name);
      error != 0)
    fail("prof.dump", error);
  write_ours(folder + "/ours");
  profiling::switch_off();
  return blocks.empty() ? 1 : 0;
}
