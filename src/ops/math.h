// math: the functions that the value column of elementwise.def is written in, on Vals of any machine dtype. Layer: ops.
//
// One algorithm a function, a coefficient set a precision. Only primitives that are correctly rounded are used, so every backend gives
// the same bits. Accuracy: at most 1.5 ulp in float32 and 2 ulp in float64 over the whole domain, unless a function says otherwise;
// special values (infinities, NaN, signed zeros) are those of C's functions.
//
// Coefficients are our own: minimax fits (Remez exchange in 60 digits, relative error as weight) of the expression that stands beside
// them, rounded to the precision.
#pragma once
#include "ops/math/basic.h"
#include "ops/math/exponential.h"
#include "ops/math/hyperbolic.h"
#include "ops/math/integer.h"
#include "ops/math/power.h"
#include "ops/math/special.h"
#include "ops/math/trigonometric.h"
