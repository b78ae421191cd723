import java.sql.*;

/** Connector/J against a server: Client HOST PORT USER PASSWORD. */
class Client {
  static void require(boolean good, String what) {
    if (!good) throw new AssertionError(what);
  }

  public static void main(String[] a) throws Exception {
    String url = "jdbc:mysql://" + a[0] + ":" + a[1] + "/client?sslMode=REQUIRED&useServerPrepStmts=true";
    try (Connection c = DriverManager.getConnection(url, a[2], a[3])) {
      Statement s = c.createStatement();
      s.execute("CREATE TABLE t (id INT PRIMARY KEY, s TEXT, at DATETIME(6), d DECIMAL(9, 2))");
      PreparedStatement insert = c.prepareStatement("INSERT INTO t VALUES (?, ?, ?, ?)");
      Timestamp at = Timestamp.valueOf("2026-01-02 03:04:05.678901");
      insert.setInt(1, 1);
      insert.setString(2, "漢字 🐬");
      insert.setTimestamp(3, at);
      insert.setBigDecimal(4, new java.math.BigDecimal("-1.50"));
      insert.executeUpdate();
      try {
        insert.executeUpdate();
        require(false, "a duplicate key was taken");
      } catch (SQLIntegrityConstraintViolationException error) {
        require(error.getErrorCode() == 1062, error.toString());
      }
      c.setAutoCommit(false);
      s.execute("DELETE FROM t");
      c.rollback();
      ResultSet r = s.executeQuery("SELECT * FROM t");
      require(r.next(), "no row");
      require(r.getString(2).equals("漢字 🐬") && r.getTimestamp(3).equals(at), r.getString(2) + r.getTimestamp(3));
      require(r.getBigDecimal(4).toString().equals("-1.50"), "decimal");
      r = c.getMetaData().getColumns("client", null, "t", null);
      require(r.next() && r.getString("COLUMN_NAME").equals("id"), "metadata");
      r = s.executeQuery("SELECT live_bytes FROM information_schema.memdiag_pools WHERE pool = 'general'");
      require(r.next() && r.getLong(1) > 0, "memdiag_pools");
    }
  }
}
