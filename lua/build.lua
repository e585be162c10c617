-- SPDX-License-Identifier: Apache-2.0
-- build.lua SCRIPTS.cpp BYTECODE.cpp DIRECTORY DEFAULTS.h SCHEMA.h CALLS.h CONSTANT,CONSTANT… FILE…: a step of the build, which
-- build.cpp runs. DIRECTORY is lua/, and each FILE is one of kinds/, verbs/ or single/.
--
-- Makes the text of one script for each kind of lock and each verb: of lib/*.lua, kinds/KIND.lua and verbs/VERB.lua what it needs; and
-- the bytecode of the frequent scripts, for the stores that cannot run scripts. tests/lua/embedding_test.cpp checks that nothing else is
-- in the texts.
--
-- A server compiles a script once, but creates every function of it anew in each call, and that costs as much as the commands of a
-- short script. So:
--
-- * The files of lib and kinds are cut into blocks, one for each local at the left margin. A script has the blocks that its verb
--   needs, and those that they need.
-- * A verb begins with its most frequent cases, which return. Its next part comes after the line "-- Otherwise."; the blocks that
--   only the next part needs stand there, so that the frequent cases do not pay for them.
-- * A call of a function with "-- inline" behind it is replaced by the body of the function (`expand`). So a frequent case creates no
--   function, and what it does is still written once. The mark changes nothing but the time. From
--
--     local function now_us()
--       server_time = server_time or redis.call('TIME')
--       return server_time[1] * 1000000 + server_time[2]
--     end
--     local now = now_us()  -- inline
--
--   comes
--
--     local r_now_us
--     do
--       server_time = server_time or redis.call('TIME')
--       r_now_us = server_time[1] * 1000000 + server_time[2]
--     end
--     local now = r_now_us
--
-- * What a kind never does is left out: it decides "if MULTI_HOLDER then" and "if NEEDS_NO_KEY then" (`without_dead_branches`).
-- * Words of the schema, constants of the header and places of arguments are put into the text, because a local for each would cost
--   time in each call.
--
-- Empty lines and comments are left out.

local scripts_file, bytecode_file, directory, defaults_file, schema_file, calls_file, constant_names = unpack(arg)

local function fail(text) error('lua/build.lua: ' .. text, 0) end

local function read(path)
  local file = assert(io.open(path, 'rb'))
  local text = file:read('*a')
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, 'wb'))
  assert(file:write(text))
  assert(file:close())
end

local function replace(text, part, by)
  local out, from = {}, 1
  while true do
    local first, last = string.find(text, part, from, true)
    if not first then
      return table.concat(out) .. string.sub(text, from)
    end
    table.insert(out, string.sub(text, from, first - 1) .. by)
    from = last + 1
  end
end

local function stem(path) return (string.match(path, '([^/]+)%.lua$')) end

local function lines_of(text)
  local lines = {}
  for line in string.gmatch((string.gsub(text, '\n+$', '')) .. '\n', '([^\n]*)\n') do
    table.insert(lines, line)
  end
  return text == '' and {} or lines
end

local function set_of(list)
  local set = {}
  for _, each in ipairs(list) do
    set[each] = true
  end
  return set
end

local function append(list, more)
  for _, each in ipairs(more) do
    table.insert(list, each)
  end
end

local function identifiers(text)
  local words, seen = {}, {}
  for word in string.gmatch(text, '[%a_][%w_]*') do
    if not seen[word] then
      seen[word] = true
      table.insert(words, word)
    end
  end
  return words
end

-- The words of the schema and the constants by their names between two @.
--
-- {HolderField::lease, "lease"} in the schema is @field.lease@ in a script. A field stands for its beginning in a record, which is
-- not known of the second field, because the first one may be missing.
--
-- The digits of NAME in the header are @default.NAME@ in a script: a text, because the server takes long to make one of a number.
local function read_words()
  local words, fields = {}, 0
  for type_name, name, word in string.gmatch(read(schema_file), '(%u%l+)::([%l_]+), "([%l_]+)"}') do
    local text = word
    if type_name == 'Field' then
      fields = fields + 1
      text = (fields == 1 and '^' or '\\n') .. word .. '='
    end
    if type_name ~= 'Field' or fields ~= 2 then
      words[string.lower(type_name) .. '.' .. name] = text
    end
  end
  local defaults = {}
  for line in string.gmatch(read(defaults_file), '[^\n]+') do
    local name, digits = string.match(line, '^inline constexpr.* ([%l_%d]+){(%d+)}')
    if name then
      defaults[name] = digits
    end
  end
  for name in string.gmatch(constant_names, '[^,]+') do
    words['default.' .. name] = defaults[name] or fail(defaults_file .. ' does not define ' .. name)
  end
  return words
end

local words = read_words()

-- The places of the fields of each struct in core/lock/calls.h, by their names between two @: of keys, arguments and parts of an
-- answer. @unpack.NAME@ makes a local of each.
local function read_places(verbs)
  local fields, name, short, before, missing = {}
  for line in string.gmatch(read(calls_file), '[^\n]+') do
    local struct, base, size = string.match(line, '^struct (%u%a+) : (%u%a+)<.-(%d+)>')
    local type_name, field = string.match(line, '^  ([%w_:<>]+) ([%l_]+)[;{ ]')
    if struct then
      name, fields[struct], missing = struct, {}, tonumber(size)
      short = string.gsub(string.gsub(name, '(%l)(%u)', '%1_%2'), '%u', string.lower)
      before = verbs[short] and #fields.Every or base == 'Worded' and 1 or 0
    elseif name and field then
      missing = missing - 1
      append(fields[name], fields[string.match(type_name, '^Tail<(%u%a+)>$')] or {field})
    elseif name and line == '};' then
      if missing ~= 0 then
        fail(calls_file .. ': each field of ' .. name .. ' must stand on a line that begins with its type')
      end
      for i, each in ipairs(fields[name]) do
        words[short .. '.' .. each] = tostring(before + i)
      end
      words['unpack.' .. short] = string.upper(table.concat(fields[name], ', ')) .. ' = unpack('
          .. (string.find(name, 'Keys$') and 'KEYS' or 'ARGV') .. (before > 0 and ', ' .. before + 1 or '') .. ')'
      name = nil
    end
  end
end

-- The text of a file, with the words of the schema, the constants and the places.
local function read_script(path)
  return (string.gsub(read(path), '@([%l_]+%.[%l_]+)@', function(name)
    return words[name] or fail(path .. ': the schema has no ' .. name)
  end))
end

-- The code of a file, or of a part of it.
local function without_comments(text)
  text = string.gsub('\n' .. text, '\n *%-%-[^\n]*', '')
  local lines = {}
  for _, line in ipairs(lines_of(text)) do
    if not string.find(line, '  -- inline', -#'  -- inline', true) then
      line = string.gsub(line, '  +%-%- .*$', '')
    end
    if line ~= '' then
      table.insert(lines, line .. '\n')
    end
  end
  return table.concat(lines)
end

-- The blocks: the text of each, its words, and the names that it defines.
local blocks, index_of = {}, {}

-- The index of a text in the table of blocks.
local function add_block(text)
  if not index_of[text] then
    local head = string.match(text, '^local function ([%w_, ]+)') or string.match(text, '^local ([%w_, ]+)') or ''
    table.insert(blocks, {text = text, words = identifiers(text), names = identifiers(head)})
    index_of[text] = #blocks
  end
  return index_of[text]
end

-- The indices of the blocks of a file.
local function add_file(path)
  local indices, text = {}, '\n' .. without_comments(read_script(path)) .. '\nlocal '
  local first = string.find(text, '\nlocal ', 1, true)
  while true do
    local next_one = string.find(text, '\nlocal ', first + 1, true)
    if not next_one then
      return indices
    end
    table.insert(indices, add_block(string.match(string.sub(text, first, next_one - 1), '^%s*(.-)%s*$') .. '\n'))
    first = next_one
  end
end

-- The text without the branches "if TRAIT then" and "if not TRAIT then" that a kind never takes; `traits` tells MULTI_HOLDER and
-- NEEDS_NO_KEY. Knows these lines alone, with their "else" and "end".
local function without_dead_branches(text, traits)
  local out = {}
  local open = {}  -- the branches, the innermost last: its indentation, and whether it is alive
  local dead = 0   -- how many of them are dead
  for _, line in ipairs(lines_of(text)) do
    local branch = open[#open]
    local indentation, negated, trait = string.match(line, '^( *)if (n?o?t? ?)([%u_]+) then$')
    if branch and line == branch.indentation .. 'end' then
      dead = dead - (branch.alive and 0 or 1)
      table.remove(open)
    elseif branch and line == branch.indentation .. 'else' then
      branch.alive = not branch.alive
      dead = dead + (branch.alive and -1 or 1)
    elseif trait and traits[trait] ~= nil then
      local alive = traits[trait] == (negated == '')
      table.insert(open, {indentation = indentation, alive = alive})
      dead = dead + (alive and 0 or 1)
    elseif dead == 0 then
      table.insert(out, line .. '\n')
    end
  end
  return table.concat(out)
end

-- The body of a function as a statement, which gives `results` what the function returns. A body with a return before its end
-- becomes a loop that ends at once, so that a break can leave it; such a return must not stand in a loop of its own.
local function statement_of(definition, arguments, results)
  local name, parameters, body = string.match(definition, '^local function ([%l_]+)%(([^)]*)%)\n(.*)\nend\n$')
  local out, breaks = {}, false
  local loop  -- the indentation of the outermost loop that is open
  for _, line in ipairs(lines_of(body)) do
    local indentation, word = string.match(line, '^( +)(%l+) ')
    if not loop and (word == 'for' or word == 'while' or word == 'repeat') then
      loop = indentation
    elseif loop and line == loop .. 'end' then
      loop = nil
    end
    local returned, value = string.match(line, '^( +)return(.*)$')
    if returned and (value == '' or string.sub(value, 1, 1) == ' ') then
      value = string.sub(value, 2)
      if value ~= '' then
        table.insert(out, returned .. results .. ' = ' .. value .. '\n')
      end
      if returned ~= '  ' then
        if loop or string.find(value, '[{(,]$') or string.find(value, ' and$') or string.find(value, ' or$') then
          fail(name .. ' cannot be inline: a return in a loop or of several lines')
        end
        breaks = true
        table.insert(out, returned .. 'break\n')
      end
    elseif string.find(line, '%f[%l_]return%f[^%l_]') then
      fail(name .. ' cannot be inline: a return that does not begin its line')
    else
      table.insert(out, line .. '\n')
    end
  end
  local text = table.concat(out)
  if parameters ~= '' and arguments ~= parameters then
    text = 'local ' .. parameters .. (arguments == '' and '' or ' = ' .. arguments) .. '\n' .. text
  elseif parameters ~= '' and arguments == '' then
    text = 'local ' .. parameters .. '\n' .. text
  end
  return breaks and 'repeat\n' .. text .. 'until true\n' or 'do\n' .. text .. 'end\n'
end

-- Fails if a local of the text has the name of something in the library: a body that is put there would take it for that.
-- `own_names`: what the text itself defines in the library.
local function check_locals(text, own_names, library)
  local locals = {}
  for _, pattern in ipairs({'function [%l_]*%(([%w_, ]*)', 'local ([%w_, ]+)', 'for ([%l_, ]+)'}) do
    for names in string.gmatch(text, pattern) do
      append(locals, identifiers(names))
    end
  end
  local hiding, own = set_of(locals), set_of(own_names)
  for _, index in ipairs(library) do
    for _, name in ipairs(blocks[index].names) do
      if hiding[name] and not own[name] then
        fail('beside a call that is inline, the local ' .. name .. ' hides what lib or kinds define:\n' .. text)
      end
    end
  end
end

-- Of the line "USE NAME(ARGUMENTS)  -- inline": the use ("  local x = ", "  return ", "  "), the names in it, and the call.
local function call_of(line)
  local code = string.match(line, '^(.*)  %-%- inline$')
  for _, pattern in ipairs({'^( *local ([%l_, ]+) = )([%l_]+)%((.*)%)$', '^( *([%l_, ]+) = )([%l_]+)%((.*)%)$',
                            '^( *return ()())([%l_]+)%((.*)%)$', '^( *()())([%l_]+)%((.*)%)$'}) do
    local found = {string.match(code, pattern)}
    if #found == 4 then
      return found[1], found[2], found[3], found[4]
    elseif #found == 5 then
      return found[1], '', found[4], found[5]
    end
  end
  fail('cannot be inline: ' .. line)
end

-- The text of a script of this kind: without dead branches, and each line "NAME(…)  -- inline", also behind "local x = ",
-- "x = " or "return ", with the body of NAME in place of the call. `own_names`: what the text defines; `library`: the blocks that
-- define the functions. An argument with the name of its parameter is not copied.
local function expand(text, own_names, library, traits)
  if not string.find(text, '-- inline\n', 1, true) and not string.find(text, 'if n?o?t? ?[MN]%u+_[%u_]+ then\n') then
    return text
  end
  check_locals(text, own_names, library)
  local out = {}
  for _, line in ipairs(lines_of(without_dead_branches(text, traits))) do
    if not string.find(line, '-- inline', -#'-- inline', true) then
      table.insert(out, line .. '\n')
    else
      local use, names, name, arguments = call_of(line)
      local definition
      for _, index in ipairs(library) do
        if #blocks[index].names == 1 and blocks[index].names[1] == name then
          definition = blocks[index].text
        end
      end
      if not definition or not string.find(definition, '^local function ') then
        fail('no function to be inline: ' .. line)
      end
      local _, more = string.gsub(names, ',', ',')
      local results = 'r_' .. name .. string.rep(', r_' .. name .. '_more', more)
      local body = statement_of(expand(definition, {name}, library, traits), arguments, results)
      local is_used = not string.find(use, '^ *$')
      if is_used or string.find(body, 'r_' .. name .. ' = ', 1, true) then
        table.insert(out, 'local ' .. results .. '\n')
      end
      table.insert(out, body .. (is_used and use .. results .. '\n' or ''))
    end
  end
  return table.concat(out)
end

-- Which of the blocks a text needs, and what those need, in their order.
local function needed_by(text, library)
  local definition, needed = {}, {}
  for _, index in ipairs(library) do
    for _, name in ipairs(blocks[index].names) do
      definition[name] = index
    end
  end
  local open = {unpack(identifiers(text))}
  while #open > 0 do
    local index = definition[table.remove(open)]
    if index and not needed[index] then
      needed[index] = true
      append(open, blocks[index].words)
    end
  end
  local ordered = {}
  for _, index in ipairs(library) do
    if needed[index] then
      table.insert(ordered, index)
    end
  end
  return ordered
end

-- The blocks of a verb, and how many of them are its first part. `library`: those of its kind and of lib, expanded.
local function blocks_of_verb(path, plain_library, library, traits)
  local order, has, first_part = {}, {}, nil
  local rest = read_script(path)
  while rest ~= '' do
    local cut = string.find(rest, '\n-- Otherwise.\n', 1, true)
    local text = expand(without_comments(string.sub(rest, 1, (cut or 0) - 1) .. '\n'), {}, plain_library, traits)
    rest = cut and string.sub(rest, cut + 1) or ''
    local needed = needed_by(text, library)
    table.insert(needed, add_block(text))
    for _, index in ipairs(needed) do
      if not has[index] then
        has[index] = true
        table.insert(order, index)
      end
    end
    first_part = first_part or #order
  end
  return order, first_part
end

local function hex_escapes(text)
  return (string.gsub(text, '.', function(byte) return string.format('\\x%02x', string.byte(byte)) end))
end

-- What the first file has: the lines, the blocks, which consist of numbers of lines, and the scripts, which consist of numbers of blocks.
local line_table, number_of_line, block_table, place_of, definitions = {}, {}, {}, {}, {}

-- The numbers of the lines of a text, two bytes each. The scripts of the kinds share most lines.
local function line_numbers(text)
  local numbers = {}
  for _, line in ipairs(lines_of(text)) do
    if not number_of_line[line] then
      number_of_line[line] = #line_table
      table.insert(line_table, '    "' .. hex_escapes(string.gsub(line, '\n', '')) .. '",\n')
    end
    local number = number_of_line[line]
    table.insert(numbers, string.char(math.floor(number / 256), number % 256))
  end
  return table.concat(numbers)
end

-- The texts of a script: name, first part, whole.
local scripts = {}

local function define(name, order, first_part)
  local places, texts = {}, {}
  for _, index in ipairs(order) do
    if not place_of[index] then
      place_of[index] = #block_table
      table.insert(block_table, '    "' .. hex_escapes(line_numbers(blocks[index].text)) .. '"sv,\n')
    end
    table.insert(places, string.char(place_of[index]))
    table.insert(texts, blocks[index].text)
  end
  local whole = table.concat(texts)
  table.insert(scripts, {name = name, first = table.concat(texts, '', 1, first_part), whole = whole})
  table.insert(definitions, string.format('const Script %s{"%s"sv, blocks, "%s"sv, "%s"sv, %d, lines};\n', name, name,
                                          hex_escapes(table.concat(places)), sha1(whole), first_part))
end

local function scripts_source()
  return [[
// Generated by lua/build.lua.
#include "lua/scripts.h"

namespace rlock::scripts {

using namespace std::string_view_literals;

namespace {

constexpr const char* lines[] = {
]] .. table.concat(line_table) .. [[
};

constexpr std::string_view blocks[] = {
]] .. table.concat(block_table) .. [[
};

}  // namespace

]] .. table.concat(definitions) .. [[

}  // namespace rlock::scripts
]]
end

local files, verbs = {kinds = {}, verbs = {}, single = {}}, {}
for i = 8, #arg do
  table.insert(files[string.match(arg[i], '([^/]+)/[^/]+$')], arg[i])
end
for _, path in ipairs(files.verbs) do
  verbs[stem(path)] = true
end
read_places(verbs)

-- local NAME = digits for each constant of the header that a script names.
local constants = {}
for name in string.gmatch(constant_names, '[^,]+') do
  table.insert(constants, add_block('local ' .. string.upper(name) .. ' = ' .. words['default.' .. name] .. '\n'))
end
local of_lib = {}
for _, name in ipairs({'names', 'exclusive', 'event_log', 'records', 'waiters', 'queue'}) do
  of_lib[name] = add_file(directory .. '/lib/' .. name .. '.lua')
end
for _, kind in ipairs(files.kinds) do
  local multi_holder, needs_no_key =
      string.match(read(kind), "\nlocal NAME, MULTI_HOLDER, NEEDS_NO_KEY = '[%l -]+', (%l+), (%l+)\n")
  if not multi_holder then
    fail(kind .. ' does not tell its traits')
  end
  local traits = {MULTI_HOLDER = multi_holder == 'true', NEEDS_NO_KEY = needs_no_key == 'true'}
  local library = {}
  local shared = traits.MULTI_HOLDER and {} or of_lib.exclusive
  for _, part in ipairs({constants, of_lib.names, shared, add_file(kind), of_lib.event_log, of_lib.records, of_lib.waiters,
                         of_lib.queue}) do
    append(library, part)
  end
  local expanded = {}
  for _, index in ipairs(library) do
    table.insert(expanded, add_block(expand(blocks[index].text, blocks[index].names, library, traits)))
  end
  for _, verb in ipairs(files.verbs) do
    define(stem(kind) .. '_' .. stem(verb), blocks_of_verb(verb, library, expanded, traits))
  end
end
for _, single in ipairs(files.single) do
  define(stem(single), {add_block(without_comments(read_script(single)))}, 1)
end
if #block_table > 256 then
  fail('a script names its blocks by bytes, and there are ' .. #block_table)
end
write(scripts_file, scripts_source())
write(bytecode_file, dofile(directory .. '/bytecode.lua')(scripts))
