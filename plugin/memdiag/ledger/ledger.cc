#include "plugin/memdiag/ledger/ledger.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "mysys/memdiag/clock.h"
#include "plugin/memdiag/ledger/process_memory.h"
#include "plugin/memdiag/base/reason.h"

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
  // Read one after the other: a pool that grows has more live than active.
  const uint64_t live =
      std::min(active, share(active, now.live_bytes, now.active_bytes));
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
    result->other = less(result->other, pool.metadata);
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

/** Fills what each pool has. @return all of it */
uint64_t expect(const All_pools &now, const Walked &walked,
                std::array<Split, pool_count> *pools) {
  uint64_t all = 0;
  for (size_t i = 0; i < pool_count; ++i) {
    const Split pool = expected(now[i], walked.pools[i], walked.walk.pools[i]);
    (*pools)[i] = pool;
    all += pool.live + pool.fragmentation + pool.dirty + pool.muzzy;
  }
  return all;
}

/** What mincore() would count, if all is as it was but for what the pools have
more or less now. */
uint64_t expected_anonymous(const All_pools &now, const Walked &walked) {
  std::array<Split, pool_count> pools;
  return expect(now, walked, &pools) + walked.walk.unowned_bytes +
         walked.only_read_bytes;
}

Shared_out shared_out(uint64_t bytes, const All_pools &now,
                      const Walked &walked) {
  Shared_out result{};
  const uint64_t all = expect(now, walked, &result.pools);
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

constexpr auto stack_kind = static_cast<size_t>(Region_kind::thread_stack);
constexpr auto buffer_pool_kind = static_cast<size_t>(Region_kind::buffer_pool);

void add_buffer_pool(const Figures &figures, Rows *rows) {
  const Reading &resident = figures.regions[buffer_pool_kind];
  const uint64_t mapped = figures.regions_mapped[buffer_pool_kind];
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

/** What was found last, by whatever thread, for those who ask often. Finding it
takes at most a hundredth of the time; it is a minute old at most while it takes
less than that. */
template <typename T>
class Kept {
 public:
  /** Empty: the caller is to find it anew, and then to keep() or forget() it.
  Others make do with the last one meanwhile.
  @param is_good  whether it still tells of what is there now */
  template <typename Is_good>
  std::optional<T> recent(Is_good is_good) {
    const uint64_t now = clock_us(CLOCK_MONOTONIC);
    const std::lock_guard<std::mutex> guard(m_mutex);
    if (is_recent(now, is_good)) return m_value;
    m_rests_until_us = m_stale_at_us = now + keep_us;
    return std::nullopt;
  }

  /** For a caller who does not find it anew. */
  template <typename Is_good>
  std::optional<T> peek(Is_good is_good) {
    const uint64_t now = clock_us(CLOCK_MONOTONIC);
    const std::lock_guard<std::mutex> guard(m_mutex);
    return is_recent(now, is_good) ? m_value : std::nullopt;
  }

  void keep(const T &value, uint64_t began_us) {
    const uint64_t took_us = clock_us(CLOCK_MONOTONIC) - began_us;
    const std::lock_guard<std::mutex> guard(m_mutex);
    m_value = value;
    m_rests_until_us = began_us + took_us * rest_times;
    m_stale_at_us = std::max(began_us + keep_us, m_rests_until_us);
  }

  /** It could not be found, which nobody is to take for the last one. */
  void forget() {
    const std::lock_guard<std::mutex> guard(m_mutex);
    m_value.reset();
  }

 private:
  static constexpr uint64_t keep_us = 60'000'000;
  static constexpr uint64_t rest_times = 100;

  template <typename Is_good>
  bool is_recent(uint64_t now, Is_good is_good) const {
    return m_value && (now < m_rests_until_us ||
                       (now < m_stale_at_us && is_good(*m_value)));
  }

  std::mutex m_mutex;
  std::optional<T> m_value;
  uint64_t m_rests_until_us = 0;
  uint64_t m_stale_at_us = 0;
};

bool is_known(const File_bytes &bytes) { return bytes.file && bytes.own; }

/** The buffer pool's bytes: mapped, in physical memory, and with data of files
as InnoDB counts them, if it is up. */
struct Buffer_pool_bytes {
  uint64_t mapped;
  uint64_t resident;
  Reading data;
};

/** What it has in physical memory now, by what it had: new pages of data lie
where nothing was, or where something was, which keeps its page.
@param now  its `resident` is not known */
uint64_t resident_now(const Buffer_pool_bytes &then,
                      const Buffer_pool_bytes &now) {
  const uint64_t new_data =
      now.data && then.data ? less(*now.data, *then.data) : 0;
  return std::min(now.mapped, then.resident + new_data);
}

/** Whether resident_now() is off by little, whatever has happened since. */
bool is_alike(const Buffer_pool_bytes &then, const Buffer_pool_bytes &now) {
  if (then.mapped != now.mapped) return false;
  if (!then.data || !now.data) return now.mapped == 0;
  const uint64_t changed =
      less(*now.data, *then.data) + less(*then.data, *now.data);
  return changed <= now.mapped / 128;
}

/** What changes slowly and is many page tables. */
struct Slow_figures {
  /** Of so many stacks. */
  uint64_t stack_bytes;
  size_t stacks;
  Buffer_pool_bytes buffer_pool;
  File_bytes program;
  File_bytes libraries;
  File_bytes files;
  uint64_t heap_bytes;
};

constinit Kept<Slow_figures> last_slow;

/** What there is of those regions whose bytes are slow to find. */
struct Slow_regions {
  explicit Slow_regions(const std::optional<innodb::Buffer_pool> &counted)
      : totals(regions::totals()) {
    bytes.mapped = totals[buffer_pool_kind].mapped_bytes;
    if (counted) bytes.data = counted->data_pages * counted->page_size;
  }

  /** Whether figures of the last look tell of these. */
  bool are_alike(const Slow_figures &slow) const {
    // Threads that come and go have other stacks than those that were here.
    const uint64_t stacks = totals[stack_kind].count;
    const uint64_t more = std::max<uint64_t>(slow.stacks, stacks);
    const uint64_t less = std::min<uint64_t>(slow.stacks, stacks);
    return more - less <= more / 8 && is_alike(slow.buffer_pool, bytes);
  }

  uint64_t stack_bytes(const Slow_figures &slow) const {
    return share(slow.stack_bytes, totals[stack_kind].count, slow.stacks);
  }
  uint64_t buffer_pool_bytes(const Slow_figures &slow) const {
    return resident_now(slow.buffer_pool, bytes);
  }

  const std::array<regions::Total, region_kinds> totals;
  /** The buffer pool's, without what is in physical memory. */
  Buffer_pool_bytes bytes{};
};

/** Reads all figures that the kernel has. */
class Reader {
 public:
  Reader(const std::optional<innodb::Buffer_pool> &buffer_pool,
         std::vector<std::string> *warnings)
      : m_warnings(warnings), m_regions(buffer_pool) {
    m_figures.buffer_pool = buffer_pool;
    for (size_t i = 0; i < region_kinds; ++i)
      m_figures.regions_mapped[i] = m_regions.totals[i].mapped_bytes;
  }

  /** Make do with slow figures of the last look, while they are good.
  @param are_good  whether they are, if they tell of what there is now */
  void recall_slow_figures(bool are_good) {
    m_slow = last_slow.recent([this, are_good](const Slow_figures &slow) {
      return are_good && m_regions.are_alike(slow);
    });
  }

  /** What is to be expected by the last look and what is counted since. The
  system is asked for the few regions that are not slow.
  @return false: not all of it is known */
  bool expect(const All_pools &pools, const Walked &walked) {
    if (!m_slow) return false;
    Figures &all = m_figures;
    all.regions.fill(0);
    for (const auto &[range, kind] : regions::list(regions::Stacks::without)) {
      const auto of = static_cast<size_t>(kind);
      if (of == buffer_pool_kind || of == stack_kind) continue;
      add_to(&all.regions[of], regions::resident_bytes(range, kind));
      if (!all.regions[of]) return false;
    }
    take_slow_figures(*m_slow);
    all.heap_bytes = m_slow->heap_bytes;
    all.anonymous_bytes = expected_anonymous(pools, walked);
    return true;
  }

  void read_mappings() {
    Figures &all = m_figures;
    std::vector<Region> regions = regions::list();
    std::sort(regions.begin(), regions.end(),
              [](const Region &a, const Region &b) {
                return a.range.begin < b.range.begin;
              });
    const uint64_t began = clock_us(CLOCK_MONOTONIC);
    m_page_map.emplace();
    m_scan.emplace();
    const auto mappings = process_memory::mappings();
    if (!mappings) {
      all.regions.fill({});
      all.program = all.libraries = all.files = {};
      all.heap_bytes = all.anonymous_bytes = {};
      last_slow.forget();
      warn("/proc/self/maps");
      return;
    }
    if (mappings->bad_lines != 0)
      m_warnings->push_back("/proc/self/maps has lines of an unknown form");
    // Only now is what no mapping is found of nothing, and not unknown.
    all.regions.fill(0);
    all.program = all.libraries = all.files = {0, 0};
    all.heap_bytes = all.anonymous_bytes = 0;
    for (const Mapping &mapping : mappings->all)
      cut(mapping.range, regions,
          [this, &mapping](Address_range part, std::optional<Region_kind> of) {
            count(mapping, part, of);
          });
    if (m_slow)
      take_slow_figures(*m_slow);
    else if (all.regions[stack_kind] && all.regions[buffer_pool_kind] &&
             is_known(all.program) && is_known(all.libraries) &&
             is_known(all.files) && all.heap_bytes)
      last_slow.keep({*all.regions[stack_kind],
                      m_regions.totals[stack_kind].count,
                      {m_regions.bytes.mapped, *all.regions[buffer_pool_kind],
                       m_regions.bytes.data},
                      all.program,
                      all.libraries,
                      all.files,
                      *all.heap_bytes},
                     began);
    else
      last_slow.forget();
  }

  const std::vector<Address_range> &anonymous() const { return m_anonymous; }
  Figures &figures() { return m_figures; }

  void warn(const char *what) {
    const std::string text = what + (" cannot be read: error " + reason(errno));
    if (std::find(m_warnings->begin(), m_warnings->end(), text) ==
        m_warnings->end())
      m_warnings->push_back(text);
  }

 private:
  /** Whether it is among the slow figures. */
  static bool is_slow(std::optional<Region_kind> of, bool file_backed) {
    return of ? *of == Region_kind::thread_stack ||
                    *of == Region_kind::buffer_pool
              : file_backed;
  }

  void take_slow_figures(const Slow_figures &slow) {
    m_figures.program = slow.program;
    m_figures.libraries = slow.libraries;
    m_figures.files = slow.files;
    m_figures.regions[stack_kind] = m_regions.stack_bytes(slow);
    m_figures.regions[buffer_pool_kind] = m_regions.buffer_pool_bytes(slow);
  }

  void count(const Mapping &mapping, Address_range part,
             std::optional<Region_kind> of) {
    if (mapping.backing == Backing::kernel)
      return;  // shared by all processes, and in nobody's VmRSS
    const bool file_backed = mapping.backing != Backing::anonymous &&
                             mapping.backing != Backing::heap && !mapping.bss;
    if (m_slow && is_slow(of, file_backed)) return;
    File_bytes pages{0, 0};
    if (file_backed) {
      const auto found = m_page_map->pages(part);
      if (!found) warn("/proc/self/pagemap");
      pages = found ? File_bytes{found->file_bytes, found->own_bytes}
                    : File_bytes{};
    } else if (mapping.writable) {
      // Of variables, many were only read: pages of zeros.
      pages.own = mapping.bss ? Presence(part, &*m_scan).bytes(part)
                              : regions::resident_bytes(
                                    part, of.value_or(Region_kind::other));
      if (!pages.own) warn("presence of pages (mincore)");
    }
    if (of) {
      Reading &region = m_figures.regions[static_cast<size_t>(*of)];
      add_to(&region, pages.file);
      add_to(&region, pages.own);
      return;
    }
    if (mapping.backing == Backing::anonymous) {
      if (mapping.writable) add_anonymous(part);
      add_to(&m_figures.anonymous_bytes, pages.own);
    } else if (mapping.backing == Backing::heap) {
      add_to(&m_figures.heap_bytes, pages.own);
    } else {
      File_bytes &files =
          mapping.backing == Backing::program   ? m_figures.program
          : mapping.backing == Backing::library ? m_figures.libraries
                                                : m_figures.files;
      add_to(&files.file, pages.file);
      add_to(&files.own, pages.own);
    }
  }

  /** An extent may go on where a mapping ends: advice splits mappings. */
  void add_anonymous(Address_range part) {
    if (!m_anonymous.empty() && m_anonymous.back().end == part.begin)
      m_anonymous.back().end = part.end;
    else
      m_anonymous.push_back(part);
  }

  std::vector<std::string> *const m_warnings;
  const Slow_regions m_regions;
  /** Known, and not to be read again. */
  std::optional<Slow_figures> m_slow;
  Figures m_figures{};
  std::vector<Address_range> m_anonymous;
  std::optional<process_memory::Page_map> m_page_map;
  std::optional<Page_scan> m_scan;
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

constinit Kept<Walked> last_walked;

std::optional<Walked> recently_walked(bool is_good = true) {
  return last_walked.recent([is_good](const Walked &) { return is_good; });
}

std::optional<Walked> walk(const std::vector<Address_range> &ranges,
                           uint64_t anonymous_bytes, const All_pools &pools) {
  const uint64_t began = clock_us(CLOCK_MONOTONIC);
  const auto found = extents::walk(ranges);
  if (!found) {
    last_walked.forget();
    return std::nullopt;
  }
  const Walked now{*found, pools, less(anonymous_bytes, found->total())};
  last_walked.keep(now, began);
  return now;
}

/** Whether little is unexplained. */
bool adds_up(const Figures &figures) {
  const auto unexplained =
      rows(figures, Precision::cheap).back().resident_bytes;
  constexpr uint64_t part = 100;
  return unexplained && static_cast<uint64_t>(std::abs(*unexplained)) <=
                            *figures.rss_bytes / part;
}

Figures read(const Snapshot &snapshot,
             const std::optional<innodb::Buffer_pool> &buffer_pool,
             Precision precision, std::vector<std::string> *warnings) {
  Reader reader(buffer_pool, warnings);
  Figures &figures = reader.figures();
  figures.pools = counted(snapshot);
  if (precision == Precision::cheap) {
    reader.recall_slow_figures(true);
    figures.walked = recently_walked();
    if (figures.pools && figures.walked &&
        reader.expect(*figures.pools, *figures.walked)) {
      figures.rss_bytes = process_memory::resident_bytes();
      if (adds_up(figures)) return figures;
      reader.recall_slow_figures(false);
      figures.walked = recently_walked(false);
    }
  }
  reader.read_mappings();
  if (!figures.pools || !figures.anonymous_bytes) {
    figures.walked.reset();
    last_walked.forget();
  } else if (!figures.walked) {
    figures.walked =
        walk(reader.anonymous(), *figures.anonymous_bytes, *figures.pools);
    if (!figures.walked) reader.warn("presence of pages (mincore)");
  }
  figures.rss_bytes = process_memory::resident_bytes();
  if (!figures.rss_bytes) reader.warn("/proc/self/statm");
  return figures;
}

/** The exact form is read again where much came or went meanwhile, as when a
burst has just ended and its pages are being given back. */
constexpr int most_attempts = 4;

bool differ_little(uint64_t before, uint64_t after) {
  constexpr uint64_t part = 400;
  return less(before, after) + less(after, before) <= after / part;
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
  Figures figures;
  for (int left = most_attempts; left > 0; --left) {
    ledger.warnings.clear();
    Reading before;
    if (precision == Precision::exact)
      before = process_memory::resident_bytes();
    figures = read(snapshot, buffer_pool, precision, &ledger.warnings);
    if (!before || !figures.rss_bytes ||
        differ_little(*before, *figures.rss_bytes))
      break;
  }
  ledger.rows = rows(figures, precision);
  return ledger;
}

regions::Resident recent_regions(
    const std::optional<innodb::Buffer_pool> &buffer_pool) {
  regions::Resident known{};
  const Slow_regions now(buffer_pool);
  const auto slow = last_slow.peek(
      [&now](const Slow_figures &last) { return now.are_alike(last); });
  if (slow) {
    known[stack_kind] = now.stack_bytes(*slow);
    known[buffer_pool_kind] = now.buffer_pool_bytes(*slow);
  }
  return known;
}

std::optional<extents::Walk> recent_walk(
    const std::optional<innodb::Buffer_pool> &buffer_pool) {
  auto found = recently_walked();
  if (!found) {
    std::vector<std::string> warnings;
    found =
        read(take_snapshot(), buffer_pool, Precision::exact, &warnings).walked;
  }
  if (!found) return std::nullopt;
  return found->walk;
}

}  // namespace memdiag::ledger
