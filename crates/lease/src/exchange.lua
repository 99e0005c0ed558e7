-- The exchange of a lease store, version 1. `reference.rs` implements the same rules and states the
-- reasons for them.
--
-- KEYS: the store state of the partition, then one key for each lease request.
-- ARGV: replica, proof (life, at, over), lease, channel, then thirteen numbers for each request:
--       kind (0 permits, 1 bucket, 2 budget), capacity, per_minute, accounted, seq, acked,
--       incarnation, claim, used, unacked, more, need, least.
-- Response: {life, at, event, {seq, held, free, level, replicas, hungry, quarantined}, ...}, all
--       integers.
-- Messages on the channel: the replica and the name of a limit, separated by a space.
--
-- Names that differ in Rust:
--   ask: lease request; claim: retained; more: wanted; need: waiting; least: smallest_waiting
--   reply: grant; free: available; hungry: waiting_replicas; rest: remainder
--   life: epoch; proof.at: elapsed_ms; proof.over and mark.over: expired_event
--   mark: store state; born: first_event; mark.at: proven_ms; flowed: drained_ms;
--   wall: server_clock_ms
--
-- The store state is a string of a server's id and seven integers. A limit is a hash: the field
-- `limit` has five integers, and the field of each replica six. Numbers are doubles, exact below
-- 2^53.

local MAX = 9007199254740991
local HALF = 2251799813685248
local MINUTE = 60000
local ALLOWANCES = 120
-- 100 days, longer than any window. It removes limits that are not used any more, and decides
-- nothing else.
local KEEP = 8640000

local floor, min, max = math.floor, math.min, math.max

