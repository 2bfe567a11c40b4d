/* Small programs as chains of functions of the backend, each of which computes one operation. */

#ifndef DOVETAIL_NATIVE_CHAINS_H
#define DOVETAIL_NATIVE_CHAINS_H

#include "arrays.h"
#include "values.h"

#define MOST_OPERANDS 3
#define MOST_INPUTS 8 /* operands of a step */
#define MOST_DIMENSIONS 8
#define MOST_LEAVES 128 /* of arguments, and of results */
#define MOST_VALUES 1024 /* leaves of arguments, constants and what steps compute */
#define ROOM_ON_STACK 8192
#define CHAIN_NAME "dovetail_native.chain"
#define A_FLOAT (-1)   /* the kind of an argument that is a Python float */
#define AN_INTEGER (-2)
#define A_STATIC (-3)
#define A_WEAK 0x10000 /* is added to the dtype's number of an array whose type is weak */

/* Computes `count` elements. Of an elementwise function `numbers` are steps: an operand with a step
 * of 0 is one element, for all of them. */
typedef void (*HostFunction)(const void *const *operands, const Py_ssize_t *numbers, void *result,
                             Py_ssize_t count);

/* A call of a function, once for each row: of operands and the result, so many bytes further. */
typedef struct {
  HostFunction function;
  const Py_ssize_t *numbers;
  Py_ssize_t count, rows;
  Py_ssize_t row_bytes[MOST_INPUTS + 1];
  int operands, target;
  int sources[MOST_INPUTS];
  Py_ssize_t starts[MOST_INPUTS]; /* the byte of a source where the operand begins */
} Step;

/* A leaf of the arguments. */
typedef struct {
  int kind;    /* the dtype's number, or one of the above */
  int becomes; /* of a Python number: that of the dtype that it is given */
  int ndim;
  npy_intp dims[MOST_DIMENSIONS];
  int is_read; /* whether a step reads it: of others only the type matters */
  PyObject *extra; /* owned: a static argument, perhaps weakly, or the dtype of keys; or NULL */
} Expected;

/* A leaf of the result. */
typedef struct {
  int value;
  int ndim;
  npy_intp dims[MOST_DIMENSIONS];
  PyArray_Descr *dtype; /* owned */
  PyObject *keys;       /* owned: the dtype of keys; or NULL */
  int weak;             /* whether its type is */
} Outcome;

/* Values are leaves of arguments, then constants, then what steps compute. Forms are as for `build`;
 * where there is something else in a container, that of an argument is its structure, and that of
 * the result what makes it of a list of arrays. */
typedef struct {
  int leaves, constants, values, steps, outcomes;
  int flat; /* whether each argument is a leaf */
  Expected *expected;
  PyObject *forms;   /* owned: a tuple, of each argument */
  PyObject *flatten; /* owned: gives the leaves and the structure of a container */
  PyObject *form;    /* owned: of the result */
  Py_ssize_t *places; /* of a constant, or of what a step computes: the byte where it begins */
  char *constant_bytes;
  Step *step;
  Py_ssize_t *numbers;
  Py_ssize_t room; /* bytes of what steps compute, without the result */
  Outcome *outcome;
} Chain;

