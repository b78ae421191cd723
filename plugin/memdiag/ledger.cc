#include "ledger.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "process_memory.h"

namespace memdiag::ledger {
namespace {

using extents::Present;
using extents::Walk;
using process_memory::Backing;
using process_memory::Mapping;
using regions::Region;

/** A pool's bytes that are in physical memory. */
struct Split {
  uint64_t live;
  uint64_t fragmentation;
  uint64_t dirty;
  uint64_t muzzy;
  uint64_t metadata;
};

struct Shared_out {
  std::array<Split, pool_count> pools;
  /** Not the allocator's. */
  uint64_t other;
};

/** Part of an amount, as `of` is to `all`. */
uint64_t share(uint64_t amount, uint64_t of, uint64_t all) {
  return all == 0 ? 0
                  : static_cast<uint64_t>(static_cast<double>(amount) *
                                          static_cast<double>(of) /
                                          static_cast<double>(all));
}

uint64_t less(uint64_t from, uint64_t what) {
  return from > what ? from - what : 0;
}

/** Pages that are dirty or muzzy were in use once, so they are there, and the
rest of what is in no slab is live. */
Split split_of(const Pool_figures &counted, const Present &present) {
  Split split{};
  split.dirty = std::min(counted.dirty_bytes, present.large_bytes);
  split.muzzy =
      std::min(counted.muzzy_bytes, present.large_bytes - split.dirty);
  split.live = present.small_live_bytes + present.large_bytes - split.dirty -
               split.muzzy;
  split.fragmentation = present.small_free_bytes;
  return split;
}

/** What a pool has now by what it had when it was walked: as many of its active
pages are still not written. */
Split expected(const Pool_figures &now, const Pool_figures &then,
               const Present &present) {
  const Split was = split_of(then, present);
  const uint64_t written = was.live + was.fragmentation;
  const uint64_t active =
      less(now.active_bytes, less(then.active_bytes, written));
  const uint64_t live = share(active, now.live_bytes, now.active_bytes);
  return {live, active - live, now.dirty_bytes, now.muzzy_bytes, 0};
}

/** Metadata is in no extent. jemalloc counts pages of it that nobody has
written yet, so what it counts is the most there can be. */
void share_out_metadata(const All_pools &counted, Shared_out *result) {
  uint64_t all = 0;
  for (const Pool_figures &pool : counted) all += pool.metadata_bytes;
  const uint64_t metadata = std::min(result->other, all);
  for (size_t i = 0; i < pool_count; ++i) {
    Split &pool = result->pools[i];
    pool.metadata = share(metadata, counted[i].metadata_bytes, all);
    result->other -= pool.metadata;
  }
}

Shared_out shared_out_exactly(const Walked &walked) {
  Shared_out result{};
  for (size_t i = 0; i < pool_count; ++i)
    result.pools[i] = split_of(walked.pools[i], walked.walk.pools[i]);
  result.other = walked.walk.unowned_bytes;
  share_out_metadata(walked.pools, &result);
  return result;
}

Shared_out shared_out(uint64_t bytes, const All_pools &now,
                      const Walked &walked) {
  Shared_out result{};
  uint64_t all = 0;
  for (size_t i = 0; i < pool_count; ++i) {
    Split &pool = result.pools[i];
    pool = expected(now[i], walked.pools[i], walked.walk.pools[i]);
    all += pool.live + pool.fragmentation + pool.dirty + pool.muzzy;
  }
  result.other = std::min(walked.walk.unowned_bytes, bytes);
  const uint64_t of_extents = bytes - result.other;
  for (Split &pool : result.pools)
    for (uint64_t *part :
         {&pool.live, &pool.fragmentation, &pool.dirty, &pool.muzzy})
      *part = share(of_extents, *part, all);
  share_out_metadata(now, &result);
  return result;
}

class Rows {
 public:
  explicit Rows(Reading rss_bytes) : m_rss(rss_bytes), m_left(rss_bytes) {}

  void add(const char *component, const char *name, const char *state,
           Reading resident, Reading mapped = {}) {
    m_rows.push_back({component, name, state, {}, {}, mapped});
    if (resident) set(&m_rows.back(), static_cast<int64_t>(*resident));
    if (m_left && resident)
      *m_left -= static_cast<int64_t>(*resident);
    else
      m_left.reset();
  }

  std::vector<Row> end() {
    m_rows.push_back({"unexplained", "", "", {}, {}, {}});
    if (m_left) set(&m_rows.back(), *m_left);
    return std::move(m_rows);
  }

 private:
  void set(Row *row, int64_t resident) const {
    row->resident_bytes = resident;
    if (m_rss && *m_rss != 0)
      row->percent =
          100.0 * static_cast<double>(resident) / static_cast<double>(*m_rss);
  }

