/*
  The layout of the flight recorder's file (profile_file.h): its records, and
  their places in the file. For the reader and the writer only.

  No state, no threads, no errors. Units: bytes; microseconds since the epoch.
*/

#ifndef MEMDIAG_FILE_FORMAT_H
#define MEMDIAG_FILE_FORMAT_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "plugin/memdiag/base/record_file.h"
#include "plugin/memdiag/profile_file/recorded_run.h"

namespace memdiag::profile {

/** The beginning of a file of this build. */
struct Header {
  char magic[8];
  uint32_t format;
  uint32_t run_bytes;
  uint32_t module_bytes;
  uint32_t modules;
  uint32_t site_bytes;
  uint32_t sites;
  uint32_t ramp_bytes;
  uint32_t ramps;
  uint32_t highs;
  uint32_t history_bytes;
  uint32_t history;
  uint32_t zero;
  /** Run_id::server. Files of earlier builds have 0. */
  uint64_t server;
};

/** Each record begins with its checksum, which covers the rest. */
struct Run_record {
  uint64_t checksum;
  uint64_t started_us;
  uint64_t ended_us;
  uint32_t process;
  uint32_t version;
};

struct Module_record {
  uint64_t checksum;
  uint64_t begin;
  uint64_t end;
  uint64_t load_bias;
  uint64_t file_offset;
  uint32_t first_look;
  uint32_t last_look;
  char build_id[136];
  char path[512];
};

struct Site_record {
  uint64_t checksum;
  uint64_t since_us;
  uint32_t number;
  uint32_t frames;
  uint32_t look;
  uint32_t zero;
  char pool[32];
  char route[96];
  uint64_t addresses[file_frames];
};

template <size_t amounts>
struct Snapshot_record {
  static constexpr size_t room = amounts;
  uint64_t checksum;
  uint64_t sequence;
  Moment moment;
  uint64_t since_us;
  uint64_t sample_bytes;
  uint32_t reason;
  uint32_t ramp;
  uint32_t is_before_ramp;
  uint32_t count;
  Site_amount amount[amounts];
};
using Ramp_record = Snapshot_record<ramp_amounts>;
using History_record = Snapshot_record<history_amounts>;

static_assert(std::has_unique_object_representations_v<Header>);
static_assert(std::has_unique_object_representations_v<Run_record>);
static_assert(std::has_unique_object_representations_v<Module_record>);
static_assert(std::has_unique_object_representations_v<Site_record>);
static_assert(std::has_unique_object_representations_v<Ramp_record>);
static_assert(std::has_unique_object_representations_v<History_record>);

constexpr Header this_build(uint64_t server) {
  return {{'m', 'e', 'm', 'd', 'i', 'a', 'g', 'p'},
          2,
          sizeof(Run_record),
          sizeof(Module_record),
          file_modules,
          sizeof(Site_record),
          file_sites,
          sizeof(Ramp_record),
          file_ramps,
          file_highs,
          sizeof(History_record),
          file_history,
          0,
          server};
}

/** @return true: its layout is known, whatever the server */
inline bool is_of_this_build(const Header &found) {
  const Header expected = this_build(found.server);
  return memcmp(&found, &expected, sizeof expected) == 0;
}

/** The record before a ramp comes first, then the ramp's highs. */
constexpr size_t snapshots_of_ramp = 1 + file_highs;

constexpr size_t header_bytes = 4096;
constexpr size_t run_offset = 0;
constexpr size_t modules_offset = run_offset + sizeof(Run_record);
constexpr size_t sites_offset =
    modules_offset + file_modules * sizeof(Module_record);
constexpr size_t ramps_offset = sites_offset + file_sites * sizeof(Site_record);
constexpr size_t history_offset =
    ramps_offset + file_ramps * snapshots_of_ramp * sizeof(Ramp_record);
constexpr size_t part_bytes =
    history_offset + file_history * sizeof(History_record);
constexpr size_t file_bytes = header_bytes + 2 * part_bytes;
/** The former run comes first. */
constexpr size_t this_part = header_bytes + part_bytes;

template <typename Record>
uint64_t checksum_of(const Record &record) {
  return record_file::fnv1a(
      std::as_bytes(std::span{&record, 1}).subspan(sizeof(uint64_t)));
}

}  // namespace memdiag::profile

#endif  // MEMDIAG_FILE_FORMAT_H
