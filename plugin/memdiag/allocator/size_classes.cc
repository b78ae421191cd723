#include "plugin/memdiag/allocator/size_classes.h"

#include <algorithm>
#include <cstddef>

namespace memdiag {
namespace {

/** Reads the extents of one kind in one class.
@param left  bytes of this class and the larger ones; empty: not known */
template <Ctl extents_ctl, Ctl bytes_ctl>
void read_kind(Control_reader *reader, unsigned arena, unsigned index,
               Reading *left, Reading *extents, Reading *bytes) {
  *extents = *bytes = 0;
  if (is_zero(*left)) return;
  *extents = reader->read<extents_ctl>(arena, index);
  if (is_zero(*extents)) return;
  *bytes = reader->read<bytes_ctl>(arena, index);
  *left = difference(*left, *bytes);
}

}  // namespace

Size_classes::Size_classes(Control_reader *reader)
    : m_reader(reader), m_page(reader->read<Ctl::arenas_page>()) {
  const unsigned bins = reader->read<Ctl::arenas_nbins>().value_or(0);
  for (unsigned i = 0; i < bins; ++i)
    m_bins.push_back({reader->read<Ctl::arenas_bin_size>(0, i),
                      reader->read<Ctl::arenas_bin_slab_size>(0, i),
                      reader->read<Ctl::arenas_bin_nregs>(0, i)});

  // Extents have the classes of large blocks, and smaller ones of whole pages.
  std::vector<Reading> sizes;
  const Reading smallest = reader->read<Ctl::arenas_lextent_size>(0, 0);
  if (m_page && smallest)
    for (uint64_t size = *m_page; size < *smallest; size += *m_page)
      sizes.push_back(size);
  const size_t first_large = sizes.size();
  const unsigned large = reader->read<Ctl::arenas_nlextents>().value_or(0);
  for (unsigned i = 0; i < large; ++i)
    sizes.push_back(reader->read<Ctl::arenas_lextent_size>(0, i));

  const auto by_page = reader->read<Ctl::opt_disable_large_size_classes>();
  // With cache_oblivious, an extent has one page more than its large block.
  auto with_spare_page = reader->read<Ctl::opt_cache_oblivious>();
  if (first_large == 0) with_spare_page.reset();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Range up_to{i == 0 ? sizes[0] : sum(sizes[i - 1], m_page), sizes[i]};
    if (i >= first_large)
      m_large.push_back(!by_page
                            ? Range{{}, sizes[i]}
                            : (*by_page ? up_to : Range{sizes[i], sizes[i]}));
    if (!with_spare_page)
      m_extents.push_back({});
    else if (*with_spare_page)
      m_extents.push_back(up_to);
    else if (i + 1 < sizes.size())
      m_extents.push_back({sizes[i], difference(sizes[i + 1], m_page)});
  }
}

void Size_classes::append_bins(Arena_id arena,
                               std::vector<Bin_row> *rows) const {
  const unsigned a = arena.arena;
  Reading left = m_reader->read<Ctl::stats_arena_small_nmalloc>(a);
  for (unsigned i = 0; i < bins() && !is_zero(left); ++i) {
    const Reading allocations = m_reader->read<Ctl::stats_bin_nmalloc>(a, i);
    if (is_zero(allocations)) continue;
    left = difference(left, allocations);
    const Bin &bin = m_bins[i];
    Bin_row &row = rows->emplace_back();
    static_cast<Arena_id &>(row) = arena;
    row.size = bin.size;
    row.slab_bytes = bin.slab_bytes;
    row.regions_per_slab = bin.regions;
    row.slabs = m_reader->read<Ctl::stats_bin_curslabs>(a, i);
    row.nonfull_slabs = m_reader->read<Ctl::stats_bin_nonfull_slabs>(a, i);
    row.live_blocks = m_reader->read<Ctl::stats_bin_curregs>(a, i);
    row.live_bytes = product(row.live_blocks, row.size);
    row.capacity_blocks = product(row.slabs, row.regions_per_slab);
    if (row.live_blocks && row.capacity_blocks && *row.capacity_blocks != 0)
      row.utilisation = static_cast<double>(*row.live_blocks) /
                        static_cast<double>(*row.capacity_blocks);
    row.waste_bytes =
        difference(product(row.slabs, row.slab_bytes), row.live_bytes);
    row.allocations = allocations;
    row.frees = m_reader->read<Ctl::stats_bin_ndalloc>(a, i);
    row.requests = m_reader->read<Ctl::stats_bin_nrequests>(a, i);
    row.fills = m_reader->read<Ctl::stats_bin_nfills>(a, i);
    row.flushes = m_reader->read<Ctl::stats_bin_nflushes>(a, i);
  }
}

