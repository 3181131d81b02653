// SPDX-License-Identifier: Apache-2.0
// docs/wire.md says what the sources do: names come from their text, numbers and types from the
// program.
#include <algorithm>
#include <deft/deft.hpp>
#include <deft/session/wire/codec.hpp>
#include <deft/session/wire/senders.hpp>
#include <deft/transport/connection.hpp>
#include <deft/transport/frame.hpp>
#include <deft/transport/handshake.hpp>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

std::string file(const std::string& name) {
  std::ifstream in(DEFT_TEST_ROOT "/" + name, std::ios::binary);
  REQUIRE_MESSAGE(in, name);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What is between `begin` and `end`.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin);
  REQUIRE_MESSAGE(from != std::string::npos, begin);
  const auto at = from + begin.size();
  return text.substr(at, text.find(end, at) - at);
}

/// The pieces of `text` between commas and the like.
std::vector<std::string> split(const std::string& text, const std::string& at) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + at.size();
  }
  return pieces;
}

using row = std::vector<std::string>;

/// The rows of the table of docs/wire.md that begins with these headers.
std::vector<row> table(const std::string& headers) {
  static const std::string page = file("docs/wire.md");
  std::istringstream lines(between(page, "\n| " + headers + " |", "\n\n"));
  std::string line;
  std::getline(lines, line);  // further headers
  std::getline(lines, line);  // |---|
  std::vector<row> rows;
  while (std::getline(lines, line)) {
    rows.emplace_back();
    for (std::size_t at = 1; at < line.size();) {
      const std::size_t end = line.find('|', at), first = line.find_first_not_of(' ', at);
      const std::size_t last = line.find_last_not_of(' ', end - 1);
      rows.back().push_back(first < end ? line.substr(first, last - first + 1) : std::string());
      at = end + 1;
    }
  }
  return rows;
}

/// What is in backticks, each with the text up to the next one.
std::vector<std::pair<std::string, std::string>> marked(const std::string& cell) {
  const auto pieces = split(cell, "`");
  std::vector<std::pair<std::string, std::string>> all;
  for (std::size_t i = 1; i < pieces.size(); i += 2)
    all.emplace_back(pieces[i], i + 1 < pieces.size() ? pieces[i + 1] : "");
  return all;
}

/// The names in backticks, as "handle, draw".
std::string names(const std::string& cell) {
  std::string list;
  for (const auto& [name, rest] : marked(cell)) list += (list.empty() ? "" : ", ") + name;
  return list;
}

/// "`bool` 6" and the like.
std::map<std::string, int> numbers(const std::string& cell) {
  std::map<std::string, int> all;
  for (const auto& [name, number] : marked(cell)) all[name] = std::stoi(number);
  return all;
}

/// What the row of a type says, in the table of types.
std::string type_row(const std::string& type) {
  for (const auto& r : table("type"))
    if (r.at(0) == type) return r.at(1);
  FAIL(type << " has no row");
  return {};
}

// Types as the page names them.

template <class T>
std::string type_name() {
  if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return "u32";
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return "u64";
  else if constexpr (std::is_same_v<T, std::string>)
    return "text";
  else if constexpr (std::is_same_v<T, std::chrono::nanoseconds>)
    return "duration";
  else if constexpr (std::is_same_v<T, graph_def>)
    return "graph";
  else if constexpr (std::is_same_v<T, session_options>)
    return "options";
  else if constexpr (std::is_same_v<T, edge_def>)
    return "edge";
  else if constexpr (std::is_same_v<T, plan::part>)
    return "part";
  else if constexpr (std::is_same_v<T, plan::pass_size>)
    return "pass";
  else if constexpr (std::is_same_v<T, plan::unfused_edge>)
    return "pair";
  else if constexpr (std::is_same_v<T, device_info>)
    return "device";
  else if constexpr (std::is_same_v<T, trace_event>)
    return "event";
  else if constexpr (std::is_same_v<T, step_fate>)
    return "fate";
  else if constexpr (std::is_same_v<T, incarnation_list::value_type>)
    return "(text, u64)";
  else
    return "list of " + type_name<typename T::value_type>();
}

