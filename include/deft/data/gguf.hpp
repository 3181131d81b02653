// SPDX-License-Identifier: Apache-2.0
// deft/data/gguf.hpp: GGUF files, in which llama.cpp keeps a model: tensors, some of them
// quantized, and what else the model needs, such as its vocabulary.
#pragma once
#include <concepts>
#include <cstdint>
#include <deft/core/file_mapping.hpp>
#include <deft/core/quantized.hpp>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deft {

/// A value of a GGUF file's metadata: a number, a bool, a string, or an array of these or of
/// arrays. It is decoded when it is asked for.
class gguf_value {
 public:
  /// "uint32", "string", "array of float32".
  std::string type() const;
  /// How many elements an array has; 1 for anything else.
  std::uint64_t size() const;
  /// The value as a bool, an integer (of any integer that fits), a float or double (of either), a
  /// std::string, a gguf_value, or a std::vector of one of these:
  ///
  ///     file.metadata().at("tokenizer.ggml.tokens").as<std::vector<std::string>>()
  ///
  /// Throws invalid_argument, with the file, the key and the type, for a value of another kind, and
  /// out_of_range for an integer that does not fit.
  template <class T>
  T as() const {
    return get<T>(item_);
  }

 private:
  friend class gguf_file;
  /// A value in the file, which was checked.
  struct item {
    std::uint32_t kind = 0;  ///< as in the file
    const char* at = nullptr;
  };
  struct whole_number {
    bool is_signed = false;
    std::uint64_t bits = 0;
  };
  gguf_value(std::string name, ext::buffer file, item i)
      : name_(std::move(name)), file_(std::move(file)), item_(i) {}

  template <class T>
  T get(const item& i) const {
    if constexpr (std::same_as<T, bool>) {
      return boolean(i);
    } else if constexpr (std::integral<T>) {
      const whole_number n = integer(i);
      if (n.is_signed ? !std::in_range<T>(static_cast<std::int64_t>(n.bits))
                      : !std::in_range<T>(n.bits))
        fail_range(n, sizeof(T));
      return static_cast<T>(n.bits);
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(number(i));
    } else if constexpr (std::same_as<T, std::string>) {
      return std::string(text(i));
    } else if constexpr (std::same_as<T, gguf_value>) {
      return gguf_value(name_, file_, i);
    } else {
      T all;
      for (const item& element : elements(i)) all.push_back(get<typename T::value_type>(element));
      return all;
    }
  }
  bool boolean(const item& i) const;
  whole_number integer(const item& i) const;
  double number(const item& i) const;
  std::string_view text(const item& i) const;
  std::vector<item> elements(const item& i) const;
  [[noreturn]] void fail_kind(const item& i, std::string_view expected) const;
  [[noreturn]] void fail_range(whole_number n, std::size_t bytes) const;

  std::string name_;  ///< in messages: that of the file, and the key
  ext::buffer file_;  ///< what is mapped of it
  item item_;
};

/// A tensor of a GGUF file.
struct gguf_entry {
  std::string type;             ///< as ggml calls it: "F32", "Q4_1"
  dtype element = dtype::none;  ///< as deft reads it; none if it cannot
  std::string unsupported;      ///< why: "of Q6_K"; else empty
  dims shape;                   ///< row-major, the reverse of the file's extents
  /// Its first byte, counted from that of the file, and how many bytes it has (0 of a type that
  /// deft does not know).
  /// @{
  std::uint64_t begin = 0, bytes = 0;
  /// @}
};

/// A GGUF file, of version 2 or 3, little-endian. It is mapped: nothing of a tensor is read before
/// it is used, and the file must not be made shorter meanwhile. (The format:
/// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.)
class gguf_file {
 public:
  /// Throws not_found if there is no such file, unimplemented if it is big-endian or of another
  /// version, data_loss, with the file and the field, if it is cut off or not sound. Nothing is
  /// allocated for what the file has no bytes for.
  explicit gguf_file(const std::string& path);

  /// By key and by name. They live as long as the file.
  /// @{
  const std::map<std::string, gguf_value>& metadata() const& { return metadata_; }
  const std::map<std::string, gguf_entry>& entries() const& { return entries_; }
  /// @}
  /// @cond refused
  void metadata() const&& = delete;
  void entries() const&& = delete;
  /// @endcond
  const std::string& path() const { return path_; }  ///< of the file

  /// A value of the metadata, as gguf_value::as has it: `file.get<int>("llama.block_count")`.
  /// Throws as it does, and not_found if there is no such key, unless it says what holds
  /// `otherwise`.
  /// @{
  template <class T>
  T get(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) fail_key(key);
    return found->second.as<T>();
  }
  template <class T>
  T get(const std::string& key, T otherwise) const {
    return metadata_.contains(key) ? get<T>(key) : std::move(otherwise);
  }
  /// @}

  /// The tensor `name`: of F32, F64, I8, I32 and I64 the pages of the file, of F16, BF16, Q8_0,
  /// Q4_0 and Q4_1 floats made of them. Throws not_found, unimplemented for another type.
  any_array read(const std::string& name) const;
  /// The blocks of a quantized tensor, as they are in the file. Throws not_found, invalid_argument
  /// if it is not one of Q8_0, Q4_0 and Q4_1.
  quantized_array quantized(const std::string& name) const;

 private:
  const gguf_entry& entry(const std::string& name) const;
  [[noreturn]] void fail_key(const std::string& key) const;

  std::string path_;
  ext::file_mapping pages_;
  std::map<std::string, gguf_value> metadata_;
  std::map<std::string, gguf_entry> entries_;
};

/// Opens a GGUF file. Throws as gguf_file does.
///
///     const gguf_file model = read_gguf("SmolLM2-135M.gguf");
///     const auto layers = model.get<int>("llama.block_count");
///     const any_array table = model.read("token_embd.weight");
inline gguf_file read_gguf(const std::string& path) { return gguf_file(path); }

}  // namespace deft