static void chain_free(Chain *chain) {
  for (int i = 0; chain->expected != NULL && i < chain->leaves; i++)
    Py_XDECREF(chain->expected[i].extra);
  for (int i = 0; chain->outcome != NULL && i < chain->outcomes; i++) {
    Py_XDECREF(chain->outcome[i].dtype);
    Py_XDECREF(chain->outcome[i].keys);
  }
  Py_XDECREF(chain->forms);
  Py_XDECREF(chain->flatten);
  Py_XDECREF(chain->form);
  PyMem_Free(chain->expected);
  PyMem_Free(chain->places);
  PyMem_Free(chain->constant_bytes);
  PyMem_Free(chain->step);
  PyMem_Free(chain->numbers);
  PyMem_Free(chain->outcome);
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
  PyObject *address, *sources, *starts, *given, *row_bytes;
  if (!PyArg_ParseTuple(tuple, "OO!O!iO!nnO!", &address, &PyTuple_Type, &sources, &PyTuple_Type,
                        &starts, &step->target, &PyTuple_Type, &given, &step->count, &step->rows,
                        &PyTuple_Type, &row_bytes))
    return -1;
  step->function = (HostFunction)PyLong_AsVoidPtr(address);
  step->operands = (int)PyTuple_GET_SIZE(sources);
  if (step->function == NULL || step->operands > MOST_INPUTS || step->target >= values ||
      PyTuple_GET_SIZE(starts) != step->operands ||
      PyTuple_GET_SIZE(row_bytes) != step->operands + 1) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "this is no step of a chain");
    return -1;
  }
  for (int k = 0; k < step->operands; k++) {
    step->sources[k] = (int)PyLong_AsLong(PyTuple_GET_ITEM(sources, k));
    step->starts[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(starts, k));
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

static int expected_from(PyObject *tuple, Expected *expected) {
  PyObject *shape, *extra;
  if (!PyArg_ParseTuple(tuple, "iiOO", &expected->kind, &expected->becomes, &shape, &extra))
    return -1;
  expected->ndim = shape_from(shape, expected->dims);
  if (expected->kind == A_STATIC || extra != Py_None) expected->extra = Py_NewRef(extra);
  return expected->ndim < 0 ? -1 : 0;
}

static int outcome_from(PyObject *tuple, Outcome *outcome, int values) {
  PyObject *dtype, *shape, *keys;
  if (!PyArg_ParseTuple(tuple, "iOOOp", &outcome->value, &dtype, &shape, &keys,
                        &outcome->weak))
    return -1;
  outcome->ndim = shape_from(shape, outcome->dims);
  if (outcome->ndim < 0) return -1;
  if (!PyArray_DescrCheck(dtype) || outcome->value < 0 || outcome->value >= values) {
    PyErr_SetString(PyExc_TypeError, "this is no result of a chain");
    return -1;
  }
  outcome->dtype = (PyArray_Descr *)Py_NewRef(dtype);
  if (keys != Py_None) outcome->keys = Py_NewRef(keys);
  return 0;
}

static int chain_from(Chain *chain, PyObject *leaves, PyObject *constants, PyObject *places,
                      PyObject *steps, PyObject *outcomes) {
  chain->leaves = (int)PyTuple_GET_SIZE(leaves);
  chain->steps = (int)PyTuple_GET_SIZE(steps);
  chain->outcomes = (int)PyTuple_GET_SIZE(outcomes);
  chain->values = chain->leaves + (int)PyTuple_GET_SIZE(places);
  Py_ssize_t count = 0;
  for (int i = 0; i < chain->steps; i++) {
    PyObject *tuple = PyTuple_GET_ITEM(steps, i);
    PyObject *given = PyTuple_CheckExact(tuple) && PyTuple_GET_SIZE(tuple) == 8
                          ? PyTuple_GET_ITEM(tuple, 4)
                          : NULL;
    if (given == NULL || !PyTuple_CheckExact(given)) {
      PyErr_SetString(PyExc_TypeError, "a step is a tuple of eight");
      return -1;
    }
    count += PyTuple_GET_SIZE(given);
  }
  chain->expected = PyMem_Calloc(chain->leaves + 1, sizeof(Expected));
  chain->places = PyMem_Calloc(chain->values + 1, sizeof(Py_ssize_t));
  chain->constant_bytes = PyMem_Malloc(PyBytes_GET_SIZE(constants) + 1);
  chain->step = PyMem_Calloc(chain->steps + 1, sizeof(Step));
  chain->numbers = PyMem_Calloc(count + 1, sizeof(Py_ssize_t));
  chain->outcome = PyMem_Calloc(chain->outcomes + 1, sizeof(Outcome));
  if (chain->expected == NULL || chain->places == NULL || chain->constant_bytes == NULL ||
      chain->step == NULL || chain->numbers == NULL || chain->outcome == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  memcpy(chain->constant_bytes, PyBytes_AS_STRING(constants), PyBytes_GET_SIZE(constants));
  for (int i = 0; i < chain->leaves; i++)
    if (expected_from(PyTuple_GET_ITEM(leaves, i), &chain->expected[i]) < 0) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); i++)
    chain->places[chain->leaves + i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(places, i));
  Py_ssize_t *numbers = chain->numbers;
  for (int i = 0; i < chain->steps; i++)
    if (step_from(PyTuple_GET_ITEM(steps, i), &chain->step[i], chain->values, &numbers) < 0)
      return -1;
  for (int i = 0; i < chain->steps; i++)
    for (int k = 0; k < chain->step[i].operands; k++)
      if (chain->step[i].sources[k] < chain->leaves)
        chain->expected[chain->step[i].sources[k]].is_read = 1;
  for (int i = 0; i < chain->outcomes; i++)
    if (outcome_from(PyTuple_GET_ITEM(outcomes, i), &chain->outcome[i], chain->values) < 0)
      return -1;
  return PyErr_Occurred() ? -1 : 0;
}

