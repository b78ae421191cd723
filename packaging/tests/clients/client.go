// go-sql-driver against a server: client HOST PORT USER PASSWORD.
package main

import (
	"database/sql"
	"errors"
	"log"
	"os"

	"github.com/go-sql-driver/mysql"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", os.Args[1]+":"+os.Args[2]
	config.User, config.Passwd = os.Args[3], os.Args[4]
	config.DBName, config.TLSConfig = "client", "skip-verify"
	db, err := sql.Open("mysql", config.FormatDSN())
	must(err)
	_, err = db.Exec("CREATE TABLE t (id INT PRIMARY KEY, s TEXT, b BLOB)")
	must(err)
	insert, err := db.Prepare("INSERT INTO t VALUES (?, ?, ?)")
	must(err)
	_, err = insert.Exec(1, "漢字 🐬", []byte{0, 255})
	must(err)
	_, err = insert.Exec(1, "again", nil)
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) || refused.Number != 1062 {
		log.Fatal("a duplicate key: ", err)
	}
	deletion, err := db.Begin()
	must(err)
	_, err = deletion.Exec("DELETE FROM t")
	must(err)
	must(deletion.Rollback())
	var text string
	var bytes []byte
	must(db.QueryRow("SELECT s, b FROM t WHERE id = ?", 1).Scan(&text, &bytes))
	if text != "漢字 🐬" || len(bytes) != 2 {
		log.Fatal("read ", text, bytes)
	}
	var live int64
	must(db.QueryRow("SELECT live_bytes FROM information_schema.memdiag_pools WHERE pool = ?", "general").Scan(&live))
	if live <= 0 {
		log.Fatal("no live bytes")
	}
}
