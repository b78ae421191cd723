#include "plugin/memdiag/profile_file/file_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/base/record_file.h"
#include "plugin/memdiag/profile/modules.h"
#include "plugin/memdiag/profile_file/file_format.h"

namespace memdiag::profile {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return bytes[0] == std::byte{0} &&
         memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

/** A file's record, if it was written and is whole; counts damaged ones. */
template <typename Record>
bool take(std::span<const std::byte> part, size_t offset, Record *record,
          size_t *damaged) {
  if (part.size() < offset + sizeof(Record)) return false;
  if (is_zero(part.subspan(offset, sizeof(Record)))) return false;
  memcpy(record, part.data() + offset, sizeof(Record));
  if (record->checksum == checksum_of(*record)) return true;
  ++*damaged;
  return false;
}

template <size_t size>
std::string text_of(const char (&text)[size]) {
  return {text, strnlen(text, size)};
}

/** @return true: a TIMESTAMP can show it; those end in 2038 */
bool is_plausible(uint64_t time_us) {
  return time_us < uint64_t{INT32_MAX} * 1000000;
}

template <typename Record>
void take_snapshot(std::span<const std::byte> part, size_t offset,
                   std::vector<std::pair<uint64_t, Snapshot>> *snapshots,
                   size_t *damaged) {
  Record record;
  if (!take(part, offset, &record, damaged)) return;
  if (record.count > Record::room || !is_plausible(record.moment.time_us) ||
      !is_plausible(record.since_us) || record.reason > 2) {
    ++*damaged;
    return;
  }
  Snapshot snapshot{record.moment,
                    record.since_us,
                    record.sample_bytes,
                    static_cast<Record_reason>(record.reason),
                    record.ramp,
                    record.is_before_ramp != 0,
                    {record.amount, record.amount + record.count}};
  for (Site_amount &amount : snapshot.amounts) {
    if (!is_plausible(amount.oldest_us)) amount.oldest_us = 0;
    if (!is_plausible(amount.median_us)) amount.median_us = 0;
  }
  snapshots->emplace_back(record.sequence, std::move(snapshot));
}

std::vector<Snapshot> in_order(
    std::vector<std::pair<uint64_t, Snapshot>> snapshots) {
  std::stable_sort(
      snapshots.begin(), snapshots.end(),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<Snapshot> result;
  result.reserve(snapshots.size());
  for (auto &[sequence, snapshot] : snapshots)
    result.push_back(std::move(snapshot));
  return result;
}

/** Empty: nothing was recorded. */
std::optional<Recorded_run> parse_part(std::span<const std::byte> part,
                                       size_t *damaged) {
  Recorded_run run{};
  Run_record id;
  if (take(part, run_offset, &id, damaged)) {
    if (is_plausible(id.started_us) && is_plausible(id.ended_us)) {
      run.id = {id.started_us, id.process, id.version};
      run.ended_us = id.ended_us;
    } else {
      ++*damaged;
    }
  }
  for (size_t i = 0; i < file_modules; ++i) {
    Module_record module;
    if (take(part, modules_offset + i * sizeof module, &module, damaged))
      run.modules.push_back({text_of(module.path), text_of(module.build_id),
                             module.begin, module.end, module.load_bias,
                             module.file_offset, module.first_look,
                             module.last_look});
  }
  for (size_t i = 0; i < file_sites; ++i) {
    Site_record site;
    if (!take(part, sites_offset + i * sizeof site, &site, damaged)) continue;
    if (site.frames > file_frames || site.number == 0) {
      ++*damaged;
      continue;
    }
    run.sites.push_back({site.since_us,
                         {site.number,
                          text_of(site.pool),
                          text_of(site.route),
                          {site.addresses, site.addresses + site.frames},
                          0,
                          0,
                          0,
                          site.look}});
  }
  separate_modules(&run.modules, [&run](const auto &visit) {
    for (Recorded_run::Stored_site &stored : run.sites) visit(&stored.site);
  });
  std::sort(run.sites.begin(), run.sites.end(),
            [](const Recorded_run::Stored_site &a,
               const Recorded_run::Stored_site &b) {
              return std::pair{a.since_us, a.site.number} <
                     std::pair{b.since_us, b.site.number};
            });
  std::vector<std::pair<uint64_t, Snapshot>> snapshots;
  for (size_t i = 0; i < file_ramps * snapshots_of_ramp; ++i)
    take_snapshot<Ramp_record>(part, ramps_offset + i * sizeof(Ramp_record),
                               &snapshots, damaged);
  run.ramps = in_order(std::exchange(snapshots, {}));
  for (size_t i = 0; i < file_history; ++i)
    take_snapshot<History_record>(
        part, history_offset + i * sizeof(History_record), &snapshots, damaged);
  run.history = in_order(std::move(snapshots));
  if (run.ramps.empty() && run.history.empty()) return std::nullopt;
  return run;
}

std::optional<Header> header_of(std::span<const std::byte> file) {
  if (file.size() < header_bytes) return std::nullopt;
  Header header;
  memcpy(&header, file.data(), sizeof header);
  return header;
}

}  // namespace

bool parse(std::span<const std::byte> file, Contents *contents) {
  const auto header = header_of(file);
  if (!header || !is_of_this_build(*header)) return false;
  Contents found;
  found.former = parse_part(part_of(file, header_bytes), &found.damaged);
  found.latest = parse_part(part_of(file, this_part), &found.damaged);
  *contents = std::move(found);
  return true;
}

std::string load(const std::string &path, uint64_t server, Contents *contents) {
  *contents = {};
  std::vector<std::byte> bytes;
  int error;
  std::string remark = load_bytes(path, server, &bytes, &error);
  if (!bytes.empty() && parse(bytes, contents) && remark.empty())
    remark = remark_on_damage(path, contents->damaged);
  return remark;
}

std::string load_bytes(const std::string &path, uint64_t server,
                       std::vector<std::byte> *bytes, int *error) {
  *error = record_file::read_path(path, file_bytes, bytes);
  if (*error == ENOENT) {
    *error = 0;
    return "";
  }
  if (*error == EFBIG) return path + " is not a file of profiles";
  if (*error != 0) {
    bytes->clear();
    return path + " cannot be read: error " + reason(*error);
  }
  const auto header = header_of(*bytes);
  const bool is_known = header && is_of_this_build(*header);
  if (is_known && !record_file::is_of_another(header->server, server))
    return "";
  if (!bytes->empty()) *error = EBADMSG;
  bytes->clear();
  if (is_known) return path + record_file::of_another;
  return path +
         " is not of this build: it may be of another version, or damaged";
}

std::span<const std::byte> part_of(std::span<const std::byte> file,
                                   size_t offset) {
  if (file.size() <= offset) return {};
  return file.subspan(offset, std::min(file.size() - offset, part_bytes));
}

std::string remark_on_damage(const std::string &path, size_t damaged) {
  return damaged == 0 ? ""
                      : path + ": " + std::to_string(damaged) +
                            " records are half written or damaged";
}

}  // namespace memdiag::profile
