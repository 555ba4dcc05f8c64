// Everything.
#pragma once
#include "sinter/array.h"
#include "sinter/functions.h"
#include "sinter/io.h"
#include "sinter/memory.h"
#include "sinter/random.h"
