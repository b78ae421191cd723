/*
  One reading of all figures that the ledger's rows are made of, from the
  kernel: /proc/self/maps, mincore(), /proc/self/pagemap (process_memory.h,
  mysys/memdiag/pages).

  Either all mappings are read (read_mappings()), or the figures are
  extrapolated from an earlier reading and from jemalloc's statistics
  (expect()).

  Errors: a figure that cannot be read is empty, with a line in the caller's
  list of warnings. Ownership: an object serves one reading of one thread.
  Memory: vectors of the caller's thread; nothing comes from a pool. Units:
  bytes.
*/

#ifndef MEMDIAG_FIGURES_READER_H
#define MEMDIAG_FIGURES_READER_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/pages/presence.h"
#include "plugin/memdiag/ledger/ledger_rows.h"
#include "plugin/memdiag/ledger/process_memory.h"
#include "plugin/memdiag/ledger/slow_figures.h"

namespace memdiag::ledger {

class Figures_reader {
 public:
  /** @param warnings  must outlive the object */
  Figures_reader(const std::optional<Buffer_pool_pages> &buffer_pool,
                 std::vector<std::string> *warnings);

  const Slow_regions &slow_regions() const { return m_slow_regions; }

  /** Use slow figures of an earlier reading instead of reading them; empty:
  read them. */
  void reuse(const std::optional<Slow_figures> &earlier) { m_slow = earlier; }

  /** Extrapolate. Only regions that are quick to read are read.
  @return false: something needed is not known; call read_mappings() */
  bool expect(const All_pools &pools, const Walked &walked);

  /** @return false: the mappings cannot be read, and nothing is known */
  bool read_mappings();

  /** The slow figures that read_mappings() found; empty if one is missing. */
  std::optional<Slow_figures> slow_figures() const;

  /** The ranges that the allocator's extents may lie in, after
  read_mappings(). */
  const std::vector<Address_range> &anonymous() const { return m_anonymous; }
  /** The caller fills in rss_bytes, pools and walked; the object the others. */
  Figures &figures() { return m_figures; }

  /** Adds a warning with the text of errno, once for each subject. */
  void warn(const char *subject);

 private:
  void fill_in(const Slow_figures &slow);
  void count(const process_memory::Mapping &mapping, Address_range part,
             std::optional<Region_kind> region);
  File_bytes pages_of(const process_memory::Mapping &mapping,
                      Address_range part, std::optional<Region_kind> region,
                      bool file_backed);
  void add_anonymous(Address_range part);

  std::vector<std::string> *const m_warnings;
  const Slow_regions m_slow_regions;
  std::optional<Slow_figures> m_slow;
  Figures m_figures{};
  std::vector<Address_range> m_anonymous;
  std::optional<process_memory::Page_map> m_page_map;
  std::optional<Page_scan> m_scan;
};

}  // namespace memdiag::ledger

#endif  // MEMDIAG_FIGURES_READER_H
