// SPDX-License-Identifier: Apache-2.0
#include <deft/core/ndarray.hpp>
#include <deft/transport/frame.hpp>
#include <random>

#include "wire.hpp"

using namespace testing;
using detail::frame_reader;

namespace {

message example() {
  message m(message_kind::first_free, 7);
  m.flags = 0x80000001u;
  m.session = 0x1122334455667788u;
  m.step = 42;
  m.meta = to_bytes("meta");
  m.tensors = {any_array::scalar(1.5f), pattern(dtype::int64, {3, 4}, 1),
               pattern(dtype::float32, {0, 5}, 0), pattern(dtype::boolean, {9}, 0),
               pattern(dtype::uint8, {100'000}, 3)};
  return m;
}

bool same(const message& a, const message& b) {
  return a.kind == b.kind && a.flags == b.flags && a.id == b.id && a.session == b.session &&
         a.step == b.step && a.meta == b.meta &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                    same_bytes);
}

/// Reads frames until the end, through pauses of the stream.
std::vector<message> read_all(std::vector<std::byte> bytes, std::size_t step = SIZE_MAX,
                              const wire_limits& limits = {}) {
  memory_stream s(std::move(bytes), step);
  frame_reader r(limits);
  std::vector<message> all;
  message m;
  for (;;) {
    switch (r.advance(s, m)) {
      case frame_reader::status::end:
        return all;
      case frame_reader::status::whole:
        all.push_back(m);
        for (auto& t : all.back().tensors) t = t.clone();
        break;
      case frame_reader::status::more:
        break;
    }
  }
}

/// A frame of one tensor with the given descriptor.
std::vector<std::byte> lying_frame(std::uint64_t payload, std::uint64_t bytes,
                                   std::initializer_list<std::int64_t> extents,
                                   dtype type = dtype::uint8) {
  detail::frame_header h;
  h.version = protocol_version;
  h.kind = message_kind::first_free;
  h.tensors = 1;
  h.payload = payload;
  h.descriptors = static_cast<std::uint32_t>(16 + 8 * extents.size());
  auto head = detail::encode_header(h);
  std::vector<std::byte> all(head.begin(), head.end());
  out_archive ar(all);
  ar& static_cast<std::uint8_t>(type) & static_cast<std::uint8_t>(extents.size()) &
      std::uint16_t{0} & std::uint32_t{0} & bytes;
  for (auto e : extents) ar& e;
  ar.flush();
  return all;
}

}  // namespace

TEST_CASE("a message is read back from its frame, in whatever pieces the frame arrives") {
  auto bytes = detail::flatten_frame(example());
  auto twice = bytes;
  twice.insert(twice.end(), bytes.begin(), bytes.end());
  for (std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{5'000},
                           std::size_t{50'000}, SIZE_MAX}) {
    CAPTURE(step);
    auto all = read_all(twice, step);
    REQUIRE(all.size() == 2);
    CHECK(same(all[0], example()));
    CHECK(same(all[1], example()));
  }
}

TEST_CASE("frames of every size class") {
  for (std::size_t meta : {0, 1, 100, 5'000, 40'000, 3'000'000})
    for (std::int64_t n : {-1, 0, 1, 63, 4'096, 9'000, 70'000, 3'000'000}) {
      CAPTURE(meta);
      CAPTURE(n);
      message m(message_kind::first_free);
      m.meta.resize(meta, std::byte{5});
      if (n >= 0) m.tensors = {pattern(dtype::uint8, {n}, 1), pattern(dtype::uint8, {n}, 2)};
      auto all = read_all(detail::flatten_frame(m));
      REQUIRE(all.size() == 1);
      CHECK(same(all[0], m));
    }
}

TEST_CASE("the header is the same on every machine") {
  message m(message_kind::first_free, 2);
  m.flags = 3;
  m.session = 4;
  m.step = 5;
  m.meta.resize(6);
  m.tensors = {any_array(dtype::float32, dims{7})};
  auto b = detail::flatten_frame(m);
  CHECK(b.size() == 64 + 6 + 24 + 28);
  const int expected[64] = {
      'D', 'E', 'F', 'T', protocol_version, 0, 16, 0, 3, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0,
      0,   0,   0,   28};
  for (std::size_t i = 0; i < 32; ++i) CHECK(std::to_integer<int>(b[i]) == expected[i]);
  CHECK(b[32] == std::byte{2});
  CHECK(b[40] == std::byte{4});
  CHECK(b[48] == std::byte{5});
  CHECK(b[56] == std::byte{24});
}

TEST_CASE("every truncation of a frame is an end within a message") {
  message m = example();
  m.tensors.pop_back();
  auto bytes = detail::flatten_frame(m);
  for (std::size_t n = 1; n < bytes.size(); ++n) {
    CAPTURE(n);
    CHECK(error_of([&] {
            read_all({bytes.begin(), bytes.begin() + static_cast<long>(n)});
          }) == "unavailable: the stream ended within a message");
  }
}

TEST_CASE("bytes that are not a frame are refused from the first ones on") {
  auto bytes = [](std::string_view text) {
    auto b = std::as_bytes(std::span(text));
    return std::vector<std::byte>(b.begin(), b.end());
  };
  CHECK(error_of([&] { read_all(bytes("GET / HTTP/1.1\r\n\r\n")); }) ==
        "data_loss: received something other than a deft frame: it begins with 47 45 54 20 2f 20 "
        "48 54");
  CHECK(error_of([&] { read_all(bytes("junk"), 1); }) ==
        "data_loss: received something other than a deft frame: it begins with 6a 75 6e 6b");
}

TEST_CASE("a frame of another version is refused, unless it is a refusal") {
  auto bytes = detail::flatten_frame(example());
  bytes[4] = std::byte{250};
  CHECK(error_of([&] { read_all(bytes); }) == str("failed_precondition: the peer uses version 250 "
                                                  "of the protocol, and this process version ",
                                                  protocol_version));
  message m(message_kind::refused);
  bytes = detail::flatten_frame(m);
  bytes[4] = std::byte{250};
  CHECK(read_all(bytes).size() == 1);
}

TEST_CASE("limits hold before anything is allocated") {
  auto bytes = detail::flatten_frame(example());
  CHECK(error_of([&] { read_all(bytes, SIZE_MAX, {.meta = 7}); }) ==
        "resource_exhausted: a message with 8 bytes of metadata (limit 7)");
  CHECK(error_of([&] { read_all(bytes, SIZE_MAX, {.tensors = 4}); }) ==
        "resource_exhausted: a message with 5 tensors (limit 4)");
  CHECK(error_of([&] {
          read_all(bytes, SIZE_MAX, {.payload = 100'000});
        }).starts_with("resource_exhausted: a message with 100109 bytes of tensors"));
  CHECK(error_of([&] {
          read_all(bytes, SIZE_MAX, wire_limits::before_authentication());
        }).starts_with("resource_exhausted"));
  // Announces 60 MB of metadata and sends ten bytes: only one step is allocated.
  detail::frame_header h;
  h.version = protocol_version;
  h.kind = message_kind::first_free;
  h.meta = 60'000'000;
  auto head = detail::encode_header(h);
  std::vector<std::byte> few(head.begin(), head.end());
  few.resize(few.size() + 10);
  memory_stream s(few, 1'000);
  frame_reader r({});
  message m;
  for (int i = 0; i < 2; ++i) CHECK(r.advance(s, m) == frame_reader::status::more);
  CHECK(m.meta.capacity() < 2'000'000);
}

TEST_CASE("inconsistent descriptors are refused") {
  std::int64_t big = std::int64_t{1} << 40;
  CHECK(error_of([&] { read_all(lying_frame(100, 100, {99})); }) ==
        "data_loss: tensor 0 is announced with 100 bytes, but is uint8(99)");
  CHECK(error_of([&] {
          read_all(lying_frame(0, 0, {big, big}));
        }) == "invalid_argument: received a shape larger than any memory");
  CHECK(error_of([&] {
          read_all(lying_frame(0, 0, {big, 0, big}));
        }).starts_with("invalid_argument"));
  CHECK(error_of([&] { read_all(lying_frame(8, 8, {-8})); }).starts_with("invalid_argument"));
  CHECK(error_of([&] { read_all(lying_frame(8, 9, {9})); }) ==
        "data_loss: tensor 0 is larger than its frame: 9 bytes, 8 left");
  CHECK(error_of([&] { read_all(lying_frame(9, 8, {8})); }) ==
        "data_loss: the descriptors of a frame do not add up to its 9 bytes");
  CHECK(error_of([&] { read_all(lying_frame(8, 8, {8}, dtype::none)); }) ==
        "data_loss: the descriptor of tensor 0 is invalid");
  CHECK(error_of([&] {
          read_all(lying_frame(8, 8, {1, 1, 1, 1, 1, 1, 1, 1, 8}));
        }).starts_with("data_loss"));
  auto lie = lying_frame(1, 1, {1}, dtype::boolean);
  lie.push_back(std::byte{2});
  CHECK(error_of([&] { read_all(lie); }) ==
        "data_loss: tensor 0 has a bool that is neither 0 nor 1");
}

TEST_CASE("strings are read back, in whatever pieces they arrive") {
  const std::string odd("a\0\xff", 3), long_one(70'000, 'x'), longer(3'000'000, 'y');
  message m(message_kind::first_free);
  m.tensors = {any_array::scalar("alone"), any_array::scalar(1.5f),
               ndarray<std::string, 2, 2>{{"", odd}, {"c", long_one}},
               any_array(dtype::string, {0, 3}), ndarray<std::string, dyn>{longer, "end"}};
  auto bytes = detail::flatten_frame(m), twice = bytes;
  twice.insert(twice.end(), bytes.begin(), bytes.end());
  for (std::size_t step : {std::size_t{1'000}, std::size_t{50'000}, SIZE_MAX}) {
    CAPTURE(step);
    const auto all = read_all(twice, step);
    REQUIRE(all.size() == 2);
    CHECK(same(all[0], m));
    CHECK(same(all[1], m));
  }
}

namespace {
/// A frame that announces `n` strings, and has these bytes.
std::vector<std::byte> string_frame(std::int64_t n, std::initializer_list<std::int64_t> offsets,
                                    std::string_view texts) {
  const std::size_t bytes = 8 * offsets.size() + texts.size();
  auto all = lying_frame(bytes, bytes, {n}, dtype::string);
  const auto add = [&](const void* from, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(from);
    all.insert(all.end(), first, first + size);
  };
  add(std::data(offsets), 8 * offsets.size());
  add(texts.data(), texts.size());
  return all;
}
}  // namespace

TEST_CASE("strings whose offsets are not sound are refused, and no message has them") {
  CHECK(read_all(string_frame(2, {0, 1, 3}, "abc"))[0].tensors[0] ==
        any_array(ndarray<std::string, 2>{"a", "bc"}));
  const std::string unsound = "data_loss: tensor 0 has strings whose offsets are not sound";
  CHECK(error_of([] { read_all(string_frame(2, {0, 3, 1}, "abc")); }) == unsound);
  CHECK(error_of([] { read_all(string_frame(2, {0, 2, 4}, "abc")); }) == unsound);
  CHECK(error_of([] { read_all(string_frame(2, {0, 1, 2}, "abc")); }) == unsound);
  CHECK(error_of([] { read_all(string_frame(2, {1, 2, 3}, "abc")); }) == unsound);
  CHECK(error_of([] { read_all(string_frame(2, {0, -1, 3}, "abc")); }) == unsound);
  CHECK(error_of([] {
          read_all(string_frame(2, {0, std::int64_t{1} << 62, 3}, "abc"));
        }) == unsound);
  // Fewer bytes than the offsets have; a number of strings that no memory has.
  CHECK(error_of([] {
          read_all(string_frame(3, {0, 1, 3}, "abc"));
        }) == "data_loss: tensor 0 is announced with 27 bytes, but is string(3)");
  CHECK(error_of([] { read_all(string_frame(0, {}, "")); }) ==
        "data_loss: tensor 0 is announced with 0 bytes, but is string(0)");
  CHECK(error_of([] { read_all(string_frame(std::int64_t{1} << 58, {0}, "")); }) ==
        "invalid_argument: received a shape larger than any memory");
  CHECK(error_of([] { read_all(string_frame(-1, {0}, "")); }).starts_with("invalid_argument"));
}

TEST_CASE("numbers that no dtype has are refused") {
  for (const int number : {15, 16, 255})
    CHECK(error_of([&] { read_all(lying_frame(8, 8, {8}, static_cast<dtype>(number))); }) ==
          "data_loss: the descriptor of tensor 0 is invalid");
}

TEST_CASE("mutated frames of strings end in an error or in sound strings") {
  message m(message_kind::first_free);
  m.tensors = {ndarray<std::string, dyn>{"a", "bcd", "", "ef"}, any_array::scalar("g")};
  const auto sound = detail::flatten_frame(m);
  std::mt19937 random(11);
  int whole = 0, refused = 0;
  for (int round = 0; round < 50'000; ++round) {
    auto bytes = sound;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = 64 + random() % (bytes.size() - 64);
      bytes[at] = random() % 3 ? static_cast<std::byte>(random() % 4)
                               : bytes[at] ^ static_cast<std::byte>(1u << random() % 8);
    }
    try {
      for (const message& one : read_all(std::move(bytes)))
        for (const any_array& t : one.tensors)
          if (t.type() == dtype::string)
            for (const std::string_view s : t.strings()) whole += s.size() <= t.bytes();
    } catch (const error&) {
      ++refused;
    }
  }
  CHECK(whole > 1'000);
  CHECK(refused > 1'000);
}

TEST_CASE("small frames reuse the allocations of the message before them") {
  message m(message_kind::first_free);
  m.meta.resize(50);
  m.tensors = {any_array::scalar(1.0), any_array::scalar(2)};
  auto one = detail::flatten_frame(m), many = one;
  for (int i = 0; i < 9; ++i) many.insert(many.end(), one.begin(), one.end());
  memory_stream s(many);
  frame_reader r({});
  message into;
  REQUIRE(r.advance(s, into) == frame_reader::status::whole);
  const void *meta = into.meta.data(), *tensor = into.tensors[1].raw();
  any_array kept = into.tensors[0];
  for (int i = 0; i < 9; ++i) {
    REQUIRE(r.advance(s, into) == frame_reader::status::whole);
    CHECK(into.meta.data() == meta);
    CHECK(into.tensors[1].raw() == tensor);
    CHECK(into.tensors[0].raw() != kept.raw());  // `kept` still refers to that buffer
  }
}

TEST_CASE("mutated frames end in an error or in messages") {
  message m = example();
  m.tensors.pop_back();
  const auto sound = detail::flatten_frame(m);
  std::mt19937 random(7);
  int whole = 0, refused = 0;
  for (int round = 0; round < 50'000; ++round) {
    auto bytes = sound;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      // Mostly within header and descriptors.
      std::size_t at =
          random() % (random() % 4 ? std::min<std::size_t>(bytes.size(), 180) : bytes.size());
      bytes[at] = random() % 3 ? static_cast<std::byte>(random())
                               : bytes[at] ^ static_cast<std::byte>(1u << random() % 8);
    }
    try {
      whole += static_cast<int>(
          read_all(std::move(bytes), SIZE_MAX, {.payload = std::uint64_t{1} << 24}).size());
    } catch (const error&) {
      ++refused;
    }
  }
  CHECK(whole > 1'000);
  CHECK(refused > 1'000);
}

TEST_CASE("memory is taken as the bytes of a frame arrive, not as they are announced") {
  constexpr std::size_t mb = std::size_t{1} << 20, announced = 150 * mb;
  trim_host_memory();
  set_host_memory_limit(256 * mb);
  const auto frame = lying_frame(announced, announced, {std::int64_t{announced}});
  std::vector<std::unique_ptr<frame_reader>> readers;
  std::vector<message> messages(60);
  for (auto& m : messages) {
    auto bytes = frame;
    bytes.resize(bytes.size() + (readers.size() % 2 ? 4 : mb / 2));  // so much arrives
    memory_stream s(bytes, bytes.size());
    readers.push_back(std::make_unique<frame_reader>(wire_limits()));
    while (readers.back()->advance(s, m) != frame_reader::status::more || s.left() > 0) continue;
    CHECK(readers.back()->is_within_message());
  }
  message honest(message_kind::first_free);
  honest.tensors = {pattern(dtype::uint8, {std::int64_t{40 * mb}}, 1)};
  const auto all = read_all(detail::flatten_frame(honest));
  CHECK(same(all[0], honest));
  readers.clear();
  trim_host_memory();
  set_host_memory_limit(0);
}

TEST_CASE("errors travel with code, reason, message, node, device and source location") {
  message m;
  encode_error(m, 9,
               error(errc::out_of_range, error_reason::not_fed, "index 7", "gather_1",
                     {"model.cpp", 31}, "/cpu:0"));
  CHECK(m.kind == message_kind::error);
  CHECK(m.id == 9);
  error e = decode_error(m);
  CHECK(e.code() == errc::out_of_range);
  CHECK(e.reason() == error_reason::not_fed);
  CHECK(e.message() == "index 7");
  CHECK(e.node() == "gather_1");
  CHECK(e.device() == "/cpu:0");
  CHECK(to_string(e.where()) == "model.cpp:31");
  m.meta.pop_back();
  CHECK(decode_error(m).code() == errc::data_loss);
  // Numbers that this process does not know.
  m.meta = to_bytes(std::uint8_t{99}, std::uint8_t{2}, "s", "", "", owned_location{});
  CHECK(decode_error(m).code() == errc::unknown);
  CHECK(decode_error(m).reason() == error_reason::not_needed);
  m.meta = to_bytes(std::uint8_t{9}, static_cast<std::uint8_t>(last_error_reason), "s", "", "",
                    owned_location{});
  CHECK(decode_error(m).reason() == last_error_reason);
  m.meta[1] = static_cast<std::byte>(static_cast<int>(last_error_reason) + 1);
  CHECK(decode_error(m).code() == errc::failed_precondition);
  CHECK(decode_error(m).reason() == error_reason::none);
}

TEST_CASE("what an error of a peer says controls no terminal, and is no line of a log") {
  message m;
  const std::string evil = "x\n04:00:00.000 E worker/0: forged \x1b[31m\xff";
  const std::string shown = "x\\n04:00:00.000 E worker/0: forged \\x1b[31m\\xff";
  encode_error(m, 1, error(errc::internal, evil, evil, {evil.c_str(), 7}, evil));
  const error e = decode_error(m);
  CHECK(e.message() == shown);
  CHECK(e.node() == shown);
  CHECK(e.device() == shown);
  CHECK(e.where().file == shown);
  encode_error(m, 1, error(errc::internal, std::string(1 << 20, 'x')));
  CHECK(decode_error(m).message().size() < 5'000);
}

TEST_CASE("a stream that was drained is not read again at once") {
  /// A stream that says it is drained.
  class drained_stream final : public no_stream {
   public:
    explicit drained_stream(std::vector<std::byte> bytes) : inner_(std::move(bytes)) {}
    std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
      ++reads;
      return inner_.read(to, most);
    }
    bool is_drained() const noexcept override { return true; }
    int reads = 0;

   private:
    memory_stream inner_;
  };
  drained_stream s(detail::flatten_frame(message(message_kind::first_free)));
  frame_reader r((wire_limits()));
  message m;
  CHECK(r.advance(s, m) == frame_reader::status::whole);
  CHECK(s.reads == 1);
  CHECK(r.advance(s, m) == frame_reader::status::more);
  CHECK(s.reads == 1);
  // But it is read again later.
  CHECK(r.advance(s, m) == frame_reader::status::end);
  CHECK(s.reads == 2);
}
