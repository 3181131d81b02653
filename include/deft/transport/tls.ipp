// SPDX-License-Identifier: Apache-2.0
// deft/transport/tls.ipp: OpenSSL on top of another stream.
//
// OpenSSL reads from the inner stream directly into its own buffer, in large pieces, and writes
// into memory, so that many records are sent together. write() encrypts what fits into 32 records
// of 16 KB, and reports it once the ciphertext has been sent; until then the caller passes the same
// bytes again, and they are skipped.
#pragma once
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deft/core/error.hpp>
#include <deft/transport/event_loop.hpp>
#include <deft/transport/tls.hpp>
#include <mutex>
#include <new>
#include <utility>

namespace deft::detail {

namespace {

constexpr std::size_t record_bytes = 16 * 1024;  // of plaintext; TLS has no larger ones
constexpr std::size_t records_at_once = 32;
constexpr std::size_t read_at_once = 1024 * 1024;  // before others may use the lock

/// Owned by its stream, and while an event of the inner stream is handled.
class tls_link final : public std::enable_shared_from_this<tls_link> {
 public:
  using direction = stream::direction;

  tls_link(std::unique_ptr<stream> inner, std::shared_ptr<const tls_context> context, tls_end end,
           std::uint64_t records_of_a_key)
      : inner_(std::move(inner)),
        context_(std::move(context)),
        role_(end),
        records_of_a_key_(records_of_a_key),
        ssl_(SSL_new(context_->handle())) {
    BIO* const bio = ssl_ ? BIO_new(method()) : nullptr;
    if (!bio) throw std::bad_alloc();
    BIO_set_data(bio, this);
    SSL_set_bio(ssl_.get(), bio, bio);
    end == tls_end::server ? SSL_set_accept_state(ssl_.get()) : SSL_set_connect_state(ssl_.get());
  }

  std::ptrdiff_t read(void* to, std::size_t most) {
    std::ptrdiff_t n = 0;
    bool tell = false;
    {
      std::lock_guard lock(ssl_guard_);
      if (reported_fault_)
        return inner_->read(to, most);  // the caller drops what comes after a fault
      n = shake_hands() ? decrypt(static_cast<char*>(to), most) : nothing();
      if (n == -EPROTO) {
        reported_fault_ = true;
        unread_ = false;
      }
      tell = std::exchange(readable_, false) || !sealed_.empty();
    }
    if (tell) go_on();
    return n;
  }

  std::ptrdiff_t write(const iovec* pieces, int count) {
    std::ptrdiff_t n = 0;
    bool tell = false;
    {
      std::lock_guard out(out_guard_);
      n = send(pieces, count, tell);
    }
    if (tell) go_on();
    return n;
  }

  bool has_unread() const { return unread_ || inner_->has_unread(); }

  void wait(direction d, std::function<void()> then) {
    std::lock_guard lock(wait_guard_);
    waits_[index(d)].then = std::move(then);
    if (d == direction::in) return unread_ ? call(d) : ask(d);
    // Nothing can be written before the handshake is done, for which something has to be received.
    if (!settled_) ask(direction::in);
    if (settled_ || unsent_) ask(direction::out);
  }

  void shut(bool both) noexcept {
    try {
      std::lock_guard out(out_guard_);
      if (flush() == 0) {
        std::lock_guard lock(ssl_guard_);
        if (established_ && !fault_ && !std::exchange(sent_end_, true)) {
          ERR_clear_error();
          SSL_shutdown(ssl_.get());
          out_.swap(sealed_);
        }
      }
      flush();
    } catch (const std::bad_alloc&) {
      // It ends without a notification.
    }
    inner_->shut(both);
  }

  const stream& inner() const { return *inner_; }
  const error* fault() const { return fault_.get(); }
  const std::vector<std::string>* certified() const { return established_ ? &uses_ : nullptr; }

 private:
  struct waiting {
    std::function<void()> then;
    bool asked = false;  ///< a wait of the inner stream is pending
  };
  /// Plaintext of `bytes` bytes, whose ciphertext ends at `end` in out_.
  struct record {
    std::size_t end, bytes;
  };
  struct freed {
    void operator()(SSL* s) const { SSL_free(s); }
  };
  static std::size_t index(direction d) { return d == direction::in ? 0 : 1; }

  // Called by OpenSSL, with ssl_guard_ held.

