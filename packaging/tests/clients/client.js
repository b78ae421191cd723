// node's mysql2 against a server: client.js HOST PORT USER PASSWORD.
const assert = require('assert');
const mysql = require('mysql2/promise');

async function main([host, port, user, password]) {
  const c = await mysql.createConnection({
    host, port: +port, user, password, database: 'client', ssl: {rejectUnauthorized: false},
  });
  await c.query('CREATE TABLE t (id INT PRIMARY KEY, s TEXT, j JSON, b BLOB)');
  const row = [1, '漢字 🐬', JSON.stringify({a: [1, 2]}), Buffer.from([0, 255])];
  await c.execute('INSERT INTO t VALUES (?, ?, ?, ?)', row);
  await assert.rejects(c.execute('INSERT INTO t VALUES (?, ?, ?, ?)', row), {errno: 1062});
  await c.beginTransaction();
  await c.query('DELETE FROM t');
  await c.rollback();
  const [rows] = await c.execute('SELECT * FROM t WHERE id = ?', [1]);
  assert.deepStrictEqual([rows[0].s, rows[0].j, rows[0].b], [row[1], {a: [1, 2]}, row[3]]);
  const [pools] = await c.execute(
    'SELECT live_bytes AS live FROM information_schema.memdiag_pools WHERE pool = ?', ['general']);
  assert(pools[0].live > 0);
  await c.end();
}

main(process.argv.slice(2));