/// The types of what a message has in its metadata.
struct metadata_types {
  std::vector<std::string> types = {};

  template <class... T>
  void meta(const T&...) {
    (types.push_back(type_name<T>()), ...);
  }
  void keys(const std::vector<std::uint32_t>& k) { meta(k); }
  void extras(const std::vector<std::uint32_t>& k, const std::vector<trace_event>& t) {
    meta(k, t);
  }
  template <class... T>
  void ids(const T&...) {}
  template <class T>
  void flags(const T&) {}
  template <class T>
  void tensors(const T&) {}
  template <class T>
  void credit(const T&) {}
};

template <class M>
std::pair<const std::string, std::vector<std::string>> typed(const char* name) {
  metadata_types t;
  M().fields(t);
  return {name, t.types};
}

/// Of every message and answer; a test compares the names with messages.hpp.
std::map<std::string, std::vector<std::string>> types_of_messages() {
#define DEFT_TYPED(name) typed<wire::name>(#name)
  return {DEFT_TYPED(register_part),  DEFT_TYPED(run_part),       DEFT_TYPED(tensors),
          DEFT_TYPED(cancel_step),    DEFT_TYPED(drop_part),      DEFT_TYPED(drop_session),
          DEFT_TYPED(devices),        DEFT_TYPED(reset),          DEFT_TYPED(link_lost),
          DEFT_TYPED(resolve_step),   DEFT_TYPED(open_session),   DEFT_TYPED(make_plan),
          DEFT_TYPED(run_plan),       DEFT_TYPED(drop_plan),      DEFT_TYPED(cluster_devices),
          DEFT_TYPED(reset_cluster),  DEFT_TYPED(close_session),  DEFT_TYPED(cancel_run),
          DEFT_TYPED(describe_plan),  DEFT_TYPED(resolve_run),    DEFT_TYPED(wait_signal),
          DEFT_TYPED(set_signal),     DEFT_TYPED(done),           DEFT_TYPED(nothing),
          DEFT_TYPED(values),         DEFT_TYPED(session_opened), DEFT_TYPED(plan_made),
          DEFT_TYPED(plan_described), DEFT_TYPED(fate_of_step),   DEFT_TYPED(device_list)};
#undef DEFT_TYPED
}

/// The members that `fields()` of a message gives to one of the visitor's functions, likewise.
std::string given_to(const std::string& function, const std::string& body) {
  const std::string call = "f." + function + "(";
  if (body.find(call) == std::string::npos) return {};
  std::string list;
  for (const auto& member : split(between(body, call, ");"), ", "))
    list += (list.empty() ? "" : ", ") + member.substr(member.rfind('.') + 1);
  return list;
}

/// The word after `begin`; empty if that is not in `text`.
std::string word_after(const std::string& begin, const std::string& text) {
  return text.find(begin) == std::string::npos ? std::string() : between(text, begin, ";");
}

std::string may_send(const std::string& message) {
  for (const auto& r : wire::message_rules)
    if (r.name == message) {
      switch (r.may_send) {
        case wire::sender::anyone:
          return "anyone";
        case wire::sender::task:
          return "task";
        case wire::sender::master:
          return "master";
        case wire::sender::step_tasks:
          return "step_tasks";
        case wire::sender::client:
          return "client";
      }
    }
  return "worker";
}

/// The enumerators of an enum class, as they are written.
std::map<std::string, std::string> enumerators(const std::string& text, const std::string& name) {
  std::map<std::string, std::string> all;
  for (const auto& line : split(between(text, "enum class " + name + " :", "};"), "\n")) {
    const std::size_t equals = line.find(" = ");
    if (!line.starts_with("  ") || equals == std::string::npos) continue;
    all[line.substr(2, equals - 2)] = line.substr(equals + 3, line.find(',') - equals - 3);
  }
  REQUIRE(!all.empty());
  return all;
}

}  // namespace

