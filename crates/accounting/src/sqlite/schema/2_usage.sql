-- One row for each request, and sums of them. Times are Unix milliseconds, money is billionths.

CREATE TABLE usage (
  request_id TEXT NOT NULL PRIMARY KEY,
  state TEXT NOT NULL,              -- open, closed or abandoned
  at_ms INTEGER NOT NULL,           -- opened_ms, or closed_ms while that is unknown
  opened_ms INTEGER,
  closed_ms INTEGER,
  replica TEXT NOT NULL DEFAULT '',
  run TEXT NOT NULL DEFAULT '',
  key TEXT NOT NULL DEFAULT '',
  route TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '',
  reserved_tokens INTEGER NOT NULL DEFAULT 0,
  reserved_nanos INTEGER NOT NULL DEFAULT 0,
  outcome TEXT NOT NULL DEFAULT '',
  status INTEGER NOT NULL DEFAULT 0,
  target TEXT,
  input INTEGER NOT NULL DEFAULT 0,
  cache_read INTEGER NOT NULL DEFAULT 0,
  cache_write INTEGER NOT NULL DEFAULT 0,
  output INTEGER NOT NULL DEFAULT 0,
  reasoning INTEGER NOT NULL DEFAULT 0,
  pictures INTEGER NOT NULL DEFAULT 0,
  cost_nanos INTEGER                -- NULL: no price, or not closed
) STRICT;

CREATE INDEX usage_by_time ON usage (at_ms, request_id);
CREATE INDEX usage_by_key ON usage (key, model, at_ms);
CREATE INDEX usage_open ON usage (run) WHERE state = 'open';

-- Sums of an interval. grain is its length: a minute, an hour or a day; or 1 for the sums of those
-- rows of an hour that have been deleted. An hour is the sum of its minutes and of its deleted rows,
-- a day that of its hours.
CREATE TABLE rollups (
  grain INTEGER NOT NULL,
  start_ms INTEGER NOT NULL,
  key TEXT NOT NULL,
  model TEXT NOT NULL,
  requests INTEGER NOT NULL,
  open INTEGER NOT NULL,
  abandoned INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  input INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  output INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  pictures INTEGER NOT NULL,
  cost_nanos INTEGER NOT NULL,
  open_nanos INTEGER NOT NULL,
  abandoned_nanos INTEGER NOT NULL,
  PRIMARY KEY (grain, start_ms, key, model)
) STRICT, WITHOUT ROWID;

-- The minutes whose rows have changed since their sums were computed.
CREATE TABLE rollups_due (
  start_ms INTEGER NOT NULL,
  key TEXT NOT NULL,
  model TEXT NOT NULL,
  PRIMARY KEY (start_ms, key, model)
) STRICT, WITHOUT ROWID;

-- The position up to which the journal of a run has been stored.
CREATE TABLE shipped (
  run TEXT NOT NULL PRIMARY KEY,
  "offset" INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
