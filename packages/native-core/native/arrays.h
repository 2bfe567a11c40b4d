/* Arrays: how they are made around buffers, read, and replaced by their buffers in arguments. */

#ifndef DOVETAIL_NATIVE_ARRAYS_H
#define DOVETAIL_NATIVE_ARRAYS_H

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <stddef.h>
#include <structmember.h>

#ifdef Py_GIL_DISABLED
#error "builds without the GIL take the path in Python"
#endif

/* ------------------------------------------------------------------------------------- arrays */

static PyTypeObject *array_type;   /* owned */
static PyTypeObject *key_type;     /* owned: the class of arrays of keys */
static PyTypeObject *deleted_type; /* owned: the class of arrays that were deleted or donated */
static PyTypeObject *retired_type; /* owned: a named tuple of three */
static PyTypeObject *buffer_type;  /* owned: jaxlib's */
static PyObject *freed_type;       /* owned: the class of what is left of a deleted value */
static Py_ssize_t buffer_slot, retired_slot;
static Py_ssize_t known_slot;      /* what is known of that buffer: bytes */
static Py_ssize_t value_slot;      /* an array of NumPy's, in place of a buffer that nobody needs */
static Py_ssize_t made_slot;       /* where that value was made */
static Py_ssize_t weak_slot;       /* whether its type is weak */
static Py_ssize_t key_dtype_slot;  /* of `key_type` */
static PyObject *place_value;      /* owned: makes the buffer of an array that holds a value */
static PyObject *get_traceback;    /* owned: gives the traceback of the caller */
static PyObject *retire_others;    /* owned: marks arrays in other containers, and those of keys */
static PyObject *make_private;     /* owned: copies what is no plain array of NumPy's */
static PyObject *read_array;       /* owned: `Array.__array__` in Python */
static PyObject *events;           /* owned: the module that knows who listens */
static PyObject *stranger;         /* owned: what jaxlib knows nothing of, so that it calls Python */
static Py_ssize_t most_copied;     /* bytes of the largest argument that is copied here */
static int careful;                /* whether waiting for a computation is left to Python */
static PyObject *name_delete, *name_is_deleted, *name_is_ready, *name_traceback, *name_listeners,
    *name_aval, *name_dtype, *name_shape, *name_weak_type, *name_sharding, *name_committed,
    *name_value, *name_block;

static int intern_names(void) {
  static const struct {
    PyObject **place;
    const char *name;
  } names[] = {
      {&name_delete, "delete"},         {&name_is_deleted, "is_deleted"},
      {&name_is_ready, "is_ready"},
      {&name_traceback, "traceback"},   {&name_listeners, "listeners"},
      {&name_aval, "aval"},             {&name_dtype, "dtype"},
      {&name_shape, "shape"},           {&name_weak_type, "weak_type"},
      {&name_sharding, "_sharding"},    {&name_committed, "_committed"},
      {&name_value, "value"},           {&name_block, "block_until_ready"},
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    *names[i].place = PyUnicode_InternFromString(names[i].name);
    if (*names[i].place == NULL) return -1;
  }
  return 0;
}

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

/* A new array around a buffer, whose reference is taken over. */
static PyObject *wrap(PyObject *buffer) {
  PyObject *array = array_type->tp_alloc(array_type, 0);
  if (array == NULL) {
    Py_DECREF(buffer);
    return NULL;
  }
  SLOT(array, buffer_slot) = buffer;
  return array;
}

static int slot_of(PyObject *type, const char *name, Py_ssize_t *offset) {
  PyObject *found = PyObject_GetAttrString(type, name);
  if (found == NULL) return -1;
  if (!Py_IS_TYPE(found, &PyMemberDescr_Type) ||
      ((PyMemberDescrObject *)found)->d_member->type != T_OBJECT_EX) {
    PyErr_Format(PyExc_TypeError, "%s is no slot", name);
    Py_DECREF(found);
    return -1;
  }
  *offset = ((PyMemberDescrObject *)found)->d_member->offset;
  Py_DECREF(found);
  return 0;
}

