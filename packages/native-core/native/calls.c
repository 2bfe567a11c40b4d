/* The hot part of calls: unwraps arguments before jaxlib's function of a jitted function is called,
 * and wraps its results.
 *
 * jaxlib takes its own buffers as leaves fastest, so arrays are replaced by their buffers in
 * arguments, and in lists, tuples and dictionaries of them. Whatever else there is (keys, nodes of
 * users' classes, deleted arrays) is handed on as it is. If jaxlib has no entry for a call, it calls
 * an `Original`, which calls Python with the arguments that were given.
 */

#include "arrays.h"
#include "callables.h"
#include "direct.h"
#include "heap.h"
#include "waiting.h"

/* ----------------------------------------------------------------------------------- Original */

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *target; /* a function, or a weak reference to one */
  PyObject *weakrefs;
} Original;

static PyObject *original_call(PyObject *object, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames) {
  PyObject *target = ((Original *)object)->target;
  if (PyWeakref_Check(target)) {
    target = PyObject_CallNoArgs(target);
    if (target == NULL) return NULL;
    if (target == Py_None) {
      Py_DECREF(target);
      PyErr_SetString(PyExc_ReferenceError, "the function of this program is gone");
      return NULL;
    }
  } else {
    Py_INCREF(target);
  }
  Frame *frame = innermost;
  PyObject *result;
  if (frame != NULL && !frame->taken) {
    frame->taken = 1;
    result = PyObject_Vectorcall(target, frame->args, PyVectorcall_NARGS(frame->nargsf),
                                 frame->kwnames);
  } else {
    result = PyObject_Vectorcall(target, args, nargsf, kwnames);
  }
  Py_DECREF(target);
  return result;
}

static PyObject *original_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *target;
  if (!PyArg_ParseTuple(args, "O", &target)) return NULL;
  Original *self = (Original *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->vectorcall = original_call;
  self->target = Py_NewRef(target);
  return (PyObject *)self;
}

static int original_traverse(Original *self, visitproc visit, void *arg) {
  Py_VISIT(self->target);
  return 0;
}

static int original_clear(Original *self) {
  Py_CLEAR(self->target);
  return 0;
}

static void original_dealloc(Original *self) {
  PyObject_GC_UnTrack(self);
  if (self->weakrefs != NULL) PyObject_ClearWeakRefs((PyObject *)self);
  Py_CLEAR(self->target);
  Py_TYPE(self)->tp_free(self);
}

static PyTypeObject original_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dovetail_native.Original",
    .tp_doc = "Calls a function with the arguments that the innermost running `Function` was given.",
    .tp_basicsize = sizeof(Original),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = original_new,
    .tp_dealloc = (destructor)original_dealloc,
    .tp_traverse = (traverseproc)original_traverse,
    .tp_clear = (inquiry)original_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Original, vectorcall),
    .tp_weaklistoffset = offsetof(Original, weakrefs),
};

/* ----------------------------------------------------------------------------------- Function */

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *inner;    /* jaxlib's function */
  PyObject *dict;
  PyObject *weakrefs;
  PyObject *explain;  /* called with an exception and the arguments of the call; or NULL */
  PyObject *names;    /* a tuple of names of static keyword arguments; or NULL */
  PyObject *action;   /* what happens to donated arrays, in words; or NULL */
  PyObject *given;    /* a tuple of names of donated keyword arguments; or NULL */
  unsigned long long statics, donated; /* positions, as bits */
  PyObject *offer;    /* called for the result of a call that may need no program; or NULL */
  int offer_once;     /* whether only before the first program, but then of each call */
  int has_run;        /* whether there has been a program */
  Direct **ways;      /* how calls are computed that need no program */
  int way_count, oldest_way, newest_way;
} Function;

#define MOST 32

/* Whether a keyword argument is one of those of a tuple of names. */
static int is_among(PyObject *name, PyObject *names) {
  if (names == NULL) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    PyObject *other = PyTuple_GET_ITEM(names, i);
    if (name == other || PyUnicode_Compare(name, other) == 0) return 1;
  }
  return 0;
}

