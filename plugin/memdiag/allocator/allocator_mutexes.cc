#include "plugin/memdiag/allocator/allocator_mutexes.h"

#include <algorithm>
#include <string_view>

namespace memdiag {
namespace {

constexpr std::string_view global_prefix = "stats.mutexes.";
constexpr std::string_view arena_prefix = "stats.arenas.0.mutexes.";

template <Ctl num_ops, Ctl num_wait, Ctl num_spin_acq, Ctl num_owner_switch,
          Ctl total_wait_time, Ctl max_wait_time, Ctl max_num_thds>
Mutex_figures read_figures(Control_reader *reader, unsigned arena,
                           unsigned bin) {
  Mutex_figures figures{0, 0, 0, 0, 0, 0, 0};
  figures.locks = reader->read<num_ops>(arena, bin);
  if (is_zero(figures.locks)) return figures;
  figures.owner_switches = reader->read<num_owner_switch>(arena, bin);
  figures.spins = reader->read<num_spin_acq>(arena, bin);
  figures.waits = reader->read<num_wait>(arena, bin);
  // The other figures are about waits.
  if (is_zero(figures.waits)) return figures;
  figures.total_wait_ns = reader->read<total_wait_time>(arena, bin);
  figures.max_wait_ns = reader->read<max_wait_time>(arena, bin);
  figures.max_waiters = reader->read<max_num_thds>(arena, bin);
  return figures;
}

struct Mutex {
  std::string_view path;
  Mutex_figures (*read)(Control_reader *reader, unsigned arena, unsigned bin);
};

constexpr Mutex all_mutexes[] = {
#define MEMDIAG_CTL(id, name, type)
#define MEMDIAG_CTL_MUTEX(id, name)                                            \
  {name,                                                                       \
   read_figures<Ctl::id##_num_ops, Ctl::id##_num_wait, Ctl::id##_num_spin_acq, \
                Ctl::id##_num_owner_switch, Ctl::id##_total_wait_time,         \
                Ctl::id##_max_wait_time, Ctl::id##_max_num_thds>},
#include "mysys/memdiag/jemalloc/mallctl_names.h"
#undef MEMDIAG_CTL
};

void append(const char *name, Mutex_figures figures,
            std::optional<Arena_id> arena, std::vector<Mutex_row> *rows) {
  if (is_zero(figures.locks)) return;
  Mutex_row &row = rows->emplace_back();
  static_cast<Mutex_figures &>(row) = figures;
  row.name = name;
  if (!arena) return;
  row.arena = arena->arena;
  row.pool = arena->pool;
}

Reading larger(Reading a, Reading b) {
  return a && b ? std::max(a, b) : std::nullopt;
}

Mutex_figures together(const Mutex_figures &a, const Mutex_figures &b) {
  return {sum(a.locks, b.locks),
          sum(a.spins, b.spins),
          sum(a.waits, b.waits),
          sum(a.owner_switches, b.owner_switches),
          sum(a.total_wait_ns, b.total_wait_ns),
          larger(a.max_wait_ns, b.max_wait_ns),
          larger(a.max_waiters, b.max_waiters)};
}

}  // namespace

void append_global_mutexes(Control_reader *reader,
                           std::vector<Mutex_row> *rows) {
  for (const Mutex &mutex : all_mutexes)
    if (mutex.path.starts_with(global_prefix))
      append(mutex.path.data() + global_prefix.size(), mutex.read(reader, 0, 0),
             std::nullopt, rows);
}

void append_mutexes(Control_reader *reader, Arena_id arena, unsigned bins,
                    std::vector<Mutex_row> *rows) {
  for (const Mutex &mutex : all_mutexes) {
    if (mutex.path.starts_with(global_prefix)) continue;
    if (mutex.path.starts_with(arena_prefix)) {
      append(mutex.path.data() + arena_prefix.size(),
             mutex.read(reader, arena.arena, 0), arena, rows);
      continue;
    }
    Mutex_figures all{0, 0, 0, 0, 0, 0, 0};
    for (unsigned bin = 0; bin < bins; ++bin)
      all = together(all, mutex.read(reader, arena.arena, bin));
    append("bins", all, arena, rows);
  }
}

}  // namespace memdiag
