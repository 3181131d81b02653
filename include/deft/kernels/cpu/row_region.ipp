// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/row_region.ipp: the kernel of regions that fold rows and may use the folds
// again, or fold columns: some rows at a time pass through all phases while they are in cache.
#pragma once
#include <algorithm>
#include <deft/kernels/cpu/broadcast_kernel.hpp>
#include <deft/kernels/cpu/column_folds.hpp>
#include <deft/kernels/cpu/tables.hpp>
#include <optional>

namespace deft::ext::cpu {
namespace {

class row_region_kernel final : public kernel {
 public:
  row_region_kernel(const program& p, std::span<const std::int64_t> literals)
      : program_(p),
        bits_(literals.begin(), literals.end()),
        operands_(p.inputs.size() + p.immediates.size()),
        element_cost_(element_cost(p)) {}

  void prepare(std::span<const tensor_type> in, std::span<const tensor_type>) override {
    const dims extents = region_extents(program_, in);
    const int outer = extents.rank() - program_.row_axes;
    rows_ = n_ = 1;
    for (int d = 0; d < extents.rank(); ++d) (d < outer ? rows_ : n_) *= extents[d];
    std::vector<extent_class> classes;
    std::int64_t bytes = 0;
    for (const auto& t : in.first(program_.inputs.size())) {
      classes.push_back(class_of(t.shape, extents, outer));
      bytes += t.shape.elements() * static_cast<std::int64_t>(size_of_dtype(t.type));
    }
    const bool together = n_ < thresholds::short_row;
    if (classes != classes_ || together != together_) {
      classes_.clear();  // until all has gone well
      together_ = together;
      build(classes);
      classes_ = std::move(classes);
    }
    for (const auto& o : program_.outputs)
      if (o.where == extent_class::element)
        bytes += rows_ * n_ * static_cast<std::int64_t>(size_of_dtype(program_.type_of(o.value)));
    lay_out();
    const double work = element_cost_ * static_cast<double>(rows_ * n_);
    cost_ = 20 * static_cast<double>(rows_) + std::max(work, static_cast<double>(bytes) / 30);
    each_ = rows_, pieces_ = 1;
    if (rows_ > chunk_ && (work > thresholds::split_work || bytes > thresholds::split_bytes)) {
      each_ = std::max({chunk_, chunk_elements / std::max<std::int64_t>(1, n_), (rows_ + 63) / 64});
      each_ = columns_.empty() ? each_ / chunk_ * chunk_ : columns_.piece_of(each_);
      pieces_ = ((columns_.empty() ? rows_ : columns_.whole_rows()) + each_ - 1) / each_;
    }
  }
  double cost() const override { return cost_; }
  std::size_t scratch() const override { return pieces_ > 1 ? columns_.shared_bytes(pieces_) : 0; }

  void run(const kernel_call& c) override {
    const std::size_t own = (room_ + 127) / 64 * 64;
    if (pieces_ <= 1 || !worth_splitting(cost_)) {
      char* room = static_cast<char*>(thread_scratch(own + columns_.shared_bytes(1)));
      some_rows(c, 0, rows_, room);
      if (rows_ > 0) columns_.close(room, {room + own, 1}, 0);
      return columns_.end(c, {room + own, 1});
    }
    const column_folds::parts parts{static_cast<char*>(c.scratch), pieces_};
    parallel_chunks(pieces_, [&](std::int64_t i) {
      char* room = static_cast<char*>(thread_scratch(own));
      some_rows(c, i * each_, i + 1 == pieces_ ? rows_ : (i + 1) * each_, room);
      columns_.close(room, parts, i);
    });
    columns_.end(c, parts);
  }

 private:
  using value = std::uint16_t;
  static constexpr std::size_t most_values = 4 * max_fused_operations;

  /// Where the elements of a value are for the rows at hand.
  enum class home : std::uint8_t {
    none,    ///< nowhere: it is part of what is computed of it
    input,   ///< where the caller has them
    output,  ///< likewise
    room,    ///< in memory of the thread
  };
  /// A program over some values, whose results are others.
  struct part {
    program_code code;
    std::vector<value> operands, results;
    literal_copies literals;
  };
  struct row_fold {
    const fold_functions* how;
    value of, result;
  };
  struct phase {
    std::optional<part> rows;      ///< what is computed for each row before
    std::optional<part> elements;  ///< for each element
    std::vector<row_fold> folds;   ///< then rows are folded
  };

