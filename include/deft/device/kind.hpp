// SPDX-License-Identifier: Apache-2.0
// deft/device/kind.hpp: kinds of devices, which files of a program register, and their settings.
#pragma once
#include <cstdint>
#include <deft/core/registry.hpp>
#include <deft/device/name.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deft {

struct device_info;

namespace ext {

class device_runtime;

/// What a program, a command line or the environment may say about the devices of a kind. Flags,
/// lines of --help and checks are made from it.
struct device_setting {
  enum class form : std::uint8_t {
    whole,   ///< an int
    number,  ///< a double
    truth,   ///< 0 or 1; the flag takes no value
  };

  std::string_view flag;  ///< its name: "simulated_gpus" is --simulated_gpus
  form is = form::whole;
  std::string_view meaning;        ///< in --help
  std::string_view variable = {};  ///< of the environment: "DEFT_SIMULATED_GPUS"; empty: none
  /// Whether it may be that number; null: any. Errors say what is expected: "a number from 0 to
  /// 64".
  /// @{
  bool (*valid)(double) = nullptr;
  std::string_view expected = {};
  /// @}
  /// The value where nothing is set. Of two values that are set the larger one then counts, as
  /// options of programs cannot say that they leave it open.
  std::optional<double> otherwise = {};
  /// A flag with a smaller value is refused when the command line is read.
  std::optional<int> least_of_flag = {};
  /// What may help where there is no such device: "session_options.cpu_devices says how many CPU
  /// devices this process has".
  std::string_view advice = {};
};

/// Values of settings, by their names: `{{"simulated_gpus", 2}}`.
class device_settings {
 public:
  device_settings() = default;
  device_settings(std::initializer_list<std::pair<std::string_view, double>> values);

  void set(std::string_view flag, double value);
  /// If there is a value.
  template <class T>
  void set(std::string_view flag, const std::optional<T>& value) {
    if (value) set(flag, static_cast<double>(*value));
  }
  std::optional<double> get(std::string_view flag) const;
  const auto& entries() const { return values_; }

 private:
  std::vector<std::pair<std::string, double>> values_;
};
/// `first`, and what `second` has beyond it; the larger value of a setting that has a default.
device_settings merge(const device_settings& first, const device_settings& second);
/// The values of all settings: as given, else as the environment says, else the default, if there
/// is one. Throws invalid_argument if a value or a variable is not valid, or no kind has the
/// setting.
device_settings complete(const device_settings& given);

/// A kind of device. Kinds may share a type, as real and simulated GPUs do.
struct device_kind {
  std::string_view type;  ///< in names of devices, in lower case: "gpu"
  /// Of the devices that could run a node, those of the lowest rank do; 2: only where the node asks
  /// for them, as there is always a processor.
  int rank = 2;
  bool host = false;  ///< the processor, with which the devices of a task are used
  std::span<const device_setting> settings = {};
  /// Makes the devices of a task, whose name comes without type and index. `settings` are complete;
  /// those of other kinds are among them.
  std::vector<std::unique_ptr<device_runtime>> (*make)(const device_name& task,
                                                       const device_settings& settings) = nullptr;
};

/// Makes a kind known, whose devices every task that is made afterwards has. `k` must live as long
/// as the process. See registry.
class registered_device_kind : public registry<registered_device_kind>::link {
 public:
  static registry<registered_device_kind> all;
  registered_device_kind(const device_kind& k) : kind_(k) { all.add(*this); }  // NOLINT: implicit
  registered_device_kind(const device_kind&&) = delete;

  const device_kind& kind() const { return kind_; }

 private:
  const device_kind& kind_;
};
/// The kinds that are registered: the host, then by rank and type.
std::vector<const device_kind*> device_kinds();

/// Calls f for each setting of these kinds, in their order.
template <class F>
void each_device_setting(F f) {
  for (const device_kind* k : device_kinds())
    for (const device_setting& s : k->settings) f(s);
}

/// The device of that number, with rank and host as its kind has them.
device_info describe(const device_name& task, std::string_view type, int index);
/// Sets rank and host of a device that has a name; of a type that this program does not know, those
/// of other devices.
void set_kind(device_info& d);

}  // namespace ext

}  // namespace deft
