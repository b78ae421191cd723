/*
  A profile in the form of pprof, for `go tool pprof`, Pyroscope, Parca and
  speedscope: the message Profile of profile.proto
  (https://github.com/google/pprof/blob/main/proto/profile.proto).

  Contents: a sample for each pair of site and digest; entries without a Site
  (Entry::site) are left out. Its values are inuse_objects/count and
  inuse_space/bytes, the unbiased estimates; readers must not scale them again.
  Its labels are pool, route, digest (hexadecimal, if known), and in seconds age
  (of the median sample) and oldest. Frames of the allocator are left out
  (frames_text.h). An address is one byte before the return address, which is
  within the call. Mappings have build ids and file offsets, so a reader with
  the debug package can add line numbers. Addresses and mappings are those of
  the files, as if each module was loaded at its link address. An account with
  PROCESS may read a profile, and does not learn where the process has its code.

  This code writes the message itself, whose fields are only numbers and
  strings. libprotobuf would add a code generator to the build and a library to
  the unit tests, for less code than pprof.cc has.

  Threads: any. Errors: std::bad_alloc.
*/

#ifndef MEMDIAG_PPROF_H
#define MEMDIAG_PPROF_H

#include <string>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/symbols.h"

namespace memdiag::profile {

/** The bytes of the message; pprof reads them as they are, or after gzip().
@param symbols  of this profile */
std::string pprof(const Profile &profile, const Symbols &symbols);

}  // namespace memdiag::profile

#endif  // MEMDIAG_PPROF_H