static PyObject *configure(PyObject *module, PyObject *args) {
  PyTypeObject *array, *keys, *deleted, *retired, *buffer;
  PyObject *freed, *traceback, *others, *private, *read, *who, *placer;
  Py_ssize_t most;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!OOOOnOO!O", &PyType_Type, &array, &PyType_Type, &keys,
                        &PyType_Type, &deleted, &PyType_Type, &retired, &PyType_Type, &buffer,
                        &freed, &traceback, &others, &private, &most, &read, &PyModule_Type, &who,
                        &placer))
    return NULL;
  Py_ssize_t held, known, gone, value, made, weak, dtype;
  if (slot_of((PyObject *)array, "_buffer", &held) < 0 ||
      slot_of((PyObject *)array, "_known", &known) < 0 ||
      slot_of((PyObject *)array, "_value", &value) < 0 ||
      slot_of((PyObject *)array, "_made", &made) < 0 ||
      slot_of((PyObject *)array, "_weak", &weak) < 0 ||
      slot_of((PyObject *)array, "_retired", &gone) < 0 ||
      slot_of((PyObject *)keys, "_key_dtype", &dtype) < 0)
    return NULL;
  if (!PyType_IsSubtype(keys, array) || !PyType_IsSubtype(retired, &PyTuple_Type) ||
      !PyType_IsSubtype(deleted, array) || deleted->tp_basicsize != array->tp_basicsize) {
    PyErr_SetString(PyExc_TypeError, "these classes do not fit each other");
    return NULL;
  }
  Py_XSETREF(array_type, (PyTypeObject *)Py_NewRef(array));
  Py_XSETREF(key_type, (PyTypeObject *)Py_NewRef(keys));
  Py_XSETREF(deleted_type, (PyTypeObject *)Py_NewRef(deleted));
  Py_XSETREF(retired_type, (PyTypeObject *)Py_NewRef(retired));
  Py_XSETREF(buffer_type, (PyTypeObject *)Py_NewRef(buffer));
  Py_XSETREF(freed_type, Py_NewRef(freed));
  Py_XSETREF(get_traceback, Py_NewRef(traceback));
  Py_XSETREF(retire_others, Py_NewRef(others));
  Py_XSETREF(make_private, Py_NewRef(private));
  Py_XSETREF(read_array, Py_NewRef(read));
  Py_XSETREF(events, Py_NewRef(who));
  Py_XSETREF(place_value, Py_NewRef(placer));
  most_copied = most;
  buffer_slot = held;
  known_slot = known;
  retired_slot = gone;
  value_slot = value;
  made_slot = made;
  weak_slot = weak;
  key_dtype_slot = dtype;
  Py_RETURN_NONE;
}

/* The buffer of an array, made if it holds a value: a new reference, or NULL with an error. */
static PyObject *buffer_of(PyObject *array, void *unused) {
  PyObject *buffer = SLOT(array, buffer_slot);
  if (buffer != NULL) return Py_NewRef(buffer);
  PyObject *value = SLOT(array, value_slot);
  if (value == NULL) {
    PyErr_SetString(PyExc_AttributeError, "_buffer");
    return NULL;
  }
  Py_INCREF(value);
  PyObject *made = PyObject_CallFunctionObjArgs(place_value, value, SLOT(array, weak_slot), NULL);
  Py_DECREF(value);
  if (made == NULL) return NULL;
  if (SLOT(array, buffer_slot) != NULL || SLOT(array, value_slot) != value) {
    Py_DECREF(made); /* another thread has made it */
    return buffer_of(array, unused);
  }
  SLOT(array, buffer_slot) = Py_NewRef(made);
  Py_CLEAR(SLOT(array, value_slot));
  return made;
}

static int set_buffer(PyObject *array, PyObject *buffer, void *unused) {
  Py_CLEAR(SLOT(array, value_slot));
  Py_XSETREF(SLOT(array, buffer_slot), Py_XNewRef(buffer));
  return 0;
}

static PyGetSetDef buffer_attribute = {"_buffer", buffer_of, set_buffer, NULL, NULL};

/* The attribute `_buffer` of the class of arrays, which makes buffers when they are asked for. */
static PyObject *buffer_descriptor(PyObject *module, PyObject *unused) {
  return PyDescr_NewGetSet(array_type, &buffer_attribute);
}

/* The value that an array holds in place of a buffer, or None. */
static PyObject *held_value(PyObject *module, PyObject *array) {
  int is_array = array_type != NULL && PyObject_TypeCheck(array, array_type);
  PyObject *value = is_array ? SLOT(array, value_slot) : NULL;
  return Py_NewRef(value == NULL ? Py_None : value);
}

/* A container as `form` is, with the next item at each place of an ellipsis: an array around it if
 * it is a buffer. */