TEST_CASE("the wire page lists every message with its number and fields") {
  const std::string source = file("include/deft/session/wire/messages.hpp");
  auto kinds = enumerators(source, "kind");
  const auto types = types_of_messages();
  std::map<std::string, row> on_page;
  for (const auto& r : table("kind | name | from | ids")) {
    const bool is_new = on_page.emplace(names(r.at(1)), r).second;
    CHECK_MESSAGE(is_new, r.at(1));
  }
  std::size_t structs = 0;
  const std::string opening = "\nstruct ";
  for (auto at = source.find(opening); at != std::string::npos; at = source.find(opening, at + 1)) {
    ++structs;
    const std::string rest = source.substr(at);
    const std::string name = between(rest, opening, " {"), body = between(rest, " {\n", "\n};");
    CAPTURE(name);
    REQUIRE(on_page.contains(name));
    REQUIRE(types.contains(name));
    const row& r = on_page[name];
    REQUIRE(r.size() == 8);

    const std::string number = word_after("number = kind::", body);
    if (number.empty()) {
      CHECK(r[0] == "7");
      CHECK(r[2].empty());
    } else {
      CHECK(number == name);
      CHECK(r[0] == kinds[name]);
      CHECK(names(r[2]) == may_send(name));
      kinds.erase(name);
    }
    CHECK(names(r[3]) == given_to("ids", body));
    CHECK(names(r[4]) == given_to("flags", body) + given_to("keys", body));
    CHECK(names(r[6]) == given_to("tensors", body));
    CHECK((r[6].find("takes credit") != std::string::npos) == !given_to("credit", body).empty());
    CHECK(names(r[7]) == word_after("using answer = ", body));

    CHECK(names(r[5]) ==
          given_to("meta", body) + given_to("keys", body) + given_to("extras", body));
    std::vector<std::string> said;
    for (const auto& [field, type] : marked(r[5])) {
      const std::size_t end = type.ends_with(", ") ? type.size() - 2 : type.size();
      said.push_back(type.substr(1, end - 1));
    }
    CHECK(said == types.at(name));
  }
  CHECK(structs == on_page.size());
  CHECK(structs == types.size());
  for (const auto& kind : kinds) CHECK_MESSAGE(false, kind.first << " has no struct");
}

TEST_CASE("the wire page lists the kinds of the handshake and of every connection") {
  auto kinds = enumerators(file("include/deft/transport/message.hpp"), "message_kind");
  CHECK(kinds["first_free"] == "16");
  kinds.erase("none");
  kinds.erase("first_free");
  std::map<std::string, std::string> said;
  for (const auto& r : table("kind | name | from | metadata")) said[names(r.at(1))] = r.at(0);
  CHECK(said == kinds);

  std::string body = between(file("include/deft/transport/introduction.ipp"),
                             "void serialize(Archive& ar, introduction& i, unsigned) {", "\n}");
  std::erase_if(body, [](char c) { return c == ' ' || c == '\n'; });
  std::string sent;
  for (const auto& statement : split(body, ";"))
    for (const auto& member : split(statement, "&"))
      if (member != "ar") sent += (sent.empty() ? "" : ", ") + member.substr(member.find('.') + 1);
  CHECK(names(type_row("introduction")) == sent);
}

