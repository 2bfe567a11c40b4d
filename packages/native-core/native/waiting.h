/* To wait for arrays: as a method, and as a function. */

#ifndef DOVETAIL_NATIVE_WAITING_H
#define DOVETAIL_NATIVE_WAITING_H

#include "arrays.h"
#include "callables.h"

static PyObject *wait_for_array; /* owned: waits in Python, perhaps after an exception */

/* `Array.block_until_ready`, where nobody wants to know of it; Python does the rest, and says what
 * is wrong. */
static PyObject *array_wait(PyObject *self, PyObject *unused) {
  int plain = Py_IS_TYPE(self, array_type) && !careful && !somebody_listens();
  if (plain && SLOT(self, value_slot) != NULL) return Py_NewRef(self);
  PyObject *buffer = plain ? SLOT(self, buffer_slot) : NULL;
  if (buffer != NULL && Py_IS_TYPE(buffer, buffer_type)) {
    Py_INCREF(buffer);
    PyObject *done = PyObject_CallMethodNoArgs(buffer, name_block);
    Py_DECREF(buffer);
    if (done != NULL) {
      Py_DECREF(done);
      return Py_NewRef(self);
    }
  }
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  if (type != NULL) PyErr_NormalizeException(&type, &error, &traceback);
  if (traceback != NULL) PyException_SetTraceback(error, traceback);
  PyObject *result = PyObject_CallFunctionObjArgs(wait_for_array, self, error, NULL);
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(traceback);
  return result;
}

static PyMethodDef wait_method = {"block_until_ready", array_wait, METH_NOARGS, NULL};

/* The method `block_until_ready` of the class of arrays; that in Python has the documentation. */
static PyObject *array_waiter(PyObject *module, PyObject *in_python) {
  PyObject *own = PyObject_GetAttrString(in_python, "__doc__");
  PyObject *text = own == NULL ? NULL
                               : PyUnicode_FromFormat("%s($self, /)\n--\n\n%S",
                                                      wait_method.ml_name, own);
  Py_XDECREF(own);
  const char *doc = text == NULL ? NULL : PyUnicode_AsUTF8(text);
  if (doc == NULL) return NULL;
  wait_method.ml_doc = doc; /* `text` is never released */
  Py_XSETREF(wait_for_array, Py_NewRef(in_python));
  return PyDescr_NewMethod(array_type, &wait_method);
}

/* The function `block_until_ready`, which calls that in Python for all but a single array. */
typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *in_python;
  PyObject *dict;
  PyObject *weakrefs;
} Waiter;

static PyObject *waiter_call(PyObject *self, PyObject *const *args, size_t nargsf,
                             PyObject *kwnames) {
  if (PyVectorcall_NARGS(nargsf) == 1 && kwnames == NULL && Py_IS_TYPE(args[0], array_type))
    return array_wait(args[0], NULL);
  return PyObject_Vectorcall(((Waiter *)self)->in_python, args, nargsf, kwnames);
}

static PyObject *waiter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *in_python;
  if (!PyArg_ParseTuple(args, "O", &in_python)) return NULL;
  Waiter *self = (Waiter *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->vectorcall = waiter_call;
  self->in_python = Py_NewRef(in_python);
  return (PyObject *)self;
}

static int waiter_traverse(Waiter *self, visitproc visit, void *arg) {
  Py_VISIT(self->in_python);
  Py_VISIT(self->dict);
  return 0;
}

static int waiter_clear(Waiter *self) {
  Py_CLEAR(self->dict); /* which has the function in Python, too */
  return 0;
}

static void waiter_dealloc(Waiter *self) {
  PyObject_GC_UnTrack(self);
  if (self->weakrefs != NULL) PyObject_ClearWeakRefs((PyObject *)self);
  Py_CLEAR(self->in_python);
  Py_CLEAR(self->dict);
  Py_TYPE(self)->tp_free(self);
}

/* Of this name it is found where it is from. */
static PyObject *waiter_reduce(PyObject *self, PyObject *unused) {
  return PyObject_GetAttrString(self, "__qualname__");
}

static PyMethodDef waiter_methods[] = {
    {"__reduce__", waiter_reduce, METH_NOARGS, "What to pickle."},
    {NULL},
};

static PyGetSetDef waiter_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {NULL},
};

static PyTypeObject waiter_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "dovetail_native.Waiter",
    .tp_doc = "Waits for an array; calls a function of Python for what is none.",
    .tp_basicsize = sizeof(Waiter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_new = waiter_new,
    .tp_dealloc = (destructor)waiter_dealloc,
    .tp_traverse = (traverseproc)waiter_traverse,
    .tp_clear = (inquiry)waiter_clear,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(Waiter, vectorcall),
    .tp_weaklistoffset = offsetof(Waiter, weakrefs),
    .tp_dictoffset = offsetof(Waiter, dict),
    .tp_descr_get = callable_get,
    .tp_repr = callable_repr,
    .tp_methods = waiter_methods,
    .tp_getset = waiter_getset,
};

#endif
