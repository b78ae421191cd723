/* A folder with files for a test, as /proc and /sys have them. */

#ifndef MEMDIAG_FILE_TREE_H
#define MEMDIAG_FILE_TREE_H

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

namespace memdiag_test {

/** Removed at the end. */
class File_tree {
 public:
  File_tree() {
    std::string name = testing::TempDir() + "memdiag_tree_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) abort();
    m_root = std::filesystem::canonical(name);
  }
  ~File_tree() {
    std::error_code ignored;
    std::filesystem::remove_all(m_root, ignored);
  }
  File_tree(const File_tree &) = delete;
  File_tree &operator=(const File_tree &) = delete;

  void write(const std::string &file, const std::string &text) {
    std::filesystem::create_directories(
        std::filesystem::path(at(file)).parent_path());
    std::ofstream(at(file)) << text;
    m_texts[file] = text;
  }
  void remove(const std::string &file) {
    std::filesystem::remove_all(at(file));
  }
  /** The file exists and cannot be read, by root either: EISDIR. */
  void make_unreadable(const std::string &file) {
    remove(file);
    std::filesystem::create_directory(at(file));
  }
  std::string at(const std::string &file) const {
    return m_root.string() + file;
  }
  const std::map<std::string, std::string> &texts() const { return m_texts; }

 private:
  std::filesystem::path m_root;
  std::map<std::string, std::string> m_texts;
};

}  // namespace memdiag_test

#endif  // MEMDIAG_FILE_TREE_H
