// Everything.
#pragma once
#include <iostream>

#include "sinter/array.h"
#include "sinter/compile.h"
#include "sinter/control_flow.h"
#include "sinter/custom.h"
#include "sinter/data.h"
#include "sinter/functions.h"
#include "sinter/io.h"
#include "sinter/linalg.h"
#include "sinter/losses.h"
#include "sinter/memory.h"
#include "sinter/nn.h"
#include "sinter/optim.h"
#include "sinter/random.h"
#include "sinter/transforms.h"
