#include "plugin/memdiag/host/limit_reader.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::host {
namespace {

constexpr uint64_t find_again_us = 60'000'000;

}  // namespace

Reading limit_bytes(const Limit_figures &figures) {
  return figures.is_unsure
             ? std::nullopt
             : lower(figures.group_limit_bytes, figures.machine_bytes);
}

/** @return "" if it cannot be read; empty: there is no such file */
std::optional<std::string> Limit_reader::read_text(const std::string &file) {
  std::string text;
  const int error = kernel_file::read(m_root + file, &text);
  // ENODEV: the group was removed while its file was open.
  if (error == ENOENT || error == ENOTDIR || error == ENODEV)
    return std::nullopt;
  if (error != 0) text.clear();
  m_failed |= error != 0;
  return text;
}

/** @return false: it cannot be known now, and the group is as before */
bool Limit_reader::find(const std::string &membership) {
  const auto of = kernel_text::memory_cgroup(membership);
  if (!of) return false;
  m_failed = false;
  const std::string mountinfo = read_text("/proc/self/mountinfo").value_or("");
  std::vector<kernel_text::Mount> mounts;
  std::string_view rest = mountinfo;
  std::string_view line;
  while (kernel_text::cut(&rest, '\n', &line))
    if (auto mount = kernel_text::mount(line))
      mounts.push_back(std::move(*mount));
  if (m_failed) return false;
  Group_search found;
  if (of->version != 0) found = find_group(*of, mounts);
  m_group = std::move(found.group);
  m_is_hidden = found.is_hidden;
  return true;
}

Limit_figures Limit_reader::read(uint64_t now_us) {
  Limit_figures figures = read_files(now_us);
  // A limit that is not known may leave less.
  if (figures.is_unsure) figures.room_bytes.reset();
  return figures;
}

Limit_figures Limit_reader::read_files(uint64_t now_us) {
  Limit_figures figures;
  m_failed = false;
  std::string membership = read_text("/proc/self/cgroup").value_or("");
  if (!m_failed && (!m_found_us || now_us - *m_found_us >= find_again_us ||
                    membership != m_membership)) {
    m_found_us.reset();
    if (membership != m_membership) m_membership.reset();
    if (find(membership)) {
      m_membership = std::move(membership);
      m_found_us = now_us;
    }
  }
  figures.is_unsure = !m_membership || m_is_hidden;
  if (figures.is_unsure) m_group.reset();
  const std::string meminfo = read_text("/proc/meminfo").value_or("");
  figures.machine_bytes = kernel_text::amount_of(meminfo, "MemTotal");
  figures.available_bytes = kernel_text::amount_of(meminfo, "MemAvailable");
  figures.room_bytes = figures.available_bytes;
  if (!m_group) return figures;

  // Before any use: cache that comes meanwhile then counts as kept.
  const std::string own_file = m_group->folder + "/memory.stat";
  m_failed = false;
  const std::optional<std::string> own_stat = read_text(own_file);
  const Read_file read_file = [&](const std::string &file) {
    return file == own_file ? own_stat : read_text(file);
  };
  Reading hierarchical;
  if (m_group->version == 1 && own_stat) {
    figures.is_unsure = m_failed;
    if (const auto text =
            kernel_text::value_of(*own_stat, "hierarchical_memory_limit"))
      hierarchical = kernel_text::limit(*text);
  }
  const Cgroup_limits limits =
      cgroup_limits(*m_group, hierarchical, read_file, m_which);
  if (limits.source.empty()) {
    // No group has a limit's file. Was it removed?
    m_found_us.reset();
    return figures;
  }
  if (!limits.lowest_bytes) figures.is_unsure = true;
  if (limits.lowest_bytes != kernel_text::unlimited)
    figures.group_limit_bytes = limits.lowest_bytes;
  figures.folder = limits.lowest_folder;
  std::vector<Room> rooms =
      rooms_of(limits.limited, m_group->version, read_file);
  if (const auto room = least_room(rooms); room && room->bytes)
    figures.tightest =
        Limit{usage_file(room->folder, m_group->version), room->limit_bytes,
              room->limit_bytes - *room->bytes};
  const std::string usage = usage_file(figures.folder, m_group->version);
  const auto stat = read_file(figures.folder + "/memory.stat");
  if (const auto text = read_text(usage)) {
    figures.usage_file = usage;
    const auto used = kernel_text::amount(*text);
    const auto clean =
        stat ? kernel_text::clean_cache(*stat, m_group->version) : std::nullopt;
    if (used && clean) figures.kept_bytes = *used - std::min(*used, *clean);
  }
  const auto narrow = [&figures](uint64_t limit_bytes, uint64_t used_bytes) {
    const uint64_t room = limit_bytes - std::min(limit_bytes, used_bytes);
    figures.room_bytes = std::min(figures.room_bytes.value_or(room), room);
  };
  // That group's room comes from kept_bytes.
  if (figures.kept_bytes)
    std::erase_if(rooms, [&figures](const Room &room) {
      return room.folder == figures.folder;
    });
  if (const auto room = least_room(rooms); room && room->bytes)
    narrow(room->limit_bytes, room->limit_bytes - *room->bytes);
  if (!figures.group_limit_bytes) return figures;
  if (figures.kept_bytes)
    narrow(*figures.group_limit_bytes, *figures.kept_bytes);
  else
    figures.room_bytes.reset();
  return figures;
}

}  // namespace memdiag::host
