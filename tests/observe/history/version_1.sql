BEGIN TRANSACTION;
CREATE TABLE allowances (
  account INTEGER NOT NULL, "window" INTEGER NOT NULL, "limit" INTEGER NOT NULL, at INTEGER NOT NULL,
  used REAL NOT NULL, resets INTEGER,
  PRIMARY KEY (account, "window", "limit", at)
) WITHOUT ROWID;
INSERT INTO "allowances" VALUES(2,12,13,1800000000000,12.5,1800400000000);
CREATE TABLE names (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE);
INSERT INTO "names" VALUES(1,'messages');
INSERT INTO "names" VALUES(2,'p1');
INSERT INTO "names" VALUES(3,'claude-opus-5');
INSERT INTO "names" VALUES(4,'gpt-5.5');
INSERT INTO "names" VALUES(5,'shop');
INSERT INTO "names" VALUES(6,'s1');
INSERT INTO "names" VALUES(7,'anna');
INSERT INTO "names" VALUES(8,'completed');
INSERT INTO "names" VALUES(9,'end_turn');
INSERT INTO "names" VALUES(10,'failed');
INSERT INTO "names" VALUES(11,'overloaded');
INSERT INTO "names" VALUES(12,'Weekly');
INSERT INTO "names" VALUES(13,'');
CREATE TABLE requests (
  id INTEGER PRIMARY KEY, request TEXT, ended INTEGER, first_ms INTEGER, total_ms INTEGER, endpoint INTEGER,
  account INTEGER, asked INTEGER, served INTEGER, project INTEGER, session INTEGER, agent INTEGER, caller INTEGER,
  input INTEGER, cached INTEGER, output INTEGER, thinking INTEGER, aside INTEGER, searches INTEGER,
  outcome INTEGER, http INTEGER, kind INTEGER, retries INTEGER, fallback INTEGER, stop INTEGER,
  expected INTEGER, lost INTEGER
);
INSERT INTO "requests" VALUES(1,'r0',1800000000000,NULL,4000,1,2,3,4,5,6,NULL,7,0,NULL,10,3,0,0,8,200,NULL,0,NULL,9,900,NULL);
INSERT INTO "requests" VALUES(2,'r1',1800000600000,801,5000,1,2,3,4,5,6,NULL,7,1000,900,10,3,0,1,8,200,NULL,0,NULL,9,900,NULL);
INSERT INTO "requests" VALUES(3,'r2',1800001200000,802,6000,1,2,3,4,5,6,NULL,7,2000,1800,10,3,0,2,10,529,11,0,NULL,9,900,NULL);
CREATE INDEX requests_by_end ON requests (ended);
CREATE INDEX requests_by_session ON requests (session, ended) WHERE session IS NOT NULL;
COMMIT;
PRAGMA user_version = 1;
