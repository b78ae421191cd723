/* The options memdiag_routes and memdiag_disabled_pools. */

#include "mysys/memdiag/routes/routes.h"

#include <algorithm>

#include "plugin/memdiag/unittest/fuzz/fuzz.h"

using memdiag_test::require;
namespace routes = memdiag::routes;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  // They are taken over when they are at another place than before.
  static std::string kept[2][2];
  static size_t turn = 0;
  std::string(&now)[2] = kept[turn ^= 1];
  const auto texts = memdiag_test::texts_of(bytes, size);
  now[0] = texts[0];
  now[1] = texts.size() > 1 ? texts[1] : std::string_view{};
  (void)routes::note_instrument("sql", "TABLE", 7);
  routes::options = {now[0].c_str(), now[1].c_str()};
  const bool is_wrong = !routes::apply_options().empty();
  if (is_wrong) require(!routes::is_disabled(memdiag::Pool::session));
  if (is_wrong || now[1].empty()) {
    const auto rows = routes::all();
    require(std::any_of(rows.begin(), rows.end(), [](const routes::Row &row) {
      return row.name == "memory/sql/TABLE";
    }));
  }
  return 0;
}
