/*
  Reads the flight recorder's file (profile_file.h). No bytes in it can do harm.

  Threads: any; the file may change meanwhile. Errors: a remark for the error
  log, or "". @throws std::bad_alloc
*/

#ifndef MEMDIAG_FILE_READER_H
#define MEMDIAG_FILE_READER_H

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "plugin/memdiag/profile_file/recorded_run.h"

namespace memdiag::profile {

/** Parses any bytes.
@return false: not a file of this build; contents are unchanged */
bool parse(std::span<const std::byte> file, Contents *contents);

/** Reads a file; one that does not exist is empty.
@param server  Run_id::server; a file of another is empty, too
@return a remark for the error log, or "" */
std::string load(const std::string &path, uint64_t server, Contents *contents);

/** @param error  out: of reading the file, 0 or an errno; EBADMSG: it is not a
              file of this build and server
@return a remark, or ""; bytes are empty after an error */
std::string load_bytes(const std::string &path, uint64_t server,
                       std::vector<std::byte> *bytes, int *error);

/** The part that begins there, as far as the file reaches. */
std::span<const std::byte> part_of(std::span<const std::byte> file,
                                   size_t offset);

std::string remark_on_damage(const std::string &path, size_t damaged);

}  // namespace memdiag::profile

#endif  // MEMDIAG_FILE_READER_H
