/* Calls that need no program: a function of the backend computes small arrays in the memory of the
 * host. What it computes is kept there, until a program needs a buffer of it.
 */

#ifndef DOVETAIL_NATIVE_DIRECT_H
#define DOVETAIL_NATIVE_DIRECT_H

#include "arrays.h"

#include "chains.h"
#include "options.h"

#define MOST_ARGUMENTS 128 /* of calls that may need no program */
#define MOST_DIRECT 16

/* How calls with arguments of some kinds are computed: by a function, for any shape, or by a chain,
 * for its shapes. If both are NULL, they need a program. */
typedef struct {
  int uses;
  HostFunction function;
  PyObject *capsule; /* of the chain; or NULL */
  const Chain *chain;
  PyObject *names; /* a tuple of keywords, of the last arguments; or NULL */
  PyObject *key; /* the options that it is for */
  PyArray_Descr *result;
  Py_ssize_t most; /* elements */
  unsigned long long generation;
  unsigned long long state; /* of the options, which are known to be those of `key` in it */
  int put_off; /* calls since the last that it computed, all of which met too much unknown */
  int beside;  /* whether such calls have a program, too */
  int weak; /* whether the type of the result is */
  int arguments, operands;
  int kinds[MOST_OPERANDS];   /* for each argument, as for `Expected` */
  int becomes[MOST_OPERANDS]; /* for each Python number: that of the dtype that it is given */
  int sources[MOST_OPERANDS]; /* for each operand: an argument, or -1 for a constant */
  long long constants[MOST_OPERANDS]; /* the bytes of each operand that is one */
} Direct;

static unsigned long long generation; /* ways of earlier ones are not used any more */
static PyObject *default_place; /* owned: where buffers are that nobody has placed; or NULL */
static unsigned long long places; /* how many there have been */

/* Tell where buffers are that nobody has placed, if that is in the memory of the host; or None. */
static PyObject *set_default_place(PyObject *module, PyObject *sharding) {
  places += sharding != default_place;
  Py_XSETREF(default_place, sharding == Py_None ? NULL : Py_NewRef(sharding));
  Py_RETURN_NONE;
}

/* Forget all ways of all functions. */
static PyObject *forget_ways(PyObject *module, PyObject *unused) {
  generation++;
  forget_values();
  Py_RETURN_NONE;
}

/* Whether nothing asks for what a program would see to, and nobody listens to events; -1 with an
 * error. */
static int is_plain(void) {
  int listening = somebody_listens();
  if (listening) return listening < 0 ? -1 : 0;
  return !careful && options_now()->plain;
}

/* An array that holds a copy of a value of NumPy's, of weak type if that is said; None if more has
 * been asked for. */
static PyObject *hold(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  PyObject *value = count > 0 ? args[0] : Py_None;
  if (!PyArray_CheckExact(value) || array_type == NULL) {
    PyErr_SetString(PyExc_TypeError, "hold takes an array of NumPy's");
    return NULL;
  }
  int plain = is_plain();
  if (plain != 1) return plain < 0 ? NULL : Py_NewRef(Py_None);
  PyObject *copy = PyArray_NewCopy((PyArrayObject *)value, NPY_CORDER);
  return copy == NULL ? NULL : wrap_value(copy, count > 1 && args[1] == Py_True);
}

/* ------------------------------------------------------------------------------------ reading */

/* They stay where they are until `release_elements`: other threads may run meanwhile, which place
 * values, and delete or donate buffers. */
typedef struct {
  const void *data;
  PyObject *value; /* owned: the array of NumPy's that has them; or NULL */
  Py_buffer lent;  /* of a buffer, if its `obj` is set */
  int type, ndim;
  npy_intp dims[MOST_DIMENSIONS];
  Py_ssize_t size;
} Elements;

/* Whether an attribute is the given object; -1 with an error. */
static int attribute_is(PyObject *object, PyObject *name, PyObject *expected) {
  PyObject *value = PyObject_GetAttr(object, name);
  if (value == NULL) return -1;
  Py_DECREF(value);
  return value == expected;
}