/* How the arrays of donated arguments are marked. */
typedef struct {
  Function *function;
  PyObject *result;
  PyObject *traceback; /* owned: where the call was; or NULL, if nobody has asked yet */
  int delete;          /* whether all are to be deleted, or marked if the program has done that */
} Retiring;

/* Whether the buffer of an array is deleted, or now becomes it; -1 with an error. */
static int is_gone(const Retiring *retiring, PyObject *buffer) {
  if (retiring->delete) {
    PyObject *done = PyObject_CallMethodNoArgs(buffer, name_delete);
    Py_XDECREF(done);
    return done == NULL ? -1 : 1;
  }
  PyObject *deleted = PyObject_CallMethodNoArgs(buffer, name_is_deleted);
  Py_XDECREF(deleted);
  return deleted == NULL ? -1 : deleted == Py_True;
}

static PyObject *place_of_call(Retiring *retiring) {
  PyObject *result = retiring->result;
  if (retiring->traceback == NULL) {
    /* It has been noted where the result was made, which is here. */
    PyObject *made = Py_IS_TYPE(result, array_type) ? SLOT(result, made_slot) : NULL;
    retiring->traceback = made != NULL ? Py_NewRef(made)
                          : Py_IS_TYPE(result, buffer_type)
                              ? PyObject_GetAttr(result, name_traceback)
                              : PyObject_CallNoArgs(get_traceback);
  }
  return retiring->traceback;
}

/* Mark an array whose buffer or value the call has deleted. */
static int retire(Retiring *retiring, PyObject *array) {
  PyObject *buffer = SLOT(array, buffer_slot), *value = SLOT(array, value_slot);
  if (buffer == NULL && (value == NULL || !retiring->delete)) return 0;
  int gone = 1;
  if (buffer != NULL) {
    Py_INCREF(buffer);
    gone = is_gone(retiring, buffer);
  }
  PyObject *left = NULL;
  if (buffer != NULL && gone == 1) left = Py_NewRef(buffer);
  if (buffer == NULL) {
    Py_INCREF(value);
    left = PyObject_CallFunctionObjArgs(freed_type, value, SLOT(array, weak_slot), NULL);
    Py_DECREF(value);
  }
  PyObject *made = left == NULL ? NULL : place_of_call(retiring);
  PyObject *retired = made == NULL ? NULL : retired_type->tp_alloc(retired_type, 3);
  if (retired == NULL || SLOT(array, buffer_slot) != buffer || !Py_IS_TYPE(array, array_type)) {
    int failed = gone < 0 || (gone && retired == NULL); /* or another thread has marked it */
    Py_XDECREF(left);
    Py_XDECREF(retired);
    Py_XDECREF(buffer);
    return failed ? -1 : 0;
  }
  PyTuple_SET_ITEM(retired, 0, left);
  PyTuple_SET_ITEM(retired, 1, Py_NewRef(retiring->function->action));
  PyTuple_SET_ITEM(retired, 2, Py_NewRef(made));
  PyObject *before = SLOT(array, retired_slot), *held = SLOT(array, value_slot);
  SLOT(array, retired_slot) = retired;
  SLOT(array, buffer_slot) = NULL;
  SLOT(array, value_slot) = NULL;
  Py_INCREF(deleted_type);
  Py_SET_TYPE(array, deleted_type);
  Py_DECREF(array_type);
  Py_XDECREF(held);
  Py_XDECREF(before);
  if (buffer != NULL) {
    Py_DECREF(buffer); /* that of the slot */
    Py_DECREF(buffer);
  }
  return 0;
}

