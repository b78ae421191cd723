#include "plugin/memdiag/ledger/ledger_rows.h"

#include <algorithm>
#include <utility>

#include "plugin/memdiag/ledger/amounts.h"

namespace memdiag::ledger {
namespace {

constexpr auto buffer_pool_kind = static_cast<size_t>(Region_kind::buffer_pool);

/** Collects rows, and subtracts each from VmRSS. */
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
  const Reading &resident = figures.regions[buffer_pool_kind];
  const uint64_t mapped = figures.regions_mapped[buffer_pool_kind];
  const char *const name = "buffer_pool";
  using In_reserved = Buffer_pool_pages::In_reserved;
  if (!resident || !figures.buffer_pool ||
      figures.buffer_pool->in_reserved == In_reserved::part) {
    rows->add(name, "", "", resident, mapped);
    return;
  }
  const Buffer_pool_pages &pool = *figures.buffer_pool;
  // InnoDB counts a page from when its read begins; its memory may not be
  // resident yet.
  const uint64_t data = std::min(pool.data_pages * pool.page_bytes, *resident);
  const uint64_t dirty = std::min(pool.dirty_pages * pool.page_bytes, data);
  rows->add(name, "", "clean pages", data - dirty);
  rows->add(name, "", "dirty pages", dirty);
  rows->add(name, "", "free pages and bookkeeping", *resident - data);
  Reading can_grow;
  if (pool.in_reserved == In_reserved::none)
    can_grow = minus_or_zero(mapped, *resident);
  rows->add(name, "", "never touched", 0, can_grow);
}

void add_pools(const Figures &figures, Precision precision, Rows *rows) {
  std::optional<Shared_out> parts;
  if (precision == Precision::exact && figures.walked)
    parts = shared_out_exactly(*figures.walked);
  else if (figures.walked && figures.pools && figures.anonymous_bytes)
    parts = shared_out(minus_or_zero(*figures.anonymous_bytes,
                                     figures.walked->only_read_bytes),
                       *figures.pools, *figures.walked);
  constexpr struct {
    const char *state;
    uint64_t Pool_split::*bytes;
  } states[] = {{"live", &Pool_split::live},
                {"fragmentation", &Pool_split::fragmentation},
                {"dirty", &Pool_split::dirty},
                {"muzzy", &Pool_split::muzzy},
                {"metadata", &Pool_split::metadata}};
  for (size_t i = 0; i < pool_count; ++i)
    for (const auto &[state, bytes] : states)
      rows->add("pool", pool_specs[i].name, state,
                parts ? Reading{parts->pools[i].*bytes} : std::nullopt);
  rows->add("anonymous", "", "not of the allocator",
            parts ? Reading{parts->other} : std::nullopt);
}

}  // namespace

std::vector<Row> rows(const Figures &figures, Precision precision) {
  Rows all(figures.rss_bytes);
  add_buffer_pool(figures, &all);
  add_pools(figures, precision, &all);
  for (size_t i = 0; i < region_kinds; ++i)
    if (i != buffer_pool_kind)
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

}  // namespace memdiag::ledger