static int method_gives(PyObject *object, PyObject *name, PyObject *expected) {
  PyObject *value = PyObject_CallMethodNoArgs(object, name);
  if (value == NULL) return -1;
  Py_DECREF(value);
  return value == expected;
}

static void release_elements(Elements *elements, int count) {
  for (int i = 0; i < count; i++) {
    Py_XDECREF(elements[i].value);
    if (elements[i].lent.obj != NULL) PyBuffer_Release(&elements[i].lent);
  }
}

/* Where the elements of a buffer are, if they are there: 1, or 0, perhaps with an error. */
static int read_buffer(PyObject *buffer, Py_ssize_t most, Elements *out) {
  if (default_place == NULL || !Py_IS_TYPE(buffer, buffer_type)) return 0;
  PyObject *aval = PyObject_GetAttr(buffer, name_aval);
  PyObject *dtype = aval == NULL ? NULL : PyObject_GetAttr(aval, name_dtype);
  PyObject *shape = dtype == NULL ? NULL : PyObject_GetAttr(aval, name_shape);
  int fits = shape != NULL && PyArray_DescrCheck(dtype) && PyTuple_CheckExact(shape) &&
             PyTuple_GET_SIZE(shape) <= MOST_DIMENSIONS;
  if (fits) {
    out->type = ((PyArray_Descr *)dtype)->type_num;
    out->ndim = (int)PyTuple_GET_SIZE(shape);
    out->size = 1;
    for (int i = 0; i < out->ndim && fits; i++) {
      out->dims[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
      fits = out->dims[i] >= 0 && out->dims[i] <= most;
      out->size *= fits ? out->dims[i] : 0;
      fits = fits && out->size <= most;
    }
  }
  int weak = fits ? attribute_is(aval, name_weak_type, Py_True) : 0;
  fits = fits && weak >= 0;
  if (weak > 0) out->type |= A_WEAK;
  Py_XDECREF(aval);
  Py_XDECREF(dtype);
  Py_XDECREF(shape);
  if (!fits || attribute_is(buffer, name_sharding, default_place) != 1 ||
      attribute_is(buffer, name_committed, Py_False) != 1 ||
      method_gives(buffer, name_is_deleted, Py_False) != 1 ||
      method_gives(buffer, name_is_ready, Py_True) != 1)
    return 0;
  /* An error if the computation has failed. */
  if (PyObject_GetBuffer(buffer, &out->lent, PyBUF_SIMPLE) < 0) return 0;
  out->data = out->lent.buf;
  return 1;
}

/* What has been read of a buffer, and never changes: to ask it again takes longer than to add up a
 * thousand elements. Where `buffer` is NULL nothing has, and `size` is how often it was missed. */
typedef struct {
  const PyObject *buffer;
  unsigned long long place; /* as `places` counts them */
  int type, ndim;
  npy_intp dims[MOST_DIMENSIONS];
  Py_ssize_t size;
} Known;

static void keep_known(PyObject *array, const PyObject *buffer, const Elements *elements) {
  Known known = {buffer, places, elements->type, elements->ndim, {0}, elements->size};
  memcpy(known.dims, elements->dims, elements->ndim * sizeof(npy_intp));
  PyObject *bytes = PyBytes_FromStringAndSize((const char *)&known, sizeof(known));
  if (bytes == NULL) PyErr_Clear(); /* it is asked again */
  Py_XSETREF(SLOT(array, known_slot), bytes);
}

/* What is known of an array's buffer; NULL if nothing is. */
static const Known *known_of(PyObject *array, const PyObject *buffer) {
  PyObject *bytes = SLOT(array, known_slot);
  if (bytes == NULL) return NULL;
  const Known *known = (const Known *)PyBytes_AS_STRING(bytes);
  return known->buffer == buffer && known->place == places ? known : NULL;
}

/* Where the elements of an array's buffer are, if that is known, and it has not been deleted. */
static int read_known(PyObject *array, PyObject *buffer, Py_ssize_t most, Elements *out) {
  const Known *known = known_of(array, buffer);
  if (known == NULL || known->size > most) return 0;
  if (PyObject_GetBuffer(buffer, &out->lent, PyBUF_SIMPLE) < 0) {
    PyErr_Clear(); /* who asks for it all is told why */
    return 0;
  }
  out->type = known->type;
  out->ndim = known->ndim;
  memcpy(out->dims, known->dims, known->ndim * sizeof(npy_intp));
  out->size = known->size;
  out->data = out->lent.buf;
  return 1;
}

#define OFTEN 8 /* an array that was missed so often will be met again */

/* Note that a call would have needed no program if an array's buffer had been known. To read it
 * takes as long as a program takes for five arguments, so that is for arrays that are met often. */
static void miss_known(PyObject *array, PyObject *buffer, Py_ssize_t most) {
  static PyObject *missed[OFTEN]; /* owned: what stands for that, once, twice and so on */
  PyObject *bytes = SLOT(array, known_slot);
  const Known *known = bytes == NULL ? NULL : (const Known *)PyBytes_AS_STRING(bytes);
  Py_ssize_t times = known == NULL || known->buffer != NULL ? 0 : known->size;
  if (times == OFTEN) {
    times = 0;
    Elements elements;
    elements.lent.obj = NULL;
    Py_INCREF(buffer);
    int found = read_buffer(buffer, most, &elements);
    if (found) {
      keep_known(array, buffer, &elements);
      PyBuffer_Release(&elements.lent);
    }
    Py_DECREF(buffer);
    PyErr_Clear(); /* a program says what is wrong */
    if (found) return;
  }
  if (missed[times] == NULL) {
    Known nothing = {NULL, 0, 0, 0, {0}, times + 1};
    missed[times] = PyBytes_FromStringAndSize((const char *)&nothing, sizeof(nothing));
    if (missed[times] == NULL) PyErr_Clear(); /* it is counted from the start */
  }
  Py_XSETREF(SLOT(array, known_slot), Py_XNewRef(missed[times]));
}

static int are_dims(const npy_intp *own, const npy_intp *dims, int ndim) {
  for (int i = 0; i < ndim; i++)
    if (own[i] != dims[i]) return 0;
  return 1;
}

static int has_dims(const Elements *elements, int ndim, const npy_intp *dims) {
  return elements->ndim == ndim && are_dims(elements->dims, dims, ndim);
}

/* Where the elements of an array of NumPy's are, if there are not too many. */
static int read_value(PyArrayObject *value, Py_ssize_t most, Elements *out) {
  out->value = Py_NewRef((PyObject *)value);
  out->data = PyArray_DATA(value);
  out->type = PyArray_TYPE(value);
  out->ndim = PyArray_NDIM(value);
  out->size = 1;
  if (out->ndim > MOST_DIMENSIONS) return 0;
  for (int i = 0; i < out->ndim; i++) out->size *= out->dims[i] = PyArray_DIM(value, i);
  return out->size <= most;
}

/* Where the elements of an array are, if they are in the memory of the host. */
static int read_elements(PyObject *array, Py_ssize_t most, Elements *out) {
  if (PyArray_CheckExact(array))
    return PyArray_ISCARRAY_RO((PyArrayObject *)array) &&
           read_value((PyArrayObject *)array, most, out);
  PyObject *buffer = SLOT(array, buffer_slot), *value = SLOT(array, value_slot);
  if (buffer != NULL) {
    Py_INCREF(buffer);
    int found = read_known(array, buffer, most, out);
    if (!found) {
      found = read_buffer(buffer, most, out);
      if (found) keep_known(array, buffer, out);
    }
    Py_DECREF(buffer);
    return found;
  }
  if (value == NULL || !read_value((PyArrayObject *)value, most, out)) return 0;
  if (SLOT(array, weak_slot) == Py_True) out->type |= A_WEAK;
  return 1;
}

/* -------------------------------------------------------------------------------------- calls */

static int same_names(PyObject *a, PyObject *b) {
  if (a == b) return 1;
  if (a == NULL || b == NULL || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); i++) {
    PyObject *one = PyTuple_GET_ITEM(a, i), *other = PyTuple_GET_ITEM(b, i);
    if (one != other && PyUnicode_Compare(one, other) != 0) return 0;
  }
  return 1;
}