/* Mark the arrays in a donated argument. */
static int retire_all(Retiring *retiring, PyObject *value, int depth) {
  PyTypeObject *type = Py_TYPE(value);
  if (type == array_type) return retire(retiring, value);
  if (depth > 64) return 0;
  if (type == &PyTuple_Type || type == &PyList_Type) {
    for (Py_ssize_t i = 0; i < Py_SIZE(value); i++) {
      PyObject *item =
          Py_NewRef(type == &PyTuple_Type ? PyTuple_GET_ITEM(value, i) : PyList_GET_ITEM(value, i));
      int failed = retire_all(retiring, item, depth + 1);
      Py_DECREF(item);
      if (failed) return failed;
    }
    return 0;
  }
  if (type == &PyDict_Type) {
    PyObject *values = PyDict_Values(value);
    int failed = values == NULL ? -1 : retire_all(retiring, values, depth + 1);
    Py_XDECREF(values);
    return failed;
  }
  if (type == deleted_type || value == Py_None || PyFloat_CheckExact(value) ||
      PyLong_CheckExact(value))
    return 0;
  PyObject *done = PyObject_CallFunctionObjArgs(
      retire_others, value, retiring->function->action, retiring->delete ? Py_True : Py_False, NULL);
  Py_XDECREF(done);
  return done == NULL ? -1 : 0;
}

/* Mark the arrays in the donated arguments of a call. */
static int retire_donated(Function *self, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames, PyObject *result, int delete) {
  if (self->action == NULL) return 0;
  Py_ssize_t count = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
  Retiring retiring = {self, result, NULL, delete};
  int failed = 0;
  for (Py_ssize_t i = 0; i < count && !failed; i++) {
    int gone = i < nargs ? i < 64 && (self->donated >> i & 1)
                         : is_among(PyTuple_GET_ITEM(kwnames, i - nargs), self->given);
    if (gone) failed = retire_all(&retiring, args[i], 0);
  }
  Py_XDECREF(retiring.traceback);
  return failed;
}

/* The result of a call that needs no program; NULL, perhaps with an error, if this is not the way. */
static PyObject *without_program(Function *self, PyObject *const *args, Py_ssize_t nargs,
                                 PyObject *kwnames, int *refused) {
  Py_ssize_t count = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
  PyObject *result = call_directly(self->ways, self->way_count, args, count, kwnames,
                                   self->action != NULL, refused);
  if (result != NULL && retire_donated(self, args, nargs, kwnames, result, 1) < 0)
    Py_CLEAR(result);
  return result;
}

/* What the function that explains errors makes of the one that was raised: a result, or NULL with
 * an error set. */
static PyObject *explained(Function *self, PyObject *const *args, Py_ssize_t nargs,
                           PyObject *kwnames) {
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  if (traceback != NULL) PyException_SetTraceback(error, traceback);
  PyObject *positional = PyTuple_New(nargs), *keywords = PyDict_New(), *answer = NULL;
  if (positional != NULL && keywords != NULL) {
    for (Py_ssize_t i = 0; i < nargs; i++) PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
    Py_ssize_t count = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    int failed = 0;
    for (Py_ssize_t i = 0; i < count && !failed; i++)
      failed = PyDict_SetItem(keywords, PyTuple_GET_ITEM(kwnames, i), args[nargs + i]);
    if (!failed)
      answer = PyObject_CallFunctionObjArgs(self->explain, error, positional, keywords, NULL);
  }
  Py_XDECREF(positional);
  Py_XDECREF(keywords);
  if (answer == NULL || !PyTuple_CheckExact(answer) || PyTuple_GET_SIZE(answer) != 1) {
    if (answer != NULL) { /* there is nothing to explain */
      Py_DECREF(answer);
      PyErr_Restore(type, error, traceback);
      return NULL;
    }
  }
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(traceback);
  if (answer == NULL) return NULL;
  PyObject *result = Py_NewRef(PyTuple_GET_ITEM(answer, 0));
  Py_DECREF(answer);
  return result;
}

