// SPDX-License-Identifier: Apache-2.0
// deft/plan/plan.ipp: umbrella of plan/.
#pragma once
#include <deft/plan/checks.ipp>
#include <deft/plan/collectives.ipp>
#include <deft/plan/cut.ipp>
#include <deft/plan/extents.ipp>
#include <deft/plan/fold.ipp>
#include <deft/plan/fuse.ipp>
#include <deft/plan/fuse_folds.ipp>
#include <deft/plan/fuse_joins.ipp>
#include <deft/plan/fuse_rules.ipp>
#include <deft/plan/order.ipp>
#include <deft/plan/passes.ipp>
#include <deft/plan/place.ipp>
#include <deft/plan/plan_shape.ipp>
#include <deft/plan/region.ipp>
#include <deft/plan/rewrite.ipp>
#include <deft/plan/shapes.ipp>
#include <deft/plan/subsume.ipp>
