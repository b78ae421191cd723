#include "mysys/memdiag/ceiling/taker.h"

namespace memdiag::ceiling {

constinit Account account;
constinit Rounds rounds;
constinit Tokens tokens;
constinit Counters counters;

}  // namespace memdiag::ceiling
