/*
  Trees of files of the kernel: limits of memory and processors, what is used,
  and pressure. The texts of the input are the files, in this order.
*/

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "mysys/memdiag/pools/cpu_quota.h"
#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/host/kept_reader.h"
#include "plugin/memdiag/host/limit_reader.h"
#include "plugin/memdiag/unittest/fuzz/fuzz.h"

namespace {

using namespace memdiag;
using memdiag_test::require;

const std::string top = "/sys/fs/cgroup";
const std::string group = top + "/mysql";
const std::string files[] = {"/proc/self/cgroup",
                             "/proc/self/mountinfo",
                             "/proc/meminfo",
                             "/proc/self/status",
                             "/proc/pressure/memory",
                             group + "/memory.max",
                             group + "/memory.current",
                             group + "/memory.stat",
                             group + "/memory.pressure",
                             group + "/cpu.max",
                             top + "/memory.max",
                             top + "/memory.current",
                             group + "/memory.limit_in_bytes",
                             group + "/memory.usage_in_bytes",
                             group + "/cpu.cfs_quota_us",
                             group + "/cpu.cfs_period_us"};

/** The files, of which only those are written that changed. */
class Tree {
 public:
  Tree() {
    for (const std::string &file : files) m_tree.write(file, "");
  }
  void write(size_t i, std::string_view text) {
    if (m_texts[i] == text) return;
    m_texts[i] = text;
    const int file = open(at(i).c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    require(file >= 0 && ::write(file, text.data(), text.size()) ==
                             static_cast<ssize_t>(text.size()));
    close(file);
  }
  std::string at(size_t i) const { return m_tree.at(files[i]); }
  std::string root() const { return m_tree.at(""); }

 private:
  memdiag_test::File_tree m_tree;
  std::string m_texts[std::size(files)];
};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  // It is not removed: the fuzzer ends by _exit().
  static Tree tree;
  const auto texts = memdiag_test::texts_of(bytes, size);
  for (size_t i = 0; i < std::size(files); ++i)
    tree.write(i, i < texts.size() ? texts[i] : std::string_view{});

  host::Limit_reader limits(tree.root());
  for (const uint64_t now_us : {0, 1}) {
    const host::Limit_figures figures = limits.read(now_us);
    if (figures.tightest)
      require(figures.tightest->usage_bytes <= figures.tightest->limit_bytes);
  }
  require(pools::cpus_of_quota(tree.root().c_str()) >= 1);
  for (const int version : {1, 2}) {
    host::Kept_reader kept;
    if (kept.open_group(tree.at(6), tree.at(7), tree.at(5), version, 1 << 20) ==
        0)
      (void)kept.read(0, 0);
  }
  const host::Report report = host::collect({tree.root()});
  if (report.figures.tightest)
    require(report.figures.tightest->usage_bytes <=
            report.figures.tightest->limit_bytes);
  return 0;
}
