#include "plugin/memdiag/host/host.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <span>
#include <utility>

#include "mysys/memdiag/base/fault.h"
#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/base/unit.h"
#include "plugin/memdiag/host/cgroup_limits.h"
#include "plugin/memdiag/host/host_items.h"
#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag::host {
namespace {

using namespace items;

class Collector {
 public:
  explicit Collector(const Places &places) : m_places(places) {}

  Report run() {
    lines("/proc/meminfo", meminfo);
    lines("/proc/self/status", status);
    faults();
    m_mounts = mounts();
    cgroup();
    pressure("machine", "/proc/pressure/memory");
    if (m_cgroup_version == 2)
      pressure("cgroup", m_cgroup + "/memory.pressure");
    files("/proc/sys/vm/", "vm.", vm);
    files("/sys/kernel/mm/transparent_hugepage/", "transparent_hugepage.",
          transparent_hugepage);
    files("/proc/self/", "", oom);
    numa();
    device();
    fill_figures();
    return std::move(m_report);
  }

 private:
  /** @return the file's text, "" if it cannot be read; empty: there is no such
  file */
  std::optional<std::string> read(const std::string &file) {
    std::string text;
    const int error = fault::at(fault::Point::file, fault::digest_of(file))
                          ? EIO
                          : kernel_file::read(m_places.root + file, &text);
    // EOPNOTSUPP: the kernel has pressure stall information switched off.
    if (error == ENOENT || error == ENOTDIR || error == EOPNOTSUPP)
      return std::nullopt;
    ++m_report.files;
    if (error != 0) {
      note_failure(file, error);
      text.clear();
    }
    return text;
  }

  bool has_failed(const std::string &file) const {
    return std::any_of(
        m_report.failed.begin(), m_report.failed.end(),
        [&file](const Failed_file &failed) { return failed.file == file; });
  }

  void note_failure(const std::string &file, int error) {
    if (!has_failed(file)) m_report.failed.push_back({file, error});
  }

  /** Adds a row. An empty cell of a file that is there is a failure. */
  void add(const char *subject, std::string name, Unit unit,
           const std::string &source, Cell figure) {
    if (!figure.number && !figure.value) note_failure(source, EBADMSG);
    m_report.rows.push_back({subject, std::move(name), figure.number,
                             std::move(figure.value), unit_name(unit), source});
  }

  /** Figures of a file with one figure in each line. A kernel may lack some; a
  file with none of them has another form.
  @param key_prefix   what stands before each key
  @param name_prefix  what stands before it in the row's name instead
  @return the file's text */
  std::string lines(const std::string &file, std::span<const Item> items,
                    const std::string &name_prefix = "",
                    const std::string &key_prefix = "") {
    auto text = read(file);
    if (!text) return {};
    const auto value = [&](const Item &item) {
      return kernel_text::value_of(*text, key_prefix + item.key);
    };
    const bool none = std::none_of(items.begin(), items.end(), value);
    for (const Item &item : items)
      if (const auto found = value(item); found || none)
        add(item.subject, name_prefix + item.key, item.unit, file,
            found ? item.parse(*found) : Cell{});
    return std::move(*text);
  }

  /** Figures with a file each. @param folder  ends with a slash */
  void files(const std::string &folder, const std::string &name_prefix,
             std::span<const Item> items) {
    for (const Item &item : items)
      if (const auto text = read(folder + item.key))
        add(item.subject, name_prefix + item.key, item.unit, folder + item.key,
            item.parse(*text));
  }

  void faults() {
    const std::string file = "/proc/self/stat";
    const auto text = read(file);
    if (!text) return;
    for (const auto &[name, n] :
         {std::pair{"minor_faults", 10u}, std::pair{"major_faults", 12u}})
      add("process", name, Unit::count, file,
          amount(kernel_text::stat_field(*text, n).value_or("")));
  }

  std::vector<kernel_text::Mount> mounts() {
    std::vector<kernel_text::Mount> all;
    const auto text = read(m_mountinfo);
    std::string_view rest = text ? *text : std::string_view{};
    std::string_view line;
    while (kernel_text::cut(&rest, '\n', &line)) {
      if (auto mount = kernel_text::mount(line))
        all.push_back(std::move(*mount));
      else
        note_failure(m_mountinfo, EBADMSG);
    }
    return all;
  }