static PyObject *build(PyObject *form, PyObject *const *items, Py_ssize_t count, Py_ssize_t *next,
                       int buffers) {
  if (form == Py_Ellipsis) {
    if (*next < count) {
      PyObject *item = Py_NewRef(items[(*next)++]);
      return buffers ? wrap(item) : item;
    }
    PyErr_SetString(PyExc_TypeError, "there are fewer buffers than places");
    return NULL;
  }
  PyObject *made = NULL;
  if (Py_EnterRecursiveCall(" while results are put together")) return NULL;
  if (PyList_CheckExact(form) || PyTuple_CheckExact(form)) {
    int list = PyList_CheckExact(form);
    Py_ssize_t size = Py_SIZE(form);
    made = list ? PyList_New(size) : PyTuple_New(size);
    for (Py_ssize_t i = 0; made != NULL && i < size; i++) {
      PyObject *item = build(list ? PyList_GET_ITEM(form, i) : PyTuple_GET_ITEM(form, i), items,
                             count, next, buffers);
      if (item == NULL)
        Py_CLEAR(made);
      else if (list)
        PyList_SET_ITEM(made, i, item);
      else
        PyTuple_SET_ITEM(made, i, item);
    }
  } else if (PyDict_CheckExact(form)) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    made = PyDict_New();
    while (made != NULL && PyDict_Next(form, &position, &key, &value)) {
      PyObject *item = build(value, items, count, next, buffers);
      if (item == NULL || PyDict_SetItem(made, key, item) < 0) Py_CLEAR(made);
      Py_XDECREF(item);
    }
  } else {
    made = Py_NewRef(form); /* None */
  }
  Py_LeaveRecursiveCall();
  return made;
}

/* A container of arrays from what `_assembler` made and a tuple of buffers: a form of lists, tuples
 * and dictionaries, or a function of the buffers. */
static PyObject *assemble(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
  if (nargs != 2 || !PyTuple_CheckExact(args[1]) || array_type == NULL) {
    PyErr_SetString(PyExc_TypeError, "assemble takes a form and a tuple of buffers");
    return NULL;
  }
  Py_ssize_t next = 0;
  return PyCallable_Check(args[0]) ? PyObject_CallOneArg(args[0], args[1])
                                   : build(args[0], &PyTuple_GET_ITEM(args[1], 0),
                                           PyTuple_GET_SIZE(args[1]), &next, 1);
}

/* Whether somebody wants to know what happens; -1 with an error. */
static int somebody_listens(void) {
  PyObject *listeners = PyDict_GetItemWithError(PyModule_GetDict(events), name_listeners);
  if (listeners != NULL && PyTuple_CheckExact(listeners)) return PyTuple_GET_SIZE(listeners) != 0;
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the listeners come as a tuple");
  return -1;
}

/* `Array.__array__`: a view of what is computed and in the memory of the host; Python does the
 * rest. */
static PyObject *array_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                             PyObject *kwnames) {
  Py_ssize_t count = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
  int plain = Py_IS_TYPE(self, array_type) && !careful;
  for (Py_ssize_t i = 0; i < count; i++) plain = plain && args[i] == Py_None;
  PyObject *buffer = plain ? SLOT(self, buffer_slot) : NULL, *value = NULL;
  if (plain && buffer == NULL && SLOT(self, value_slot) != NULL)
    return PyArray_View((PyArrayObject *)SLOT(self, value_slot), NULL, &PyArray_Type);
  if (buffer != NULL && Py_IS_TYPE(buffer, buffer_type)) {
    Py_INCREF(buffer);
    /* jaxlib must not be asked whether a deleted buffer is ready. */
    PyObject *deleted = PyObject_CallMethodNoArgs(buffer, name_is_deleted);
    PyObject *ready =
        deleted == Py_False ? PyObject_CallMethodNoArgs(buffer, name_is_ready) : NULL;
    Py_XDECREF(deleted);
    if (ready == Py_True) {
      PyObject *view = PyMemoryView_FromObject(buffer);
      PyObject *aval = view == NULL ? NULL : PyObject_GetAttr(buffer, name_aval);
      PyObject *dtype = aval == NULL ? NULL : PyObject_GetAttr(aval, name_dtype);
      Py_buffer *memory = view == NULL ? NULL : PyMemoryView_GET_BUFFER(view);
      if (dtype != NULL && PyArray_DescrCheck(dtype) && memory->readonly &&
          memory->itemsize == PyDataType_ELSIZE((PyArray_Descr *)dtype) &&
          ((PyArray_Descr *)dtype)->type_num < NPY_OBJECT) {
        Py_INCREF(dtype);
        value = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)dtype, memory->ndim,
                                     memory->shape, memory->strides, memory->buf, 0, NULL);
        if (value != NULL && PyArray_SetBaseObject((PyArrayObject *)value, Py_NewRef(view)) < 0)
          Py_CLEAR(value);
      }
      Py_XDECREF(dtype);
      Py_XDECREF(aval);
      Py_XDECREF(view);
    }
    Py_XDECREF(ready);
    Py_DECREF(buffer);
    if (value != NULL) return value;
    PyErr_Clear(); /* Python says what is wrong */
  }
  PyObject *some[4], **all = some;
  if (count > 3) {
    PyErr_SetString(PyExc_TypeError, "__array__ takes a dtype and copy");
    return NULL;
  }
  *all++ = self;
  for (Py_ssize_t i = 0; i < count; i++) *all++ = args[i];
  return PyObject_Vectorcall(read_array, some, nargs + 1, kwnames);
}

