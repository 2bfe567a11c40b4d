/* The options, and what is known of them until one of them changes. */

#ifndef DOVETAIL_NATIVE_OPTIONS_H
#define DOVETAIL_NATIVE_OPTIONS_H

#include "arrays.h"

/* The options as a thread sees them: it has a new state after each change, by whichever thread. */
typedef struct {
  unsigned long long changes; /* that there were */
  unsigned long long number;  /* no other state has it, of no thread */
  int plain;                  /* whether none asks for what a program would see to */
} OptionsState;

static PyObject *trace_context; /* owned: gives the options that affect tracing */
static PyObject *plain_cells;   /* owned: pairs of an option and the value that it must have */
static unsigned long long options_changes = 1, options_states;
static __thread OptionsState options_state;

static PyObject *configure_direct(PyObject *module, PyObject *args) {
  PyObject *context, *cells;
  if (!PyArg_ParseTuple(args, "OO!", &context, &PyTuple_Type, &cells)) return NULL;
  Py_XSETREF(trace_context, Py_NewRef(context));
  Py_XSETREF(plain_cells, Py_NewRef(cells));
  options_changes++;
  Py_RETURN_NONE;
}

static int has_plain_options(void) {
  if (plain_cells == NULL) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(plain_cells); i++) {
    PyObject *pair = PyTuple_GET_ITEM(plain_cells, i);
    PyObject *value = PyObject_GetAttr(PyTuple_GET_ITEM(pair, 0), name_value);
    int same = value == PyTuple_GET_ITEM(pair, 1);
    if (value == NULL) PyErr_Clear();
    Py_XDECREF(value);
    if (!same) return 0;
  }
  return 1;
}

/* The state of the options for this thread. */
static const OptionsState *options_now(void) {
  if (options_state.changes != options_changes) {
    unsigned long long changes = options_changes;
    options_state.plain = has_plain_options();
    options_state.number = ++options_states;
    options_state.changes = changes;
  }
  return &options_state;
}

/* Whether the options that affect tracing have some values. */
static int options_are(PyObject *values) {
  PyObject *context = PyObject_CallNoArgs(trace_context);
  int same = context == NULL ? -1 : PyObject_RichCompareBool(context, values, Py_EQ);
  Py_XDECREF(context);
  if (same < 0) PyErr_Clear();
  return same == 1;
}

/* ----------------------------------------------------------------------------------- changes */

static PyObject *set_local, *set_global; /* owned: methods of jaxlib's class of options */

static PyObject *changed_by(PyObject *method, PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs) {
  PyObject *both[2] = {self, nargs > 0 ? args[0] : NULL};
  if (nargs > 1) {
    PyErr_SetString(PyExc_TypeError, "an option is set to one value");
    return NULL;
  }
  options_changes++;
  PyObject *result = PyObject_Vectorcall(method, both, nargs + 1, NULL);
  options_changes++; /* what has looked meanwhile may have seen the value of before */
  return result;
}

static PyObject *change_local(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  return changed_by(set_local, self, args, nargs);
}

static PyObject *change_global(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  return changed_by(set_global, self, args, nargs);
}

static PyMethodDef changing_methods[] = {
    {"set_local", (PyCFunction)(void (*)(void))change_local, METH_FASTCALL,
     "Set the value for this thread; without one, it has that of the process."},
    {"set_global", (PyCFunction)(void (*)(void))change_global, METH_FASTCALL,
     "Set the value for every thread without a value of its own."},
};

/* Give a class of options methods of this module, which notice that an option changes. */
static PyObject *watch_options(PyObject *module, PyObject *type) {
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "watch_options takes a class");
    return NULL;
  }
  PyObject **places[] = {&set_local, &set_global};
  for (int i = 0; i < 2; i++) {
    PyMethodDef *method = &changing_methods[i];
    PyObject *before = PyObject_GetAttrString(type, method->ml_name);
    PyObject *own = before == NULL ? NULL : PyDescr_NewMethod((PyTypeObject *)type, method);
    if (own == NULL) {
      Py_XDECREF(before);
      return NULL;
    }
    Py_XSETREF(*places[i], before);
    int failed = PyObject_SetAttrString(type, method->ml_name, own);
    Py_DECREF(own);
    if (failed) return NULL;
  }
  Py_RETURN_NONE;
}

#endif