  void cgroup() {
    const std::string file = "/proc/self/cgroup";
    const auto text = read(file);
    if (!text) return;
    const auto found = kernel_text::memory_cgroup(*text);
    if (!found || has_failed(file)) {
      add("cgroup", "path", Unit::none, file, {});
      return;
    }
    if (found->version == 0) return;
    add("cgroup", "version", Unit::none, file,
        {static_cast<double>(found->version), std::nullopt});
    add("cgroup", "path", Unit::none, file,
        {std::nullopt, std::string{found->path}});

    const auto [group, is_hidden] = find_group(*found, m_mounts);
    m_is_hidden = is_hidden;
    if (!group) return;
    m_cgroup = group->folder;
    m_cgroup_version = group->version;
    const std::string folder = m_cgroup + '/';
    if (m_cgroup_version == 2) {
      files(folder, "", cgroup_v2_files);
      lines(folder + "memory.events", cgroup_v2_events, "memory.events.");
      m_memory_stat =
          lines(folder + "memory.stat", cgroup_v2_stat, "memory.stat.");
    } else {
      files(folder, "", cgroup_v1_files);
      lines(folder + "memory.oom_control", cgroup_v1_oom,
            "memory.oom_control.");
      m_memory_stat =
          lines(folder + "memory.stat", cgroup_v1_stat, "memory.stat.");
    }
    limits(*group);
  }

  /** The lowest limit and its group's use, and the least room. */
  void limits(const Group &group) {
    std::optional<uint64_t> hierarchical;
    if (const Row *const row =
            find(m_report, "cgroup", "memory.stat.hierarchical_memory_limit");
        row != nullptr && (row->number || row->value))
      hierarchical = row->number ? static_cast<uint64_t>(*row->number)
                                 : kernel_text::unlimited;
    const Read_file read_file = [this](const std::string &file) {
      return file == m_cgroup + "/memory.stat" ? m_memory_stat : read(file);
    };
    const Cgroup_limits found = cgroup_limits(group, hierarchical, read_file);
    if (found.source.empty()) return;
    add("cgroup", "effective_limit", Unit::bytes, found.source,
        found.lowest_bytes == kernel_text::unlimited
            ? Cell{std::nullopt, "max"}
            : cell(found.lowest_bytes));
    const std::string usage = usage_file(found.lowest_folder, m_cgroup_version);
    if (const auto text = read(usage))
      add("cgroup", "effective_usage", Unit::bytes, usage, amount(*text));
    const auto room =
        least_room(rooms_of(found.limited, m_cgroup_version, read_file));
    if (!room) return;
    const std::string source = usage_file(room->folder, m_cgroup_version);
    add("cgroup", "effective_room", Unit::bytes, source, cell(room->bytes));
    // Without its room it is not known to be the tightest group.
    add("cgroup", "room_limit", Unit::bytes, source,
        cell(room->bytes ? std::optional{room->limit_bytes} : std::nullopt));
    if (room->bytes)
      m_report.figures.tightest =
          Limit{source, room->limit_bytes, room->limit_bytes - *room->bytes};
  }

  void pressure(const std::string &whose, const std::string &file) {
    const auto text = read(file);
    if (!text) return;
    for (const char *const who : {"some", "full"}) {
      const auto line = kernel_text::value_of(*text, who).value_or("");
      for (const Item &item : pressure_fields)
        add(item.subject, whose + '.' + who + '.' + item.key, item.unit, file,
            item.parse(kernel_text::field(line, item.key).value_or("")));
    }
  }

  void numa() {
    const std::string folder = "/sys/devices/system/node/";
    const std::string list = folder + "has_memory";
    const auto text = read(list);
    if (!text) return;
    const auto nodes = kernel_text::nodes(*text);
    add("numa", "nodes", Unit::count, list,
        nodes ? cell(std::optional{nodes->size()}) : Cell{});
    if (!nodes) return;
    for (const unsigned node : *nodes) {
      const std::string n = std::to_string(node);
      lines(folder + "node" + n + "/meminfo", node_lines, "node" + n + '.',
            "Node " + n + ' ');
    }
    if (nodes->size() == 1) return;
    if (m_cgroup_version == 2) numa_of_cgroup(*nodes);
  }

  void numa_of_cgroup(const std::vector<unsigned> &nodes) {
    const std::string file = m_cgroup + "/memory.numa_stat";
    const auto text = read(file);
    if (!text) return;
    for (const char *const key : numa_stat_lines) {
      const auto line = kernel_text::value_of(*text, key).value_or("");
      for (const unsigned node : nodes) {
        const std::string n = std::to_string(node);
        add("numa", "node" + n + ".cgroup." + key, Unit::bytes, file,
            amount(kernel_text::field(line, "N" + n).value_or("")));
      }
    }
  }

