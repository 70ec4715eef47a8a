# SPDX-License-Identifier: MIT
# Reads CTest's JUnit file and counts single cases: a test whose output ends with "N passed, N failed, N skipped"
# counts as these, any other as one. Names what was skipped and why; the last line is the total.
function finish(    reason) {
	if (status == "fail" && f == 0)
		f = 1               # died before or after it counted
	if (status == "notrun" && message !~ /^SKIP_/)
		f = 1               # no program, or what it needs failed
	if (p + f + s == 0)
		status == "run" ? p = 1 : s = 1
	passed += p; failed += f; skipped += s
	if (f > 0)
		bad = bad "  " name (message == "" ? "" : ": " message) "\n"
	if (s > 0 && why == "")
		why = "  " name ": gave no reason\n"
	reasons = reasons why
}
/^\t<testcase / {
	split($0, part, "\"")       # name="…" classname="…" time="…" status="…"
	name = part[2]; status = part[8]; message = why = ""; p = f = s = 0
}
/<skipped message="/ { split($0, part, "\""); message = part[2] }
{
	line = $0
	sub(/.*<system-out>/, "", line)
	gsub(/&lt;/, "<", line); gsub(/&gt;/, ">", line); gsub(/&quot;/, "\"", line); gsub(/&amp;/, "\\&", line)
}
line ~ /^input: / { inputs = inputs "  " name ": " substr(line, 8) "\n" }
line ~ /^skipped: / { why = why "  " name ": " substr(line, 10) "\n" }
line ~ /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { split(line, n, " "); p = n[1]; f = n[3]; s = n[5] }
/^\t<\/testcase>/ { finish(); tests++ }
END {
	if (inputs != "")
		printf "Input of the tutorials:\n%s", inputs
	if (reasons != "")
		printf "Skipped, and why:\n%s", reasons
	if (bad != "")
		printf "Failed:\n%s", bad
	printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
	exit tests == 0 || failed > 0
}
