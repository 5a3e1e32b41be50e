-- Lets a request that needs no state and no tool of the gateway's take the route on which its chain is switched off.
--
-- Knows the few forms of a create request that the chain would pass on as they are, and takes no other. What recognises
-- a form is a function of the text and a place in it, and returns the place behind the form, or nil. Before this text
-- stands what MAX_BODY_BYTES, MAX_INPUT_ITEMS, MAX_TOOLS, LOOKED_AT, METADATA and TENANT_HEADER are. A mistake in here
-- is logged by Envoy, and its request passes the chain.

local byte, find = string.byte, string.find

local MAX_DEPTH = 32

local function after_space(text, at)
  local found = byte(text, at)
  while found == 32 or found == 10 or found == 13 or found == 9 do
    at = at + 1
    found = byte(text, at)
  end
  return at
end

local function set_of(characters)
  local set = {}
  for place = 1, #characters do set[byte(characters, place)] = true end
  return set
end

local ESCAPED, HEXADECIMAL = set_of('"\\/bfnrt'), set_of("0123456789abcdefABCDEF")

local function escape(text, at)
  local found = byte(text, at)
  if ESCAPED[found] then return at + 1 end
  if found ~= 117 then return nil end
  local a, b, c, d = byte(text, at + 1, at + 4)
  return HEXADECIMAL[a] and HEXADECIMAL[b] and HEXADECIMAL[c] and HEXADECIMAL[d] and at + 5 or nil
end

local function continues(found, least, most)
  return found ~= nil and found >= (least or 0x80) and found <= (most or 0xBF)
end

-- A character of several bytes; the Unicode Standard, table 3-7.
local function wide(text, at)
  local first, second, third, fourth = byte(text, at, at + 3)
  if first < 0xC2 or first > 0xF4 then return nil end
  if first < 0xE0 then return continues(second) and at + 2 or nil end
  if first < 0xF0 then
    local least, most = first == 0xE0 and 0xA0, first == 0xED and 0x9F
    return continues(second, least, most) and continues(third) and at + 3 or nil
  end
  local least, most = first == 0xF0 and 0x90, first == 0xF4 and 0x8F
  return continues(second, least, most) and continues(third) and continues(fourth) and at + 4 or nil
end

-- A loop over bytes, which LuaJIT compiles as it does not compile patterns.
local function any_string(text, at)
  if byte(text, at) ~= 34 then return nil end
  at = at + 1
  while true do
    local found = byte(text, at)
    if found == 34 then return at + 1 end
    if found == nil or found < 32 then return nil end
    if found == 92 then
      at = escape(text, at + 1)
    elseif found < 128 then
      at = at + 1
    else
      at = wide(text, at)
    end
    if not at then return nil end
  end
end

local function some_string(text, at)
  local behind = any_string(text, at)
  return behind and behind > at + 2 and behind or nil
end

local function form(pattern)
  return function(text, at)
    local _, last = find(text, pattern, at)
    return last and last + 1
  end
end

local function one_of(...)
  local known = {}
  for _, word in ipairs({ ... }) do known[word] = true end
  return function(text, at)
    local _, last, word = find(text, '^"([a-z_]+)"', at)
    return word and known[word] and last + 1 or nil
  end
end

local boolean_true, boolean_false, null = form("^true"), form("^false"), form("^null")

local function boolean(text, at)
  return boolean_true(text, at) or boolean_false(text, at)
end

-- Of so many digits, every reader makes the same number.
local function number(text, at)
  local _, last, digits, fraction = find(text, "^%-?(%d+)(%.?%d*)", at)
  if not last or #digits + #fraction > 15 or fraction == "." then return nil end
  if #digits > 1 and byte(digits) == 48 then return nil end
  if find(text, "^%-0", at) or find(text, "^[eE]", last + 1) then return nil end
  return last + 1
end

local function number_up_to(bound)
  return function(text, at)
    local behind = byte(text, at) ~= 45 and number(text, at)
    return behind and tonumber(text:sub(at, behind - 1)) <= bound and behind or nil
  end
end

local function positive_integer(text, at)
  local behind = find(text, "^[1-9]", at) and number(text, at)
  return behind and not find(text:sub(at, behind - 1), ".", 1, true) and behind or nil
end

-- Returns also which keys there were. A key that comes twice is none: readers differ in which of the two they mean.
local function object(text, at, form_of)
  if byte(text, at) ~= 123 then return nil end
  local seen = {}
  at = after_space(text, at + 1)
  if byte(text, at) == 125 then return at + 1, seen end
  while true do
    local _, last, key = find(text, '^"([ !#-Z%[%]^-~]+)"[ \t\r\n]*:[ \t\r\n]*', at)
    local recognise = key and not seen[key] and form_of(key)
    at = recognise and recognise(text, last + 1)
    if not at then return nil end
    seen[key] = true
    at = after_space(text, at)
    local found = byte(text, at)
    if found == 125 then return at + 1, seen end
    if found ~= 44 then return nil end
    at = after_space(text, at + 1)
  end
