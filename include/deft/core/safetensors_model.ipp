// SPDX-License-Identifier: Apache-2.0
// deft/core/safetensors_model.ipp: the arrays of several safetensors files, and which of them are
// read.
#pragma once
#include <algorithm>
#include <deft/core/json.ipp>
#include <deft/core/log.hpp>
#include <deft/core/printable.hpp>
#include <deft/core/safetensors.ipp>
#include <filesystem>

namespace deft {
namespace {

constexpr std::size_t longest_model_index = std::size_t{1} << 28;
constexpr std::string_view model_index_ending = ".safetensors.index.json",
                           model_file_ending = ".safetensors";

/// The only file of a directory whose name ends so; empty if there is none. Throws not_found if
/// there are others.
std::string only_file(const std::string& directory, std::string_view ending) {
  std::string found;
  std::error_code e;
  for (const auto& entry : std::filesystem::directory_iterator(directory, e)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(ending)) continue;
    if (!found.empty())
      ext::fail(errc::not_found, "[safetensors] ", directory, " has several files *", ending, ", ",
                std::min(found, path), " and ", std::max(found, path), ": name one of them");
    found = path;
  }
  if (e) ext::fail_system(e.value(), ext::str("[safetensors] cannot read ", directory));
  return found;
}

/// What the path of a model leads to: a file, or an index.
std::string found_model(const std::string& path, const ext::file_roots& roots) {
  std::error_code none;
  if (!std::filesystem::is_directory(path, none)) return path;
  roots.open_directory(path);  // or it may not be read
  std::string found = only_file(path, model_index_ending);
  if (found.empty()) found = only_file(path, model_file_ending);
  if (found.empty())
    ext::fail(errc::not_found, "[safetensors] ", path, " has no file *", model_file_ending);
  return found;
}

/// The names of files by the names of their arrays.
std::map<std::string, std::string> parse_model_index(const std::string& path,
                                                     const std::string& text) {
  const json::value parsed = detail::parse_json(text, ext::str("[safetensors] ", path));
  const json::object* o = parsed.if_object();
  const json::value* map = o ? o->if_contains("weight_map") : nullptr;
  if (!map || !map->is_object()) bad_file(path, "it has no object \"weight_map\"");
  std::map<std::string, std::string> files;
  for (const auto& [name, v] : map->get_object()) {
    const std::string file = v.is_string() ? std::string(v.get_string()) : std::string();
    // An index from elsewhere may not lead out of its directory.
    if (!file.ends_with(model_file_ending) || file.find('/') != file.npos ||
        file.find('\0') != file.npos)
      bad_file(path, ext::str("the file of \"", ext::printable(name), "\" is \"",
                              ext::printable(file), "\"; expected one in the same directory"));
    files.emplace(name, file);
  }
  return files;
}

}  // namespace

safetensors_model::safetensors_model(const std::string& path, const ext::file_roots& roots,
                                     file_access access)
    : path_(found_model(path, roots)) {
  if (!path_.ends_with(model_index_ending)) {
    paths_.push_back(path_);
    files_.emplace_back(path_, roots, access);
    for (const auto& [name, e] : files_.back().entries()) files_of_.emplace(name, 0);
    return;
  }
  std::map<std::string, std::size_t> numbers;
  for (const auto& [name, file] :
       parse_model_index(path_, ext::read_file(roots, path_, longest_model_index))) {
    const auto [number, fresh] = numbers.emplace(file, files_.size());
    if (fresh) {
      paths_.push_back(ext::str(ext::split_path(path_).first, "/", file));
      files_.emplace_back(paths_.back(), roots, access);
    }
    if (!files_[number->second].entries().contains(name))
      bad_file(path_, ext::str(file, " has no array \"", ext::printable(name), "\""));
    files_of_.emplace(name, number->second);
  }
}

std::vector<std::string> safetensors_model::names(const std::vector<std::string>& patterns) const {
  std::vector<char> matched(patterns.size());
  std::vector<std::string> found;
  for (const auto& [name, file] : files_of_) {
    bool any = patterns.empty();
    for (std::size_t i = 0; i < patterns.size(); ++i)
      if (ext::matches(patterns[i], name)) {
        matched[i] = 1;
        any = true;
      }
    if (any) found.push_back(name);
  }
  if (const auto none = std::ranges::find(matched, 0); none != matched.end())
    ext::fail(errc::not_found, "[safetensors] ", path_, " has no array whose name matches \"",
              ext::printable(patterns[static_cast<std::size_t>(none - matched.begin())]), "\"");
  return found;
}

const safetensors_entry& safetensors_model::entry(const std::string& name) const& {
  const auto file = files_of_.find(name);
  if (file == files_of_.end()) fail_unknown(path_, name);
  return files_[file->second].entries().at(name);
}

any_array safetensors_model::read(const std::string& name) const {
  const auto file = files_of_.find(name);
  if (file == files_of_.end()) fail_unknown(path_, name);
  return files_[file->second].read(name);
}

std::map<std::string, std::string> safetensors_model::types() const {
  std::map<std::string, std::string> all;
  for (const auto& [name, file] : files_of_) all.emplace(name, entry(name).type);
  return all;
}

std::map<std::string, std::string> safetensors_model::metadata() const {
  std::map<std::string, std::string> all;
  for (const auto& f : files_) all.insert(f.metadata().begin(), f.metadata().end());
  return all;
}

std::map<std::string, any_array> read_safetensors(const std::string& path,
                                                  const safetensors_options& options) {
  const safetensors_model model(path, ext::file_roots::anywhere(), options.access);
  const std::vector<std::string> names = model.names(options.names);
  const bool none_is = std::ranges::none_of(
      names, [&](const std::string& name) { return model.entry(name).unsupported.empty(); });
  std::map<std::string, any_array> arrays;
  for (const auto& name : names)
    if (const safetensors_entry& e = model.entry(name); e.unsupported.empty() || none_is)
      arrays.emplace(name, model.read(name));
    else
      logging::warning("[safetensors] ", model.file_of(name),
                       ": left out: ", unsupported_text(name, e));
  return arrays;
}

}  // namespace deft