void Size_classes::append_large(Arena_id arena,
                                std::vector<Large_row> *rows) const {
  const unsigned a = arena.arena;
  const size_t first = rows->size();
  Reading left = m_reader->read<Ctl::stats_arena_large_nmalloc>(a);
  for (unsigned i = 0; i < m_large.size() && !is_zero(left); ++i) {
    const Reading allocations =
        m_reader->read<Ctl::stats_lextent_nmalloc>(a, i);
    if (is_zero(allocations)) continue;
    left = difference(left, allocations);
    Large_row &row = rows->emplace_back();
    static_cast<Arena_id &>(row) = arena;
    row.min_size = m_large[i].min_size;
    row.max_size = m_large[i].max_size;
    row.live_blocks = m_reader->read<Ctl::stats_lextent_curlextents>(a, i);
    row.allocations = allocations;
    row.frees = m_reader->read<Ctl::stats_lextent_ndalloc>(a, i);
    row.requests = m_reader->read<Ctl::stats_lextent_nrequests>(a, i);
  }
  share_out(m_reader->read<Ctl::stats_arena_large_allocated>(a),
            std::span{*rows}.subspan(first));
}

void Size_classes::append_extents(Arena_id arena,
                                  std::vector<Extents_row> *rows) const {
  const unsigned a = arena.arena;
  Reading dirty = product(m_reader->read<Ctl::stats_arena_pdirty>(a), m_page);
  Reading muzzy = product(m_reader->read<Ctl::stats_arena_pmuzzy>(a), m_page);
  Reading retained = m_reader->read<Ctl::stats_arena_retained>(a);
  for (unsigned i = 0; i < m_extents.size(); ++i) {
    if (is_zero(dirty) && is_zero(muzzy) && is_zero(retained)) return;
    Extents_row row{};
    read_kind<Ctl::stats_extents_ndirty, Ctl::stats_extents_dirty_bytes>(
        m_reader, a, i, &dirty, &row.dirty_extents, &row.dirty_bytes);
    read_kind<Ctl::stats_extents_nmuzzy, Ctl::stats_extents_muzzy_bytes>(
        m_reader, a, i, &muzzy, &row.muzzy_extents, &row.muzzy_bytes);
    read_kind<Ctl::stats_extents_nretained, Ctl::stats_extents_retained_bytes>(
        m_reader, a, i, &retained, &row.retained_extents, &row.retained_bytes);
    if (is_zero(row.dirty_extents) && is_zero(row.muzzy_extents) &&
        is_zero(row.retained_extents))
      continue;
    static_cast<Arena_id &>(row) = arena;
    row.min_size = m_extents[i].min_size;
    row.max_size = m_extents[i].max_size;
    rows->push_back(row);
  }
}

void share_out(Reading bytes, std::span<Large_row> rows) {
  const auto least_of = [](const Large_row &row) {
    return product(row.live_blocks, row.min_size);
  };
  const auto most_of = [](const Large_row &row) {
    return product(row.live_blocks, row.max_size);
  };
  Reading least = 0;
  Reading most = 0;
  for (const Large_row &row : rows) {
    least = sum(least, least_of(row));
    most = sum(most, most_of(row));
  }
  if (rows.empty() || !bytes || !least || !most) return;

  const uint64_t possible = std::clamp(*bytes, *least, *most);
  // The running sum is rounded instead of each row, so that rows add up.
  uint64_t room = 0;
  uint64_t given = 0;
  for (Large_row &row : rows) {
    room += *most_of(row) - *least_of(row);
    const uint64_t to_give =
        room == 0
            ? 0
            : static_cast<uint64_t>(static_cast<unsigned __int128>(room) *
                                    (possible - *least) / (*most - *least));
    row.live_bytes = *least_of(row) + to_give - given;
    given = to_give;
  }
  // The remainder: blocks that came or went while jemalloc added up.
  Reading &largest =
      std::ranges::max_element(rows, {}, &Large_row::live_bytes)->live_bytes;
  largest = difference(*largest + *bytes, possible).value_or(0);
}

}  // namespace memdiag