  const Reading m_rss;
  std::optional<int64_t> m_left;
  std::vector<Row> m_rows;
};

void add_buffer_pool(const Figures &figures, Rows *rows) {
  constexpr auto kind = static_cast<size_t>(Region_kind::buffer_pool);
  const Reading &resident = figures.regions[kind];
  const uint64_t mapped = figures.regions_mapped[kind];
  const char *const name = "buffer_pool";
  if (!resident || !figures.buffer_pool) {
    rows->add(name, "", "", resident, mapped);
    return;
  }
  const innodb::Buffer_pool &pool = *figures.buffer_pool;
  // Pages that are being read are on the list and not yet there.
  const uint64_t data = std::min(pool.data_pages * pool.page_size, *resident);
  const uint64_t dirty = std::min(pool.dirty_pages * pool.page_size, data);
  rows->add(name, "", "clean pages", data - dirty);
  rows->add(name, "", "dirty pages", dirty);
  rows->add(name, "", "free pages and bookkeeping", *resident - data);
  rows->add(name, "", "never touched", 0, less(mapped, *resident));
}

void add_pools(const Figures &figures, Precision precision, Rows *rows) {
  std::optional<Shared_out> parts;
  if (precision == Precision::exact && figures.walked)
    parts = shared_out_exactly(*figures.walked);
  else if (figures.walked && figures.pools && figures.anonymous_bytes)
    parts = shared_out(
        less(*figures.anonymous_bytes, figures.walked->only_read_bytes),
        *figures.pools, *figures.walked);
  constexpr struct {
    const char *state;
    uint64_t Split::*bytes;
  } states[] = {{"live", &Split::live},
                {"fragmentation", &Split::fragmentation},
                {"dirty", &Split::dirty},
                {"muzzy", &Split::muzzy},
                {"metadata", &Split::metadata}};
  for (size_t i = 0; i < pool_count; ++i)
    for (const auto &[state, bytes] : states)
      rows->add("pool", pool_specs[i].name, state,
                parts ? Reading{parts->pools[i].*bytes} : std::nullopt);
  rows->add("anonymous", "", "not of the allocator",
            parts ? Reading{parts->other} : std::nullopt);
}

/** Calls visit(range, kind) for each part of a range: a region's, or nobody's.
@param all  in the order of their addresses */
template <typename Visitor>
void cut(Address_range range, const std::vector<Region> &all, Visitor visit) {
  auto region = std::upper_bound(
      all.begin(), all.end(), range.begin,
      [](uintptr_t at, const Region &one) { return at < one.range.end; });
  while (range.begin < range.end) {
    uintptr_t end = range.end;
    std::optional<Region_kind> kind;
    if (region != all.end() && region->range.begin <= range.begin) {
      end = std::min(end, region->range.end);
      kind = region->kind;
      ++region;
    } else if (region != all.end()) {
      end = std::min(end, region->range.begin);
    }
    if (end > range.begin) visit(Address_range{range.begin, end}, kind);
    range.begin = std::max(end, range.begin);
  }
}

void add_to(Reading *sum, Reading more) {
  if (*sum && more)
    **sum += *more;
  else
    sum->reset();
}

/** Reads all figures that the kernel has. */
class Reader {
 public:
  explicit Reader(std::vector<std::string> *warnings) : m_warnings(warnings) {
    Figures &all = m_figures;
    all.regions.fill(0);
    all.program = all.libraries = all.files = {0, 0};
    all.heap_bytes = all.anonymous_bytes = 0;
  }

  void read_mappings() {
    const auto mappings = process_memory::mappings();
    if (!mappings) {
      warn("/proc/self/maps");
      m_figures.anonymous_bytes.reset();
      return;
    }
    if (mappings->bad_lines != 0)
      m_warnings->push_back("/proc/self/maps has lines of an unknown form");
    std::vector<Region> regions = regions::list();
    std::sort(regions.begin(), regions.end(),
              [](const Region &a, const Region &b) {
                return a.range.begin < b.range.begin;
              });
    for (const Region &region : regions)
      m_figures.regions_mapped[static_cast<size_t>(region.kind)] +=
          region.range.bytes();
    for (const Mapping &mapping : mappings->all)
      cut(mapping.range, regions,
          [this, &mapping](Address_range part, std::optional<Region_kind> of) {
            count(mapping, part, of);
          });
  }

  const std::vector<Address_range> &anonymous() const { return m_anonymous; }
  Figures &figures() { return m_figures; }

  void warn(const char *what) {
    const int error = errno;
    const std::string text =
        std::string(what) + " cannot be read: " + strerror(error);
    if (std::find(m_warnings->begin(), m_warnings->end(), text) ==
        m_warnings->end())
      m_warnings->push_back(text);
  }

