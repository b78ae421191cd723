/*
  Collector: what the server was started with, for the ceiling and the advice
  about it.

  Threads: sessions. No locks: the server does not change it while it runs.
  Errors: what is not known is empty. Units: bytes.
*/

#ifndef MEMDIAG_START_SETTINGS_H
#define MEMDIAG_START_SETTINGS_H

#include <optional>

#include "plugin/memdiag/advice/finding.h"
#include "plugin/memdiag/base/reading.h"

namespace memdiag::start_settings {

/** innodb_buffer_pool_size as option files and the command line have it. InnoDB
itself keeps the rounded size only. Empty: none of them has it. */
Reading buffer_pool_asked_bytes();

/** The first folder of tmpdir that lies in memory. @throws std::bad_alloc */
std::optional<advisor::Folder_in_memory> tmpdir_in_memory();
/** Of the folder of InnoDB's temporary tablespaces. */
bool innodb_tmpdir_is_in_memory();

}  // namespace memdiag::start_settings

#endif  // MEMDIAG_START_SETTINGS_H