/* A chain, for `_add_direct`; see `runtime/calls/chains.py`. */
static PyObject *make_chain(PyObject *module, PyObject *args) {
  PyObject *leaves, *forms, *flatten, *constants, *places, *steps, *outcomes, *form;
  Py_ssize_t room;
  int count;
  if (!PyArg_ParseTuple(args, "O!O!OSiO!nO!O!O", &PyTuple_Type, &leaves, &PyTuple_Type, &forms,
                        &flatten, &constants, &count, &PyTuple_Type, &places, &room, &PyTuple_Type,
                        &steps, &PyTuple_Type, &outcomes, &form))
    return NULL;
  if (count < 0 || PyTuple_GET_SIZE(places) < count ||
      PyTuple_GET_SIZE(leaves) + PyTuple_GET_SIZE(places) > MOST_VALUES ||
      PyTuple_GET_SIZE(leaves) > MOST_LEAVES || PyTuple_GET_SIZE(outcomes) > MOST_LEAVES) {
    PyErr_SetString(PyExc_TypeError, "this is no chain");
    return NULL;
  }
  Chain *chain = PyMem_Calloc(1, sizeof(Chain));
  if (chain == NULL) return PyErr_NoMemory();
  chain->room = room;
  chain->constants = count;
  chain->forms = Py_NewRef(forms);
  chain->flat = PyTuple_GET_SIZE(forms) == PyTuple_GET_SIZE(leaves);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(forms); i++)
    chain->flat = chain->flat && PyTuple_GET_ITEM(forms, i) == Py_Ellipsis;
  chain->flatten = Py_NewRef(flatten);
  chain->form = Py_NewRef(form);
  if (chain_from(chain, leaves, constants, places, steps, outcomes) < 0) {
    chain_free(chain);
    return NULL;
  }
  PyObject *capsule = PyCapsule_New(chain, CHAIN_NAME, capsule_free);
  if (capsule == NULL) chain_free(chain);
  return capsule;
}

/* The leaves of an argument of some form, with references; 0 if it has another, perhaps with an
 * error. */
static int gather(const Chain *chain, PyObject *form, PyObject *value, PyObject **leaves,
                  int *count) {
  if (form == Py_Ellipsis) {
    if (*count >= chain->leaves) return 0;
    leaves[(*count)++] = Py_NewRef(value);
    return 1;
  }
  if (form == Py_None) return value == Py_None;
  if (PyTuple_CheckExact(form) || PyList_CheckExact(form)) {
    if (Py_TYPE(value) != Py_TYPE(form)) return 0;
    int list = PyList_CheckExact(form);
    Py_ssize_t size = Py_SIZE(form);
    for (Py_ssize_t i = 0; i < size; i++) {
      if (Py_SIZE(value) != size) return 0; /* a user's class may have changed a list */
      PyObject *part = list ? PyList_GET_ITEM(form, i) : PyTuple_GET_ITEM(form, i);
      PyObject *item = Py_NewRef(list ? PyList_GET_ITEM(value, i) : PyTuple_GET_ITEM(value, i));
      int fits = gather(chain, part, item, leaves, count);
      Py_DECREF(item);
      if (!fits) return 0;
    }
    return Py_SIZE(value) == size;
  }
  if (PyDict_CheckExact(form)) {
    if (!PyDict_CheckExact(value) || PyDict_GET_SIZE(value) != PyDict_GET_SIZE(form)) return 0;
    PyObject *key, *part;
    Py_ssize_t position = 0;
    while (PyDict_Next(form, &position, &key, &part)) {
      PyObject *item = PyDict_GetItemWithError(value, key);
      if (item == NULL) return 0;
      Py_INCREF(item);
      int fits = gather(chain, part, item, leaves, count);
      Py_DECREF(item);
      if (!fits) return 0;
    }
    return 1;
  }
  PyObject *parts = PyObject_CallOneArg(chain->flatten, value);
  int fits = parts != NULL && PyTuple_CheckExact(parts) && PyTuple_GET_SIZE(parts) == 2 &&
             PyList_CheckExact(PyTuple_GET_ITEM(parts, 0)) &&
             PyObject_RichCompareBool(PyTuple_GET_ITEM(parts, 1), form, Py_EQ) == 1;
  for (Py_ssize_t i = 0; fits && i < PyList_GET_SIZE(PyTuple_GET_ITEM(parts, 0)); i++)
    fits = gather(chain, Py_Ellipsis, PyList_GET_ITEM(PyTuple_GET_ITEM(parts, 0), i), leaves, count);
  Py_XDECREF(parts);
  return fits;
}

