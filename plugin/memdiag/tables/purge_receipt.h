/*
  The name of memdiag_purge() and its receipt. Free of the server's headers:
  purge_function.cc registers the function, and the reference page is made from
  here.

  Constants, and pure functions whose results the caller owns. Threads: any.
  Errors: std::bad_alloc. Units: those of each field.
*/

#ifndef MEMDIAG_PURGE_RECEIPT_H
#define MEMDIAG_PURGE_RECEIPT_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mysys/memdiag/pools/pool.h"
#include "mysys/memdiag/purging/receipt.h"
#include "plugin/memdiag/base/unit.h"

namespace memdiag {

inline constexpr const char *purge_function_name = "memdiag_purge";

/** The argument that stands for every pool. */
inline constexpr const char *all_pools_name = "all";

/** One member of the JSON object, besides "pool". */
struct Receipt_field {
  const char *name;
  Unit unit;
  const char *comment;
  /** Empty becomes null: not known. */
  std::optional<uint64_t> (*value)(const purging::Receipt &);
};

inline constexpr auto receipt_fields = std::to_array<Receipt_field>({
    {"rss_bytes_before", Unit::bytes,
     "RSS of the process (VmRSS) before the purge.",
     [](const purging::Receipt &receipt) -> std::optional<uint64_t> {
       if (receipt.error != 0 || !receipt.rss_is_known()) return std::nullopt;
       return receipt.rss_before_bytes;
     }},
    {"rss_bytes_after", Unit::bytes, "RSS right after it.",
     [](const purging::Receipt &receipt) -> std::optional<uint64_t> {
       if (receipt.error != 0 || !receipt.rss_is_known()) return std::nullopt;
       return receipt.rss_after_bytes;
     }},
    {"released_bytes", Unit::bytes,
     "The difference, and no more than the purged arenas gave back; 0 if "
     "more was allocated meanwhile than released.",
     [](const purging::Receipt &receipt) -> std::optional<uint64_t> {
       if (receipt.error != 0) return std::nullopt;
       return receipt.released_bytes();
     }},
    {"microseconds", Unit::microseconds, "Duration of the purge.",
     [](const purging::Receipt &receipt) -> std::optional<uint64_t> {
       return receipt.duration_us;
     }},
    {"arenas", Unit::count, "Number of purged arenas.",
     [](const purging::Receipt &receipt) -> std::optional<uint64_t> {
       return receipt.arenas;
     }},
});

/** The receipt as a JSON object.
@param pool  a name from the list of pools, or all_pools_name: it needs no
             escaping */
inline std::string to_json(std::string_view pool,
                           const purging::Receipt &receipt) {
  std::string json = "{\"pool\":\"";
  json += pool;
  json += '"';
  for (const Receipt_field &field : receipt_fields) {
    json += ",\"";
    json += field.name;
    json += "\":";
    const std::optional<uint64_t> value = field.value(receipt);
    json += value ? std::to_string(*value) : "null";
  }
  json += '}';
  return json;
}

/** The names that memdiag_purge() accepts, for messages. */
inline std::string purgeable_names() {
  std::string names;
  for (const Pool_spec &spec : pool_specs) {
    names += spec.name;
    names += ", ";
  }
  return names + all_pools_name;
}

}  // namespace memdiag

#endif  // MEMDIAG_PURGE_RECEIPT_H
