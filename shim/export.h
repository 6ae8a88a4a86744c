#pragma once

// Everything is hidden but what carries this; the export map, made from the lists, says the same once more.
#define XLOG_EXPORT __attribute__((visibility("default")))
