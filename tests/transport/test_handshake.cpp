// SPDX-License-Identifier: Apache-2.0
#include <deft/transport/handshake.hpp>

#include "introduction.hpp"
#include "raw_peer.hpp"

using namespace testing;

namespace {

/// The error of connecting to `l` as `self`; empty if it is accepted.
std::string outcome(const listener& l, process_identity self) {
  channel_group h({std::move(self), {}});
  return error_of([&] { h.connect(l.address(), soon()); });
}

std::vector<std::byte> hello_of_forger(bool secret, std::uint64_t catalog = 0) {
  return introduction_by_hand{"forger", 1, secret, catalog}.meta();
}

}  // namespace

TEST_CASE("both ends are identified after the handshake") {
  test_handler handler;
  mailbox<peer_info> seen;
  handler.opened = [&](const auto& c) { seen.put(c->peer()); };
  auto o = options_of_test("open sesame");
  o.self.cluster = {"/job:ps/task:0 at a:1"};
  listener l(o, handler);
  channel_group h({{"worker/0", 5, {"/job:ps/task:0 at a:1"}, {"open sesame"}}, {}});
  auto c = h.connect(l.address(), soon());
  CHECK(c->peer().name == "/job:ps/replica:0/task:0");
  CHECK(c->peer().address == l.address());
  CHECK(c->peer().incarnation == l.incarnation());
  CHECK(c->peer().authenticated);
  CHECK(c->peer().same_catalog);
  CHECK(c->peer().to_string() == "/job:ps/replica:0/task:0 at " + l.address());
  auto client = seen.get();
  CHECK(client.name == "worker/0");
  CHECK(client.incarnation == 5);
  CHECK(client.authenticated);
  CHECK(client.same_catalog);
  CHECK(client.knows(*find_op("add")));
}

TEST_CASE("a server that restarts is another incarnation") {
  test_handler handler;
  listener a(options_of_test(), handler), b(options_of_test(), handler);
  CHECK(a.incarnation() != 0);
  CHECK(a.incarnation() != b.incarnation());
}

TEST_CASE(
    "a client with a wrong secret is refused with a message, and so is a server without one") {
  captured_log log;
  test_handler handler;
  listener guarded(options_of_test("right"), handler), open(options_of_test(), handler);
  std::string at = "/job:ps/replica:0/task:0 at " + guarded.address();
  CHECK(outcome(guarded, {"client", 0, {}, {.secret = "right"}}) == "");
  CHECK(outcome(guarded, {"client", 0, {}, {.secret = "wrong"}}) ==
        "unauthenticated: " + at +
            " refused the connection: /job:ps/replica:0/task:0 does not accept the caller's "
            "secret");
  log.wait_for("does not accept the caller's secret");
  CHECK(outcome(guarded, {"client", 0, {}, {}}) ==
        "unauthenticated: " + at +
            " requires a secret: set DEFT_SECRET, or give its file by --secret_file");
  CHECK(outcome(open, {"client", 0, {}, {.secret = "right"}}) ==
        "unauthenticated: /job:ps/replica:0/task:0 at " + open.address() +
            " has no secret, but this process requires one");
}

TEST_CASE("a proof can be neither omitted, nor replayed, nor reflected") {
  test_handler handler;
  bool opened = false;
  handler.opened = [&](const auto&) { opened = true; };
  listener l(options_of_test("secret"), handler);
  auto refused = [](raw_peer& f) {
    return f.refusal().find("does not accept") != std::string::npos;
  };

  raw_peer without(l.address());
  without.say(message_kind::hello, hello_of_forger(true));
  without.hear();
  without.say(message_kind::proof, proof_by_hand());
  CHECK(refused(without));

  // A client proves itself to an impostor, who sends the same hello and the proof to the server.
  raw_peer thief(l.address());
  std::vector<std::byte> hello, proof;
  test_handler unused;
  int trap = listen_socket("localhost:0");
  std::thread victim([address = address_of_socket(trap)] {
    channel_group h(client_of_test("secret"));
    error_of([&] { h.connect(address, soon()); });
  });
  {
    raw_peer impostor(bare_socket(::accept(trap, nullptr, nullptr)).stream());
    hello = impostor.hear().meta;
    thief.say(message_kind::hello, hello);
    // Its own: the server's would contain the server's nonce.
    impostor.say(message_kind::challenge,
                 introduction_by_hand{options_of_test().self.name, 1, true}.meta());
    const auto m = impostor.hear();
    CHECK(m.kind == message_kind::proof);
    proof = m.meta;
    impostor.say(message_kind::refused, to_bytes(errc::unauthenticated, "enough"));
    impostor.state().drain(soon());
  }
  victim.join();
  ::close(trap);
  CHECK(thief.hear().kind == message_kind::challenge);
  thief.say(message_kind::proof, proof);
  CHECK(refused(thief));
  CHECK(!opened);
}

