#include "perfschema_high_water.h"

#include <algorithm>

#include "storage/perfschema/pfs_global.h"
#include "storage/perfschema/pfs_instr_class.h"
#include "storage/perfschema/pfs_visitor.h"

namespace memdiag::perfschema {

std::optional<uint64_t> high_water(std::string_view instrument) {
  if (!pfs_initialized) return std::nullopt;
  PFS_memory_class *found = nullptr;
  for (PSI_memory_key key = 1; found == nullptr; ++key) {
    PFS_memory_class *const klass = find_memory_class(key);
    if (klass == nullptr) return std::nullopt;
    if (instrument ==
        std::string_view{klass->m_name.str(), klass->m_name.length()})
      found = klass;
  }
  if (!found->m_enabled) return std::nullopt;
  PFS_connection_memory_visitor visitor(found);
  const bool by_thread = !found->is_global();
  PFS_connection_iterator::visit_global(by_thread, false, by_thread, by_thread,
                                        false, &visitor);
  visitor.m_stat.normalize(true);
  return static_cast<uint64_t>(
      std::max<ssize_t>(visitor.m_stat.m_high_size_used, 0));
}

}  // namespace memdiag::perfschema