 private:
  void count(const Mapping &mapping, Address_range part,
             std::optional<Region_kind> of) {
    if (mapping.backing == Backing::kernel)
      return;  // shared by all processes, and in nobody's VmRSS
    const bool file_backed = mapping.backing != Backing::anonymous &&
                             mapping.backing != Backing::heap && !mapping.bss;
    File_bytes pages{0, 0};
    if (file_backed) {
      const auto found = m_page_map.pages(part);
      if (!found) warn("/proc/self/pagemap");
      pages = found ? File_bytes{found->file_bytes, found->own_bytes}
                    : File_bytes{};
    } else if (mapping.writable) {
      pages.own = of == Region_kind::thread_stack ? stack_bytes(part)
                                                  : Presence(part).bytes(part);
      if (!pages.own) warn("presence of pages (mincore)");
    }
    if (of) {
      Reading &region = m_figures.regions[static_cast<size_t>(*of)];
      add_to(&region, pages.file);
      add_to(&region, pages.own);
      return;
    }
    File_bytes *files = &m_figures.files;
    switch (mapping.backing) {
      case Backing::anonymous:
        if (mapping.writable) m_anonymous.push_back(part);
        add_to(&m_figures.anonymous_bytes, pages.own);
        return;
      case Backing::heap:
        add_to(&m_figures.heap_bytes, pages.own);
        return;
      case Backing::program:
        files = &m_figures.program;
        break;
      case Backing::library:
        files = &m_figures.libraries;
        break;
      case Backing::file:
        break;
      case Backing::kernel:
        return;
    }
    add_to(&files->file, pages.file);
    add_to(&files->own, pages.own);
  }

  std::vector<std::string> *const m_warnings;
  Figures m_figures{};
  std::vector<Address_range> m_anonymous;
  const process_memory::Page_map m_page_map;
};

std::optional<All_pools> counted(const Snapshot &snapshot) {
  All_pools all{};
  for (size_t i = 0; i < pool_count; ++i) {
    const Pool_row &row = snapshot.pools[i];
    if (!row.live_bytes || !row.active_bytes || !row.dirty_bytes ||
        !row.muzzy_bytes || !row.metadata_bytes)
      return std::nullopt;
    all[i] = {*row.live_bytes, *row.active_bytes, *row.dirty_bytes,
              *row.muzzy_bytes, *row.metadata_bytes};
  }
  return all;
}

uint64_t now_us() {
  timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

/** The last walk, of whatever thread. */
struct Last_walk {
  std::mutex mutex;
  std::optional<Walked> walked;
  /** The cheap form walks again from then on. */
  uint64_t stale_at_us = 0;
};
constinit Last_walk last_walk;

/** A walk takes at most a hundredth of the time, and is a minute old at most
while it takes less than that. */
constexpr uint64_t walked_every_us = 60'000'000;
constexpr uint64_t rest_times = 100;

std::optional<Walked> walked(const std::vector<Address_range> &ranges,
                             uint64_t anonymous_bytes, const All_pools &pools,
                             Precision precision) {
  const uint64_t began = now_us();
  {
    const std::lock_guard<std::mutex> guard(last_walk.mutex);
    if (precision == Precision::cheap && last_walk.walked &&
        began < last_walk.stale_at_us)
      return last_walk.walked;
    // Others that want the cheap form take the last one meanwhile.
    last_walk.stale_at_us = began + walked_every_us;
  }
  const auto found = extents::walk(ranges);
  if (!found) return std::nullopt;
  const std::lock_guard<std::mutex> guard(last_walk.mutex);
  const uint64_t took = now_us() - began;
  last_walk.stale_at_us = began + std::max(walked_every_us, took * rest_times);
  last_walk.walked =
      Walked{*found, pools, less(anonymous_bytes, found->total())};
  return last_walk.walked;
}

}  // namespace

std::vector<Row> rows(const Figures &figures, Precision precision) {
  Rows all(figures.rss_bytes);
  add_buffer_pool(figures, &all);
  add_pools(figures, precision, &all);
  for (size_t i = 0; i < region_kinds; ++i)
    if (static_cast<Region_kind>(i) != Region_kind::buffer_pool)
      all.add("region", regions::name(static_cast<Region_kind>(i)), "",
              figures.regions[i], figures.regions_mapped[i]);
  const auto add_files = [&all](const char *component, const char *file_state,
                                const File_bytes &bytes) {
    all.add(component, "", file_state, bytes.file);
    all.add(component, "", "data", bytes.own);
  };
  add_files("program", "code and constants", figures.program);
  add_files("libraries", "code and constants", figures.libraries);
  add_files("files", "mapped", figures.files);
  all.add("heap", "", "not of the allocator", figures.heap_bytes);
  return all.end();
}

Ledger take(const Snapshot &snapshot,
            const std::optional<innodb::Buffer_pool> &buffer_pool,
            Precision precision) {
  Ledger ledger;
  Reader reader(&ledger.warnings);
  Figures &figures = reader.figures();
  reader.read_mappings();
  figures.pools = counted(snapshot);
  figures.buffer_pool = buffer_pool;
  if (figures.pools && figures.anonymous_bytes) {
    figures.walked = walked(reader.anonymous(), *figures.anonymous_bytes,
                            *figures.pools, precision);
    if (!figures.walked) reader.warn("presence of pages (mincore)");
  }
  if (const auto size = process_memory::size())
    figures.rss_bytes = size->resident_bytes;
  else
    reader.warn("/proc/self/statm");
  ledger.rows = rows(figures, precision);
  return ledger;
}

}  // namespace memdiag::ledger
