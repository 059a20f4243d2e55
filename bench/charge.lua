-- wrk script: every request is a POST of charge.json, the file beside this one.
local folder = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local file = assert(io.open(folder .. "charge.json", "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
wrk.headers["Content-Type"] = "application/json"
file:close()
