#include "plugin/memdiag/ledger/figures_reader.h"

#include <algorithm>
#include <cerrno>

#include "plugin/memdiag/base/reason.h"

namespace memdiag::ledger {
namespace {

using process_memory::Backing;
using process_memory::Mapping;
using regions::Region;

/** Calls visit(range, kind) for each part of a range: the part of a region
with its kind, the rest with none.
@param all  regions, in the order of their addresses */
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

/** A sum with an unknown part is unknown. */
void add_to(Reading *sum, Reading more) {
  if (*sum && more)
    **sum += *more;
  else
    sum->reset();
}

bool is_known(const File_bytes &bytes) { return bytes.file && bytes.own; }

bool is_slow(std::optional<Region_kind> region, bool file_backed) {
  return region ? *region == Region_kind::thread_stack ||
                      *region == Region_kind::buffer_pool
                : file_backed;
}

}  // namespace

Figures_reader::Figures_reader(
    const std::optional<Buffer_pool_pages> &buffer_pool,
    std::vector<std::string> *warnings)
    : m_warnings(warnings), m_slow_regions(buffer_pool) {
  m_figures.buffer_pool = buffer_pool;
  for (size_t i = 0; i < region_kinds; ++i)
    m_figures.regions_mapped[i] = m_slow_regions.totals()[i].mapped_bytes;
}

bool Figures_reader::expect(const All_pools &pools, const Walked &walked) {
  if (!m_slow) return false;
  Figures &all = m_figures;
  all.regions.fill(0);
  m_scan.emplace();
  for (const Region &region : regions::list(regions::Stacks::without)) {
    const auto i = static_cast<size_t>(region.kind);
    if (i == buffer_pool_kind || i == stack_kind) continue;
    add_to(&all.regions[i], regions::resident_bytes(region, &*m_scan));
    if (!all.regions[i]) return false;
  }
  fill_in(*m_slow);
  all.heap_bytes = m_slow->heap_bytes;
  all.anonymous_bytes = expected_anonymous(pools, walked);
  return true;
}

bool Figures_reader::read_mappings() {
  Figures &all = m_figures;
  std::vector<Region> regions = regions::list();
  std::sort(regions.begin(), regions.end(),
            [](const Region &a, const Region &b) {
              return a.range.begin < b.range.begin;
            });
  m_page_map.emplace();
  m_scan.emplace();
  const auto mappings = process_memory::mappings();
  if (!mappings) {
    all.regions.fill({});
    all.program = all.libraries = all.files = {};
    all.heap_bytes = all.anonymous_bytes = {};
    warn("/proc/self/maps");
    return false;
  }
  if (mappings->bad_lines != 0)
    m_warnings->push_back("/proc/self/maps has lines of an unknown form");
  // From here on a component without a mapping has 0 bytes; before, its bytes
  // were unknown.
  all.regions.fill(0);
  all.program = all.libraries = all.files = {0, 0};
  all.heap_bytes = all.anonymous_bytes = 0;
  for (const Mapping &mapping : mappings->all) {
#ifdef __SANITIZE_THREAD__
    // It maps terabytes for itself, and a look at each page would take minutes.
    if (mapping.range.bytes() >= size_t{16} << 30) continue;
#endif
    cut(mapping.range, regions,
        [this, &mapping](Address_range part, std::optional<Region_kind> kind) {
          count(mapping, part, kind);
        });
  }
  if (m_slow) fill_in(*m_slow);
  return true;
}

std::optional<Slow_figures> Figures_reader::slow_figures() const {
  const Figures &all = m_figures;
  const Reading &stacks = all.regions[stack_kind];
  const Reading &buffer_pool = all.regions[buffer_pool_kind];
  if (!stacks || !buffer_pool || !is_known(all.program) ||
      !is_known(all.libraries) || !is_known(all.files) || !all.heap_bytes)
    return std::nullopt;
  const Buffer_pool_bytes &counted = m_slow_regions.buffer_pool();
  return Slow_figures{
      *stacks,
      m_slow_regions.totals()[stack_kind].count,
      {counted.mapped, *buffer_pool, counted.data, counted.parked},
      all.program,
      all.libraries,
      all.files,
      *all.heap_bytes};
}

void Figures_reader::warn(const char *subject) {
  const std::string text =
      subject + (" cannot be read: error " + reason(errno));
  if (std::find(m_warnings->begin(), m_warnings->end(), text) ==
      m_warnings->end())
    m_warnings->push_back(text);
}

void Figures_reader::fill_in(const Slow_figures &slow) {
  m_figures.program = slow.program;
  m_figures.libraries = slow.libraries;
  m_figures.files = slow.files;
  m_figures.regions[stack_kind] = m_slow_regions.stack_bytes(slow);
  m_figures.regions[buffer_pool_kind] = m_slow_regions.buffer_pool_bytes(slow);
}

void Figures_reader::count(const Mapping &mapping, Address_range part,
                           std::optional<Region_kind> region) {
  // All processes share these pages, and VmRSS does not count them.
  if (mapping.backing == Backing::kernel) return;
  const bool file_backed = mapping.backing != Backing::anonymous &&
                           mapping.backing != Backing::heap && !mapping.bss;
  if (m_slow && is_slow(region, file_backed)) return;
  const File_bytes pages = pages_of(mapping, part, region, file_backed);
  if (region) {
    Reading &bytes = m_figures.regions[static_cast<size_t>(*region)];
    add_to(&bytes, pages.file);
    add_to(&bytes, pages.own);
  } else if (mapping.backing == Backing::anonymous) {
    if (mapping.writable) add_anonymous(part);
    add_to(&m_figures.anonymous_bytes, pages.own);
  } else if (mapping.backing == Backing::heap) {
    add_to(&m_figures.heap_bytes, pages.own);
  } else {
    File_bytes &files = mapping.backing == Backing::program ? m_figures.program
                        : mapping.backing == Backing::library
                            ? m_figures.libraries
                            : m_figures.files;
    add_to(&files.file, pages.file);
    add_to(&files.own, pages.own);
  }
}

/** The resident bytes of a part of a mapping. */
File_bytes Figures_reader::pages_of(const Mapping &mapping, Address_range part,
                                    std::optional<Region_kind> region,
                                    bool file_backed) {
  if (file_backed) {
    const auto found = m_page_map->pages(part);
    if (found) return {found->file_bytes, found->own_bytes};
    warn("/proc/self/pagemap");
    return {};
  }
  if (!mapping.writable) return {0, 0};
  // mincore() counts pages that were only read, of variables (.bss) and of
  // regions such as the profiler's tables. They map the kernel's page of zeros,
  // and VmRSS does not count them.
  const bool scans = mapping.bss || region;
  const Reading own = regions::resident_bytes(
      part, region.value_or(Region_kind::other), scans ? &*m_scan : nullptr);
  if (!own) warn("presence of pages (mincore)");
  return {0, own};
}

/** madvise() splits mappings, so an extent may continue in the next mapping:
adjacent parts become one range. */
void Figures_reader::add_anonymous(Address_range part) {
  if (!m_anonymous.empty() && m_anonymous.back().end == part.begin)
    m_anonymous.back().end = part.end;
  else
    m_anonymous.push_back(part);
}

}  // namespace memdiag::ledger