static int fits_kinds(const Direct *direct, PyObject *const *args, Py_ssize_t count,
                      PyObject *names) {
  if (count != direct->arguments || !same_names(direct->names, names)) return 0;
  for (Py_ssize_t i = 0; i < count && direct->chain == NULL; i++) {
    int kind = direct->kinds[i];
    int is_array = Py_IS_TYPE(args[i], array_type) || PyArray_CheckExact(args[i]);
    int fits = kind == A_FLOAT      ? PyFloat_CheckExact(args[i])
               : kind == AN_INTEGER ? PyLong_CheckExact(args[i])
                                    : is_array;
    if (!fits) return 0;
  }
  return 1;
}

/* A Python number as an element: 0 if it does not fit. */
static int to_element(PyObject *number, int type, long long *element) {
  double real = 0;
  long long integer = 0;
  if (PyFloat_CheckExact(number)) {
    real = PyFloat_AS_DOUBLE(number);
  } else {
    int overflow;
    integer = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow || integer < INT32_MIN || integer > INT32_MAX) return 0;
    real = (double)integer;
  }
  float single = (float)real;
  int32_t narrow = (int32_t)integer;
  if (type == NPY_FLOAT)
    memcpy(element, &single, sizeof(single));
  else if (type == NPY_DOUBLE)
    memcpy(element, &real, sizeof(real));
  else if (PyFloat_CheckExact(number))
    return 0;
  else if (type == NPY_INT32)
    memcpy(element, &narrow, sizeof(narrow));
  else if (type == NPY_INT64)
    memcpy(element, &integer, sizeof(integer));
  else
    return 0;
  return 1;
}

