# SPDX-License-Identifier: Apache-2.0
# awk -f exports.awk HEADER...: the names directly in namespace deft, one a line, as clang-format has
# left them: what a declaration says begins at the start of a line.

function flush(   head, name) {
  head = text
  text = ""
  gsub(/\[\[[^]]*\]\]/, "", head)
  sub(/^(DEFT_[A-Z]+ )+/, "", head)
  if (head ~ /operator/ || head ~ /^using namespace/ || head ~ /^static_assert/) return
  if (match(head, /^(class|struct|union|enum class|enum) +[A-Za-z_0-9]+/)) {
    name = substr(head, RSTART, RLENGTH)
    sub(/.* /, "", name)
  } else if (match(head, /^(using|concept) +[A-Za-z_0-9]+/)) {
    name = substr(head, RSTART, RLENGTH)
    sub(/.* /, "", name)
  } else {
    sub(/[({=;].*/, "", head)         # up to parameters or a value
    sub(/ +$/, "", head)
    sub(/<[^<>]*>$/, "", head)        # a specialization
    if (!match(head, /[A-Za-z_0-9:]+$/)) return
    name = substr(head, RSTART, RLENGTH)
  }
  if (name ~ /::/ || name ~ /^DEFT_/ || name == "") return
  print name
}

FNR == 1 { depth = braces = 0; text = "" }
{
  gsub(/\\./, "")
  gsub(/'.'/, "")
  gsub(/"[^"]*"/, "")
  sub(/ *\/\/.*/, "")
  gsub(/decltype\(auto\)/, "auto")
  before = braces
  line = $0
  braces += gsub(/\{/, "", line) - gsub(/\}/, "", line)
  while (depth && braces < opened[depth]) --depth
}
before == depth && /^namespace [^{]*\{/ {
  line = $0
  sub(/^namespace */, "", line)
  sub(/ *\{.*/, "", line)
  if (depth == 0 && line ~ /^deft::/) {
    name = line
    sub(/^deft::/, "", name)
    sub(/::.*/, "", name)
    print name
  }
  if (depth == 1 && spaces[1] == "deft" && line != "") print line
  if (braces > before) {
    spaces[++depth] = line
    opened[depth] = braces
  }
  next
}
depth != 1 || spaces[1] != "deft" { next }
text == "" && before == 1 && /^[A-Za-z_\[]/ && !/^template/ && !/^(public|private|protected):/ {
  line = $0
  if (line ~ /^requires/) {
    if (line !~ /^requires *\(/) next
    # A clause in parentheses, and what follows it.
    level = 0
    for (i = 1; i <= length(line); ++i) {
      c = substr(line, i, 1)
      if (c == "(") ++level
      if (c == ")" && --level == 0) break
    }
    line = substr(line, i + 1)
    sub(/^ +/, "", line)
    if (line == "" || line ~ /^(&&|\|\|)/) next
  }
  text = line
  if (line ~ /[({;=]/ || line ~ /^(class|struct|enum|union|using|concept)/) flush()
  next
}
text != "" {
  text = text " " $0
  if ($0 ~ /[({;=]/) flush()
}
