"""Where public names stand in the reference: pages, in the order in which users look for things.

A part of a page takes names from one public module: those that it lists, those that are defined in
the modules that it lists, or all. A name stands in the first part that takes it; a name that is the
same object as one before refers to it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A part of a page.

    Attributes:
        title: the heading; none if empty.
        module: the public module whose names it takes.
        names: names, parted by spaces.
        defined_in: patterns of the modules that the names are defined in, without the first word
            or two of these (`dovetail._core`, `dovetail.numpy`), parted by spaces. If there are
            neither names nor patterns, all names of the module.
    """

    title: str
    module: str
    names: str = ""
    defined_in: str = ""


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        name: the file's name.
        title: the heading.
        text: what is on it, in a sentence.
        parts: the parts.
    """

    name: str
    title: str
    text: str
    parts: tuple[Part, ...]


def _modules(*names: str) -> tuple[Part, ...]:
    """Parts that are whole modules."""
    return tuple(Part(f"dovetail.{name}", f"dovetail.{name}") for name in names)


NUMPY = "dovetail.numpy"
LAX = "dovetail.lax"
DT = "dovetail"

FUNCTIONS = (
    Page(
        "transformations",
        "Transformations",
        "Derivatives, batches, and functions with rules of their own.",
        (
            Part(
                "Derivatives",
                DT,
                defined_in="api.derivatives api.jacobians api.backward_passes",
            ),
            Part("Vectorization", DT, defined_in="api.vectorization"),
            Part("Custom rules", DT, "float0", "ops.custom.*"),
            Part("Rematerialization", DT, "checkpoint remat checkpoint_policies"),
            *_modules("ad", "ad_checkpoint", "custom_derivatives", "custom_batching"),
        ),
    ),
    Page(
        "compilation",
        "Compilation",
        "Functions that are traced and compiled, what they become, and what they call.",
        (
            Part("Compile", DT, defined_in="api.jit api.named_scopes base.option_kinds"),
            Part("Look at a function", DT, defined_in="api.inspection api.lowered*"),
            Part("Callbacks", DT, "pure_callback effects_barrier"),
            *_modules("stages", "core", "ffi"),
        ),
    ),
    Page(
        "control-flow",
        "Control flow",
        "Loops and branches that are compiled.",
        (
            Part("Loops", LAX, "map scan fori_loop while_loop associative_scan"),
            Part("Branches", LAX, "cond switch platform_dependent select select_n"),
            Part("Equations to be solved", LAX, "custom_linear_solve custom_root"),
            Part("Boundaries", LAX, "", "ops.calls.barriers ops.calls.tokens ops.calls.composite"),
        ),
    ),
    Page(
        "arrays-and-devices",
        "Arrays and devices",
        "What holds data, where it is, and how it gets there.",
        (
            Part("Arrays", DT, "Array Shard ds"),
            Part("Transfers", DT, defined_in="runtime.arrays.*"),
            Part("Devices and processes", DT, "Device", "runtime.devices.clients api.threads"),
            Part("References that are written to", DT, "Ref", "api.mutable_references"),
            *_modules("ref", "memory", "dlpack"),
        ),
    ),
    Page(
        "shardings-and-meshes",
        "Shardings and meshes",
        "Arrays divided over many devices, programs that run on all of them, and processes.",
        (
            Part(
                "Meshes and shardings", DT, "P NamedSharding reshard get_abstract_mesh", "api.mes*"
            ),
            Part("Functions of parts", DT, defined_in="api.mapping api.pmap"),
            Part("dovetail.sharding", "dovetail.sharding"),
            Part(
                "Collectives",
                LAX,
                "with_sharding_constraint",
                "ops.parallel.*",
            ),
            Part("dovetail.distributed", "dovetail.distributed"),
            *_modules("experimental.mesh_utils", "experimental.multihost_utils"),
            *_modules("experimental.shard_map", "experimental.pjit"),
            *_modules("experimental.custom_partitioning", "experimental.topologies"),
        ),
    ),
    Page(
        "random",
        "Random numbers",
        "Keys, and what is drawn with them: `dovetail.random`.",
        (
            Part("Keys", "dovetail.random", "", "keys"),
            Part("Numbers in an interval, and bits", "dovetail.random", "", "intervals"),
            Part("Continuous distributions", "dovetail.random", "", "continuous gamma_family"),
            Part("More continuous distributions", "dovetail.random", "", "parametric"),
            Part("Discrete distributions", "dovetail.random", "", "discrete"),
            Part("Permutations and choices", "dovetail.random", "", "resampling"),
            Part("Primitives", "dovetail.random"),
            Part("dovetail.experimental.random", "dovetail.experimental.random"),
        ),
    ),
    Page(
        "options",
        "Options in programs",
        "Functions and contexts that set an option; [all options](../options.md) have a page.",
        (Part("Options", DT, "config make_user_context", "base.config base.unavailable_options"),),
    ),
    Page(
        "trees",
        "Trees",
        "Containers of arrays: `dovetail.tree`, and older names for the same.",
        _modules("tree", "tree_util", "flatten_util"),
    ),
    Page(
        "debugging-and-profiling",
        "Debugging and profiling",
        "What happens in a program, and how long it takes.",
        (
            Part(
                "See what is there",
                DT,
                "show explain events no_recompiles profile lint print_environment_info "
                "__version__ __version_info__",
            ),
            *_modules("debug", "profiler", "monitoring", "experimental.profiler"),
            *_modules("experimental.checkify", "test_util"),
        ),
    ),
    Page(
        "errors",
        "Errors",
        "Classes of errors; [messages have codes](../errors/index.md).",
        _modules("errors"),
    ),
)

ARRAYS = (
    Page(
        "numpy-creation",
        "Creation of arrays",
        "Arrays of given values, ranges, grids and patterns.",
        (
            Part("From values", NUMPY, "", "creation"),
            Part("Filled", NUMPY, "", "filling"),
            Part("Ranges and grids", NUMPY, "mgrid ogrid", "ranges"),
            Part("Matrices", NUMPY, "", "matrices"),
            Part("Windows of signals", NUMPY, "", "windows"),
            Part("Input and output", NUMPY, "", "input_and_output"),
        ),
    ),
    Page(
        "numpy-types",
        "Types and constants",
        "The types of elements, what is known of them, and constants.",
        (
            Part("Types", NUMPY, "ndarray", "scalar_types dtype_explanation"),
            Part("Constants", NUMPY, "", "constants"),
            *_modules("dtypes", "typing"),
        ),
    ),
    Page(
        "numpy-shape",
        "Shapes",
        "The same elements in another shape or order; arrays joined, split and padded.",
        (
            Part("Shapes and orders", NUMPY, "", "shapes"),
            Part("Joined and split", NUMPY, "", "joining"),
            Part("Padded", NUMPY, "", "padding"),
        ),
    ),
    Page(
        "numpy-indexing",
        "Indexing and selection",
        "Elements by position or by condition, and arrays with some elements changed.",
        (
            Part("Read", NUMPY, "", "gathering"),
            Part("Change", NUMPY, "", "updates"),
            Part("Select", NUMPY, "", "selection"),
            Part("Make indices", NUMPY, "", "index_tricks"),
            Part("Look up", NUMPY, "", "lookups"),
        ),
    ),
    Page(
        "numpy-math",
        "Mathematics, element by element",
        "Functions of single elements.",
        (
            Part("Arithmetic", NUMPY, "", "arithmetic divisors"),
            Part("Powers", NUMPY, "", "powers"),
            Part("Exponentials and logarithms", NUMPY, "", "exponentials"),
            Part("Trigonometry", NUMPY, "", "trigonometry modified_bessel"),
            Part("Rounding", NUMPY, "", "rounding"),
            Part("Parts of floats", NUMPY, "", "float_parts"),
            Part("Complex numbers", NUMPY, "", "complex_numbers"),
            Part("Bits", NUMPY, "", "bits"),
        ),
    ),
    Page(
        "numpy-logic",
        "Comparison and logic",
        "Comparisons, tests of values, and logic.",
        (Part("", NUMPY, "", "logic"),),
    ),
    Page(
        "numpy-reductions",
        "Reductions and statistics",
        "Sums, averages, extremes and the like, along dimensions.",
        (
            Part("Reductions", NUMPY, "", "reductions extremes"),
            Part("Averages", NUMPY, "", "averages"),
            Part("Without NaN", NUMPY, "", "nan_reductions"),
            Part("Quantiles", NUMPY, "", "quantiles"),
            Part("Running totals and differences", NUMPY, "", "cumulative differences"),
            Part("Histograms", NUMPY, "", "histograms"),
            Part("Correlation and convolution", NUMPY, "", "correlations"),
        ),
    ),
    Page(
        "numpy-sorting",
        "Sorting, searching and sets",
        "Order, places of elements, and arrays as sets.",
        (
            Part("Sort", NUMPY, "", "sorting"),
            Part("Search", NUMPY, "", "searching"),
            Part("Sets", NUMPY, "", "set_operations"),
        ),
    ),
    Page(
        "numpy-linalg",
        "Linear algebra",
        "Products, and `dovetail.numpy.linalg`.",
        (
            Part("Products", NUMPY, "", "contraction einstein"),
            Part("dovetail.numpy.linalg", "dovetail.numpy.linalg"),
        ),
    ),
    Page(
        "numpy-fft",
        "Fourier transforms",
        "`dovetail.numpy.fft` and `dovetail.scipy.fft`.",
        _modules("numpy.fft", "scipy.fft"),
    ),
    Page(
        "numpy-functional",
        "Polynomials and functions of functions",
        "Polynomials, and functions that are applied along arrays.",
        (
            Part("Polynomials", NUMPY, "", "polynomials"),
            Part("Functions along arrays", NUMPY, "", "vectorization ufuncs"),
            Part("More", NUMPY),
        ),
    ),
)

STATISTICS = (
    *("bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma"),
    *("gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial"),
    *("multivariate_normal", "nbinom", "norm", "pareto", "poisson", "t", "truncnorm", "uniform"),
    *("vonmises", "wrapcauchy"),
)

LAYERS = (
    Page(
        "nn",
        "Neural networks",
        "Activations, normalisations, attention, and how parameters begin.",
        (
            Part("Activations", "dovetail.nn", "", "activations"),
            Part("Normalisations", "dovetail.nn", "", "normalisation"),
            Part("Attention and scaled products", "dovetail.nn"),
            Part("dovetail.nn.initializers", "dovetail.nn.initializers"),
            Part("dovetail.ops", "dovetail.ops"),
            Part("dovetail.image", "dovetail.image"),
        ),
    ),
    Page(
        "scipy",
        "SciPy",
        "Functions of SciPy: special functions, linear algebra, signals, optimization and others.",
        _modules(
            *("scipy.special", "scipy.linalg", "scipy.signal", "scipy.optimize"),
            *("scipy.integrate", "scipy.interpolate", "scipy.ndimage", "scipy.sparse.linalg"),
            *("scipy.spatial.transform", "scipy.cluster.vq"),
        ),
    ),
    Page(
        "scipy-stats",
        "Statistics",
        "Distributions, their densities and quantiles: `dovetail.scipy.stats`.",
        _modules("scipy.stats", *(f"scipy.stats.{name}" for name in STATISTICS)),
    ),
    Page(
        "sparse",
        "Sparse arrays",
        "Arrays of which most elements are zero: `dovetail.experimental.sparse`.",
        _modules("experimental.sparse", "experimental.sparse.linalg"),
    ),
    Page(
        "example-libraries",
        "Example libraries",
        "Small optimizers and layers, to read and to begin with.",
        _modules("example_libraries.optimizers", "example_libraries.stax"),
    ),
    Page(
        "experimental",
        "Experimental",
        "What may change: `dovetail.experimental`.",
        _modules(
            "experimental",
            *(
                f"experimental.{name}"
                for name in (
                    *("buffer_callback", "compilation_cache.compilation_cache", "compute_on"),
                    *("jet", "layout", "ode", "rnn", "scheduling_groups"),
                    *("serialize_executable", "xla_metadata"),
                )
            ),
        ),
    ),
)

OPERATIONS = (
    Page(
        "lax-elementwise",
        "Elementwise operations of lax",
        "What XLA computes element by element; operands have one dtype.",
        (
            Part("Arithmetic", LAX, "", "ops.elementwise.*"),
            Part("Special functions", LAX, "", "ops.special.*"),
            Part("Random bits", LAX, "", "ops.random.*"),
        ),
    ),
    Page(
        "lax-arrays",
        "Array operations of lax",
        "Shapes, indices, reductions, products and windows.",
        (
            Part("Shapes", LAX, "", "ops.shape.*"),
            Part("Indices and sorting", LAX, "", "ops.indexing.*"),
            Part("Reductions", LAX, "", "ops.reduction.*"),
            Part("Products and Fourier transforms", LAX, "", "ops.contraction.*"),
            Part("Windows and convolutions", LAX, "", "ops.windows.*"),
            Part("More", LAX, "", "*"),
        ),
    ),
    Page(
        "lax-linalg",
        "Linear algebra of lax",
        "Decompositions: `dovetail.lax.linalg`.",
        _modules("lax.linalg"),
    ),
    Page(
        "lax-primitives",
        "Primitives",
        "The primitives as objects, for authors of transformations and of backends; "
        "[what each has](../primitives.md) is a table.",
        (Part("", LAX),),
    ),
)

OTHERS = (
    Page(
        "export",
        "Export",
        "Programs for other processes, machines and frameworks.",
        _modules("export", "exporters"),
    ),
    Page(
        "extend",
        "For authors of backends and of APIs",
        "`dovetail.extend`: what plug-ins are promised.",
        _modules(
            "extend",
            *(
                f"extend.{name}"
                for name in (
                    *("arguments", "arrays", "avals", "backend", "batching", "checks"),
                    *("contractions", "core", "dimensions", "divisions", "dtypes", "eager"),
                    *("indexing", "lowering", "matrices", "mlir", "pjrt", "programs", "random"),
                    *("random_keys", "strictness", "tracebacks", "unchecked"),
                )
            ),
        ),
    ),
    Page(
        "testing",
        "Testing",
        "The conformance kit for backends: `dovetail.testing`.",
        _modules("testing"),
    ),
)

GROUPS: dict[str, tuple[Page, ...]] = {
    "Transform, compile, run": FUNCTIONS,
    "NumPy functions: dovetail.numpy": ARRAYS,
    "Networks, science, data": LAYERS,
    "XLA's operations: dovetail.lax": OPERATIONS,
    "For authors of tools": OTHERS,
}
"""The pages under their headings in the list of all."""

LAST = Page(
    "others",
    "More of dovetail",
    "Names that stand on no other page.",
    (Part("", DT),),
)
"""Takes what no other page does; a test wants it to be empty."""
