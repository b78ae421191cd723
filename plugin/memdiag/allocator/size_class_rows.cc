#include "plugin/memdiag/allocator/size_class_rows.h"

namespace memdiag {
namespace {

Size_class_row row_of(const Bin_row &bin) {
  return {bin,
          "small",
          bin.size,
          bin.size,
          bin.live_blocks,
          bin.live_bytes,
          bin.allocations,
          bin.frees,
          bin.requests,
          bin.slab_bytes,
          bin.regions_per_slab,
          bin.slabs,
          bin.nonfull_slabs,
          bin.capacity_blocks,
          bin.utilisation,
          bin.waste_bytes,
          bin.fills,
          bin.flushes};
}

/** A class without slabs. */
template <typename Row>
Size_class_row row_of(const char *kind, const Row &of, Reading blocks,
                      Reading bytes) {
  Size_class_row row{};
  static_cast<Arena_id &>(row) = of;
  row.kind = kind;
  row.min_size = of.min_size;
  row.max_size = of.max_size;
  row.blocks = blocks;
  row.bytes = bytes;
  return row;
}

}  // namespace

std::vector<Size_class_row> size_class_rows(const Snapshot &snapshot) {
  std::vector<Size_class_row> rows;
  for (const Bin_row &bin : snapshot.bins) rows.push_back(row_of(bin));
  for (const Large_row &large : snapshot.large) {
    Size_class_row &row = rows.emplace_back(
        row_of("large", large, large.live_blocks, large.live_bytes));
    row.allocations = large.allocations;
    row.frees = large.frees;
    row.requests = large.requests;
  }
  for (const Extents_row &of : snapshot.extents) {
    const auto add = [&](const char *kind, Reading extents, Reading bytes) {
      if (!is_zero(extents)) rows.push_back(row_of(kind, of, extents, bytes));
    };
    add("dirty", of.dirty_extents, of.dirty_bytes);
    add("muzzy", of.muzzy_extents, of.muzzy_bytes);
    add("retained", of.retained_extents, of.retained_bytes);
  }
  return rows;
}

}  // namespace memdiag
