/* A PJRT plug-in for tests: another one under a platform name of its own, with faults on request.

   Compiled with these definitions, all of them optional:
     PLATFORM_NAME   the platform's name, "proxy" by default
     LIBRARY         path of the PJRT library that does the work
     MAJOR, MINOR    the version that it claims
     STRUCT_SIZE     the size that it claims for PJRT_Api; there is room for 4096 bytes
     NEWEST_READ     three numbers, the newest StableHLO that it says it reads
     OLDEST_READ     three numbers, the oldest
     RETURNS_NULL    GetPjrtApi returns nothing
     NO_DEVICES      its client cannot be made
     FAR_MEMORY      its memory is not the host's, so that it says

   The client's platform version tells the options that the client was made with. */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "pjrt_c_api.h"

#ifndef PLATFORM_NAME
#define PLATFORM_NAME "proxy"
#endif

static union {
  PJRT_Api api;
  char room[4096]; /* functions of later versions, none of them there */
} all;
#define api all.api
static const PJRT_Api *real;
static char version[1024];

#ifdef LIBRARY

static void append_option(const PJRT_NamedValue *option) {
  char text[128] = "?";
  switch (option->type) {
    case PJRT_NamedValue_kString:
      snprintf(text, sizeof text, "\"%.*s\"", (int)option->value_size, option->string_value);
      break;
    case PJRT_NamedValue_kInt64:
      snprintf(text, sizeof text, "%lld", (long long)option->int64_value);
      break;
    case PJRT_NamedValue_kFloat:
      snprintf(text, sizeof text, "%g", option->float_value);
      break;
    case PJRT_NamedValue_kBool:
      snprintf(text, sizeof text, "%s", option->bool_value ? "true" : "false");
      break;
    case PJRT_NamedValue_kInt64List:
      snprintf(text, sizeof text, "list of %zu", option->value_size);
      break;
  }
  size_t used = strlen(version);
  snprintf(version + used, sizeof version - used, " %.*s=%s", (int)option->name_size, option->name,
           text);
}

static PJRT_Error *client_create(PJRT_Client_Create_Args *args) {
  snprintf(version, sizeof version, "made with");
  for (size_t i = 0; i < args->num_options; ++i) append_option(&args->create_options[i]);
#ifdef NO_DEVICES
  /* Some error of the real plug-in's stands for "there is no such device". */
  PJRT_Executable_DeserializeAndLoad_Args nothing = {0};
  return real->PJRT_Executable_DeserializeAndLoad(&nothing);
#else
  return real->PJRT_Client_Create(args);
#endif
}

static PJRT_Error *client_platform_name(PJRT_Client_PlatformName_Args *args) {
  args->platform_name = PLATFORM_NAME;
  args->platform_name_size = strlen(PLATFORM_NAME);
  return NULL;
}

static PJRT_Error *topology_platform_name(PJRT_TopologyDescription_PlatformName_Args *args) {
  args->platform_name = PLATFORM_NAME;
  args->platform_name_size = strlen(PLATFORM_NAME);
  return NULL;
}

static PJRT_Error *client_platform_version(PJRT_Client_PlatformVersion_Args *args) {
  args->platform_version = version;
  args->platform_version_size = strlen(version);
  return NULL;
}

#ifdef FAR_MEMORY
static PJRT_Error *is_on_cpu(PJRT_Buffer_IsOnCpu_Args *args) {
  args->is_on_cpu = false;
  return NULL;
}
#endif

static PJRT_Error *plugin_attributes(PJRT_Plugin_Attributes_Args *args) {
  static PJRT_NamedValue changed[32];
  PJRT_Error *error = real->PJRT_Plugin_Attributes(args);
  if (error != NULL || args->num_attributes > 32) return error;
  memcpy(changed, args->attributes, args->num_attributes * sizeof changed[0]);
  for (size_t i = 0; i < args->num_attributes; ++i) {
#ifdef NEWEST_READ
    static const int64_t newest[] = {NEWEST_READ};
    if (!strncmp(changed[i].name, "stablehlo_current_version", changed[i].name_size))
      changed[i].int64_array_value = newest;
#endif
#ifdef OLDEST_READ
    static const int64_t oldest[] = {OLDEST_READ};
    if (!strncmp(changed[i].name, "stablehlo_minimum_version", changed[i].name_size))
      changed[i].int64_array_value = oldest;
#endif
  }
  args->attributes = changed;
  return NULL;
}

static void forward(void) {
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "proxy: %s\n", dlerror());
    return;
  }
  real = ((const PJRT_Api *(*)(void))dlsym(library, "GetPjrtApi"))();
  memcpy(&api, real, real->struct_size < sizeof api ? real->struct_size : sizeof api);
  api.PJRT_Client_Create = client_create;
  api.PJRT_Client_PlatformName = client_platform_name;
  api.PJRT_Client_PlatformVersion = client_platform_version;
  api.PJRT_TopologyDescription_PlatformName = topology_platform_name;
  api.PJRT_Plugin_Attributes = plugin_attributes;
#ifdef FAR_MEMORY
  api.PJRT_Buffer_IsOnCpu = is_on_cpu;
#endif
}

#else

static void forward(void) {
  (void)version;
  api.struct_size = PJRT_Api_STRUCT_SIZE;
  api.pjrt_api_version.struct_size = PJRT_Api_Version_STRUCT_SIZE;
  api.pjrt_api_version.minor_version = PJRT_API_MINOR;
}

#endif

__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void) {
#ifdef RETURNS_NULL
  (void)forward, (void)real;
  return NULL;
#else
  if (real == NULL) forward();
#ifdef STRUCT_SIZE
  api.struct_size = STRUCT_SIZE;
#endif
#ifdef MAJOR
  api.pjrt_api_version.major_version = MAJOR;
#endif
#ifdef MINOR
  api.pjrt_api_version.minor_version = MINOR;
#endif
  return &api;
#endif
}
