// SPDX-License-Identifier: Apache-2.0
// deft/train/checkpoint_index.hpp: what a checkpoint consists of, in a small file of its own.
#pragma once
#include <cstdint>
#include <deft/core/file.hpp>
#include <deft/graph/op_def.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace deft::detail {

/// A tensor of a checkpoint.
struct saved_tensor {
  std::string file;  ///< in the directory of the index
  std::string name;  ///< in that file
  std::string type;  ///< what it is, if deft has no such arrays: "of F8_E4M3", "of rank 9"
  tensor_type holds;
};

/// The index of a checkpoint, written when its files are complete.
struct checkpoint_index {
  std::string path;             ///< of the checkpoint: "ckpt/model-1000"
  std::string origin;           ///< the same, or what it leads to if its index is a link
  std::string base;             ///< its name without the step: "model"
  std::int64_t sequence = 0;    ///< a later checkpoint of the directory has a larger one
  std::int64_t seconds = 0;     ///< when it was written, since 1970
  std::int64_t generation = 1;  ///< how often a checkpoint of this name was written
  /// How many steps of the session that saved it had drawn random numbers, if that is known.
  std::optional<std::uint64_t> draws = {};
  std::map<std::string, saved_tensor> tensors;

  /// Its name in its directory: "model-1000".
  std::string name() const;
  std::vector<std::string> files() const;
};

/// The last directory in which this thread looked for a checkpoint and found none, for messages.
std::string& folder_without();
/// The index of a checkpoint, or one made of a `.safetensors` file or what else safetensors_model
/// reads. Throws not_found or data_loss, also for an index that names files which are not its own,
/// in its directory.
checkpoint_index read_index(const std::string& path);

/// Writes the index of the checkpoint `path`. It is made when the save begins: while it is there,
/// delete_leftovers() of other processes leaves the files of this checkpoint alone.
class index_writer {
 public:
  explicit index_writer(const std::string& path);
  /// The index appears whole. Called once.
  void write(const checkpoint_index& index);

 private:
  file_writer file_;
};

/// The global step in a checkpoint; 0 if it has none.
std::int64_t saved_step(const checkpoint_index& index);
/// Why a checkpoint cannot be restored: a file is gone, or its header is damaged; else empty.
std::string why_incomplete(const checkpoint_index& index);
/// Whether `name` can be that of a checkpoint without its step, or of a tensor, in an index, which
/// is UTF-8: it is not empty and has no control characters.
bool is_possible_name(std::string_view name);
/// Those of a directory in their order; damaged ones are logged and left out.
std::vector<checkpoint_index> read_indexes(const std::string& directory);
/// Deletes a checkpoint: its index first, then its files. One that another process is saving again
/// stays.
void delete_checkpoint(const checkpoint_index& index);
/// Deletes what saves of `base` that did not end have left: files of no index, but not those that
/// another process is still writing.
void delete_leftovers(const std::string& directory, const std::string& base,
                      const std::vector<checkpoint_index>& there);

}  // namespace deft::detail
