/*
  A hash of 64 bits: the finalizer of MurmurHash3 (Appleby, public domain). Each
  bit of the result depends on each bit of the input.

  Pure.
*/

#ifndef MEMDIAG_HASH_H
#define MEMDIAG_HASH_H

#include <cstdint>

namespace memdiag {

constexpr uint64_t mixed(uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return value ^ value >> 33;
}

}  // namespace memdiag

#endif  // MEMDIAG_HASH_H
