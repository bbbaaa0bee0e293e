/**
 * Processes and folders that the tests of a file have started and made. They are removed when the file has ended
 * (`end-of-file.ts`). Several test files share this module, so it cannot register the hook itself: only the first file
 * that imports it would have the hook.
 */
export const leftovers = {
  /** Programs that are still running. */
  processes: new Set<{ end(signal: NodeJS.Signals): Promise<unknown> }>(),
  /** Paths of temporary folders. */
  folders: new Set<string>(),
};