  void device() {
    char path[PATH_MAX];
    struct stat info;
    if (m_places.data_directory.empty()) return;
    if (realpath(m_places.data_directory.c_str(), path) == nullptr ||
        stat(path, &info) != 0) {
      if (errno != ENOENT) note_failure(m_places.data_directory, errno);
      return;
    }
    const std::string number = std::to_string(major(info.st_dev)) + ':' +
                               std::to_string(minor(info.st_dev));
    const auto word = [this](const char *name, const std::string &source,
                             std::string value) {
      add("device", name, Unit::none, source, {std::nullopt, std::move(value)});
    };
    word("number", path, number);
    const std::string block = "/sys/dev/block/" + number;
    // A partition has no queue of its own.
    for (const char *const queue : {"/queue/scheduler", "/../queue/scheduler"})
      if (const auto text = read(block + queue)) {
        add("device", "scheduler", Unit::none, block + queue, chosen(*text));
        break;
      }
    const kernel_text::Mount *mount = nullptr;
    // The deepest mount wins, and the last one at the same place.
    for (const kernel_text::Mount &other : m_mounts)
      if (kernel_text::below(other.point, path) &&
          (mount == nullptr || other.point.size() >= mount->point.size()))
        mount = &other;
    if (mount == nullptr) return;
    word("mount_point", m_mountinfo, mount->point);
    word("file_system", m_mountinfo, mount->type);
    word("mount_options", m_mountinfo, mount->options);
    word("file_system_options", m_mountinfo, mount->super_options);
  }

  void fill_figures() {
    const auto number = [this](const char *subject, const char *name) {
      const Row *const row = find(m_report, subject, name);
      return row == nullptr ? std::nullopt : row->number;
    };
    const auto unsigned_number = [&number](const char *subject,
                                           const char *name) {
      const auto value = number(subject, name);
      return value ? std::optional{static_cast<uint64_t>(*value)}
                   : std::nullopt;
    };
    const bool v2 = m_cgroup_version == 2;
    Figures &figures = m_report.figures;
    figures.machine_bytes = unsigned_number("memory", "MemTotal");
    figures.available_bytes = unsigned_number("memory", "MemAvailable");
    figures.resident_bytes = unsigned_number("process", "VmRSS");
    figures.peak_resident_bytes = unsigned_number("process", "VmHWM");
    figures.resident_file_bytes = unsigned_number("process", "RssFile");
    figures.shared_bytes = unsigned_number(
        "cgroup", v2 ? "memory.stat.shmem" : "memory.stat.total_shmem");
    figures.hugetlb_bytes = unsigned_number("process", "HugetlbPages");
    figures.swapped_bytes = unsigned_number("process", "VmSwap");
    figures.limit_bytes = unsigned_number("cgroup", "effective_limit");
    const Row *const limit = find(m_report, "cgroup", "effective_limit");
    figures.is_limit_unsure =
        m_is_hidden || has_failed("/proc/self/cgroup") ||
        (limit == nullptr ? has_failed(m_mountinfo)
                          : !limit->number && !limit->value) ||
        (m_cgroup_version == 1 && has_failed(m_cgroup + "/memory.stat"));
    if (const Row *const usage = find(m_report, "cgroup", "effective_usage");
        usage != nullptr && usage->number) {
      const auto bytes = static_cast<uint64_t>(*usage->number);
      const std::string folder =
          usage->source.substr(0, usage->source.rfind('/'));
      const std::string stat = folder == m_cgroup
                                   ? m_memory_stat
                                   : read(folder + "/memory.stat").value_or("");
      figures.usage_bytes =
          kernel_text::without_cache(bytes, stat, m_cgroup_version);
    }
    figures.oom_kills =
        unsigned_number("cgroup", v2 ? "memory.events.oom_kill"
                                     : "memory.oom_control.oom_kill");
    if (const Row *const thp =
            find(m_report, "huge_pages", "transparent_hugepage.enabled"))
      figures.transparent_huge_pages = thp->value;
    figures.pressure_some_avg10 = number("pressure", "cgroup.some.avg10");
    figures.is_pressure_of_cgroup = figures.pressure_some_avg10.has_value();
    if (!figures.is_pressure_of_cgroup)
      figures.pressure_some_avg10 = number("pressure", "machine.some.avg10");
    if (const auto adjustment = number("oom", "oom_score_adj"))
      figures.oom_score_adj = static_cast<int64_t>(*adjustment);
    figures.overcommit = unsigned_number("kernel", "vm.overcommit_memory");
    figures.swappiness = unsigned_number("kernel", "vm.swappiness");
  }

  const std::string m_mountinfo = "/proc/self/mountinfo";
  const Places &m_places;
  Report m_report;
  std::vector<kernel_text::Mount> m_mounts;
  /** The control group's folder, if its version is not 0. */
  std::string m_cgroup;
  /** The text of its memory.stat. */
  std::string m_memory_stat;
  int m_cgroup_version = 0;
  /** Group_search::is_hidden */
  bool m_is_hidden = false;
};

}  // namespace

Report collect(const Places &places) { return Collector(places).run(); }

std::optional<uint64_t> limit_bytes(const Figures &figures) {
  return figures.is_limit_unsure
             ? std::nullopt
             : lower(figures.limit_bytes, figures.machine_bytes);
}

const Row *find(const Report &report, std::string_view subject,
                std::string_view name) {
  const auto row = std::find_if(
      report.rows.begin(), report.rows.end(), [&](const Row &candidate) {
        return candidate.subject == subject && candidate.name == name;
      });
  return row == report.rows.end() ? nullptr : &*row;
}

}  // namespace memdiag::host
