#include "plugin/memdiag/server/bridge/perfschema_session.h"

#include <cstring>
#include <string_view>

#include "my_sys.h"
#include "plugin/memdiag/base/connect_attributes.h"
#include "storage/perfschema/pfs_events_statements.h"
#include "storage/perfschema/pfs_global.h"
#include "storage/perfschema/pfs_instr.h"
#include "storage/perfschema/table_session_connect.h"

namespace memdiag::perfschema {
namespace {

PFS_thread *known(PSI_thread *thread) {
  return pfs_initialized ? reinterpret_cast<PFS_thread *>(thread) : nullptr;
}

}  // namespace

std::optional<std::string> program_name(PSI_thread *thread) {
  PFS_thread *const pfs = known(thread);
  if (pfs == nullptr) return std::nullopt;
  pfs_optimistic_state state;
  pfs->m_session_lock.begin_optimistic_lock(&state);
  const uint length = pfs->m_session_connect_attrs_length;
  const uint charset_number = pfs->m_session_connect_attrs_cs_number;
  if (length > session_connect_attrs_size_per_thread ||
      pfs->m_session_connect_attrs == nullptr)
    return std::nullopt;
  std::string attributes(pfs->m_session_connect_attrs, length);
  if (!pfs->m_session_lock.end_optimistic_lock(&state)) return std::nullopt;
  const auto found = find_attribute(attributes, "program_name");
  if (!found) return std::nullopt;
  const CHARSET_INFO *const charset = get_charset(charset_number, MYF(0));
  if (charset == nullptr) return std::nullopt;
  char name[32 * 3];
  char value[1024 * 3];
  uint name_length;
  uint value_length;
  if (!read_nth_attr(found->data(), static_cast<uint>(found->size()), charset,
                     0, name, sizeof name, &name_length, value, sizeof value,
                     &value_length))
    return std::nullopt;
  return std::string(value, value_length);
}

std::optional<sessions::Digest> current_digest(PSI_thread *thread) {
  PFS_thread *const pfs = known(thread);
  if (pfs == nullptr) return std::nullopt;
  pfs_optimistic_state state;
  pfs->m_stmt_lock.begin_optimistic_lock(&state);
  if (pfs->m_events_statements_count == 0 || pfs->m_statement_stack == nullptr)
    return std::nullopt;
  const sql_digest_storage &storage =
      pfs->m_statement_stack[0].m_digest_storage;
  if (storage.is_empty()) return std::nullopt;
  sessions::Digest digest;
  static_assert(digest.size() == DIGEST_HASH_SIZE);
  memcpy(digest.data(), storage.m_hash, digest.size());
  if (!pfs->m_stmt_lock.end_optimistic_lock(&state)) return std::nullopt;
  return digest;
}

std::optional<uint64_t> memory_bytes(PSI_thread *thread) {
  const PFS_thread *const pfs = known(thread);
  if (pfs == nullptr) return std::nullopt;
  return pfs->m_session_all_memory_stat.m_total.m_size;
}

}  // namespace memdiag::perfschema
