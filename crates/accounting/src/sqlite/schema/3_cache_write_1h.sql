-- The tokens of cache_write that are kept for an hour.

ALTER TABLE usage ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rollups ADD COLUMN cache_write_1h INTEGER NOT NULL DEFAULT 0;
