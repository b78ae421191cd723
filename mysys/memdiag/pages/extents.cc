#include "mysys/memdiag/pages/extents.h"

#include <algorithm>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/arenas.h"

namespace memdiag::extents {
namespace {

bool walk_range(Address_range range, const Page_scan &scan, Walk *found) {
  Presence presence(range, &scan);
  for (uintptr_t at = range.begin; at < range.end;) {
    const auto *const address = reinterpret_cast<const void *>(at);
    const auto extent = mallctl::extent_at(address);
    const size_t bytes =
        extent ? extent.value().bytes
               : std::max(page_size(), mallctl::no_extents_from(address));
    const uintptr_t end = at + std::min(bytes, range.end - at);
    uint64_t huge_bytes = 0;
    const auto present = presence.bytes({at, end}, &huge_bytes);
    if (!present) return false;
    at = end;
    if (!extent) {
      found->unowned_bytes += *present;
      continue;
    }
    const auto [arena, size, regions, free_regions, pages] = extent.value();
    Present &pool =
        found->pools[static_cast<size_t>(pools::owner_of_arena(arena))];
    pool.huge_bytes += huge_bytes;
    if (pages != mallctl::Pages::used) {
      (pages == mallctl::Pages::dirty ? pool.dirty_bytes : pool.muzzy_bytes) +=
          *present;
    } else if (regions <= 1) {
      pool.large_bytes += *present;
    } else {
      const uint64_t free =
          *present * std::min(free_regions, regions) / regions;
      pool.small_free_bytes += free;
      pool.small_live_bytes += *present - free;
    }
  }
  found->huge_known = found->huge_known && presence.scanned();
  return true;
}

}  // namespace

std::optional<Walk> walk(std::span<const Address_range> ranges) {
  const Page_scan scan;
  Walk found{};
  found.huge_known = bool{scan};
  for (const Address_range &range : ranges)
    if (!walk_range(range, scan, &found)) return std::nullopt;
  return found;
}

}  // namespace memdiag::extents
