// SPDX-License-Identifier: Apache-2.0
// deft/core/json.ipp: JSON whose objects have no key twice, for files of others. Boost.JSON keeps
// the last of equal keys and says nothing.
#pragma once
#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <deft/core/error.hpp>
#include <deft/core/printable.hpp>
#include <deft/core/text.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace deft::detail {

/// Looks for a key that an object has twice: a handler of Boost's parser.
class key_check {
 public:
  static constexpr std::size_t max_object_size = SIZE_MAX, max_array_size = SIZE_MAX,
                               max_key_size = SIZE_MAX, max_string_size = SIZE_MAX;
  using error_code = boost::json::error_code;
  using text = boost::json::string_view;

  const std::optional<std::string>& twice() const { return twice_; }

  bool on_object_begin(error_code&) {
    open_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, error_code&) {
    open_.pop_back();
    return true;
  }
  bool on_key_part(text part, std::size_t, error_code&) {
    key_ += part;
    return true;
  }
  bool on_key(text part, std::size_t, error_code&) {
    key_ += part;
    if (!open_.back().insert(key_).second && !twice_) twice_ = key_;
    key_.clear();
    return true;
  }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t, error_code&) { return true; }
  bool on_string_part(text, std::size_t, error_code&) { return true; }
  bool on_string(text, std::size_t, error_code&) { return true; }
  bool on_number_part(text, error_code&) { return true; }
  bool on_int64(std::int64_t, text, error_code&) { return true; }
  bool on_uint64(std::uint64_t, text, error_code&) { return true; }
  bool on_double(double, text, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(text, error_code&) { return true; }
  bool on_comment(text, error_code&) { return true; }

 private:
  std::vector<std::set<std::string>> open_;  ///< keys of each object around
  std::string key_;
  std::optional<std::string> twice_;
};

/// Throws data_loss, which begins with `what`, if `text` is not JSON, or has a key twice in one
/// object.
inline boost::json::value parse_json(std::string_view text, std::string_view what) {
  boost::json::error_code e;
  boost::json::value parsed = boost::json::parse(text, e);
  if (e) ext::fail(errc::data_loss, what, " is not JSON: ", e.message());
  boost::json::basic_parser<key_check> keys{boost::json::parse_options()};
  keys.write_some(false, text.data(), text.size(), e);
  if (const auto& key = keys.handler().twice())
    ext::fail(errc::data_loss, what, " has the key \"", ext::printable(*key), "\" twice");
  return parsed;
}

}  // namespace deft::detail