  dtype type_of(value v) const { return program_.type_of(v); }
  std::size_t size_of(value v) const { return size_of_dtype(type_of(v)); }
  bool is_element(value v) const { return shape_.where[v] == extent_class::element; }
  bool is_row(value v) const {
    return shape_.where[v] == extent_class::row || (v >= operands_ && !is_element(v));
  }

  // Phases.

  void build(std::span<const extent_class> classes) {
    shape_ = shape_of(program_, classes);
    phases_.clear();
    columns_.clear();
    phases_.resize(shape_.phases);
    homes_.assign(program_.values(), home::none);
    for (value v = 0; v < program_.inputs.size(); ++v) homes_[v] = home::input;
    outputs_.assign(program_.values(), 0);
    for (value o = 0; o < program_.outputs.size(); ++o) {
      homes_[program_.outputs[o].value] = home::output;
      outputs_[program_.outputs[o].value] = o;
    }
    for (std::size_t i = 0; i < program_.code.size(); ++i) find_home(i);
    for (std::uint8_t q = 0; q < shape_.phases; ++q) {
      phase& now = phases_[q];
      std::vector<value> rows, elements;
      for (std::size_t i = 0; i < program_.code.size(); ++i) {
        const auto v = static_cast<value>(operands_ + i);
        const instruction& c = program_.code[i];
        if (c.is_fold() && shape_.phase[c.args[0]] == q) {
          if (c.leaves == extent_class::row)
            now.folds.push_back({&find_fold(c.op->folds, c.type), c.args[0], v});
          else
            columns_.add(c.op->folds, c.type, q, c.args[0], outputs_[v]);
        }
        if (c.is_fold() || shape_.phase[v] != q || homes_[v] == home::none) continue;
        (is_element(v) ? elements : rows).push_back(v);
      }
      if (!rows.empty())
        now.rows = make_part(rows, [&](value v) {
          return v < operands_ || program_.made_by(v)->is_fold() || shape_.phase[v] < q;
        });
      if (elements.empty()) continue;
      // If all that becomes of the elements is a fold, there may be a compiled one.
      const bool only_folded = elements.size() == 1 && now.folds.size() == 1 &&
                               now.folds[0].of == elements[0] && uses_of(elements[0]) == 1;
      now.elements = make_part(
          elements,
          [&](value v) {
            return v < operands_ || !is_element(v) ||
                   (shape_.phase[v] < q && homes_[v] != home::none);
          },
          only_folded ? program_.made_by(now.folds[0].result)->op->folds : fold_kind::none);
    }
  }

  /// Values stay where another part, or a fold, finds them; but what is cheap is computed again.
  void find_home(std::size_t number) {
    const instruction& c = program_.code[number];
    const auto v = static_cast<value>(operands_ + number);
    auto keep = [&](value a) {
      if (a >= operands_ && homes_[a] == home::none) homes_[a] = home::room;
    };
    if (c.is_fold()) {
      keep(v);
      return keep(c.args[0]);
    }
    for (int a = 0; a < c.count; ++a) {
      const value of = c.args[a];
      if (of < operands_) continue;
      const bool other_part =
          is_element(of) != is_element(v) || shape_.phase[of] != shape_.phase[v];
      if (other_part && !is_cheap(of)) keep(of);
    }
  }
  bool is_cheap(value v) const {
    const instruction& c = *program_.made_by(v);
    if (!is_element(v) || row_cost(*c.op, type_of(c.args[0])) > 0.1) return false;
    return std::all_of(c.args, c.args + c.count,
                       [&](value a) { return a < operands_ || !is_element(a); });
  }

  std::size_t uses_of(value v) const {
    auto uses = std::ranges::count(program_.outputs, v, &program_output::value);
    for (const auto& c : program_.code) uses += std::count(c.args, c.args + c.count, v);
    return static_cast<std::size_t>(uses);
  }