static PyMethodDef array_method = {"__array__", (PyCFunction)(void (*)(void))array_array,
                                   METH_FASTCALL | METH_KEYWORDS,
                                   "__array__($self, dtype=None, copy=None)\n--\n\n"
                                   "The value as an array of NumPy's."};

/* The method `__array__` of the class of arrays. */
static PyObject *array_reader(PyObject *module, PyObject *unused) {
  return PyDescr_NewMethod(array_type, &array_method);
}

/* From now on whatever waits for a computation is left to Python. */
static PyObject *be_careful(PyObject *module, PyObject *unused) {
  careful = 1;
  Py_RETURN_NONE;
}

/* ---------------------------------------------------------------------------------- arguments */

/* The dtypes, in native byte order, that are what they are whatever the options say. */
static int is_canonical(int number) {
  switch (number) {
    case NPY_BOOL:
    case NPY_INT8:
    case NPY_INT16:
    case NPY_INT32:
    case NPY_UINT8:
    case NPY_UINT16:
    case NPY_UINT32:
    case NPY_HALF:
    case NPY_FLOAT:
    case NPY_CFLOAT:
      return 1;
    default:
      return 0;
  }
}

/* A value of NumPy's as jaxlib may take it: memory that the caller cannot write to. */
static PyObject *private_value(PyObject *value) {
  int told = somebody_listens();
  if (told < 0) PyErr_Clear();
  if (told) return Py_NewRef(stranger);
  if (PyArray_CheckExact(value)) {
    PyArrayObject *array = (PyArrayObject *)value;
    if (is_canonical(PyArray_TYPE(array)) && PyArray_ISNOTSWAPPED(array)) {
      if (PyArray_NBYTES(array) > most_copied) return Py_NewRef(value); /* Python will copy it */
      PyObject *copy = PyArray_NewCopy(array, NPY_CORDER);
      if (copy != NULL) return copy;
      PyErr_Clear();
      return Py_NewRef(stranger);
    }
  } else if (PyArray_IsScalar(value, Float32) || PyArray_IsScalar(value, Int32) ||
             PyArray_IsScalar(value, Bool) || PyArray_IsScalar(value, UInt32)) {
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyFloat32ArrType_Type || type == &PyInt32ArrType_Type ||
        type == &PyBoolArrType_Type || type == &PyUInt32ArrType_Type)
      return Py_NewRef(value);
  } else if (PyArray_Check(value)) {
    return Py_NewRef(stranger); /* a subclass, of which jaxlib would only see the data */
  }
  PyObject *copy = PyObject_CallOneArg(make_private, value);
  if (copy == NULL) PyErr_Clear();
  return copy == NULL || copy == Py_None ? (Py_XDECREF(copy), Py_NewRef(stranger)) : copy;
}

/* The buffer of a plain array, borrowed; NULL if a value is no such array, or has none. */
static PyObject *plain_buffer(PyObject *value) {
  return Py_IS_TYPE(value, array_type) ? SLOT(value, buffer_slot) : NULL;
}

/* A list of the buffers of a list of arrays; NULL, perhaps with an error, if it has something else.
 * Nothing runs while it is filled, so nobody sees it before. */
static PyObject *list_of_buffers(PyObject *list) {
  Py_ssize_t size = PyList_GET_SIZE(list);
  if (size == 0 || plain_buffer(PyList_GET_ITEM(list, 0)) == NULL ||
      plain_buffer(PyList_GET_ITEM(list, size - 1)) == NULL)
    return NULL;
  PyObject *made = PyList_New(size); /* which may run finalizers, which change the list */
  if (made == NULL) return NULL;
  for (Py_ssize_t i = 0; i < size; i++) {
    int same = PyList_GET_SIZE(list) == size;
    PyObject *buffer = same ? plain_buffer(PyList_GET_ITEM(list, i)) : NULL;
    if (buffer == NULL) {
      Py_DECREF(made);
      return NULL;
    }
    PyList_SET_ITEM(made, i, Py_NewRef(buffer));
  }
  return made;
}

