// Modules, layers, initial values, gradients by models. See docs/TRAINING.md.
#pragma once
#include "sinter/nn/attention.h"
#include "sinter/nn/init.h"
#include "sinter/nn/layers.h"
#include "sinter/nn/module.h"
#include "sinter/nn/value_and_grad.h"