  static const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "deft stream");
      if (!m) throw std::bad_alloc();
      BIO_meth_set_create(m, [](BIO* b) { return BIO_set_init(b, 1), 1; });
      BIO_meth_set_ctrl(m,
                        [](BIO*, int what, long, void*) -> long { return what == BIO_CTRL_FLUSH; });
      BIO_meth_set_read(m, [](BIO* b, char* to, int most) {
        return static_cast<tls_link*>(BIO_get_data(b))->on_read(b, to, most);
      });
      BIO_meth_set_write(m, [](BIO* b, const char* from, int n) {
        return static_cast<tls_link*>(BIO_get_data(b))->on_write(from, n);
      });
      return m;
    }();
    return made;
  }
  int on_read(BIO* b, char* to, int most) {
    BIO_clear_retry_flags(b);
    const auto n = inner_->read(to, static_cast<std::size_t>(most));
    if (n == -EAGAIN || n == -EWOULDBLOCK) return BIO_set_retry_read(b), -1;
    if (n <= 0) {
      has_ended_ = true;
      end_ = n;
      return -1;
    }
    // A record begins with its type: that of a handshake, or of an alert from a peer that refuses
    // one.
    const bool first = !std::exchange(received_, true);
    if (first && to[0] != SSL3_RT_HANDSHAKE && to[0] != SSL3_RT_ALERT) return foreign_ = true, -1;
    return static_cast<int>(n);
  }
  int on_write(const char* from, int n) {
    try {
      const auto* bytes = reinterpret_cast<const std::byte*>(from);
      sealed_.insert(sealed_.end(), bytes, bytes + n);
      return n;
    } catch (const std::bad_alloc&) {
      return -1;
    }
  }

  // With ssl_guard_ held.

  /// Continues the handshake. Returns whether it has succeeded.
  bool shake_hands() {
    if (settled_) return established_ && !fault_;
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) {
      uses_ = uses_of(SSL_get0_peer_certificate(ssl_.get()));
      established_ = true;
      unread_ = SSL_has_pending(ssl_.get()) != 0;
    } else {
      handle_ssl_error(result);
    }
    settled_ = readable_ = established_ || fault_ || has_ended_;
    return established_;
  }
  std::ptrdiff_t decrypt(char* to, std::size_t most) {
    most = std::min(most, read_at_once);
    std::size_t done = 0;
    bool more = !has_ended_;
    while (more && done < most) {
      std::size_t some = 0;
      ERR_clear_error();
      more = SSL_read_ex(ssl_.get(), to + done, most - done, &some) != 0;
      if (!more) handle_ssl_error(0);
      done += some;
      more = more && SSL_has_pending(ssl_.get());
    }
    unread_ = more || fault_;
    return done ? static_cast<std::ptrdiff_t>(done) : nothing();
  }
  /// The result of a read that found nothing.
  std::ptrdiff_t nothing() const {
    if (fault_) return -EPROTO;
    return has_ended_ ? end_ : -EAGAIN;
  }
  /// Encrypts what fits into `records_at_once` records.
  void encrypt(const iovec* pieces, int count) {
    std::array<char, record_bytes> together;
    int i = 0;
    std::size_t at = 0;
    auto take = [&](std::size_t most) {
      const std::size_t some = std::min(most, pieces[i].iov_len - at);
      const char* from = static_cast<const char*>(pieces[i].iov_base) + at;
      at += some;
      if (at == pieces[i].iov_len) ++i, at = 0;
      return std::pair(from, some);
    };
    while (records_.size() < records_at_once && i < count) {
      auto [from, n] = take(record_bytes);
      if (n < record_bytes && i < count) {  // small pieces share a record
        std::memcpy(together.data(), from, n);
        while (n < record_bytes && i < count) {
          const auto [more, some] = take(record_bytes - n);
          std::memcpy(together.data() + n, more, some);
          n += some;
        }
        from = together.data();
      }
      if (n == 0) continue;
      if (++records_sent_ % records_of_a_key_ == 0)
        SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
      std::size_t written = 0;
      ERR_clear_error();
      if (!SSL_write_ex(ssl_.get(), from, n, &written)) return handle_ssl_error(0);
      records_.push_back({sealed_.size(), n});
    }
  }
  /// Looks at why a call of OpenSSL has failed.
  void handle_ssl_error(int result) {
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return;
      case SSL_ERROR_ZERO_RETURN:
        has_ended_ = true;
        return;
      default:
        if (has_ended_ || fault_) return;
        fault_ = std::make_unique<const error>(reason());
        unread_ = readable_ = true;
    }
  }
  error reason() const {
    if (foreign_)
      return error(errc::unauthenticated,
                   role_ == tls_end::server
                       ? "the caller does not use TLS: set --tls_cert, --tls_key and --tls_ca, or "
                         "DEFT_TLS_CERT, DEFT_TLS_KEY and DEFT_TLS_CA"
                       : "it does not use TLS, but this process requires it");
    const unsigned long code = ERR_peek_last_error();
    const int why = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
    const long verified = SSL_get_verify_result(ssl_.get());
    if (why == SSL_R_CERTIFICATE_VERIFY_FAILED && is_unknown_authority(verified))
      return error(errc::unauthenticated, str("its certificate is not signed by the authority \"",
                                              context_->files().authority, "\""));
    if (why == SSL_R_CERTIFICATE_VERIFY_FAILED)
      return error(errc::unauthenticated,
                   str("its certificate is not valid: ", X509_verify_cert_error_string(verified)));
    if (why == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
      return error(errc::unauthenticated, "it has not shown a certificate");
    if (const int alert = why - SSL_AD_REASON_OFFSET; alert >= 0 && alert < 256) {
      const std::string text = SSL_alert_desc_string_long(alert);
      return is_of_certificate(alert)
                 ? error(errc::unauthenticated, str("it does not accept the certificate \"",
                                                    context_->files().certificate, "\": ", text))
                 : error(errc::data_loss, str("it ended the TLS connection: ", text));
    }
    const char* text = ERR_reason_error_string(code);
    return error(errc::data_loss, str(established_ ? "received data that cannot be decrypted: "
                                                   : "the TLS handshake failed: ",
                                      text ? text : "unknown reason"));
  }
  static bool is_unknown_authority(long verified) {
    switch (verified) {
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
      case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return true;
      default:
        return false;
    }
  }
  static bool is_of_certificate(int alert) {
    return (alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_CERTIFICATE_UNKNOWN) ||
           alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_DECRYPT_ERROR ||
           alert == SSL_AD_ACCESS_DENIED || alert == SSL_AD_CERTIFICATE_REQUIRED;
  }

  // With out_guard_ held.

  std::ptrdiff_t send(const iovec* pieces, int count, bool& tell) {
    int failed = flush();
    if (left_ > 0) return static_cast<std::ptrdiff_t>(std::exchange(left_, 0));
    if (failed) return failed;
    bool dead = false;
    {
      std::lock_guard lock(ssl_guard_);
      if (shake_hands()) encrypt(pieces, count);
      out_.swap(sealed_);
      dead = fault_ || (has_ended_ && !established_);
      tell = std::exchange(readable_, false);
    }
    failed = flush();
    if (left_ > 0) return static_cast<std::ptrdiff_t>(std::exchange(left_, 0));
    if (dead) return discard(pieces, count);
    return failed ? failed : -EAGAIN;
  }
  /// After a fault or an end, which the reader is told of. A caller without TLS can be told why it
  /// is refused; others are told by TLS.
  std::ptrdiff_t discard(const iovec* pieces, int count) {
    if (foreign_ && role_ == tls_end::server) return inner_->write(pieces, count);
    std::size_t all = 0;
    for (int i = 0; i < count; ++i) all += pieces[i].iov_len;
    return static_cast<std::ptrdiff_t>(all);
  }
  /// Writes the ciphertext. Returns 0, or -errno if some is left.
  int flush() {
    while (sent_ < out_.size()) {
      const iovec rest{out_.data() + sent_, out_.size() - sent_};
      const auto n = inner_->write(&rest, 1);
      if (n <= 0) return unsent_ = true, n == 0 ? -EAGAIN : static_cast<int>(n);
      sent_ += static_cast<std::size_t>(n);
      for (; left_records_ < records_.size() && records_[left_records_].end <= sent_;
           ++left_records_)
        left_ += records_[left_records_].bytes;
    }
    out_.clear();
    records_.clear();
    sent_ = left_records_ = 0;
    unsent_ = false;
    return 0;
  }

  // Without locks.

  /// Sends messages of TLS itself, and wakes waits whose state has changed.
  void go_on() {
    int failed = 0;
    {
      std::lock_guard out(out_guard_);
      {
        std::lock_guard lock(ssl_guard_);
        out_.insert(out_.end(), sealed_.begin(), sealed_.end());
        sealed_.clear();
      }
      failed = flush();
    }
    std::lock_guard lock(wait_guard_);
    if (failed == -EAGAIN || (settled_ && waits_[1].then)) ask(direction::out);
    if (unread_ && waits_[0].then) call(direction::in);
  }
  /// The inner stream may be ready to read, or to write.
  void on_event(direction d) {
    bool drive = false;
    {
      std::lock_guard lock(wait_guard_);
      waits_[index(d)].asked = false;
      drive = d == direction::in && !settled_ && waits_[1].then;
    }
    if (drive) {
      // The writer waits for the handshake, and perhaps no thread reads.
      {
        std::lock_guard lock(ssl_guard_);
        shake_hands();
        readable_ = false;
      }
      go_on();
    }
    int failed = 0;
    if (d == direction::out) {
      std::lock_guard out(out_guard_);
      failed = flush();
    }
    std::function<void()> then;
    {
      std::lock_guard lock(wait_guard_);
      if (failed == -EAGAIN)
        ask(direction::out);
      else if (d == direction::in || settled_)
        then.swap(waits_[index(d)].then);
      if (!settled_ && waits_[1].then) ask(direction::in);
    }
    if (then) then();
  }

  // With wait_guard_ held.

  void ask(direction d) {
    if (std::exchange(waits_[index(d)].asked, true)) return;
    inner_->wait(d, [weak = weak_from_this(), d] {
      if (const auto self = weak.lock()) self->on_event(d);
    });
  }
  void call(direction d) {
    boost::asio::post(inner_->loop().context(), std::exchange(waits_[index(d)].then, nullptr));
  }

  const std::unique_ptr<stream> inner_;
  const std::shared_ptr<const tls_context> context_;
  const tls_end role_;
  const std::uint64_t records_of_a_key_;

  // Locked in this order.
  std::mutex out_guard_, ssl_guard_, wait_guard_;

  // Guarded by out_guard_.
  std::vector<std::byte> out_;               ///< encrypted
  std::size_t sent_ = 0;                     ///< bytes of out_ that were sent
  std::vector<record> records_;              ///< in out_
  std::size_t left_records_ = 0, left_ = 0;  ///< records sent; their bytes, to be reported

  // Guarded by ssl_guard_.
  const std::unique_ptr<SSL, freed> ssl_;
  std::vector<std::byte> sealed_;  ///< encrypted since it was moved to out_
  std::uint64_t records_sent_ = 0;
  std::unique_ptr<const error> fault_;
  std::vector<std::string> uses_;  ///< of the peer's certificate; constant once established_
  bool received_ = false, has_ended_ = false, sent_end_ = false;
  bool reported_fault_ = false;  ///< the reader was told of the fault
  bool readable_ = false;        ///< settled_ or fault_ has changed, for waits
  std::ptrdiff_t end_ = 0;       ///< the result that ended the inner stream

  std::atomic<bool> foreign_{false};      ///< the peer does not use TLS
  std::atomic<bool> established_{false};  ///< the handshake has succeeded
  std::atomic<bool> settled_{false};      ///< the handshake is over
  std::atomic<bool> unread_{false};       ///< OpenSSL may have something to read
  std::atomic<bool> unsent_{false};

  waiting waits_[2];  ///< guarded by wait_guard_: in, out
};

