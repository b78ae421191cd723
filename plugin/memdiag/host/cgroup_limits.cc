#include "plugin/memdiag/host/cgroup_limits.h"

#include <algorithm>
#include <utility>

namespace memdiag::host {

using kernel_text::unlimited;

Group_search find_group(const kernel_text::Memory_cgroup &of,
                        const std::vector<kernel_text::Mount> &mounts) {
  Group_search found;
  // The uppermost group has no limit, and a machine need not mount any.
  found.is_hidden = of.path != "/";
  // The last fitting mount wins: it covers earlier ones at the same place.
  for (const kernel_text::Mount &mount : mounts) {
    const bool fits = of.version == 2 ? mount.type == "cgroup2"
                                      : mount.type == "cgroup" &&
                                            kernel_text::has_word(
                                                mount.super_options, "memory");
    if (!fits) continue;
    found.is_hidden = !found.group;
    const auto rest = kernel_text::below(mount.root, of.path);
    if (!rest) continue;
    found = {Group{of.version, mount.point + std::string{*rest}, mount.point},
             false};
  }
  return found;
}

Cgroup_limits cgroup_limits(const Group &group,
                            std::optional<uint64_t> hierarchical_bytes,
                            const Read_file &read, Limits which) {
  const std::string &own = group.folder;
  std::vector<const char *> names{
      group.version == 2 ? "/memory.max" : "/memory.limit_in_bytes"};
  if (group.version == 2 && which == Limits::kill_or_throttle)
    names.push_back("/memory.high");
  Cgroup_limits limits{unlimited, own, "", {}};
  for (std::string folder = own;; folder.resize(folder.rfind('/'))) {
    for (const char *const name : names) {
      const std::string file = folder + name;
      const auto text = read(file);
      if (!text) continue;
      if (limits.source.empty()) limits.source = file;
      const auto bytes = kernel_text::limit(*text);
      if (!bytes) return {std::nullopt, own, file, {}};
      if (*bytes != unlimited) limits.limited.push_back({folder, *bytes});
      if (*bytes < *limits.lowest_bytes) {
        limits.lowest_bytes = bytes;
        limits.lowest_folder = folder;
        limits.source = file;
      }
    }
    if (folder.size() <= group.top.size()) break;
  }
  if (hierarchical_bytes && limits.lowest_bytes != hierarchical_bytes) {
    // The kernel knows the groups that cannot be seen, and whether a group is
    // bound by those above it (use_hierarchy).
    limits = {hierarchical_bytes, own, own + "/memory.stat", {}};
    if (*hierarchical_bytes != unlimited)
      limits.limited.push_back({own, *hierarchical_bytes});
  }
  return limits;
}

std::string usage_file(const std::string &folder, int version) {
  return folder + (version == 2 ? "/memory.current" : "/memory.usage_in_bytes");
}

std::vector<Room> rooms_of(const std::vector<Limited_group> &groups,
                           int version, const Read_file &read) {
  std::vector<Room> rooms;
  for (const Limited_group &group : groups) {
    const auto text = read(usage_file(group.folder, version));
    if (!text) continue;
    Room room{std::nullopt, group.folder, group.limit_bytes};
    if (const auto usage = kernel_text::amount(*text)) {
      const uint64_t used = kernel_text::without_cache(
          *usage, read(group.folder + "/memory.stat").value_or(""), version);
      room.bytes = group.limit_bytes - std::min(group.limit_bytes, used);
    }
    rooms.push_back(std::move(room));
  }
  return rooms;
}

std::optional<Room> least_room(const std::vector<Room> &rooms) {
  // An empty figure is below every other one.
  const auto least = std::min_element(
      rooms.begin(), rooms.end(),
      [](const Room &a, const Room &b) { return a.bytes < b.bytes; });
  return least == rooms.end() ? std::nullopt : std::optional(*least);
}

}  // namespace memdiag::host
