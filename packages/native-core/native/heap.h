/* The C library's heap, which grows in the main thread alone: other threads have heaps of their
   own, or take blocks of this one that are there. */

#ifndef DOVETAIL_HEAP_H
#define DOVETAIL_HEAP_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((uintptr_t)1 << 21)

/* Without Python's code, in which a signal's handler could raise what nobody would see. */
static int grow_now(void *size) {
#ifdef MADV_HUGEPAGE
  char *block = malloc((uintptr_t)size);
  if (block != NULL) {
    uintptr_t first = ((uintptr_t)block + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uintptr_t end = ((uintptr_t)block + (uintptr_t)size) / HUGE_PAGE * HUGE_PAGE;
    if (first < end) madvise((void *)first, end - first, MADV_HUGEPAGE);
    free(block);
  }
#endif
  return 0;
}

static PyObject *grow_heap(PyObject *module, PyObject *size) {
  size_t bytes = PyLong_AsSize_t(size);
  if (bytes == (size_t)-1 && PyErr_Occurred()) return NULL;
  return PyBool_FromLong(Py_AddPendingCall(grow_now, (void *)(uintptr_t)bytes) == 0);
}

#endif
