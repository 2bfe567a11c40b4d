/* Values of NumPy's that arrays hold in place of buffers. */

#ifndef DOVETAIL_NATIVE_VALUES_H
#define DOVETAIL_NATIVE_VALUES_H

#include "arrays.h"

/* An array, or keys of a dtype, around a value of NumPy's that nobody else writes to; takes over its
 * reference. `made` is where it was made. */
static PyObject *wrap_made(PyObject *value, int weak, PyObject *keys, PyObject *made) {
  PyTypeObject *type = keys == NULL ? array_type : key_type;
  PyObject *array = type->tp_alloc(type, 0);
  if (array == NULL) {
    Py_DECREF(value);
    return NULL;
  }
  PyArray_CLEARFLAGS((PyArrayObject *)value, NPY_ARRAY_WRITEABLE);
  SLOT(array, value_slot) = value;
  SLOT(array, made_slot) = Py_NewRef(made);
  SLOT(array, weak_slot) = Py_NewRef(weak ? Py_True : Py_False);
  if (keys != NULL) SLOT(array, key_dtype_slot) = Py_NewRef(keys);
  return array;
}

static PyObject *wrap_value(PyObject *value, int weak) {
  PyObject *made = PyObject_CallNoArgs(get_traceback);
  if (made == NULL) {
    Py_DECREF(value);
    return NULL;
  }
  PyObject *array = wrap_made(value, weak, NULL, made);
  Py_DECREF(made);
  return array;
}

/* Bytes from which programs share the memory of values; smaller ones are copied. */
#define LEAST_SHARED 16384
#define ALIGNMENT 64

/* Values from so many bytes that were made last; of smaller ones NumPy keeps the memory itself. One
 * that nobody else has any more is taken again: to make and free one takes longer than to add a
 * thousand numbers. It owns its memory, so that views of it have a reference to it. */
#define LEAST_KEPT 1024
#define SETS 32
#define WAYS 4
static PyArrayObject *made_last[SETS][WAYS]; /* owned, or NULL */
static unsigned made_next;

static int has_shape(PyArrayObject *value, int ndim, const npy_intp *dims) {
  if (PyArray_NDIM(value) != ndim) return 0;
  for (int i = 0; i < ndim; i++)
    if (PyArray_DIM(value, i) != dims[i]) return 0;
  return 1;
}

static PyObject *plain_value(PyArray_Descr *dtype, int ndim, npy_intp *dims) {
  Py_INCREF(dtype);
  return PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, dims, NULL, NULL, 0, NULL);
}

static PyObject *kept_value(PyArray_Descr *dtype, int ndim, npy_intp *dims, npy_intp bytes) {
  PyArrayObject **set = made_last[(bytes + (bytes >> 6) + dtype->type_num) % SETS];
  for (int i = 0; i < WAYS; i++)
    if (set[i] != NULL && Py_REFCNT(set[i]) == 1 && PyArray_DESCR(set[i]) == dtype &&
        has_shape(set[i], ndim, dims))
      return Py_NewRef((PyObject *)set[i]);
  PyObject *value = plain_value(dtype, ndim, dims);
  if (value == NULL) return NULL;
  PyArrayObject **oldest = &set[made_next++ % WAYS], *before = *oldest;
  *oldest = (PyArrayObject *)Py_NewRef(value);
  Py_XDECREF(before);
  return value;
}

static void forget_values(void) {
  for (int i = 0; i < SETS * WAYS; i++) Py_CLEAR(made_last[i / WAYS][i % WAYS]);
}

/* An array of NumPy's for what is computed, in memory that programs take as it is. */
static PyObject *new_value(PyArray_Descr *dtype, int ndim, npy_intp *dims) {
  npy_intp bytes = PyDataType_ELSIZE(dtype);
  for (int i = 0; i < ndim; i++) bytes *= dims[i];
  if (bytes < LEAST_KEPT) return plain_value(dtype, ndim, dims);
  if (bytes < LEAST_SHARED) return kept_value(dtype, ndim, dims, bytes);
  bytes += ALIGNMENT;
  PyObject *memory = PyArray_SimpleNew(1, &bytes, NPY_UINT8);
  if (memory == NULL) return NULL;
  uintptr_t start = (uintptr_t)PyArray_DATA((PyArrayObject *)memory);
  start = (start + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  Py_INCREF(dtype);
  PyObject *value = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, dims, NULL, (void *)start,
                                         NPY_ARRAY_CARRAY, NULL);
  if (value == NULL) {
    Py_DECREF(memory);
    return NULL;
  }
  if (PyArray_SetBaseObject((PyArrayObject *)value, memory) < 0) Py_CLEAR(value);
  return value;
}

#endif
