/**
 * Node's flags for an API or a worker that another process starts. The image's entry point and the scripts of package.json
 * say the same, since Node takes this flag on its command line alone: NODE_OPTIONS refuses it, and a process cannot set it
 * for itself.
 *
 * Uploaded files, vectors and the messages to the store lie outside of V8's heap and count as its growth. Without the flag a
 * process that takes or indexes documents collects all of its garbage three times a second, which is a third of an API's main
 * thread and a seventh of a worker's time. The price: such a process holds up to 100 MB more; an idle one does not.
 */
export const nodeFlags: readonly string[] = ["--initial-old-space-size=200"];
