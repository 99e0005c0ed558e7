-- One row for each request, and sums of them. Times are Unix milliseconds, money is billionths.

CREATE TABLE usage (
  request_id text COLLATE "C" NOT NULL PRIMARY KEY,
  state text NOT NULL,              -- open, closed or abandoned
  at_ms bigint NOT NULL,           -- opened_ms, or closed_ms while that is unknown
  opened_ms bigint,
  closed_ms bigint,
  replica text NOT NULL DEFAULT '',
  run text NOT NULL DEFAULT '',
  key text COLLATE "C" NOT NULL DEFAULT '',
  route text NOT NULL DEFAULT '',
  model text COLLATE "C" NOT NULL DEFAULT '',
  reserved_tokens bigint NOT NULL DEFAULT 0,
  reserved_nanos bigint NOT NULL DEFAULT 0,
  outcome text NOT NULL DEFAULT '',
  status bigint NOT NULL DEFAULT 0,
  target text,
  input bigint NOT NULL DEFAULT 0,
  cache_read bigint NOT NULL DEFAULT 0,
  cache_write bigint NOT NULL DEFAULT 0,
  output bigint NOT NULL DEFAULT 0,
  reasoning bigint NOT NULL DEFAULT 0,
  pictures bigint NOT NULL DEFAULT 0,
  cost_nanos bigint                -- NULL: no price, or not closed
);

CREATE INDEX usage_by_time ON usage (at_ms, request_id);
CREATE INDEX usage_by_key ON usage (key, model, at_ms);
CREATE INDEX usage_open ON usage (run) WHERE state = 'open';

-- Sums of an interval. grain is its length: a minute, an hour or a day; or 1 for the sums of those
-- rows of an hour that have been deleted. An hour is the sum of its minutes and of its deleted rows,
-- a day that of its hours.
CREATE TABLE rollups (
  grain bigint NOT NULL,
  start_ms bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  open bigint NOT NULL,
  abandoned bigint NOT NULL,
  unpriced bigint NOT NULL,
  input bigint NOT NULL,
  cache_read bigint NOT NULL,
  cache_write bigint NOT NULL,
  output bigint NOT NULL,
  reasoning bigint NOT NULL,
  pictures bigint NOT NULL,
  cost_nanos bigint NOT NULL,
  open_nanos bigint NOT NULL,
  abandoned_nanos bigint NOT NULL,
  PRIMARY KEY (grain, start_ms, key, model)
);

-- The minutes whose rows have changed since their sums were computed.
CREATE TABLE rollups_due (
  start_ms bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  PRIMARY KEY (start_ms, key, model)
);

-- The position up to which the journal of a run has been stored.
CREATE TABLE shipped (
  run text NOT NULL PRIMARY KEY,
  "offset" bigint NOT NULL
);