  part make_part(const std::vector<value>& results, const std::function<bool(value)>& is_operand,
                 fold_kind folded = fold_kind::none) {
    program_part alone = extract(program_, results, is_operand);
    program_code code(*alone.program);
    if (folded != fold_kind::none) code.find_fold(*alone.program, folded);
    literal_copies copies(alone.program->immediates, literals_of(alone, program_, bits_),
                          code.span());
    alone.operands.resize(alone.program->inputs.size());
    return {std::move(code), std::move(alone.operands), results, std::move(copies)};
  }

  // Memory.

  /// How many rows at a time, and what of them is where in a thread's memory.
  void lay_out() {
    std::size_t width = 1;
    for (value v = 0; v < program_.values(); ++v)
      if (is_element(v) && homes_[v] != home::none) width += size_of(v);
    const auto n = static_cast<std::size_t>(std::max<std::int64_t>(1, n_));
    const std::size_t cache = together_ ? 24'000 : 256'000;  // of the first level, of the second
    room_ = 0;
    auto take = [&](std::size_t bytes) {
      return std::exchange(room_, room_ + (bytes + 63) / 64 * 64);
    };
    columns_.lay_out(rows_, n_, take);
    chunk_ = static_cast<std::int64_t>(
        std::clamp<std::size_t>(cache / (width * n), 1, thresholds::rows_at_once));
    chunk_ = columns_.pass_of(chunk_);
    chunk_ = std::min(chunk_, std::max<std::int64_t>(1, rows_));
    const auto rows = static_cast<std::size_t>(chunk_);
    offsets_.assign(program_.values(), 0);
    for (value v = 0; v < program_.values(); ++v)
      if (homes_[v] == home::room) offsets_[v] = take(size_of(v) * rows * (is_element(v) ? n : 1));
    replicas_.assign(program_.values(), none);
    counts_.assign(program_.values(), 0);
    for (const auto& p : phases_) {
      if (p.rows)
        for (auto v : p.rows->operands)
          if (is_single(v)) counts_[v] = most_copies(v, p.rows->code);
      if (p.elements)
        for (auto v : p.elements->operands) {
          if (is_single(v))
            counts_[v] = most_copies(v, p.elements->code);
          else if (is_row(v) && !together_)
            counts_[v] =
                std::max(counts_[v], static_cast<std::size_t>(p.elements->code.span()) * rows);
          else if (!is_element(v) && together_)
            counts_[v] = rows * n;
        }
    }
    for (value v = 0; v < program_.values(); ++v)
      if (counts_[v] > 0) replicas_[v] = take(size_of(v) * counts_[v]);
    std::size_t stream = 0;
    for (const auto& p : phases_)
      if (is_compiled_fold(p)) stream = std::max(stream, p.folds[0].how->stream_bytes);
    stream_ = take(stream);
  }
  bool is_compiled_fold(const phase& p) const {
    return !together_ && p.elements && p.elements->code.can_fold();
  }
  /// An input of a single element.
  bool is_single(value v) const { return v < operands_ && shape_.where[v] == extent_class::whole; }
  std::size_t most_copies(value v, const program_code& code) const {
    return std::max(counts_[v], static_cast<std::size_t>(code.span()));
  }

  // Runs.

  struct place_of_values {
    const kernel_call& c;
    char* room;
    std::int64_t row;  ///< the first of those at hand
  };
  char* address(const place_of_values& at, value v) const {
    const std::int64_t first = at.row *
                               (is_element(v) ? n_
                                : is_row(v)   ? 1
                                              : 0) *
                               static_cast<std::int64_t>(size_of(v));
    switch (homes_[v]) {
      case home::input:
        return static_cast<char*>(const_cast<void*>(at.c.in[v])) + first;
      case home::output:
        return static_cast<char*>(at.c.out[outputs_[v]]) + first;
      default:
        return at.room + offsets_[v];
    }
  }

  void some_rows(const kernel_call& c, std::int64_t begin, std::int64_t end, char* room) const {
    columns_.begin(room);
    // What is the same for all rows.
    for (value v = 0; v < program_.inputs.size(); ++v) {
      if (replicas_[v] == none || shape_.where[v] == extent_class::row) continue;
      char* to = room + replicas_[v];
      if (shape_.where[v] == extent_class::whole)
        repeat(to, c.in[v], size_of(v), 1, static_cast<std::int64_t>(counts_[v]));
      else
        for (std::int64_t r = 0; r < chunk_; ++r)
          std::memcpy(to + static_cast<std::size_t>(r * n_) * size_of(v), c.in[v],
                      static_cast<std::size_t>(n_) * size_of(v));
    }
    for (std::int64_t row = begin; row < end; row += chunk_)
      pass({c, room, row}, std::min(chunk_, end - row));
  }

