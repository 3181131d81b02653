// SPDX-License-Identifier: Apache-2.0
// deft/kernels/spec/region_extents.hpp: the extents of a region's values at run time.
#pragma once
#include <deft/graph/op_def.hpp>
#include <span>

namespace deft::ext {

/// The inputs of a region, broadcast together. Throws what the folds' shape rules throw of nothing.
dims region_extents(const program& region, std::span<const tensor_type> in);

/// The class of an input of that shape in a region of extents `all`, of which the first `outer`
/// axes are not those of a row. Throws unimplemented for a part of the rows, or of the columns.
extent_class class_of(const dims& shape, const dims& all, int outer);

/// The axes of a region of those extents that a fold, by what it leaves, folds.
dims folded_axes(extent_class leaves, int row_axes, const dims& extents);

}  // namespace deft::ext