/* Where a number of NumPy's is, which is no array; NULL if it is none of that dtype. */
static const void *scalar_place(PyObject *number, int type) {
  PyTypeObject *own = Py_TYPE(number);
  if (type == NPY_FLOAT && own == &PyFloatArrType_Type)
    return &((PyFloatScalarObject *)number)->obval;
  if (type == NPY_INT32 && own == &PyInt32ArrType_Type)
    return &((PyInt32ScalarObject *)number)->obval;
  if (type == NPY_UINT32 && own == &PyUInt32ArrType_Type)
    return &((PyUInt32ScalarObject *)number)->obval;
  if (type == NPY_BOOL && own == &PyBoolArrType_Type)
    return &((PyBoolScalarObject *)number)->obval;
  return NULL;
}

/* Whether a leaf of the arguments of a chain is an array, or keys, as expected. */
static int is_array(const Expected *expected, PyObject *leaf) {
  if (expected->extra == NULL) return Py_IS_TYPE(leaf, array_type);
  return Py_IS_TYPE(leaf, key_type) && SLOT(leaf, key_dtype_slot) == expected->extra;
}

/* What is known of the buffer of a leaf that no step reads; NULL if nothing is, or it has none. */
static const Known *known_unread(const Expected *expected, PyObject *leaf) {
  if (expected->kind < 0 || expected->is_read || !is_array(expected, leaf)) return NULL;
  PyObject *buffer = SLOT(leaf, buffer_slot);
  return buffer == NULL ? NULL : known_of(leaf, buffer);
}

/* Where a leaf of the arguments of a chain is; NULL, perhaps with an error, if it does not fit. */
static const void *leaf_place(const Expected *expected, PyObject *leaf, Py_ssize_t most,
                              Elements *own, long long *number) {
  if (expected->kind == A_STATIC) return is_fixed(expected, leaf) == 1 ? number : NULL;
  if (expected->kind < 0) {
    int fits = expected->kind == A_FLOAT ? PyFloat_CheckExact(leaf) : PyLong_CheckExact(leaf);
    return fits && to_element(leaf, expected->becomes, number) ? number : NULL;
  }
  if (!is_array(expected, leaf)) {
    if (expected->extra != NULL) return NULL;
    if (!PyArray_CheckExact(leaf))
      return expected->ndim == 0 ? scalar_place(leaf, expected->kind) : NULL;
  }
  if (!read_elements(leaf, most, own) || own->type != expected->kind ||
      !has_dims(own, expected->ndim, expected->dims))
    return NULL;
  return own->data;
}