/* What to give jaxlib in place of an argument: a new reference. `opaque` is set if the argument may
 * hold others that are not looked at. */
static PyObject *unwrap(PyObject *value, int depth, int *opaque) {
  PyTypeObject *type = Py_TYPE(value);
  PyObject *plain = plain_buffer(value);
  if (plain != NULL) return Py_NewRef(plain);
  if (type == array_type) {
    PyObject *buffer = buffer_of(value, NULL);
    if (buffer != NULL) return buffer;
    PyErr_Clear(); /* it is deleted, or Python says why its value cannot be placed */
    return Py_NewRef(value);
  }
  if (value == Py_None || type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type ||
      type == &PyComplex_Type || type == buffer_type)
    return Py_NewRef(value);
  if (PyArray_Check(value) || PyArray_CheckScalar(value)) return private_value(value);
  if (depth > 64) {
    *opaque = 1;
    return Py_NewRef(value);
  }
  if (type == &PyList_Type || type == &PyTuple_Type) {
    int list = type == &PyList_Type;
    PyObject *copy = list ? list_of_buffers(value) : NULL;
    if (copy != NULL) return copy;
    PyErr_Clear();
    for (Py_ssize_t i = 0; i < Py_SIZE(value); i++) {
      PyObject *item = list ? PyList_GET_ITEM(value, i) : PyTuple_GET_ITEM(value, i);
      Py_INCREF(item); /* making an object may collect garbage, whose finalizers change the list */
      PyObject *own = unwrap(item, depth + 1, opaque);
      Py_DECREF(item);
      if (copy == NULL) {
        if (own == item) {
          Py_DECREF(own);
          continue;
        }
        copy = list ? PyList_GetSlice(value, 0, Py_SIZE(value)) : NULL;
        if (!list) {
          Py_ssize_t count = PyTuple_GET_SIZE(value);
          copy = PyTuple_New(count);
          for (Py_ssize_t k = 0; copy != NULL && k < count; k++)
            PyTuple_SET_ITEM(copy, k, Py_NewRef(PyTuple_GET_ITEM(value, k)));
        }
        if (copy == NULL || i >= Py_SIZE(copy)) {
          Py_DECREF(own);
          goto failed;
        }
      } else if (i >= Py_SIZE(copy)) {
        Py_DECREF(own);
        goto failed;
      }
      PyObject **place = list ? &((PyListObject *)copy)->ob_item[i]
                              : &((PyTupleObject *)copy)->ob_item[i];
      PyObject *before = *place;
      *place = own;
      Py_DECREF(before);
    }
    return copy == NULL ? Py_NewRef(value) : copy;
  failed:
    PyErr_Clear();
    Py_XDECREF(copy);
    return Py_NewRef(stranger);
  }
  if (type == &PyDict_Type) {
    PyObject *copy = PyDict_Copy(value), *key, *item;
    Py_ssize_t position = 0;
    int changed = 0;
    while (copy != NULL && PyDict_Next(copy, &position, &key, &item)) {
      Py_INCREF(item);
      PyObject *own = unwrap(item, depth + 1, opaque);
      if (own != item) {
        changed = 1;
        Py_INCREF(key);
        if (PyDict_SetItem(copy, key, own) < 0) Py_CLEAR(copy);
        Py_DECREF(key);
      }
      Py_DECREF(own);
      Py_DECREF(item);
    }
    if (copy == NULL) {
      PyErr_Clear();
      return Py_NewRef(stranger);
    }
    if (changed) return copy;
    Py_DECREF(copy);
    return Py_NewRef(value);
  }
  *opaque = 1;
  return Py_NewRef(value);
}

/* The calls of this thread that are running, the innermost first. */
typedef struct Frame {
  PyObject *const *args;
  size_t nargsf;
  PyObject *kwnames;
  int taken;  /* whether Python was called with its arguments */
  int opaque; /* whether an argument may hold values that were not looked at */
  struct Frame *outer;
} Frame;

static __thread Frame *innermost;

/* Whether jaxlib gets private copies of all small values of NumPy's in the running call. */
static PyObject *copies(PyObject *module, PyObject *unused) {
  return PyBool_FromLong(innermost != NULL && innermost->taken && !innermost->opaque);
}

#endif
