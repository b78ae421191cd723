/* The gate that statements pass before they run. */

#include "mysys/memdiag/accounting/statement_gate.h"

#include "mysys/memdiag/unittest/a_session.h"
#include "mysys/memdiag/unittest/accounting/counted.h"

namespace memdiag_test {
namespace statement_gate = memdiag::statement_gate;

unsigned asked = 0;
unsigned ended = 0;
bool refuse_next = false;
bool ask_again = false;

extern const statement_gate::Gate counting_gate;
bool count_question(void *, const unsigned char *) {
  ++asked;
  if (!refuse_next) statement_gate::note_let_through(&counting_gate, ask_again);
  return refuse_next;
}
void count_end() { ++ended; }
const statement_gate::Gate counting_gate{count_question, count_end};

class Statement_gate : public Sessions {
 protected:
  Statement_gate() {
    asked = ended = 0;
    refuse_next = ask_again = false;
  }
  ~Statement_gate() override { statement_gate::set(nullptr); }

  static bool is_refused(const Digest &digest) {
    memdiag::running_statements = 1;
    const bool refused = memdiag::is_refused(nullptr, digest.data());
    memdiag::running_statements = 0;
    return refused;
  }
};

TEST_F(Statement_gate, EachStatementIsAskedForOnce) {
  const Digest digest = digest_of(1);
  EXPECT_FALSE(is_refused(digest)) << "there is no gate";
  EXPECT_EQ(0u, asked);
  statement_gate::set(&counting_gate);
  EXPECT_FALSE(is_refused(digest));
  EXPECT_FALSE(is_refused(digest)) << "it is within the other";
  EXPECT_EQ(1u, asked);
  EXPECT_TRUE(statement_gate::statement_ended());
  EXPECT_TRUE(statement_gate::statement_ended());
  EXPECT_EQ(1u, ended);

  ask_again = true;
  EXPECT_FALSE(is_refused(digest));
  EXPECT_FALSE(is_refused(digest)) << "EXECUTE, and what it executes";
  EXPECT_EQ(3u, asked);
  EXPECT_TRUE(statement_gate::statement_ended());
  EXPECT_EQ(2u, ended);

  statement_gate::set(nullptr);
  EXPECT_FALSE(is_refused(digest));
  EXPECT_EQ(3u, asked);
}

constexpr statement_gate::Gate without_end{};
bool let_through_without_end(void *, const unsigned char *) {
  ++asked;
  statement_gate::note_let_through(&without_end, false);
  return false;
}

TEST_F(Statement_gate, AGateMayWantToKnowOfNoEnd) {
  static constexpr statement_gate::Gate gate{let_through_without_end,
                                             count_end};
  const Digest digest = digest_of(1);
  EXPECT_FALSE(statement_gate::is_let_through());
  statement_gate::set(&gate);
  EXPECT_FALSE(is_refused(digest));
  EXPECT_TRUE(statement_gate::is_let_through());
  EXPECT_FALSE(is_refused(digest)) << "it is within the other";
  EXPECT_EQ(1u, asked);
  EXPECT_TRUE(statement_gate::statement_ended());
  EXPECT_FALSE(statement_gate::is_let_through());
  EXPECT_EQ(0u, ended);
}

TEST_F(Statement_gate, ARefusedStatementHasNoEndAndNoMemory) {
  const Digest digest = digest_of(2);
  statement_gate::set(&counting_gate);
  refuse_next = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_refused(digest));
    EXPECT_TRUE(is_refused(digest)) << "a part of it";
    end_statement(digest);
  }
  EXPECT_EQ(3u, asked);
  EXPECT_EQ(0u, ended);
  EXPECT_FALSE(row_of(digest).has_value()) << "none of them ran";
  refuse_next = false;
  EXPECT_FALSE(is_refused(digest));
  end_statement(digest);
  EXPECT_EQ(1u, ended);
  EXPECT_EQ(1u, row_of(digest)->statements);
}

/** Its packet was large, so it has waited before it asks. */
TEST_F(Statement_gate, APlaceBeforeTheGateEndsWithARefusal) {
  const Digest digest = digest_of(2);
  statement_gate::set(&counting_gate);
  refuse_next = true;
  statement_gate::note_let_through(&counting_gate, true);
  EXPECT_TRUE(is_refused(digest));
  EXPECT_EQ(1u, ended);
  end_statement(digest);
  EXPECT_EQ(1u, ended) << "once";
  EXPECT_FALSE(row_of(digest).has_value()) << "it did not run";
}

TEST_F(Statement_gate, AStatementWithinAnothersHasPassed) {
  const Digest digest = digest_of(3);
  statement_gate::set(&counting_gate);
  refuse_next = true;
  A_session outer(digest.data());
  A_session inner(digest.data());
  {
    const memdiag::Statement statement(&outer);
    const memdiag::Statement nested(&inner);
    EXPECT_FALSE(memdiag::is_refused(&inner, true));
  }
  outer.set_digest(digest.data());
  {
    const memdiag::Statement statement(&outer);
    EXPECT_TRUE(memdiag::is_refused(&outer, true));
  }
}

TEST_F(Statement_gate, StatementsOfAnEventAreRefusedOneByOne) {
  const Digest digest = digest_of(4);
  A_session event(digest.data());
  statement_gate::set(&counting_gate);
  refuse_next = true;
  EXPECT_TRUE(memdiag::is_refused(&event, false));
  EXPECT_FALSE(memdiag::is_refused(&event, true));
  refuse_next = false;
  EXPECT_FALSE(memdiag::is_refused(&event, false)) << "its handler";
  EXPECT_EQ(2u, asked);
  {
    const memdiag::Statement outer(&event);
    EXPECT_FALSE(memdiag::is_refused(&event, false)) << "a routine's";
  }
  EXPECT_EQ(2u, asked);
}

}  // namespace memdiag_test