/* Whether a static argument is the one of a chain; -1 with an error. */
static int is_fixed(const Expected *expected, PyObject *value) {
  if (PyWeakref_CheckRef(expected->extra)) {
    PyObject *own = PyObject_CallNoArgs(expected->extra);
    Py_XDECREF(own); /* the caller holds it, if it is this one */
    return own == NULL ? -1 : own == value && own != Py_None;
  }
  if (expected->extra == value) return 1;
  if (Py_TYPE(expected->extra) != Py_TYPE(value)) return 0;
  return PyObject_RichCompareBool(expected->extra, value, Py_EQ);
}

/* What a chain gives from arrays of NumPy's with its results, whose references are taken over. */
static PyObject *put_together(const Chain *chain, PyObject **results) {
  PyObject *made = PyObject_CallNoArgs(get_traceback);
  int failed = made == NULL;
  for (int i = 0; i < chain->outcomes; i++) {
    if (failed) {
      Py_CLEAR(results[i]);
    } else {
      results[i] = wrap_made(results[i], chain->outcome[i].weak, chain->outcome[i].keys, made);
      failed = results[i] == NULL;
    }
  }
  Py_XDECREF(made);
  PyObject *whole = NULL;
  if (!failed && chain->form == Py_Ellipsis) return results[0];
  if (!failed && PyCallable_Check(chain->form)) {
    PyObject *list = PyList_New(chain->outcomes);
    for (int i = 0; list != NULL && i < chain->outcomes; i++)
      PyList_SET_ITEM(list, i, Py_NewRef(results[i]));
    whole = list == NULL ? NULL : PyObject_CallOneArg(chain->form, list);
    Py_XDECREF(list);
  } else if (!failed) {
    Py_ssize_t next = 0;
    whole = build(chain->form, results, chain->outcomes, &next, 0);
  }
  for (int i = 0; i < chain->outcomes; i++) Py_XDECREF(results[i]);
  return whole;
}

/* What a chain computes from where the leaves of its arguments are; NULL with an error. */
static PyObject *run_chain(const Chain *chain, const void **values) {
  _Alignas(64) char on_stack[ROOM_ON_STACK];
  PyObject *results[MOST_LEAVES];
  char *room = chain->room <= ROOM_ON_STACK ? on_stack : PyMem_Malloc(chain->room);
  if (room == NULL) return PyErr_NoMemory();
  const int first = chain->leaves, computed = first + chain->constants;
  for (int i = first; i < chain->values; i++)
    values[i] = (i < computed ? chain->constant_bytes : room) + chain->places[i];
  for (int i = 0; i < chain->outcomes; i++) {
    const Outcome *outcome = &chain->outcome[i];
    results[i] = new_value(outcome->dtype, outcome->ndim, (npy_intp *)outcome->dims);
    if (results[i] == NULL) {
      while (i-- > 0) Py_DECREF(results[i]);
      if (room != on_stack) PyMem_Free(room);
      return NULL;
    }
    values[outcome->value] = PyArray_DATA((PyArrayObject *)results[i]);
  }
  for (int i = 0; i < chain->steps; i++) {
    const Step *step = &chain->step[i];
    const char *operands[MOST_INPUTS] = {NULL};
    char *target = (char *)values[step->target];
    for (int k = 0; k < step->operands; k++)
      operands[k] = (const char *)values[step->sources[k]] + step->starts[k];
    for (Py_ssize_t row = 0; row < step->rows; row++) {
      step->function((const void *const *)operands, step->numbers, target, step->count);
      for (int k = 0; k < step->operands; k++) operands[k] += step->row_bytes[k];
      target += step->row_bytes[step->operands];
    }
  }
  if (room != on_stack) PyMem_Free(room);
  return put_together(chain, results);
}

#endif