#define LEAVES_ON_STACK 8
/* To ask a buffer for its elements takes as long as a program takes for three arguments more, or for
 * a result less than one more; a program takes as long as eight to start. */
#define FEW_BUFFERS 6
#define BUFFERS_FOR_A_RESULT 2
#define MOST_PUT_OFF 64 /* where ever new arrays are met, it is not tried any more */

/* Whether so many leaves are in buffers to be asked that a program is as quick. If some of them are
 * asked for their types alone, it may be the way of a later call. */
static int has_many_buffers(Direct *direct, PyObject *const *leaves) {
  const Chain *chain = direct->chain;
  int few = FEW_BUFFERS + BUFFERS_FOR_A_RESULT * chain->outcomes, unknown = 0;
  for (int i = 0; i < chain->leaves && few >= 0; i++) {
    if (!PyObject_TypeCheck(leaves[i], array_type)) continue;
    if (SLOT(leaves[i], buffer_slot) == NULL) continue;
    if (chain->expected[i].is_read)
      few--;
    else
      unknown += known_unread(&chain->expected[i], leaves[i]) == NULL;
  }
  if (few < 0 || unknown <= few) return few < 0;
  for (int i = 0; i < chain->leaves; i++) {
    if (chain->expected[i].is_read || !is_array(&chain->expected[i], leaves[i])) continue;
    PyObject *buffer = SLOT(leaves[i], buffer_slot);
    if (buffer != NULL && known_of(leaves[i], buffer) == NULL)
      miss_known(leaves[i], buffer, direct->most);
  }
  if (++direct->put_off > MOST_PUT_OFF) direct->generation = generation - 1;
  return 1;
}

/* Whether two leaves are one array, or have their elements in one place. */
static int share_elements(PyObject *a, PyObject *b) {
  if (a == b) return PyObject_TypeCheck(a, array_type);
  if (!PyObject_TypeCheck(a, array_type) || !PyObject_TypeCheck(b, array_type)) return 0;
  PyObject *buffer = SLOT(a, buffer_slot), *value = SLOT(a, value_slot);
  return buffer != NULL ? buffer == SLOT(b, buffer_slot)
                        : value != NULL && value == SLOT(b, value_slot);
}

static int are_distinct(PyObject *const *leaves, int count) {
  for (int i = 1; i < count; i++)
    for (int j = 0; j < i; j++)
      if (share_elements(leaves[i], leaves[j])) return 0;
  return 1;
}

/* What a chain computes from its leaves; NULL, perhaps with an error, if this is not the way. */
static PyObject *result_of_leaves(Direct *direct, PyObject *const *leaves, int donates) {
  const Chain *chain = direct->chain;
  if (has_many_buffers(direct, leaves)) return NULL;
  if (donates && !are_distinct(leaves, chain->leaves)) return NULL; /* a program says what is wrong */
  Elements on_stack[LEAVES_ON_STACK], *elements = on_stack;
  if (chain->leaves > LEAVES_ON_STACK) elements = PyMem_Malloc(chain->leaves * sizeof(Elements));
  if (elements == NULL) return NULL;
  long long numbers[MOST_LEAVES];
  const void *values[MOST_VALUES];
  PyObject *result = NULL;
  int read = 0, fits = 1;
  for (int i = 0; fits && i < chain->leaves; i++) {
    const Expected *expected = &chain->expected[i];
    const Known *known = known_unread(expected, leaves[i]);
    if (known != NULL) {
      fits = known->type == expected->kind && known->ndim == expected->ndim &&
             are_dims(known->dims, expected->dims, known->ndim);
      continue;
    }
    Elements *own = &elements[read++];
    own->value = NULL;
    own->lent.obj = NULL;
    values[i] = leaf_place(expected, leaves[i], direct->most, own, &numbers[i]);
    fits = values[i] != NULL;
  }
  /* Nor do calls of programs that are there tell of events. */
  if (fits) result = run_chain(chain, values);
  if (result != NULL) direct->put_off = 0;
  release_elements(elements, read);
  if (elements != on_stack) PyMem_Free(elements);
  return result;
}

