// SPDX-License-Identifier: Apache-2.0
// deft/core/error.hpp: what deft throws.
#pragma once
#include <cstdint>
#include <deft/core/location.hpp>
#include <deft/core/text.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace deft {

/// The status codes of gRPC and TensorFlow, with the same numbers.
enum class errc : unsigned char {
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

/// "invalid_argument" and so on.
std::string_view to_string(errc code);

namespace ext {

/// What an error is about, where its code says too little for code that deals with it: messages are
/// for people. The numbers are those of the wire.
enum class error_reason : std::uint8_t {
  none = 0,
  not_fed = 1,          ///< a run needs the value of a placeholder
  not_needed = 2,       ///< no fetch needs a tensor that is fed
  uninitialized = 3,    ///< a variable has no value
  connect_timeout = 4,  ///< no server has answered at an address in time
};
inline constexpr error_reason last_error_reason = error_reason::connect_timeout;

}  // namespace ext

/// Every error that deft reports. what() is one sentence that includes the node's name and source
/// location.
class error : public std::runtime_error {
 public:
  /// For programs that report errors as deft does:
  /// `throw error(errc::data_loss, "no label in line 7")`. what() is `message`, followed by the
  /// node, source location and device that are given.
  error(errc code, std::string message, std::string node = {}, ext::owned_location location = {},
        std::string device = {});
  /// For errors that other code recognizes by their reason.
  error(errc code, ext::error_reason reason, std::string message, std::string node = {},
        ext::owned_location location = {}, std::string device = {});

  /// The same error with another message.
  error with_message(std::string message) const;
  /// The same error of another node, source location and device.
  error with_node(std::string node, ext::owned_location location = {},
                  std::string device = {}) const;

  /// Each copy has its own text, so that threads can share a failure.
  const char* what() const noexcept override { return what_.c_str(); }
  /// What kind of error it is, for callers that can deal with some: of `unavailable`, say, by
  /// trying again.
  errc code() const noexcept { return code_; }
  /// What it is about, for callers to whom the code says too little.
  ext::error_reason reason() const noexcept { return reason_; }
  /// The sentence without node, source location and device.
  const std::string& message() const noexcept { return message_; }
  /// Name of the node that failed; empty if the error is not that of a node.
  const std::string& node() const noexcept { return node_; }
  /// Full name of the device it ran on; empty if it did not run.
  const std::string& device() const noexcept { return device_; }
  /// Where the node was made. The name of the file lives as long as the error, or a copy of this.
  const ext::owned_location& where() const noexcept { return location_; }

 private:
  errc code_;
  ext::error_reason reason_;
  std::string what_, message_, node_, device_;
  ext::owned_location location_;
};

namespace ext {

/// Throws an error whose message is `parts` joined.
template <class... Parts>
[[noreturn]] void fail(errc code, const Parts&... parts) {
  throw error(code, str(parts...));
}
template <class... Parts>
[[noreturn]] void fail(errc code, error_reason reason, const Parts&... parts) {
  throw error(code, reason, str(parts...));
}

}  // namespace ext

}  // namespace deft
