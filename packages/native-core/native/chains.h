/* Small programs as chains of functions of the backend, each of which computes one operation. */

#ifndef DOVETAIL_NATIVE_CHAINS_H
#define DOVETAIL_NATIVE_CHAINS_H

#include "arrays.h"

#define MOST_OPERANDS 3
#define MOST_DIMENSIONS 8
#define MOST_VALUES 96 /* arguments, constants and steps */
#define ROOM_ON_STACK 8192
#define CHAIN_NAME "dovetail_native.chain"

/* Computes `count` elements. Of an elementwise function `numbers` are steps: an operand with a step
 * of 0 is one element, for all of them. */
typedef void (*HostFunction)(const void *const *operands, const Py_ssize_t *numbers, void *result,
                             Py_ssize_t count);

/* A call of a function, once for each row: of operands and the result, so many bytes further. */
typedef struct {
  HostFunction function;
  const Py_ssize_t *numbers;
  Py_ssize_t count, rows;
  Py_ssize_t row_bytes[MOST_OPERANDS + 1];
  int operands, target;
  int sources[MOST_OPERANDS];
} Step;

typedef struct {
  int ndim; /* -1 if it is no array */
  npy_intp dims[MOST_DIMENSIONS];
  PyObject *fixed; /* owned: the value of a static argument; or NULL */
} Expected;

/* Values are arguments, then constants, then what steps compute; the last of these is the result. */
typedef struct {
  int arguments, constants, values, steps;
  Expected *expected;
  Py_ssize_t *places; /* of a constant, or of what a step computes: the byte where it begins */
  char *constant_bytes;
  Step *step;
  Py_ssize_t *numbers;
  Py_ssize_t room; /* bytes of what steps compute, without the result */
  int ndim;
  npy_intp dims[MOST_DIMENSIONS];
} Chain;

static void chain_free(Chain *chain) {
  for (int i = 0; chain->expected != NULL && i < chain->arguments; i++)
    Py_XDECREF(chain->expected[i].fixed);
  PyMem_Free(chain->expected);
  PyMem_Free(chain->places);
  PyMem_Free(chain->constant_bytes);
  PyMem_Free(chain->step);
  PyMem_Free(chain->numbers);
  PyMem_Free(chain);
}

static void capsule_free(PyObject *capsule) {
  chain_free(PyCapsule_GetPointer(capsule, CHAIN_NAME));
}

static int shape_from(PyObject *shape, npy_intp *dims) {
  if (!PyTuple_CheckExact(shape) || PyTuple_GET_SIZE(shape) > MOST_DIMENSIONS) {
    PyErr_SetString(PyExc_TypeError, "this is no shape of a small array");
    return -1;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); i++)
    dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
  return PyErr_Occurred() ? -1 : (int)PyTuple_GET_SIZE(shape);
}

static int step_from(PyObject *tuple, Step *step, int values, Py_ssize_t **numbers) {
  PyObject *address, *sources, *given, *row_bytes;
  if (!PyArg_ParseTuple(tuple, "OO!iO!nnO!", &address, &PyTuple_Type, &sources, &step->target,
                        &PyTuple_Type, &given, &step->count, &step->rows, &PyTuple_Type,
                        &row_bytes))
    return -1;
  step->function = (HostFunction)PyLong_AsVoidPtr(address);
  step->operands = (int)PyTuple_GET_SIZE(sources);
  if (step->function == NULL || step->operands > MOST_OPERANDS || step->target >= values ||
      PyTuple_GET_SIZE(row_bytes) != step->operands + 1) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "this is no step of a chain");
    return -1;
  }
  for (int k = 0; k < step->operands; k++) {
    step->sources[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(sources, k));
    if (step->sources[k] < 0 || step->sources[k] >= step->target) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a step reads what is not there");
      return -1;
    }
  }
  for (int k = 0; k <= step->operands; k++)
    step->row_bytes[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(row_bytes, k));
  step->numbers = *numbers;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(given); k++)
    *(*numbers)++ = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, k));
  return PyErr_Occurred() ? -1 : 0;
}

