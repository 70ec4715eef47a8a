/* SPDX-License-Identifier: MIT
 * quoll kernel: the program as a kernel of Jupyter, and what makes Jupyter know it.
 */
#include <string.h>

#include "interp/commands/commands.h"
#include "interp/jupyter/kernelspec.h"
#include "interp/jupyter/sockets.h"
#include "interp/jupyter/zmq.h"

/* Options after install and uninstall. */
static void read_options(lua_State *L, int argc, char **argv, struct ql_kernelspec *spec)
{
	*spec = (struct ql_kernelspec){.name = "quoll"};
	for (int i = 2; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		bool prefix = !strcmp(argv[i], "--prefix"), name = !strcmp(argv[i], "--name");

		if (!strcmp(argv[i], "--user")) {
			spec->prefix = NULL;
			continue;
		}
		if (!prefix && !name)
			luaL_error(
				L, "kernel %s: wanted --user, --prefix DIR or --name NAME, got '%s'", argv[1], argv[i]);
		if (!value || !*value)
			luaL_error(L, "kernel %s: %s: wanted a value, got none", argv[1], argv[i]);
		*(prefix ? &spec->prefix : &spec->name) = value;
		i++;
	}
}

static int install(struct ql_state *s, int argc, char **argv)
{
	bool remove = !strcmp(argv[1], "uninstall"), good;
	struct ql_kernelspec spec;
	char text[QL_KERNELSPEC_TEXT];

	read_options(s->L, argc, argv, &spec);
	/* Jupyter would only say that a kernel without libzmq died. */
	if (!remove && !ql_zmq_open(text, sizeof(text)))
		return luaL_error(s->L, "kernel install: nothing was installed: %s", text);
	good = remove ? ql_kernelspec_uninstall(&spec, text) : ql_kernelspec_install(s->ctx, &spec, text);
	if (!good)
		return luaL_error(s->L, "%s", text);
	printf("%s %s\n", remove ? "removed" : "installed", text);
	return 0;
}

static int run(struct ql_state *s, int argc, char **argv)
{
	char error[QL_CONNECTION_ERROR];
	int code = 0;

	if (argc >= 2 && (!strcmp(argv[1], "install") || !strcmp(argv[1], "uninstall")))
		return install(s, argc, argv);
	if (argc != 2)
		return luaL_error(s->L, "kernel: wanted install, uninstall or a connection file, got %s",
			argc > 1 ? argv[2] : "nothing");
	ql_state_search(s->L, NULL);
	if (!ql_jupyter_serve(s, argv[1], &code, error))
		return luaL_error(s->L, "%s", error);
	return code;
}

const struct ql_command ql_command_kernel = {"kernel", "FILE, install, uninstall",
	"a Jupyter kernel; install registers it with Jupyter (--user, --prefix DIR, --name NAME)", run};