end

local function object_of(fields, required)
  local function form_of(key) return fields[key] end
  return function(text, at)
    local behind, seen = object(text, at, form_of)
    for _, key in ipairs(required) do
      if not (seen and seen[key]) then return nil end
    end
    return behind
  end
end

local function array(text, at, recognise, most)
  if byte(text, at) ~= 91 then return nil end
  at = after_space(text, at + 1)
  if byte(text, at) == 93 then return at + 1, 0 end
  for count = 1, most do
    at = recognise(text, at)
    if not at then return nil end
    at = after_space(text, at)
    local found = byte(text, at)
    if found == 93 then return at + 1, count end
    if found ~= 44 then return nil end
    at = after_space(text, at + 1)
  end
  return nil
end

local function some_of(recognise, most)
  return function(text, at)
    local behind, count = array(text, at, recognise, most)
    return behind and count > 0 and behind or nil
  end
end

local function value_within(depth)
  local inner
  return function(text, at)
    local found = byte(text, at)
    if found ~= 123 and found ~= 91 then
      return any_string(text, at) or number(text, at) or boolean(text, at) or null(text, at)
    end
    if depth == 0 then return nil end
    inner = inner or value_within(depth - 1)
    if found == 91 then return (array(text, at, inner, MAX_BODY_BYTES)) end
    return (object(text, at, function() return inner end))
  end
end

local value = value_within(MAX_DEPTH)

local function any_object(text, at)
  return byte(text, at) == 123 and value(text, at) or nil
end

local input_text = object_of({ type = one_of("input_text"), text = any_string }, { "type", "text" })

local parts = some_of(input_text, MAX_BODY_BYTES)

local function content(text, at)
  return any_string(text, at) or parts(text, at)
end

local message_of_user = object_of(
  { type = one_of("message"), role = one_of("user", "system", "developer"), content = content }, { "role", "content" })
local message_of_assistant = object_of(
  { type = one_of("message"), role = one_of("assistant"), content = any_string }, { "role", "content" })

local function message(text, at)
  return message_of_user(text, at) or message_of_assistant(text, at)
end

local messages = some_of(message, MAX_INPUT_ITEMS)

local function input(text, at)
  return some_string(text, at) or messages(text, at)
end

-- Made anew for each request: no two functions have one name.
local function functions()
  local names = {}
  local function name(text, at)
    local _, last, found = find(text, '^"([A-Za-z0-9_-]+)"', at)
    if not last or #found > 64 or names[found] then return nil end
    names[found] = true
    return last + 1
  end
  local fields = {
    type = one_of("function"), name = name, parameters = any_object, strict = boolean, description = any_string,
  }
  return some_of(object_of(fields, { "type", "name" }), MAX_TOOLS)
end

local FORMS = {
  model = form('^"[A-Za-z0-9][A-Za-z0-9_./:@+-]*"'),
  input = input,
  instructions = any_string,
  store = boolean_false,
  temperature = number_up_to(2),
  top_p = number_up_to(1),
  max_output_tokens = positive_integer,
  parallel_tool_calls = boolean,
  tool_choice = one_of("auto", "none", "required"),
}

-- Whether it is a create request of these forms, and whether it asks for a stream.
local function recognise(text)
  local streams = false
  local function stream(body, at)
    streams = boolean_true(body, at) ~= nil
    return boolean(body, at)
  end
  local function form_of(name)
    if name == "tools" then return functions() end
    if name == "stream" then return stream end
    -- What nothing of the chain looks at is the inference server's own.
    return FORMS[name] or (not LOOKED_AT[name] and value) or nil
  end
  local behind, seen = object(text, after_space(text, 1), form_of)
  if not behind or after_space(text, behind) <= #text then return false end
  local whole = seen.model and seen.input and seen.store and (seen.tools or not seen.tool_choice)
  return whole and true or false, streams
end

local function is_plain(headers)
  local tenant = headers:get(TENANT_HEADER)
  return headers:get(":method") == "POST"
    and headers:get(":path") == "/v1/responses"
    and headers:get("content-type") == "application/json"
    and headers:getNumValues("content-type") == 1
    and headers:get("content-encoding") == nil
    and headers:get("expect") == nil
    and (tenant == nil or (#tenant <= 1024 and find(tenant, "^[!-~]+$") ~= nil))
end

function envoy_on_request(request)
  local headers = request:headers()
  local length = tonumber(headers:get("content-length") or "")
  if not length or length > MAX_BODY_BYTES or not is_plain(headers) then return end
  local body = request:body()
  if not body or body:length() ~= length then return end
  local stateless, streams = recognise(body:getBytes(0, length))
  if not stateless then return end
  request:headers():replace("accept", streams and "text/event-stream" or "application/json")
  request:streamInfo():dynamicMetadata():set(METADATA, "stateless", true)
  request:clearRouteCache()
end