static int chain_from(Chain *chain, PyObject *shapes, PyObject *fixed, PyObject *constants,
                      PyObject *places, PyObject *steps) {
  chain->arguments = (int)PyTuple_GET_SIZE(shapes);
  chain->steps = (int)PyTuple_GET_SIZE(steps);
  chain->constants = (int)PyTuple_GET_SIZE(places) - chain->steps;
  chain->values = chain->arguments + (int)PyTuple_GET_SIZE(places);
  Py_ssize_t count = 0;
  for (int i = 0; i < chain->steps; i++) {
    PyObject *tuple = PyTuple_GET_ITEM(steps, i);
    PyObject *given = PyTuple_CheckExact(tuple) && PyTuple_GET_SIZE(tuple) == 7
                          ? PyTuple_GET_ITEM(tuple, 3)
                          : NULL;
    if (given == NULL || !PyTuple_CheckExact(given)) {
      PyErr_SetString(PyExc_TypeError, "a step is a tuple of seven");
      return -1;
    }
    count += PyTuple_GET_SIZE(given);
  }
  chain->expected = PyMem_Calloc(chain->arguments + 1, sizeof(Expected));
  chain->places = PyMem_Calloc(chain->values + 1, sizeof(Py_ssize_t));
  chain->constant_bytes = PyMem_Malloc(PyBytes_GET_SIZE(constants) + 1);
  chain->step = PyMem_Calloc(chain->steps + 1, sizeof(Step));
  chain->numbers = PyMem_Calloc(count + 1, sizeof(Py_ssize_t));
  if (chain->expected == NULL || chain->places == NULL || chain->constant_bytes == NULL ||
      chain->step == NULL || chain->numbers == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  memcpy(chain->constant_bytes, PyBytes_AS_STRING(constants), PyBytes_GET_SIZE(constants));
  for (int i = 0; i < chain->arguments; i++) {
    PyObject *shape = PyTuple_GET_ITEM(shapes, i), *value = PyTuple_GET_ITEM(fixed, i);
    Expected *expected = &chain->expected[i];
    expected->ndim = shape == Py_None ? -1 : shape_from(shape, expected->dims);
    if (PyErr_Occurred()) return -1;
    expected->fixed = Py_NewRef(value);
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); i++)
    chain->places[chain->arguments + i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
  Py_ssize_t *numbers = chain->numbers;
  for (int i = 0; i < chain->steps; i++)
    if (step_from(PyTuple_GET_ITEM(steps, i), &chain->step[i], chain->values, &numbers) < 0)
      return -1;
  return PyErr_Occurred() ? -1 : 0;
}

/* A chain, for `_add_direct`; see `runtime/calls/chains.py`. */
static PyObject *make_chain(PyObject *module, PyObject *args) {
  PyObject *shapes, *fixed, *constants, *places, *steps, *result;
  Py_ssize_t room;
  if (!PyArg_ParseTuple(args, "O!O!SO!nO!O", &PyTuple_Type, &shapes, &PyTuple_Type, &fixed,
                        &constants, &PyTuple_Type, &places, &room, &PyTuple_Type, &steps, &result))
    return NULL;
  if (PyTuple_GET_SIZE(shapes) != PyTuple_GET_SIZE(fixed) || PyTuple_GET_SIZE(steps) == 0 ||
      PyTuple_GET_SIZE(places) < PyTuple_GET_SIZE(steps) ||
      PyTuple_GET_SIZE(shapes) + PyTuple_GET_SIZE(places) > MOST_VALUES) {
    PyErr_SetString(PyExc_TypeError, "this is no chain");
    return NULL;
  }
  Chain *chain = PyMem_Calloc(1, sizeof(Chain));
  if (chain == NULL) return PyErr_NoMemory();
  chain->room = room;
  chain->ndim = shape_from(result, chain->dims);
  if (chain->ndim < 0 || chain_from(chain, shapes, fixed, constants, places, steps) < 0) {
    chain_free(chain);
    return NULL;
  }
  PyObject *capsule = PyCapsule_New(chain, CHAIN_NAME, capsule_free);
  if (capsule == NULL) chain_free(chain);
  return capsule;
}

/* Whether a static argument is the one of a chain; -1 with an error. */
static int is_fixed(const Expected *expected, PyObject *value) {
  if (expected->fixed == value) return 1;
  if (Py_TYPE(expected->fixed) != Py_TYPE(value)) return 0;
  return PyObject_RichCompareBool(expected->fixed, value, Py_EQ);
}

/* The array of NumPy's that a chain computes from where its arguments are; NULL with an error. */
static PyObject *run_chain(const Chain *chain, const void **values, PyArray_Descr *dtype) {
  PyObject *result = new_value(dtype, chain->ndim, (npy_intp *)chain->dims);
  if (result == NULL) return NULL;
  _Alignas(64) char on_stack[ROOM_ON_STACK];
  char *room = chain->room <= ROOM_ON_STACK ? on_stack : PyMem_Malloc(chain->room);
  if (room == NULL) {
    Py_DECREF(result);
    return PyErr_NoMemory();
  }
  const int first = chain->arguments, computed = first + chain->constants;
  for (int i = first; i < chain->values; i++)
    values[i] = (i < computed ? chain->constant_bytes : room) + chain->places[i];
  values[chain->values - 1] = PyArray_DATA((PyArrayObject *)result);
  for (int i = 0; i < chain->steps; i++) {
    const Step *step = &chain->step[i];
    const char *operands[MOST_OPERANDS] = {NULL};
    char *target = (char *)values[step->target];
    for (int k = 0; k < step->operands; k++) operands[k] = values[step->sources[k]];
    for (Py_ssize_t row = 0; row < step->rows; row++) {
      step->function((const void *const *)operands, step->numbers, target, step->count);
      for (int k = 0; k < step->operands; k++) operands[k] += step->row_bytes[k];
      target += step->row_bytes[step->operands];
    }
  }
  if (room != on_stack) PyMem_Free(room);
  return result;
}

#endif