class tls_stream_t final : public stream {
 public:
  explicit tls_stream_t(std::shared_ptr<tls_link> link) : link_(std::move(link)) {}

  std::ptrdiff_t read(void* to, std::size_t most) noexcept override {
    return without_memory([&] { return link_->read(to, most); });
  }
  std::ptrdiff_t write(const iovec* pieces, int count) noexcept override {
    return without_memory([&] { return link_->write(pieces, count); });
  }
  bool has_unread() const noexcept override { return link_->has_unread(); }
  void wait(direction d, std::function<void()> then) override { link_->wait(d, std::move(then)); }
  void shut(bool both) noexcept override { link_->shut(both); }
  bool on_this_host() const noexcept override { return link_->inner().on_this_host(); }
  bool shares_processor() const noexcept override { return link_->inner().shares_processor(); }
  event_loop& loop() const noexcept override { return link_->inner().loop(); }
  const error* fault() const noexcept override { return link_->fault(); }
  const std::vector<std::string>* certified() const noexcept override { return link_->certified(); }

 private:
  template <class F>
  static std::ptrdiff_t without_memory(F f) noexcept {
    try {
      return f();
    } catch (const std::bad_alloc&) {
      return -ENOMEM;
    }
  }
  const std::shared_ptr<tls_link> link_;
};

}  // namespace

std::unique_ptr<stream> tls_stream(std::unique_ptr<stream> inner,
                                   std::shared_ptr<const tls_context> context, tls_end end,
                                   std::uint64_t records_of_a_key) {
  return std::make_unique<tls_stream_t>(
      std::make_shared<tls_link>(std::move(inner), std::move(context), end, records_of_a_key));
}

}  // namespace deft::detail
