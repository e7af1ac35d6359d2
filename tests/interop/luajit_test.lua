-- Noria from LuaJIT: ffi.cdef of the header as it is, through the C preprocessor only.
-- Arguments: the shared library, the preprocessed header.
local ffi = require("ffi")
jit.off(true, true) -- compiled code must not call C functions that call back
local file = assert(io.open(arg[2]))
ffi.cdef(file:read("*a"))
file:close()
local lib = ffi.load(arg[1])

local function call(status, what)
  if status ~= 0 then
    error(what .. ": " .. ffi.string(lib.noria_error_name(status)), 2)
  end
end

-- A runtime on this thread: a Lua callback may run on no other.
local options = ffi.new("noria_runtime_options")
options.size = ffi.sizeof(options)
options.kind = lib.NORIA_RUNTIME_CURRENT_THREAD
options.clock_paused = 1
local out_rt = ffi.new("noria_runtime *[1]")
call(lib.noria_runtime_new(options, out_rt), "runtime")
local rt = out_rt[0]

-- Tasks are coroutines: a poll resumes one, and what it yields is what it waits for.
local current_cx
local tasks, next_task = {}, 1

local function await(future)
  while true do
    local status = lib.noria_future_poll(future, current_cx)
    if status == lib.NORIA_READY then break end
    if status < 0 then error("poll: " .. status) end
    coroutine.yield()
  end
  local status = lib.noria_future_result(future, nil, 0)
  lib.noria_future_drop(future)
  return status
end

local vtable = ffi.new("noria_task_vtable")
vtable.size = ffi.sizeof(vtable)
local drops = 0
vtable.poll = ffi.cast("int32_t (*)(void *, const noria_cx *)", function(state, cx)
  local task = tasks[tonumber(ffi.cast("intptr_t", state))]
  current_cx = cx
  local good, message = coroutine.resume(task)
  if not good then
    io.stderr:write(tostring(message), "\n")
    return -1000
  end
  return coroutine.status(task) == "dead" and lib.NORIA_READY or lib.NORIA_PENDING
end)
vtable.drop = ffi.cast("void (*)(void *)", function() drops = drops + 1 end)

local function spawn(body)
  local handle = ffi.new("noria_task *[1]")
  tasks[next_task] = coroutine.create(body)
  call(lib.noria_spawn(rt, vtable, ffi.cast("void *", next_task), handle), "spawn")
  next_task = next_task + 1
  return handle[0]
end

local function sleep(ns)
  local out = ffi.new("noria_future *[1]")
  call(lib.noria_sleep(rt, ns, out), "sleep")
  return out[0]
end

local function now()
  local out = ffi.new("uint64_t[1]")
  call(lib.noria_now(rt, out), "now")
  return out[0]
end

-- Two tasks that take turns in time; the clock is paused, so the hours take no time.
local hour = 3600ULL * 1000000000ULL
local began, heard = now(), {}
local first = spawn(function()
  for i = 1, 3 do
    assert(await(sleep(2 * hour)) == 0)
    heard[#heard + 1] = "a" .. i
  end
end)
local second = spawn(function()
  assert(await(sleep(hour)) == 0)
  for i = 1, 3 do
    heard[#heard + 1] = "b" .. i
    assert(await(sleep(2 * hour)) == 0)
  end
end)
local failing = spawn(function() error("on purpose") end)

local result = ffi.new("noria_join_result")
local function run(task)
  for _ = 1, 1000 do
    if lib.noria_task_is_complete(task) == 1 then break end
    local status = lib.noria_runtime_turn(rt, 0xffffffffffffffffULL, nil)
    if status < 0 then error("turn: " .. status) end
  end
  local join = ffi.new("noria_future *[1]")
  call(lib.noria_task_join(task, join), "join")
  call(lib.noria_future_result(join[0], result, ffi.sizeof(result)), "join's result")
  lib.noria_future_drop(join[0])
  call(lib.noria_task_detach(task), "detach")
  return result.kind, result.error
end

assert(run(first) == lib.NORIA_JOIN_DONE)
assert(run(second) == lib.NORIA_JOIN_DONE)
local kind, status = run(failing)
assert(kind == lib.NORIA_JOIN_FAILED and status == -1000)
assert(table.concat(heard, " ") == "b1 a1 b2 a2 b3 a3", table.concat(heard, " "))
assert(now() - began >= 6 * hour)
assert(drops == 3, drops)

-- 64-bit numbers, strings and structs come through whole.
local address, text = ffi.new("noria_address"), ffi.new("char[64]")
call(lib.noria_address_parse("[::1]:65535", address), "parse")
assert(address.port == 65535)
call(lib.noria_address_format(address, text, 64), "format")
assert(ffi.string(text) == "[::1]:65535")

call(lib.noria_runtime_free(rt), "free")
local counts = ffi.new("noria_counts")
counts.size = ffi.sizeof(counts)
call(lib.noria_live_counts(counts), "counts")
for _, name in ipairs({"tasks", "wakers", "futures", "timers", "sources", "buffers", "allocations", "descriptors"}) do
  assert(counts[name] == 0, name)
end
print("luajit: passed")
