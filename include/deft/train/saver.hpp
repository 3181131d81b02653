// SPDX-License-Identifier: Apache-2.0
// deft/train/saver.hpp: checkpoints: the values of variables in files, and back.
#pragma once
#include <cstdint>
#include <deft/op/variable.hpp>
#include <deft/session/session.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deft {

namespace detail {
struct checkpoint_index;
}

/// What a saver saves and restores, and how many checkpoints it keeps.
struct saver_options {
  /// What is saved; empty, and `named` too: all variables that the current graph has at each save.
  std::vector<any_variable> variables = {};
  /// What is saved under other names: from the name in the checkpoint to the variable.
  std::map<std::string, any_variable> named = {};
  /// Which of these names have their axes in another order in checkpoints than the variable has, as
  /// the weight of torch's Linear, (outputs, inputs), has: axis i of the variable is axis
  /// `transposed[name][i]` of the tensor in the file, as in transpose(tensor, axes{…}).
  ///
  ///     saver torch({.named = {{"fc.weight", w}, {"fc.bias", b}},
  ///                  .transposed = {{"fc.weight", {1, 0}}}});
  std::map<std::string, axes> transposed = {};
  /// How many checkpoints are kept: of those that this saver made, whatever their names, and of
  /// those of the name that it saves (or that name with a step) which were there before. The oldest
  /// are deleted. 0: all.
  int max_to_keep = 5;
  /// Of those that would be deleted, the first of every so many hours is kept; 0: none.
  double keep_every_hours = 0;
};

/// Options of saver::restore.
struct restore_options {
  bool partial = false;  ///< leave variables that the checkpoint lacks as they are
};

/// How the variables of a saver and the tensors of a checkpoint compare, by name.
struct checkpoint_comparison {
  std::vector<std::string> restorable;  ///< variables that the checkpoint has, and that fit
  std::vector<std::string> missing;     ///< variables that the checkpoint lacks
  std::vector<std::string> extra;       ///< tensors that no variable has the name of
  std::vector<std::string> mismatched;  ///< sentences about dtypes or shapes that differ
};

/// Saves variables and restores them. The tasks that hold variables write and read the files
/// themselves, each its own, in the safetensors format, so that values do not pass through the
/// client. They need the directory in common, and servers need to have been started with
/// `--file_root` for it.
///
///     saver save;
///     const std::string path = save.save(s, "ckpt/model", n);  // ckpt/model-1000
///     save.restore(s, latest_checkpoint("ckpt"));
///
/// A checkpoint appears whole: its index, ckpt/model-1000.index.json, is written once all its files
/// are on the disk, each under a temporary name first. While others train, the values that a task
/// saves are those of one moment, between two updates of its variables. Those of all tasks are of
/// one moment between two rounds where the graph has sync_replicas, whose rounds wait meanwhile for
/// the values to be read, not written. Otherwise variables of different tasks may be from different
/// moments, and a step that updates several variables may be there in part.
class saver {
 public:
  /// Throws invalid_argument if the given variables are of several graphs, two have one name, or
  /// one has two; if a name is not UTF-8 or has control characters; or if `transposed` has a name
  /// that is not given, or what is no order of the variable's axes.
  explicit saver(saver_options options = {});
  /// @cond refused
  template <std::convertible_to<std::string_view> Path>
  explicit saver(const Path&) {
    static_assert(detail::takes<saver, Path>,
                  "[saver] expects options, and got a path: it is an argument of save and restore, "
                  "as in saver save; save.save(s, \"ckpt/model\")");
  }
  /// @endcond

  /// Writes a checkpoint and returns its path, `path` or `path-step`. Its directory is created.
  /// Replaces an older one of that name, and deletes the oldest ones beyond max_to_keep. Throws
  /// resource_exhausted on a full disk, permission_denied where a task may not write there,
  /// failed_precondition for a variable without a value; the checkpoints that were there remain.
  std::string save(session& s, const std::string& path, std::optional<std::int64_t> step = {},
                   ext::source_location w = ext::here());
  /// The same, `path-step` with the value of `step` that is in the checkpoint: of an integer
  /// variable that is saved, such as the global step. Throws invalid_argument if it is not.
  template <std::convertible_to<any_variable> Variable>
  std::string save(session& s, const std::string& path, const Variable& step,
                   ext::source_location w = ext::here()) {
    return save_counted(s, path, any_variable(step), w);
  }

  /// Gives the variables the values of a checkpoint, or of a model of others: a `.safetensors`
  /// file, an index of several ("model.safetensors.index.json"), or a directory with one of these.
  /// Throws not_found if there is no such checkpoint, or it lacks variables and `options` do not
  /// allow that; invalid_argument if dtypes or shapes differ; data_loss, naming the file, if one is
  /// damaged. The variables are then unchanged.
  checkpoint_comparison restore(session& s, const std::string& path, restore_options options = {},
                                ext::source_location w = ext::here());
  /// The values of the variables, by the names and with the axes that they have in files. With the
  /// types of the model that they came from, a tuned model goes back as it was:
  ///
  ///     const safetensors_model original("model");
  ///     tuning.restore(s, "model");
  ///     …
  ///     write_safetensors("tuned.safetensors", tuning.arrays(s),
  ///                       {.types = original.types(), .metadata = original.metadata()});
  std::map<std::string, any_array> arrays(session& s, ext::source_location w = ext::here()) const;
  /// What restore would do. Throws not_found or data_loss.
  checkpoint_comparison compare(const std::string& path) const;

 private:
  struct saving;
  std::map<std::string, any_variable> variables() const;
  /// Of the variable that is saved as `name`: axis i of it is axis `[i]` in the file. Empty: the
  /// same.
  dims axes_in_file(const std::string& name) const;
  checkpoint_comparison compare_with(const detail::checkpoint_index& index,
                                     const std::map<std::string, any_variable>& all) const;
  std::string save_counted(session& s, const std::string& path, const any_variable& step,
                           ext::source_location w);
  /// `counted`: the name under which the step in the checkpoint's name is saved, else null.
  std::string save_as(session& s, const std::string& path, std::optional<std::int64_t> step,
                      const std::string* counted, ext::source_location w);
  /// Deletes what max_to_keep says, after `made`, of the checkpoints `there` and those of this
  /// saver.
  void keep_newest(std::vector<detail::checkpoint_index> there,
                   const detail::checkpoint_index& made);
  /// Makes `saving_`, unless it saves the same variables on the same tasks already.
  void prepare(session& s, const std::map<std::string, any_variable>& all);

  graph graph_;
  saver_options options_;           ///< `named` has the given variables, of which there may be none
  std::shared_ptr<saving> saving_;  ///< the operation of the last save, for the next one
  std::vector<std::string> made_;   ///< absolute paths of the checkpoints of this saver, in order
};

/// The path of the newest checkpoint in a directory, of those called `name` (or `name-step`) if it
/// is not empty; "" if there is none. One whose files are gone or damaged is passed over, which is
/// logged. An empty `directory` is the current one. Throws not_found if
/// it is no directory, permission_denied or unavailable if it cannot be read.
std::string latest_checkpoint(const std::string& directory, const std::string& name = {});
/// The paths of all checkpoints of a directory, the oldest first.
std::vector<std::string> checkpoints_in(const std::string& directory, const std::string& name = {});

}  // namespace deft
