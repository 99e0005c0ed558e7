-- Keys and the log of their changes. Times are Unix seconds.

CREATE TABLE meta (
  name text NOT NULL PRIMARY KEY,
  value bigint NOT NULL
);

-- compatible_since: the oldest version of the schema that a gateway must know to work with this one.
-- epoch: rises by each write to a key.
INSERT INTO meta (name, value) VALUES ('compatible_since', 1), ('epoch', 0);

CREATE TABLE keys (
  position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text NOT NULL UNIQUE,
  name text NOT NULL,
  scopes text NOT NULL,             -- separated by commas
  models text,                      -- JSON array of patterns; NULL: every model
  expires bigint,
  created bigint NOT NULL,
  changed bigint NOT NULL,
  revoked bigint,
  ends_streams boolean NOT NULL DEFAULT false,
  limits text                       -- JSON object
);

CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked IS NULL;

CREATE TABLE key_hashes (
  hash text NOT NULL PRIMARY KEY,
  key text NOT NULL REFERENCES keys (id),
  until bigint                     -- NULL: the current hash of the key
);

CREATE INDEX key_hashes_by_key ON key_hashes (key);

CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  actor text NOT NULL,
  action text NOT NULL,
  key text NOT NULL REFERENCES keys (id),
  epoch bigint NOT NULL,
  details text NOT NULL             -- JSON object
);

CREATE INDEX audit_by_key ON audit (key, id);