TEST_CASE("a server has to prove that it knows the secret") {
  int trap = listen_socket("localhost:0");
  std::string what;
  std::thread client([&, address = address_of_socket(trap)] {
    channel_group h(client_of_test("secret"));
    what = error_of([&] { h.connect(address, soon()); });
  });
  {
    const auto accepted = std::make_shared<detail::connection_state>(
        bare_socket(::accept(trap, nullptr, nullptr)).stream(),
        wire_limits::before_authentication());
    auto& impostor = *accepted;
    message m;
    REQUIRE(impostor.receive(m, soon()));
    message challenge(message_kind::challenge);
    challenge.meta = introduction_by_hand{options_of_test().self.name, 1, true}.meta();
    impostor.send(challenge);
    REQUIRE(impostor.receive(m, soon()));
    message welcome(message_kind::welcome);
    std::vector<std::uint8_t> proof;
    std::vector<std::string> catalog, hosts;
    std::uint64_t hash = 0;
    from_bytes(m.meta, proof, catalog, hosts, hash);
    // Sends the client's own proof back.
    welcome.meta = to_bytes(proof, catalog, std::string(), detail::local_offer::token{},
                            detail::local_offer::token{});
    impostor.send(welcome);
    client.join();
  }
  ::close(trap);
  CHECK(what.find("cannot prove that it knows the secret") != std::string::npos);
}