  /// All phases over `count` rows.
  void pass(const place_of_values& at, std::int64_t count) const {
    for (const phase& p : phases_) {
      if (p.rows) row_part(at, *p.rows, count);
      if (is_compiled_fold(p)) {
        fold_rows(at, *p.elements, p.folds[0], count);
      } else {
        if (p.elements)
          together_ ? together(at, *p.elements, count) : in_turns(at, *p.elements, count);
        for (const row_fold& f : p.folds)
          f.how->rows(address(at, f.of), count, n_, address(at, f.result));
      }
      columns_.pass(at.room, static_cast<std::uint8_t>(&p - phases_.data()), count,
                    [&](value v) { return address(at, v); });
    }
  }

  /// Operands of a part, and where they go on from row to row.
  struct arguments {
    std::size_t count = 0;
    const void* in[most_values];
    std::uintptr_t mask[most_values];
    std::int64_t strides[most_values];

    void add(const void* address, bool dense, std::int64_t stride = 0) {
      in[count] = address;
      mask[count] = dense ? ~std::uintptr_t{0} : 0;
      strides[count++] = stride;
    }
  };
  void call(const place_of_values& at, const part& p, arguments& a, std::int64_t n,
            std::int64_t rows) const {
    for (std::size_t i = 0; i < p.literals.size(); ++i) a.add(p.literals[i], false);
    void* to[most_values];
    std::int64_t strides[most_values];
    std::size_t o = 0;
    for (value v : p.results) {
      strides[o] = n * static_cast<std::int64_t>(size_of(v));
      to[o++] = address(at, v);
    }
    p.code.run(program_call{a.in, a.mask, to, n, rows, a.strides, strides});
  }

