#include "plugin/memdiag/server/bridge/start_settings.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <cstdint>
#include <span>

#include "my_sys.h"
#include "plugin/memdiag/advice/start_option.h"
#include "sql/mysqld.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag::start_settings {

Reading buffer_pool_asked_bytes() {
  // A copy that the server keeps for components: options of files come first.
  const std::span<const char *const> arguments(
      argv_cached, static_cast<size_t>(argc_cached));
  return advisor::last_number(arguments, "innodb-buffer-pool-size");
}

std::optional<advisor::Folder_in_memory> tmpdir_in_memory() {
  for (unsigned i = 0; i <= mysql_tmpdir_list.max; ++i) {
    const char *const path = mysql_tmpdir_list.list[i];
    struct statfs about;
    if (statfs(path, &about) != 0 || about.f_type != TMPFS_MAGIC) continue;
    return advisor::Folder_in_memory{
        path, static_cast<uint64_t>(about.f_blocks - about.f_bfree) *
                  static_cast<uint64_t>(about.f_bsize)};
  }
  return std::nullopt;
}

bool innodb_tmpdir_is_in_memory() {
  struct statfs about;
  const char *const path = innodb::temporary_tablespaces_folder();
  return path != nullptr && statfs(path, &about) == 0 &&
         about.f_type == TMPFS_MAGIC;
}

}  // namespace memdiag::start_settings