static PyObject *function_call(PyObject *object, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames) {
  Function *self = (Function *)object;
  Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  Py_ssize_t count = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
  if (count <= MOST_ARGUMENTS) {
    PyObject *result = NULL;
    int refused = 0;
    if (self->way_count) result = without_program(self, args, nargs, kwnames, &refused);
    if (result == NULL && PyErr_Occurred()) return NULL;
    if (result == NULL && !refused && self->offer != NULL &&
        (self->offer_once ? !self->has_run : kwnames == NULL && holds_value(args, nargs)))
      result = offered(self->offer, args, nargs, kwnames, !self->offer_once);
    if (result != NULL || PyErr_Occurred()) return result;
  }
  PyObject *some[MOST + 1], **own = some;
  if (count > MOST) {
    own = PyMem_Malloc((count + 1) * sizeof(PyObject *));
    if (own == NULL) return PyErr_NoMemory();
  }
  own[0] = own[1] = NULL;
  own++; /* the place before is for callees */
  Frame frame = {args, nargsf, kwnames, 0, 0, NULL};
  for (Py_ssize_t i = 0; i < count; i++) {
    int fixed = i < nargs ? i < 64 && (self->statics >> i & 1)
                          : is_among(PyTuple_GET_ITEM(kwnames, i - nargs), self->names);
    own[i] = fixed ? Py_NewRef(args[i]) : unwrap(args[i], 0, &frame.opaque);
  }
  frame.outer = innermost;
  innermost = &frame;
  PyObject *result =
      PyObject_Vectorcall(self->inner, own, nargs | PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
  innermost = frame.outer;
  for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(own[i]);
  if (own - 1 != some) PyMem_Free(own - 1);
  if (result == NULL) {
    if (self->explain != NULL && PyErr_ExceptionMatches(PyExc_Exception))
      return explained(self, args, nargs, kwnames);
    return NULL;
  }
  self->has_run = 1;
  if (retire_donated(self, args, nargs, kwnames, result, 0) < 0) {
    Py_DECREF(result);
    return NULL;
  }
  return Py_IS_TYPE(result, buffer_type) ? wrap(result) : result;
}

/* A tuple or None; NULL if it has nothing. */
static int optional_tuple(PyObject *value, PyObject **place) {
  if (value == NULL || value == Py_None) return 0;
  if (!PyTuple_CheckExact(value)) {
    PyErr_SetString(PyExc_TypeError, "names come as a tuple");
    return -1;
  }
  if (PyTuple_GET_SIZE(value)) *place = Py_NewRef(value);
  return 0;
}

static PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static char *words[] = {"inner",   "explain", "statics", "static_names",
                          "donated", "donated_names", "action", "offer", "offer_once", NULL};
  PyObject *inner, *explain = NULL, *names = NULL, *given = NULL, *action = NULL, *offer = NULL;
  unsigned long long statics = 0, donated = 0;
  int once = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OKOKOOOp", words, &inner, &explain, &statics,
                                   &names, &donated, &given, &action, &offer, &once))
    return NULL;
  if (array_type == NULL) {
    PyErr_SetString(PyExc_RuntimeError, "configure comes first");
    return NULL;
  }
  Function *self = (Function *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->vectorcall = function_call;
  self->inner = Py_NewRef(inner);
  self->statics = statics;
  self->donated = donated;
  self->offer_once = once;
  if (explain != NULL && explain != Py_None) self->explain = Py_NewRef(explain);
  if (offer != NULL && offer != Py_None) self->offer = Py_NewRef(offer);
  if (action != NULL && action != Py_None) self->action = Py_NewRef(action);
  if (optional_tuple(names, &self->names) < 0 || optional_tuple(given, &self->given) < 0) {
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject *)self;
}

static int function_traverse(Function *self, visitproc visit, void *arg) {
  Py_VISIT(self->inner);
  Py_VISIT(self->dict);
  Py_VISIT(self->explain);
  Py_VISIT(self->offer);
  Py_VISIT(self->names);
  Py_VISIT(self->given);
  Py_VISIT(self->action);
  return 0;
}

static int function_clear(Function *self) {
  Py_CLEAR(self->dict);
  Py_CLEAR(self->explain);
  Py_CLEAR(self->offer);
  /* A cycle is broken at `explain`, `offer`, `dict` or in `inner`, which stays for calls of
   * finalizers. */
  return 0;
}

static void function_dealloc(Function *self) {
  PyObject_GC_UnTrack(self);
  direct_free(self->ways, self->way_count);
  if (self->weakrefs != NULL) PyObject_ClearWeakRefs((PyObject *)self);
  Py_CLEAR(self->inner);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->explain);
  Py_CLEAR(self->offer);
  Py_CLEAR(self->names);
  Py_CLEAR(self->given);
  Py_CLEAR(self->action);
  Py_TYPE(self)->tp_free(self);
}