/* The result of a call of some shapes; NULL, perhaps with an error, if this is not the way. */
static PyObject *chained_result(Direct *direct, PyObject *const *args, int donates) {
  const Chain *chain = direct->chain;
  if (chain->flat) return result_of_leaves(direct, args, donates);
  PyObject *leaves[MOST_LEAVES], *result = NULL;
  int count = 0, fits = 1;
  for (int i = 0; fits && i < direct->arguments; i++)
    fits = gather(chain, PyTuple_GET_ITEM(chain->forms, i), args[i], leaves, &count);
  if (fits && count == chain->leaves) result = result_of_leaves(direct, leaves, donates);
  for (int i = 0; i < count; i++) Py_DECREF(leaves[i]);
  return result;
}

/* The result of a call; NULL, perhaps with an error, if this is not the way. `refused` is set if it
 * is known that a call with these arguments needs a program. */
static PyObject *elementwise_result(const Direct *direct, PyObject *const *args, Elements *elements,
                                    int *refused) {
  const Elements *shaped = NULL;
  long long numbers[MOST_OPERANDS];
  for (int i = 0; i < direct->arguments; i++) {
    if (direct->kinds[i] < 0) {
      if (!to_element(args[i], direct->becomes[i], &numbers[i])) return NULL;
      continue;
    }
    Elements *own = &elements[i];
    if (!read_elements(args[i], direct->most, own) || own->type != direct->kinds[i]) return NULL;
    if (shaped == NULL || shaped->ndim == 0) {
      shaped = own;
    } else if (own->ndim != 0 && !has_dims(own, shaped->ndim, shaped->dims)) {
      return NULL;
    }
  }
  if (somebody_listens()) return NULL;
  if (direct->function == NULL) {
    *refused = 1;
    return NULL;
  }
  const void *operands[MOST_OPERANDS];
  Py_ssize_t steps[MOST_OPERANDS];
  for (int k = 0; k < direct->operands; k++) {
    int source = direct->sources[k];
    int whole = source >= 0 && direct->kinds[source] >= 0;
    operands[k] = source < 0 ? &direct->constants[k]
                  : whole    ? elements[source].data
                             : (const void *)&numbers[source];
    steps[k] = whole && elements[source].ndim != 0;
  }
  PyObject *value = shaped == NULL
                        ? new_value(direct->result, 0, NULL)
                        : new_value(direct->result, shaped->ndim, (npy_intp *)shaped->dims);
  if (value == NULL) return NULL;
  Py_ssize_t size = shaped == NULL ? 1 : shaped->size;
  direct->function(operands, steps, PyArray_DATA((PyArrayObject *)value), size);
  return wrap_value(value, direct->weak);
}

static PyObject *direct_result(const Direct *direct, PyObject *const *args, int *refused) {
  Elements elements[MOST_OPERANDS];
  for (int k = 0; k < direct->arguments; k++) {
    elements[k].value = NULL;
    elements[k].lent.obj = NULL;
  }
  PyObject *result = elementwise_result(direct, args, elements, refused);
  release_elements(elements, direct->arguments);
  return result;
}

static void direct_release(Direct *direct) {
  if (--direct->uses > 0) return;
  Py_XDECREF(direct->key);
  Py_XDECREF(direct->result);
  Py_XDECREF(direct->capsule);
  Py_XDECREF(direct->names);
  PyMem_Free(direct);
}

/* The result of a call, if one of some ways is for it; NULL without an error if none is. */
static PyObject *call_directly(Direct *const *ways, int count, PyObject *const *args,
                               Py_ssize_t nargs, PyObject *names, int donates, int *refused) {
  if (careful) return NULL;
  const OptionsState *now = options_now();
  for (int i = 0; i < count && now->plain; i++) {
    Direct *direct = ways[i];
    if (direct->generation != generation || !fits_kinds(direct, args, nargs, names)) continue;
    direct->uses++; /* another thread may put another way in its place */
    unsigned long long number = now->number;
    if (direct->state != number && options_are(direct->key)) direct->state = number;
    PyObject *result = NULL;
    if (direct->state == number)
      result = direct->chain == NULL ? direct_result(direct, args, refused)
                                     : chained_result(direct, args, donates);
    direct_release(direct);
    if (result != NULL) return result;
    PyErr_Clear(); /* a program says what is wrong */
  }
  return NULL;
}

