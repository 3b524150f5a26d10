-- Plays setpoints.csv to an ArduPilot copter that hovers in Guided mode: position, velocity, acceleration and yaw, 50 times a second.
--
-- Set SCR_ENABLE = 1 and reboot: the autopilot then makes its folder of scripts, APM/scripts on an SD card, or scripts beside the
-- firmware on Linux boards and in the simulator (a script cannot make it). Put this file and setpoints.csv there, set an auxiliary
-- switch to Scripting1 (RCx_OPTION = 300), and reboot. Take off by hand to the height of the plan, let it hover, switch to Guided,
-- then put the switch to high. What the vehicle's nose points to is forward. The switch to low, or any other mode, stops it. In
-- Guided the copter is then told to stay where it is: without a new target it would fly on at its last velocity for GUID_TIMEOUT.

local FOLDERS = { "APM/scripts/", "/APM/scripts/", "scripts/" }
local FILE = "setpoints.csv"
local GUIDED = 4
local SWITCH = 300
local EVERY_MS = 20

local file, row, origin, heading, start_ms, done

local function yaw()
  return (ahrs.get_yaw_rad or ahrs.get_yaw)(ahrs) -- the name before ArduPilot 4.7
end

local function numbers(line)
  local found = {}
  for text in string.gmatch(line, "[^,]+") do
    found[#found + 1] = tonumber(text)
  end
  return found
end

local function hold()
  local place = ahrs:get_relative_position_NED_origin()
  if place and vehicle:get_mode() == GUIDED then
    vehicle:set_target_posvelaccel_NED(place, Vector3f(), Vector3f(), true, math.deg(yaw()) % 360, false, 0, false)
  end
end

local function stop(text)
  if file then
    file:close()
  end
  file, row = nil, nil
  hold()
  gcs:send_text(4, "plan: " .. text)
end

local function begin()
  origin = ahrs:get_relative_position_NED_origin()
  if not origin then
    gcs:send_text(4, "plan: no position estimate")
    done = true
    return
  end
  for _, folder in ipairs(FOLDERS) do
    file = file or io.open(folder .. FILE, "r")
  end
  if not file then
    gcs:send_text(4, "plan: no " .. FILE .. " beside the scripts")
    done = true
    return
  end
  file:read("l")
  row = nil
  heading = yaw()
  start_ms = millis()
  gcs:send_text(5, "plan: playing")
end

local function turned(forward, right, down)
  local v = Vector3f()
  v:x(math.cos(heading) * forward - math.sin(heading) * right)
  v:y(math.sin(heading) * forward + math.cos(heading) * right)
  v:z(down)
  return v
end

local function play()
  local t = (millis() - start_ms):tofloat() * 0.001
  while not row or row[1] < t - 0.0005 * EVERY_MS do -- the row nearest in time
    local line = file:read("l")
    if not line then
      done = true
      stop("done, land by hand")
      return
    end
    row = numbers(line)
  end
  local p = origin + turned(row[2], row[3], row[4])
  vehicle:set_target_posvelaccel_NED(p, turned(row[5], row[6], row[7]), turned(row[8], row[9], row[10]),
    true, math.deg(heading + row[11]) % 360, true, math.deg(row[12]), false)
end

function update()
  local high = rc:get_aux_cached(SWITCH) == 2
  local ready = high and arming:is_armed() and vehicle:get_mode() == GUIDED
  if not high then
    done = false
  end
  if file and not ready then
    stop("stopped")
    done = high
  elseif file then
    play()
  elseif ready and not done then
    begin()
  end
  return update, EVERY_MS
end

gcs:send_text(6, "plan: waiting for Guided and the switch")
return update, EVERY_MS