  void row_part(const place_of_values& at, const part& p, std::int64_t count) const {
    arguments a;
    for (value v : p.operands)
      if (is_single(v))
        a.add(at.room + replicas_[v], false);
      else
        a.add(address(at, v), true);
    call(at, p, a, count, 1);
  }
  /// An element part over short rows at once: what a row or column has is there for each element.
  void together(const place_of_values& at, const part& p, std::int64_t count) const {
    arguments a;
    for (value v : p.operands) {
      if (is_element(v)) {
        a.add(address(at, v), true);
        continue;
      }
      char* copies = at.room + replicas_[v];
      if (is_row(v)) repeat(copies, address(at, v), size_of(v), count, n_);
      a.add(copies, !is_single(v));
    }
    call(at, p, a, count * n_, 1);
  }
  /// Over `count` rows, one after another.
  void in_turns(const place_of_values& at, const part& p, std::int64_t count) const {
    arguments a;
    take_rows(at, p, count, a);
    call(at, p, a, n_, count);
  }
  void take_rows(const place_of_values& at, const part& p, std::int64_t count, arguments& a) const {
    for (value v : p.operands) {
      const auto size = static_cast<std::int64_t>(size_of(v));
      if (is_element(v)) {
        a.add(address(at, v), true, n_ * size);
      } else if (shape_.where[v] == extent_class::column) {
        a.add(address(at, v), true);
      } else {
        char* copies = at.room + replicas_[v];
        if (is_row(v)) repeat(copies, address(at, v), size_of(v), count, p.code.span());
        a.add(copies, false, is_row(v) ? p.code.span() * size : 0);
      }
    }
  }
  /// Where the elements are computed, except for the last ones of each row.
  void fold_rows(const place_of_values& at, const part& p, const row_fold& f,
                 std::int64_t count) const {
    arguments a;
    take_rows(at, p, count, a);
    const std::size_t inputs = a.count;
    for (std::size_t i = 0; i < p.literals.size(); ++i) a.add(p.literals[i], false);
    const std::int64_t tail = n_ % f.how->lanes, packs = n_ - tail;
    if (packs > 0 && packs <= f.how->piece) return fold_short_rows(at, p, f, count, a, inputs);
    const fold_functions& how = *f.how;
    void* const stream = at.room + stream_;
    char* const rest = address(at, f.of);
    char* to = address(at, f.result);
    for (std::int64_t row = 0; row < count; ++row, to += size_of(f.result)) {
      how.begin(stream);
      for (std::int64_t left = packs; left > 0;) {
        std::int64_t n;
        void* lanes = how.open(stream, n);
        n = std::min(n, left);
        p.code.fold({{a.in, a.mask, lanes, n}});
        advance(p, a, inputs, n);
        how.close(stream, n);
        left -= n;
      }
      if (tail > 0) p.code.run(row_call{a.in, a.mask, rest, tail});
      how.add(stream, rest, tail);
      how.end(stream, 1, n_, to);
      advance(p, a, inputs, -packs);
      for (std::size_t k = 0; k < inputs; ++k)
        a.in[k] = static_cast<const char*>(a.in[k]) + a.strides[k];
    }
  }
  /// What goes on along a row.
  void advance(const part& p, arguments& a, std::size_t inputs, std::int64_t elements) const {
    for (std::size_t k = 0; k < inputs; ++k)
      if (a.mask[k])
        a.in[k] = static_cast<const char*>(a.in[k]) +
                  elements * static_cast<std::int64_t>(size_of(p.operands[k]));
  }
  /// Rows of whole packs that are one leaf each, and what is behind them: some rows at a time.
  void fold_short_rows(const place_of_values& at, const part& p, const row_fold& f,
                       std::int64_t count, arguments& a, std::size_t inputs) const {
    const fold_functions& how = *f.how;
    const std::int64_t tail = n_ % how.lanes, packs = n_ - tail;
    const auto size = static_cast<std::int64_t>(size_of(f.of));
    void* const lanes = at.room + stream_;
    char* const rest = address(at, f.of);
    char* to = address(at, f.result);
    std::int64_t to_next[most_values];
    for (std::size_t k = 0; k < inputs; ++k)
      to_next[k] = a.strides[k] -
                   (a.mask[k] ? packs * static_cast<std::int64_t>(size_of(p.operands[k])) : 0);
    for (std::int64_t row = 0; row < count; row += how.most_rows) {
      const std::int64_t rows = std::min(how.most_rows, count - row);
      how.reset(lanes, rows);
      p.code.fold({{a.in, a.mask, lanes, packs}, rows, to_next});
      for (std::int64_t r = 0; r < rows; ++r) {
        if (tail > 0) {
          advance(p, a, inputs, packs);
          p.code.run(row_call{a.in, a.mask, rest + r * tail * size, tail});
          advance(p, a, inputs, -packs);
        }
        for (std::size_t k = 0; k < inputs; ++k)
          a.in[k] = static_cast<const char*>(a.in[k]) + a.strides[k];
      }
      how.finish(lanes, rows, rest, tail, n_, to);
      to += rows * static_cast<std::int64_t>(size_of(f.result));
    }
  }

  static constexpr std::size_t none = ~std::size_t{0};

  const program program_;
  const integers bits_;  ///< of the literals
  const std::size_t operands_;
  const double element_cost_;
  std::int64_t rows_ = 1, n_ = 1;
  std::vector<extent_class> classes_;  ///< of the inputs
  bool together_ = false;              ///< rows are short: an element part takes some at once
  region_shape shape_;
  std::vector<phase> phases_;
  // Of each value:
  std::vector<home> homes_;
  std::vector<value> outputs_;                  ///< which one it is, if it is one
  std::vector<std::size_t> offsets_;            ///< in a thread's memory, if it is there
  std::vector<std::size_t> replicas_, counts_;  ///< of its copies, and how many there are
  std::size_t room_ = 0, stream_ = 0;
  column_folds columns_;
  std::int64_t chunk_ = 1;  ///< rows that pass through all phases together
  double cost_ = 0;
  std::int64_t pieces_ = 1, each_ = 0;  ///< where it is split: how many, and their rows
};

}  // namespace

kernel_ptr make_row_region(const program& p, std::span<const std::int64_t> immediates) {
  return std::make_unique<row_region_kernel>(p, immediates);
}

}  // namespace deft::ext::cpu
