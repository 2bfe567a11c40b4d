/* What objects that are called have in common with functions of Python. */

#ifndef DOVETAIL_NATIVE_CALLABLES_H
#define DOVETAIL_NATIVE_CALLABLES_H

#include <Python.h>

static PyObject *callable_get(PyObject *self, PyObject *instance, PyObject *owner) {
  if (instance == NULL || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

static PyObject *callable_repr(PyObject *self) {
  PyObject *name = PyObject_GetAttrString(self, "__name__");
  if (name == NULL) {
    PyErr_Clear();
    return PyUnicode_FromString("<compiled function>");
  }
  PyObject *text = PyUnicode_FromFormat("<compiled function %S at %p>", name, self);
  Py_DECREF(name);
  return text;
}

#endif
