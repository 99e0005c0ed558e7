-- Tokens of audio and of images, the service tier, and the prices that were missing for a cost.

ALTER TABLE usage ADD COLUMN audio_input bigint NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN image_input bigint NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN audio_output bigint NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN image_output bigint NOT NULL DEFAULT 0;
ALTER TABLE rollups ADD COLUMN audio_input bigint NOT NULL DEFAULT 0;
ALTER TABLE rollups ADD COLUMN image_input bigint NOT NULL DEFAULT 0;
ALTER TABLE rollups ADD COLUMN audio_output bigint NOT NULL DEFAULT 0;
ALTER TABLE rollups ADD COLUMN image_output bigint NOT NULL DEFAULT 0;
ALTER TABLE rollups ADD COLUMN inexact bigint NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN service_tier text;
ALTER TABLE usage ADD COLUMN missing_prices text;
