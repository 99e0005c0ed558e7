-- Keys and the log of their changes. Times are Unix seconds.

CREATE TABLE meta (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- compatible_since: the oldest version of the schema that a gateway must know to work with this one.
-- epoch: rises by each write to a key.
INSERT INTO meta (name, value) VALUES ('compatible_since', 1), ('epoch', 0);

CREATE TABLE keys (
  position INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,             -- separated by commas
  models TEXT,                      -- JSON array of patterns; NULL: every model
  expires INTEGER,
  created INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  revoked INTEGER,
  ends_streams INTEGER NOT NULL DEFAULT 0,
  limits TEXT                       -- JSON object
) STRICT;

CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked IS NULL;

CREATE TABLE key_hashes (
  hash TEXT NOT NULL PRIMARY KEY,
  key TEXT NOT NULL REFERENCES keys (id),
  until INTEGER                     -- NULL: the current hash of the key
) STRICT, WITHOUT ROWID;

CREATE INDEX key_hashes_by_key ON key_hashes (key);

CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  key TEXT NOT NULL REFERENCES keys (id),
  epoch INTEGER NOT NULL,
  details TEXT NOT NULL             -- JSON object
) STRICT;

CREATE INDEX audit_by_key ON audit (key, id);