local function numbers(text)
  local list = {}
  for number in string.gmatch(text, '%S+') do
    list[#list + 1] = tonumber(number)
  end
  return list
end

local replica, lease = ARGV[1], tonumber(ARGV[5])
local proof = {life = tonumber(ARGV[2]), at = tonumber(ARGV[3]), over = tonumber(ARGV[4])}

-- The id changes whenever a server starts or becomes the primary.
local server = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local mark = {event = 0, at = 0, flowed = 0}
local stored = redis.call('GET', KEYS[1])
if stored then
  local id, rest = string.match(stored, '^(%x+) (.*)$')
  local n = numbers(rest)
  mark = {server = id, life = n[1], born = n[2], event = n[3], at = n[4], flowed = n[5],
    wall = n[6], over = n[7]}
end
if mark.server ~= server then
  local event = mark.event + 1
  mark = {server = server, life = now, born = event, event = event, at = mark.at,
    flowed = mark.flowed, wall = floor(now / 1000), over = 0}
end

mark.event = mark.event + 1
if proof.life == mark.life then
  mark.at = max(mark.at, proof.at)
  mark.over = max(mark.over, proof.over)
end
local wall = floor(now / 1000)
mark.flowed = min(mark.at, mark.flowed + max(0, wall - mark.wall))
mark.wall = wall
redis.call('SET', KEYS[1], string.format('%s %.0f %.0f %.0f %.0f %.0f %.0f %.0f', mark.server,
  mark.life, mark.born, mark.event, mark.at, mark.flowed, mark.wall, mark.over))

local function flow(limit, per_minute)
  local elapsed = max(0, mark.flowed - limit.at)
  limit.at = mark.flowed
  local whole = floor(per_minute / MINUTE) * elapsed
  local parts = per_minute % MINUTE * elapsed + limit.rest
  local level = limit.level - whole - floor(parts / MINUTE)
  if level > 0 then
    limit.level, limit.rest = level, parts % MINUTE
  else
    limit.level, limit.rest = 0, 0
  end
end

local function read(key)
  local limit = {life = 0, level = 0, rest = 0, at = 0, quarantine = 0, shares = {}, gone = {}}
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    local n = numbers(fields[i + 1])
    if fields[i] == 'limit' then
      limit.life, limit.level, limit.rest, limit.at, limit.quarantine = n[1], n[2], n[3], n[4], n[5]
    else
      limit.shares[fields[i]] =
        {held = n[1], used = n[2], seq = n[3], incarnation = n[4], renewed = n[5], short = n[6]}
    end
  end
  return limit
end

local function is_quarantined(limit)
  return mark.over < max(mark.born, limit.quarantine)
end

local function recover(limit, ask)
  if limit.life == mark.life or is_quarantined(limit) then
    return
  end
  limit.life, limit.quarantine = mark.life, 0
  if ask.kind == 2 then
    limit.level = max(limit.level, ask.accounted)
  end
end

local function lend(ask, free, replicas, hungry)
  if free < ask.least then
    return 0
  end
  local part = floor(free / (2 * replicas))
  local fair = part
  if hungry > 0 then
    fair = 0
  elseif ask.kind == 0 then
    fair = free
  elseif ask.kind == 1 then
    fair = min(part, floor(ask.per_minute / ALLOWANCES))
  end
  return min(free, max(ask.need, min(ask.more, fair)))
end

local function difference(used, before)
  local difference = used - before
  if difference < -HALF then
    return difference + 2 * HALF
  elseif difference >= HALF then
    return difference - 2 * HALF
  end
  return difference
end

-- Lowers event numbers that are ahead of the store state to its latest event: if only the store
-- state was lost, events have started over.
local function heed(limit)
  if limit.life ~= mark.life then
    limit.quarantine = min(limit.quarantine, mark.event)
    for _, share in pairs(limit.shares) do
      share.renewed = min(share.renewed, mark.event)
    end
  end
end

-- Removes the replicas whose lease is over. Amounts that they may have spent count as spent.
local function expire(limit, ask)
  for name, share in pairs(limit.shares) do
    if share.renewed <= mark.over then
      limit.level = min(MAX, limit.level + (ask.kind == 0 and 0 or share.held))
      limit.shares[name] = nil
      limit.gone[#limit.gone + 1] = name
    end
  end
end

-- Returns true if the lease that the request continues is over, so that the request could undo
-- later requests.
local function is_stale(limit, ask)
  if ask.acked == 0 then
    return false
  end
  local of_life = proof.life == mark.life
  if of_life and proof.at + lease + floor(lease / 10) < mark.at then
    return true
  end
  local forgotten = ask.kind ~= 0 and limit.shares[replica] == nil
  return limit.life == mark.life and (not of_life or forgotten)
end

-- Records the retained amount and the spending of the replica, and returns the amount that it has
-- returned; nil if this request or a later one was handled already.
local function enter(limit, ask)
  local share, returned = limit.shares[replica], nil
  local late = share ~= nil and ask.seq <= share.seq
  local spent = ask.unacked
  if share and share.incarnation == ask.incarnation then
    spent = difference(ask.used, share.used)
  elseif not late then
    if share and ask.kind ~= 0 then
      limit.level = min(MAX, limit.level + share.held)
    end
    share = {held = 0, used = 0, incarnation = ask.incarnation, seq = 0, renewed = 0, short = 0}
  end
  if not late then
    limit.level = min(MAX, max(0, limit.level + spent))
    local kept = max(0, share.held - spent)
    if ask.claim > kept and not is_quarantined(limit) then
      limit.life, limit.quarantine = 0, mark.event
    end
    returned = max(0, kept - ask.claim)
    share.held, share.used, share.seq, share.renewed = ask.claim, ask.used, ask.seq, mark.event
  end
  limit.shares[replica] = share
  return returned
end

-- Grants the wanted amount as far as it is available. Returns the grant, and whether the other
-- replicas have to be notified: they may have idle amounts for which this replica waits, or this
-- replica has returned an amount for which they wait.
local function answer(limit, ask, returned)
  local quarantined = is_quarantined(limit) and ask.kind ~= 1
  local share = limit.shares[replica] or {held = 0, seq = 0}
  local replicas, hungry, lent_out, noticed = 0, 0, 0, false
  for name, other in pairs(limit.shares) do
    replicas = replicas + 1
    lent_out = lent_out + other.held
    if name ~= replica and other.short > 0 then
      hungry = hungry + 1
    end
  end
  local free = quarantined and 0 or max(0, ask.capacity - limit.level - lent_out)
  if returned then
    local elsewhere = lent_out > share.held
    local lent = lend(ask, free, replicas, hungry)
    free = free - lent
    share.held = share.held + lent
    local waited = share.short > 0
    share.short = max(0, ask.need - lent)
    noticed = not quarantined and ((share.short > 0 and not waited and elsewhere)
      or (hungry > 0 and free > 0 and returned > 0))
    if ask.kind == 0 and share.held == 0 and share.short == 0 then
      limit.shares[replica] = nil
      limit.gone[#limit.gone + 1] = replica
    end
  end
  return {share.seq, share.held, free, limit.level, replicas, hungry, quarantined and 1 or 0}, noticed
end

-- Stores the limit, or deletes its key if no data of it has to be kept.
local function write(key, limit)
  if next(limit.shares) == nil and limit.level == 0 and not is_quarantined(limit) then
    redis.call('DEL', key)
    return
  end
  if #limit.gone > 0 then
    redis.call('HDEL', key, unpack(limit.gone))
  end
  local fields = {'limit', string.format('%.0f %.0f %.0f %.0f %.0f', limit.life, limit.level,
    limit.rest, limit.at, limit.quarantine)}
  for name, share in pairs(limit.shares) do
    fields[#fields + 1] = name
    fields[#fields + 1] = string.format('%.0f %.0f %.0f %.0f %.0f %.0f', share.held, share.used,
      share.seq, share.incarnation, share.renewed, share.short)
  end
  redis.call('HSET', key, unpack(fields))
  redis.call('EXPIRE', key, KEEP)
end

local function exchange(key, ask)
  local limit = read(key)
  heed(limit)
  flow(limit, ask.per_minute)
  expire(limit, ask)
  local returned = nil
  if not is_stale(limit, ask) then
    returned = enter(limit, ask)
  end
  recover(limit, ask)
  local reply, noticed = answer(limit, ask, returned)
  write(key, limit)
  if noticed then
    -- For a user without the right to publish, there are no notices.
    redis.pcall('PUBLISH', ARGV[6], replica .. ' ' .. string.match(key, ':limit:(.*)$'))
  end
  return reply
end

local reply = {mark.life, mark.at, mark.event}
for i = 2, #KEYS do
  local first = 6 + 13 * (i - 2)
  local n = {}
  for j = 1, 13 do
    n[j] = tonumber(ARGV[first + j])
  end
  reply[#reply + 1] = exchange(KEYS[i], {kind = n[1], capacity = n[2], per_minute = n[3],
    accounted = n[4], seq = n[5], acked = n[6], incarnation = n[7], claim = n[8], used = n[9],
    unacked = n[10], more = n[11], need = n[12], least = n[13]})
end
return reply
