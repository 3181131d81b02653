// SPDX-License-Identifier: Apache-2.0
// benchmarks/bulk.cpp: large tensors between processes on each transport, against bare sockets. TLS
// is also compared with the encryption speed of one core, and with bare sockets that use the same
// cipher at both ends on one thread each, the limit without more threads.
#include <openssl/evp.h>

#include <optional>

#include "far_side.hpp"

namespace {

using namespace deft;
using namespace deft::ext;
using bench::far_side;
using bench::prepared;
using bench::worker;

constexpr std::int64_t columns = 1024, rows = 32 * 1024;
constexpr std::int64_t bulk = rows * columns * 4;

/// AES-128-GCM in records of 16 KB, each with a tag. Both directions take the same time.
class bare_cipher {
 public:
  bare_cipher() : context_(EVP_CIPHER_CTX_new()) {
    EVP_EncryptInit_ex(context_, EVP_aes_128_gcm(), nullptr, key_, iv_);
  }
  ~bare_cipher() { EVP_CIPHER_CTX_free(context_); }
  bare_cipher(const bare_cipher&) = delete;
  void apply(const char* from, char* to, std::int64_t bytes) {
    for (std::int64_t at = 0; at < bytes; at += record) {
      int n = 0;
      unsigned char tag[16];
      ++iv_[0];
      EVP_EncryptInit_ex(context_, nullptr, nullptr, nullptr, iv_);
      EVP_EncryptUpdate(context_, reinterpret_cast<unsigned char*>(to + at), &n,
                        reinterpret_cast<const unsigned char*>(from + at), record);
      EVP_EncryptFinal_ex(context_, tag, &n);
      EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, sizeof tag, tag);
      bench::keep(tag);
    }
  }
  static constexpr int record = 16 * 1024;

 private:
  EVP_CIPHER_CTX* context_;
  unsigned char key_[16] = {}, iv_[12] = {};
};

/// Sends bytes through a cipher and a socket, in pieces.
class sealed_bytes {
 public:
  sealed_bytes() : memory_(bench::detail::touched(bulk)), piece_(at_once) {}
  bool send(int fd) {
    return in_pieces([&](char* at) {
      cipher_.apply(at, piece_.data(), at_once);
      return bench::detail::send_all(fd, piece_.data(), at_once);
    });
  }
  bool receive(int fd) {
    return in_pieces([&](char* at) {
      if (!bench::detail::receive_all(fd, piece_.data(), at_once)) return false;
      cipher_.apply(piece_.data(), at, at_once);
      return true;
    });
  }

 private:
  static constexpr std::int64_t at_once = 512 * 1024;
  template <class F>
  bool in_pieces(F f) {
    auto* const begin = static_cast<char*>(memory_.mutable_raw());
    for (std::int64_t at = 0; at < bulk; at += at_once)
      if (!f(begin + at)) return false;
    return true;
  }
  bare_cipher cipher_;
  any_array memory_;
  std::vector<char> piece_;
};

/// Sends all bytes for each byte that arrives on a connection.
[[noreturn]] void serve_sealed(int listening) {
  sealed_bytes bytes;
  for (char c = 0;;) {
    const int fd = accept(listening, nullptr, nullptr);
    if (fd < 0) _exit(0);
    bench::detail::undelayed(fd);
    while (bench::detail::receive_all(fd, &c, 1) && bytes.send(fd)) {
    }
    close(fd);
  }
}

void bulk_transfers(const far_side& far, const std::string& sealed_address) {
  auto s = far.sessions();
  using matrix = ndarray<float, rows, columns>;
  std::optional<variable<float, rows, columns>> v[2];
  for (int task : {0, 1}) {
    auto scope = on(device(worker(task)));
    v[task].emplace(str("bulk", task), ones());
  }
  bench::initialize(s);
  auto there = on(device(worker(0)));
  bare_cipher aes;
  std::vector<char> record(bare_cipher::record);  // stays in the cache
  const bench::measure cipher = [&] {
    return bench::seconds_of(
        [&] {
          for (std::int64_t i = 0; i < bulk / bare_cipher::record; ++i)
            aes.apply(record.data(), record.data(), bare_cipher::record);
        },
        1);
  };
  bench::bare_client client(sealed_address, 64);
  sealed_bytes bytes;
  const bench::measure sealed = [&] {
    return bench::seconds_of(
        [&] {
          if (!bench::detail::send_all(client.fd(), record.data(), 1) ||
              !bytes.receive(client.fd()))
            std::abort();
        },
        1);
  };
  auto measured = [&](const std::string& work, const auto& steps, auto call,
                      const bench::request& r) {
    std::vector<bench::measure> all;
    for (auto& step : steps)
      all.push_back([&] { return bench::seconds_of([&] { call(step); }, 1); });
    const std::size_t bare = all.size();
    all.insert(all.end(), {far.bare_turn(r, 1), cipher, sealed});
    const auto m = bench::in_turns(all, 15);
    for (std::size_t i = 0; i < bare; ++i) {
      const auto& by = far.clusters[i].transport;
      auto row = [&](std::size_t yardstick, const char* name, std::optional<bench::asked> a) {
        bench::speed_row(work + ", " + by, bulk, {m[i], m[yardstick]}, name, a);
      };
      if (by == "TLS") {
        row(bare + 1, "AES-128-GCM of a core", bench::at_least(0.7));
        row(bare + 2, "socket, AES at both ends", {});
      } else {
        row(bare, "bare socket", bench::at_least(by == "TCP" ? 0.8 : 2));
      }
    }
  };

  measured("128 MB fetched", prepared(s, tensor<float, rows, columns>(*v[0])),
           [](auto& step) { bench::keep(step()); }, {0, bulk});

  // The task that receives the tensor reads one row of it. (Rows of a variable itself would be read
  // where it is.)
  placeholder<float, rows, columns> x("x");
  auto first = constant({0});
  matrix value;
  measured("128 MB fed", prepared(s, gather(x, first), feeds(x)),
           [&](auto& step) { bench::keep(step(value)); }, {bulk, 1});
  measured("128 MB from task to task", prepared(s, gather(identity(*v[1]), first)),
           [](auto& step) { bench::keep(step()); }, {bulk, 1});
}

}  // namespace

int main() {
  far_side far(bulk);
  const int sealed = listen_socket("localhost:0");
  far.children.start([&] { serve_sealed(sealed); });
  bulk_transfers(far, address_of_socket(sealed));
}