/* Whether an array among arguments holds a value. */
static int holds_value(PyObject *const *args, Py_ssize_t nargs) {
  for (Py_ssize_t i = 0; i < nargs; i++)
    if (Py_IS_TYPE(args[i], array_type) && SLOT(args[i], value_slot) != NULL) return 1;
  return 0;
}

/* The result of a call that Python finds to need no program; NULL without an error if it does. */
static PyObject *offered(PyObject *offer, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
                         int forgiving) {
  PyObject *result = is_plain() == 1 ? PyObject_Vectorcall(offer, args, nargs, names) : NULL;
  if (result == Py_None) Py_CLEAR(result);
  if (result == NULL && forgiving && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception))
    PyErr_Clear(); /* a program says what is wrong */
  return result;
}

/* Numbers from a tuple; how many, or -1 with an error. */
static int small_numbers(PyObject *tuple, int *into, int most) {
  if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) > most) {
    PyErr_Format(PyExc_TypeError, "at most %d numbers come as a tuple", most);
    return -1;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
    into[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, i));
  return PyErr_Occurred() ? -1 : (int)PyTuple_GET_SIZE(tuple);
}

/* Read a way from what Python gives; -1 with an error. */
static int read_way(PyObject *args, Direct *direct) {
  PyObject *address, *key, *kinds, *becomes, *sources, *constants, *result, *capsule, *names;
  if (!PyArg_ParseTuple(args, "OOOOOO!OpnOO!", &address, &key, &kinds, &becomes, &sources,
                        &PyTuple_Type, &constants, &result, &direct->weak, &direct->most, &capsule,
                        &PyTuple_Type, &names))
    return -1;
  direct->function = (HostFunction)PyLong_AsVoidPtr(address);
  if (direct->function == NULL && PyErr_Occurred()) return -1;
  direct->arguments = small_numbers(kinds, direct->kinds, MOST_OPERANDS);
  direct->operands = small_numbers(sources, direct->sources, MOST_OPERANDS);
  if (direct->arguments < 0 || direct->operands < 0 ||
      small_numbers(becomes, direct->becomes, MOST_OPERANDS) != direct->arguments ||
      PyTuple_GET_SIZE(constants) != direct->operands || !PyArray_DescrCheck(result) ||
      (capsule != Py_None && !PyCapsule_IsValid(capsule, CHAIN_NAME))) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "this is no way to compute a call");
    return -1;
  }
  for (int k = 0; k < direct->operands; k++) {
    PyObject *bytes = PyTuple_GET_ITEM(constants, k);
    if (direct->sources[k] >= direct->arguments || !PyBytes_CheckExact(bytes) ||
        PyBytes_GET_SIZE(bytes) > (Py_ssize_t)sizeof(direct->constants[k])) {
      PyErr_SetString(PyExc_TypeError, "an operand is an argument, or the bytes of an element");
      return -1;
    }
    memcpy(&direct->constants[k], PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
  }
  if (PyTuple_GET_SIZE(names)) direct->names = Py_NewRef(names);
  if (capsule != Py_None) {
    direct->capsule = Py_NewRef(capsule);
    direct->chain = PyCapsule_GetPointer(capsule, CHAIN_NAME);
    direct->arguments = (int)PyTuple_GET_SIZE(direct->chain->forms);
  }
  direct->generation = generation;
  direct->key = Py_NewRef(key);
  direct->result = (PyArray_Descr *)Py_NewRef(result);
  return 0;
}

/* A way from what Python gives; NULL with an error. */
static Direct *direct_from(PyObject *args) {
  Direct *direct = PyMem_Calloc(1, sizeof(Direct));
  if (direct == NULL) return (Direct *)PyErr_NoMemory();
  direct->uses = 1;
  if (read_way(args, direct) == 0) return direct;
  direct_release(direct);
  return NULL;
}

static void direct_free(Direct **ways, int count) {
  for (int i = 0; i < count; i++) direct_release(ways[i]);
  PyMem_Free(ways);
}

#endif