TEST_CASE("the wire page has the header of a frame") {
  std::map<std::string, std::pair<std::size_t, std::size_t>> said;
  for (const auto& r : table("offset"))

    said[names(r.at(2))] = {std::stoul(r.at(0)), std::stoul(r.at(1))};
  using detail::frame_header;
  /// The first byte that `set` changes, and how many it does.
  const auto changed = [](auto set) {
    frame_header one;
    set(one);
    const auto a = detail::encode_header({}), b = detail::encode_header(one);
    std::size_t first = a.size(), count = 0;
    for (std::size_t i = a.size(); i-- > 0;)
      if (a[i] != b[i]) first = i, ++count;
    return std::pair(first, count);
  };
  using place = std::pair<std::size_t, std::size_t>;
  std::map<std::string, place> real{
      {"magic", {0, sizeof detail::frame_magic}},
      {"version", changed([](frame_header& h) { h.version = 0xffff; })},
      {"kind", changed([](frame_header& h) { h.kind = static_cast<message_kind>(0xffff); })},
      {"flags", changed([](frame_header& h) { h.flags = ~0u; })},
      {"tensors", changed([](frame_header& h) { h.tensors = ~0u; })},
      {"meta", changed([](frame_header& h) { h.meta = ~0ull; })},
      {"payload", changed([](frame_header& h) { h.payload = ~0ull; })},
      {"id", changed([](frame_header& h) { h.id = ~0ull; })},
      {"session", changed([](frame_header& h) { h.session = ~0ull; })},
      {"step", changed([](frame_header& h) { h.step = ~0ull; })},
      {"descriptors", changed([](frame_header& h) { h.descriptors = ~0u; })},
      {"spinning", {detail::spinning_at, 1}},
      {"spinning_for", {detail::spinning_at + 1, 1}},
      {"takes_credit", changed([](frame_header& h) { h.takes_credit = true; })}};
  for (const auto& field : real) {
    const std::string& name = field.first;
    CAPTURE(name);
    REQUIRE(said.contains(name));
    CHECK(said[name].first == field.second.first);
    CHECK(said[name].second == field.second.second);
  }
  CHECK(said.size() == real.size());

  const std::string page = file("docs/wire.md");
  CHECK(page.find("a header of " + str(detail::header_bytes) + " bytes") != std::string::npos);
  std::ostringstream magic;
  magic << "0x" << std::hex << detail::frame_magic;
  CHECK(page.find("\"DEFT\", " + magic.str()) != std::string::npos);
  CHECK(page.find("frames, handshake and messages: " + str(protocol_version) + " |") !=
        std::string::npos);
}

TEST_CASE("the wire page has the numbers of dtypes and errors") {
  std::map<std::string, int> dtypes, codes;
  dtypes["none"] = 0;
  for (const dtype t : every_dtype) dtypes[std::string(to_string(t))] = static_cast<int>(t);
  const std::string row = type_row("dtype");
  CHECK(numbers(row) == dtypes);

  for (const auto& [name, number] : enumerators(file("include/deft/core/error.hpp"), "errc"))
    codes[name] = std::stoi(number);
  CHECK(numbers(type_row("code")) == codes);
  std::map<std::string, int> reasons;
  for (const auto& [name, number] :
       enumerators(file("include/deft/core/error.hpp"), "error_reason"))
    reasons[name] = std::stoi(number);
  const std::string of_reasons = type_row("reason");
  CHECK(numbers(of_reasons.substr(0, of_reasons.find(';'))) == reasons);
  CHECK(reasons.size() == static_cast<std::size_t>(last_error_reason) + 1);
}

TEST_CASE("the wire page has the limits") {
  const wire_limits messages, before = wire_limits::before_authentication();
  CHECK(before.tensors == 0);
  CHECK(before.payload == 0);
  const archive_limits metadata;
  const credit_window window;
  const std::map<std::string, std::uint64_t> real{
      {"wire_limits::meta", messages.meta},         {"wire_limits::payload", messages.payload},
      {"wire_limits::tensors", messages.tensors},   {"max_rank", max_rank},
      {"before_authentication::meta", before.meta}, {"archive_limits::memory", metadata.memory},
      {"archive_limits::depth", metadata.depth},    {"longest_name", detail::longest_name},
      {"credit_window::bytes", window.bytes},       {"credit_window::frames", window.frames},
      {"most_calls", connection::most_calls}};
  std::map<std::string, std::uint64_t> said;
  for (const auto& r : table("limit")) {
    const auto limits = marked(r.at(0));
    auto values = split(r.at(1), ", ");
    REQUIRE(limits.size() == values.size());
    for (std::size_t i = 0; i < limits.size(); ++i) {
      std::erase(values[i], ',');
      said[limits[i].first] = std::stoull(values[i]);
    }
  }
  CHECK(said == real);
}