static PyObject *function_clear_cache(Function *self, PyObject *unused) {
  for (int i = 0; i < self->way_count; i++) self->ways[i]->generation = generation - 1;
  return PyObject_CallMethod(self->inner, "_clear_cache", NULL);
}

static PyObject *function_cache_size(Function *self, PyObject *unused) {
  PyObject *kept = PyObject_CallMethod(self->inner, "_cache_size", NULL);
  if (kept == NULL) return NULL;
  Py_ssize_t size = PyLong_AsSsize_t(kept);
  Py_DECREF(kept);
  for (int i = 0; i < self->way_count; i++)
    size += self->ways[i]->chain != NULL && self->ways[i]->generation == generation &&
            !self->ways[i]->beside;
  return PyErr_Occurred() ? NULL : PyLong_FromSsize_t(size);
}

/* The place of a new way: one that is not used any more, or free, or for other options; NULL if
 * there is none. */
static Direct **room_for(Function *self, const Direct *direct) {
  for (int i = 0; i < self->way_count; i++)
    if (self->ways[i]->generation != generation) return &self->ways[i];
  if (self->way_count < MOST_DIRECT) return &self->ways[self->way_count++];
  for (int i = 0; i < self->way_count; i++) {
    int same = PyObject_RichCompareBool(self->ways[i]->key, direct->key, Py_EQ);
    if (same < 0) PyErr_Clear();
    if (!same) return &self->ways[i];
  }
  return NULL;
}

/* Add a way to compute calls that need no program; tell whether there was room. If there is none,
 * a function for any shape takes the place of the oldest. */
static PyObject *function_add_direct(Function *self, PyObject *args) {
  if (self->ways == NULL) self->ways = PyMem_Calloc(MOST_DIRECT, sizeof(Direct *));
  if (self->ways == NULL) return PyErr_NoMemory();
  Direct *direct = direct_from(args);
  if (direct == NULL) return NULL;
  for (int i = 0; i < self->way_count; i++) {
    const Direct *other = self->ways[i];
    if (direct->capsule == NULL || other->capsule != direct->capsule ||
        other->generation != generation)
      continue;
    direct_release(direct); /* it is there already, and stays */
    self->newest_way = -1;
    Py_RETURN_TRUE;
  }
  Direct **place = room_for(self, direct);
  if (place == NULL && direct->function != NULL) {
    place = &self->ways[self->oldest_way];
    self->oldest_way = (self->oldest_way + 1) % MOST_DIRECT;
  }
  if (place == NULL) {
    direct_release(direct);
    Py_RETURN_FALSE;
  }
  Direct *before = *place;
  *place = direct;
  self->newest_way = (int)(place - self->ways);
  if (before != NULL) direct_release(before);
  Py_RETURN_TRUE;
}

/* A call for which the newest way was made needs a program after all: forget the way, unless it is
 * only put off. */
static PyObject *function_drop_direct(Function *self, PyObject *unused) {
  if (self->newest_way < 0 || self->newest_way >= self->way_count) Py_RETURN_NONE;
  Direct *newest = self->ways[self->newest_way];
  newest->beside = 1;
  if (!newest->put_off) newest->generation = generation - 1;
  Py_RETURN_NONE;
}

/* The result of a call that needs no program, or None. */
static PyObject *function_call_directly(Function *self, PyObject *const *args, Py_ssize_t nargs,
                                        PyObject *names) {
  int refused = 0;
  PyObject *result = without_program(self, args, nargs, names, &refused);
  return result == NULL && !PyErr_Occurred() ? Py_NewRef(Py_None) : result;
}

static PyObject *function_reduce(PyObject *self, PyObject *unused) {
  PyObject *rebuild = PyObject_GetAttrString(self, "_reduced");
  if (rebuild == NULL) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "cannot pickle %R", self);
    return NULL;
  }
  PyObject *parts = PyObject_CallNoArgs(rebuild);
  Py_DECREF(rebuild);
  return parts;
}

