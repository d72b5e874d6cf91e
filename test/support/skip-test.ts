/** Skips the running test, or from a hook those that it is for, and says why in their titles. */
export function skipTest(context: Mocha.Context, reason: string): never {
  const note = (test: Mocha.Runnable) => {
    test.title += ` (skipped: ${reason})`;
  };
  const { test, currentTest } = context;
  const isHook = test !== undefined && "type" in test && test.type === "hook";
  if (isHook && test.title.startsWith('"before all"')) test.parent?.eachTest(note);
  else if (isHook) note(currentTest ?? test);
  else if (test !== undefined) note(test);
  return context.skip();
}
