# SPDX-License-Identifier: Apache-2.0
# awk -v most=0.01 -f same_losses.awk EXPECTED PRINTED: of the lines that both files have up to a
# "loss ", the losses, and what they are "then", differ by at most so much. There have to be some.
# Progress is shown by the clock: other lines may be in one file alone.
{
  at = index($0, "loss ")
  if (!at) next
  line = substr($0, 1, at - 1)
  split(substr($0, at), words, " ")
  found = words[3] == "then" ? words[2] + 0 " " words[4] + 0 : words[2] + 0
  if (FILENAME == ARGV[1]) {
    expected[line] = found
  } else if (line in expected) {
    ++compared
    split(found, now, " ")
    split(expected[line], before, " ")
    for (i in before)
      if (now[i] ~ /n/ || now[i] - before[i] > most || before[i] - now[i] > most) {  # nan, inf
        print $0 "\n  expected " expected[line] ", but for differences of " most
        failed = 1
      }
  }
}
END {
  print compared + 0 " losses were compared"
  exit failed || !compared
}