static PyMethodDef function_methods[] = {
    {"_clear_cache", (PyCFunction)function_clear_cache, METH_NOARGS, "Drop what jaxlib has kept."},
    {"_cache_size", (PyCFunction)function_cache_size, METH_NOARGS,
     "For how many kinds of calls is known how they are computed."},
    {"_add_direct", (PyCFunction)function_add_direct, METH_VARARGS, "Add a way without a program."},
    {"_drop_direct", (PyCFunction)function_drop_direct, METH_NOARGS, "Forget the newest of them."},
    {"_call_directly", (PyCFunction)(void (*)(void))function_call_directly,
     METH_FASTCALL | METH_KEYWORDS,
     "The result of a call without a program, or None."},
    {"__reduce__", function_reduce, METH_NOARGS, "What to pickle."},
    {NULL},
};

static PyGetSetDef function_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {NULL},
};

static PyTypeObject function_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dovetail_native.Function",
    .tp_doc = "A compiled function of arrays, around jaxlib's, which takes buffers.",
    .tp_basicsize = sizeof(Function),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = function_new,
    .tp_dealloc = (destructor)function_dealloc,
    .tp_traverse = (traverseproc)function_traverse,
    .tp_clear = (inquiry)function_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Function, vectorcall),
    .tp_weaklistoffset = offsetof(Function, weakrefs),
    .tp_dictoffset = offsetof(Function, dict),
    .tp_descr_get = callable_get,
    .tp_repr = callable_repr,
    .tp_methods = function_methods,
    .tp_getset = function_getset,
};

/* ------------------------------------------------------------------------------------- module */

static PyMethodDef module_methods[] = {
    {"configure", configure, METH_VARARGS, "Tell what the classes are."},
    {"array_reader", array_reader, METH_NOARGS, "The method `__array__` of arrays."},
    {"array_waiter", array_waiter, METH_O, "The method `block_until_ready` of arrays."},
    {"be_careful", be_careful, METH_NOARGS, "Leave it to Python to wait for computations."},
    {"copies", copies, METH_NOARGS,
     "Whether jaxlib gets private copies of all small values of NumPy's in the running call."},
    {"buffer_descriptor", buffer_descriptor, METH_NOARGS, "The attribute `_buffer` of arrays."},
    {"held_value", held_value, METH_O, "The value that an array holds in place of a buffer."},
    {"hold", (PyCFunction)(void (*)(void))hold, METH_FASTCALL,
     "An array that holds a value of NumPy's, of weak type if that is said."},
    {"chain", make_chain, METH_VARARGS, "How a small program is computed step by step."},
    {"forget_ways", forget_ways, METH_NOARGS, "Forget how calls are computed without programs."},
    {"configure_direct", configure_direct, METH_VARARGS, "Tell which calls may need no program."},
    {"watch_options", watch_options, METH_O, "Notice when options of a class change."},
    {"set_default_place", set_default_place, METH_O, "Tell where buffers are by default."},
    {"assemble", (PyCFunction)(void (*)(void))assemble, METH_FASTCALL,
     "A container of arrays, from its form and a tuple of buffers."},
    {"grow_heap", grow_heap, METH_O,
     "Ask for huge pages in so many bytes at the heap's end, when the main thread runs next."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dovetail_native_calls",
    .m_doc = "Calls of compiled functions.",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC PyInit_dovetail_native_calls(void) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError, "dovetail_native works in the main interpreter alone");
    return NULL;
  }
  if (PyType_Ready(&original_type) < 0 || PyType_Ready(&function_type) < 0 ||
      PyType_Ready(&waiter_type) < 0)
    return NULL;
  import_array();
  stranger = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
  if (intern_names() < 0) return NULL;
  PyObject *made = PyModule_Create(&module);
  if (made == NULL || stranger == NULL ||
      PyModule_AddIntConstant(made, "INTERFACE", 8) < 0 ||
      PyModule_AddObjectRef(made, "Original", (PyObject *)&original_type) < 0 ||
      PyModule_AddObjectRef(made, "Function", (PyObject *)&function_type) < 0 ||
      PyModule_AddObjectRef(made, "Waiter", (PyObject *)&waiter_type) < 0) {
    Py_XDECREF(made);
    return NULL;
  }
  return made;
}
