/*
  The name of memdiag_profile() and the formats that it returns. Free of the
  server's headers: profile_function.cc registers the function, and the
  reference page is made from here.

  Constants, whose functions change nothing; the caller owns what they return.
  Threads: any. Errors: std::bad_alloc. Units: bytes.
*/

#ifndef MEMDIAG_PROFILE_FORMATS_H
#define MEMDIAG_PROFILE_FORMATS_H

#include <array>
#include <string>

#include "plugin/memdiag/profile/folded.h"
#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/symbols.h"
#include "plugin/memdiag/profile_export/difference.h"
#include "plugin/memdiag/profile_export/flame_graph.h"
#include "plugin/memdiag/profile_export/gzip.h"
#include "plugin/memdiag/profile_export/pprof.h"

namespace memdiag {

inline constexpr const char *profile_function_name = "memdiag_profile";

struct Profile_format {
  /** The function's argument. */
  const char *name;
  const char *comment;
  /** @throws std::bad_alloc */
  std::string (*text)(const profile::Profile &, const profile::Symbols &);
  /** The difference from an earlier profile; nullptr: there is none.
  @throws std::bad_alloc */
  std::string (*difference)(const profile::Folded_bytes &earlier,
                            const profile::Profile &, const profile::Symbols &);
  const char *difference_comment;
};

inline constexpr auto profile_formats = std::to_array<Profile_format>({
    {"folded",
     "One line for each stack: pool, functions, a space, live bytes. "
     "flamegraph.pl, inferno and speedscope read it.",
     [](const profile::Profile &profile, const profile::Symbols &symbols) {
       return profile::folded(profile, symbols, profile::First_frame::pool);
     },
     [](const profile::Folded_bytes &earlier, const profile::Profile &profile,
        const profile::Symbols &symbols) {
       return profile::folded_difference(
           profile::difference(earlier, profile, symbols));
     },
     "One line for each stack that changed, the largest growth first: pool, "
     "functions, a space, bytes before, a space, bytes after. flamegraph.pl "
     "and inferno read it."},
    {"pprof",
     "profile.proto, gzipped and in base64. Decoded, go tool pprof, Pyroscope, "
     "Parca and speedscope read it.",
     [](const profile::Profile &profile, const profile::Symbols &symbols) {
       return profile::base64(profile::gzip(profile::pprof(profile, symbols)));
     },
     nullptr, "Not made: keep two profiles, and use go tool pprof -diff_base."},
    {"svg",
     "A flame graph in one file, which a browser shows without a network: "
     "colour by pool, width by live bytes. A click zooms, a field searches.",
     [](const profile::Profile &profile, const profile::Symbols &symbols) {
       return profile::flame_graph(profile, symbols);
     },
     [](const profile::Folded_bytes &earlier, const profile::Profile &profile,
        const profile::Symbols &symbols) {
       return profile::difference_flame_graph(
           profile::difference(earlier, profile, symbols), profile);
     },
     "A flame graph of the stacks that changed: red grew, blue shrank, grey is "
     "a change of less than two standard errors."},
});

/** The formats, for messages. */
inline std::string profile_format_names() {
  std::string names;
  for (const Profile_format &format : profile_formats) {
    if (!names.empty()) names += ", ";
    names += format.name;
  }
  return names;
}

}  // namespace memdiag

#endif  // MEMDIAG_PROFILE_FORMATS_H