TEST_CASE(
    "tasks of another cluster are refused with the first difference; no cluster matches any") {
  test_handler handler;
  auto o = options_of_test();
  o.self.cluster = {"/job:ps/task:0 at a:1", "/job:worker/task:0 at b:1"};
  listener l(o, handler);
  CHECK(outcome(l, {"worker/0", 0, o.self.cluster, {}}) == "");
  CHECK(outcome(l, {"client", 0, {}, {}}) == "");
  auto refusal = [&](std::vector<std::string> cluster) {
    const std::string text = outcome(l, {"worker/0", 0, std::move(cluster), {}});
    const std::string begin = "belongs to another cluster than \"worker/0\": ";
    const auto at = text.find(begin);
    return at == text.npos ? text : text.substr(at + begin.size());
  };
  CHECK(refusal({"/job:ps/task:0 at a:1", "/job:worker/task:0 at c:9"}) ==
        "it was started with /job:worker/task:0 at b:1, and the caller with /job:worker/task:0 at "
        "c:9");
  CHECK(refusal({"/job:ps/task:0 at a:1"}) ==
        "it was started with /job:worker/task:0 at b:1, and the caller with no further task");
  auto more = o.self.cluster.lines();
  more.push_back("/job:worker/task:1 at d:1");
  CHECK(refusal(more) ==
        "it was started with no further task, and the caller with /job:worker/task:1 at d:1");
  // A list too long for a handshake is compared as far as it is sent.
  auto many = o.self.cluster.lines();
  for (int i = 0; i < 10'000; ++i) many.push_back(str("/job:worker/task:", i + 1, " at e:1"));
  CHECK(refusal(many) ==
        "it was started with no further task, and the caller with /job:worker/task:1 at e:1");
  // Text that is not printable is not printed.
  CHECK(refusal({"/job:ps/task:0 at \x1b[2Ja:1"}) ==
        "they were started with different lists of hosts");
}

TEST_CASE(
    "lists of hosts that differ only in the part that is not sent are reported as different") {
  test_handler handler;
  auto o = options_of_test();
  std::vector<std::string> tasks;
  for (int i = 0; i < 2'000; ++i) tasks.push_back(str("/job:worker/task:", i, " at e:1"));
  o.self.cluster = tasks;
  listener l(o, handler);
  auto other = tasks;
  other.back() = "/job:worker/task:1999 at f:1";
  const std::string text = outcome(l, {"worker/0", 0, other, {}});
  CHECK(text.ends_with("they were started with different lists of hosts"));
}

TEST_CASE("if catalogs differ, both ends learn what is missing, and continue") {
  test_handler handler;
  mailbox<peer_info> seen;
  handler.opened = [&](const auto& c) { seen.put(c->peer()); };
  listener l(options_of_test(), handler);
  raw_peer f(l.address());
  f.say(message_kind::hello, hello_of_forger(false, 12345));
  CHECK(f.hear().kind == message_kind::challenge);
  auto mine = catalog_list();
  std::erase(mine, "add/1");
  const op_def conv9d{.name = "conv9d", .version = 3};
  mine.push_back(catalog_entry(conv9d));
  f.say(message_kind::proof, proof_by_hand(mine));
  auto welcome = f.hear();
  CHECK(welcome.kind == message_kind::welcome);
  std::vector<std::uint8_t> seal;
  std::vector<std::string> theirs;
  std::string local;
  detail::local_offer::token tokens[2];
  from_bytes(welcome.meta, seal, theirs, local, tokens[0], tokens[1]);
  CHECK(local == "");
  CHECK(theirs == catalog_list());
  auto peer = seen.get();
  CHECK(!peer.same_catalog);
  CHECK(peer.lacks == std::vector<std::string>{"add/1"});
  CHECK(peer.offers == std::vector<std::string>{catalog_entry(conv9d)});
  CHECK(!peer.knows(*find_op("add")));
  CHECK(peer.knows(*find_op("mul")));
  // The other process may have operations that this one has not registered.
  CHECK(peer.knows(conv9d));
  CHECK(!peer.knows({.name = "conv9d", .version = 2}));
  CHECK(!peer_info().knows(conv9d));
}

TEST_CASE("another version of the protocol is refused with a message that it can read") {
  test_handler handler;
  listener l(options_of_test(), handler);
  message hello(message_kind::hello);
  hello.meta = hello_of_forger(false);
  auto frame = detail::flatten_frame(hello);
  const int another = protocol_version + 1;
  frame[4] = static_cast<std::byte>(another);
  bare_socket s(l.address());
  s.write(frame);
  auto answer = s.read_all();
  REQUIRE(answer.size() > detail::header_bytes);
  CHECK(answer[6] == static_cast<std::byte>(message_kind::refused));
  std::string text(reinterpret_cast<const char*>(answer.data()), answer.size());
  CHECK(text.find(str("the peer uses version ", another,
                      " of the protocol, and this process version ", protocol_version)) !=
        text.npos);
}

TEST_CASE("why a peer refuses is escaped in errors and in the log") {
  const std::string evil = "x\n04:00:00.000 E worker/0: forged \x1b[31m",
                    shown = "x\\n04:00:00.000 E worker/0: forged \\x1b[31m";
  SUBCASE("by a false server") {
    const int trap = listen_socket("localhost:0");
    std::string what;
    std::thread victim([&, address = address_of_socket(trap)] {
      channel_group h(client_of_test());
      what = error_of([&] { h.connect(address, soon()); });
    });
    {
      raw_peer server(bare_socket(::accept(trap, nullptr, nullptr)).stream());
      server.hear();
      server.say(message_kind::refused, to_bytes(errc::permission_denied, evil));
      server.state().drain(soon());
      victim.join();
    }
    ::close(trap);
    CHECK(what.ends_with("refused the connection: " + shown));
  }
  SUBCASE("by a caller that has not been authenticated") {
    captured_log log;
    test_handler handler;
    listener l(options_of_test("secret"), handler);
    raw_peer caller(l.address());
    caller.say(message_kind::refused, to_bytes(errc::permission_denied, evil));
    CHECK(log.wait_for("forged").ends_with("it refused: " + shown));
  }
}

namespace {

/// What a client says that connects to a server written by hand, which does `serve`.
template <class Serve>
std::string outcome_with(Serve serve, const std::string& task = "", std::string* at = nullptr) {
  const int trap = listen_socket("localhost:0");
  const std::string address = address_of_socket(trap);
  std::string what;
  std::thread client([&] {
    channel_group h(client_of_test());
    what = error_of([&] { h.connect(address, soon(), {}, task); });
  });
  {
    bare_socket accepted(::accept(trap, nullptr, nullptr));
    serve(accepted);
    client.join();
  }
  ::close(trap);
  if (at) *at = address;
  return what;
}

}  // namespace

TEST_CASE("a server has to be a task of a cluster, and the one that the caller wants") {
  auto answers_as = [](const std::string& name) {
    return [name](bare_socket& s) {
      raw_peer server(s.stream());
      server.hear();
      server.say(message_kind::challenge, introduction_by_hand{name, 1}.meta());
      server.hears_the_end();  // and gets no proof
    };
  };
  std::string at;
  for (const char* name : {"client", "worker/0", "", "/job:ps", "/job:ps/task:0", "/cpu:0",
                           "/job:ps/replica:1/task:0", "/job:ps/replica:0/task:0/cpu:0"}) {
    CAPTURE(name);
    const std::string what = outcome_with(answers_as(name), "", &at);
    CHECK(
        what ==
        str("failed_precondition: ", at, " is \"", name,
            "\", which is not the name of a task of a cluster, such as /job:ps/replica:0/task:0"));
  }
  const std::string wanted = "/job:worker/replica:0/task:0";
  const std::string what = outcome_with(answers_as("/job:worker/replica:0/task:1"), wanted, &at);
  CHECK(what == "failed_precondition: " + at + " is /job:worker/replica:0/task:1, not " + wanted);
}

TEST_CASE("errors of a handshake name the address") {
  std::string at;
  std::string what =
      outcome_with([](bare_socket& s) { s.write("HTTP/1.1 400 Bad Request\r\n\r\n"); }, "", &at);
  CHECK(what ==
        "data_loss: cannot connect to " + at +
            ": received something other than a deft frame: it begins with 48 54 54 50 2f 31 "
            "2e 31");
  const int another = protocol_version + 1;
  auto of_another_version = [&](bare_socket& s) {
    message challenge(message_kind::challenge);
    challenge.meta = introduction_by_hand{"/job:ps/replica:0/task:0"}.meta();
    auto frame = detail::flatten_frame(challenge);
    frame[4] = static_cast<std::byte>(another);
    s.write(frame);
  };
  what = outcome_with(of_another_version, "", &at);
  CHECK(what == str("failed_precondition: cannot connect to ", at, ": the peer uses version ",
                    another, " of the protocol, and this process version ", protocol_version));
  auto cut_off = [](bare_socket& s) {
    message challenge(message_kind::challenge);
    challenge.meta = to_bytes(std::uint32_t{1});
    s.write(detail::flatten_frame(challenge));
  };
  what = outcome_with(cut_off, "", &at);
  CHECK(what.starts_with("data_loss: cannot connect to " + at));
}

TEST_CASE("a task whose own address is that of all interfaces belongs to its cluster") {
  test_handler handler;
  const std::string ps = "/job:ps/task:0 at ", worker = "/job:worker/task:0 at ",
                    worker_name = "/job:worker/replica:0/task:0";
  auto outcome_of = [&](task_list of_server, task_list of_caller) {
    auto o = options_of_test();
    o.self.cluster = std::move(of_server);
    listener l(o, handler);
    return outcome(l, {worker_name, 7, std::move(of_caller), {}});
  };
  const task_list given{ps + "a:1", worker + "b:1"};
  for (const char* any : {"0.0.0.0:1", "[::]:1"}) {
    CAPTURE(any);
    CHECK(outcome_of({ps + any, worker + "b:1"}, given) == "");
    CHECK(outcome_of(given, {ps + "a:1", worker + any}) == "");
    CHECK(outcome_of({ps + any, worker + "b:1"}, {ps + "a:1", worker + any}) == "");
    // All else has to be equal.
    CHECK(outcome_of({ps + any, worker + "c:1"}, given)
              .ends_with("it was started with /job:worker/task:0 at c:1, and the caller with "
                         "/job:worker/task:0 at b:1"));
    CHECK(outcome_of(given, {ps + any, worker + "b:1"})
              .ends_with(str("it was started with /job:ps/task:0 at a:1, and the caller with "
                             "/job:ps/task:0 at ",
                             any)));
    CHECK(outcome_of({ps + any}, given).ends_with("and the caller with /job:worker/task:0 at b:1"));
  }
}

TEST_CASE("names with characters other than printable ASCII are refused") {
  test_handler handler;
  listener l(options_of_test(), handler);
  for (const char* name : {"evil\nname", "evil\x7f", "evil\u202ename"})
    CHECK(outcome(l, {name, 0, {}, {}}).find("is not printable") != std::string::npos);
}
